//! The notice that ends a text which was cut. The last resort, for plain text only: JSON is compacted, records are paged.

use crate::json::{characters, prefix};

fn notice(shown: usize, total: usize) -> String {
    format!(
        "\n\n[TRUNCATED: {shown} of {total} characters are shown. The rest was not sent, so this is not the complete answer. \
         Ask for a narrower range or use the paging argument to read the rest.]"
    )
}

/// `text` if it has at most `limit` characters, else as much of its start as fits together with a notice (spec/seeds.md B8.2).
///
/// Where not even the notice fits, it is cut to `limit` and says that 0 characters are shown (B8.3).
pub fn truncate_text(text: &str, limit: usize) -> String {
    let total = characters(text);
    if total <= limit {
        return text.to_owned();
    }
    // `shown` never has more digits than `total`, so the notice written with `total` is the longest it can be.
    let body = limit.saturating_sub(characters(&notice(total, total)));
    if body == 0 {
        return prefix(notice(0, total).trim_start(), limit).to_owned();
    }
    format!("{}{}", prefix(text, body), notice(body, total))
}

/// `text` if it has at most `limit` characters, else its start and `... (N characters ignored)`, together exactly `limit`
/// characters (spec/seeds.md A4.5). A limit shorter than that ending cuts the ending.
pub fn bounded_text(text: &str, limit: usize) -> String {
    let total = characters(text);
    if total <= limit {
        return text.to_owned();
    }
    let ending = |ignored: usize| format!("... ({ignored} characters ignored)");
    // N and the room it takes depend on each other; N grows with its own digits, so this settles after a step or two.
    let mut ignored = total - limit;
    loop {
        let next = total - limit.saturating_sub(characters(&ending(ignored)));
        if next == ignored {
            break;
        }
        ignored = next;
    }
    let ending = ending(ignored);
    let body = limit.saturating_sub(characters(&ending));
    prefix(&format!("{}{ending}", prefix(text, body)), limit).to_owned()
}
