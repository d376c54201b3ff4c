//! Call markup that is left in a text: tags of call formats that no style here reads. A final answer that holds any is not released
//! (spec/seeds.md B12.3).

/// Tag names of call formats, as they follow `<`, `</` and a namespace.
const TAGS: [&str; 9] =
    ["invoke", "parameter", "parameters", "tool_call", "tool_calls", "function_call", "function_calls", "tool_use", "function"];

/// Starts of the marks that some models write without a tag.
const MARKS: [&str; 2] = ["[TOOL_CALLS]", "[/TOOL_CALLS]"];

/// Whether a text holds markup of tool calls: `invoke`, `parameter`, `tool_calls`, `function=` and kin as tags, with or without a
/// namespace, and marks between bars, ASCII or full-width. An ordinary word in angle brackets is none.
pub fn has_call_markup(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark)) || text.match_indices('<').any(|(at, _)| is_tag(&text[at + 1..]))
}

fn is_tag(after: &str) -> bool {
    let rest = after.strip_prefix('/').unwrap_or(after).trim_start();
    if let Some(inner) = strip_bar(rest) {
        let inner = inner.trim_start();
        // Words are joined by `_` or, in some vocabularies, by U+2581.
        return ["DSML", "tool", "/tool", "function", "/DSML"].iter().any(|word| starts_with_word(inner, word));
    }
    let name = |text: &str| text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let length = name(rest);
    let (word, rest) = match rest[length..].strip_prefix(':') {
        Some(local) => (&local[..name(local)], &local[name(local)..]),
        None => (&rest[..length], &rest[length..]),
    };
    let word = word.to_ascii_lowercase();
    // `<function=name>` is a call, `<function>` is prose as often as not.
    TAGS.contains(&word.as_str())
        && match word.as_str() {
            "function" => rest.starts_with('='),
            _ => rest.is_empty() || rest.starts_with(['>', '/', '=']) || rest.starts_with(char::is_whitespace),
        }
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// The text after one bar, ASCII or full-width.
pub(super) fn strip_bar(text: &str) -> Option<&str> {
    text.strip_prefix(['|', '\u{ff5c}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    // seed B12.3
    #[test]
    fn markup_is_seen_and_ordinary_text_is_not() {
        for text in [
            "<invoke name=\"get_kline\">",
            "done </parameter>",
            "<tool_calls>",
            "x <tool_call>{}</tool_call>",
            "<ns:function_calls>",
            "<function=get_kline>",
            "<|DSML|invoke name=\"x\">",
            "</\u{ff5c}DSML\u{ff5c}tool_calls>",
            "<\u{ff5c}tool\u{2581}calls\u{2581}begin\u{ff5c}>",
            "<|tool_call|>",
            "[TOOL_CALLS] [{}]",
            "cut <invoke",
        ] {
            assert!(has_call_markup(text), "{text}");
        }
        for text in
            ["", "a < b and c > d", "<invoker>", "the invoke tag", "<b>bold</b>", "price <|12|", "<function>", "<params>", "<"]
        {
            assert!(!has_call_markup(text), "{text}");
        }
    }
}
