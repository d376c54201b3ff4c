//! Plays a recorded scenario on a session of ours, line by line.
//!
//! Where one side changes the account and the other refuses, the runs would part and every later number with them. So a session
//! is rebuilt without a change that only ours made, and a change that only theirs made is brought about by the nearest call that
//! ours accepts. Each later record is then compared on the same account.

use super::names::Names;
use super::oracle::Oracle;
use super::record::{Line, Scenario};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use traderharness_harness::card::CardFees;
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, RawArguments, Session, SessionConfig, Toolbox};
use traderharness_market::store::Security;
use traderharness_market::{Clock, Code, Day, DecisionPoint, Mask, Side, Store, StoreParts, View};
use traderharness_tests::session::{all_tools_card, mask_config};
use traderharness_tools_exec::{Fill, Origin};

/// A recorded call with our answer, both with real codes.
#[derive(Debug, Clone)]
pub(super) struct Played {
    pub(super) id: String,
    pub(super) masked: bool,
    pub(super) clock: Clock,
    pub(super) tool: String,
    pub(super) args: Value,
    pub(super) theirs: Value,
    pub(super) ours: Value,
    /// Ids of the answer that the two sides give to one thing: theirs, ours.
    pub(super) ids: BTreeMap<String, String>,
    /// Where the two accounts part by changes that only one side accepts.
    pub(super) parted: Parted,
    /// The same before the call.
    pub(super) before: Parted,
    /// What the shares that a sale of ours sold had cost, fees included, counted from our fills; CNY.
    pub(super) paid: Option<f64>,
    /// Further answers of ours at this clock, from a session without history: `all` is the whole list, `tomorrow` the same call on
    /// the next morning, `plain` the whole list of the market without ex-events, `adjusted`
    /// that of a market without ex-events whose prices the oracle has moved over them, `sector` the answer in a market that has the
    /// sector asked for.
    pub(super) probes: BTreeMap<&'static str, Value>,
    /// Number of positions of ours before the call.
    pub(super) held: usize,
    /// Real codes that ours had traded on this day before the call.
    pub(super) traded: Vec<String>,
    /// Earlier calls of this scenario on this day: tool, arguments, theirs, ours.
    pub(super) earlier: Vec<Arc<Earlier>>,
}

/// A call before: tool, arguments, theirs, ours.
pub(super) type Earlier = (String, Value, Value, Value);

/// Ours less theirs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Parted {
    /// Usable cash, CNY.
    pub(super) cash: f64,
    /// Shares by real code; none where equal.
    pub(super) shares: BTreeMap<String, i64>,
}

impl Parted {
    fn add(&mut self, cash: f64, code: &str, shares: i64) {
        self.cash = ((self.cash + cash) * 100.0).round() / 100.0;
        *self.shares.entry(code.to_owned()).or_default() += shares;
        self.shares.retain(|_, n| *n != 0);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Day(Day),
    Advance,
    Call(String, Value),
}

/// What the shares of the last fill, a sale, had cost with the fees of buying them; `None` when it is no sale.
fn paid(fills: &[Fill]) -> Option<f64> {
    let mut cost: BTreeMap<Code, f64> = BTreeMap::new();
    let mut last = None;
    for fill in fills {
        let held = cost.entry(fill.security).or_default();
        if fill.side == Side::Buy {
            *held += fill.amount.to_f64() + fill.fees.total().to_f64();
            last = None;
        } else {
            let left = fill.holdings_after.iter().find(|h| h.0 == fill.security).map_or(0, |h| h.1.0);
            let part = *held * fill.shares.0 as f64 / (fill.shares.0 + left) as f64;
            *held -= part;
            last = Some(part);
        }
    }
    last
}

/// Tools that change what later calls see.
const CHANGES: [&str; 6] =
    ["place_order", "manage_conditional_order", "add_watchlist", "remove_watchlist", "remember", "execute_code"];
const COMPLETES: [&str; 2] = ["complete_phase", "finish_day"];

struct Player<'a> {
    config: SessionConfig,
    first: Day,
    session: Session,
    steps: Vec<Step>,
    names: Names,
    plain: SessionConfig,
    /// Rows of the market, to make other markets of.
    oracle: &'a Oracle,
    /// Markets with adjusted prices, by day.
    adjusted: RefCell<BTreeMap<Day, SessionConfig>>,
    /// The session has something open that the recorded calls know nothing of: a completed phase, or a card under correction. Both
    /// belong to the loop, and the recording went past the loop. It is rebuilt before the next call.
    stale: bool,
    masked: bool,
    parted: Parted,
    /// Fills of ours that were looked at for conditions.
    fills_seen: usize,
    earlier: Vec<Arc<Earlier>>,
}

/// The card of a scenario.
fn card(agent: &Value) -> Card {
    let mut card = Card { id: "peer".into(), fees: CardFees::Reference, ..all_tools_card() };
    let number = |key: &str| agent[key].as_u64().map(|n| n as u32);
    let flag = |key: &str| agent[key].as_bool().unwrap_or(false);
    card.max_positions = number("max_positions").unwrap_or(card.max_positions);
    card.max_position_pct = agent["max_position_pct"].as_f64().unwrap_or(card.max_position_pct);
    card.minimum_holding_days = number("minimum_holding_days").unwrap_or(0);
    card.max_active_memories = number("max_active_memories").unwrap_or(0);
    card.max_daily_memories = number("max_daily_memories").unwrap_or(0);
    card.watchlist_ttl_days = number("watchlist_ttl_days").unwrap_or(0);
    card.sandbox_max_calls_per_day = number("sandbox_max_calls_per_day").unwrap_or(0);
    card.require_decision_card = flag("require_decision_card");
    card.require_structured_plan = flag("require_structured_plan");
    if let Some(tools) = agent["allowed_tools"].as_array() {
        let known = card.allowed_tools;
        card.allowed_tools = tools.iter().filter_map(Value::as_str).map(str::to_owned).filter(|t| known.contains(t)).collect();
    }
    card
}

/// Plays all lines of a scenario; returns its calls.
///
/// `plain` is the same market without ex-events, `oracle` its rows.
pub(super) fn play(
    scenario: &Scenario,
    (store, plain, oracle): (&Arc<Store>, &Arc<Store>, &Oracle),
    aliases: &BTreeMap<String, String>,
) -> Vec<Played> {
    let masked = scenario.masked;
    let card = card(&scenario.agent);
    let mask = Arc::new(Mask::new(store, mask_config(masked)));
    let toolbox = Arc::new(Toolbox::new(&card, masked).unwrap());
    let config =
        SessionConfig { store: Arc::clone(store), mask: Arc::clone(&mask), card: Arc::new(card), toolbox, check_output: true };
    // The alias map depends on the codes alone, so it is the same for both.
    let plain = SessionConfig { store: Arc::clone(plain), ..config.clone() };
    let (start, end) = (Day::parse(&scenario.start).unwrap(), Day::parse(&scenario.end).unwrap());
    let days: Vec<Day> = store.calendar().between(start, end).to_vec();
    let session = Session::new(config.clone(), days[0], Box::new(NoJournal)).unwrap();
    let names = Names::new(masked, aliases, store, &mask);
    let mut player = Player {
        config,
        first: days[0],
        session,
        steps: vec![],
        names,
        plain,
        oracle,
        adjusted: RefCell::default(),
        stale: false,
        masked,
        parted: Parted::default(),
        fills_seen: 0,
        earlier: vec![],
    };
    let mut ahead = days.into_iter().peekable();
    let mut out = vec![];
    for line in &scenario.lines {
        match line.event() {
            "day_start" => {
                let day = Day::parse(line.text("date")).unwrap();
                while let Some(next) = ahead.next_if(|d| *d <= day) {
                    player.finish_day();
                    player.run(Step::Day(next));
                }
                player.part_dividends(day, rows(&line.value, "corporate_actions"), store);
                player.earlier.clear();
            }
            "enter" => {
                let point = DecisionPoint::parse(line.text("phase")).unwrap();
                while player.session.clock().point != point {
                    player.run(Step::Advance);
                }
                player.part_conditions(rows(&line.value, "conditional_outcomes"));
            }
            "call" => {
                let played = player.call(line);
                let seen = (played.tool.clone(), played.args.clone(), played.theirs.clone(), played.ours.clone());
                player.earlier.push(Arc::new(seen));
                out.push(played);
            }
            _ => {}
        }
    }
    out
}

impl Player<'_> {
    /// A day ends at close_2, whatever the recording shows of it: conditions are evaluated to the end.
    fn finish_day(&mut self) {
        while !self.steps.is_empty() && self.session.clock().point != DecisionPoint::Close2 {
            self.run(Step::Advance);
        }
    }

    fn run(&mut self, step: Step) {
        Self::apply(&mut self.session, &step);
        self.steps.push(step);
        self.stale = false;
    }

    fn apply(session: &mut Session, step: &Step) -> Value {
        match step {
            Step::Day(day) => session.start_day(*day).map(|_| Value::Null).unwrap(),
            Step::Advance => session.advance().map(|_| Value::Null).unwrap(),
            Step::Call(tool, args) => {
                session.begin_message();
                session.call(tool, RawArguments::Value(args.clone())).unwrap().envelope.0
            }
        }
    }

    /// The session as it is after the kept steps.
    fn rebuild(&mut self) {
        self.session = Session::new(self.config.clone(), self.first, Box::new(NoJournal)).unwrap();
        for step in &self.steps {
            Self::apply(&mut self.session, step);
        }
        self.stale = false;
    }

    fn call(&mut self, line: &Line) -> Played {
        if self.stale {
            self.rebuild();
        }
        let tool = line.text("tool").to_owned();
        let raw = &line.value["result"];
        let args = self.names.arguments(&line.value["args"]);
        let step = Step::Call(tool.clone(), args);
        let today = self.session.clock().day;
        let traded = self.session.account().fills_on(today).map(|f| f.security.to_string()).collect();
        let held = self.session.account().ledger().positions().len();
        let ours = Self::apply(&mut self.session, &step);
        let (before, paid) = (self.parted.clone(), paid(self.session.account().fills()));
        let (mine, other) = (ours["success"] == json!(true), raw["success"] == json!(true));
        if COMPLETES.contains(&tool.as_str()) {
            self.stale = mine;
        } else if mine && other {
            self.steps.push(step);
        } else if CHANGES.contains(&tool.as_str()) {
            self.rebuild();
        }
        if other && !mine && tool == "manage_conditional_order" {
            // Theirs rounds a trigger; ours is given the rounded one.
            let mut args = line.value["args"].clone();
            args["trigger_price"] = raw["order"]["trigger_price"].clone();
            let step = Step::Call(tool.clone(), self.names.arguments(&args));
            let again = Self::apply(&mut self.session, &step);
            if again["success"] == json!(true) && args["operation"] == json!("create") {
                self.names.pair(&raw["order"]["order_id"], again.pointer("/order/order_id"));
                self.steps.push(step);
            }
        }
        if other && tool == "place_order" {
            self.part_order(mine, &line.value["args"], raw, &ours);
        }
        self.pair_ids(&tool, raw, &ours);
        let ids = self.names.used_ids(&line.value);
        let probes = self.probes(&tool, &line.value["args"], raw);
        Played {
            id: line.text("id").to_owned(),
            masked: self.masked,
            clock: self.session.clock(),
            tool,
            args: self.names.theirs(&line.value["args"]),
            theirs: self.names.theirs(raw),
            ours: self.names.ours(&ours),
            ids,
            probes,
            held,
            traded,
            before,
            paid: paid.filter(|_| ours["net_income"].is_number()),
            parted: self.parted.clone(),
            earlier: self.earlier.clone(),
        }
    }

    /// After an order that theirs filled: asks ours for exactly what theirs filled where ours refused the call as it was, and
    /// notes what still differs.
    fn part_order(&mut self, mine: bool, args: &Value, theirs: &Value, ours: &Value) {
        let real = self.names.theirs(theirs);
        let code = real["stock_code"].as_str().unwrap_or_default().to_owned();
        let flow = |v: &Value| v["net_income"].as_f64().unwrap_or(-v["total_cost"].as_f64().unwrap_or(0.0));
        let moved = |v: &Value| v["quantity"].as_i64().unwrap_or(0) * if v["action"] == json!("sell") { -1 } else { 1 };
        let mut ours = ours.clone();
        if !mine {
            let mut args = args.clone();
            args["quantity"] = theirs["quantity"].clone();
            let step = Step::Call("place_order".to_owned(), self.names.arguments(&args));
            ours = Self::apply(&mut self.session, &step);
            if ours["success"] == json!(true) {
                self.steps.push(step);
            } else {
                ours = json!({"action": args["action"], "quantity": 0, "net_income": 0.0});
            }
        }
        self.parted.add(flow(&ours) - flow(theirs), &code, moved(&ours) - moved(theirs));
    }

    /// Dividends on shares that only one side holds; bonus shares likewise.
    fn part_dividends(&mut self, day: Day, theirs: &[Value], store: &Store) {
        let mask = Arc::clone(&self.config.mask);
        let clock = Clock { day, point: DecisionPoint::PreMarket };
        let view = View::new(store, clock, &mask);
        for action in theirs {
            let real = self.names.theirs(action);
            let code = real["stock_code"].as_str().unwrap_or_default();
            let Some(extra) = self.parted.shares.get(code).copied() else { continue };
            let sec = view.find(Code::parse(code).unwrap()).unwrap();
            for event in view.ex_events_on(sec, day) {
                let cash = (extra as f64 * event.cash / 10.0 * 100.0).round() / 100.0;
                self.parted.add(cash, code, (extra as f64 * (event.bonus + event.transfer) / 10.0) as i64);
            }
        }
    }

    /// Conditional orders that only one side filled.
    fn part_conditions(&mut self, theirs: &[Value]) {
        let number = |v: &Value| v.as_f64().or_else(|| v.as_str()?.parse().ok()).unwrap_or(0.0);
        let mut fills: BTreeMap<String, (f64, i64)> = BTreeMap::new();
        for outcome in theirs.iter().filter(|o| o["success"] == json!(true)) {
            let trade = &outcome["trade"];
            let sell = trade["action"] == json!("sell");
            let flow = if sell { number(&trade["net_income"]) } else { -number(&trade["total_cost"]) };
            let moved = trade["quantity"].as_i64().unwrap_or(0) * if sell { -1 } else { 1 };
            let entry = fills.entry(trade["stock_code"].as_str().unwrap_or_default().to_owned()).or_default();
            (entry.0, entry.1) = (entry.0 - flow, entry.1 - moved);
        }
        let made = self.session.account().fills().iter().skip(self.fills_seen);
        let conditional = made.filter(|f| matches!(f.origin, Origin::Condition { .. }));
        for fill in conditional {
            let sell = fill.side == Side::Sell;
            let sign = if sell { 1.0 } else { -1.0 };
            let entry = fills.entry(fill.security.to_string()).or_default();
            entry.0 += sign * fill.amount.to_f64() - fill.fees.total().to_f64();
            entry.1 -= sign as i64 * fill.shares.0;
        }
        self.fills_seen = self.session.account().fills().len();
        for (code, (cash, shares)) in fills {
            if cash.abs() > 0.001 || shares != 0 {
                self.parted.add(cash, &code, shares);
            }
        }
    }

    /// A session at a clock with nothing behind it.
    fn fresh(config: &SessionConfig, clock: Clock) -> Session {
        let mut session = Session::new(config.clone(), clock.day, Box::new(NoJournal)).unwrap();
        session.start_day(clock.day).unwrap();
        while session.clock().point != clock.point {
            session.advance().unwrap();
        }
        session
    }

    fn adjusted(&self, day: Day) -> SessionConfig {
        let make = || SessionConfig { store: Arc::new(Store::new(self.oracle.adjusted(day)).unwrap()), ..self.config.clone() };
        self.adjusted.borrow_mut().entry(day).or_insert_with(make).clone()
    }

    /// Our answer in a market whose only sector is made of the stocks that theirs shows: industries are not in the dataset.
    fn sector(&self, tool: &str, args: &Value, theirs: &Value) -> Value {
        let name = args["sector"].as_str().unwrap_or_default().trim();
        let real = self.names.theirs(theirs);
        let shown = ["top_gainers", "top_losers", "leaders"].into_iter().flat_map(|list| rows(&real, list));
        let mut members: Vec<Security> = shown
            .filter_map(|row| Code::parse(row["code"].as_str()?))
            .map(|code| Security {
                code,
                name: code.to_string(),
                aliases: vec![],
                industry: format!("{name}-part"),
                listed: None,
            })
            .collect();
        members.sort_by_key(|s| s.code);
        members.dedup_by_key(|s| s.code);
        let store = Arc::new(Store::new(StoreParts { securities: Some(members), ..self.oracle.bars_only() }).unwrap());
        let mask = Arc::new(Mask::new(&store, mask_config(self.masked)));
        let names = Names::new(self.masked, &BTreeMap::new(), &store, &mask);
        let config = SessionConfig { store, mask, ..self.config.clone() };
        let mut session = Self::fresh(&config, self.session.clock());
        names.ours(&Self::apply(&mut session, &Step::Call(tool.to_owned(), args.clone())))
    }

    fn probes(&self, tool: &str, args: &Value, theirs: &Value) -> BTreeMap<&'static str, Value> {
        let mut out = BTreeMap::new();
        if theirs["success"] != json!(true) {
            return out;
        }
        let clock = self.session.clock();
        let mut ask = |name: &'static str, clock: Clock, args: Value, list: Option<&str>| {
            let mut session = match name {
                "plain" => Self::fresh(&self.plain, clock),
                "adjusted" => Self::fresh(&self.adjusted(clock.day), clock),
                _ => Self::fresh(&self.config, clock),
            };
            let mut args = self.names.arguments(&args);
            let mut whole = Value::Null;
            loop {
                let page = Self::apply(&mut session, &Step::Call(tool.to_owned(), args.clone()));
                if page["success"] != json!(true) {
                    whole = page;
                    break;
                }
                let more = page["next_cursor"].clone();
                match (list, &mut whole) {
                    (Some(list), Value::Object(whole)) => {
                        let items = page[list].as_array().cloned().unwrap_or_default();
                        whole[list].as_array_mut().unwrap().extend(items);
                    }
                    _ => whole = page,
                }
                if more.is_null() || list.is_none() {
                    break;
                }
                args["cursor"] = more;
            }
            out.insert(name, self.names.ours(&whole));
        };
        let with = |key: &str, value: u32| {
            let mut args = args.clone();
            args[key] = json!(value);
            args
        };
        if tool.ends_with("sector_summary") {
            out.insert("sector", self.sector(tool, args, theirs));
            return out;
        }
        let next = self.config.store.calendar().days().iter().copied().find(|d| *d > clock.day);
        match tool {
            "get_news" | "get_narrative_news" => ask("all", clock, with("max_results", 30), Some("news")),
            "get_announcements" | "get_announcement_evidence" => {
                ask("all", clock, with("max_results", 30), Some("announcements"));
            }
            "screen_stocks" => ask("all", clock, with("max_results", 30), Some("stocks")),
            "screen_behavioral_cycle" => {
                ask("all", clock, with("max_results", 20), Some("candidates"));
                ask("plain", clock, with("max_results", 20), Some("candidates"));
                ask("adjusted", clock, with("max_results", 20), Some("candidates"));
            }
            "get_fundamentals" => {
                ask("all", clock, with("periods", 8), None);
                if let Some(day) = next {
                    ask("tomorrow", Clock { day, point: DecisionPoint::PreMarket }, with("periods", 8), None);
                }
            }
            "get_business_segments" => {
                if let Some(day) = next {
                    ask("tomorrow", Clock { day, point: DecisionPoint::PreMarket }, args.clone(), None);
                }
            }
            _ => {}
        }
        out
    }

    /// Pairs what both sides just gave an id.
    fn pair_ids(&mut self, tool: &str, theirs: &Value, ours: &Value) {
        let made = theirs["success"] == json!(true);
        let ours_made = ours["success"] == json!(true);
        for path in ["/memory/memory_id", "/order/order_id", "/protective_conditional_order_id"] {
            if let (true, Some(id)) = (made, theirs.pointer(path))
                && tool != "get_memory"
                && self.names.id(id.as_str().unwrap_or_default()).is_none()
            {
                self.names.pair(id, ours.pointer(path).filter(|_| ours_made));
            }
        }
        for list in ["news", "announcements"] {
            let (a, b) = (rows(theirs, list), rows(ours, list));
            for item in a.iter().filter(|i| i["evidence_id"].is_string()) {
                let time = |v: &Value| v["time"].as_str().unwrap_or_default().chars().take(16).collect::<String>();
                let mut same: Vec<&Value> = b.iter().filter(|o| time(o) == time(item)).collect();
                if same.len() > 1 {
                    same.retain(|o| o["title"] == item["title"]);
                }
                // A text of theirs that is not on our page stands for the one we show in its place, so that a card can cite it.
                let place = a.iter().rev().position(|i| i == item).unwrap_or(0);
                let shown = if let [only] = same[..] { Some(only) } else { b.get(place) };
                if let Some(shown) = shown {
                    self.names.pair(&item["evidence_id"], shown.get("evidence_id"));
                }
            }
        }
    }
}

/// Rows of a list; none when there is no such list.
pub(super) fn rows<'v>(value: &'v Value, list: &str) -> &'v [Value] {
    value[list].as_array().map_or(&[], Vec::as_slice)
}
