//! Layers 1 and 2: old results cleared, long texts folded. No model is asked; applying a layer twice changes nothing.

use super::estimate::estimate;
use super::pairs::is_result;
use super::{CLEARED, ContextPolicy};
use serde_json::Value;
use traderharness_contract::json::{characters, prefix};
use traderharness_replay::Message;

/// Applies the layers whose threshold is passed; each looks at what the one before left. The first `pinned` messages stay as they are.
pub(super) fn apply(policy: &ContextPolicy, pinned: usize, messages: &mut [Message]) {
    if policy.threshold == 0 {
        return;
    }
    let over =
        |messages: &[Message], percent: u64| percent > 0 && estimate(messages) > policy.threshold.saturating_mul(percent) / 100;
    if over(messages, policy.micro_percent) {
        clear_results(policy, pinned, messages);
    }
    if over(messages, policy.collapse_percent) {
        collapse(policy, pinned, messages);
    }
}

/// Layer 1: of all results the last few stay, older ones of more than a line are cleared (spec/seeds.md B11.1).
fn clear_results(policy: &ContextPolicy, pinned: usize, messages: &mut [Message]) {
    let results: Vec<usize> = (pinned..messages.len()).filter(|at| messages.get(*at).is_some_and(is_result)).collect();
    let old = results.len().saturating_sub(policy.keep_results);
    for at in results.into_iter().take(old) {
        if let Some(message) = messages.get_mut(at)
            && message.content().is_some_and(|text| characters(text) > policy.clear_over)
        {
            set_content(message, CLEARED.to_owned());
        }
    }
}

/// Layer 2: long texts keep their beginning and end; the first message and the last ones are spared (spec/seeds.md B11.2).
fn collapse(policy: &ContextPolicy, pinned: usize, messages: &mut [Message]) {
    let first = pinned.max(1);
    let until = messages.len().saturating_sub(policy.spare_last);
    for message in messages.iter_mut().take(until).skip(first) {
        let Some(text) = message.content() else { continue };
        let length = characters(text);
        let kept = policy.collapse_head + policy.collapse_tail;
        // A fold that saves no more than its marker takes is none.
        if length <= policy.collapse_over || length <= kept + MARKER_ROOM {
            continue;
        }
        let head = prefix(text, policy.collapse_head);
        let tail = &text[prefix(text, length - policy.collapse_tail).len()..];
        let folded = format!("{head}\n[... {} characters collapsed ...]\n{tail}", length - kept);
        set_content(message, folded);
    }
}

/// Characters of a marker, at most.
const MARKER_ROOM: usize = 60;

fn set_content(message: &mut Message, text: String) {
    if let Value::Object(fields) = &mut message.0 {
        fields.insert("content".to_owned(), text.into());
    }
}
