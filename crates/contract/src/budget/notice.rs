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
