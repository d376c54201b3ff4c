//! [`Session`]: one agent, one account, one clock. `Send`, cheap to create, many per process over one shared store.

mod error;
mod journal;
mod reader;

pub use error::{Committed, SessionError};
pub use journal::{Journal, NoJournal};
pub use reader::Reader;

use crate::correction::Corrections;
use crate::dispatch::{OncePerRun, Remembered};
use crate::phase::{COMPLETION_TOOLS, PhaseState};
use crate::sandbox::{Aside, Sandbox};
use crate::toolbox::BoundTool;
use crate::{CancelToken, Card, Contract, Toolbox};
use serde_json::{Value, json};
use std::sync::Arc;
use traderharness_contract::version::legacy::RunDay;
use traderharness_market::{Clock, Code, Day, DecisionPoint, Mask, Store, View};
use traderharness_replay::Record;
use traderharness_tools_exec::conditional::{self, ConditionOutcome, ConditionalOrder};
use traderharness_tools_exec::corporate::CorporateAction;
use traderharness_tools_exec::memory::{MemorySink, NoSink};
use traderharness_tools_exec::{Account, CardLimits, OrderGate};
use traderharness_tools_market::MarketState;

/// What a session is made of.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Market.
    pub store: Arc<Store>,
    /// Mask of the run.
    pub mask: Arc<Mask>,
    /// Card.
    pub card: Arc<Card>,
    /// Tools compiled for the card.
    pub toolbox: Arc<Toolbox>,
    /// Checks every success payload against its output schema; a misfit is an `internal` failure.
    pub check_output: bool,
}

/// What ended by time when a day was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opening {
    /// Conditional orders that expired: id and security.
    pub expired: Vec<(String, Code)>,
    /// Securities whose time on the watchlist is over.
    pub unwatched: Vec<Code>,
}

/// An ex-date as the trajectory keeps it.
fn action_event(action: &CorporateAction) -> Value {
    let rescaled = action.rescaled.iter().map(|l| json!({ "what": l.what, "from": l.from.to_f64(), "to": l.to.to_f64() }));
    json!({
        "event": "corporate_action",
        "stock_code": action.code.to_string(),
        "ex_date": action.ex_date.to_string(),
        "shares_before": action.shares_before.0,
        "shares_in": action.shares_in.0,
        "cash": action.cash.to_f64(),
        "rights_not_exercised": action.rights_not_exercised,
        "rescaled": rescaled.collect::<Vec<_>>(),
    })
}

/// One agent, one account, one clock.
pub struct Session {
    pub(crate) opening: Opening,
    pub(crate) config: SessionConfig,
    pub(crate) limits: CardLimits,
    pub(crate) clock: Clock,
    pub(crate) day_index: u32,
    pub(crate) started: bool,
    pub(crate) account: Account,
    pub(crate) gate: Option<OrderGate>,
    pub(crate) market_state: MarketState,
    pub(crate) phase: PhaseState,
    pub(crate) corrections: Corrections,
    /// Fills of the account that the journal holds.
    pub(crate) recorded_fills: usize,
    /// An order was handed to its handler and its result was not recorded: nobody knows what became of it (complaint OR-13).
    pub(crate) order_unknown: bool,
    /// A defect left the account in doubt; every further step is refused.
    pub(crate) defect: bool,
    /// Who reads beside the agent, while it calls.
    pub(crate) reader: Option<reader::Rights>,
    /// The one tool on offer, while the close fallback runs (engine E10.6).
    pub(crate) only: Option<&'static str>,
    /// Asks the run to end; long calls look at it.
    pub(crate) cancel: CancelToken,
    /// Calls that may run once in a run (spec/seeds.md B7).
    pub(crate) once: OncePerRun,
    /// Answers of deterministic plug-in tools at the clock.
    pub(crate) remembered: Remembered,
    pub(crate) journal: Box<dyn Journal>,
    pub(crate) memory_sink: Box<dyn MemorySink>,
    /// Where code runs.
    pub(crate) sandbox: Option<Sandbox>,
    /// What the last code left for the host.
    pub(crate) aside: Aside,
    /// Journal and hard state of the current day are written.
    pub(crate) day_closed: bool,
    pub(crate) calls: u64,
    /// Account-changing calls of the current assistant message (complaint OR-14).
    pub(crate) message_effects: Vec<(String, String)>,
    /// Conditional orders tried when the current decision point opened.
    pub(crate) conditions_met: Vec<ConditionOutcome>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("card", &self.config.card.id)
            .field("clock", &self.clock)
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session before its first day.
    ///
    /// # Errors
    /// [`SessionError::NotATradingDay`], [`SessionError::Card`].
    pub fn new(config: SessionConfig, first_day: Day, journal: Box<dyn Journal>) -> Result<Self, SessionError> {
        if !config.store.calendar().contains(first_day) {
            return Err(SessionError::NotATradingDay { day: first_day });
        }
        config.card.check()?;
        let limits = config.toolbox.contract().limits(&config.card);
        let account = Account::new(config.card.cash().unwrap_or_default());
        Ok(Self {
            limits,
            clock: Clock { day: first_day, point: DecisionPoint::PreMarket },
            day_index: 0,
            started: false,
            account,
            gate: None,
            market_state: MarketState::default(),
            phase: PhaseState::default(),
            corrections: Corrections::default(),
            recorded_fills: 0,
            order_unknown: false,
            defect: false,
            reader: None,
            only: None,
            cancel: CancelToken::new(),
            once: OncePerRun::default(),
            remembered: Remembered::default(),
            journal,
            memory_sink: Box::new(NoSink),
            sandbox: None,
            aside: Aside::default(),
            day_closed: false,
            calls: 0,
            message_effects: Vec::new(),
            conditions_met: Vec::new(),
            opening: Opening::default(),
            config,
        })
    }

    /// Goes on with another journal, for hosts whose first one could not keep a record. What was not recorded before is not known: orders
    /// stay blocked until the one in doubt is asked for again under its key (complaint OR-13).
    #[must_use]
    pub fn with_journal(mut self, journal: Box<dyn Journal>) -> Self {
        self.journal = journal;
        self
    }

    /// Puts an order gate in front of the market: every order of the session, conditional ones too, goes through it.
    #[must_use]
    pub fn with_gate(mut self, gate: OrderGate) -> Self {
        self.gate = Some(gate);
        self
    }

    /// Gives the session a place where its code runs. Without one `execute_code` answers `environment_unavailable`.
    #[must_use]
    pub fn with_sandbox(mut self, mut sandbox: Sandbox) -> Self {
        sandbox.set_memory(self.config.card.sandbox_memory_mb);
        self.sandbox = Some(sandbox);
        self
    }

    /// Where the code of the session runs, if anywhere.
    pub const fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// The order gate, if the session has one.
    pub const fn gate(&self) -> Option<&OrderGate> {
        self.gate.as_ref()
    }

    /// The clock.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// 0 for the first day of the session.
    pub const fn day_index(&self) -> u32 {
        self.day_index
    }

    /// The account, read-only.
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// Card of the session.
    pub fn card(&self) -> &Card {
        &self.config.card
    }

    /// Contract of the session.
    pub fn contract(&self) -> &Contract {
        self.config.toolbox.contract()
    }

    /// Whether the clock moves only on a completion call.
    pub fn has_protocol(&self) -> bool {
        self.contract().protocol(&self.config.card)
    }

    /// What is open in the current phase.
    pub const fn phase(&self) -> &PhaseState {
        &self.phase
    }

    /// The market at the clock.
    pub fn view(&self) -> View<'_> {
        View::new(&self.config.store, self.clock, &self.config.mask)
    }

    /// Mask of the run.
    pub fn mask(&self) -> &Mask {
        &self.config.mask
    }

    /// Tools that can be called now, in catalog order.
    pub fn offered(&self) -> impl Iterator<Item = &BoundTool> {
        let point = self.clock.point;
        let halted = self.gate.as_ref().is_some_and(OrderGate::opened_halted);
        let codes = point == DecisionPoint::PreMarket || !self.config.card.sandbox_pre_market_only;
        self.config.toolbox.all().iter().filter(move |t| {
            let name = t.bound.spec().name;
            self.reader.as_ref().map_or(t.enabled, |reader| reader.allow(t))
                && self.contract().offers(name, point)
                && self.only.is_none_or(|only| only == name)
                && self.corrections.offers(name)
                && !(halted && name == "place_order")
                && (codes || name != "execute_code")
        })
    }

    /// Offers one tool alone until this is called again with `None`; what else is called is refused. For the turns that are meant for
    /// one thing, such as the close fallback (engine E10.6).
    pub const fn offer_only(&mut self, tool: Option<&'static str>) {
        self.only = tool;
    }

    /// Gives the session the token that asks its run to end. Tools that outlast a moment look at it; [`crate::run::play`] sets its own.
    pub fn set_cancel(&mut self, cancel: CancelToken) {
        self.cancel = cancel;
    }

    /// The token that asks the run to end.
    pub const fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }

    /// Whether a tool of this name is enabled and only reads. An unknown name and an unknown effect are no read: such calls run alone
    /// and in order (engine E10.3).
    pub fn is_read(&self, name: &str) -> bool {
        self.resolve(&self.config.toolbox, name).is_ok_and(|tool| tool.bound.spec().effect.is_read())
    }

    /// Whether a call of this tool runs before those of its message that change something, whatever their order in it.
    pub(crate) fn reads_first(&self, name: &str) -> bool {
        self.contract().reads_first(name, self.is_read(name))
    }

    /// The day of the run, as earlier contract versions count it.
    pub(crate) const fn run_day(&self) -> RunDay {
        RunDay { index: self.day_index }
    }

    /// Tool definitions as a model gets them now.
    pub fn tool_definitions(&self) -> Vec<Value> {
        self.offered().map(BoundTool::offered_definition).collect()
    }

    /// Opens a trading day at pre_market: shares bought earlier become sellable, ex-events take effect. Returns what happened
    /// to the account.
    ///
    /// # Errors
    /// [`SessionError`] when the day is none, lies back, or the record cannot be kept.
    pub fn start_day(&mut self, day: Day) -> Result<Vec<CorporateAction>, SessionError> {
        if !self.config.store.calendar().contains(day) {
            return Err(SessionError::NotATradingDay { day });
        }
        if self.defect {
            return Err(SessionError::Stopped);
        }
        // Before its first day a session stands on it already: reads were possible there.
        if day < self.clock.day || (self.started && day == self.clock.day) {
            return Err(SessionError::BackInTime { day, current: self.clock.day });
        }
        if self.started {
            self.close_previous_day()?;
            self.day_index += 1;
        }
        self.started = true;
        self.day_closed = false;
        self.clock = Clock { day, point: DecisionPoint::PreMarket };
        self.phase = PhaseState::default();
        self.corrections.start_day();
        self.message_effects.clear();
        self.conditions_met.clear();
        let view = View::new(&self.config.store, self.clock, &self.config.mask);
        let standing: Vec<(String, Code)> = self.account.conditions().active().map(|o| (o.id(), o.security)).collect();
        let watched: Vec<Code> = self.account.watchlist.entries().iter().map(|e| e.code).collect();
        let actions = self.account.start_day(&view)?;
        self.account.ledger().check_invariants()?;
        let active: Vec<String> = self.account.conditions().active().map(ConditionalOrder::id).collect();
        let listed: Vec<Code> = self.account.watchlist.entries().iter().map(|e| e.code).collect();
        self.opening = Opening {
            expired: standing.into_iter().filter(|(id, _)| !active.contains(id)).collect(),
            unwatched: watched.into_iter().filter(|code| !listed.contains(code)).collect(),
        };
        let day_label = self.config.mask.day(day, day);
        let account = self.account_summary();
        self.append(Record::DayStart { day_index: self.day_index + 1, day: day_label, account })?;
        let mut events: Vec<Value> = actions.iter().map(action_event).collect();
        events.extend(
            self.opening.expired.iter().map(
                |(id, code)| json!({ "event": "conditional_order_expired", "order_id": id, "stock_code": code.to_string() }),
            ),
        );
        events.extend(
            self.opening
                .unwatched
                .iter()
                .map(|code| json!({ "event": "watchlist_entry_expired", "stock_code": code.to_string() })),
        );
        for event in events {
            let event = self.masked_value(event);
            self.append(Record::Order { event })?;
        }
        self.enter_point()?;
        Ok(actions)
    }

    /// Moves to the next decision point.
    ///
    /// # Errors
    /// [`SessionError::DayOver`] after close_2; as [`Session::start_day`] otherwise.
    pub fn advance(&mut self) -> Result<DecisionPoint, SessionError> {
        if !self.started {
            return Err(SessionError::NotStarted);
        }
        if self.defect {
            return Err(SessionError::Stopped);
        }
        let next = self.clock.point.next().ok_or(SessionError::DayOver { point: self.clock.point })?;
        self.clock.point = next;
        self.phase = PhaseState::default();
        self.corrections.next_point();
        self.message_effects.clear();
        self.enter_point()?;
        // The bars that just became visible meet the conditions before the agent sees the window (engine E5.3).
        let view = View::new(&self.config.store, self.clock, &self.config.mask);
        self.conditions_met = conditional::evaluate_through(&view, &mut self.account, &self.limits, self.gate.as_mut());
        if cfg!(debug_assertions) {
            self.account.ledger().check_invariants()?;
        }
        let events: Vec<Record> = self.conditions_met.iter().map(|outcome| self.condition_record(outcome)).collect();
        for event in events {
            let filled = matches!(event, Record::Fill { .. });
            self.append(event)?;
            self.recorded_fills += usize::from(filled);
        }
        Ok(next)
    }

    /// What ended overnight, when the current day was opened.
    pub const fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Conditional orders that were tried when the current decision point opened.
    pub fn conditions_met(&self) -> &[ConditionOutcome] {
        &self.conditions_met
    }

    fn condition_record(&self, outcome: &ConditionOutcome) -> Record {
        match &outcome.result {
            Ok(fill) => Record::Fill { event: self.masked_value(crate::dispatch::fill_event(fill)) },
            Err(refusal) => {
                let event = json!({
                    "event": "conditional_order_refused",
                    "order_id": outcome.order_id,
                    "stock_code": outcome.security.to_string(),
                    "bar_end": outcome.bar_end.to_string(),
                    "price": outcome.price.to_f64(),
                    "error_code": refusal.code(),
                });
                Record::Order { event: self.masked_value(event) }
            }
        }
    }

    fn enter_point(&mut self) -> Result<(), SessionError> {
        let point = self.clock.point;
        let equity = Some(self.account.valuation(&self.view()).total.to_f64());
        self.append(Record::DecisionPoint { point: point.as_str().to_owned(), time: point.now_minute().to_string(), equity })
    }

    /// Forgets which account-changing calls the current assistant message made, and begins a correction turn when one is due. Call it
    /// before each message's calls.
    pub fn begin_message(&mut self) {
        self.message_effects.clear();
        self.end_message();
        self.corrections.begin_message();
    }

    /// Ends the message that was begun: a correction turn that did nothing for the correction gives it up where no completion tool could.
    /// [`Session::begin_message`] does it for hosts that do not.
    pub fn end_message(&mut self) {
        let can_complete = self.offered().any(|t| COMPLETION_TOOLS.contains(&t.bound.spec().name));
        self.corrections.end_message(can_complete);
    }

    /// Appends a record of the host: what it told the model, asked and was answered, how a point, a day and the run ended. Calls, fills
    /// and decision points the session records itself.
    ///
    /// # Errors
    /// [`SessionError::Journal`]; what was to be recorded must then not be acknowledged.
    pub fn append(&mut self, record: Record) -> Result<(), SessionError> {
        Ok(self.journal.append(record)?)
    }

    /// Masks the strings of a value that holds facts of the market, as the run shows them (engine E8.7). For what a host records or
    /// says beside the session; results of calls are masked already.
    pub fn masked(&self, value: Value) -> Value {
        self.masked_value(value)
    }

    /// Masks the strings of an environment record (events, fills) before it is kept (engine E8.7).
    pub(crate) fn masked_value(&self, value: Value) -> Value {
        let mask = crate::masking::FieldMask { store: &self.config.store, mask: &self.config.mask, today: self.clock.day };
        mask.value(value)
    }

    /// Total assets, cash and positions at the last visible prices, for records and reports; masked.
    pub fn account_summary(&self) -> Value {
        let worth = self.account.valuation(&self.view());
        let positions: Vec<Value> = worth
            .positions
            .iter()
            .map(|p| {
                json!({
                    "stock_code": p.code.to_string(),
                    "quantity": p.shares.0,
                    "price": p.mark.price.to_f64(),
                    "price_source": p.mark.source.as_str(),
                    "value": p.value.to_f64(),
                })
            })
            .collect();
        self.masked_value(json!({ "total_value": worth.total.to_f64(), "cash": worth.cash.to_f64(), "positions": positions }))
    }
}
