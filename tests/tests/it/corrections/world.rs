//! Markets with one security for each situation a call can meet, and sessions over them that are cheap to open again and again.

use crate::corrections::envelope::Answer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use traderharness_contract::version::{Behaviour, Pack};
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, Contract, RawArguments, Session, SessionConfig, Toolbox};
use traderharness_market::store::SegmentRow;
use traderharness_market::testing::{SmallMarket, SmallStock, day, fundamental, moment};
use traderharness_market::{Day, DecisionPoint, Mask, MaskStyle, Store, StoreParts};
use traderharness_tests::session::{all_tools_card, mask_config};

/// Sessions of the market of situations; cases begin on the day after the third.
pub(crate) const YESTERDAY: usize = 4;
pub(crate) const TODAY: usize = 5;
const FIRST: &str = "2024-03-04";
const SESSIONS: usize = 10;

pub(crate) const PLAIN: &str = "600036";
pub(crate) const OTHER: &str = "600519";
pub(crate) const CHEAP: &str = "000858";
pub(crate) const LOCKED_UP: &str = "600101";
pub(crate) const LOCKED_DOWN: &str = "600102";
pub(crate) const HALTED_ALL_DAY: &str = "600103";
pub(crate) const HALTED_AT_TEN: &str = "600104";
pub(crate) const DRY: &str = "600105";
pub(crate) const ST: &str = "600106";
pub(crate) const NO_DAILY_BAR: &str = "600107";
pub(crate) const NOT_YET_LISTED: &str = "600108";
/// Has company facts, prices and nothing else.
pub(crate) const NO_TEXTS: &str = "600109";
/// Its segments have no name.
pub(crate) const NAMELESS: &str = "600110";
/// Bonus of 3 for 10 on `TODAY`.
pub(crate) const BONUS: &str = "600111";
/// Falls below 9.50 on the day after `TODAY`.
pub(crate) const FALLING: &str = "600112";
/// Its bars hold no number.
pub(crate) const UNPRICED: &str = "600113";
pub(crate) const STAR: &str = "688001";
pub(crate) const BSE: &str = "920001";

fn calendar() -> Vec<Day> {
    let store = SmallMarket::new(FIRST, SESSIONS).stock(SmallStock::new(PLAIN).closes(&[1.0; SESSIONS])).build();
    store.calendar().days().to_vec()
}

/// A stock that stands at `price` in each session, 48 bars of 10,000 shares, with every table.
fn flat(code: &str, price: f64) -> SmallStock {
    let stock = SmallStock::new(code).name(&format!("Quanfeng Works {code}")).industry("Metals-Copper").listed("2019-01-02");
    calendar().iter().fold(stock.closes(&[price; SESSIONS]), |s, d| s.minutes(&d.to_string(), &[price; 48]))
}

/// As [`flat`], and these closes on a day.
fn on(code: &str, price: f64, index: usize, closes: &[f64]) -> SmallStock {
    let days = calendar();
    let stock = SmallStock::new(code).name(&format!("Quanfeng Works {code}")).industry("Metals-Copper").listed("2019-01-02");
    let stock = stock.closes(&vec![price; if closes.is_empty() { SESSIONS } else { index }]);
    let stock = if closes.is_empty() { stock.without(&days[index].to_string()) } else { stock };
    let bars = |i: usize| if i == index { closes.to_vec() } else { vec![price; 48] };
    (0..SESSIONS).fold(stock, |s, i| s.minutes(&days[i].to_string(), &bars(i)))
}

fn told(stock: SmallStock, segment: &str) -> SmallStock {
    let days = calendar();
    let at = format!("{} 15:00", days[1]);
    let row = SegmentRow {
        code: traderharness_market::testing::code(PLAIN),
        visible_from: Some(moment(&at)),
        published: Some(days[1]),
        report_date: Some(day("2023-12-31")),
        kind: "by product".into(),
        name: segment.into(),
        revenue: Some(1e8),
        revenue_pct: Some(0.5),
        gross_margin: Some(0.2),
    };
    let stock = days[..TODAY].iter().fold(stock, |s, d| s.valuation(&d.to_string(), [15.0, 1.5, 2.5, 0.8], false));
    stock
        .segment(row)
        .fundamental(fundamental(&at))
        .announcement(&format!("{} 17:30", days[2]), "Notice of the annual meeting")
        .announcement(&format!("{} 09:40", days[TODAY]), "Notice on order intake")
}

fn situations() -> StoreParts {
    let days = calendar();
    let today = days[TODAY].to_string();
    let dry = [10.0, 10.0, 10.0, 10.0, 0.0, 0.0];
    let st = days.iter().fold(flat(ST, 10.0), |s, d| s.st(&d.to_string(), true));
    let mut market = SmallMarket::new(FIRST, SESSIONS)
        .index(&[3_000.0; SESSIONS])
        .stock(told(flat(PLAIN, 10.0), "Wire"))
        .stock(told(flat(OTHER, 100.0), "Tea").industry("Food-Tea"))
        .stock(flat(CHEAP, 1.0).industry("Software-Tools"))
        .stock(on(LOCKED_UP, 10.0, TODAY, &[11.0; 48]))
        .stock(on(LOCKED_DOWN, 10.0, TODAY, &[9.0; 48]))
        .stock(on(HALTED_ALL_DAY, 10.0, TODAY, &[]))
        .stock(on(HALTED_AT_TEN, 10.0, TODAY, &[10.0, 10.1, 10.2, 10.3]))
        .stock(on(DRY, 10.0, TODAY, &[10.0; 3]).minute_bar(&today, "09:50", dry))
        .stock(st)
        .stock(SmallStock::new(NO_DAILY_BAR).listed("2019-01-02").minutes(&today, &[10.0; 48]))
        .stock(SmallStock::new(NOT_YET_LISTED).minutes(&days[TODAY + 2].to_string(), &[10.0; 48]))
        .stock(flat(NO_TEXTS, 10.0))
        .stock(told(flat(NAMELESS, 10.0), " "))
        .stock(flat(BONUS, 10.0).ex_event(&today, 3.0, 0.0, 0.0, 0.0, 0.0))
        .stock(on(FALLING, 10.0, TODAY + 1, &[9.4; 48]))
        .stock(SmallStock::new(UNPRICED).listed("2019-01-02").closes(&[f64::NAN; SESSIONS]))
        .stock(flat(STAR, 50.0))
        .stock(flat(BSE, 5.0));
    for (k, date) in days.iter().enumerate() {
        for time in ["08:10", "09:45"] {
            market = market.news(&format!("{date} {time}"), &format!("Copper report {k}"), "Inventories fall.");
        }
    }
    market.parts()
}

/// A market and what sessions over it share.
pub(crate) struct World {
    pub(crate) store: Arc<Store>,
    masks: [Arc<Mask>; 2],
}

impl World {
    pub(crate) fn of(parts: StoreParts) -> Self {
        let store = Arc::new(Store::new(parts).expect("a store"));
        let masks = [false, true].map(|masked| Arc::new(Mask::new(&store, mask_config(masked))));
        Self { store, masks }
    }

    /// A session at a decision point of the session number `index`.
    pub(crate) fn open(&self, card: &Card, masked: bool, index: usize, point: DecisionPoint) -> Session {
        let mask = Arc::clone(&self.masks[usize::from(masked)]);
        self.begin(card, mask, toolbox(&Contract::default(), card, masked), index, point)
    }

    /// As [`World::open`], masked, under a contract and with the mask that it hides with by itself.
    pub(crate) fn open_under(&self, contract: &Contract, card: &Card, index: usize, point: DecisionPoint) -> Session {
        let mut config = mask_config(true);
        if contract.has(Behaviour::PermutationByDefault) {
            config.style = MaskStyle::Permutation;
        }
        let mask = Arc::new(Mask::new(&self.store, config));
        self.begin(card, mask, toolbox(contract, card, true), index, point)
    }

    fn begin(&self, card: &Card, mask: Arc<Mask>, toolbox: Arc<Toolbox>, index: usize, point: DecisionPoint) -> Session {
        let store = Arc::clone(&self.store);
        let config = SessionConfig { store, mask, card: Arc::new(card.clone()), toolbox, check_output: true };
        let day = self.store.calendar().days()[index];
        let mut session = Session::new(config, day, Box::new(NoJournal)).expect("a trading day");
        session.start_day(day).expect("a trading day");
        until(&mut session, point);
        session
    }
}

/// Every situation.
pub(crate) static FULL: LazyLock<World> = LazyLock::new(|| World::of(situations()));

/// The same prices and no other table.
pub(crate) static BARE: LazyLock<World> = LazyLock::new(|| {
    World::of(StoreParts {
        index: None,
        securities: None,
        ex_events: None,
        fundamentals: None,
        segments: None,
        valuation: None,
        announcements: None,
        news: None,
        ..situations()
    })
});

/// Tools compile once per card: a session is then opened in microseconds.
fn toolbox(contract: &Contract, card: &Card, masked: bool) -> Arc<Toolbox> {
    static KNOWN: Mutex<BTreeMap<String, Arc<Toolbox>>> = Mutex::new(BTreeMap::new());
    let words = contract.pack().map(Pack::digest).unwrap_or_default();
    let key = format!("{words} {:?} {:?} {:?}", contract.flags().numbers(), card.policy(masked), card.allowed_tools);
    let mut known = KNOWN.lock().expect("no panic while compiling");
    Arc::clone(known.entry(key).or_insert_with(|| Arc::new(Toolbox::under(contract, card, masked).expect("known tools"))))
}

/// A card that holds nothing back: every tool, whole account in one position, many fills a day.
pub(crate) fn free_card() -> Card {
    Card { max_positions: 50, max_position_pct: 100.0, one_fill_per_day: false, initial_cash: 1e7, ..all_tools_card() }
}

pub(crate) fn until(session: &mut Session, point: DecisionPoint) {
    while session.clock().point != point {
        session.advance().expect("a later point");
    }
}

/// What a case does before its call.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A call that must succeed.
    Call(&'static str, Value),
    /// A call whose answer does not matter here.
    Try(&'static str, Value),
    /// The clock moves on inside the day.
    Until(DecisionPoint),
    /// The next trading day, at a point of it.
    Next(DecisionPoint),
}

pub(crate) fn run(session: &mut Session, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Call(tool, args) => {
                let answer = send(session, tool, args);
                assert!(answer.report.envelope.is_success(), "step {tool}({args}): {}", answer.report.text);
            }
            Step::Try(tool, args) => {
                send(session, tool, args);
            }
            Step::Until(point) => until(session, *point),
            Step::Next(point) => {
                let days = session.view().past_days().len();
                let next = days + 1;
                let day = session_day(session, next);
                session.start_day(day).expect("a trading day");
                until(session, *point);
            }
        }
    }
}

fn session_day(session: &Session, index: usize) -> Day {
    let today = session.clock().day;
    let days = calendar();
    *days.get(index).filter(|d| **d > today).expect("a later day of the fixture")
}

/// Sends a call in a message of its own, as a model of this run would: codes in their visible form, `$EVIDENCE` as the newest id seen.
pub(crate) fn send(session: &mut Session, tool: &str, args: &Value) -> Answer {
    session.begin_message();
    send_in_message(session, tool, args)
}

/// As [`send`], in the message of the call before.
pub(crate) fn send_in_message(session: &mut Session, tool: &str, args: &Value) -> Answer {
    let mut sent = args.clone();
    visible(session, &mut sent);
    let report = session.call(tool, RawArguments::Value(sent.clone())).expect("a session that goes on");
    Answer { sent, report }
}

/// Real codes of the universe become what this run shows.
pub(crate) fn visible(session: &Session, value: &mut Value) {
    match value {
        Value::String(text) => {
            if text == "$EVIDENCE" {
                *text = session.account().evidence.newest_texts(1).pop().unwrap_or_else(|| "nothing-seen".to_owned());
            } else if let Some(alias) = alias(session, text) {
                *text = alias;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| visible(session, item)),
        Value::Object(map) => map.values_mut().for_each(|item| visible(session, item)),
        _ => {}
    }
}

fn alias(session: &Session, text: &str) -> Option<String> {
    let code = traderharness_market::Code::parse(text)?;
    let order = session.mask().in_visible_order();
    let codes: BTreeMap<_, _> = order.iter().map(|sec| (session.view().code(*sec), *sec)).collect();
    codes.get(&code).map(|sec| session.mask().code(*sec).to_owned())
}
