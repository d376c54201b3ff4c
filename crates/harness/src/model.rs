//! Model clients: the trait, the scripted client, and the client that replays. The one that records is in [`crate::resume`].

pub use crate::client_fault::ClientFault;
use crate::script::{Otherwise, Script, ScriptError};
use async_trait::async_trait;
use serde_json::json;
use traderharness_market::DecisionPoint;
use traderharness_replay::cassette::DEFAULT_SCOPE;
use traderharness_replay::{Message, RecordingError, Replay, ReplayError, Request, Response, ToolCall};

/// Where in the run a request is made. Scripted clients use it; a real model sees only the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// 0 for the first day.
    pub day_index: u32,
    /// Decision point.
    pub point: DecisionPoint,
    /// Model turn at this decision point, from 0.
    pub iteration: u32,
}

/// One of several requests that are made at the same time.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Who asks.
    pub scope: &'a str,
    /// The request.
    pub request: &'a Request,
    /// Where in the run.
    pub turn: Turn,
}

/// Stands between the id of a card and the role of one of its advisors in a scope (engine E13.3).
const ADVISOR: &str = "__advisor_";

/// Scope of the agent of a card that has a committee.
pub fn executor_scope(card: &str) -> String {
    format!("{card}__executor")
}

/// Scope of an advisor.
pub fn advisor_scope(card: &str, role: &str) -> String {
    format!("{card}{ADVISOR}{role}")
}

/// Role of the advisor a scope belongs to; `None` for the agent itself.
pub fn advisor_role(scope: &str) -> Option<&str> {
    scope.rsplit_once(ADVISOR).map(|(_, role)| role)
}

/// A model could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The script ended or is faulty.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The recording and the run disagree.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The recording cannot be written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A model outside of this process did not answer.
    #[error(transparent)]
    Client(#[from] ClientFault),
    /// It did not answer when the run was recorded, and the run went on.
    #[error("the model did not answer when the run was recorded ({why})")]
    Unanswered {
        /// Why, in stable names.
        why: String,
    },
}

impl ModelError {
    /// Why nobody answered, in the stable names that a recording holds, when this is no more than the silence of a model: a run can go
    /// on without an advisor. `None` for what must stop a run.
    pub fn silence(&self) -> Option<String> {
        match self {
            Self::Client(ClientFault::GaveUp { last, .. }) => Some(last.kind().to_owned()),
            Self::Client(fault) => Some(fault.kind().to_owned()),
            Self::Unanswered { why } => Some(why.clone()),
            Self::Script(_) | Self::Replay(_) | Self::Recording(_) => None,
        }
    }
}

/// Something that answers requests.
#[async_trait]
pub trait ModelClient: Send {
    /// Answers one request.
    ///
    /// # Errors
    /// [`ModelError`]; the run stops and keeps what it has.
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError>;

    /// Answers one request of a scope. A client that tells its askers apart, or records, overrides this.
    ///
    /// # Errors
    /// As [`ModelClient::complete`].
    async fn complete_in(&mut self, scope: &str, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        let _ = scope;
        self.complete(request, turn).await
    }

    /// Answers requests of several askers that do not wait for each other; the answers are in the order of the requests, whoever was
    /// ready first. A client that can ask at the same time overrides this.
    async fn complete_all(&mut self, asked: &[Asked<'_>]) -> Vec<Result<Response, ModelError>> {
        let mut answers = Vec::with_capacity(asked.len());
        for one in asked {
            answers.push(self.complete_in(one.scope, one.request, one.turn).await);
        }
        answers
    }
}

/// Plays a resolved [`Script`]. Its answer depends on the request and the turn alone, so an interrupted run can go on with a new client.
#[derive(Debug, Clone)]
pub struct ScriptedClient {
    script: Script,
}

impl ScriptedClient {
    /// A client over a script whose codes are resolved.
    pub const fn new(script: Script) -> Self {
        Self { script }
    }

    /// An advisor's answer. When its script says no more, it has nothing to add.
    fn advise(&self, role: &str, turn: Turn) -> Result<Response, ModelError> {
        match self.script.advisor_turn(role, turn.day_index, turn.point, turn.iteration as usize) {
            Some(scripted) => Ok(scripted_answer(scripted, turn)),
            None if self.script.otherwise == Otherwise::Stop => Err(ScriptError::AdvisorEnded {
                role: role.to_owned(),
                day: turn.day_index as usize + 1,
                point: turn.point.to_string(),
            }
            .into()),
            None => Ok(Response::new(Message::assistant("Nothing to add.", &[]))),
        }
    }
}

/// A turn of a script as a model's answer. Ids are unique in the conversation, which is one day.
fn scripted_answer(scripted: &crate::script::Turn, turn: Turn) -> Response {
    let calls: Vec<ToolCall> = scripted
        .calls
        .iter()
        .enumerate()
        .map(|(n, c)| {
            let text = c.raw.clone().unwrap_or_else(|| c.args.clone().unwrap_or_else(|| json!({})).to_string());
            ToolCall::new(call_id(turn, n), &c.tool, text)
        })
        .collect();
    Response::new(Message::assistant(&scripted.say, &calls))
}

fn call_id(turn: Turn, n: usize) -> String {
    format!("{}-{}-{}", turn.point, turn.iteration + 1, n + 1)
}

#[async_trait]
impl ModelClient for ScriptedClient {
    async fn complete_in(&mut self, scope: &str, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        match advisor_role(scope) {
            Some(role) => self.advise(role, turn),
            None => self.complete(request, turn).await,
        }
    }

    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        // Without a tool on offer the model is asked for notes on the conversation, which no script foresees.
        if request.tools.is_empty() {
            return Ok(Response::new(Message::assistant("A scripted run takes no notes.", &[])));
        }
        if let Some(scripted) = self.script.turn(turn.day_index, turn.point, turn.iteration as usize) {
            return Ok(scripted_answer(scripted, turn));
        }
        if self.script.otherwise == Otherwise::Stop {
            return Err(ScriptError::Ended { day: turn.day_index as usize + 1, point: turn.point.to_string() }.into());
        }
        let (tool, args) = if turn.point == DecisionPoint::Close2 {
            ("finish_day", json!({ "summary": "No further action." }))
        } else if offers(request, "complete_phase") {
            ("complete_phase", json!({ "decision": "monitor", "summary": "No further action." }))
        } else {
            return Ok(Response::new(Message::assistant("No further action.", &[])));
        };
        Ok(Response::new(Message::assistant("", &[ToolCall::new(call_id(turn, 0), tool, args.to_string())])))
    }
}

fn offers(request: &Request, tool: &str) -> bool {
    request.tools.iter().any(|t| t.pointer("/function/name").and_then(serde_json::Value::as_str) == Some(tool))
}

/// Answers from a recording, each scope strictly in order; a request that differs stops the run. Never asks a live model.
#[derive(Debug)]
pub struct ReplayClient {
    replay: Replay,
}

impl ReplayClient {
    /// Plays a recording: a [`Replay`] of all its scopes, or the [`traderharness_replay::Player`] of one.
    pub fn new(replay: impl Into<Replay>) -> Self {
        Self { replay: replay.into() }
    }

    /// The recording as far as it was played, to check that every answer was used.
    pub fn into_player(self) -> Replay {
        self.replay
    }

    /// The scope as the recording calls it: a recording of one agent may have it under any name.
    fn recorded_as(&self, scope: &str) -> String {
        let mut scopes = self.replay.scopes();
        match (scopes.next(), scopes.next()) {
            (Some(only), None) if scope == DEFAULT_SCOPE => only.to_owned(),
            _ => scope.to_owned(),
        }
    }
}

#[async_trait]
impl ModelClient for ReplayClient {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        self.complete_in(DEFAULT_SCOPE, request, turn).await
    }

    async fn complete_in(&mut self, scope: &str, request: &Request, _: Turn) -> Result<Response, ModelError> {
        let scope = self.recorded_as(scope);
        Ok(self.replay.next(&scope, request)?)
    }

    async fn complete_all(&mut self, asked: &[Asked<'_>]) -> Vec<Result<Response, ModelError>> {
        let recorded =
            |ended: Result<Result<Response, String>, ReplayError>| ended?.map_err(|why| ModelError::Unanswered { why });
        asked.iter().map(|one| recorded(self.replay.next_or_failure(&self.recorded_as(one.scope), one.request))).collect()
    }
}
