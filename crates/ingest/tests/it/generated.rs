//! A generated market obeys the rules. They are checked here by other code than the generator's: the dated rule table of the market
//! crate, decimals, and the loader's report.

use crate::sheet::Folder;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use traderharness_ingest::{
    DatasetReport, FaultKind, GenerateConfig, IngestError, LoadOptions, Severity, generate, generate_in_memory, load_parts, quiet,
};
use traderharness_market::rules::{BandInput, band};
use traderharness_market::store::ExEvent;
use traderharness_market::{Band, Board, Code, Day, Price, Rounding, StoreParts};

struct Made {
    parts: StoreParts,
    report: DatasetReport,
}

/// One market for all checks: large enough to hold every situation.
fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = Folder::new();
        let config = GenerateConfig { stocks: 240, days: 80, minute_days: 2, seed: 11, ..GenerateConfig::default() };
        generate(&config, &folder.path("data"), &quiet).unwrap();
        let (parts, report) = load_parts(&folder.path("data"), &LoadOptions::default(), &quiet).unwrap();
        Made { parts, report }
    })
}

fn price(value: f64) -> Price {
    Price::from_f64_tick(value, Rounding::HalfEven).unwrap()
}

/// Reference price of an ex-date in exact decimals.
fn reference(previous: f64, events: &[&ExEvent]) -> Price {
    use rust_decimal::prelude::*;
    let number = |v: f64| Decimal::from_str(&v.to_string()).unwrap();
    let mut value = number(previous);
    for e in events {
        let ten = Decimal::TEN;
        let worth = value - number(e.cash) / ten + number(e.rights) / ten * number(e.rights_price);
        let shares = Decimal::ONE + (number(e.bonus) + number(e.transfer) + number(e.rights)) / ten;
        value = (worth / shares).round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
    }
    Price((value * Decimal::from(10_000)).to_i64().unwrap())
}

#[test]
fn the_report_finds_nothing_but_what_was_put_in() {
    let report = &made().report;
    assert!(report.faults.iter().all(|f| f.severity == Severity::Note), "{report}");
    let kinds: Vec<FaultKind> = report.faults.iter().map(|f| f.kind).collect();
    assert_eq!(kinds, [FaultKind::PartialMinuteDay, FaultKind::NoExDate], "{report}");
    assert_eq!(report.missing_tables().count(), 0);
    assert!(report.synthetic && report.tables.iter().all(|t| t.kept == t.rows && t.kept > 0), "{report}");
}

#[test]
fn prices_keep_to_tick_band_and_ex_rights() {
    let Made { parts, .. } = made();
    let (mut ups, mut downs, mut sealed, mut ex_days, mut free, mut st_days) = (0, 0, 0, 0, 0, 0);
    let valuation = parts.valuation.as_ref().unwrap();
    let listed: BTreeMap<Code, Day> =
        parts.securities.iter().flatten().filter_map(|s| s.listed.map(|day| (s.code, day))).collect();
    for (i, code) in parts.codes.iter().enumerate() {
        let rows = parts.daily_offsets[i] as usize..parts.daily_offsets[i + 1] as usize;
        let first_day = parts.daily.day[rows.start];
        let new = listed[code] == first_day && first_day > parts.calendar.days()[0];
        let mut previous: Option<f64> = None;
        for row in rows.clone() {
            let day = parts.daily.day[row];
            let d = &parts.daily;
            let [open, high, low, close] = [d.open[row], d.high[row], d.low[row], d.close[row]].map(price);
            assert_eq!(
                [open, high, low, close].map(Price::to_f64),
                [d.open[row], d.high[row], d.low[row], d.close[row]],
                "off tick"
            );
            assert!(low <= open.min(close) && high >= open.max(close) && low.0 > 0, "{code} {day}");
            assert!(d.volume[row] >= 100.0 && d.volume[row] % 100.0 == 0.0, "{code} {day}");
            let st = valuation.is_st[row] == 1;
            st_days += usize::from(st);
            if let Some(previous) = previous {
                let events: Vec<&ExEvent> =
                    parts.ex_events.iter().flatten().filter(|e| e.code == *code && e.ex_date == Some(day)).collect();
                ex_days += events.len();
                let sessions = new.then(|| {
                    let days = parts.calendar.days();
                    (parts.calendar.index_of(day).unwrap() - days.partition_point(|d| *d < first_day)) as u32 + 1
                });
                let board = code.board().unwrap();
                let input =
                    BandInput { board, day, st, sessions_since_listing: sessions, reference: reference(previous, &events) };
                match band(input) {
                    Band::Limits { up, down, .. } => {
                        assert!(high <= up && low >= down, "{code} {day}: {low}..{high} outside {down}..{up}, before {previous}");
                        ups += usize::from(close == up);
                        downs += usize::from(close == down);
                        sealed += usize::from(high == low && (close == up || close == down));
                    }
                    Band::None { .. } => free += 1,
                }
            }
            previous = Some(d.close[row]);
        }
    }
    // Every situation is there.
    let found = [ups, downs, sealed, ex_days, free, st_days];
    assert!(found.iter().all(|n| *n >= 2), "{found:?}");
    assert!(Board::ALL.iter().all(|b| parts.codes.iter().any(|c| c.board() == Some(*b))));
}

#[test]
fn an_ex_date_is_a_traded_day_with_a_matching_announcement() {
    let Made { parts, .. } = made();
    let mut seen = 0;
    for event in parts.ex_events.iter().flatten() {
        let i = parts.codes.binary_search(&event.code).unwrap();
        let rows = parts.daily_offsets[i] as usize..parts.daily_offsets[i + 1] as usize;
        let announced = event.announced.unwrap();
        if let Some(ex_date) = event.ex_date {
            assert!(parts.daily.day[rows].binary_search(&ex_date).is_ok() && announced < ex_date, "{event:?}");
            let told = parts
                .announcements
                .iter()
                .flatten()
                .any(|a| a.code == event.code && a.kind == "权益分派" && a.time.day() < ex_date);
            assert!(told, "{event:?}");
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn suspensions_and_listings_leave_days_without_bars() {
    let Made { parts, .. } = made();
    let days = parts.calendar.days();
    let (mut gaps, mut late) = (0, 0);
    for w in parts.daily_offsets.windows(2) {
        let rows = &parts.daily.day[w[0] as usize..w[1] as usize];
        let first = days.binary_search(&rows[0]).unwrap();
        late += usize::from(first > 0);
        gaps += usize::from(rows.len() < days.len() - first);
    }
    assert!(gaps >= 2 && late >= 2, "{gaps} {late}");
}

#[test]
fn five_minute_bars_aggregate_exactly_to_the_daily_bar() {
    let Made { parts, .. } = made();
    let (m, d) = (&parts.minute, &parts.daily);
    let (mut days, mut partial, mut empty) = (0, 0, 0);
    for i in 0..parts.codes.len() {
        let rows = parts.daily_offsets[i] as usize..parts.daily_offsets[i + 1] as usize;
        let (mut at, end) = (parts.minute_offsets[i] as usize, parts.minute_offsets[i + 1] as usize);
        while at < end {
            let day = m.day[at];
            let stop = (at..end).find(|r| m.day[*r] != day).unwrap_or(end);
            let row = rows.start + d.day[rows.clone()].binary_search(&day).unwrap();
            let fold = |column: &[f64], of: fn(f64, f64) -> f64| column[at..stop].iter().copied().reduce(of).unwrap();
            let place = (parts.codes[i], day);
            assert_eq!(m.open[at], d.open[row], "open {place:?}");
            assert_eq!(m.close[stop - 1], d.close[row], "close {place:?}");
            assert_eq!(fold(&m.high, f64::max), d.high[row], "high {place:?}");
            assert_eq!(fold(&m.low, f64::min), d.low[row], "low {place:?}");
            assert_eq!(fold(&m.volume, |a, b| a + b), d.volume[row], "volume {place:?}");
            assert_eq!(fold(&m.amount, |a, b| a + b), d.amount[row], "amount {place:?}");
            for bar in at..stop {
                assert!(m.low[bar] <= m.open[bar].min(m.close[bar]) && m.high[bar] >= m.open[bar].max(m.close[bar]), "{place:?}");
                let (least, most) = (m.low[bar] * m.volume[bar], m.high[bar] * m.volume[bar]);
                assert!(m.amount[bar] >= least - 1.01 && m.amount[bar] <= most + 0.01, "{place:?} {}", m.minute[bar]);
                if m.volume[bar] == 0.0 {
                    empty += 1;
                    assert_eq!(m.high[bar], m.low[bar], "a bar without trades has no range");
                }
            }
            days += 1;
            partial += usize::from(stop - at < 48);
            at = stop;
        }
    }
    assert!(days > 400 && partial > 0 && empty > 100, "{days} {partial} {empty}");
}

#[test]
fn names_are_invented_and_unique_and_texts_say_so() {
    let Made { parts, .. } = made();
    let mut names: Vec<&str> = parts.securities.iter().flatten().map(|s| s.name.as_str()).collect();
    assert!(names.iter().all(|n| n.starts_with('虚')), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 240);
    assert!(parts.news.iter().flatten().all(|n| n.title.starts_with("【合成】")));
    assert!(parts.announcements.iter().flatten().any(|a| a.date_only));
    // Nothing is told of a company before it lists.
    for security in parts.securities.iter().flatten() {
        let listed = security.listed.unwrap();
        let early = parts.announcements.iter().flatten().find(|a| a.code == security.code && a.time.day() < listed);
        assert!(early.is_none(), "{early:?}");
    }
}

#[test]
fn segments_sum_to_the_revenue_of_their_report() {
    let Made { parts, .. } = made();
    let mut sums: BTreeMap<(Code, Day, &str), f64> = BTreeMap::new();
    for s in parts.segments.iter().flatten() {
        *sums.entry((s.code, s.report_date.unwrap(), s.kind.as_str())).or_default() += s.revenue.unwrap();
    }
    assert!(sums.len() > 500);
    for ((code, period, kind), sum) in sums {
        let report = parts.fundamentals.iter().flatten().find(|r| r.code == code && r.period == Some(period)).unwrap();
        assert!((sum - report.revenue.unwrap()).abs() < 0.02, "{code} {period} {kind}");
    }
}

fn digest(config: &GenerateConfig) -> String {
    generate_in_memory(config).unwrap().report.digest
}

#[test]
fn a_seed_always_gives_the_same_market_and_another_seed_another() {
    let config = GenerateConfig { stocks: 20, days: 15, minute_days: 2, ..GenerateConfig::default() };
    // The content is frozen: a change of the generator raises GENERATOR_VERSION and this line.
    assert_eq!(digest(&config), "7d449cb9ab16fb656e5def01e42cd563a4bfd0cf88dce8f5364d0e5deeddcc15");
    assert_ne!(digest(&config), digest(&GenerateConfig { seed: 8, ..config.clone() }));
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    assert_eq!(pool(1).install(|| digest(&config)), pool(4).install(|| digest(&config)));
}

#[test]
fn settings_that_cannot_be_are_refused_and_nothing_is_written() {
    let folder = Folder::new();
    let base = GenerateConfig { stocks: 2, days: 5, minute_days: 1, ..GenerateConfig::default() };
    let refused = |config: &GenerateConfig| match generate(config, &folder.path("out"), &quiet) {
        Err(IngestError::Setting { setting, .. }) => setting,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&GenerateConfig { stocks: 0, ..base.clone() }), "stocks");
    assert_eq!(refused(&GenerateConfig { stocks: 6_401, ..base.clone() }), "stocks");
    assert_eq!(refused(&GenerateConfig { days: 4, ..base.clone() }), "days");
    assert_eq!(refused(&GenerateConfig { minute_days: 6, ..base.clone() }), "minute_days");
    assert_eq!(refused(&GenerateConfig { end: Day(1), ..base.clone() }), "end");
    assert!(!folder.path("out").exists());
    generate(&base, &folder.path("out"), &quiet).unwrap();
    assert_eq!(refused(&base), "out");
    // The smallest markets work, with and without 5-minute bars.
    generate(&GenerateConfig { stocks: 1, minute_days: 0, ..base }, &folder.path("tiny"), &quiet).unwrap();
    let (_, report) = load_parts(&folder.path("tiny"), &LoadOptions::default(), &quiet).unwrap();
    assert!(!report.table("5min_clean").unwrap().present);
}
