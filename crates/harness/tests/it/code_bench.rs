//! A session, what code of it may ask, and the tables it gets as values that a test can compare.

use crate::fixture::{Setup, call};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use traderharness_harness::host_calls::{SegmentCache, ToolCalls};
use traderharness_harness::toolbox::handlers;
use traderharness_harness::{Card, Session, SessionConfig, Toolbox};
use traderharness_market::testing::{SmallMarket, SmallStock, fundamental};
use traderharness_market::{DecisionPoint, Mask, MaskConfig, MaskStyle, Store};
use traderharness_sandbox::protocol::ColumnType;
use traderharness_sandbox::{HostAnswer, HostCalls, HostFault, Segment};
use traderharness_tools_market::MarketState;

pub(crate) const FIRST: &str = "2024-01-01";
pub(crate) const SESSIONS: usize = 150;

/// Seven stocks in two sectors: a suspension, a split, holes and a listing of the last day among them; texts to page through.
pub(crate) fn market() -> SmallMarket {
    let days: Vec<String> = days().iter().map(ToString::to_string).collect();
    let closes = |seed: usize| -> Vec<f64> {
        let close = |i: usize| 10.0 + seed as f64 + ((i * (seed + 3)) % 17) as f64 * 0.11 + i as f64 * 0.01;
        (0..SESSIONS).map(|i| (close(i) * 100.0).round() / 100.0).collect()
    };
    let mut market = SmallMarket::new(FIRST, SESSIONS).index(&closes(0));
    for (n, code) in ["600001", "600002", "000360", "300360", "688001", "600009"].iter().enumerate() {
        let sector = if n < 4 { "Tools-Hand" } else { "Banks-City" };
        let mut stock = SmallStock::new(code).name(&format!("Harbour Tools {n}")).industry(sector).closes(&closes(n));
        for day in &days[SESSIONS - 3..] {
            stock = stock.minutes(day, &closes(n)[..48]);
        }
        stock = match n {
            0 => (0..60).fold(stock, |stock, i| {
                let time = format!("{} 1{}:{:02}", days[SESSIONS - 5], i / 50 + 6, i % 50);
                stock.announcement(&time, &format!("Harbour Tools 0 (600001) notice {i} of {}", days[3]))
            }),
            1 => stock.without(&days[SESSIONS - 4]).without(&days[SESSIONS - 3]),
            2 => stock.ex_event(&days[SESSIONS - 6], 10.0, 0.0, 1.0, 0.0, 0.0),
            3 => stock
                .bar(&days[SESSIONS - 5], [f64::NAN, 11.0, -1.0, 10.005, f64::INFINITY, 1234.567])
                .bar(&days[SESSIONS - 7], [10.0, 11.0, 9.0, f64::NAN, 0.0, 0.0]),
            4 => (0..10).fold(stock, |stock, i| {
                let mut row = fundamental(&format!("{} 18:00", days[i * 10]));
                row.period = Some(days_at(i));
                row.roe = Some(0.01 * i as f64);
                stock.fundamental(row)
            }),
            _ => stock,
        };
        market = market.stock(stock);
    }
    // Its first bars are of the day under test.
    market = market.stock(SmallStock::new("600777").name("Later Mills").minutes(&days[SESSIONS - 3], &[9.0; 48]));
    (0..70).fold(market, |market, i| {
        let time = format!("{} 0{}:{:02}", days[SESSIONS - 4], 8 + i / 60, i % 60);
        let content = format!("600001 of Harbour Tools 0 on {}. {}", days[2], "long ".repeat(i * 20));
        let title = if i % 7 == 0 { format!("A new policy for chips {i}") } else { format!("Chips {i}") };
        market.news(&time, &title, &content)
    })
}

pub(crate) fn days() -> Vec<traderharness_market::Day> {
    SmallMarket::new(FIRST, SESSIONS).stock(SmallStock::new("600001").closes(&[1.0])).build().calendar().days().to_vec()
}

pub(crate) fn days_at(i: usize) -> traderharness_market::Day {
    days()[i]
}

pub(crate) fn everything() -> Card {
    let allowed_tools = handlers().iter().map(|b| b.spec().name.to_owned()).collect();
    Card { id: "code".into(), allowed_tools, ..Card::default() }
}

pub(crate) fn card(tools: &[&str]) -> Card {
    Card { id: "code".into(), allowed_tools: tools.iter().map(|t| (*t).to_owned()).collect(), ..Card::default() }
}

/// A session, and beside it what code of this session would ask.
pub(crate) struct Bench {
    pub(crate) session: Session,
    toolbox: Arc<Toolbox>,
    pub(crate) state: MarketState,
    pub(crate) cache: SegmentCache,
    pub(crate) masked: bool,
}

impl Bench {
    pub(crate) fn new(
        store: &Arc<Store>,
        card: Card,
        masked: bool,
        day: traderharness_market::Day,
        point: DecisionPoint,
    ) -> Self {
        let toolbox = Arc::new(Toolbox::new(&card, masked).unwrap());
        let config = MaskConfig { dates: masked, entities: masked, style: MaskStyle::Opaque, key: b"code tests".to_vec() };
        let mask = Arc::new(Mask::new(store, config));
        let shared = Arc::clone(&toolbox);
        let config = SessionConfig { store: Arc::clone(store), mask, card: Arc::new(card), toolbox: shared, check_output: true };
        let mut session = Session::new(config, day, Setup::default().journal).unwrap();
        session.start_day(day).unwrap();
        while session.clock().point != point {
            session.advance().unwrap();
        }
        Self { session, toolbox, state: MarketState::default(), cache: SegmentCache::default(), masked }
    }

    pub(crate) fn small(card: Card, masked: bool, point: DecisionPoint) -> Self {
        static STORE: LazyLock<Arc<Store>> = LazyLock::new(|| Arc::new(market().build()));
        Self::new(&STORE, card, masked, days()[SESSIONS - 3], point)
    }

    /// Does something with what answers the code of this session.
    pub(crate) fn with_calls<T>(&mut self, work: impl FnOnce(&mut ToolCalls<'_>) -> T) -> T {
        let limits = self.session.card().limits();
        let (view, account) = (self.session.view(), self.session.account());
        work(&mut ToolCalls::new(&self.toolbox, view, &mut self.state, account, &limits, &self.cache))
    }

    pub(crate) fn ask(&mut self, method: &str, args: Value) -> Result<HostAnswer, HostFault> {
        let args: Map<String, Value> = args.as_object().unwrap().clone();
        self.with_calls(|calls| calls.call(method, &args))
    }

    pub(crate) fn value(&mut self, method: &str, args: Value) -> Value {
        let answer = self.ask(method, args.clone()).unwrap_or_else(|fault| panic!("{method} {args}: {fault:?}"));
        assert!(answer.segment.is_none());
        answer.value
    }

    pub(crate) fn table(&mut self, method: &str, args: Value) -> Table {
        let answer = self.ask(method, args.clone()).unwrap_or_else(|fault| panic!("{method} {args}: {fault:?}"));
        Table::of(&answer)
    }

    /// What the tool gives, without `success`.
    pub(crate) fn tool(&mut self, tool: &str, args: Value) -> Value {
        let report = call(&mut self.session, tool, args.clone());
        assert!(report.envelope.is_success(), "{tool} {args}: {}", report.text);
        let mut payload = report.envelope.0.clone();
        payload.as_object_mut().unwrap().remove("success");
        payload
    }

    /// All records of a list of a tool.
    pub(crate) fn pages(&mut self, tool: &str, mut args: Value, key: &str) -> Vec<Value> {
        let mut out = Vec::new();
        loop {
            let mut page = self.tool(tool, args.clone());
            out.append(page[key].as_array_mut().unwrap());
            let Some(cursor) = page["next_cursor"].as_str() else { return out };
            args["cursor"] = json!(cursor);
        }
    }

    pub(crate) fn codes(&mut self) -> Vec<String> {
        serde_json::from_value(self.value("market.get_stock_list", json!({}))).unwrap()
    }

    /// A date column's value as tools show a day.
    pub(crate) fn day(&self, value: &Value) -> String {
        let number = value.as_i64().unwrap();
        if self.masked { format!("D{number:+}") } else { traderharness_market::Moment(number).day().to_string() }
    }
}

/// A table as JSON values, NaN and absent texts as null.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) times: Value,
    pub(crate) rows: Vec<BTreeMap<String, Value>>,
}

fn cells<const N: usize>(bytes: &[u8], offset: u64, rows: usize) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes[offset as usize..offset as usize + N * rows].chunks_exact(N).map(|c| c.try_into().unwrap())
}

impl Table {
    pub(crate) fn of(answer: &HostAnswer) -> Self {
        let segment: &Segment = answer.segment.as_ref().expect("a table");
        let (bytes, layout) = (segment.to_bytes().unwrap(), &segment.layout);
        let rows = layout.rows as usize;
        let (at, length) = layout.strings;
        let strings: Vec<String> = serde_json::from_slice(&bytes[at as usize..(at + length) as usize]).unwrap();
        let mut out = vec![BTreeMap::new(); rows];
        for column in &layout.columns {
            let values: Vec<Value> = match column.kind {
                ColumnType::F64 => cells(&bytes, column.offset, rows).map(|b| json!(f64::from_le_bytes(b))).collect(),
                ColumnType::I64 => cells(&bytes, column.offset, rows).map(|b| json!(i64::from_le_bytes(b))).collect(),
                ColumnType::I32 => cells(&bytes, column.offset, rows).map(|b| json!(i32::from_le_bytes(b))).collect(),
                ColumnType::Bool => cells::<1>(&bytes, column.offset, rows).map(|b| json!(b[0] == 1)).collect(),
                ColumnType::Text => cells(&bytes, column.offset, rows)
                    .map(|b| usize::try_from(i32::from_le_bytes(b)).map_or(Value::Null, |i| json!(strings[i])))
                    .collect(),
            };
            for (row, value) in out.iter_mut().zip(values) {
                row.insert(column.name.clone(), value);
            }
        }
        let columns = layout.columns.iter().map(|c| c.name.clone()).collect();
        Self { columns, times: answer.value["times"].clone(), rows: out }
    }

    pub(crate) fn of_code(&self, code: &str) -> Vec<&BTreeMap<String, Value>> {
        self.rows.iter().filter(|row| row["stock_code"] == code).collect()
    }
}
