//! A small market with every table: five boards, a suspension, an ST name, an ex-date, texts before, inside and after the windows.

use traderharness_market::store::{FundamentalRow, SegmentRow};
use traderharness_market::testing::{SmallMarket, SmallStock, bar_ends, day, fundamental, moment};
use traderharness_market::{Day, StoreParts};

/// Sessions of the fixture.
pub const SESSIONS: usize = 140;
/// First day.
pub const FIRST: &str = "2024-01-02";
/// Codes, all boards.
pub const CODES: [&str; 12] =
    ["600001", "600002", "601003", "603004", "000005", "002006", "300007", "300008", "688009", "688010", "830011", "000012"];

/// Securities whose first bar is one of the last days of the fixture: on the last but one, and on the last.
pub const LATER: [&str; 2] = ["301001", "603999"];
/// Their names, and the industry that no other security has.
pub const LATER_NAMES: [&str; 2] = ["Harbour Turbines", "Northgate Kilns"];
/// What the announcements of [`RENAMED`] print as its name on the last day alone. A news item of an earlier day holds it.
pub const LATER_NAME: &str = "Meridian Foundry";
/// The security that gets [`LATER_NAME`].
pub const RENAMED: &str = "600002";

/// Trading days of the fixture.
pub fn days() -> Vec<Day> {
    SmallMarket::new(FIRST, SESSIONS).build_days()
}

trait Days {
    fn build_days(self) -> Vec<Day>;
}
impl Days for SmallMarket {
    fn build_days(self) -> Vec<Day> {
        // The calendar of a store with one stock is the fixture's.
        self.stock(SmallStock::new(CODES[0]).closes(&wave(0))).build().calendar().days().to_vec()
    }
}

/// A close for each session: a slow wave with small steps, on the tick, different per stock.
fn wave(stock: usize) -> Vec<f64> {
    let base = 8.0 + 3.0 * stock as f64;
    (0..SESSIONS)
        .map(|i| {
            let swing = ((i * (stock + 3)) % 23) as f64 - 11.0;
            ((base * (1.0 + swing / 400.0 + i as f64 / 3_000.0)) * 100.0).round() / 100.0
        })
        .collect()
}

/// The parts of the fixture market.
pub fn parts() -> StoreParts {
    let calendar = days();
    let last: Vec<String> = calendar[SESSIONS - 3..].iter().map(ToString::to_string).collect();
    let text_day = |back: usize| calendar[SESSIONS - back].to_string();
    let mut market = SmallMarket::new(FIRST, SESSIONS).index(&(0..SESSIONS).map(|i| 3_000.0 + i as f64).collect::<Vec<_>>());
    for (n, code) in CODES.iter().enumerate() {
        let closes = wave(n);
        let industry = ["Metals-Copper-Mining", "Software-Tools-Editors", "Food-Drinks-Tea"][n % 3];
        let mut stock = SmallStock::new(code).name(&format!("Quanfeng Works {n}")).industry(industry).closes(&closes);
        if n == 3 {
            stock = stock.without(&last[1]);
        }
        for (k, date) in last.iter().enumerate() {
            if n == 3 && k == 1 {
                continue;
            }
            let open = closes[SESSIONS - 4 + k];
            let close = closes[SESSIONS - 3 + k];
            let steps = 47.0;
            let path: Vec<f64> =
                (0..bar_ends().count()).map(|i| ((open + (close - open) * i as f64 / steps) * 100.0).round() / 100.0).collect();
            stock = stock.minutes(date, &path);
        }
        for session in [SESSIONS - 6, SESSIONS - 5, SESSIONS - 4, SESSIONS - 3, SESSIONS - 2, SESSIONS - 1] {
            let date = calendar[session].to_string();
            stock = stock.valuation(&date, [15.0 + n as f64, 1.5, 2.5, 0.8 + n as f64 / 10.0], n == 4);
        }
        if n == 1 {
            stock = stock.ex_event(&text_day(2), 3.0, 0.0, 2.0, 0.0, 0.0);
        }
        stock = stock
            .announcement(&format!("{} 17:30", text_day(6)), "Notice of the annual meeting")
            .announcement(&format!("{} 09:40", text_day(2)), "Notice on order intake")
            .announcement(&format!("{} 14:55", text_day(2)), "Notice on a buyback")
            .announcement(&format!("{} 20:00", text_day(1)), "Notice after the close")
            .fundamental(report(&format!("{} 15:00", text_day(40)), "2024-03-31"))
            .fundamental(report(&format!("{} 15:00", text_day(2)), "2024-06-30"))
            .segment(segment(&format!("{} 15:00", text_day(40)), "Cathodes"))
            .segment(segment(&format!("{} 15:00", text_day(2)), "Wire"));
        market = market.stock(stock);
    }
    for (k, date) in last.iter().enumerate() {
        for (time, title) in [
            ("08:10", "Overnight summary"),
            ("09:45", "Copper inventories fall"),
            ("13:20", "Tea harvest report"),
            ("14:58", "Late notice"),
        ] {
            market = market.news(&format!("{date} {time}"), &format!("{title} {k}"), &format!("{title}: details of item {k}."));
        }
    }
    for (n, code) in LATER.iter().enumerate() {
        let first = SESSIONS - 2 + n;
        let mut stock =
            SmallStock::new(code).name(LATER_NAMES[n]).industry("Harbours-Docks").listed(&calendar[first].to_string());
        for (k, date) in calendar[first..].iter().enumerate() {
            let date = date.to_string();
            let price = 20.0 + k as f64;
            stock = stock.bar(&date, [price, price, price, price, 500_000.0, 500_000.0 * price]).minutes(&date, &[price; 48]);
            stock = stock.valuation(&date, [30.0, 3.0, 4.0, 5.0], false);
        }
        // Texts and reports come before the first bar.
        stock = stock
            .announcement(&format!("{} 18:00", text_day(6)), "Prospectus")
            .fundamental(report(&format!("{} 15:00", text_day(40)), "2024-03-31"))
            .segment(segment(&format!("{} 15:00", text_day(40)), "Kilns"))
            .ex_event(&text_day(1), 1.0, 0.0, 1.0, 0.0, 0.0);
        market = market.stock(stock);
        let title = format!("{} ({code}) sets its price", LATER_NAMES[n]);
        market = market.news(&format!("{} 19:0{n}", text_day(3)), &title, "Books are closed.");
    }
    market = market.news(&format!("{} 19:10", text_day(3)), &format!("{LATER_NAME} visits a works"), "A visit.");
    market = market.news(&format!("{} 19:20", text_day(3)), "Quanfeng Works 1 (600002) hires", "A works hires.");
    let mut parts = market.parts();
    let last_day = calendar[SESSIONS - 1];
    let renamed = |code: traderharness_market::Code| code.as_str() == RENAMED;
    for row in parts.announcements.iter_mut().flatten().filter(|r| renamed(r.code) && r.time.day() == last_day) {
        LATER_NAME.clone_into(&mut row.name);
    }
    for event in parts.ex_events.iter_mut().flatten() {
        event.announced = event.ex_date.map(|day| day.plus(-20));
    }
    parts
}

fn report(visible_from: &str, period: &str) -> FundamentalRow {
    FundamentalRow {
        published: Some(moment(visible_from).day()),
        period: Some(day(period)),
        roe: Some(0.052),
        net_profit_margin: Some(0.11),
        gross_margin: Some(0.31),
        net_profit: Some(1.25e8),
        eps_ttm: Some(0.45),
        revenue: Some(1.1e9),
        yoy_net_profit: Some(0.2),
        yoy_eps: Some(0.18),
        ..fundamental(visible_from)
    }
}

fn segment(visible_from: &str, name: &str) -> SegmentRow {
    SegmentRow {
        code: traderharness_market::testing::code("600001"),
        visible_from: Some(moment(visible_from)),
        published: Some(moment(visible_from).day()),
        report_date: Some(day("2024-03-31")),
        kind: "by product".into(),
        name: name.into(),
        revenue: Some(6.0e8),
        revenue_pct: Some(0.55),
        gross_margin: Some(0.3),
    }
}
