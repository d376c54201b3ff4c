//! Rows for supervised training: a conversation in OpenAI chat shape, the tools that were offered, and what the run was.

use super::timeline::Place;
use super::{Asked, EXPORT_SCHEMA_VERSION, ExportError, Facts, Recorded};
use crate::request::{Message, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How much of a run is one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Per {
    /// One answer: everything the model was sent, and the answer.
    #[default]
    Turn,
    /// One day of one scope: the conversation up to its last answer. Where the conversation was rewritten during the day, a row for
    /// each part.
    Day,
}

impl Per {
    const fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Day => "day",
        }
    }
}

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SftRow {
    /// Messages in OpenAI chat shape, oldest first; the last one is the answer of the model.
    #[schemars(with = "Vec<serde_json::Map<String, Value>>", length(min = 1))]
    pub messages: Vec<Value>,
    /// Tools offered, in OpenAI chat shape.
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub tools: Vec<Value>,
    /// What the row is of.
    pub metadata: SftMetadata,
}

/// What a row is of.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SftMetadata {
    /// Schema of the row.
    #[schemars(range(min = 1))]
    pub schema_version: u32,
    /// Id of the run: the beginning of the digest of its recording.
    pub run: String,
    /// The run.
    #[serde(flatten)]
    pub facts: Facts,
    /// Who asked: the agent, its executor, an advisor.
    pub scope: String,
    /// `turn` or `day`.
    #[schemars(extend("enum" = ["turn", "day"]))]
    pub per: String,
    /// Number of the last model call of the row in the run, from 0.
    pub step: usize,
    /// Day of the run, from 1; null without the run's trajectory.
    pub day_index: Option<u32>,
    /// The day as the run shows it: `D+0`, or YYYY-MM-DD.
    pub day: Option<String>,
    /// Decision point of the last model call.
    pub point: Option<String>,
    /// Exchange time of that point, HH:MM.
    pub time: Option<String>,
    /// Part of the day, from 0: the conversation was rewritten between parts. 0 for turns.
    pub part: u32,
    /// SHA-256 of the whole last request, as the recording has it.
    pub request_sha256: String,
    /// Why the model stopped: `stop`, `tool_calls`, `length` ...
    pub finish_reason: String,
    /// Return of the account on that day, in percent.
    pub day_return_pct: Option<f64>,
    /// Return of the whole run, in percent; null when it did not come to its end.
    pub return_pct: Option<f64>,
    /// Whether something was taken out of the row that looked like a credential.
    pub redacted: bool,
}

/// The schema of a row.
pub fn sft_schema() -> Value {
    super::schema_of::<SftRow>("traderharness SFT row", "One row of `traderharness export sft`.")
}

/// Messages of the model in a conversation.
fn answers<'m>(messages: impl Iterator<Item = &'m Value>) -> usize {
    messages.filter(|message| message.get("role").and_then(Value::as_str) == Some("assistant")).count()
}

/// A row that waits for what follows.
struct Waiting {
    row: SftRow,
    place: Place,
}

/// Makes the rows of a run. Calls without an answer make none.
///
/// # Errors
/// [`ExportError`], and what `emit` fails with.
pub fn sft<E: From<ExportError>>(
    recorded: &Recorded<'_>,
    per: Per,
    mut emit: impl FnMut(SftRow) -> Result<(), E>,
) -> Result<(), E> {
    if per == Per::Day && !recorded.timeline.known {
        return Err(ExportError::NoTimeline.into());
    }
    let mut open: BTreeMap<String, Waiting> = BTreeMap::new();
    recorded.each(|asked| {
        let place = recorded.timeline.place(asked.call.step);
        let mut part = 0;
        if per == Per::Day
            && let Some(waiting) = open.get(&asked.call.scope)
        {
            let same_day = waiting.place.day_index == place.day_index;
            // It goes on while the model still sees all its answers; messages that were for one request only may go.
            let goes_on = answers(asked.messages.iter().map(|message| &message.0)) >= answers(waiting.row.messages.iter());
            if !same_day || !goes_on {
                part = if same_day { waiting.row.metadata.part + 1 } else { 0 };
                if let Some(waiting) = open.remove(&asked.call.scope) {
                    emit(waiting.row)?;
                }
            } else {
                part = waiting.row.metadata.part;
            }
        }
        let Some(response) = &asked.response else { return Ok(()) };
        let row = row(&asked, response, per, &place, part)?;
        match per {
            Per::Turn => emit(row),
            Per::Day => {
                open.insert(asked.call.scope.clone(), Waiting { row, place });
                Ok(())
            }
        }
    })?;
    // Days that were still open, in the order of their last calls.
    let mut rest: Vec<SftRow> = open.into_values().map(|waiting| waiting.row).collect();
    rest.sort_by_key(|row| row.metadata.step);
    rest.into_iter().try_for_each(emit)
}

fn row(asked: &Asked<'_>, response: &Response, per: Per, place: &Place, part: u32) -> Result<SftRow, ExportError> {
    let request = asked.request()?;
    let system = request.system.map(Message::system);
    let messages = system.into_iter().chain(request.messages).chain([response.message.clone()]).map(Value::from).collect();
    let timeline = &asked.recorded.timeline;
    Ok(SftRow {
        messages,
        tools: request.tools,
        metadata: SftMetadata {
            schema_version: EXPORT_SCHEMA_VERSION,
            run: asked.recorded.run.clone(),
            facts: asked.recorded.facts.clone(),
            scope: asked.call.scope.clone(),
            per: per.name().to_owned(),
            step: asked.call.step,
            day_index: place.day_index,
            day: place.day.clone(),
            point: place.point.clone(),
            time: place.time.clone(),
            part,
            request_sha256: asked.call.request_sha256.to_string(),
            finish_reason: response.finish_reason.clone(),
            day_return_pct: timeline.day_return(place),
            return_pct: timeline.return_pct,
            redacted: false,
        },
    })
}
