//! [`Play`]: one hosted session. An operation is a call or a step; after a call that completed a phase or the day the clock moves by
//! itself. Says to its agent what the loop says (briefs, memory), and records it; knows no caller and keeps nothing.

use super::tape::Tape;
use super::world::World;
use crate::reply::{BriefText, Completed};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use traderharness_harness::run::{CONTRACT_VERSION, CallCounts, DayRecord};
use traderharness_harness::{CallReport, CancelToken, RawArguments, Sandbox, Session, SessionError, brief, prompt};
use traderharness_market::DecisionPoint;
use traderharness_replay::cassette::Dataset;
use traderharness_replay::trajectory::RunStart;
use traderharness_replay::{Fingerprint, Record};

/// What an operation came to.
#[derive(Debug)]
pub(crate) struct Done {
    /// Of a call.
    pub(crate) report: Option<CallReport>,
    /// The clock when it was asked for, in its visible form: `D+0 09:30`.
    pub(crate) asked_at: String,
    /// Phase or day that ended.
    pub(crate) completed: Option<Completed>,
}

/// One hosted session.
pub(crate) struct Play {
    world: Arc<World>,
    session: Session,
    tape: Tape,
    /// Day of the window, from 0.
    day: usize,
    finished: bool,
    system: String,
    memory: Option<String>,
    /// What was said when the decision point opened.
    said: Vec<String>,
    counts: CallCounts,
    /// Days that ended.
    days: Vec<DayRecord>,
    /// Operations that are kept.
    pub(crate) ops: i64,
    /// Records that are kept.
    pub(crate) records: i64,
}

impl std::fmt::Debug for Play {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Play").field("session", &self.session).field("day", &self.day).finish_non_exhaustive()
    }
}

impl Play {
    /// A session at the first decision point of its first day. Its records are on the tape.
    pub(crate) fn start(world: Arc<World>, key: &[u8], sandbox: Option<Sandbox>) -> Result<Self, SessionError> {
        let tape = Tape::default();
        let first = world.days.first().copied().unwrap_or_default();
        let mut session = Session::new(world.session(key), first, Box::new(tape.clone()))?;
        if let Some(sandbox) = sandbox {
            session = session.with_sandbox(sandbox);
        }
        let mut play = Self {
            session,
            tape,
            day: 0,
            finished: false,
            system: world.system(),
            memory: None,
            said: Vec::new(),
            counts: CallCounts::default(),
            days: Vec::new(),
            ops: 0,
            records: 0,
            world,
        };
        play.session.append(Record::RunStart(play.run_start()))?;
        play.open_day()?;
        Ok(play)
    }

    fn run_start(&self) -> RunStart {
        let meta = self.world.store.meta();
        let mask = self.session.mask();
        let mut run = Map::new();
        run.insert("card".into(), serde_json::to_value(&*self.world.card).unwrap_or_default());
        run.insert("mask_dates".into(), self.world.hide.dates.into());
        run.insert("mask_entities".into(), self.world.hide.entities.into());
        run.insert("entity_mask_seed".into(), mask.key_id().into());
        RunStart {
            schema_version: traderharness_replay::trajectory::TRAJECTORY_SCHEMA_VERSION,
            contract_version: CONTRACT_VERSION.to_owned(),
            model: String::new(),
            dataset: Dataset { name: meta.name.clone(), sha256: meta.digest.parse::<Fingerprint>().ok() },
            synthetic: meta.synthetic,
            run,
        }
    }

    /// The session, for what is only looked at.
    pub(crate) const fn session(&self) -> &Session {
        &self.session
    }

    /// What sessions of the profile share.
    pub(crate) const fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Where its records are until they are kept.
    pub(crate) const fn tape(&self) -> &Tape {
        &self.tape
    }

    /// One operation more is kept, with that many records.
    pub(crate) const fn kept(&mut self, records: usize) {
        self.ops += 1;
        self.records += records as i64;
    }

    /// Whether the last day ended.
    pub(crate) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Day of the session, from 1.
    pub(crate) const fn day_number(&self) -> usize {
        self.day + 1
    }

    /// The clock in its visible form.
    pub(crate) fn now(&self) -> String {
        let clock = self.session.clock();
        format!("{} {}", self.session.mask().day(clock.day, clock.day), clock.point.now_minute())
    }

    /// Calls a tool. Every call of a door is a message of its own.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value, cancel: CancelToken) -> Result<Done, SessionError> {
        let asked_at = self.now();
        self.session.set_cancel(cancel);
        self.session.begin_message();
        let report = self.session.call(tool, RawArguments::Value(arguments.clone()))?;
        self.counts.count(&report);
        let completed = if self.session.phase().completed.is_some() { Some(self.move_on("")?) } else { None };
        Ok(Done { report: Some(report), asked_at, completed })
    }

    /// Moves the clock on without a completion.
    pub(crate) fn step(&mut self) -> Result<Done, SessionError> {
        let asked_at = self.now();
        let completed = self.move_on("step")?;
        Ok(Done { report: None, asked_at, completed: Some(completed) })
    }

    /// What the agent is told here: system prompt, memory, and what was said when the decision point opened.
    pub(crate) fn brief(&self) -> Vec<BriefText> {
        let text = |role: &str, text: &str| BriefText { role: role.to_owned(), text: text.to_owned() };
        let system = text("system", &self.system);
        let said = self.memory.iter().chain(&self.said).map(|said| text("user", said));
        let protocol = (!self.finished).then(|| text("user", &prompt::protocol(&self.session)));
        std::iter::once(system).chain(said).chain(protocol).collect()
    }

    fn tell(&mut self, text: String) -> Result<(), SessionError> {
        self.session.append(Record::Brief { role: "user".to_owned(), text: text.clone() })?;
        self.said.push(text);
        Ok(())
    }

    fn open_day(&mut self) -> Result<(), SessionError> {
        let day = self.world.days.get(self.day).copied().unwrap_or_default();
        let events = self.session.start_day(day)?;
        self.session.append(Record::Brief { role: "system".to_owned(), text: self.system.clone() })?;
        self.memory = self.session.memory_text();
        if let Some(text) = self.memory.clone() {
            self.session.append(Record::Brief { role: "user".to_owned(), text })?;
        }
        self.said.clear();
        let morning = brief::morning(&self.session, &events);
        self.tell(morning)
    }

    /// Closes the decision point and opens the next one, or the next day, or ends the session.
    fn move_on(&mut self, ended_by: &str) -> Result<Completed, SessionError> {
        let point = self.session.clock().point;
        let done = self.session.phase().completed.clone();
        let detail = match &done {
            Some(done) => {
                json!({ "decision": done.decision, "summary": done.summary, "next_focus": done.next_focus, "abandoned": done.abandoned })
            }
            None => json!({ "ended_by": ended_by }),
        };
        self.session.append(Record::Completion { point: point.as_str().to_owned(), detail })?;
        let day = point == DecisionPoint::Close2;
        if day {
            self.close_day(&done.map(|done| done.summary).unwrap_or_default())?;
            if self.day + 1 < self.world.days.len() {
                self.day += 1;
                self.open_day()?;
            } else {
                self.end("completed")?;
            }
        } else {
            self.session.advance()?;
            self.said.clear();
            if let Some(events) = brief::conditions(&self.session) {
                self.tell(events)?;
            }
            let window = brief::window(&self.session);
            self.tell(window)?;
        }
        Ok(Completed { point: point.as_str().to_owned(), day, finished: self.finished })
    }

    fn close_day(&mut self, summary: &str) -> Result<(), SessionError> {
        self.session.close_day(summary)?;
        let day = self.session.clock().day;
        let record = DayRecord { calls: self.counts, summary: summary.to_owned(), ..DayRecord::of(&self.session) };
        let mut end = self.session.account_summary();
        if let (Value::Object(end), Ok(Value::Object(record))) = (&mut end, serde_json::to_value(&record)) {
            end.insert("record".into(), record.into());
        }
        let label = self.session.mask().day(day, day);
        self.session.append(Record::DayEnd { day: label, account: end })?;
        self.counts = CallCounts::default();
        self.days.push(record);
        Ok(())
    }

    /// Days that ended.
    pub(crate) fn days(&self) -> &[DayRecord] {
        &self.days
    }

    /// Calls of the session, those of a day that did not end too.
    pub(crate) fn all_counts(&self) -> CallCounts {
        let mut all = self.counts;
        self.days.iter().for_each(|day| all.add(&day.calls));
        all
    }

    /// Ends the session; `status` stands in its last record.
    pub(crate) fn end(&mut self, status: &str) -> Result<(), SessionError> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        self.said.clear();
        let totals = self.session.account_summary();
        self.session.append(Record::RunEnd { status: status.to_owned(), totals })
    }
}
