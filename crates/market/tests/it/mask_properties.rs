//! Masking of texts put together at random: nothing to hide survives, nothing else changes.

use crate::mask_text::store;
use proptest::prelude::*;
use std::borrow::Cow;
use traderharness_market::testing::day;
use traderharness_market::{Day, Mask, MaskConfig, MaskStyle};

/// What must go, and what of it must not be found afterwards.
fn secret() -> impl Strategy<Value = (String, String)> {
    let same = |s: &str| (s.to_owned(), s.to_owned());
    let names: Vec<(String, String)> =
        ["贵州茅台", "Kweichow Moutai", "万科A", "平安银行", "浦发银行", "TCL科技", "招商银行", "比亚迪"]
            .iter()
            .map(|n| same(n))
            .collect();
    let codes: Vec<(String, String)> = [
        ("600519", "600519"),
        ("(600519)", "600519"),
        ("600519.SH", "600519"),
        ("sz000001", "000001"),
        ("（600036）", "600036"),
        ("002594.SZ", "002594"),
    ]
    .iter()
    .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
    .collect();
    let dates = (0_usize..14, -900_i32..900).prop_map(|(form, offset)| {
        let date = day("2024-03-14").plus(offset);
        let (y, m, d) = date.ymd();
        let month = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ][m as usize - 1];
        let text = match form {
            0 => format!("{y}-{m:02}-{d:02}"),
            1 => format!("{y}/{m}/{d}"),
            2 => format!("{y}.{m:02}.{d:02}"),
            3 => format!("{y}{m:02}{d:02}"),
            4 => format!("{y}年{m}月{d}日"),
            5 => format!("{y}年{m:02}月"),
            6 => format!("{d} {month} {y}"),
            7 => format!("{month} {d}, {y}"),
            8 => format!("{month} {y}"),
            9 => format!("Q{} {y}", (m - 1) / 3 + 1),
            10 => format!("{y}Q{}", (m - 1) / 3 + 1),
            11 => format!("{y}年报"),
            12 => format!("{y}-{m:02}-{d:02}T10:30:00+08:00"),
            _ => format!("FY{y}"),
        };
        (text, y.to_string())
    });
    prop_oneof![prop::sample::select(names), prop::sample::select(codes), dates]
}

/// What must stay.
fn innocent() -> impl Strategy<Value = String> {
    let words = prop::sample::select(
        [
            "公司",
            "增长",
            "the market rose",
            "董事会决议",
            "工业机器人",
            "回购",
            "PE 12.5",
            "3.14%",
            "中证2000",
            "cond-0001",
            "ORD-600519",
            "净利润",
            "T+1",
            "A股",
            "5G",
            "SHM-000009",
            "v1.2.3",
        ]
        .map(str::to_owned)
        .to_vec(),
    );
    let amounts =
        (1_u64..10_000_000, prop::sample::select(vec!["元", "股", "万元", "%", " shares", "手", " yuan", "亿元", ".25"]))
            .prop_map(|(n, unit)| format!("{n}{unit}"));
    prop_oneof![words, amounts]
}

fn masked(text: &str, style: MaskStyle) -> String {
    let store = store();
    let mask = Mask::new(&store, MaskConfig { dates: true, entities: true, style, key: b"a key".to_vec() });
    let once = mask.text(text, day("2024-03-14")).into_owned();
    if style == MaskStyle::Opaque {
        assert_eq!(mask.text(&once, day("2024-03-14")), once, "{text}");
    }
    once
}

const BETWEEN: &str = " ｜ ";

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn nothing_to_hide_survives_and_the_rest_stays(parts in prop::collection::vec(prop_oneof![secret().prop_map(Ok), innocent().prop_map(Err)], 1..12), wide: bool) {
        let show = |part: &Result<(String, String), String>| match part {
            Ok((text, _)) if wide => text.chars().map(|c| if c.is_ascii_digit() { char::from_u32(c as u32 + 0xfee0).unwrap() } else { c }).collect(),
            Ok((text, _)) | Err(text) => text.clone(),
        };
        let text = parts.iter().map(show).collect::<Vec<String>>().join(BETWEEN);
        let out = masked(&text, MaskStyle::Opaque);
        let pieces: Vec<&str> = out.split(BETWEEN).collect();
        prop_assert_eq!(pieces.len(), parts.len());
        for (piece, part) in pieces.iter().zip(&parts) {
            match part {
                Ok((_, hidden)) => prop_assert!(!piece.contains(hidden.as_str()), "{} left {}", text, piece),
                Err(kept) => prop_assert_eq!(*piece, kept.as_str()),
            }
        }
    }

    #[test]
    fn any_text_at_all_is_masked_without_a_panic(text in "\\PC{0,60}", numbers in "[0-9年月日季度号QHFY./:—至（）, -]{0,40}", mixed in "(2024|3|14|年|月|日|-|/| |March|Q1|二〇|星期一|T|:|Z|\\+08|，){0,20}") {
        for text in [text, numbers, mixed] {
            let out = masked(&text, MaskStyle::Opaque);
            prop_assert!(!out.contains("600519") || text.contains("600519"));
            masked(&text, MaskStyle::Permutation);
        }
    }

    #[test]
    fn labels_read_back_to_their_day(offset in -20_000_i32..20_000, today in 0_i32..40_000) {
        let store = store();
        let mask = Mask::new(&store, MaskConfig { dates: true, ..MaskConfig::default() });
        let (today, date) = (Day(today), Day(today).plus(offset));
        prop_assert_eq!(mask.parse_day(&mask.day(date, today), today), Some(date));
        let got = mask.text(&date.to_string(), today).into_owned();
        let (y, ..) = date.ymd();
        prop_assert!(got == mask.day(date, today) || !(1900..=2099).contains(&y));
    }
}

#[test]
fn long_texts_take_linear_time() {
    // A quadratic way would take minutes for these.
    let store = store();
    let mask = Mask::new(&store, MaskConfig { dates: true, entities: true, ..MaskConfig::default() });
    for unit in
        ["2", "年", "二", "600519,", "-2024", "March ", "SH", "（", "贵州", "Q1 ", "2024-", "  ", "KweichowMouta", "第一", "编号"]
    {
        let text = unit.repeat(200_000 / unit.len());
        let out = mask.text(&text, day("2024-03-14"));
        assert!(!out.is_empty());
    }
}

#[test]
fn a_text_with_nothing_to_hide_is_not_copied() {
    let store = store();
    let mask = Mask::new(&store, MaskConfig { dates: true, entities: true, ..MaskConfig::default() });
    for text in ["", "净利润增长12.5%，拟每10股派3元。", "ＥＰＳ　12", "no secrets here"] {
        assert!(matches!(mask.text(text, day("2024-03-14")), Cow::Borrowed(_)), "{text}");
    }
}
