//! What of a request is compared by itself: the set-up, the instructions, the tools. Must change nothing of it and hide nothing: whoever shows it
//! redacts it first.

use crate::explain::Explanation;
use crate::request::{Message, Request};
use serde_json::{Value, json};

/// Lines shown around a difference.
const LINES: usize = 24;

/// What of a request is neither words nor tools.
pub(super) fn plain(request: &Request) -> Value {
    let sampling = Value::from(request.sampling.clone());
    json!({ "contract_version": request.contract_version, "model": request.model, "sampling": sampling })
}

/// The instructions above a conversation.
pub(super) fn instructions(request: &Request) -> Request {
    Request {
        system: request.system.clone(),
        messages: request.messages.iter().take_while(|message| message.role() == "system").cloned().collect(),
        ..Request::default()
    }
}

/// Nothing but the tools that are offered.
pub(super) fn tools(request: &Request) -> Request {
    Request { tools: request.tools.clone(), ..Request::default() }
}

/// All that the instructions and messages of a request say.
pub(super) fn words(request: &Request) -> String {
    let messages = request.messages.iter().filter_map(Message::content);
    request.system.as_deref().into_iter().chain(messages).collect::<Vec<_>>().join("\n")
}

/// The lines of an explanation, the first few.
pub(super) fn shown(explained: Explanation) -> Vec<String> {
    let mut lines = explained.lines;
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    if more > 0 {
        lines.push(format!("@@ {more} more line(s) @@"));
    }
    lines
}
