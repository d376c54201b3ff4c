//! Small hand-made markets for tests of every crate. Must never be reached from a run: a fixture that is wrong stops with a panic.
//!
//! No cargo feature hides it. The fixtures of the workspace-level tests are a library that needs it, so a build of the whole workspace,
//! with its one set of features, would switch the feature on for every crate. What keeps it out of a run is that no product code
//! names it.
//!
//! ```
//! use traderharness_market::testing::{SmallMarket, SmallStock};
//! let store = SmallMarket::new("2024-03-04", 5) // five weekdays from a Monday
//!     .stock(SmallStock::new("600519").name("Example Spirits").closes(&[10.0, 10.5, 11.0, 11.2, 11.1]).minutes("2024-03-08", &[11.2, 11.3]))
//!     .build();
//! assert_eq!(store.len(), 1);
//! ```
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a wrong fixture must stop its test at once")]

use crate::store::{
    Announcement, BarColumns, DatasetMeta, ExEvent, FundamentalRow, NewsItem, Security, SegmentRow, ValuationColumns,
};
use crate::{Calendar, Code, Day, Minute, Moment, PriceBasis, Store, StoreParts};

/// One row of a bar table: open, high, low, close, volume, amount.
type Row = [f64; 6];

/// A stock of a [`SmallMarket`].
#[derive(Debug, Clone)]
pub struct SmallStock {
    code: Code,
    name: Option<String>,
    aliases: Vec<String>,
    industry: String,
    listed: Option<Day>,
    outside: bool,
    closes: Vec<f64>,
    daily: Vec<(Day, Row)>,
    without: Vec<Day>,
    minutes: Vec<(Day, Minute, Row)>,
    valuation: Vec<(Day, [f64; 4], u8)>,
    ex_events: Vec<ExEvent>,
    announcements: Vec<Announcement>,
    fundamentals: Vec<FundamentalRow>,
    segments: Vec<SegmentRow>,
}

/// A day of a fixture, `YYYY-MM-DD`.
pub fn day(text: &str) -> Day {
    Day::parse(text).expect("fixture day")
}

/// A moment of a fixture, `YYYY-MM-DD HH:MM`.
pub fn moment(text: &str) -> Moment {
    let (date, time) = text.split_once(' ').expect("fixture moment");
    day(date).at(minute(time))
}

/// A minute of a fixture, `HH:MM`.
pub fn minute(text: &str) -> Minute {
    let (h, m) = text.split_once(':').expect("fixture minute");
    Minute::at(h.parse().expect("hour"), m.parse().expect("minute"))
}

/// A code of a fixture.
pub fn code(text: &str) -> Code {
    Code::parse(text).expect("fixture code")
}

/// The 48 five-minute bar ends of a whole session: 09:35 to 11:30, 13:05 to 15:00.
pub fn bar_ends() -> impl Iterator<Item = Minute> {
    (1..=24).map(|i| Minute(570 + 5 * i)).chain((1..=24).map(|i| Minute(780 + 5 * i)))
}

fn row_from(previous: f64, close: f64, volume: f64) -> Row {
    let open = if previous.is_finite() { previous } else { close };
    [open, open.max(close), open.min(close), close, volume, volume * close]
}

impl SmallStock {
    /// A stock without rows; it enters the universe when it gets daily bars or minutes.
    pub fn new(code_text: &str) -> Self {
        Self {
            code: code(code_text),
            name: None,
            aliases: vec![],
            industry: String::new(),
            listed: None,
            outside: false,
            closes: vec![],
            daily: vec![],
            without: vec![],
            minutes: vec![],
            valuation: vec![],
            ex_events: vec![],
            announcements: vec![],
            fundamentals: vec![],
            segments: vec![],
        }
    }

    /// Name in the securities table.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Another name of the company.
    #[must_use]
    pub fn alias(mut self, alias: &str) -> Self {
        self.aliases.push(alias.to_owned());
        self
    }

    /// Industry label, levels joined by `-`.
    #[must_use]
    pub fn industry(mut self, label: &str) -> Self {
        label.clone_into(&mut self.industry);
        self
    }

    /// First trading day in the securities table.
    #[must_use]
    pub fn listed(mut self, date: &str) -> Self {
        self.listed = Some(day(date));
        self
    }

    /// Known to the dataset (name, texts) but outside the universe: its bars are left out.
    #[must_use]
    pub fn outside(mut self) -> Self {
        self.outside = true;
        self
    }

    /// Daily bars from closes, one per calendar day from the first: open = previous close, 1,000,000 shares. A NaN close makes a
    /// bar with a missing close; use [`Self::without`] for a suspension.
    #[must_use]
    pub fn closes(mut self, closes: &[f64]) -> Self {
        self.closes = closes.to_vec();
        self
    }

    /// One daily bar `[open, high, low, close, volume, amount]`; replaces the one of that day.
    #[must_use]
    pub fn bar(mut self, date: &str, row: [f64; 6]) -> Self {
        self.daily.push((day(date), row));
        self
    }

    /// No daily bar on that day: suspended.
    #[must_use]
    pub fn without(mut self, date: &str) -> Self {
        self.without.push(day(date));
        self
    }

    /// 5-minute bars of a day from closes, from 09:35 on, 10,000 shares each; at most 48.
    #[must_use]
    pub fn minutes(mut self, date: &str, closes: &[f64]) -> Self {
        let mut previous = f64::NAN;
        for (end, close) in bar_ends().zip(closes) {
            self.minutes.push((day(date), end, row_from(previous, *close, 10_000.0)));
            previous = *close;
        }
        self
    }

    /// One 5-minute bar by its END time, `[open, high, low, close, volume, amount]`.
    #[must_use]
    pub fn minute_bar(mut self, date: &str, end: &str, row: [f64; 6]) -> Self {
        self.minutes.push((day(date), minute(end), row));
        self
    }

    /// Valuation row: PE, PB, PS, turnover in percent, ST flag.
    #[must_use]
    pub fn valuation(mut self, date: &str, values: [f64; 4], st: bool) -> Self {
        self.valuation.push((day(date), values, u8::from(st)));
        self
    }

    /// A valuation row that only says whether the security was ST on that day.
    #[must_use]
    pub fn st(self, date: &str, st: bool) -> Self {
        self.valuation(date, [f64::NAN; 4], st)
    }

    /// An ex-event with that ex-date, per 10 shares: bonus, transfer, cash before tax, rights, and the rights price.
    #[must_use]
    pub fn ex_event(mut self, ex_date: &str, bonus: f64, transfer: f64, cash: f64, rights: f64, rights_price: f64) -> Self {
        let ex_date = Some(day(ex_date));
        self.ex_events.push(ExEvent { code: self.code, announced: None, ex_date, bonus, transfer, cash, rights, rights_price });
        self
    }

    /// An announcement at `YYYY-MM-DD HH:MM`.
    #[must_use]
    pub fn announcement(mut self, time: &str, title: &str) -> Self {
        self.announcements.push(Announcement {
            code: self.code,
            time: moment(time),
            date_only: false,
            title: title.to_owned(),
            kind: "other".to_owned(),
            name: self.name.clone().unwrap_or_default(),
        });
        self
    }

    /// A report row; its code is replaced by this stock's.
    #[must_use]
    pub fn fundamental(mut self, row: FundamentalRow) -> Self {
        self.fundamentals.push(FundamentalRow { code: self.code, ..row });
        self
    }

    /// A segment row; its code is replaced by this stock's.
    #[must_use]
    pub fn segment(mut self, row: SegmentRow) -> Self {
        self.segments.push(SegmentRow { code: self.code, ..row });
        self
    }

    fn daily_rows(&self, days: &[Day]) -> Vec<(Day, Row)> {
        assert!(self.closes.len() <= days.len(), "{}: more closes than calendar days", self.code);
        let mut previous = f64::NAN;
        let mut rows: Vec<(Day, Row)> = vec![];
        for (date, close) in days.iter().zip(&self.closes) {
            if !self.without.contains(date) {
                rows.push((*date, row_from(previous, *close, 1_000_000.0)));
                previous = *close;
            }
        }
        for (date, row) in &self.daily {
            rows.retain(|(d, _)| d != date);
            rows.push((*date, *row));
        }
        rows.sort_by_key(|(d, _)| *d);
        rows
    }
}

/// An empty report row to fill with struct update syntax; its code is a placeholder.
pub fn fundamental(visible_from: &str) -> FundamentalRow {
    let at = moment(visible_from);
    FundamentalRow {
        code: code("600000"),
        visible_from: Some(at),
        published: Some(at.day()),
        period: None,
        roe: None,
        net_profit_margin: None,
        gross_margin: None,
        net_profit: None,
        eps: None,
        eps_ttm: None,
        revenue: None,
        bvps: None,
        yoy_net_profit: None,
        yoy_eps: None,
        yoy_equity: None,
        yoy_asset: None,
        yoy_pni: None,
    }
}

/// Builder of a small store.
#[derive(Debug, Clone)]
pub struct SmallMarket {
    days: Vec<Day>,
    stocks: Vec<SmallStock>,
    index: Option<Vec<f64>>,
    news: Vec<NewsItem>,
    meta: DatasetMeta,
    bare: bool,
}

impl SmallMarket {
    /// A market with a calendar of `sessions` weekdays from `first`.
    pub fn new(first: &str, sessions: usize) -> Self {
        let first = day(first);
        Self::of_days((0..).map(|i| first.plus(i)).filter(|day| !day.is_weekend()).take(sessions).collect())
    }

    /// The market of tests of sessions: five stocks of all boards that move in small steps, with 5-minute bars on the last three days, and
    /// a benchmark.
    pub fn of_sessions(first: &str, sessions: usize) -> Self {
        let closes =
            |base: f64| -> Vec<f64> { (0..sessions).map(|i| ((base + (i % 5) as f64 * 0.05) * 100.0).round() / 100.0).collect() };
        let market = Self::new(first, sessions).index(&closes(3_000.0));
        let tradable: Vec<String> = market.days[sessions - 3..].iter().map(ToString::to_string).collect();
        let stocks = ["600001", "600002", "000360", "300360", "688001"].iter().enumerate().map(|(n, code)| {
            let base = 10.0 + n as f64;
            let stock = SmallStock::new(code).name(&format!("Harbour Tools {n}")).industry("Tools-Hand").closes(&closes(base));
            tradable.iter().fold(stock, |stock, day| stock.minutes(day, &[base + 0.1; 48]))
        });
        stocks.fold(market, Self::stock)
    }

    /// Changes a stock that was added.
    ///
    /// # Panics
    /// Without such a stock.
    #[must_use]
    pub fn change(mut self, code_text: &str, with: impl FnOnce(SmallStock) -> SmallStock) -> Self {
        let at = self.stocks.iter().position(|stock| stock.code == code(code_text)).expect("a stock of the fixture");
        self.stocks[at] = with(self.stocks[at].clone());
        self
    }

    /// A market with these trading days.
    pub fn of_days(days: Vec<Day>) -> Self {
        let meta = DatasetMeta { name: "test/small".into(), synthetic: true, prices: PriceBasis::Raw, digest: "0".repeat(64) };
        Self { days, stocks: vec![], index: None, news: vec![], meta, bare: false }
    }

    /// Adds a stock.
    #[must_use]
    pub fn stock(mut self, stock: SmallStock) -> Self {
        self.stocks.push(stock);
        self
    }

    /// How prices relate to what was traded; [`PriceBasis::Raw`] unless said.
    #[must_use]
    pub fn prices(mut self, basis: PriceBasis) -> Self {
        self.meta.prices = basis;
        self
    }

    /// Benchmark closes, one per calendar day from the first.
    #[must_use]
    pub fn index(mut self, closes: &[f64]) -> Self {
        self.index = Some(closes.to_vec());
        self
    }

    /// A news item at `YYYY-MM-DD HH:MM`.
    #[must_use]
    pub fn news(mut self, time: &str, title: &str, content: &str) -> Self {
        self.news.push(NewsItem {
            id: self.news.len() as i64 + 1,
            time: moment(time),
            title: title.to_owned(),
            content: content.to_owned(),
            level: "B".to_owned(),
            tags: String::new(),
            stock_list: String::new(),
        });
        self
    }

    /// Tables that got no row are missing (`None`) instead of empty.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    /// The parts, for a test that damages them before [`Store::new`].
    pub fn parts(&self) -> StoreParts {
        let calendar = Calendar::new(self.days.clone());
        let mut stocks = self.stocks.clone();
        stocks.sort_by_key(|s| s.code);
        let mut parts = StoreParts { calendar, meta: self.meta.clone(), ..StoreParts::default() };
        parts.daily_offsets.push(0);
        parts.minute_offsets.push(0);
        let mut valuation = ValuationColumns { offsets: vec![0], ..ValuationColumns::default() };
        for stock in stocks.iter().filter(|s| !s.outside) {
            parts.codes.push(stock.code);
            for (date, row) in stock.daily_rows(&self.days) {
                push_row(&mut parts.daily, date, row);
            }
            let mut minutes = stock.minutes.clone();
            minutes.sort_by_key(|(d, m, _)| (*d, *m));
            for (date, end, row) in minutes {
                push_row(&mut parts.minute, date, row);
                parts.minute.minute.push(end);
            }
            parts.daily_offsets.push(parts.daily.day.len() as u32);
            parts.minute_offsets.push(parts.minute.day.len() as u32);
            let mut rows = stock.valuation.clone();
            rows.sort_by_key(|(d, ..)| *d);
            for (date, [pe, pb, ps, turnover], st) in rows {
                valuation.day.push(date);
                valuation.pe_ttm.push(pe);
                valuation.pb_mrq.push(pb);
                valuation.ps_ttm.push(ps);
                valuation.turnover.push(turnover);
                valuation.is_st.push(st);
            }
            valuation.offsets.push(valuation.day.len() as u32);
        }
        parts.index = self.index.as_ref().map(|closes| {
            let mut columns = BarColumns::default();
            let mut previous = f64::NAN;
            for (date, close) in self.days.iter().zip(closes) {
                push_row(&mut columns, *date, row_from(previous, *close, 1e9));
                previous = *close;
            }
            columns
        });
        let security = |s: &SmallStock| Security {
            code: s.code,
            name: s.name.clone().unwrap_or_default(),
            aliases: s.aliases.clone(),
            industry: s.industry.clone(),
            listed: s.listed,
        };
        let told = |s: &&SmallStock| s.name.is_some() || s.listed.is_some() || !s.industry.is_empty() || !s.aliases.is_empty();
        let keep = |empty: bool| !(self.bare && empty);
        let securities: Vec<Security> = stocks.iter().filter(told).map(security).collect();
        let mut ex_events: Vec<ExEvent> = stocks.iter().flat_map(|s| s.ex_events.clone()).collect();
        ex_events.sort_by_key(|e| (e.code, e.ex_date));
        let mut fundamentals: Vec<FundamentalRow> = stocks.iter().flat_map(|s| s.fundamentals.clone()).collect();
        fundamentals.sort_by_key(|r| (r.code, r.visible_from, r.period));
        let mut segments: Vec<SegmentRow> = stocks.iter().flat_map(|s| s.segments.clone()).collect();
        segments.sort_by_key(|r| (r.code, r.visible_from));
        let mut announcements: Vec<Announcement> = stocks.iter().flat_map(|s| s.announcements.clone()).collect();
        announcements.sort_by(|a, b| (a.code, a.time, &a.title).cmp(&(b.code, b.time, &b.title)));
        let mut news = self.news.clone();
        news.sort_by_key(|n| (n.time, n.id));
        parts.valuation = keep(valuation.day.is_empty()).then_some(valuation);
        parts.securities = keep(securities.is_empty()).then_some(securities);
        parts.ex_events = keep(ex_events.is_empty()).then_some(ex_events);
        parts.fundamentals = keep(fundamentals.is_empty()).then_some(fundamentals);
        parts.segments = keep(segments.is_empty()).then_some(segments);
        parts.announcements = keep(announcements.is_empty()).then_some(announcements);
        parts.news = keep(news.is_empty()).then_some(news);
        parts
    }

    /// The store.
    ///
    /// # Panics
    /// When the fixture forms no store.
    pub fn build(&self) -> Store {
        Store::new(self.parts()).expect("fixture store")
    }
}

fn push_row(columns: &mut BarColumns, date: Day, [open, high, low, close, volume, amount]: Row) {
    columns.day.push(date);
    columns.open.push(open);
    columns.high.push(high);
    columns.low.push(low);
    columns.close.push(close);
    columns.volume.push(volume);
    columns.amount.push(amount);
}
