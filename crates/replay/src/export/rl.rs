//! Rows for training by reward: one model call each, with what it saw, what it did and what came of it.
//!
//! # Reward
//!
//! The change of the account in percent from a decision point to the next one at which whoever acts is asked, on the last call of the
//! first; zero on the calls before it. So what happens while nobody asks, overnight too, is of the last call before it. The worth of
//! the account is taken when a point opens, before orders that waited for it, and at the end of the run: the product of
//! `1 + reward / 100` over a run is `1 + return_pct / 100`. Advisors do not act: their reward is null. So is every reward where the
//! trajectory was not kept, and where a run broke off before the next point.

use super::timeline::advises;
use super::{Asked, EXPORT_SCHEMA_VERSION, ExportError, Facts, Recorded};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RlRow {
    /// Schema of the row.
    #[schemars(range(min = 1))]
    pub schema_version: u32,
    /// Id of the run: the beginning of the digest of its recording.
    pub episode: String,
    /// Who asked. Each scope of an episode is a sequence of steps of its own.
    pub scope: String,
    /// Number of the call in its scope, from 0.
    pub step: usize,
    /// Number of the call in the run, from 0.
    pub call: usize,
    /// Day of the run, from 1; null without the run's trajectory.
    pub day_index: Option<u32>,
    /// The day as the run shows it: `D+0`, or YYYY-MM-DD.
    pub day: Option<String>,
    /// Decision point.
    pub point: Option<String>,
    /// Exchange time of the point, HH:MM.
    pub time: Option<String>,
    /// What the model saw that it had not seen before.
    pub observation: Observation,
    /// What it did; null when the call failed.
    pub action: Option<Action>,
    /// Change of the account in percent, see the page on exports.
    pub reward: Option<f64>,
    /// Return of the whole run in percent, on the last row of each scope.
    pub return_pct: Option<f64>,
    /// The last row of its scope in a run that came to its end.
    pub done: bool,
    /// The last row of its scope in a run that did not.
    pub truncated: bool,
    /// Why the call failed; null when the model answered.
    pub error: Option<String>,
    /// Calls of the action that failed.
    pub tool_errors: Vec<ToolError>,
    /// Ids of the tool calls in the action, in order.
    pub call_ids: Vec<String>,
    /// Token ids of the whole prompt, when the client recorded them.
    pub prompt_token_ids: Option<Vec<u64>>,
    /// Token ids of the answer, when the client recorded them.
    pub token_ids: Option<Vec<u64>>,
    /// One entry per token of the answer, as the provider writes it, when the client recorded them.
    #[schemars(with = "Option<Vec<Value>>")]
    pub logprobs: Option<Vec<Value>>,
    /// The run.
    #[serde(flatten)]
    pub facts: Facts,
    /// Whether something was taken out of the row that looked like a credential; tokens and log probabilities are then null.
    pub redacted: bool,
}

/// What a model saw.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Observation {
    /// Messages of the scope's previous request that this one begins with. Its own answer is among the added ones.
    pub messages_kept: usize,
    /// Messages after them, in OpenAI chat shape. A system prompt that stands apart is the first of step 0.
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub messages_added: Vec<Value>,
    /// SHA-256 of the whole request: model, sampling, system prompt, messages, tools, contract version.
    pub request_sha256: String,
}

/// What a model did.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Action {
    /// The message in OpenAI chat shape, with its tool calls.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub message: Value,
    /// Why it stopped: `stop`, `tool_calls`, `length` ...
    pub finish_reason: String,
}

/// A tool call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ToolError {
    /// Id of the call.
    pub call_id: String,
    /// Tool.
    pub tool: String,
    /// Code of the failure, when it has one.
    pub error_code: Option<String>,
}

/// The schema of a row.
pub fn rl_schema() -> Value {
    super::schema_of::<RlRow>("traderharness RL row", "One row of `traderharness export rl`.")
}

/// Makes the rows of a run.
///
/// # Errors
/// [`ExportError`], and what `emit` fails with.
pub fn rl<E: From<ExportError>>(recorded: &Recorded<'_>, mut emit: impl FnMut(RlRow) -> Result<(), E>) -> Result<(), E> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for call in recorded.cassette.calls() {
        *left.entry(call.scope.as_str()).or_default() += 1;
    }
    let mut steps: BTreeMap<String, usize> = BTreeMap::new();
    recorded.each(|asked| {
        let step = steps.entry(asked.call.scope.clone()).or_default();
        let last = left.get(asked.call.scope.as_str()) == Some(&(*step + 1));
        let row = row(&asked, *step, last)?;
        *step += 1;
        emit(row)
    })
}

fn row(asked: &Asked<'_>, step: usize, last: bool) -> Result<RlRow, ExportError> {
    let (recorded, call) = (asked.recorded, asked.call);
    // Only the first row of a scope needs more than what was added.
    let system = if step == 0 { asked.request()?.system.map(crate::request::Message::system) } else { None };
    let kept = asked.kept.min(asked.before);
    let added = asked.messages.get(kept..).unwrap_or_default().iter().cloned();
    let place = recorded.timeline.place(call.step);
    let tokens = asked.response.as_ref().and_then(|response| response.tokens.clone()).unwrap_or_default();
    let failed = recorded.timeline.failed(call.step).iter();
    let error = || call.error.clone().unwrap_or_else(|| "no answer was recorded".to_owned());
    let complete = recorded.is_complete();
    let reward = recorded.timeline.reward_of(call.step).filter(|_| !advises(&call.scope));
    Ok(RlRow {
        schema_version: EXPORT_SCHEMA_VERSION,
        episode: recorded.run.clone(),
        scope: call.scope.clone(),
        step,
        call: call.step,
        day_index: place.day_index,
        day: place.day,
        point: place.point,
        time: place.time,
        observation: Observation {
            messages_kept: kept,
            messages_added: system.into_iter().chain(added).map(Value::from).collect(),
            request_sha256: call.request_sha256.to_string(),
        },
        action: asked
            .response
            .as_ref()
            .map(|response| Action { message: response.message.0.clone(), finish_reason: response.finish_reason.clone() }),
        reward,
        return_pct: recorded.timeline.return_pct.filter(|_| last),
        done: last && complete,
        truncated: last && !complete,
        error: asked.response.is_none().then(error),
        tool_errors: failed
            .map(|f| ToolError { call_id: f.call_id.clone(), tool: f.tool.clone(), error_code: f.error_code.clone() })
            .collect(),
        call_ids: asked.response.iter().flat_map(|r| r.message.tool_calls()).map(|call| call.id).collect(),
        prompt_token_ids: tokens.prompt_ids,
        token_ids: tokens.ids,
        logprobs: tokens.logprobs,
        facts: recorded.facts.clone(),
        redacted: false,
    })
}
