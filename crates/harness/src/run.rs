//! The loop: days, decision points, model turns, the close fallback (engine E10).
//!
//! The loop owns no rule of the market and no rule of a tool; it asks the model, hands each call to [`Session::call`], and moves the
//! clock when a phase was completed or its turns are used up.

use crate::dispatch::{CallReport, RawArguments};
use crate::model::{ModelClient, ModelError, Turn};
use crate::phase::{ERROR_ROUNDS, EXTENSION_TURNS, FINISH_ATTEMPTS};
use crate::session::SessionError;
use crate::{Session, brief, prompt};
use serde::Serialize;
use serde_json::{Map, Value, json};
use traderharness_contract::{ErrorCode, ErrorFamily};
use traderharness_market::{Day, DecisionPoint};
use traderharness_replay::cassette::DEFAULT_SCOPE;
use traderharness_replay::{Message, Record, Request, Response, ToolCall};
use traderharness_tools_exec::PendingError;

/// Contract version of new runs.
pub const CONTRACT_VERSION: &str = "v5";

/// What goes into every request beside messages and tools.
#[derive(Debug, Clone, Default)]
pub struct RunSettings {
    /// Model name.
    pub model: String,
    /// Sampling parameters.
    pub sampling: Map<String, Value>,
}

/// Hears what happens, for a terminal or a log. Default methods do nothing.
pub trait Observer: Send {
    /// A day starts.
    fn day(&mut self, _session: &Session) {}
    /// A decision point opens.
    fn point(&mut self, _session: &Session, _text: &str) {}
    /// The model answered.
    fn answer(&mut self, _session: &Session, _response: &Response) {}
    /// A call was answered.
    fn call(&mut self, _session: &Session, _report: &CallReport) {}
    /// A day ended.
    fn day_end(&mut self, _session: &Session, _record: &DayRecord) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;
impl Observer for Silent {}

/// Calls by how they ended. The three failure families are counted apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallCounts {
    /// Calls that succeeded.
    pub succeeded: u64,
    /// The model's call was wrong.
    pub bad_arguments: u64,
    /// The market, the account or a policy refused.
    pub refused: u64,
    /// The environment could not serve.
    pub environment: u64,
}

impl CallCounts {
    fn count(&mut self, report: &CallReport) {
        match report.code.map(ErrorCode::family) {
            None => self.succeeded += 1,
            Some(ErrorFamily::Arguments) => self.bad_arguments += 1,
            Some(ErrorFamily::Refused) => self.refused += 1,
            Some(ErrorFamily::Environment) => self.environment += 1,
        }
    }

    fn add(&mut self, other: &Self) {
        self.succeeded += other.succeeded;
        self.bad_arguments += other.bad_arguments;
        self.refused += other.refused;
        self.environment += other.environment;
    }

    /// All calls.
    pub const fn total(&self) -> u64 {
        self.succeeded + self.bad_arguments + self.refused + self.environment
    }
}

/// `finish_day` never succeeded (engine E10.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FinishFailure {
    /// Code of the last attempt.
    pub error_code: ErrorCode,
    /// Attempts made.
    pub attempts: u32,
}

/// What one day came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DayRecord {
    /// 0 for the first day.
    pub day_index: u32,
    /// Real day, for private records; public ones carry labels only.
    #[serde(skip)]
    pub day: Day,
    /// Total assets at 15:00, CNY.
    pub equity: f64,
    /// Usable cash at 15:00, CNY.
    pub cash: f64,
    /// Positions at 15:00.
    pub positions: usize,
    /// Fills of the day.
    pub fills: usize,
    /// Model requests of the day.
    pub requests: u64,
    /// Calls of the day.
    pub calls: CallCounts,
    /// The agent's summary of the day.
    pub summary: String,
    /// Set when the day ended without `finish_day`.
    #[serde(rename = "_finish_day_protocol_failure", skip_serializing_if = "Option::is_none")]
    pub finish_failure: Option<FinishFailure>,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Days, in order.
    pub days: Vec<DayRecord>,
    /// Cash at the start, CNY.
    pub initial_cash: f64,
    /// Total assets at the end, CNY.
    pub final_equity: f64,
    /// Return on the initial cash, percent.
    pub return_pct: f64,
    /// Model requests.
    pub requests: u64,
    /// Calls.
    pub calls: CallCounts,
}

/// What stops a run. Records kept so far stay valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The session stopped.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The model could not answer.
    #[error("the model did not answer request {step}")]
    Model {
        /// Request, from 0.
        step: u64,
        /// Why.
        #[source]
        source: ModelError,
    },
    /// A phase was not completed within its extension turns (engine E10.5). The day fails closed.
    #[error("{phase}{} was not completed within its turns (phase_completion_protocol_exhausted); open: {}", .sub_window.map(|s| format!("/{s}")).unwrap_or_default(), pairs(.pending))]
    PhaseProtocol {
        /// Phase.
        phase: &'static str,
        /// Sub-window.
        sub_window: Option<&'static str>,
        /// Open corrections.
        pending: Vec<PendingError>,
    },
    /// There is no trading day to run.
    #[error("the dataset has no trading day from {start} to {end}")]
    NoTradingDay {
        /// First day asked for.
        start: Day,
        /// Last day asked for.
        end: Day,
    },
}

impl RunError {
    /// Stable code for records.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Session(_) => "session_stopped",
            Self::Model { .. } => "model_failed",
            Self::PhaseProtocol { .. } => "phase_completion_protocol_exhausted",
            Self::NoTradingDay { .. } => "no_trading_day",
        }
    }
}

fn pairs(pending: &[PendingError]) -> String {
    if pending.is_empty() {
        return "nothing".into();
    }
    pending.iter().map(|p| format!("{}={}", p.tool, p.code)).collect::<Vec<_>>().join(", ")
}

/// Runs a session over days.
///
/// # Errors
/// [`RunError`]; the journal holds everything up to that point.
pub async fn run(
    session: &mut Session,
    client: &mut dyn ModelClient,
    days: &[Day],
    settings: &RunSettings,
    observer: &mut dyn Observer,
) -> Result<RunSummary, RunError> {
    let mut driver = Loop {
        session,
        client,
        settings,
        observer,
        messages: Vec::new(),
        steps: 0,
        counts: CallCounts::default(),
        requests: 0,
        iteration: 0,
    };
    let mut records = Vec::with_capacity(days.len());
    for day in days {
        match driver.day(*day).await {
            Ok(record) => records.push(record),
            Err(error) => {
                // The reason is the last record of a run that stops; if even that cannot be kept, the first error still is the answer.
                let message = match driver.session.masked_value(error.to_string().into()) {
                    Value::String(message) => message,
                    other => other.to_string(),
                };
                let _ = driver.session.append(Record::Error { code: error.code().to_owned(), message, detail: Value::Null });
                return Err(error);
            }
        }
    }
    let summary = summary(driver.session, records);
    driver
        .session
        .append(Record::RunEnd { status: "completed".to_owned(), totals: serde_json::to_value(&summary).unwrap_or_default() })?;
    Ok(summary)
}

fn summary(session: &Session, days: Vec<DayRecord>) -> RunSummary {
    let initial = session.account().initial_cash;
    let last = session.account().equity(&session.view());
    let mut calls = CallCounts::default();
    days.iter().for_each(|d| calls.add(&d.calls));
    RunSummary {
        initial_cash: initial.to_f64(),
        final_equity: last.to_f64(),
        return_pct: traderharness_market::money::round_f64((last.0 - initial.0) as f64 * 100.0 / initial.0 as f64, 2)
            .unwrap_or_default(),
        requests: days.iter().map(|d| d.requests).sum(),
        calls,
        days,
    }
}

struct Loop<'a> {
    session: &'a mut Session,
    client: &'a mut dyn ModelClient,
    settings: &'a RunSettings,
    observer: &'a mut dyn Observer,
    messages: Vec<Message>,
    /// Requests of the run.
    steps: u64,
    counts: CallCounts,
    requests: u64,
    /// Model turn at the current decision point.
    iteration: u32,
}

impl Loop<'_> {
    async fn day(&mut self, day: Day) -> Result<DayRecord, RunError> {
        self.counts = CallCounts::default();
        self.requests = 0;
        let events = self.session.start_day(day)?;
        self.observer.day(self.session);
        let card = self.session.card().clone();
        let config = self.session.mask().config();
        let system = prompt::system(&card, config.dates, config.entities);
        self.session.append(Record::Brief { role: "system".to_owned(), text: system.clone() })?;
        self.messages = vec![Message::system(system)];
        if let Some(memory) = self.session.memory_text() {
            self.tell(memory)?;
        }
        let morning = brief::morning(self.session, &events);
        self.open_point(morning)?;
        loop {
            self.decision_point().await?;
            self.close_point()?;
            if self.session.clock().point == DecisionPoint::Close2 {
                break;
            }
            self.session.advance()?;
            if let Some(events) = brief::conditions(self.session) {
                self.tell(events)?;
            }
            let text = brief::window(self.session);
            self.open_point(text)?;
        }
        let failure = if self.session.phase().completed.is_none() { self.finish_fallback().await? } else { None };
        let summary = match (&self.session.phase().completed, &failure) {
            (Some(done), _) => done.summary.clone(),
            (None, Some(f)) => format!("The day ended without finish_day after {} attempts ({}).", f.attempts, f.error_code),
            (None, None) => String::new(),
        };
        self.session.close_day(&summary)?;
        let account = self.session.account();
        let worth = account.valuation(&self.session.view());
        let record = DayRecord {
            day_index: self.session.day_index(),
            day,
            equity: worth.total.to_f64(),
            cash: worth.cash.to_f64(),
            positions: worth.positions.len(),
            fills: account.fills_on(day).count(),
            requests: self.requests,
            calls: self.counts,
            summary,
            finish_failure: failure,
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

    fn open_point(&mut self, text: String) -> Result<(), RunError> {
        self.iteration = 0;
        self.observer.point(self.session, &text);
        self.tell(text)
    }

    /// A message of the environment: recorded first, then said.
    fn tell(&mut self, text: String) -> Result<(), RunError> {
        self.session.append(Record::Brief { role: "user".to_owned(), text: text.clone() })?;
        self.messages.push(Message::user(text));
        Ok(())
    }

    /// Records how the decision point ended.
    fn close_point(&mut self) -> Result<(), RunError> {
        let detail = match &self.session.phase().completed {
            Some(done) => {
                json!({ "decision": done.decision, "summary": done.summary, "next_focus": done.next_focus, "abandoned": done.abandoned })
            }
            None => json!({ "turns_used": self.iteration }),
        };
        let point = self.session.clock().point.as_str().to_owned();
        Ok(self.session.append(Record::Completion { point, detail })?)
    }

    async fn decision_point(&mut self) -> Result<(), RunError> {
        let card = self.session.card();
        let protocol = card.require_phase_completion;
        let point = self.session.clock().point;
        let own = if point == DecisionPoint::PreMarket { card.max_pre_iterations } else { card.max_window_iterations };
        let turns = if protocol { own + EXTENSION_TURNS } else { own };
        let mut error_rounds = 0;
        while self.iteration < turns {
            let tools = self.session.tool_definitions();
            let response = self.ask(tools, protocol.then(|| prompt::protocol(self.session))).await?;
            let calls = response.message.tool_calls();
            if calls.is_empty() && protocol {
                self.tell(prompt::NO_CALL.to_owned())?;
            }
            let all_failed = self.answer(&calls)?;
            if self.session.phase().completed.is_some() {
                return Ok(());
            }
            error_rounds = if all_failed { error_rounds + 1 } else { 0 };
            if !protocol && error_rounds >= ERROR_ROUNDS {
                return Ok(());
            }
        }
        if protocol && point != DecisionPoint::Close2 {
            return Err(RunError::PhaseProtocol {
                phase: point.phase().as_str(),
                sub_window: point.sub_window(),
                pending: self.session.phase().pending().to_vec(),
            });
        }
        Ok(())
    }

    /// Asks the model with the conversation so far; `extra` is appended to the request only.
    async fn ask(&mut self, tools: Vec<Value>, extra: Option<String>) -> Result<Response, RunError> {
        let mut request = Request::new(&self.settings.model, CONTRACT_VERSION);
        request.sampling = self.settings.sampling.clone();
        request.tools = tools;
        request.messages = self.messages.clone();
        request.messages.extend(extra.map(Message::user));
        let turn = Turn { day_index: self.session.day_index(), point: self.session.clock().point, iteration: self.iteration };
        let step = self.steps;
        self.session.append(Record::ModelRequest {
            scope: DEFAULT_SCOPE.to_owned(),
            step: step as usize,
            request_sha256: request.fingerprint(),
            messages: request.messages.len(),
        })?;
        let response = self.client.complete(&request, turn).await.map_err(|source| RunError::Model { step, source })?;
        self.steps += 1;
        self.requests += 1;
        self.iteration += 1;
        self.session.append(Record::ModelResponse {
            scope: DEFAULT_SCOPE.to_owned(),
            step: step as usize,
            response: response.clone(),
        })?;
        self.observer.answer(self.session, &response);
        self.messages.push(response.message.clone());
        Ok(response)
    }

    /// Runs the calls of one assistant message in order; true when there were calls and all failed.
    fn answer(&mut self, calls: &[ToolCall]) -> Result<bool, RunError> {
        self.session.begin_message();
        let mut failed = 0;
        for call in calls {
            let report = self.run_call(call)?;
            failed += usize::from(report.code.is_some());
        }
        self.session.end_message();
        Ok(!calls.is_empty() && failed == calls.len())
    }

    fn run_call(&mut self, call: &ToolCall) -> Result<CallReport, RunError> {
        let report = self.session.call_as(&call.id, &call.name, RawArguments::Text(&call.arguments))?;
        self.counts.count(&report);
        self.observer.call(self.session, &report);
        self.messages.push(Message::tool(&call.id, &report.text));
        Ok(report)
    }

    /// Up to three attempts with only finish_day on offer (engine E10.6).
    async fn finish_fallback(&mut self) -> Result<Option<FinishFailure>, RunError> {
        self.session.only = Some("finish_day");
        let failure = self.finish_attempts().await;
        self.session.only = None;
        failure
    }

    async fn finish_attempts(&mut self) -> Result<Option<FinishFailure>, RunError> {
        let mut last: Option<(ErrorCode, String)> = None;
        for attempt in 1..=FINISH_ATTEMPTS {
            self.tell(prompt::finish_request(attempt, last.as_ref().map(|(_, text)| text.as_str())))?;
            let tools = self.session.tool_definitions();
            let response = self.ask(tools, None).await?;
            let calls = response.message.tool_calls();
            self.session.begin_message();
            let mut outcome = None;
            for call in &calls {
                let report = self.run_call(call)?;
                if call.name != "finish_day" {
                    continue;
                }
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
