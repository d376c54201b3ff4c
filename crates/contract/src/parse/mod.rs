//! Tool calls in a model's answer, in normal form. Three ways of writing them are read: the provider's own (`openai`), one JSON object in
//! a fence (`json`), and `Action:` lines (`text`). Syntax may be repaired where nothing is lost; nothing is completed, invented or
//! dropped, and what is not one complete call is never run (spec/seeds.md A6, D5).
//!
//! No schema is asked here: the strict reader ([`parse_arguments`]) stays the gate, and validation follows it. Arguments that cannot be
//! read are handed on as they came, so that the dispatcher answers them under the call's own id.
//!
//! | the model wrote | what comes of it |
//! |---|---|
//! | prose | no call |
//! | a whole call | a call |
//! | a whole call with a trailing comma, single quotes, Python words, bare keys or raw line ends in strings (`json`, `text`) | a call, `repaired` |
//! | a named call whose arguments cannot be read, hold a key twice or a number like `NaN` | a call whose arguments the gate refuses |
//! | the beginning of a call | no call and a diagnostic; natively a call that is `incomplete` and never runs |
//! | a call inside thinking | no call |
//!
//! ```
//! use traderharness_contract::parse::{CallStyle, parse};
//!
//! let answer = "<think>{\"tool\": \"sell\"}</think> Sure.\n```json\n{\"tool\": \"get_kline\", \"params\": {\"code\": \"SHM-000360\",}}\n``` done";
//! let parsed = parse(CallStyle::Json, answer, &[], &[]);
//! let [call] = parsed.calls.as_slice() else { panic!("one call") };
//! assert_eq!((call.name.as_str(), call.arguments.as_str(), call.repaired), ("get_kline", r#"{"code": "SHM-000360"}"#, true));
//! assert_eq!(parsed.text, "Sure.\n done");
//! ```

mod dsml;
mod json;
mod literal;
mod markup;
mod openai;
mod prompt;
mod stream;
mod text;
mod think;

pub use markup::has_call_markup;
pub use prompt::{Answered, describe, place, results, write_call};
pub use stream::{DeltaAccumulator, Streamed};

use crate::arguments::parse_arguments;
use literal::{Node, Reader};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use think::MARK;

/// How a model is told about tools and answers with calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStyle {
    /// The provider's own tool calls.
    #[default]
    Openai,
    /// A JSON object in a fence.
    Json,
    /// `Action: name(...)` lines.
    Text,
}

/// Finish reason of an answer whose stream ended without one. Nothing of such an answer is run.
pub const STREAM_CUT: &str = "stream_cut";

/// Diagnostics that are kept of one answer.
const DIAGNOSTICS: usize = 32;

/// One call in normal form.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedCall {
    /// Tool name as written; empty when a native call has none. Not looked up.
    pub name: String,
    /// Id of the call when the model or its provider gave one.
    pub id: Option<String>,
    /// JSON text for the dispatcher. Arguments that could not be read stand here as they came, and those of an incomplete call in a form
    /// that is not complete: [`parse_arguments`] refuses both.
    pub arguments: String,
    /// The syntax was repaired; no value was changed.
    pub repaired: bool,
    /// The answer ended before it was sure that this call had. Never to be run.
    pub incomplete: bool,
    /// What was received: the provider's object, or the text of the call.
    pub raw: Value,
}

impl ParsedCall {
    /// Whether the arguments are one complete JSON object.
    pub fn is_readable(&self) -> bool {
        parse_arguments(&self.arguments).is_ok()
    }

    fn cut(&mut self) {
        self.incomplete = true;
        if self.is_readable() {
            // The gate reads an empty text as no arguments and a closed object as a whole one; a cut call is neither.
            let open = self.arguments.trim_end().strip_suffix('}').map(str::trim_end);
            self.arguments = open.filter(|open| !open.is_empty()).unwrap_or("{").to_owned();
        }
    }
}

/// Something that a reader of the answer should know about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// What.
    pub kind: DiagnosticKind,
    /// Where: the start of the text in question, at most 120 characters.
    pub excerpt: String,
}

/// Kinds of diagnostics, as the model may read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticKind {
    /// Thinking that is never closed.
    #[error("a thinking block was not closed, so everything after it was taken as thinking")]
    UnclosedThinking,
    /// The text ends inside a call.
    #[error("a call was not complete and was not run")]
    Incomplete,
    /// A call whose arguments cannot be read.
    #[error("the arguments of a call could not be read")]
    Unreadable,
    /// JSON that is no call.
    #[error("a JSON value is not a call: a call is an object with the name of a tool and its parameters")]
    NotACall,
    /// Several objects among prose.
    #[error("several objects stood in the text outside of fences, so none was taken as a call")]
    SeveralObjects,
    /// A line that looks like a call of the text style and is none.
    #[error("a line looks like a call but does not follow the syntax")]
    NearMiss,
    /// Calls of a format that is not read here.
    #[error("the text holds call markup that is not read here, and nothing of it was run")]
    ForeignMarkup,
    /// Native calls although none were offered.
    #[error("native tool calls were sent although tools are called in the text, and were not run")]
    NativeIgnored,
    /// A native call without a name.
    #[error("a call has no tool name")]
    NoName,
}

/// The calls of one answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    /// Calls, in the order they were written. Identical ones are kept.
    pub calls: Vec<ParsedCall>,
    /// What could not be taken as a call, and why.
    pub diagnostics: Vec<Diagnostic>,
    /// What is left for a reader, without thinking and calls.
    pub text: String,
}

impl Parsed {
    /// Applies the reason the model stopped for. An answer that was cut runs nothing that may not be whole: in the text styles no call,
    /// natively not the last one (the provider began another after each of the others), and no call at all when the stream broke.
    #[must_use]
    pub fn ended(mut self, style: CallStyle, finish_reason: &str) -> Self {
        if is_cut(finish_reason) {
            let all = style != CallStyle::Openai || finish_reason == STREAM_CUT || self.calls.iter().any(|c| c.raw.is_string());
            let whole = if all { 0 } else { self.calls.len().saturating_sub(1) };
            for (index, call) in self.calls.iter_mut().enumerate() {
                // No text is no proof that there are no arguments.
                if index >= whole || !call.is_readable() || call.raw_is_blank() {
                    call.cut();
                }
            }
        }
        self
    }

    /// What the model should be told when its answer held something like a call that was not taken; `None` when there is nothing.
    pub fn notice(&self) -> Option<String> {
        let mut lines: Vec<String> = Vec::new();
        for diagnostic in self.diagnostics.iter().filter(|d| d.kind != DiagnosticKind::Unreadable) {
            let line = format!("- {}: {}", diagnostic.kind, diagnostic.excerpt);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        (!lines.is_empty()).then(|| format!("Parts of your answer were not run:\n{}", lines.join("\n")))
    }

    fn note(&mut self, kind: DiagnosticKind, at: &str) {
        if self.diagnostics.len() >= DIAGNOSTICS {
            return;
        }
        let line = at.trim_start_matches(|c: char| c.is_whitespace() || c == MARK);
        let excerpt = line.chars().filter(|c| *c != MARK).map(|c| if c.is_control() { ' ' } else { c }).take(120).collect();
        self.diagnostics.push(Diagnostic { kind, excerpt });
    }
}

impl ParsedCall {
    fn raw_is_blank(&self) -> bool {
        self.raw.is_object() && openai::argument_text(&self.raw).is_none()
    }
}

/// Whether a finish reason says that the answer was cut: by a length limit, a filter, an error or a broken stream.
pub fn is_cut(finish_reason: &str) -> bool {
    let reason = finish_reason.to_ascii_lowercase();
    [
        "length",
        "max_tokens",
        "max_output_tokens",
        "content_filter",
        "safety",
        "error",
        "incomplete",
        "aborted",
        "cancelled",
        STREAM_CUT,
    ]
    .contains(&reason.as_str())
}

/// Reads the calls of one answer: its text, and the calls its provider took apart (`openai`). `tools` are the definitions that were
/// offered, in OpenAI shape; the text style takes the spelling of argument names from them. Never fails: what cannot be taken is a
/// diagnostic.
pub fn parse(style: CallStyle, content: &str, native_calls: &[Value], tools: &[Value]) -> Parsed {
    let thoughtless = think::strip(content);
    let body = thoughtless.text.as_str();
    let mut parsed = Parsed::default();
    if thoughtless.unclosed {
        parsed.note(DiagnosticKind::UnclosedThinking, content);
    }
    let mut spans = Vec::new();
    match style {
        CallStyle::Openai => parsed.calls = native_calls.iter().map(openai::normal).collect(),
        CallStyle::Json => spans = json::read(body, &mut parsed),
        CallStyle::Text => spans = text::read(body, tools, &mut parsed),
    }
    if style != CallStyle::Openai
        && let Some(first) = native_calls.first()
    {
        parsed.note(DiagnosticKind::NativeIgnored, &first.to_string());
    }
    if parsed.calls.is_empty() {
        if let Some(invoked) = dsml::read(body) {
            spans = vec![(0, body.len())];
            parsed.diagnostics.retain(|d| d.kind == DiagnosticKind::UnclosedThinking);
            for call in invoked {
                let raw = Value::from(call.raw);
                parsed.calls.push(ParsedCall {
                    name: call.name,
                    id: None,
                    arguments: call.arguments,
                    repaired: false,
                    incomplete: false,
                    raw,
                });
            }
        } else if has_call_markup(body) {
            let at = body.find('<').or_else(|| body.find('[')).unwrap_or_default();
            parsed.note(DiagnosticKind::ForeignMarkup, &body[at..]);
        }
    }
    for index in 0..parsed.calls.len() {
        let call = &parsed.calls[index];
        let kind = match (call.name.is_empty(), call.is_readable()) {
            (true, _) => DiagnosticKind::NoName,
            (false, false) => DiagnosticKind::Unreadable,
            _ => continue,
        };
        let excerpt = format!("{} {}", call.name, call.arguments);
        parsed.note(kind, &excerpt);
    }
    parsed.text = without(body, &spans);
    parsed
}

/// As [`parse`] and [`Parsed::ended`], for an assistant message in OpenAI shape: its `content` (a text or text parts), `tool_calls` and
/// the older `function_call`.
pub fn parse_message(style: CallStyle, message: &Value, finish_reason: &str, tools: &[Value]) -> Parsed {
    let content = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    };
    let mut native: Vec<Value> = message.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
    if native.is_empty() {
        native.extend(message.get("function_call").filter(|call| call.is_object()).cloned());
    }
    parse(style, &content, &native, tools).ended(style, finish_reason)
}

/// The text outside of the spans, without marks of removed blocks.
fn without(body: &str, spans: &[(usize, usize)]) -> String {
    let mut out = String::new();
    let mut from = 0;
    for (start, end) in spans {
        out.push_str(body.get(from..*start).unwrap_or_default());
        from = *end;
    }
    out.push_str(body.get(from..).unwrap_or_default());
    out.retain(|c| c != MARK);
    out.trim().to_owned()
}

/// Arguments of a call, by the three steps: read strictly; repaired without loss; left as they came.
fn arguments(written: &str, node: Option<&Node>) -> (String, bool) {
    if parse_arguments(written).is_ok() {
        return (if written.trim().is_empty() { "{}".to_owned() } else { written.trim().to_owned() }, false);
    }
    if let Some(node) = node.filter(|node| matches!(node.kind, literal::Kind::Object(_))) {
        let mut repaired = String::new();
        node.write(&mut repaired);
        if parse_arguments(&repaired).is_ok() {
            return (repaired, true);
        }
    }
    (untouched(written.to_owned()), false)
}

/// As [`arguments`], for arguments that are a text of their own.
fn arguments_in(written: &str) -> (String, bool) {
    let mut reader = Reader::json(written, 0);
    let node = reader.value().ok().filter(|_| {
        reader.space();
        reader.rest().is_empty()
    });
    arguments(written, node.as_ref())
}

/// Text that no call may run with. A text that the gate would take, because the fault is around it, gets a word in front.
fn untouched(raw: String) -> String {
    if parse_arguments(&raw).is_ok() { format!("not read: {raw}") } else { raw }
}
