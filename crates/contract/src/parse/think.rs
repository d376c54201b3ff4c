//! Thinking blocks. What a model drafts inside them is never a call (complaint JR-6).
//!
//! A block leaves a [`MARK`] behind: where one stood inside a call, the call is refused instead of losing part of a value.

/// Tags of thinking blocks, any case, with or without attributes.
const TAGS: [&str; 3] = ["think", "thinking", "reasoning"];

/// Stands where a block was. No JSON text and no string that is read may hold it.
pub(super) const MARK: char = '\u{1}';

/// A text without its thinking.
#[derive(Debug)]
pub(super) struct Thoughtless {
    /// The text, each block replaced by [`MARK`].
    pub(super) text: String,
    /// The last block is never closed.
    pub(super) unclosed: bool,
}

/// Takes the blocks out. Blocks may be nested, under any mix of the tags; one that is never closed runs to the end; a closing tag
/// without its opening one (the prompt of the model held it) makes everything before it thinking. When in doubt it is thinking.
pub(super) fn strip(content: &str) -> Thoughtless {
    let mut text = String::with_capacity(content.len());
    let mut depth = 0_usize;
    let mut from = 0;
    let mut at = 0;
    while let Some(found) = content[at..].find('<') {
        let open = at + found;
        let Some((closing, length)) = tag(&content[open..]) else {
            at = open + 1;
            continue;
        };
        at = open + length;
        if closing {
            if depth == 0 {
                text.clear();
                text.push(MARK);
            } else if depth == 1 {
                text.push(MARK);
            }
            depth = depth.saturating_sub(1);
            from = at;
        } else {
            if depth == 0 {
                text.push_str(&content[from..open]);
            }
            depth += 1;
        }
    }
    if depth == 0 {
        text.push_str(&content[from..]);
    } else {
        text.push(MARK);
    }
    Thoughtless { text, unclosed: depth > 0 }
}

/// Whether a closing tag, and its bytes. `text` starts with `<`.
fn tag(text: &str) -> Option<(bool, usize)> {
    // Up to the next bracket only, so that a text full of them is still read in one pass.
    let end = 1 + text[1..].find(['<', '>'])?;
    text[end..].starts_with('>').then_some(())?;
    let inner = text[1..end].trim_start();
    let (closing, name) = match inner.strip_prefix('/') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, inner),
    };
    let word = name.find(|c: char| !c.is_ascii_alphanumeric()).map_or(name, |stop| &name[..stop]);
    let after = &name[word.len()..];
    // `<think/>` holds nothing; `<think-tank>` is another word.
    let known = TAGS.iter().any(|tag| word.eq_ignore_ascii_case(tag))
        && (after.is_empty() || after.starts_with(char::is_whitespace))
        && !after.ends_with('/');
    known.then_some((closing, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &str, left: &str, unclosed: bool) {
        let stripped = strip(content);
        assert_eq!((stripped.text.replace(MARK, "~").as_str(), stripped.unclosed), (left, unclosed), "{content}");
    }

    #[test]
    fn blocks_nested_unclosed_and_unopened() {
        check("plain < text > here", "plain < text > here", false);
        check("a<think>b</think>c", "a~c", false);
        check("a<THINKING x='1'>b</ thinking >c<reasoning>d</reasoning>", "a~c~", false);
        check("<think>a<think>b</think>c</think>d", "~d", false);
        check("<think>a<reasoning>b</think>c</reasoning>d", "~d", false);
        check("drafted</think>real", "~real", false);
        check("<think>a</think>b</think>c", "~c", false);
        check("real<think>open", "real~", true);
        check("real<think>a<think>b</think>c", "real~", true);
        check("a<thinker>b</thinker>c<think-tank>d<think/>e", "a<thinker>b</thinker>c<think-tank>d<think/>e", false);
        check("a<think", "a<think", false);
        check("a<think <b>c", "a<think <b>c", false);
    }
}
