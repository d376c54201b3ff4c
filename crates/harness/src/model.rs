//! Model clients: the trait, the scripted client, and the client that replays. The one that records is in [`crate::resume`].

pub use crate::client_fault::ClientFault;
use crate::script::{Otherwise, Script, ScriptError};
use async_trait::async_trait;
use serde_json::json;
use traderharness_market::DecisionPoint;
use traderharness_replay::{Message, Player, RecordingError, ReplayError, Request, Response, ToolCall};

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
}

/// Something that answers requests.
#[async_trait]
pub trait ModelClient: Send {
    /// Answers one request.
    ///
    /// # Errors
    /// [`ModelError`]; the run stops and keeps what it has.
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError>;
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
}

#[async_trait]
impl ModelClient for ScriptedClient {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        // Without a tool on offer the model is asked for notes on the conversation, which no script foresees.
        if request.tools.is_empty() {
            return Ok(Response::new(Message::assistant("A scripted run takes no notes.", &[])));
        }
        // Ids are unique in the conversation, which is one day.
        let id = |n: usize| format!("{}-{}-{}", turn.point, turn.iteration + 1, n + 1);
        if let Some(scripted) = self.script.turn(turn.day_index, turn.point, turn.iteration as usize) {
            let calls: Vec<ToolCall> = scripted
                .calls
                .iter()
                .enumerate()
                .map(|(n, c)| {
                    let text = c.raw.clone().unwrap_or_else(|| c.args.clone().unwrap_or_else(|| json!({})).to_string());
                    ToolCall::new(id(n), &c.tool, text)
                })
                .collect();
            return Ok(Response::new(Message::assistant(&scripted.say, &calls)));
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
        Ok(Response::new(Message::assistant("", &[ToolCall::new(id(0), tool, args.to_string())])))
    }
}

fn offers(request: &Request, tool: &str) -> bool {
    request.tools.iter().any(|t| t.pointer("/function/name").and_then(serde_json::Value::as_str) == Some(tool))
}

/// Answers from a recording, strictly in order; a request that differs stops the run. Never asks a live model.
#[derive(Debug)]
pub struct ReplayClient {
    player: Player,
}

impl ReplayClient {
    /// Wraps a player.
    pub const fn new(player: Player) -> Self {
        Self { player }
    }

    /// The player, to check that every answer was used.
    pub fn into_player(self) -> Player {
        self.player
    }
}

#[async_trait]
impl ModelClient for ReplayClient {
    async fn complete(&mut self, request: &Request, _: Turn) -> Result<Response, ModelError> {
        Ok(self.player.next(request)?)
    }
}
