//! How many tokens a conversation takes, near enough to decide when to shrink it. Integers only, and the same for the same text.

use serde_json::Value;
use traderharness_replay::Message;

/// Quarters of a token per character: a CJK character is about one token, four other characters are.
const CJK: u64 = 4;
const OTHER: u64 = 1;

/// Tokens of a list of messages: the JSON of each, a CJK character counted as one token and four others as one, rounded down once at the
/// end (spec/seeds.md B11, E3). One more message or character never lowers it.
pub fn estimate(messages: &[Message]) -> u64 {
    estimate_values(messages.iter().map(|message| &message.0))
}

/// Tokens of JSON values by the same count: the one estimate of what a provider does not report.
pub(crate) fn estimate_values<'a>(values: impl Iterator<Item = &'a Value>) -> u64 {
    values.map(|value| quarters(&value.to_string())).sum::<u64>() / 4
}

/// Tokens of a text by the same count.
pub fn estimate_text(text: &str) -> u64 {
    quarters(text) / 4
}

/// Tokens of what a message says (its texts and calls) and ten for the rest of it.
pub(super) fn weight(message: &Message) -> u64 {
    let said = match message.0.get("content") {
        Some(Value::String(text)) => quarters(text),
        None | Some(Value::Null) => 0,
        Some(other) => quarters(&other.to_string()),
    };
    let called: u64 = message.tool_calls().iter().map(|call| quarters(&call.name) + quarters(&call.arguments)).sum();
    (said + called) / 4 + 10
}

fn quarters(text: &str) -> u64 {
    if text.is_ascii() {
        return text.len() as u64 * OTHER;
    }
    text.chars().map(|c| if is_cjk(c) { CJK } else { OTHER }).sum()
}

/// Ideographs, kana, hangul, bopomofo, CJK and full-width punctuation.
const fn is_cjk(c: char) -> bool {
    matches!(c as u32, 0x1100..=0x11ff | 0x2e80..=0x9fff | 0xa960..=0xa97f | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0xfe30..=0xfe4f
        | 0xff00..=0xffef | 0x2_0000..=0x3_ffff)
}

/// The longest beginning of `text` of at most `tokens` tokens; never cuts inside a character and never empty for a text that is not.
pub(super) fn prefix_of(text: &str, tokens: u64) -> &str {
    let mut left = tokens.saturating_mul(4);
    for (at, c) in text.char_indices() {
        let cost = if is_cjk(c) { CJK } else { OTHER };
        if cost > left && at > 0 {
            return &text[..at];
        }
        left = left.saturating_sub(cost);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec/seeds.md E3
    #[test]
    fn cjk_counts_one_and_the_rest_a_quarter() {
        let check = |text: &str, tokens: u64| assert_eq!(estimate_text(text), tokens, "{text}");
        check("", 0);
        check("abc", 0);
        check("abcd", 1);
        check("股票", 2);
        check("股票abcd，", 4);
        check("カナ한글𠀀", 5);
        check("é🚀ab", 1);
        assert_eq!(estimate(&[Message::user("股票"), Message::user("")]), (28 + 8 + 28) / 4);
        assert_eq!(prefix_of("股票abcdef", 3), "股票abcd");
        assert_eq!(prefix_of("股票", 0), "股");
    }
}
