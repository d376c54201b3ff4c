//! A market of two boards with one tradable day, sessions over it, and a journal that can fail.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use traderharness_harness::session::{Journal, NoJournal};
use traderharness_harness::toolbox::{Bound, handlers};
use traderharness_harness::{CallReport, Card, RawArguments, Session, SessionConfig, Toolbox};
use traderharness_market::store::SegmentRow;
use traderharness_market::testing::{SmallMarket, code as code_of, day, moment};
use traderharness_market::{Day, DecisionPoint, Mask, MaskConfig, MaskStyle, Store};
use traderharness_replay::{Record, RecordingError};

pub(crate) const FIRST: &str = "2024-03-01";
pub(crate) const SESSIONS: usize = 30;

pub(crate) fn store() -> Arc<Store> {
    Arc::new(market().build())
}

/// The market of [`store`], for a test that changes something in it.
pub(crate) fn market() -> SmallMarket {
    let segment = SegmentRow {
        code: code_of("600001"),
        visible_from: Some(moment("2024-01-02 18:00")),
        published: Some(day("2024-01-02")),
        report_date: Some(day("2023-12-31")),
        kind: "product".to_owned(),
        name: "Hand tools".to_owned(),
        revenue: Some(1e8),
        revenue_pct: Some(1.0),
        gross_margin: Some(0.3),
    };
    let market = SmallMarket::of_sessions(FIRST, SESSIONS)
        .change("600001", |stock| stock.valuation("2024-03-29", [10.0, 1.0, 1.0, 1.0], false).segment(segment));
    market.news("2024-04-09 09:40", "A headline", "Its text.")
}

pub(crate) fn trading_days(store: &Store) -> Vec<Day> {
    store.calendar().days()[SESSIONS - 3..].to_vec()
}

pub(crate) struct Setup {
    pub(crate) card: Card,
    pub(crate) masked: bool,
    pub(crate) handlers: Vec<Bound>,
    pub(crate) journal: Box<dyn Journal>,
    /// Used instead of `handlers` when it is given.
    pub(crate) toolbox: Option<Arc<Toolbox>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { card: Card::builtin(), masked: false, handlers: handlers(), journal: Box::new(NoJournal), toolbox: None }
    }
}

impl Setup {
    pub(crate) fn session(self, store: &Arc<Store>) -> Session {
        self.session_from(store, trading_days(store)[0])
    }

    pub(crate) fn session_from(self, store: &Arc<Store>, first: Day) -> Session {
        let config =
            MaskConfig { dates: self.masked, entities: self.masked, style: MaskStyle::Opaque, key: b"harness tests".to_vec() };
        let mask = Arc::new(Mask::new(store, config));
        let compiled = || Arc::new(Toolbox::with_handlers(&self.card, self.masked, self.handlers).unwrap());
        let toolbox = self.toolbox.unwrap_or_else(compiled);
        let config = SessionConfig { store: Arc::clone(store), mask, card: Arc::new(self.card), toolbox, check_output: true };
        Session::new(config, first, self.journal).unwrap()
    }

    pub(crate) fn at(self, point: DecisionPoint) -> Session {
        let store = store();
        let mut session = self.session(&store);
        session.start_day(trading_days(&store)[0]).unwrap();
        while session.clock().point != point {
            session.advance().unwrap();
        }
        session
    }
}

pub(crate) fn call(session: &mut Session, tool: &str, args: Value) -> CallReport {
    session.call(tool, RawArguments::Value(args)).unwrap()
}

pub(crate) fn text_call(session: &mut Session, tool: &str, args: &str) -> CallReport {
    session.call(tool, RawArguments::Text(args)).unwrap()
}

pub(crate) fn code(report: &CallReport) -> &str {
    report.envelope.error_code().unwrap_or("success")
}

/// Keeps records where the test can see them; fails from record `fail_at` on.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    pub(crate) records: Arc<Mutex<Vec<Record>>>,
    pub(crate) fail_at: Option<usize>,
}

impl Journal for Memory {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        let mut records = self.records.lock().unwrap();
        if self.fail_at.is_some_and(|at| records.len() >= at) {
            let full = std::io::Error::new(std::io::ErrorKind::StorageFull, "disk full");
            return Err(RecordingError::Io { action: "write", path: "trajectory.jsonl".into(), source: full });
        }
        records.push(record);
        Ok(())
    }
}
