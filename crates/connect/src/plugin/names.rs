//! Names of tools of MCP servers (spec/seeds.md B2.9): `mcp_<server>_<tool>` in the letters that a tool name may have. Names never depend
//! on the order of a configuration: where two would be equal, all of them get a part of the digest of what they were made from.

use sha1::{Digest as _, Sha1};
use std::collections::BTreeMap;

/// Characters of a tool name at most.
const LONGEST: usize = 64;

/// A segment: lower case, everything else collapsed to `_`, edges trimmed; `tool` where nothing is left.
pub fn segment(raw: &str) -> String {
    let mut segment = String::with_capacity(raw.len());
    for c in raw.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            segment.push(c);
        } else if !segment.ends_with('_') {
            segment.push('_');
        }
    }
    let segment = segment.trim_matches('_');
    if segment.is_empty() { "tool".to_owned() } else { segment.to_owned() }
}

/// The first eight hex digits of the SHA-1 of a text.
fn digest(text: &str) -> String {
    Sha1::digest(text.as_bytes()).iter().take(4).map(|b| format!("{b:02x}")).collect()
}

/// A segment for each raw name, in the order given, each different from all others. `true` with those that collided. Equal raw names are
/// not told apart here: who gives two things one name is told before.
pub fn segments(raw: &[&str]) -> Vec<(String, bool)> {
    let plain: Vec<String> = raw.iter().map(|name| segment(name)).collect();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &plain {
        *count.entry(name).or_default() += 1;
    }
    let mut taken: Vec<String> = plain.iter().filter(|name| count[name.as_str()] == 1).cloned().collect();
    let mut named: Vec<(String, bool)> = Vec::with_capacity(raw.len());
    // In the order of the raw names, so that salts do not depend on the configuration's order either.
    let mut order: Vec<usize> = (0..raw.len()).collect();
    order.sort_by_key(|i| raw[*i]);
    let mut chosen: BTreeMap<usize, String> = BTreeMap::new();
    for i in order {
        if count[plain[i].as_str()] == 1 {
            continue;
        }
        let mut name = format!("{}_{}", plain[i], digest(raw[i]));
        let mut salt = 1;
        while taken.contains(&name) {
            name = format!("{}_{}", plain[i], digest(&format!("{}#{salt}", raw[i])));
            salt += 1;
        }
        taken.push(name.clone());
        chosen.insert(i, name);
    }
    for (i, name) in plain.iter().enumerate() {
        named.push(chosen.remove(&i).map_or_else(|| (name.clone(), false), |name| (name, true)));
    }
    named
}

/// Start of the names of a server's tools.
pub fn prefix(server: &str) -> String {
    format!("mcp_{server}_")
}

/// The name of a tool of a server, from their segments. One that is too long keeps its start and a digest of the whole.
pub fn tool(server: &str, tool: &str) -> String {
    let name = format!("{}{tool}", prefix(server));
    if name.len() <= LONGEST { name } else { with_digest(&name, &name) }
}

/// A name that tools of several servers would have, with a digest of the raw names of this one.
pub fn told_apart(name: &str, server: &str, tool: &str) -> String {
    with_digest(name, &format!("{server}\n{tool}"))
}

fn with_digest(name: &str, of: &str) -> String {
    let kept: String = name.chars().take(LONGEST - 9).collect();
    format!("{}_{}", kept.trim_end_matches('_'), digest(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_the_letters_of_a_tool_name() {
        for (raw, expected) in [
            ("Foo-Bar", "foo_bar"),
            ("  a..b  ", "a_b"),
            ("get_price", "get_price"),
            ("--", "tool"),
            ("", "tool"),
            ("新闻", "tool"),
            ("Grün9", "gr_n9"),
        ] {
            assert_eq!(segment(raw), expected, "{raw}");
        }
    }

    // spec/seeds.md B2.9: `foo-bar` and `foo_bar` both become `foo_bar_<8hex>`, whichever came first
    #[test]
    fn names_that_collide_all_change_and_order_does_not_matter() {
        let one = segments(&["foo-bar", "news", "foo_bar"]);
        let two = segments(&["foo_bar", "foo-bar", "news"]);
        assert_eq!(one[1], ("news".to_owned(), false));
        assert_eq!((&one[0], &one[2], &one[1]), (&two[1], &two[0], &two[2]));
        // printf foo-bar | sha1sum
        assert_eq!(one[0], ("foo_bar_db7329d5".to_owned(), true), "{one:?}");
        assert!(one[0].0 != one[2].0 && one[2].0.starts_with("foo_bar_"));
    }

    #[test]
    fn a_name_that_is_taken_gets_a_salt() {
        let taken = format!("foo_bar_{}", digest("foo-bar"));
        let names = segments(&["foo-bar", "foo_bar", &taken]);
        let mut all: Vec<&String> = names.iter().map(|(name, _)| name).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 3, "{names:?}");
        assert_eq!(names[2], (taken, false));
    }

    #[test]
    fn a_long_name_is_cut_and_stays_its_own() {
        let (a, b) = (tool("s", &"x".repeat(80)), tool("s", &format!("{}y", "x".repeat(79))));
        assert!(a.len() <= LONGEST && b.len() <= LONGEST && a != b, "{a} {b}");
        assert_eq!(tool("news", "search"), "mcp_news_search");
    }

    #[test]
    fn tools_of_two_servers_that_meet_in_one_name_are_told_apart() {
        let name = tool("a", "b_c");
        assert_eq!(name, tool("a_b", "c"));
        let (one, two) = (told_apart(&name, "a", "b_c"), told_apart(&name, "a_b", "c"));
        assert!(one != two && one.starts_with("mcp_a_b_c_") && two.starts_with("mcp_a_b_c_"), "{one} {two}");
        assert!(told_apart(&"x".repeat(64), "a", "b").len() <= LONGEST);
    }
}
