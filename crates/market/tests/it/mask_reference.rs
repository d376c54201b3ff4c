//! The maps of the Python implementation: its vectors, and a few of our own making with CPython.

use std::collections::BTreeMap;
use std::path::Path;
use traderharness_market::testing::{SmallMarket, SmallStock, code, day};
use traderharness_market::{Mask, MaskConfig, MaskStyle, SecId, Store, Unresolved};

/// Code, alias, exchanged code: by `random.Random` of CPython 3.11 with the seed 7.
const SEED_7: [(&str, &str, &str); 18] = [
    ("000001", "SZM-000002", "302132"),
    ("000002", "SZM-000001", "000001"),
    ("002594", "SZM-000003", "000002"),
    ("300024", "GEM-000002", "300750"),
    ("300750", "GEM-000003", "301269"),
    ("301269", "GEM-000001", "300024"),
    ("302132", "SZM-000004", "002594"),
    ("430047", "BSE-000003", "920002"),
    ("600000", "SHM-000001", "601318"),
    ("600519", "SHM-000003", "603259"),
    ("601318", "SHM-000002", "605499"),
    ("603259", "SHM-000004", "600000"),
    ("605499", "SHM-000005", "600519"),
    ("688001", "STAR-000002", "689009"),
    ("688981", "STAR-000003", "688001"),
    ("689009", "STAR-000001", "688981"),
    ("830799", "BSE-000002", "430047"),
    ("920002", "BSE-000001", "830799"),
];

fn store<'a>(codes: impl IntoIterator<Item = &'a str>) -> Store {
    codes
        .into_iter()
        .fold(SmallMarket::new("2024-03-04", 5), |market, code| {
            market.stock(SmallStock::new(code).name("Example").closes(&[10.0; 5]))
        })
        .build()
}

fn mask(store: &Store, opaque: bool, seed: i64) -> Mask {
    Mask::new(
        store,
        MaskConfig { entities: true, style: MaskStyle::Reference { opaque, seed, loaded: None }, ..MaskConfig::default() },
    )
}

/// Every code shows as expected, and what it shows as is taken back.
fn check(store: &Store, mask: &Mask, expected: &BTreeMap<&str, &str>) {
    assert_eq!(store.len(), expected.len());
    for (real, visible) in expected {
        let sec = store.find(code(real)).expect("in the universe");
        assert_eq!(mask.code(sec), *visible, "{real}");
        assert_eq!(mask.resolve(visible), Ok(sec), "{real}");
        assert_eq!(mask.security_name(sec), format!("Company {visible}"));
    }
}

#[test]
fn both_styles_are_those_of_cpython() {
    // The order of files has no part in it.
    let store = store(SEED_7.iter().rev().map(|row| row.0));
    check(&store, &mask(&store, true, 7), &SEED_7.iter().map(|row| (row.0, row.1)).collect());
    check(&store, &mask(&store, false, 7), &SEED_7.iter().map(|row| (row.0, row.2)).collect());
}

#[test]
fn every_map_of_the_peer_is_reproduced() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/peer/vectors/entity_maps.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: no ../shared/data/peer/vectors/entity_maps.json beside the workspace");
        return;
    };
    let maps: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(&text).expect("maps");
    assert!(!maps.is_empty());
    for (name, map) in &maps {
        let (style, seed) = name.split_once("_seed").expect("style and seed");
        let opaque = match style {
            "opaque" => true,
            "permutation" => false,
            other => panic!("a style that is not known here: {other}"),
        };
        let store = store(map.keys().map(String::as_str));
        let expected = map.iter().map(|(real, visible)| (real.as_str(), visible.as_str())).collect();
        check(&store, &mask(&store, opaque, seed.parse().expect("seed")), &expected);
    }
}

#[test]
fn seed_and_style_change_the_map_and_the_key_does_not() {
    let store = store(SEED_7.iter().map(|row| row.0));
    let shown = |mask: &Mask| (0..store.len() as u32).map(|i| mask.code(SecId(i)).to_owned()).collect::<Vec<_>>();
    let plain = shown(&mask(&store, true, 7));
    assert_ne!(plain, shown(&mask(&store, true, 8)));
    assert_ne!(plain, shown(&mask(&store, true, -7)));
    let config = MaskConfig { key: b"some key".to_vec(), ..mask(&store, true, 7).config().clone() };
    assert_eq!(plain, shown(&Mask::new(&store, config)));
}

// engine E8.5, E8.6
#[test]
fn real_codes_are_unknown_and_bare_numbers_are_asked_about() {
    let store = store(SEED_7.iter().map(|row| row.0));
    let mask = mask(&store, true, 7);
    assert_eq!(mask.resolve("600519"), Err(Unresolved::Unknown));
    let Err(Unresolved::Ambiguous(found)) = mask.resolve("1") else { panic!("a number of several boards") };
    assert_eq!(found.len(), 5);
    assert_eq!(mask.text("600519", day("2024-03-08")), mask.code(store.find(code("600519")).expect("in the universe")));
}

#[test]
fn a_board_of_one_keeps_its_code() {
    let store = store(["600519", "000001"]);
    let mask = mask(&store, false, 42);
    assert_eq!(mask.resolve("600519"), Ok(store.find(code("600519")).expect("in the universe")));
    assert!(MaskStyle::Reference { opaque: true, seed: 1, loaded: None }.is_opaque() && !MaskStyle::Permutation.is_opaque());
}

// spec/peer.md 0.4: codes with daily rows in the loaded window
#[test]
fn the_universe_is_the_codes_with_rows_among_the_loaded_days() {
    let all: BTreeMap<&str, (&str, &str)> = SEED_7.iter().map(|row| (row.0, (row.1, row.2))).collect();
    // Two more: one whose rows end before the window, one whose rows begin behind it.
    let market = SmallMarket::new("2024-03-04", 10);
    let days = store(["600519"]).calendar().days().to_vec();
    let last = days[4];
    let market = all.keys().fold(market, |market, code| market.stock(SmallStock::new(code).name("Example").closes(&[10.0; 10])));
    let price = [10.0, 10.0, 10.0, 10.0, 1_000.0, 10_000.0];
    let early = SmallStock::new("600001").name("Early").bar(&days[0].to_string(), price);
    let late = SmallStock::new("601999").name("Late").bar(&last.plus(3).to_string(), price);
    let store = market.stock(early).stock(late).build();
    let of = |opaque, loaded| {
        let style = MaskStyle::Reference { opaque, seed: 7, loaded };
        Mask::new(&store, MaskConfig { entities: true, style, ..MaskConfig::default() })
    };
    let window = Some((days[1], last));
    for (opaque, outside) in [(true, ["SHM-000006", "SHM-000007"]), (false, ["600001", "601999"])] {
        let mask = of(opaque, window);
        let expected: BTreeMap<&str, &str> = all
            .iter()
            .map(|(real, (alias, exchanged))| (*real, if opaque { *alias } else { *exchanged }))
            .chain(["600001", "601999"].into_iter().zip(outside))
            .collect();
        check(&store, &mask, &expected);
        // With all codes of the store the map is another one.
        let whole = of(opaque, None);
        assert!(all.keys().any(|real| store.find(code(real)).is_some_and(|sec| whole.code(sec) != mask.code(sec))));
    }
}
