//! What of a conversation the model still sees: five layers that shrink its view, never the conversation itself (spec/seeds.md B11).
//!
//! | layer | when | what |
//! |---|---|---|
//! | 1 | estimate above 50 % of the threshold | results but the last three become `[cleared]` |
//! | 2 | above 70 % | long texts keep their beginning and end |
//! | 3 | above 100 % | [`Context::compact`]: everything but the latest messages is replaced by notes of the model |
//! | 4 | on request | layer 3 with a focus |
//! | 5 | from the second time on | the notes are updated instead of written anew |
//!
//! The loop keeps the whole conversation, in order, and asks for a view before each request. Nothing here reads a clock or a file, and
//! the same calls give the same views, so a run that is replayed or resumed sees what it saw.
//!
//! # In the loop
//!
//! A summary is an ordinary model request: the loop implements [`Summariser`] with the function that asks its model, so that each summary
//! request is recorded, counted and replayed like any other, in the scope and step order of the run. It is made without tools and with
//! the sampling of the run. What must stop the run (a replay that does not match, a spent budget, a cancel) is [`SummaryFault::Stop`];
//! what may cost a summary (no answer in time, an empty one) is [`SummaryFault::Failed`], and it must be a fact of the record, so that a
//! replay meets it too.
//!
//! ```
//! use async_trait::async_trait;
//! use traderharness_harness::context::{Context, ContextPolicy, Summariser, SummaryFault};
//! use traderharness_harness::model::{ModelClient, ModelError, Turn};
//! use traderharness_replay::{Message, Request, Response};
//!
//! struct Asks<'a> {
//!     client: &'a mut dyn ModelClient,
//!     turn: Turn,
//! }
//!
//! #[async_trait]
//! impl Summariser for Asks<'_> {
//!     type Stop = ModelError;
//!
//!     async fn summarise(&mut self, messages: Vec<Message>) -> Result<String, SummaryFault<ModelError>> {
//!         // A loop also writes the request and the answer to its trajectory here, and counts them.
//!         let request = Request { messages, ..Request::new("some-model", "v5") };
//!         let response = self.client.complete(&request, self.turn).await.map_err(SummaryFault::Stop)?;
//!         Ok(response.message.content().unwrap_or_default().to_owned())
//!     }
//! }
//!
//! // Before each request: compact when it is due, then send the view.
//! async fn messages_to_send(
//!     context: &mut Context,
//!     conversation: &[Message],
//!     hard_state: &str,
//!     asks: &mut Asks<'_>,
//! ) -> Result<Vec<Message>, Box<dyn std::error::Error>> {
//!     if context.is_due(conversation) {
//!         context.compact(conversation, asks, hard_state, None).await?;
//!     }
//!     Ok(context.view(conversation))
//! }
//! # struct Model;
//! # #[async_trait]
//! # impl ModelClient for Model {
//! #     async fn complete(&mut self, _: &Request, _: Turn) -> Result<Response, ModelError> {
//! #         Ok(Response::new(Message::assistant("## Goal\nTrade.", &[])))
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut context = Context::new(ContextPolicy { threshold: 1000, ..ContextPolicy::default() });
//! // The system prompt, the memory text and the brief stay in every view.
//! context.start(1);
//! let mut conversation = vec![Message::system("You trade.")];
//! conversation.extend((0..40).map(|n| Message::user(format!("News {n}: {}", "something happened. ".repeat(20)))));
//! # let turn = Turn { day_index: 0, point: traderharness_market::DecisionPoint::PreMarket, iteration: 0 };
//! let mut asks = Asks { client: &mut Model, turn };
//! let sent = messages_to_send(&mut context, &conversation, "No open plan.", &mut asks).await?;
//! assert_eq!(sent[0], conversation[0]);
//! assert!(sent[1].content().unwrap().contains("## Goal\nTrade."));
//! assert!(sent[1].content().unwrap().contains("No open plan."));
//! assert_eq!(sent.last(), conversation.last());
//! assert!(sent.len() < conversation.len());
//! # Ok(())
//! # }
//! ```

mod chunks;
mod estimate;
mod layers;
mod pairs;
mod summary;

pub(crate) use estimate::estimate_values;
pub use estimate::{estimate, estimate_text};
pub use pairs::{NO_RESULT, repair};

use async_trait::async_trait;
use chunks::Pieces;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use summary::Handoff;
use traderharness_replay::Message;

/// What an old result reads in a view.
pub const CLEARED: &str = "[cleared]";

/// Tokens of the smallest chunk that is tried.
const SMALLEST_CHUNK: u64 = 250;

/// When and how far a view is shrunk. Sizes in characters are Unicode scalar values; tokens are those of [`estimate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContextPolicy {
    /// Tokens a view may have before it is compacted; 0 switches all layers off.
    pub threshold: u64,
    /// Layer 1 works above this share of the threshold, percent; 0 switches it off.
    pub micro_percent: u64,
    /// Results that layer 1 keeps.
    pub keep_results: usize,
    /// Results of more characters than this are cleared.
    pub clear_over: usize,
    /// Layer 2 works above this share of the threshold, percent; 0 switches it off.
    pub collapse_percent: u64,
    /// Texts of more characters than this are folded.
    pub collapse_over: usize,
    /// Characters that stay of the beginning of a folded text.
    pub collapse_head: usize,
    /// Characters that stay of its end.
    pub collapse_tail: usize,
    /// Latest messages that layer 2 spares.
    pub spare_last: usize,
    /// Tokens of latest messages that a compaction leaves as they are; at most half the threshold is used.
    pub tail_tokens: u64,
    /// Tokens of conversation in one summary request.
    pub chunk_tokens: u64,
    /// Tools whose successful results are listed beside the notes, because they stay true.
    pub verified_tools: Vec<String>,
    /// Lines of that list, the latest ones.
    pub verified_lines: usize,
}

impl Default for ContextPolicy {
    fn default() -> Self {
        Self {
            threshold: 40_000,
            micro_percent: 50,
            keep_results: 3,
            clear_over: 100,
            collapse_percent: 70,
            collapse_over: 2_400,
            collapse_head: 900,
            collapse_tail: 500,
            spare_last: 6,
            tail_tokens: 20_000,
            chunk_tokens: 20_000,
            verified_tools: vec!["execute_code".to_owned()],
            verified_lines: 60,
        }
    }
}

/// Asks a model for a summary.
#[async_trait]
pub trait Summariser: Send {
    /// What ends the run.
    type Stop: Send;

    /// Asks with these messages and no tools; gives the text of the answer.
    ///
    /// # Errors
    /// [`SummaryFault`].
    async fn summarise(&mut self, messages: Vec<Message>) -> Result<String, SummaryFault<Self::Stop>>;
}

/// Why there is no summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummaryFault<E> {
    /// The request is larger than the model takes; it is made again with less (complaint CX-4).
    TooLarge,
    /// No answer, or none in time. The compaction goes on without it and says so.
    Failed(String),
    /// The run must end.
    Stop(E),
}

/// Keeps the whole conversation before a part of it leaves the view.
pub trait TranscriptSink: Send {
    /// Keeps the messages under a name that is used once in a run. Gives false when the run keeps them elsewhere and the name means nothing.
    ///
    /// # Errors
    /// Why they cannot be kept; the compaction is then not made.
    fn keep(&mut self, name: &str, messages: &[Message]) -> Result<bool, String>;
}

/// For runs whose trajectory holds every message anyway.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTranscript;

impl TranscriptSink for NoTranscript {
    fn keep(&mut self, _: &str, _: &[Message]) -> Result<bool, String> {
        Ok(false)
    }
}

/// A compaction was not made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompactError<E> {
    /// The transcript could not be kept. The view is as before.
    #[error("the transcript before a compaction could not be kept: {0}")]
    Transcript(String),
    /// The summariser ended the run. The view is as before.
    #[error("the run ended during a compaction")]
    Stop(E),
}

/// What a compaction did, for the record of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compaction {
    /// Messages of the conversation that left the view, by place.
    pub covered: Range<usize>,
    /// Summary requests that were answered.
    pub summaries: usize,
    /// Messages without a summary, by place; the view says so.
    pub truncated: Option<Range<usize>>,
    /// Faults of the summariser.
    pub faults: Vec<String>,
    /// Name of the transcript that was kept.
    pub transcript: Option<String>,
    /// Estimate of the view before.
    pub tokens_before: u64,
    /// Estimate of the view after.
    pub tokens_after: u64,
}

/// The messages that are not shown, and what is shown instead.
#[derive(Debug, Clone)]
struct Compacted {
    /// The first message that is shown again.
    until: usize,
    notes: Option<String>,
    message: Message,
}

/// The view of one conversation.
pub struct Context {
    policy: ContextPolicy,
    sink: Box<dyn TranscriptSink>,
    pinned: usize,
    compacted: Option<Compacted>,
    /// Compactions of the run; names of transcripts count on over conversations.
    made: u64,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("pinned", &self.pinned)
            .field("compacted", &self.compacted)
            .field("made", &self.made)
            .finish()
    }
}

impl Context {
    /// A context that keeps no transcripts.
    pub fn new(policy: ContextPolicy) -> Self {
        Self { policy, sink: Box::new(NoTranscript), pinned: 1, compacted: None, made: 0 }
    }

    /// The same with a place for transcripts.
    #[must_use]
    pub fn with_transcripts(mut self, sink: Box<dyn TranscriptSink>) -> Self {
        self.sink = sink;
        self
    }

    /// Begins a new conversation whose first `pinned` messages (system prompt, memory, brief) stay in every view untouched.
    pub fn start(&mut self, pinned: usize) {
        self.pinned = pinned;
        self.compacted = None;
    }

    /// What the model is shown of the conversation: pinned messages, the hand-off if there is one, and the rest under layers 1 and 2, every
    /// call with exactly one result.
    pub fn view(&self, messages: &[Message]) -> Vec<Message> {
        let pinned = self.pinned.min(messages.len());
        let (opening, body) = messages.split_at(pinned);
        let mut view = opening.to_vec();
        if let Some(compacted) = &self.compacted {
            view.push(compacted.message.clone());
        }
        view.extend(body.iter().skip(self.shown_from(messages) - pinned).cloned());
        let mut view = repair(view);
        // The hand-off is shrunk by the next compaction, not by folding.
        layers::apply(&self.policy, pinned + usize::from(self.compacted.is_some()), &mut view);
        view
    }

    /// What stands in for the messages that left the view; `None` before the first compaction of a conversation.
    pub fn handoff(&self) -> Option<&str> {
        self.compacted.as_ref().and_then(|compacted| compacted.message.content())
    }

    /// Whether the view is larger than the threshold, so that [`Context::compact`] should be called before the next request.
    pub fn is_due(&self, messages: &[Message]) -> bool {
        self.policy.threshold > 0 && estimate(&self.view(messages)) > self.policy.threshold
    }

    /// The first message behind the pinned ones that is still shown.
    fn shown_from(&self, messages: &[Message]) -> usize {
        let pinned = self.pinned.min(messages.len());
        self.compacted.as_ref().map_or(pinned, |compacted| compacted.until).clamp(pinned, messages.len())
    }

    /// Replaces all but the latest messages by notes of the model, whatever the size of the view. `hard_state` (plans, active conditions) is
    /// part of the message that stands in for them, word for word. `None` when there is too little to leave out.
    ///
    /// A summary that fails costs its part of the notes, and the view says which messages that are. A request that is too large is made
    /// again with half the conversation in it.
    ///
    /// # Errors
    /// [`CompactError`]; the view is then as before.
    pub async fn compact<S: Summariser + ?Sized>(
        &mut self,
        messages: &[Message],
        summariser: &mut S,
        hard_state: &str,
        focus: Option<&str>,
    ) -> Result<Option<Compaction>, CompactError<S::Stop>> {
        let from = self.shown_from(messages);
        let Some(cut) = self.cut(messages, from) else { return Ok(None) };
        let tokens_before = estimate(&self.view(messages));
        let name = format!("transcript-{:04}", self.made + 1);
        let kept = self.sink.keep(&name, messages).map_err(CompactError::Transcript)?;
        // The name is spent even when the summary fails.
        self.made += 1;

        let head = messages.get(from..cut).unwrap_or_default();
        let earlier = self.compacted.as_ref().and_then(|compacted| compacted.notes.clone());
        let folded = fold(Pieces::of(head, from), self.policy.chunk_tokens, earlier, summariser, focus)
            .await
            .map_err(CompactError::Stop)?;
        let truncated = folded.left_at.map(|first| first..cut);
        let pinned = self.pinned.min(messages.len());
        let verified = summary::verified(&self.policy, messages.get(pinned..cut).unwrap_or_default());
        let transcript = kept.then_some(name);
        let handoff = Handoff {
            notes: folded.notes.as_deref(),
            missing: truncated.as_ref().map(|range| (range.start, range.end - 1)),
            covered: cut - pinned,
            transcript: transcript.as_deref(),
            verified: &verified,
            hard_state,
        };
        let message = handoff.message();
        // What could not be summarised stays said in later notes too.
        let notes = match &truncated {
            Some(range) => Some(format!(
                "{}\n\n[Messages {} to {} could not be summarised and are missing from these notes.]",
                folded.notes.unwrap_or_default(),
                range.start,
                range.end - 1
            )),
            None => folded.notes,
        };
        self.compacted = Some(Compacted { until: cut, notes, message });
        Ok(Some(Compaction {
            covered: from..cut,
            summaries: folded.summaries,
            truncated,
            faults: folded.faults,
            transcript,
            tokens_before,
            tokens_after: estimate(&self.view(messages)),
        }))
    }

    /// Where the tail begins: as many of the latest messages as fit the budget, never between a call and its result. With nothing before
    /// it, the older half goes; of one or two messages, nothing.
    fn cut(&self, messages: &[Message], from: usize) -> Option<usize> {
        let budget = match self.policy.threshold {
            0 => self.policy.tail_tokens,
            threshold => self.policy.tail_tokens.min(threshold / 2),
        };
        let mut cut = messages.len();
        let mut used = 0;
        while cut > from {
            used += messages.get(cut - 1).map_or(0, estimate::weight);
            if used > budget {
                break;
            }
            cut -= 1;
        }
        let body = messages.len() - from;
        if cut == from && body > 2 {
            cut = from + body / 2;
        }
        let cut = pairs::safe_cut(messages, cut);
        (cut > from && !(cut == messages.len() && body <= 2)).then_some(cut)
    }
}

#[derive(Debug, Default)]
struct Folded {
    notes: Option<String>,
    summaries: usize,
    faults: Vec<String>,
    /// The first message that is not wholly in the notes.
    left_at: Option<usize>,
}

/// Notes over all pieces, chunk by chunk; stops at the first that fails.
async fn fold<S: Summariser + ?Sized>(
    mut pieces: Pieces,
    chunk_tokens: u64,
    earlier: Option<String>,
    summariser: &mut S,
    focus: Option<&str>,
) -> Result<Folded, S::Stop> {
    let mut folded = Folded { notes: earlier, ..Folded::default() };
    let mut size = chunk_tokens.max(SMALLEST_CHUNK);
    while let Some(chunk) = pieces.chunk(size) {
        let request = summary::request(folded.notes.as_deref(), &chunk.text, focus);
        match summariser.summarise(request).await {
            Ok(notes) if !notes.trim().is_empty() => {
                folded.notes = Some(summary::bounded(&notes));
                folded.summaries += 1;
                pieces.done(chunk);
                continue;
            }
            Ok(_) => folded.faults.push("the summary was empty".to_owned()),
            Err(SummaryFault::Failed(reason)) => folded.faults.push(reason),
            Err(SummaryFault::TooLarge) if size > SMALLEST_CHUNK => {
                folded.faults.push(format!("a summary request of {size} tokens was too large"));
                size = (size / 2).max(SMALLEST_CHUNK);
                continue;
            }
            Err(SummaryFault::TooLarge) => folded.faults.push("the smallest summary request was too large".to_owned()),
            Err(SummaryFault::Stop(stop)) => return Err(stop),
        }
        break;
    }
    folded.left_at = pieces.next_place();
    Ok(folded)
}
