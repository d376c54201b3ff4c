//! What a mask takes from later days: it may hide more of an earlier text, it never says whose something is (DESIGN rule 1).

use proptest::prelude::*;
use traderharness_market::store::Announcement;
use traderharness_market::testing::{SmallMarket, SmallStock, code, day, moment};
use traderharness_market::{Day, Mask, MaskConfig, MaskStyle, Store, StoreParts};

/// Five weekdays from Friday the 8th.
const FIRST: &str = "2024-03-08";

fn parts() -> StoreParts {
    let mut parts = SmallMarket::new(FIRST, 5)
        .stock(SmallStock::new("600519").name("示范酒业").closes(&[10.0; 5]))
        .stock(SmallStock::new("600100").name("样板电子").closes(&[10.0; 5]))
        // Listed on Wednesday the 13th; the table of companies has it from the start.
        .stock(SmallStock::new("600999").name("后来重工").bar("2024-03-13", [10.0; 6]))
        .parts();
    let row = |of: &str, time: &str, name: &str| Announcement {
        code: code(of),
        time: moment(time),
        date_only: false,
        title: "Notice".into(),
        kind: "other".into(),
        name: name.into(),
    };
    parts.announcements = Some(vec![
        row("600100", "2024-03-11 09:00", "示范酒业集团"),
        row("600519", "2024-03-12 09:00", "新名控股"),
        row("600519", "2024-03-13 09:00", "样板电子"),
    ]);
    parts
}

/// The dataset as it is known before `today`.
fn before(today: Day) -> StoreParts {
    let mut parts = parts();
    parts.announcements.as_mut().unwrap().retain(|row| row.time.day() < today);
    parts
}

fn mask(parts: StoreParts) -> (Store, Mask) {
    let store = Store::new(parts).unwrap();
    let config = MaskConfig { dates: true, entities: true, style: MaskStyle::Opaque, key: b"test key".to_vec() };
    let mask = Mask::new(&store, config);
    (store, mask)
}

#[track_caller]
fn check(today: &str, text: &str, expected: &str) {
    let (store, mask) = mask(parts());
    let mut expected = expected.to_owned();
    for of in ["600519", "600100", "600999"] {
        expected = expected.replace(of, mask.code(store.find(code(of)).unwrap()));
    }
    assert_eq!(mask.text(text, day(today)), expected, "{today}: {text}");
}

#[test]
fn a_later_name_is_hidden_but_is_its_companys_only_from_the_day_after_it_was_printed() {
    check("2024-03-11", "新名控股涨停", "another company涨停");
    check("2024-03-12", "新名控股涨停", "another company涨停");
    check("2024-03-13", "新名控股涨停", "Company 600519涨停");
}

#[test]
fn a_later_listing_is_a_company_outside_the_universe_until_it_has_traded() {
    let text = "后来重工（600999）将上市";
    check("2024-03-12", text, "another company（another code）将上市");
    check("2024-03-13", text, "another company（another code）将上市");
    check("2024-03-14", text, "Company 600999（600999）将上市");
}

#[test]
fn a_later_name_never_moves_what_is_known_of_a_text() {
    // The longer name is known only from the 12th on.
    check("2024-03-11", "示范酒业集团公告", "Company 600519集团公告");
    check("2024-03-12", "示范酒业集团公告", "Company 600100公告");
    // A second company with the same name makes it nobody's, once it is told.
    check("2024-03-13", "样板电子公告", "Company 600100公告");
    check("2024-03-14", "样板电子公告", "Company 600100公告");
}

proptest! {
    // Take away what later days hide, and the text is the one that a dataset cut before today gives.
    #[test]
    fn later_days_only_hide_more(words in prop::collection::vec(0_usize..9, 0..8), back in 0_i32..6) {
        const WORDS: [&str; 9] =
            ["示范酒业", "集团", "样板电子", "新名控股", "后来重工", "600519", "（600999）", "2024年3月11日", "公告，"];
        let text: String = words.iter().map(|i| WORDS[*i]).collect();
        let today = day("2024-03-14").plus(-back);
        let (full, cut) = (mask(parts()).1, mask(before(today)).1);
        let expected = cut.text(&text, today).into_owned();
        let expected = if today <= day("2024-03-12") { expected.replace("新名控股", "another company") } else { expected };
        // A longer later name is hidden only where no known name stands.
        prop_assert_eq!(full.text(&text, today), expected);
    }

    #[test]
    fn the_beginning_of_a_text_is_the_beginning_of_what_is_seen(
        words in prop::collection::vec(0_usize..9, 0..8), limit in 0_usize..60,
    ) {
        const WORDS: [&str; 9] =
            ["示范酒业", "集", "样板电子", "12", "新名控股", "600519", "，", "2024年3月11日", "２０２４－０３－１１"];
        let text: String = words.iter().map(|i| WORDS[*i]).collect();
        let today = day("2024-03-14");
        let mask = mask(parts()).1;
        let whole = mask.text(&text, today).into_owned();
        let (part, characters) = mask.beginning(&text, today, limit);
        let shown = mask.text(part, today).into_owned();
        prop_assert_eq!(characters, whole.chars().count());
        prop_assert!(text.starts_with(part) && whole.starts_with(&shown));
        prop_assert!(shown.chars().count() <= limit);
        prop_assert_eq!(part.len() == text.len(), characters <= limit);
        // Nothing is given away for free: the next thing would not fit, or it is what a longer number or date may be part of.
        prop_assert!(characters <= limit || shown.chars().count() + 24 >= limit, "{} of {}: {}", shown.chars().count(), limit, shown);
    }
}
