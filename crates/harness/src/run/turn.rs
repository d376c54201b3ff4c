//! One turn: the request, the answer, and its calls. What was asked and answered is recorded before anything follows from it, and an
//! answer that comes after the run was asked to end is recorded and not executed (engine E10.9).

use super::RunError;
use super::driver::Loop;
use super::taken::{Taken, taken};
use crate::dispatch::{BatchCall, CallReport, RawArguments};
use crate::model::{ClientFault, ModelError, Turn};
use serde_json::{Map, Value, json};
use std::ops::Range;
use traderharness_contract::ErrorCode;
use traderharness_replay::{Message, Record, Request, Response, ToolCall};

/// How far the calls of an assistant message came, for the stop record of a run that ends among them.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Ids of calls that were not made.
    not_run: Vec<String>,
    /// Calls that may change something, with whether they did: `true`, `false` or `"unknown"` (spec/seeds.md A4.8).
    effects: Vec<Value>,
}

impl Loop<'_> {
    pub(super) fn check_cancelled(&self) -> Result<(), RunError> {
        if self.settings.cancel.is_cancelled() { Err(RunError::Cancelled) } else { Ok(()) }
    }

    /// Asks the model with what it is shown of the conversation so far; `extra` is appended to the request only.
    pub(super) async fn ask(&mut self, tools: Vec<Value>, extra: Option<String>) -> Result<Taken, RunError> {
        if self.compacts && self.context.is_due(&self.messages) {
            self.compact().await?;
        }
        let mut messages = if self.compacts { self.context.view(&self.messages) } else { self.messages.clone() };
        messages.extend(extra.map(Message::user));
        let turn = self.turn();
        let response = self.exchange(messages, tools.clone()).await?;
        self.iteration += 1;
        self.observer.answer(self.session, &response);
        let taken = taken(&response, &tools, turn);
        self.messages.push(taken.said.clone());
        self.progress = Progress::default();
        self.progress.not_run.extend(taken.calls.iter().map(|call| call.id.clone()));
        self.check_cancelled()?;
        Ok(taken)
    }

    fn turn(&self) -> Turn {
        Turn { day_index: self.session.day_index(), point: self.session.clock().point, iteration: self.iteration }
    }

    /// One request and its answer, recorded, within the budgets of the run.
    pub(super) async fn exchange(&mut self, messages: Vec<Message>, tools: Vec<Value>) -> Result<Response, RunError> {
        self.check_cancelled()?;
        self.settings.budgets.before_request(&self.used, self.settings.stopwatch.as_deref())?;
        let mut request = Request::new(&self.settings.model, self.session.contract().name());
        request.sampling = self.settings.sampling.clone();
        request.tools = tools;
        request.messages = messages;
        let turn = self.turn();
        let step = self.used.requests;
        let scope = self.scope.clone();
        self.session.append(Record::ModelRequest {
            scope: scope.clone(),
            step: step as usize,
            request_sha256: request.fingerprint(),
            messages: request.messages.len(),
        })?;
        let response = self.client.complete_in(&scope, &request, turn).await.map_err(|source| match source {
            ModelError::Client(ClientFault::Interrupted) => RunError::Cancelled,
            source => RunError::Model { step, source },
        })?;
        self.used.requests += 1;
        self.requests += 1;
        self.session.append(Record::ModelResponse { scope, step: step as usize, response: response.clone() })?;
        self.used.spending.count(&request, &response, self.settings.prices.as_ref());
        Ok(response)
    }

    /// Runs the calls of one assistant message: neighbouring reads as one batch, everything else alone and in order (engine E10.3).
    /// Results are said in the order in which the calls were run. That is the order of the calls, except under a contract that runs
    /// those that only read before the others. Reports come in the order of the calls under every contract.
    pub(super) fn answer(&mut self, calls: &[ToolCall]) -> Result<Vec<CallReport>, RunError> {
        let order = run_order(calls, |name| self.session.reads_first(name));
        let run: Vec<ToolCall> = order.iter().map(|at| calls[*at].clone()).collect();
        let mut reports: Vec<(usize, CallReport)> = order.into_iter().zip(self.run_in_order(&run)?).collect();
        reports.sort_by_key(|(at, _)| *at);
        Ok(reports.into_iter().map(|(_, report)| report).collect())
    }

    fn run_in_order(&mut self, calls: &[ToolCall]) -> Result<Vec<CallReport>, RunError> {
        self.session.begin_message();
        let mut reports = Vec::with_capacity(calls.len());
        let batches = batches(calls, |name| self.session.is_read(name));
        for batch in batches {
            self.check_cancelled()?;
            self.settings.budgets.before_call(&self.used, self.settings.stopwatch.as_deref())?;
            // A batch that is larger than what is left runs as far as the budget goes; the next look at it stops the run.
            let left = usize::try_from(self.settings.budgets.calls_left(&self.used)).unwrap_or(usize::MAX);
            let whole = batch.len();
            let batch = &calls[batch];
            let batch = &batch[..batch.len().min(left)];
            let asked: Vec<BatchCall<'_>> = batch
                .iter()
                .map(|call| BatchCall { id: &call.id, name: &call.name, arguments: RawArguments::Text(&call.arguments) })
                .collect();
            let answered = self.session.call_batch(asked);
            if let Err(stop) = &answered {
                self.progress.note_stop(batch, stop);
            }
            for (call, report) in batch.iter().zip(answered?) {
                self.take(call, report, &mut reports);
            }
            if batch.len() < whole {
                self.settings.budgets.before_call(&self.used, self.settings.stopwatch.as_deref())?;
            }
        }
        self.session.end_message();
        Ok(reports)
    }

    fn take(&mut self, call: &ToolCall, report: CallReport, reports: &mut Vec<CallReport>) {
        self.used.calls += 1;
        self.counts.count(&report);
        self.run_counts.count(&report);
        self.progress.not_run.retain(|id| *id != call.id);
        if report.effect.is_some_and(|effect| !effect.is_read()) {
            let committed = match report.code {
                None => Value::Bool(true),
                Some(ErrorCode::ToolTimeout | ErrorCode::OrderOutcomeUnknown) => "unknown".into(),
                Some(_) => Value::Bool(false),
            };
            self.progress.effects.push(json!({ "call_id": call.id, "tool": call.name, "effect_committed": committed }));
        }
        self.observer.call(self.session, &report);
        self.messages.push(Message::tool(&call.id, &report.text));
        reports.push(report);
    }

    /// Facts of the message during which a run stopped; `None` when it stopped between messages.
    pub(super) fn stop_facts(&self) -> Option<Map<String, Value>> {
        let Progress { not_run, effects } = &self.progress;
        if not_run.is_empty() {
            return None;
        }
        Some(Map::from_iter([("calls_not_run".to_owned(), json!(not_run)), ("effects".to_owned(), json!(effects))]))
    }
}

impl Progress {
    /// Notes the call at which a session stopped, when it is told which.
    fn note_stop(&mut self, batch: &[ToolCall], stop: &crate::SessionError) {
        if let crate::SessionError::Interrupted { call_id, tool, effect_committed } = stop
            && batch.iter().any(|call| call.id == *call_id)
        {
            self.effects.push(json!({ "call_id": call_id, "tool": tool, "effect_committed": effect_committed.as_value() }));
        }
    }
}

/// Places of the calls of a message in the order in which they are run: those that go first, then the others, each in their order.
fn run_order(calls: &[ToolCall], goes_first: impl Fn(&str) -> bool) -> Vec<usize> {
    let (mut first, then): (Vec<usize>, Vec<usize>) = (0..calls.len()).partition(|at| goes_first(&calls[*at].name));
    first.extend(then);
    first
}

/// The calls of a message in batches: maximal runs of neighbouring reads, and every other call by itself (spec/seeds.md B5.1).
pub(super) fn batches(calls: &[ToolCall], is_read: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
    let mut batches: Vec<(Range<usize>, bool)> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let read = is_read(&call.name);
        match batches.last_mut() {
            Some((batch, true)) if read => batch.end = at + 1,
            _ => batches.push((at..at + 1, read)),
        }
    }
    batches.into_iter().map(|(batch, _)| batch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec/versions.md: message order of the first versions
    #[test]
    fn reads_go_first_where_the_contract_says_so() {
        let check = |names: &str, first: char, expected: &str| {
            let names: Vec<&str> = names.split_whitespace().collect();
            let calls: Vec<ToolCall> = names.iter().map(|name| ToolCall::new("id", *name, "{}")).collect();
            let found = run_order(&calls, |name| name.starts_with(first)).into_iter().map(|at| names[at]).collect::<Vec<_>>();
            assert_eq!(found.join(" "), expected);
        };
        check("W1 R1 W2 R2", 'R', "R1 R2 W1 W2");
        check("W1 R1 W2 R2", 'X', "W1 R1 W2 R2");
        check("", 'R', "");
    }

    // spec/seeds.md B5.1: unknown effect is no read
    #[test]
    fn neighbouring_reads_form_a_batch_and_everything_else_runs_alone() {
        let check = |names: &str, expected: &[&str]| {
            let names: Vec<&str> = names.split_whitespace().collect();
            let calls: Vec<ToolCall> = names.iter().map(|name| ToolCall::new("id", *name, "{}")).collect();
            let found = batches(&calls, |name| name.starts_with('R')).into_iter().map(|batch| names[batch].join(" "));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{names:?}");
        };
        check("R1 R2 W1 R3 W2 R4 R5", &["R1 R2", "W1", "R3", "W2", "R4 R5"]);
        check("W1 W2 ? R1", &["W1", "W2", "?", "R1"]);
        check("R1", &["R1"]);
        check("", &[]);
    }
}
