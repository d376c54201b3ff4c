//! Visible codes and what a sent text resolves to.

use traderharness_market::testing::{SmallMarket, SmallStock, code, day, moment};
use traderharness_market::{Board, Mask, MaskConfig, MaskStyle, SecId, Store, Unresolved};

const CODES: [&str; 12] =
    ["000001", "000002", "000858", "300024", "300750", "430047", "600000", "600519", "601318", "688001", "688981", "900900"];

fn store(order: &[&str]) -> Store {
    let mut market = SmallMarket::new("2024-03-04", 5);
    for code in order.iter().filter(|c| **c != "900900") {
        market = market.stock(SmallStock::new(code).name(&format!("Example {code}")).closes(&[10.0; 5]));
    }
    market.build()
}

fn config(style: MaskStyle, key: &str) -> MaskConfig {
    MaskConfig { dates: true, entities: true, style, key: key.as_bytes().to_vec() }
}

fn opaque(store: &Store, key: &str) -> Mask {
    Mask::new(store, config(MaskStyle::Opaque, key))
}

fn sec(store: &Store, text: &str) -> SecId {
    store.find(code(text)).expect("in the universe")
}

#[test]
fn aliases_number_each_board_from_one() {
    let store = store(&CODES);
    let mask = opaque(&store, "run key");
    let mut aliases: Vec<&str> = (0..store.len() as u32).map(|i| mask.code(SecId(i))).collect();
    aliases.sort_unstable();
    // engine E8.2
    let expected = [
        "BSE-000001",
        "GEM-000001",
        "GEM-000002",
        "SHM-000001",
        "SHM-000002",
        "SHM-000003",
        "STAR-000001",
        "STAR-000002",
        "SZM-000001",
        "SZM-000002",
        "SZM-000003",
    ];
    assert_eq!(aliases, expected);
    for i in 0..store.len() as u32 {
        let board = store.codes()[i as usize].board().expect("board");
        assert!(mask.code(SecId(i)).starts_with(board.alias_prefix()));
        assert_eq!(mask.resolve(mask.code(SecId(i))), Ok(SecId(i)));
        assert_eq!(mask.security_name(SecId(i)), format!("Company {}", mask.code(SecId(i))));
    }
}

#[test]
fn aliases_depend_on_the_key_and_not_on_the_order_of_files() {
    let mut reversed = CODES;
    reversed.reverse();
    let (a, b) = (store(&CODES), store(&reversed));
    let all = |s: &Store, key: &str| -> Vec<String> {
        let m = opaque(s, key);
        (0..s.len() as u32).map(|i| m.code(SecId(i)).to_owned()).collect()
    };
    assert_eq!(all(&a, "k1"), all(&b, "k1"));
    // spec/tools.md b39: some of a handful of keys must give another order.
    assert!((0..8).any(|k| all(&a, &format!("other {k}")) != all(&a, "k1")));
}

#[test]
fn rank_orders_by_visible_code() {
    let store = store(&CODES);
    for style in [MaskStyle::Opaque, MaskStyle::Permutation] {
        let mask = Mask::new(&store, config(style, "k"));
        let order = mask.in_visible_order();
        assert!(order.windows(2).all(|w| mask.code(w[0]) < mask.code(w[1])));
        assert!(order.iter().enumerate().all(|(i, sec)| mask.rank(*sec) == i as u32));
    }
}

#[test]
fn permutation_shows_another_code_of_the_same_board() {
    let store = store(&CODES);
    let mask = Mask::new(&store, config(MaskStyle::Permutation, "k"));
    let mut shown: Vec<&str> = (0..store.len() as u32).map(|i| mask.code(SecId(i))).collect();
    for (i, visible) in shown.iter().enumerate() {
        let real = store.codes()[i];
        assert_eq!(Board::of(code(visible)), real.board());
        // The only BSE stock has nobody to change places with.
        assert!(*visible != real.as_str() || real.board() == Some(Board::Bse));
    }
    shown.sort_unstable();
    let real: Vec<String> = store.codes().iter().map(ToString::to_string).collect();
    assert_eq!(shown, real);
}

#[test]
fn masked_runs_refuse_real_codes_and_names() {
    let store = store(&CODES);
    let mask = opaque(&store, "k");
    // spec/tools.md b07, engine E8.5
    // `000001` and `000002` are numbers of aliases as well: see the next test.
    for real in CODES[2..].iter().chain(&[
        "600519.SH",
        "sh600519",
        "SH.600519",
        "Example 600519",
        "Company",
        "",
        " ",
        "999999",
        "SHM-999999",
        "SHM-",
        "D-3",
    ]) {
        assert_eq!(mask.resolve(real), Err(Unresolved::Unknown), "{real}");
    }
}

#[test]
fn bare_suffixes_are_ambiguous_even_with_one_candidate() {
    let store = store(&CODES);
    let mask = opaque(&store, "k");
    let candidates = |text: &str| -> Vec<String> {
        match mask.resolve(text) {
            Err(Unresolved::Ambiguous(secs)) => secs.iter().map(|s| mask.code(*s).to_owned()).collect(),
            other => panic!("{text}: {other:?}"),
        }
    };
    // engine E8.6, spec/tools.md b08, complaint AR-10
    for three in ["3", "03", "000003"] {
        assert_eq!(candidates(three), ["SHM-000003", "SZM-000003"], "{three}");
    }
    // `000001` and `000002` are also real codes here: no different treatment.
    assert_eq!(candidates("000001"), ["BSE-000001", "GEM-000001", "SHM-000001", "STAR-000001", "SZM-000001"]);
    for one in ["shm-000003", "shm-3", "SHM-3", "SHM3", "SHM 000003", "Shm_03", " SHM-000003"] {
        assert_eq!(candidates(one), ["SHM-000003"], "{one}");
    }
    assert_eq!(mask.resolve("0000003"), Err(Unresolved::Unknown));
}

#[test]
fn unmasked_runs_accept_six_digits_and_explain_other_forms() {
    let store = store(&CODES);
    let mask = Mask::new(&store, MaskConfig::default());
    assert_eq!(mask.resolve("600519"), Ok(sec(&store, "600519")));
    for form in ["600519.SH", "SH600519", "sh.600519", "600519.XSHG", "sse:600519", "600519 sh", " 600519 "] {
        assert_eq!(mask.resolve(form), Err(Unresolved::Ambiguous(vec![sec(&store, "600519")])), "{form}");
    }
    assert_eq!(mask.resolve("1"), Err(Unresolved::Ambiguous(vec![sec(&store, "000001")])));
    // `000001.SH` is the Shanghai index, not the bank in Shenzhen.
    for unknown in ["000001.SH", "600519.SZ", "600520", "SHM-000001", "6005190", "贵州茅台", "Ａ600519", "60051９"] {
        assert_eq!(mask.resolve(unknown), Err(Unresolved::Unknown), "{unknown}");
    }
    assert_eq!(mask.security_name(sec(&store, "600519")), "Example 600519");
}

#[test]
fn debug_output_gives_away_neither_key_nor_mapping() {
    let store = store(&CODES);
    let mask = opaque(&store, "very secret run key");
    let shown = format!("{mask:?} {:?}", mask.config());
    assert!(
        !shown.contains("secret") && !shown.contains("118, 101") && !shown.contains("600519") && !shown.contains("SHM"),
        "{shown}"
    );
    assert!(shown.contains(&mask.key_id()));
    assert_eq!(mask.key_id().len(), 16);
    assert_ne!(mask.key_id(), opaque(&store, "another").key_id());
}

#[test]
fn days_and_moments_are_relative_and_read_back() {
    let store = store(&CODES);
    let today = day("2024-03-08");
    let mask = opaque(&store, "k");
    // engine E8.1
    assert_eq!(mask.day(today, today), "D+0");
    assert_eq!(mask.day(day("2024-02-16"), today), "D-21");
    assert_eq!(mask.moment(moment("2024-03-02 10:30"), today), "D-6 10:30");
    for label in ["D+0", "D-21", "D+7", "d-3"] {
        let read = mask.parse_day(label, today).expect(label);
        assert_eq!(mask.day(read, today).to_lowercase(), label.to_lowercase());
    }
    assert_eq!(mask.parse_moment("D-6 10:30", today), Some(moment("2024-03-02 10:30")));
    for bad in ["2024-03-05", "D3", "D", "D-", "D--3", "D-3 ", "D-999999", "D-３", "X-3", ""] {
        assert_eq!(mask.parse_day(bad, today), None, "{bad}");
    }
    let open = Mask::new(&store, MaskConfig::default());
    assert_eq!(open.day(today, today), "2024-03-08");
    assert_eq!(open.moment(moment("2024-03-02 10:30"), today), "2024-03-02 10:30");
    assert_eq!(open.parse_day("2024-03-05", today), Some(day("2024-03-05")));
    assert_eq!(open.parse_day("D-3", today), None);
}
