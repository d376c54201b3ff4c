//! Days and decision points: the order in which an agent is told things, its turns, and how a phase ends (engine E10.1, E10.2, E10.5,
//! E10.6).

use super::budget::{BudgetKind, Used};
use super::committee::Committee;
use super::record::{CallCounts, DayRecord, FinishFailure, RunStatus, RunSummary};
use super::rounds::{Ended, Rounds, Verdict};
use super::taken::Taken;
use super::{Observer, RunError, RunSettings};
use crate::context::{Context, ContextPolicy};
use crate::model::{ModelClient, executor_scope};
use crate::phase::{self, FINISH_ATTEMPTS};
use crate::{Session, brief, prompt};
use serde_json::{Value, json};
use traderharness_contract::ErrorCode;
use traderharness_market::{Day, DecisionPoint};
use traderharness_replay::cassette::DEFAULT_SCOPE;
use traderharness_replay::{Message, Record};

/// A run on its way.
pub(super) struct Loop<'a> {
    pub(super) session: &'a mut Session,
    pub(super) client: &'a mut dyn ModelClient,
    pub(super) settings: &'a RunSettings,
    pub(super) observer: &'a mut dyn Observer,
    /// Who asks, in the records.
    pub(super) scope: String,
    /// Advisors of the card.
    pub(super) committee: Committee,
    /// The conversation of the day.
    pub(super) messages: Vec<Message>,
    /// Days of the whole run; said to the model only where the contract has the horizon line.
    days: usize,
    /// What the run has used of its budgets.
    pub(super) used: Used,
    /// Calls of the run, of unfinished days too.
    pub(super) run_counts: CallCounts,
    /// Calls of the day.
    pub(super) counts: CallCounts,
    /// Requests of the day.
    pub(super) requests: u64,
    /// Model turn at the current decision point.
    pub(super) iteration: u32,
    /// How far the calls of the current assistant message came.
    pub(super) progress: super::turn::Progress,
    /// What of the conversation a request shows.
    pub(super) context: Context,
    /// Whether a request may show less than the whole conversation.
    pub(super) compacts: bool,
}

impl<'a> Loop<'a> {
    pub(super) fn new(
        session: &'a mut Session,
        client: &'a mut dyn ModelClient,
        settings: &'a RunSettings,
        observer: &'a mut dyn Observer,
        days: usize,
    ) -> Self {
        let of_the_card = || ContextPolicy { threshold: session.card().context_tokens.into(), ..ContextPolicy::default() };
        let policy = settings.context.clone().unwrap_or_else(of_the_card);
        let card = session.card();
        let alone = card.committee.is_none();
        Self {
            scope: if alone { DEFAULT_SCOPE.to_owned() } else { executor_scope(&card.id) },
            committee: Committee::default(),
            compacts: policy.threshold > 0,
            context: Context::new(policy),
            session,
            client,
            settings,
            observer,
            messages: Vec::new(),
            days,
            used: Used::default(),
            run_counts: CallCounts::default(),
            counts: CallCounts::default(),
            requests: 0,
            iteration: 0,
            progress: super::turn::Progress::default(),
        }
    }

    /// A limit that nothing measures would limit nothing, so a run does not start with one.
    pub(super) fn check_settings(&self) -> Result<(), RunError> {
        if self.settings.budgets.max_wall_millis.is_some() && self.settings.stopwatch.is_none() {
            return Err(RunError::BudgetUnmeasured { which: BudgetKind::WallTime });
        }
        if self.settings.budgets.max_cost_micros.is_some() && self.settings.prices.is_none() {
            return Err(RunError::BudgetUnmeasured { which: BudgetKind::Cost });
        }
        Ok(())
    }

    pub(super) fn summary(&self, days: Vec<DayRecord>, stopped: Option<&RunError>) -> RunSummary {
        let initial = self.session.account().initial_cash;
        let last = self.session.account().equity(&self.session.view());
        RunSummary {
            status: stopped.map_or(RunStatus::Completed, RunError::status),
            stop_code: stopped.map(RunError::code),
            initial_cash: initial.to_f64(),
            final_equity: last.to_f64(),
            return_pct: RunSummary::percent(initial, last),
            requests: self.used.requests,
            calls: self.run_counts,
            advice: self.session.card().committee.is_some().then_some(self.committee.of_the_run),
            spending: self.used.spending,
            days,
        }
    }

    pub(super) async fn day(&mut self, day: Day) -> Result<DayRecord, RunError> {
        // A day is not opened for a run that is to end.
        self.check_cancelled()?;
        self.counts = CallCounts::default();
        self.requests = 0;
        let events = self.session.start_day(day)?;
        self.observer.day(self.session);
        let card = self.session.card().clone();
        let config = self.session.mask().config();
        let system = prompt::system_under(self.session.contract(), &card, config);
        self.session.append(Record::Brief { role: "system".to_owned(), text: system.clone() })?;
        self.messages = vec![Message::system(system)];
        if let Some(memory) = self.session.memory_text() {
            self.tell(memory)?;
        }
        let morning = brief::morning_of(self.session, &events, self.days);
        self.convene(&morning);
        self.open_point(morning)?;
        // System prompt, memory and the morning's brief stay in every view.
        self.context.start(self.messages.len());
        self.hear(&[]).await?;
        let finished = loop {
            let ended = self.decision_point().await?;
            self.close_point(ended)?;
            let finished = self.session.phase().completed.clone().filter(|done| done.finishes_day);
            if self.session.clock().point == DecisionPoint::Close2 {
                break finished;
            }
            if finished.is_some() {
                self.pass_the_rest()?;
                break finished;
            }
            self.session.advance()?;
            let events = brief::conditions(self.session);
            let text = brief::window(self.session);
            self.hear(&[events.as_deref(), Some(&text)].into_iter().flatten().collect::<Vec<_>>()).await?;
            if let Some(events) = events {
                self.tell(events)?;
            }
            self.open_point(text)?;
        };
        let failure = if finished.is_none() { self.finish_fallback().await? } else { None };
        let summary = match (finished.or_else(|| self.session.phase().completed.clone()), &failure) {
            (Some(done), _) => done.summary.clone(),
            (None, Some(f)) => format!("The day ended without finish_day after {} attempts ({}).", f.attempts, f.error_code),
            (None, None) => String::new(),
        };
        self.session.close_day(&summary)?;
        let record = DayRecord {
            requests: self.requests,
            calls: self.counts,
            advice: card.committee.is_some().then_some(self.committee.of_the_day),
            summary,
            finish_failure: failure,
            ..DayRecord::of(self.session)
        };
        let label = self.session.mask().day(day, day);
        let mut end = self.session.account_summary();
        if let (Value::Object(end), Ok(Value::Object(record))) = (&mut end, serde_json::to_value(&record)) {
            end.insert("record".into(), record.into());
        }
        self.session.append(Record::DayEnd { day: label, account: end })?;
        self.observer.day_end(self.session, &record);
        Ok(record)
    }

    /// The rest of a day that was finished early: the clock goes on to the close, standing orders are tried on its way, and nobody is
    /// asked.
    fn pass_the_rest(&mut self) -> Result<(), RunError> {
        while self.session.clock().point != DecisionPoint::Close2 {
            self.session.advance()?;
            self.check_cancelled()?;
        }
        Ok(())
    }

    fn open_point(&mut self, text: String) -> Result<(), RunError> {
        self.iteration = 0;
        self.observer.point(self.session, &text);
        self.tell(text)
    }

    /// A message of the environment: recorded first, then said.
    pub(super) fn tell(&mut self, text: String) -> Result<(), RunError> {
        self.session.append(Record::Brief { role: "user".to_owned(), text: text.clone() })?;
        self.messages.push(Message::user(text));
        Ok(())
    }

    /// Records how the decision point ended.
    fn close_point(&mut self, ended: Ended) -> Result<(), RunError> {
        let detail = match &self.session.phase().completed {
            Some(done) => {
                json!({ "decision": done.decision, "summary": done.summary, "next_focus": done.next_focus, "abandoned": done.abandoned })
            }
            None => json!({ "turns_used": self.iteration, "ended_by": ended.as_str() }),
        };
        let point = self.session.clock().point.as_str().to_owned();
        Ok(self.session.append(Record::Completion { point, detail })?)
    }

    async fn decision_point(&mut self) -> Result<Ended, RunError> {
        let ended = self.turns().await;
        self.session.offer_only(None);
        ended
    }

    async fn turns(&mut self) -> Result<Ended, RunError> {
        let card = self.session.card();
        let protocol = self.session.has_protocol();
        let point = self.session.clock().point;
        let turns = phase::turns(card, point, protocol);
        let wrap_up = phase::wrap_up_turn(turns);
        let mut rounds = Rounds::default();
        while self.iteration < turns {
            let turn = self.iteration + 1;
            if wrap_up == Some(turn) {
                self.tell(prompt::wrap_up(self.session.contract(), turn, turns, protocol, point))?;
            }
            // The last turn is for the completion (spec/seeds.md B12.1). Without the protocol every turn of a card is a working turn
            // (engine E10.2), and the clock moves anyway.
            if protocol && turn == turns {
                self.session.offer_only(Some(phase::completion_tool(point)));
            }
            let tools = self.session.tool_definitions();
            let step = self.used.requests;
            let Taken { said, calls, .. } = self.ask(tools, protocol.then(|| prompt::protocol(self.session))).await?;
            // An answer without a call is a message too: it may give a correction up (engine E10.8).
            let reports = self.answer(&calls)?;
            let verdict = if calls.is_empty() {
                rounds.said(&said, protocol)
            } else {
                if self.session.phase().completed.is_some() {
                    return Ok(Ended::Turns);
                }
                rounds.called(reports.iter().all(|report| report.code.is_some()), protocol)
            };
            match verdict {
                Verdict::GoOn => {}
                // Nobody reads what is said after the last turn.
                Verdict::Say(which) => {
                    if self.iteration < turns {
                        self.tell(prompt::reminder(self.session.contract(), which))?;
                    }
                }
                Verdict::End(Ended::EmptyAnswers) if protocol => return Err(RunError::EmptyAnswers { step }),
                Verdict::End(ended) => return Ok(ended),
            }
        }
        if protocol && point != DecisionPoint::Close2 {
            return Err(RunError::PhaseProtocol {
                phase: point.phase().as_str(),
                sub_window: point.sub_window(),
                pending: self.session.phase().pending().to_vec(),
            });
        }
        Ok(Ended::Turns)
    }

    /// Up to three attempts with only finish_day on offer (engine E10.6).
    async fn finish_fallback(&mut self) -> Result<Option<FinishFailure>, RunError> {
        self.session.offer_only(Some("finish_day"));
        let failure = self.finish_attempts().await;
        self.session.offer_only(None);
        failure
    }

    async fn finish_attempts(&mut self) -> Result<Option<FinishFailure>, RunError> {
        let mut last: Option<(ErrorCode, String)> = None;
        for attempt in 1..=FINISH_ATTEMPTS {
            self.tell(prompt::finish_request(self.session.contract(), attempt, last.as_ref().map(|(_, text)| text.as_str())))?;
            let tools = self.session.tool_definitions();
            let calls = self.ask(tools, None).await?.calls;
            let reports = self.answer(&calls)?;
            let mut outcome = None;
            for (call, report) in calls.iter().zip(&reports).filter(|(call, _)| call.name == "finish_day") {
                let error = report.envelope.0.get("error").and_then(Value::as_str).unwrap_or_default().to_owned();
                outcome = report.code.map(|code| match code {
                    ErrorCode::InvalidToolArgumentsJson => {
                        let received: String = call.arguments.chars().take(500).collect();
                        (code, format!("{error} Received: {received}"))
                    }
                    _ => (code, error),
                });
            }
            if self.session.phase().completed.is_some() {
                return Ok(None);
            }
            last = Some(outcome.unwrap_or((ErrorCode::FinishDayNotCalled, "finish_day was not called.".to_owned())));
        }
        let code = last.map_or(ErrorCode::FinishDayNotCalled, |(code, _)| code);
        Ok(Some(FinishFailure { error_code: code, attempts: FINISH_ATTEMPTS }))
    }
}
