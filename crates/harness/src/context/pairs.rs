//! Calls and their results belong together: a provider refuses a request in which one stands without the other, and would refuse every
//! later one too (complaint CX-2).

use std::collections::VecDeque;
use traderharness_replay::Message;

/// Result of a call that has none.
pub const NO_RESULT: &str = "[no result of this call was kept]";

/// Drops results without their call and second results, and puts [`NO_RESULT`] right behind a message whose calls were not all answered.
/// A result belongs to the last message with calls before it, with nothing but results between them: ids may repeat over a conversation.
pub fn repair(messages: Vec<Message>) -> Vec<Message> {
    let mut out = Vec::with_capacity(messages.len());
    let mut rest = VecDeque::from(messages);
    while let Some(message) = rest.pop_front() {
        if is_result(&message) {
            continue;
        }
        let mut open: Vec<String> = message.tool_calls().into_iter().map(|call| call.id).collect();
        out.push(message);
        let mut kept = Vec::new();
        while rest.front().is_some_and(is_result) {
            let Some(result) = rest.pop_front() else { break };
            let id = result.tool_call_id().unwrap_or_default();
            if let Some(at) = open.iter().position(|call| call == id) {
                open.remove(at);
                kept.push(result);
            }
        }
        out.extend(open.into_iter().map(|id| Message::tool(id, NO_RESULT)));
        out.append(&mut kept);
    }
    out
}

/// The first place at or behind `cut` that parts no call from its result.
pub(super) fn safe_cut(messages: &[Message], cut: usize) -> usize {
    let results = messages.iter().skip(cut).take_while(|message| is_result(message)).count();
    (cut + results).min(messages.len())
}

pub(super) fn is_result(message: &Message) -> bool {
    message.role() == "tool"
}
