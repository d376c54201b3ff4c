//! `tools/list` and `tools/call`: what is offered now, and one call from request to answer.
//!
//! A success carries the envelope as `structuredContent` and the same value as text. A failure is an `isError` result that carries its
//! record as text alone: of the widest clients one checks whatever structured content it finds against the tool's output schema, so an
//! error record there would be refused before a model could read how to repair the call.

use super::desk::{self, Desk};
use super::news::Change;
use super::seat::{REVISION, SESSION, Said, Seat};
use super::{Door, drawn_key, resources, shown};
use crate::{Capability, Invocation, OfferedTool, Refusal, Reply, ReplyKind, Watch};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, MetaObject, ProgressNotificationParam, ProgressToken, RequestMetaObject,
    Tool, ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use traderharness_contract::{Effect, FailureClass, algebra};

/// `_meta` key of the idempotency key of a call.
const KEY: &str = "traderharness/idempotency-key";
/// `_meta` key of what was answered before under the same key.
const REPLAYED: &str = "traderharness/replayed";
/// `_meta` key of a listed tool: whether it can be called at the decision point.
const ON_OFFER: &str = "traderharness/on-offer";
/// The door's own tool: the brief for clients that read no resources.
pub(super) const READ_BRIEF: &str = "read_brief";
/// Time for which a long call keeps a place of the door; from then on the door looks for its end.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at a job.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LONGEST_LOOK: Duration = Duration::from_millis(500);
/// Between two steps that a client is told of a job that says nothing itself.
const STEP: Duration = Duration::from_secs(1);

/// Tools that can be called now or end another decision point of the day, in catalog order, and the door's own. Codex reads the list once
/// in a connection, and Claude Code a moment after a call has answered: neither may miss the tool that ends the day.
pub(super) async fn list(door: &Door, seat: &Seat) -> Result<Vec<Tool>, Refusal> {
    let (caller, session) = (Arc::clone(&seat.caller), seat.session.clone());
    door.run(&seat.caller, move |house| {
        let mut tools: Vec<Tool> = house.listed(&caller, &session)?.into_iter().map(tool).collect();
        tools.push(read_brief());
        Ok(tools)
    })
    .await
}

fn tool(offered: OfferedTool<'_>) -> Tool {
    let capability = offered.capability;
    let name = capability.tool.clone().unwrap_or_else(|| capability.name.replace('.', "_"));
    let (input, sentences) = shown::input(&offered.input_schema);
    let mut description = offered.description;
    for sentence in sentences {
        description.push('\n');
        description.push_str(&sentence);
    }
    let mut meta = MetaObject::new();
    meta.insert("traderharness/capability".into(), capability.name.as_str().into());
    meta.insert("traderharness/revision".into(), capability.revision.as_str().into());
    meta.insert(ON_OFFER.into(), offered.on_offer.into());
    let title = title(&name);
    Tool::new(name, description, input)
        .with_title(title.clone())
        .with_raw_output_schema(Arc::new(shown::output(&offered.envelope_schema)))
        .with_annotations(annotations(title, capability.effect))
        .with_meta(meta)
}

/// `get_kline` as people read it: `Get kline`.
fn title(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Hints by the effect that the host declares; nothing a tool says of itself changes them.
fn annotations(title: String, effect: Effect) -> ToolAnnotations {
    let reads = effect.is_read();
    ToolAnnotations::with_title(title)
        .read_only(reads)
        .destructive(effect == Effect::Financial)
        .idempotent(effect == Effect::Read)
        .open_world(false)
}

fn read_brief() -> Tool {
    let input = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let output = json!({
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "description": "Session."},
            "day": {"type": "string", "description": "Today as it is shown in this session."},
            "decision_point": {"type": "string", "description": "Decision point that the clock stands at."},
            "finished": {"type": "boolean", "description": "True when the session has ended."},
            "brief": {"type": "string", "description": "Task, memory, and brief of that decision point."}
        },
        "required": ["session_id", "day", "decision_point", "finished", "brief"],
        "additionalProperties": false
    });
    let object = |value: Value| Arc::new(value.as_object().cloned().unwrap_or_default());
    let description = "Gives the task, what you remember, and the brief of the current decision point.\n\
                       - Call it first, and again after every complete_phase and finish_day: each moves the clock.\n\
                       - It changes nothing and costs nothing.";
    Tool::new(READ_BRIEF, description, object(input))
        .with_title(title(READ_BRIEF))
        .with_raw_output_schema(object(output))
        .with_annotations(annotations(title(READ_BRIEF), Effect::Read))
}

/// One call.
///
/// # Errors
/// An error of the protocol for a tool that does not exist and for a malformed `_meta`; everything else is a result.
pub(super) async fn call(
    desk: &Desk,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let door = &desk.door;
    let seat = match desk.seat(context).await {
        Ok(seat) => seat,
        Err(refusal) => return Ok(failed(&refusal, None)),
    };
    let arguments = request.arguments.unwrap_or_default();
    if request.name == READ_BRIEF {
        return Ok(brief(door, &seat, &arguments).await.unwrap_or_else(|refusal| failed(&refusal, Some(&seat))));
    }
    let Some(capability) = door.house().capability(&request.name) else { return Err(unknown_tool(&request.name)) };
    let key = match word(&context.meta, KEY)? {
        Some(key) => key,
        None => drawn_key().map_err(|refusal| desk::refused(&refusal))?,
    };
    let said = Said::of(&context.meta, &context.extensions);
    word(&context.meta, REVISION)?;
    seat.mark_used();
    let invocation = Invocation {
        agent_revision_id: said.revision,
        session_id: Some(seat.session.clone()),
        tool: request.name.into_owned(),
        input: Value::Object(arguments),
        job: false,
    };
    let reply = match invoke(door, &seat, invocation, key, context).await {
        Ok(reply) => reply,
        Err(refusal) => return Ok(failed(&refusal, Some(&seat))),
    };
    let body = within_limit(capability, reply.body, &reply.text);
    let mut result = CallToolResult::success(vec![ContentBlock::text(reply.text)]);
    result.structured_content = Some(body);
    let mut meta = about(&seat);
    if reply.replayed {
        meta.insert(REPLAYED.into(), true.into());
    }
    result.meta = Some(meta);
    if let Some(completed) = &reply.completed {
        result.content.push(ContentBlock::text(next_point(door, &seat, completed.finished).await));
    }
    if !reply.replayed {
        let change = Change { from: desk.connection, clock: reply.completed.is_some(), account: !capability.effect.is_read() };
        if change.clock || change.account {
            desk.tell(&seat, change, &context.peer).await;
        }
    }
    Ok(result)
}

/// The structured content of a result. A result that is too long for a model has a shorter text; clients that show a model the structured
/// content and not the text get the shorter one too, as long as it still is what the tool's output schema says.
fn within_limit(capability: &Capability, body: Value, text: &str) -> Value {
    let Ok(short) = serde_json::from_str::<Value>(text) else { return body };
    if short == body {
        return body;
    }
    if algebra::fits(&capability.envelope_schema, &short) { short } else { body }
}

/// Calls the house, and waits for the end of what became a job.
async fn invoke(
    door: &Door,
    seat: &Seat,
    invocation: Invocation,
    key: String,
    context: &RequestContext<RoleServer>,
) -> Result<Reply, Refusal> {
    let (steps, hears) = mpsc::channel::<(u64, String)>(16);
    let token = context.meta.get_progress_token();
    let watch = Watch {
        progress: token.is_some().then(|| {
            // A client that is slow to hear misses steps, never the result.
            Arc::new(move |step: u64, words: &str| _ = steps.try_send((step, words.to_owned()))) as crate::reply::Progress
        }),
        patience: Some(PATIENCE),
        ..Watch::default()
    };
    let cancel = watch.cancel.clone();
    let caller = Arc::clone(&seat.caller);
    let working = door.run(&seat.caller, move |house| house.invoke(&caller, &invocation, &key, &watch));
    let mut teller = Teller { peer: &context.peer, token, told: 0 };
    let reply = teller
        .while_working(working, hears, context, || {
            cancel.cancel();
        })
        .await?;
    match reply.kind {
        ReplyKind::Complete => Ok(reply),
        ReplyKind::Accepted => finish_job(door, seat, reply, teller, context).await,
    }
}

/// Tells a client how far its call has come, in numbers that only grow.
struct Teller<'a> {
    peer: &'a Peer<RoleServer>,
    token: Option<ProgressToken>,
    told: u64,
}

impl Teller<'_> {
    async fn tell(&mut self, step: u64, words: String) {
        let Some(token) = &self.token else { return };
        self.told = step.max(self.told + 1);
        // Counts of steps are small: the number is exact.
        let told = ProgressNotificationParam::new(token.clone(), self.told as f64).with_message(words);
        let _ = tokio::time::timeout(desk::TELLING, self.peer.notify_progress(told)).await;
    }

    async fn while_working<T>(
        &mut self,
        working: impl Future<Output = T>,
        mut hears: mpsc::Receiver<(u64, String)>,
        context: &RequestContext<RoleServer>,
        cancel: impl Fn(),
    ) -> T {
        tokio::pin!(working);
        let mut cancelled = false;
        loop {
            tokio::select! {
                biased;
                done = &mut working => return done,
                () = context.ct.cancelled(), if !cancelled => {
                    cancelled = true;
                    cancel();
                }
                Some((step, words)) = hears.recv() => self.tell(step, words).await,
            }
        }
    }
}

async fn finish_job(
    door: &Door,
    seat: &Seat,
    accepted: Reply,
    mut teller: Teller<'_>,
    context: &RequestContext<RoleServer>,
) -> Result<Reply, Refusal> {
    let Some(id) = accepted.body.get("job_id").and_then(Value::as_str).map(str::to_owned) else {
        return Err(Refusal::new(
            FailureClass::DependencyUnavailable,
            503,
            "internal",
            "The call became a job without an id.",
            false,
        ));
    };
    teller.tell(1, format!("Running as {id}; traderharness://jobs/{id} has its state.")).await;
    let (mut pause, mut quiet, mut cancelled) = (FIRST_LOOK, Duration::ZERO, false);
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = context.ct.cancelled(), if !cancelled => {
                cancelled = true;
                let (caller, job) = (Arc::clone(&seat.caller), id.clone());
                let _ = door.run(&seat.caller, move |house| house.cancel_job(&caller, &job)).await;
            }
        }
        let (caller, job) = (Arc::clone(&seat.caller), id.clone());
        let state = door.run(&seat.caller, move |house| house.job(&caller, &job)).await?;
        if let Some(result) = state.body.get("result").filter(|result| !result.is_null()) {
            let json = traderharness_contract::json::text;
            // A result that is too long for a model has a text of its own.
            let text = if state.text == json(&state.body) { json(result) } else { state.text.clone() };
            return Ok(Reply { kind: ReplyKind::Complete, body: result.clone(), text, replayed: accepted.replayed, ..state });
        }
        if let Some(record) = state.body.get("error").filter(|error| !error.is_null()) {
            return Err(recorded(record));
        }
        let ended = state.body.get("state").and_then(Value::as_str).filter(|state| !matches!(*state, "accepted" | "running"));
        if let Some(ended) = ended {
            let words = format!("The call ended as {ended}; nothing of it was kept.");
            return Err(Refusal::new(FailureClass::DependencyUnavailable, 503, ended, words, true));
        }
        quiet += pause;
        if quiet >= STEP {
            quiet = Duration::ZERO;
            teller.tell(0, "Still running.".to_owned()).await;
        }
        pause = (pause * 2).min(LONGEST_LOOK);
    }
}

/// A refusal out of the record that a job ended with.
fn recorded(record: &Value) -> Refusal {
    let word = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
    let class = serde_json::from_value(record.get("error_code").cloned().unwrap_or_default());
    let code = record.pointer("/details/code").and_then(Value::as_str).unwrap_or("internal");
    Refusal {
        details: record.get("details").cloned().unwrap_or_else(|| Value::Object(Map::new())),
        correction: record.get("correction").cloned(),
        ..Refusal::new(
            class.unwrap_or(FailureClass::DependencyUnavailable),
            422,
            code,
            word("message"),
            record.get("retryable").and_then(Value::as_bool).unwrap_or(false),
        )
    }
}

async fn brief(door: &Door, seat: &Seat, arguments: &Map<String, Value>) -> Result<CallToolResult, Refusal> {
    if !arguments.is_empty() {
        let mut refusal =
            Refusal::new(FailureClass::InvalidInput, 422, "invalid_tool_arguments", "read_brief takes no arguments.", true);
        refusal.correction = Some(json!({
            "tool": READ_BRIEF,
            "instruction": "Call read_brief with an empty object.",
            "valid_arguments_example": {},
            "received_arguments": arguments,
        }));
        return Err(refusal);
    }
    let (caller, session) = (Arc::clone(&seat.caller), seat.session.clone());
    let (texts, state) =
        door.run(&seat.caller, move |house| Ok((house.brief(&caller, &session)?, house.session(&caller, &session)?))).await?;
    let body = json!({
        "session_id": state.session_id,
        "day": state.day,
        "decision_point": state.point,
        "finished": state.finished,
        "brief": resources::markdown(&texts),
    });
    let mut result = CallToolResult::success(vec![ContentBlock::text(traderharness_contract::json::text(&body))]);
    result.structured_content = Some(body);
    result.meta = Some(about(seat));
    Ok(result)
}

/// What a model is told beside the answer of a completion.
async fn next_point(door: &Door, seat: &Seat, finished: bool) -> String {
    if finished {
        return "The session has ended: that was its last day.".to_owned();
    }
    let (caller, session) = (Arc::clone(&seat.caller), seat.session.clone());
    match door.run(&seat.caller, move |house| house.brief(&caller, &session)).await {
        Ok(texts) => resources::point_only(&texts),
        // The completion is done whatever became of the brief.
        Err(_) => "The clock has moved. Call read_brief for the new decision point.".to_owned(),
    }
}

/// A failure as a result: the record as text, so that the model reads how to repair the call.
pub(super) fn failed(refusal: &Refusal, seat: Option<&Seat>) -> CallToolResult {
    let mut record = refusal.record();
    if let (Some(seconds), Some(details)) = (refusal.retry_after, record.get_mut("details").and_then(Value::as_object_mut)) {
        details.insert("retry_after_seconds".into(), seconds.into());
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(traderharness_contract::json::text(&record))]);
    result.meta = seat.map(about);
    if let (true, Some(meta)) = (refusal.replayed, &mut result.meta) {
        meta.insert(REPLAYED.into(), true.into());
    }
    result
}

fn about(seat: &Seat) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.insert(SESSION.into(), seat.session.as_str().into());
    meta
}

fn unknown_tool(name: &str) -> ErrorData {
    let shown: String = name.chars().take(100).collect();
    let words = format!("Unknown tool: {shown}");
    let record = Refusal::new(FailureClass::UnsupportedCapability, 404, "unknown_tool", words.clone(), false).with("tool", shown);
    ErrorData::invalid_params(words, Some(record.record()))
}

/// A text of `_meta`.
fn word(meta: &RequestMetaObject, key: &str) -> Result<Option<String>, ErrorData> {
    match meta.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ErrorData::invalid_params(format!("_meta[\"{key}\"] is a text."), None)),
    }
}
