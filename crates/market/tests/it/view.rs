//! Nothing after the clock leaves a view, at any decision point (engine E2; complaints LA-2, LA-3, LA-9, LA-12).

use traderharness_market::store::{FundamentalRow, SegmentRow};
use traderharness_market::testing::{SmallMarket, SmallStock, code, day, fundamental, minute, moment};
use traderharness_market::{
    Bars, Board, Clock, Day, DecisionPoint, Mask, MaskConfig, Minute, Moment, NoChange, Price, PriceSource, SecId, Store,
    StoreError, View,
};

/// No real value is this large; every row after a clock holds it.
const POISON: f64 = 7.7e12;
const FIRST: &str = "2024-03-04";
const TODAY: &str = "2024-03-08";
const A: SecId = SecId(0);

fn segment(at: &str, name: &str) -> SegmentRow {
    SegmentRow {
        code: code("600519"),
        visible_from: Some(moment(at)),
        published: None,
        report_date: None,
        kind: "product".into(),
        name: name.into(),
        revenue: None,
        revenue_pct: None,
        gross_margin: None,
    }
}

/// A week before today and a week after it, whole sessions of 5-minute bars today and the day before, every table filled. Everything
/// that the given point of today may not see is poisoned.
fn poisoned(point: DecisionPoint) -> Store {
    let today = day(TODAY);
    let now = Clock { day: today, point }.now();
    let value = |seen: bool| if seen { 10.0 } else { POISON };
    let closes: Vec<f64> = (0..10).map(|i| value(i < 4)).collect();
    let until = point.visible_until();
    let minutes: Vec<f64> = traderharness_market::testing::bar_ends().map(|end| value(until.is_some_and(|u| end <= u))).collect();
    let mut stock =
        SmallStock::new("600519").name("Example").closes(&closes).minutes("2024-03-07", &[10.0; 48]).minutes(TODAY, &minutes);
    stock = stock.minutes("2024-03-11", &[POISON; 48]);
    for (i, date) in ["2024-03-06", "2024-03-07", "2024-03-08", "2024-03-11"].iter().enumerate() {
        let v = value(i < 2);
        stock = stock.valuation(date, [v; 4], i >= 2);
    }
    let mut market = SmallMarket::new(FIRST, 10);
    let times = [
        "2024-03-07 15:40",
        "2024-03-08 09:29",
        "2024-03-08 09:30",
        "2024-03-08 09:49",
        "2024-03-08 09:50",
        "2024-03-08 09:59",
        "2024-03-08 10:00",
        "2024-03-08 14:49",
        "2024-03-08 14:50",
        "2024-03-08 14:59",
        "2024-03-08 15:00",
        "2024-03-08 15:01",
        "2024-03-11 08:00",
    ];
    for time in times {
        let text = if moment(time) < now { "seen" } else { "POISON" };
        stock = stock
            .announcement(time, text)
            .fundamental(FundamentalRow { eps: Some(value(moment(time) < now)), ..fundamental(time) })
            .segment(segment(time, text));
        market = market.news(time, text, text);
    }
    stock = stock.fundamental(FundamentalRow { visible_from: None, eps: Some(POISON), ..fundamental(FIRST_TIME) });
    stock = stock.ex_event("2024-03-11", 0.0, 0.0, POISON, 0.0, 0.0).ex_event("2024-03-06", 0.0, 0.0, 1.0, 0.0, 0.0);
    market.index(&closes).stock(stock).build()
}

const FIRST_TIME: &str = "2024-03-04 09:00";

fn clean(bars: Bars<'_>, what: &str) {
    for column in [bars.open, bars.high, bars.low, bars.close, bars.volume, bars.amount] {
        assert!(column.iter().all(|v| *v < POISON), "{what}");
    }
    assert!(bars.iter().all(|b| b.close.is_none_or(|c| c < POISON)), "{what}");
}

#[test]
fn no_function_of_a_view_yields_a_value_after_the_clock() {
    for point in DecisionPoint::ALL {
        let store = poisoned(point);
        let mask = Mask::new(&store, MaskConfig::default());
        let clock = Clock { day: day(TODAY), point };
        let view = View::new(&store, clock, &mask);
        clean(view.daily(A), "daily");
        clean(view.minutes_today(A), "minutes today");
        clean(view.minutes_before_today(A), "minutes before");
        clean(view.index().unwrap(), "index");
        assert_eq!(view.daily(A).len(), 4);
        assert_eq!(view.minutes_before_today(A).len(), 48);
        assert_eq!(view.index().unwrap().len(), 4);
        assert!(view.window_bar(A).is_none_or(|b| b.close == Some(10.0)));
        assert_eq!(view.mark(A).map(|m| m.price), Some(Price(100_000)));
        let valuation = view.valuation(A).unwrap();
        assert_eq!(valuation.len(), 2);
        assert!((0..4).filter_map(|i| valuation.get(i)).all(|v| v.pe_ttm == Some(10.0) && v.is_st == Some(false)));
        assert_eq!(view.is_st(A), Some(false));
        assert!(view.fundamentals(A).unwrap().iter().all(|r| r.eps == Some(10.0)));
        assert!(view.segments(A).unwrap().iter().all(|r| r.name == "seen"));
        assert!(view.announcements(A).unwrap().iter().all(|r| r.title == "seen" && r.time < clock.now()));
        assert!(view.news().unwrap().iter().all(|r| r.title == "seen" && r.time < clock.now()));
        // What is visible is not just empty.
        let texts = view.news().unwrap().len();
        assert_eq!(
            texts,
            match point {
                DecisionPoint::PreMarket => 2,
                DecisionPoint::Open1 => 4,
                DecisionPoint::Open2 => 6,
                DecisionPoint::Close1 => 8,
                DecisionPoint::Close2 => 10,
            }
        );
        assert_eq!(view.announcements(A).unwrap().len(), texts);
        assert_eq!(view.fundamentals(A).unwrap().len(), texts);
        assert_eq!(view.segments(A).unwrap().len(), texts);
        assert_eq!(view.past_ex_events(A).count(), 1);
        assert_eq!(view.ex_events_on(A, day("2024-03-11")).count(), 0);
        assert_eq!(view.past_days(), &store.calendar().days()[..4]);
        assert_eq!(view.previous_day(), Some(day("2024-03-07")));
        assert_eq!(
            (view.sessions_ago(1), view.sessions_ago(4), view.sessions_ago(5), view.sessions_ago(0)),
            (Some(day("2024-03-07")), Some(day("2024-03-04")), None, Some(day("2024-03-07")))
        );
        assert_eq!(view.reference_close(A), Ok(Price(100_000)));
        assert!(view.change(A, 1).is_ok_and(|c| c.0.abs() < 1.0));
        assert!(view.session_change_pct(A).is_ok_and(|c| c.abs() < 100.0));
        assert_eq!(view.close_before(A, day("2099-01-01")), Some((day("2024-03-07"), Price(100_000))));
        assert_eq!(
            (
                view.ex_days(A, day("2000-01-03")).days.len(),
                view.ex_dates(A).between(day("2000-01-03"), day("2099-01-01")).count()
            ),
            (1, 1)
        );
        assert!(view.band(A).is_ok());
    }
}

#[test]
fn minutes_end_at_the_limit_of_each_point() {
    // complaint LA-12: bars are known by their end time.
    let store = poisoned(DecisionPoint::Close2);
    let mask = Mask::new(&store, MaskConfig::default());
    for (point, bars, last, window) in [
        (DecisionPoint::PreMarket, 0, None, None),
        (DecisionPoint::Open1, 4, Some("09:50"), Some("09:50")),
        (DecisionPoint::Open2, 6, Some("10:00"), Some("10:00")),
        (DecisionPoint::Close1, 46, Some("14:50"), Some("14:50")),
        (DecisionPoint::Close2, 48, Some("15:00"), Some("15:00")),
    ] {
        let view = View::new(&store, Clock { day: day(TODAY), point }, &mask);
        let today = view.minutes_today(A);
        assert_eq!(today.len(), bars, "{point}");
        assert_eq!(today.last().and_then(|b| b.end), last.map(minute));
        assert_eq!(view.window_bar(A).and_then(|b| b.end), window.map(minute));
        let mark = view.mark(A).unwrap();
        assert_eq!(mark.source, if bars > 0 { PriceSource::VisibleFiveMinuteClose } else { PriceSource::PreviousDailyClose });
        assert_eq!(mark.minute, last.map_or(Minute::at(15, 0), minute));
        assert!(!view.is_suspended_today(A));
    }
}

fn small(stock: SmallStock) -> Store {
    SmallMarket::new(FIRST, 10).stock(stock).stock(SmallStock::new("000001").closes(&[5.0; 10])).build()
}

fn at<T>(store: &Store, date: &str, point: DecisionPoint, run: impl FnOnce(View<'_>) -> T) -> T {
    let mask = Mask::new(store, MaskConfig::default());
    run(View::new(store, Clock { day: day(date), point }, &mask))
}

const B: SecId = SecId(1);

#[test]
fn a_security_halted_since_the_morning_has_a_mark_and_no_fill_bar() {
    let store = small(SmallStock::new("600519").closes(&[10.0; 4]).minutes(TODAY, &[11.0, 11.5]));
    // Bars end at 09:40.
    at(&store, TODAY, DecisionPoint::Open1, |v| assert_eq!(v.window_bar(B).and_then(|b| b.end), Some(minute("09:40"))));
    for point in [DecisionPoint::Open2, DecisionPoint::Close1, DecisionPoint::Close2] {
        at(&store, TODAY, point, |v| {
            assert_eq!(v.window_bar(B), None, "{point}");
            assert_eq!(v.mark(B).map(|m| (m.price, m.minute)), Some((Price(115_000), minute("09:40"))));
            assert!(!v.is_suspended_today(B));
        });
    }
}

#[test]
fn a_suspended_security_keeps_its_last_close() {
    // engine E7.1
    let other = SmallStock::new("000001").closes(&[10.0; 4]).minutes(TODAY, &[10.0; 48]);
    let store = SmallMarket::new(FIRST, 10).stock(SmallStock::new("600519").closes(&[10.0, 10.5])).stock(other).build();
    at(&store, TODAY, DecisionPoint::Close2, |v| {
        assert!(v.is_suspended_today(B) && v.was_suspended_yesterday(B) && v.is_listed(B));
        let mark = v.mark(B).unwrap();
        assert_eq!((mark.price, mark.day, mark.source), (Price(105_000), day("2024-03-05"), PriceSource::PreviousDailyClose));
        assert_eq!(v.change(B, 1), Err(NoChange::Suspended));
    });
    // In pre_market nobody can know yet.
    at(&store, TODAY, DecisionPoint::PreMarket, |v| assert!(!v.is_suspended_today(B)));
}

#[test]
fn bars_without_a_close_are_passed_over_and_never_zero() {
    // complaint NU-1
    let store = small(
        SmallStock::new("600519")
            .closes(&[10.0, f64::NAN])
            .minute_bar(TODAY, "09:35", [11.0, 11.0, 11.0, 11.0, f64::NAN, f64::NAN])
            .minute_bar(TODAY, "09:40", [f64::NAN; 6]),
    );
    at(&store, TODAY, DecisionPoint::Open1, |v| {
        assert_eq!(v.mark(B).map(|m| m.price), Some(Price(110_000)));
        let bar = v.minutes_today(B).get(0).unwrap();
        assert_eq!((bar.close, bar.volume, bar.amount), (Some(11.0), None, None));
        assert_eq!(v.window_bar(B).unwrap().close, None);
        assert_eq!(v.daily(B).last().unwrap().close, None);
    });
    at(&store, TODAY, DecisionPoint::PreMarket, |v| assert_eq!(v.mark(B).map(|m| m.price), Some(Price(100_000))));
}

// A company row is not shown before the listing day it gives; a row without one always is.
#[test]
fn a_listing_that_is_still_to_come_is_not_told() {
    let stock = |code: &str| SmallStock::new(code).name("Example Works").closes(&[10.0; 5]);
    let store = SmallMarket::new("2024-03-04", 5).stock(stock("600000").listed("2024-03-06")).stock(stock("600519")).build();
    let told = |date: &str, point| at(&store, date, point, |v| (v.security(A).is_some(), v.security(B).is_some()));
    assert_eq!(told("2024-03-05", DecisionPoint::Close2), (false, true));
    assert_eq!(told("2024-03-06", DecisionPoint::PreMarket), (true, true));
    assert_eq!(told("2024-03-07", DecisionPoint::PreMarket), (true, true));
}

#[test]
fn a_security_is_listed_from_its_first_visible_bar() {
    let store = small(SmallStock::new("600519").bar(TODAY, [10.0; 6]).minutes(TODAY, &[10.0]));
    let listed = |date: &str, point| at(&store, date, point, |v| (v.is_listed(B), v.securities().count(), v.universe_len()));
    assert_eq!(listed("2024-03-07", DecisionPoint::Close2), (false, 1, 2));
    assert_eq!(listed(TODAY, DecisionPoint::PreMarket), (false, 1, 2));
    assert_eq!(listed(TODAY, DecisionPoint::Open1), (true, 2, 2));
    at(&store, TODAY, DecisionPoint::PreMarket, |v| assert_eq!((v.mark(B), v.daily(B).len()), (None, 0)));
}

#[test]
fn a_day_outside_the_calendar_sees_what_came_before_it() {
    let store = small(SmallStock::new("600519").closes(&[10.0; 10]));
    // A Saturday.
    at(&store, "2024-03-09", DecisionPoint::Close2, |v| {
        assert_eq!(v.daily(B).len(), 5);
        assert_eq!(v.minutes_today(B).len(), 0);
        assert_eq!(v.previous_day(), Some(day(TODAY)));
    });
    for (date, bars) in [("1999-01-01", 0), ("2030-01-01", 10)] {
        at(&store, date, DecisionPoint::Close2, |v| assert_eq!((v.daily(B).len(), v.past_days().len()), (bars, bars)));
    }
    at(&store, FIRST, DecisionPoint::PreMarket, |v| {
        assert_eq!((v.daily(B).len(), v.previous_day(), v.sessions_ago(1), v.mark(B)), (0, None, None, None));
        assert_eq!(v.change(B, 1), Err(NoChange::InsufficientHistory));
    });
}

#[test]
fn missing_tables_are_none_and_empty_ones_are_empty() {
    let stock = SmallStock::new("600519").closes(&[10.0; 10]);
    let bare = SmallMarket::new(FIRST, 10).stock(stock.clone()).bare().build();
    at(&bare, TODAY, DecisionPoint::Close2, |v| {
        assert!(v.news().is_none() && v.announcements(A).is_none() && v.fundamentals(A).is_none() && v.segments(A).is_none());
        assert!(v.valuation(A).is_none() && v.index().is_none() && v.security(A).is_none() && v.is_st(A).is_none());
        assert_eq!(v.past_ex_events(A).count(), 0);
        assert_eq!((v.code(A), v.board(A), v.find(code("600519"))), (code("600519"), Some(Board::ShMain), Some(A)));
    });
    let empty = SmallMarket::new(FIRST, 10).stock(stock).build();
    at(&empty, TODAY, DecisionPoint::Close2, |v| {
        assert_eq!((v.news().unwrap().len(), v.announcements(A).unwrap().len(), v.valuation(A).unwrap().len()), (0, 0, 0));
        assert_eq!(v.valuation(A).unwrap().last(), None);
    });
}

#[test]
fn slices_of_bars_stay_inside_the_run() {
    let store = small(SmallStock::new("600519").closes(&[1.0, 2.0, 3.0, 4.0]));
    at(&store, TODAY, DecisionPoint::PreMarket, |v| {
        let bars = v.daily(B);
        assert_eq!(bars.tail(2).close, [3.0, 4.0]);
        assert_eq!(bars.tail(99).len(), 4);
        assert_eq!(bars.slice(1..3).iter().filter_map(|b| b.close).collect::<Vec<_>>(), [2.0, 3.0]);
        assert_eq!(bars.get(4), None);
        assert_eq!(bars.iter().next_back().and_then(|b| b.close), Some(4.0));
    });
}

#[test]
fn a_store_refuses_parts_that_form_none() {
    let mut stock = SmallStock::new("600519").name("Example").closes(&[1.0, 2.0, 3.0]).minutes(FIRST, &[1.0, 2.0]);
    for time in ["2024-03-04 10:00", "2024-03-05 10:00"] {
        stock = stock.announcement(time, "title").fundamental(fundamental(time)).segment(segment(time, "name"));
        stock = stock.st(&time[..10], false).ex_event(&time[..10], 0.0, 0.0, 1.0, 0.0, 0.0);
    }
    let market = SmallMarket::new(FIRST, 4).index(&[1.0, 2.0]).stock(stock);
    let market = market.news("2024-03-04 10:00", "a", "b").news("2024-03-05 10:00", "a", "b");
    let check = |damage: &dyn Fn(&mut traderharness_market::StoreParts), expected: StoreError| {
        let mut parts = market.parts();
        damage(&mut parts);
        assert_eq!(Store::new(parts).err(), Some(expected));
    };
    check(&|p| p.codes.clear(), StoreError::Empty { what: "security with daily bars" });
    check(&|p| p.calendar = traderharness_market::Calendar::default(), StoreError::Empty { what: "trading day" });
    check(&|p| p.daily.close.truncate(1), StoreError::Shape { table: "daily" });
    check(&|p| p.daily_offsets = vec![0, 2], StoreError::Shape { table: "daily" });
    check(&|p| p.daily.day.swap(0, 1), StoreError::Order { table: "daily", row: 1 });
    check(&|p| p.minute.minute[1] = p.minute.minute[0], StoreError::Order { table: "5min", row: 1 });
    // A row out of order could show the future: bisection would end behind it.
    check(&|p| p.news.as_mut().unwrap().reverse(), StoreError::Order { table: "news", row: 1 });
    check(&|p| p.announcements.as_mut().unwrap().reverse(), StoreError::Order { table: "announcements", row: 1 });
    check(&|p| p.fundamentals.as_mut().unwrap().reverse(), StoreError::Order { table: "fundamentals", row: 1 });
    check(&|p| p.segments.as_mut().unwrap().reverse(), StoreError::Order { table: "segments", row: 1 });
    check(&|p| p.ex_events.as_mut().unwrap().reverse(), StoreError::Order { table: "ex_events", row: 1 });
    check(&|p| p.valuation.as_mut().unwrap().day.reverse(), StoreError::Order { table: "valuation", row: 1 });
    check(&|p| p.index.as_mut().unwrap().day.reverse(), StoreError::Order { table: "index", row: 1 });
    check(&|p| p.index.as_mut().unwrap().close.truncate(1), StoreError::Shape { table: "index" });
    check(&|p| p.codes = vec![code("600519"), code("600519")], StoreError::Order { table: "codes", row: 0 });
}

#[test]
fn moments_before_the_epoch_have_their_day() {
    let late = Moment(-1);
    assert_eq!((late.day(), late.minute()), (day("1969-12-31"), Minute::at(23, 59)));
}

// spec/tools.md b26: Monday morning looks back to Friday's close
#[test]
fn every_point_knows_when_the_one_before_it_was() {
    let store = small(SmallStock::new("600001").closes(&[10.0; 10]));
    let previous = |date: &str, point: DecisionPoint| at(&store, date, point, |v| v.previous_now());
    assert_eq!(previous("2024-03-11", DecisionPoint::PreMarket), Some(moment("2024-03-08 15:00")));
    assert_eq!(previous("2024-03-11", DecisionPoint::Open1), Some(moment("2024-03-11 09:30")));
    assert_eq!(previous("2024-03-11", DecisionPoint::Open2), Some(moment("2024-03-11 09:50")));
    assert_eq!(previous("2024-03-11", DecisionPoint::Close1), Some(moment("2024-03-11 10:00")));
    assert_eq!(previous("2024-03-11", DecisionPoint::Close2), Some(moment("2024-03-11 14:50")));
    assert_eq!(previous("2024-03-04", DecisionPoint::PreMarket), None);
}

// A cache file made by hand can hold any day.
#[test]
fn a_day_no_calendar_has_is_shown_without_a_panic() {
    for far in [Day(i32::MIN), Day(i32::MAX)] {
        assert_eq!(far.to_string(), "1970-01-01");
    }
}
