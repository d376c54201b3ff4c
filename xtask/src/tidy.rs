//! House rules on text that no linter knows. Reads the files git knows of (new ones included); never changes one.
//!
//! Rules: `length` (a Rust file has at most 700 lines), `module-text` (a Rust file starts with `//!`), `space` (no trailing space, one
//! newline at the end), `open-work` (no note to self), `machine` (no path or registry of one machine), `process` (nothing on how the
//! work is organised), `pages` (the pages a newcomer needs exist, and the map names every crate).

use crate::finding::Finding;
use crate::steps::Step;
use anyhow::Context as _;
use std::path::Path;

/// Longest Rust file.
const LINES: usize = 700;

/// Pages that must exist at the root.
const PAGES: &[&str] =
    &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "NOTICE", "Cargo.lock", "clippy.toml"];

/// Endings of files that are text of ours.
const TEXT: &[&str] = &["rs", "md", "toml", "yaml", "yml", "txt", "sh", "py", "pyi", "snap", "json", "jsonl", ""];

/// Endings of files whose spaces are content: recordings and snapshots.
const VERBATIM: &[&str] = &["snap", "json", "jsonl", "txt"];

/// Words that must not be in a file, with the rule and the reason. A word is matched only where no letter or digit is beside it.
/// They are spelled in two halves so that this file does not break its own rules.
const WORDS: &[(&str, &str, &str, &str)] = &[
    ("TO", "DO", "open-work", "finish it or state the limit in the text of the module"),
    ("FIX", "ME", "open-work", "finish it or state the limit in the text of the module"),
    ("XX", "X", "open-work", "finish it or state the limit in the text of the module"),
    ("/wo", "rk", "machine", "name paths relative to the workspace"),
    ("/ro", "ot", "machine", "name paths relative to the workspace"),
    ("/ho", "me", "machine", "name paths relative to the workspace"),
    ("index.crates", ".io", "machine", "no registry is named"),
    ("static.crates", ".io", "machine", "no registry is named"),
    ("replace", "-with", "machine", "no registry is named"),
    ("index", "-url", "machine", "no registry is named"),
    ("artifac", "tory", "machine", "no registry is named"),
    ("files.python", "hosted.org", "machine", "no registry is named"),
    ("sub", "agent", "process", "the project does not tell how it is made"),
    ("sub", "-agent", "process", "the project does not tell how it is made"),
    ("other", " helpers", "process", "the project does not tell how it is made"),
    ("another", " helper", "process", "the project does not tell how it is made"),
    ("co-authored", "-by", "process", "the project does not tell how it is made"),
    ("generated", " by ai", "process", "the project does not tell how it is made"),
    ("as an", " ai", "process", "the project does not tell how it is made"),
];

/// Folder of inputs for the fuzz targets: every byte of them is content.
const CORPUS: &str = "fuzz/corpus/";

/// Checks every file, and that the pages exist.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let listed = Step::new("git", root).args(["ls-files", "--cached", "--others", "--exclude-standard"]).read();
    let listed = listed.context("the house rules are checked on the files that git knows")?;
    let mut findings = pages(root);
    for place in listed.lines() {
        let name = place.rsplit('/').next().unwrap_or(place);
        let ending = name.trim_start_matches('.').rsplit_once('.').map_or("", |(_, ending)| ending);
        let path = root.join(place);
        if place == "Cargo.lock" || place.starts_with(CORPUS) || !TEXT.contains(&ending) || !path.is_file() {
            continue; // a file that git knows and that is gone is a deletion not committed yet
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => findings.extend(file(place, ending, &text)),
            Err(fault) => findings.push(Finding::new("text", place, format!("cannot be read as UTF-8 text: {fault}"))),
        }
    }
    Ok(findings)
}

fn pages(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in PAGES.iter().filter(|page| !root.join(page).is_file()) {
        findings.push(Finding::new("pages", *page, "is missing at the root of the workspace"));
    }
    if let Ok(map) = std::fs::read_to_string(root.join("ARCHITECTURE.md")) {
        let crates = std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
        let names =
            crates.filter(|e| e.path().join("Cargo.toml").is_file()).map(|e| e.file_name().to_string_lossy().into_owned());
        findings.extend(unmapped(&map, names));
    }
    findings
}

fn unmapped(map: &str, crates: impl Iterator<Item = String>) -> Vec<Finding> {
    let absent = crates.filter(|name| find_word(map, &format!("crates/{name}")).is_none());
    absent.map(|name| Finding::new("pages", "ARCHITECTURE.md", format!("the code map lacks `crates/{name}`"))).collect()
}

fn file(place: &str, ending: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if ending == "rs" {
        let lines = text.lines().count();
        if lines > LINES {
            findings.push(Finding::new("length", place, format!("{lines} lines; split it by responsibility, at most {LINES}")));
        }
        if !text.trim_start().starts_with("//!") {
            findings.push(Finding::new(
                "module-text",
                format!("{place}:1"),
                "start with `//!`: what the file is for and never does",
            ));
        }
    }
    if !VERBATIM.contains(&ending) && !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        findings.push(Finding::new("space", place, "end the file with one newline"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        if !VERBATIM.contains(&ending) && line.ends_with([' ', '\t']) {
            findings.push(Finding::new("space", format!("{place}:{number}"), "remove the space at the end of the line"));
        }
        for (head, tail, rule, why) in WORDS {
            let word = format!("{head}{tail}");
            if find_word(line, &word).is_some() {
                findings.push(Finding::new(rule, format!("{place}:{number}"), format!("`{word}`: {why}")));
            }
        }
    }
    findings
}

/// Where `word` is in `text` with no letter or digit beside it. Words in capitals match as they are, others in any case; a path
/// (`/x`) must start a path, so a folder of that name inside a relative one is fine.
fn find_word(text: &str, word: &str) -> Option<usize> {
    let exact = word.chars().all(|c| c.is_ascii_uppercase());
    let (text, word) =
        if exact { (text.to_owned(), word.to_owned()) } else { (text.to_ascii_lowercase(), word.to_ascii_lowercase()) };
    let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(&word).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let open = if word.starts_with('/') {
            before.is_none_or(|c| !inside(c) && !".~}>)".contains(c))
        } else {
            before.is_none_or(|c| !inside(c))
        };
        open && after.is_none_or(|c| !inside(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules broken by a file of this ending and text.
    #[track_caller]
    fn check_file(ending: &str, text: &str, expected: &[&str]) {
        let found = file("a", ending, text);
        assert_eq!(found.iter().map(|f| f.rule).collect::<Vec<_>>(), expected, "{found:#?}");
    }

    #[test]
    fn a_good_file_passes() {
        check_file("rs", "//! What it is for.\n\nfn a() {}\n", &[]);
        check_file("md", "", &[]);
    }

    #[test]
    fn a_long_rust_file_is_found() {
        check_file("rs", &format!("//! x\n{}", "\n".repeat(LINES - 2) + "//\n"), &[]);
        check_file("rs", &format!("//! x\n{}", "//\n".repeat(LINES)), &["length"]);
    }

    #[test]
    fn a_module_without_text_is_found() {
        check_file("rs", "use a;\n", &["module-text"]);
        check_file("rs", "/// x\nfn a() {}\n", &["module-text"]);
    }

    #[test]
    fn spaces_at_ends_are_found_except_in_recordings() {
        check_file("md", "a \nb\n", &["space"]);
        check_file("md", "a\nb", &["space"]);
        check_file("md", "a\n\n", &["space"]);
        check_file("snap", "a \nb", &[]);
    }

    #[test]
    fn every_word_is_found_alone_and_not_inside_another() {
        for (head, tail, rule, _) in WORDS {
            check_file("md", &format!("see {head}{tail}, please\n"), &[rule]);
            check_file("md", &format!("see a{head}{tail}b please\n"), &[]);
        }
    }

    #[test]
    fn a_machine_path_is_found_where_a_path_starts() {
        let path = format!("/wo{}", "rk");
        check_file("rs", &format!("//! \"{path}/main\"\n"), &["machine"]);
        check_file("rs", &format!("//! https://example.org{path}/x and net{path}s\n"), &[]);
        check_file("rs", &format!("//! ..{path}/main\n"), &[]);
    }

    #[test]
    fn the_map_must_name_every_crate() {
        let found = unmapped("`crates/tools-market` reads", ["tools", "tools-market"].into_iter().map(str::to_owned));
        assert_eq!(found.iter().map(|f| f.message.as_str()).collect::<Vec<_>>(), ["the code map lacks `crates/tools`"]);
    }
}
