//! Dated rules (engine E4).

use crate::money::units;
use proptest::prelude::*;
use rust_decimal::Decimal;
use traderharness_market::rules::{
    BandInput, ExDays, ExReference, FeeSchedule, RULES, RuleKind, TICK, band, ex_reference, fee_rates, fees, lot_rule, max_order,
    table,
};
use traderharness_market::store::ExEvent;
use traderharness_market::testing::{SmallMarket, SmallStock, code, day};
use traderharness_market::{
    Band, BandFault, Board, Cash, Clock, Day, DecisionPoint, Mask, MaskConfig, Price, PriceBasis, Rounding, SecId, Shares, Side,
    View,
};

fn limits(board: Board, date: &str, st: bool, sessions: Option<u32>, reference: i64) -> Band {
    band(BandInput { board, day: day(date), st, sessions_since_listing: sessions, reference: Price(reference) })
}

/// `up down` in fen, or the rule that lifted the band.
fn shown(band: Band) -> String {
    match band {
        Band::Limits { up, down, .. } => format!("{up} {down}"),
        Band::None { rule } => rule.to_owned(),
    }
}

fn check_band(board: Board, date: &str, st: bool, sessions: Option<u32>, expected: &str) {
    assert_eq!(shown(limits(board, date, st, sessions, 100_000)), expected, "{board:?} {date} {st} {sessions:?}");
}

#[test]
fn bands_follow_board_date_and_st() {
    check_band(Board::ShMain, "2024-03-14", false, None, "11.00 9.00");
    check_band(Board::SzMain, "2024-03-14", true, None, "10.50 9.50");
    check_band(Board::Star, "2024-03-14", false, None, "12.00 8.00");
    check_band(Board::Star, "2024-03-14", true, None, "12.00 8.00");
    check_band(Board::ChiNext, "2020-08-21", false, None, "11.00 9.00");
    check_band(Board::ChiNext, "2020-08-21", true, None, "10.50 9.50");
    check_band(Board::ChiNext, "2020-08-24", false, None, "12.00 8.00");
    check_band(Board::ChiNext, "2020-08-24", true, None, "12.00 8.00");
    check_band(Board::Bse, "2024-03-14", false, None, "13.00 7.00");
}

#[test]
fn listing_days_follow_the_rule_of_their_date() {
    check_band(Board::Star, "2019-07-22", false, Some(1), "star_first_5_sessions");
    check_band(Board::Star, "2024-03-14", false, Some(5), "star_first_5_sessions");
    check_band(Board::Star, "2024-03-14", false, Some(6), "12.00 8.00");
    check_band(Board::ShMain, "2023-04-10", false, Some(1), "main_first_5_sessions");
    check_band(Board::ShMain, "2023-04-07", false, Some(1), "14.40 6.40");
    check_band(Board::ShMain, "2023-04-07", false, Some(2), "11.00 9.00");
    check_band(Board::ChiNext, "2020-08-24", false, Some(5), "chinext_first_5_sessions");
    check_band(Board::ChiNext, "2020-08-21", false, Some(1), "14.40 6.40");
    check_band(Board::Bse, "2024-03-14", false, Some(1), "bse_first_session");
    check_band(Board::Bse, "2024-03-14", false, Some(2), "13.00 7.00");
}

/// What a reader of the table expects of a rule on the day before it takes effect and on that day.
struct Effect {
    rule: &'static str,
    from: &'static str,
    boards: &'static [Board],
    shown: fn(Board, Day) -> String,
    before: &'static str,
    after: &'static str,
}

#[test]
fn each_dated_rule_changes_on_its_day_and_not_a_day_earlier() {
    // issue 4 point 3
    fn of(board: Board, day: Day, st: bool, session: Option<u32>) -> String {
        shown(band(BandInput { board, day, st, sessions_since_listing: session, reference: Price(100_000) }))
    }
    fn plain(board: Board, day: Day) -> String {
        of(board, day, false, None)
    }
    fn st(board: Board, day: Day) -> String {
        of(board, day, true, None)
    }
    fn first(board: Board, day: Day) -> String {
        of(board, day, false, Some(1))
    }
    fn fifth(board: Board, day: Day) -> String {
        of(board, day, false, Some(5))
    }
    fn largest(board: Board, day: Day) -> String {
        max_order(board, day).to_string()
    }
    fn stamp(board: Board, day: Day) -> String {
        fees(FeeSchedule::Dated, Side::Sell, board, day, Cash(100_000_000)).stamp_duty.to_string()
    }
    fn transfer(board: Board, day: Day) -> String {
        fees(FeeSchedule::Dated, Side::Buy, board, day, Cash(100_000_000)).transfer.to_string()
    }
    const MAIN: &[Board] = &[Board::ShMain, Board::SzMain];
    const SH_SZ: &[Board] = &[Board::ShMain, Board::SzMain, Board::ChiNext, Board::Star];
    const CHINEXT: &[Board] = &[Board::ChiNext];
    const STAR: &[Board] = &[Board::Star];
    const BSE: &[Board] = &[Board::Bse];
    let effect = |rule, from, boards, shown, before, after| Effect { rule, from, boards, shown, before, after };
    let effects = [
        effect("st_5pct", "1998-04-22", MAIN, st, "11.00 9.00", "10.50 9.50"),
        effect("main_first_day_44_36", "2014-01-01", MAIN, first, "11.00 9.00", "14.40 6.40"),
        effect("chinext_first_day_44_36", "2014-01-01", CHINEXT, first, "11.00 9.00", "14.40 6.40"),
        effect("transfer_0.002pct", "2015-08-01", SH_SZ, transfer, "0.00", "20.00"),
        effect("bse_transfer_0.0025pct", "2015-08-01", BSE, transfer, "0.00", "25.00"),
        effect("star_first_5_sessions", "2019-07-22", STAR, fifth, "12.00 8.00", "star_first_5_sessions"),
        effect("chinext_20pct", "2020-08-24", CHINEXT, plain, "11.00 9.00", "12.00 8.00"),
        effect("chinext_20pct", "2020-08-24", CHINEXT, st, "10.50 9.50", "12.00 8.00"),
        effect("chinext_first_5_sessions", "2020-08-24", CHINEXT, first, "14.40 6.40", "chinext_first_5_sessions"),
        effect("chinext_first_5_sessions", "2020-08-24", CHINEXT, fifth, "11.00 9.00", "chinext_first_5_sessions"),
        effect("chinext_max_300000", "2020-08-24", CHINEXT, largest, "1000000", "300000"),
        effect("bse_first_session", "2021-11-15", BSE, first, "13.00 7.00", "bse_first_session"),
        effect("transfer_0.001pct", "2022-04-29", SH_SZ, transfer, "20.00", "10.00"),
        effect("transfer_0.001pct", "2022-04-29", BSE, transfer, "25.00", "10.00"),
        effect("main_first_5_sessions", "2023-04-10", MAIN, first, "14.40 6.40", "main_first_5_sessions"),
        effect("main_first_5_sessions", "2023-04-10", MAIN, fifth, "11.00 9.00", "main_first_5_sessions"),
        effect("stamp_0.05pct", "2023-08-28", &Board::ALL, stamp, "1000.00", "500.00"),
    ];
    for e in &effects {
        for board in e.boards {
            let from = day(e.from);
            assert_eq!((e.shown)(*board, from.plus(-1)), e.before, "{} on {board:?}, the day before", e.rule);
            assert_eq!((e.shown)(*board, from), e.after, "{} on {board:?}, the day", e.rule);
        }
    }
    // Nothing that the table dates was left out. These two hold from the first day anyone asks about, and before it the same value
    // stands in for invented days.
    for row in RULES.iter().filter(|row| !["main_10pct", "star_20pct"].contains(&row.rule)) {
        let checked = |e: &&Effect| e.rule == row.rule && Some(day(e.from)) == row.from;
        assert!(row.from.is_none() || effects.iter().any(|e| checked(&e)), "{} has no test of its day", row.rule);
        let ends = row.until.map(|last| last.plus(1));
        assert!(ends.is_none() || effects.iter().any(|e| Some(day(e.from)) == ends), "{} has no test of its end", row.rule);
    }
}

#[test]
fn limits_round_half_up_to_the_tick() {
    // 10.05 x 1.1 = 11.055, x 0.9 = 9.045
    assert_eq!(shown(limits(Board::ShMain, "2024-03-14", false, None, 100_500)), "11.06 9.05");
    // 0.05 x 1.1 = 0.055
    assert_eq!(shown(limits(Board::ShMain, "2024-03-14", false, None, 500)), "0.06 0.05");
}

fn check_fees(schedule: FeeSchedule, side: Side, board: Board, date: &str, expected: [i64; 3]) {
    // 1,000,000.00 CNY
    let got = fees(schedule, side, board, day(date), Cash(100_000_000));
    assert_eq!([got.commission.0, got.stamp_duty.0, got.transfer.0], expected, "{schedule:?} {side:?} {board:?} {date}");
    assert_eq!(got.total().0, expected.iter().sum::<i64>());
}

#[test]
fn fees_follow_their_dates() {
    use FeeSchedule::{Dated, Reference};
    check_fees(Dated, Side::Buy, Board::ShMain, "2024-03-14", [25_000, 0, 1_000]);
    check_fees(Dated, Side::Sell, Board::ShMain, "2023-08-25", [25_000, 100_000, 1_000]);
    check_fees(Dated, Side::Sell, Board::ShMain, "2023-08-28", [25_000, 50_000, 1_000]);
    check_fees(Dated, Side::Sell, Board::SzMain, "2022-04-28", [25_000, 100_000, 2_000]);
    check_fees(Dated, Side::Sell, Board::Bse, "2022-04-28", [25_000, 100_000, 2_500]);
    check_fees(Dated, Side::Sell, Board::Bse, "2022-04-29", [25_000, 100_000, 1_000]);
    check_fees(Dated, Side::Buy, Board::SzMain, "2015-07-31", [25_000, 0, 0]);
    check_fees(Dated, Side::Buy, Board::SzMain, "2015-08-01", [25_000, 0, 2_000]);
    check_fees(Reference, Side::Sell, Board::Star, "2024-03-14", [25_000, 100_000, 0]);
    check_fees(Reference, Side::Buy, Board::Star, "2024-03-14", [25_000, 0, 0]);
}

#[test]
fn commission_has_a_floor() {
    let got = fees(FeeSchedule::Dated, Side::Buy, Board::ShMain, day("2024-03-14"), Cash(100_000));
    assert_eq!((got.commission, got.transfer), (Cash(500), Cash(1)));
}

#[test]
fn lots_follow_the_board() {
    let accepts = |board: Board, quantity: i64| lot_rule(board).accepts_buy(Shares(quantity));
    for (board, good, bad) in [
        (Board::ShMain, vec![100, 200, 1_000_000], vec![-100, 0, 1, 99, 101, 150]),
        (Board::ChiNext, vec![100, 300], vec![0, 50, 101]),
        (Board::Star, vec![200, 201, 333], vec![0, 100, 199]),
        (Board::Bse, vec![100, 101, 199], vec![0, 99]),
    ] {
        assert!(good.iter().all(|q| accepts(board, *q)), "{board:?}");
        assert!(!bad.iter().any(|q| accepts(board, *q)), "{board:?}");
    }
    assert_eq!(lot_rule(Board::ShMain).round_down(Shares(399)), Shares(300));
    assert_eq!(lot_rule(Board::Star).round_down(Shares(399)), Shares(399));
    assert_eq!(lot_rule(Board::Star).round_down(Shares(199)), Shares(0));
    assert_eq!(max_order(Board::ChiNext, day("2020-08-21")), Shares(1_000_000));
    assert_eq!(max_order(Board::ChiNext, day("2020-08-24")), Shares(300_000));
    assert_eq!(max_order(Board::Star, day("2024-03-14")), Shares(100_000));
}

#[test]
fn every_row_has_a_source_and_rows_of_one_kind_never_overlap() {
    assert_eq!(table().len(), RULES.len());
    for (i, a) in RULES.iter().enumerate() {
        assert!(a.source.len() > 20 && !a.rule.is_empty() && !a.boards.is_empty(), "{a:?}");
        assert!(a.from.zip(a.until).is_none_or(|(from, until)| from <= until), "{a:?}");
        for b in &RULES[i + 1..] {
            let same = a.kind.name() == b.kind.name() && a.boards.iter().any(|x| b.boards.contains(x));
            let apart = a.until < b.from && a.until.is_some() || b.until < a.from && b.until.is_some();
            assert!(!same || apart, "{a:?} and {b:?}");
        }
    }
    for (date, year, month, of_month) in [("2015-08-01", 2015, 8, 1), ("2020-08-24", 2020, 8, 24), ("1996-12-16", 1996, 12, 16)] {
        assert!(RULES.iter().any(|r| r.from == Some(day(date))), "{year}-{month}-{of_month}");
    }
    for board in Board::ALL {
        let lot = lot_rule(board);
        assert!(
            RULES.iter().any(|r| r.kind == RuleKind::BuyLot { min: lot.min.0, step: lot.step.0 } && r.boards.contains(&board))
        );
        assert!(RULES.iter().any(|r| r.kind == RuleKind::Tick { units: TICK.0 } && r.boards.contains(&board)));
    }
}

#[test]
fn the_rule_table_as_a_reader_sees_it() {
    let rows: Vec<String> = RULES
        .iter()
        .map(|r| {
            let boards: Vec<&str> = r.boards.iter().map(|b| b.as_str()).collect();
            let date = |d: Option<Day>| d.map_or("...".to_owned(), |d| d.to_string());
            format!(
                "{} | {} | {} | {} to {} | {}",
                r.rule,
                r.kind.value(),
                boards.join(", "),
                date(r.from),
                date(r.until),
                r.kind.name()
            )
        })
        .collect();
    let shown = rows.join("\n");
    assert!(
        shown.contains("stamp_0.05pct | 0.05 % | SH main, SZ main, ChiNext, STAR, BSE | 2023-08-28 to ... | stamp duty (sell)"),
        "{shown}"
    );
    assert!(shown.contains("bse_transfer_0.0025pct | 0.0025 % | BSE | 2015-08-01 to 2022-04-28"), "{shown}");
    assert!(shown.contains("commission_0.025pct_min_5 | 0.025 %, at least 5.00 CNY"), "{shown}");
}

fn event(bonus: f64, transfer: f64, cash: f64, rights: f64, rights_price: f64) -> ExEvent {
    let at = day("2024-03-14");
    ExEvent { code: code("600000"), announced: None, ex_date: Some(at), bonus, transfer, cash, rights, rights_price }
}

fn check_reference(close: i64, events: &[ExEvent], expected: i64) {
    assert_eq!(ex_reference(Price(close), events), ExReference { price: Price(expected), is_doubtful: false });
}

#[test]
fn ex_references_are_exact() {
    // 10.00 - 0.30 = 9.70
    check_reference(100_000, &[event(0.0, 0.0, 3.0, 0.0, 0.0)], 97_000);
    // (20.00 - 0.10) / 1.5 = 13.2667
    check_reference(200_000, &[event(2.0, 3.0, 1.0, 0.0, f64::NAN)], 132_700);
    // (10.00 + 6.00 x 0.3) / 1.3 = 9.0769
    check_reference(100_000, &[event(0.0, 0.0, 0.0, 3.0, 6.0)], 90_800);
    // 12.615 rounds half-up: 13.00 - 0.385
    check_reference(130_000, &[event(0.0, 0.0, 3.85, 0.0, 0.0)], 126_200);
    // two events of one day are one: (10.00 - 0.2) / 1.1 = 8.909
    check_reference(100_000, &[event(0.0, 0.0, 2.0, 0.0, 0.0), event(1.0, 0.0, 0.0, 0.0, 0.0)], 89_100);
    // two offers of one day, each at its own price: (10.00 + 0.2 x 5.00 + 0.1 x 8.00) / 1.3 = 9.0769
    check_reference(100_000, &[event(0.0, 0.0, 0.0, 2.0, 5.0), event(0.0, 0.0, 0.0, 1.0, 8.0)], 90_800);
    // two ex-dates in one suspension follow each other: 10.00 / 2 = 5.00, then 5.00 - 1.00; added up they would give 4.50
    let later = |e: ExEvent| ExEvent { ex_date: Some(day("2024-03-15")), ..e };
    check_reference(100_000, &[event(0.0, 10.0, 0.0, 0.0, 0.0), later(event(0.0, 0.0, 10.0, 0.0, 0.0))], 40_000);
    // a dividend is not lost for want of a column of rights
    check_reference(100_000, &[event(0.0, 0.0, 3.0, f64::NAN, f64::NAN)], 97_000);
    // a large ratio is one: 10.00 / 201
    check_reference(100_000, &[event(0.0, 2_000.0, 0.0, 0.0, 0.0)], 500);
    check_reference(100_000, &[], 100_000);
}

#[test]
fn an_unusable_event_is_left_out_and_the_others_of_its_day_count() {
    for bad in [
        event(f64::NAN, 0.0, 1.0, 0.0, 0.0),
        event(-1.0, 0.0, 1.0, 0.0, 0.0),
        event(0.0, 0.0, f64::INFINITY, 0.0, 0.0),
        event(2e6, 0.0, 0.0, 0.0, 0.0),
        event(0.0, 0.0, 0.0, 1.0, 1e14),
        event(0.0, 0.0, 0.0, 1.0, f64::NAN),
    ] {
        let good = event(0.0, 0.0, 3.0, 0.0, 0.0);
        let both = [bad, good];
        assert_eq!(ex_reference(Price(100_000), &both), ExReference { price: Price(97_000), is_doubtful: true });
        let days = ExDays::of(&both);
        assert_eq!((days.days.len(), days.faulty), (1, vec![day("2024-03-14")]));
    }
    // Nothing would be left of the price.
    let all = ex_reference(Price(100_000), &[event(0.0, 0.0, 1_000.0, 0.0, 0.0)]);
    assert_eq!((all.price, all.certain()), (Price(100_000), None));
}

fn band_of(market: &SmallMarket, date: &str, point: DecisionPoint) -> Result<Band, BandFault> {
    let store = market.build();
    let mask = Mask::new(&store, MaskConfig::default());
    View::new(&store, Clock { day: day(date), point }, &mask).band(SecId(0))
}

fn week(stock: SmallStock) -> SmallMarket {
    // 2024-03-04 is a Monday.
    SmallMarket::new("2024-03-04", 10).stock(stock)
}

#[test]
fn a_view_gathers_what_a_band_needs() {
    let plain = week(SmallStock::new("600519").closes(&[10.0; 4]));
    assert_eq!(band_of(&plain, "2024-03-08", DecisionPoint::PreMarket).map(shown), Ok("11.00 9.00".to_owned()));
    let st = week(SmallStock::new("600519").closes(&[10.0; 4]).st("2024-03-06", true));
    assert_eq!(band_of(&st, "2024-03-06", DecisionPoint::PreMarket).map(shown), Ok("11.00 9.00".to_owned()));
    assert_eq!(band_of(&st, "2024-03-07", DecisionPoint::PreMarket).map(shown), Ok("10.50 9.50".to_owned()));
    let ex = week(SmallStock::new("600519").closes(&[10.0; 4]).ex_event("2024-03-08", 0.0, 10.0, 0.0, 0.0, 0.0));
    assert_eq!(band_of(&ex, "2024-03-07", DecisionPoint::Close2).map(shown), Ok("11.00 9.00".to_owned()));
    assert_eq!(band_of(&ex, "2024-03-08", DecisionPoint::PreMarket).map(shown), Ok("5.50 4.50".to_owned()));
    assert_eq!(
        band_of(&ex.clone().prices(PriceBasis::ForwardAdjusted), "2024-03-08", DecisionPoint::PreMarket).map(shown),
        Ok("11.00 9.00".to_owned())
    );
    // The ex-date fell into a suspension.
    let resumed = week(SmallStock::new("600519").closes(&[10.0, 10.0]).ex_event("2024-03-07", 0.0, 10.0, 0.0, 0.0, 0.0));
    assert_eq!(band_of(&resumed, "2024-03-11", DecisionPoint::PreMarket).map(shown), Ok("5.50 4.50".to_owned()));
}

#[test]
fn a_missing_reference_is_a_fault_and_never_no_limit() {
    // issue 4 point 3
    let first = week(SmallStock::new("600519").closes(&[10.0; 4]));
    assert_eq!(band_of(&first, "2024-03-04", DecisionPoint::Open1), Err(BandFault::NoPreviousClose));
    let nan = week(SmallStock::new("600519").closes(&[f64::NAN; 2]));
    assert_eq!(band_of(&nan, "2024-03-06", DecisionPoint::Open1), Err(BandFault::NoPreviousClose));
    let bad = week(SmallStock::new("600519").closes(&[10.0; 4]).ex_event("2024-03-08", 0.0, f64::NAN, 0.0, 0.0, 0.0));
    // The account leaves such a row out, and so does the band.
    assert_eq!(band_of(&bad, "2024-03-08", DecisionPoint::Open1).map(shown), Ok("11.00 9.00".to_owned()));
    let old = SmallMarket::new("2023-03-06", 10)
        .stock(SmallStock::new("600519").listed("2023-03-08").closes(&[]).bar("2023-03-08", [10.0; 6]));
    assert_eq!(band_of(&old, "2023-03-08", DecisionPoint::Open1), Err(BandFault::NoIssuePrice));
    assert_eq!(band_of(&old, "2023-03-09", DecisionPoint::Open1).map(shown), Ok("11.00 9.00".to_owned()));
}

#[test]
fn listing_age_comes_from_the_table_or_the_first_bar() {
    let listed = week(SmallStock::new("688001").listed("2024-03-06").bar("2024-03-06", [10.0; 6]).bar("2024-03-12", [10.0; 6]));
    assert_eq!(band_of(&listed, "2024-03-06", DecisionPoint::PreMarket).map(shown), Ok("star_first_5_sessions".to_owned()));
    assert_eq!(band_of(&listed, "2024-03-12", DecisionPoint::PreMarket).map(shown), Ok("star_first_5_sessions".to_owned()));
    assert_eq!(band_of(&listed, "2024-03-13", DecisionPoint::PreMarket).map(shown), Ok("12.00 8.00".to_owned()));
    let guessed = week(SmallStock::new("688001").bar("2024-03-06", [10.0; 6]));
    assert_eq!(band_of(&guessed, "2024-03-07", DecisionPoint::PreMarket).map(shown), Ok("star_first_5_sessions".to_owned()));
    let old = week(SmallStock::new("688001").closes(&[10.0; 4]));
    assert_eq!(band_of(&old, "2024-03-05", DecisionPoint::PreMarket).map(shown), Ok("12.00 8.00".to_owned()));
    let before = week(SmallStock::new("688001").listed("2023-01-03").closes(&[10.0; 4]));
    assert_eq!(band_of(&before, "2024-03-05", DecisionPoint::PreMarket).map(shown), Ok("12.00 8.00".to_owned()));
    // Listed under the rule before the reform: its second and third session have a band.
    let across = SmallMarket::new("2020-08-19", 6)
        .stock(SmallStock::new("300999").listed("2020-08-20").bar("2020-08-20", [10.0; 6]).bar("2020-08-21", [10.0; 6]));
    assert_eq!(band_of(&across, "2020-08-24", DecisionPoint::PreMarket).map(shown), Ok("12.00 8.00".to_owned()));
}

proptest! {
    #[test]
    fn bands_agree_with_the_oracle(cents in 1_i64..1_000_000, board in 0_usize..5, st: bool) {
        let board = Board::ALL[board];
        let Band::Limits { up, down, basis_points, .. } = limits(board, "2024-03-14", st, None, cents * 100) else { panic!("no limits") };
        let reference = Decimal::new(cents, 2);
        let limit = |factor: i64| Price(units(reference * Decimal::new(factor, 4), 2, Rounding::HalfUp) * 100);
        prop_assert_eq!(up, limit(10_000 + i64::from(basis_points)));
        prop_assert_eq!(down, limit(10_000 - i64::from(basis_points)));
        prop_assert!(down <= Price(cents * 100) && Price(cents * 100) <= up);
    }

    #[test]
    fn fees_agree_with_the_oracle(fen in 0_i64..100_000_000_000, board in 0_usize..5, offset in 0_i32..5_000, sell: bool, reference: bool) {
        let (board, date) = (Board::ALL[board], day("2014-01-01").plus(offset));
        let schedule = if reference { FeeSchedule::Reference } else { FeeSchedule::Dated };
        let side = if sell { Side::Sell } else { Side::Buy };
        let got = fees(schedule, side, board, date, Cash(fen));
        let rates = fee_rates(schedule, board, date);
        let part = |rate: i64| units(Decimal::new(fen, 2) * Decimal::new(rate, 6), 2, Rounding::HalfUp);
        prop_assert_eq!(got.commission.0, part(rates.commission).max(500));
        prop_assert_eq!(got.stamp_duty.0, if sell { part(rates.stamp_duty) } else { 0 });
        prop_assert_eq!(got.transfer.0, part(rates.transfer));
    }

    #[test]
    fn ex_references_agree_with_the_oracle(cents in 100_i64..100_000, bonus in 0_i64..100, transfer in 0_i64..100, cash in 0_i64..90, rights in 0_i64..30, rights_cents in 100_i64..2_000) {
        let tenth = |n: i64| n as f64 / 10.0;
        let e = event(tenth(bonus), tenth(transfer), tenth(cash), tenth(rights), rights_cents as f64 / 100.0);
        let per_share = |n: i64| Decimal::new(n, 2);
        let exact = (Decimal::new(cents, 2) - per_share(cash) + Decimal::new(rights_cents, 2) * per_share(rights))
            / (Decimal::ONE + per_share(bonus) + per_share(transfer) + per_share(rights));
        let expected = units(exact, 2, Rounding::HalfUp);
        let got = ex_reference(Price(cents * 100), &[e]).certain();
        prop_assert_eq!(got, (expected > 0).then_some(Price(expected * 100)));
    }
}
