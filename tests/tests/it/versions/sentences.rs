//! The sentences of code that a model reads under v1 to v4 in no pack: reasons of failures, words inside of results, memory and context.
//! They are read from the sources, so that none is forgotten, and held as one golden: recordings hold these words, whatever else changes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Where handlers and the way of a call get their words from.
const SOURCES: [&str; 16] = [
    "tools-exec/src",
    "tools-market/src",
    "contract/src/arguments.rs",
    "contract/src/definition.rs",
    "contract/src/issues.rs",
    "contract/src/schema",
    "contract/src/version/legacy",
    "harness/src/context",
    "harness/src/correction.rs",
    "harness/src/dispatch",
    "harness/src/masking.rs",
    "harness/src/memory.rs",
    "harness/src/run/committee.rs",
    "harness/src/run/driver.rs",
    "harness/src/toolbox.rs",
    "harness/src/versions",
];

/// Calls whose texts no early version shows: corrections, and what only this program's makers read.
const UNSHOWN: [&str; 6] = ["with", "with_own_words", "expect", "debug_assert", "unreachable", "panic"];

/// Fields and variables of which the same is true.
const UNSHOWN_FIELDS: [&str; 5] = ["instruction", "description", "reason", "doc", "x-condition"];

/// Files and folders below [`SOURCES`] that speak to people, or to callers of a door, whose contract is v5.
const FOR_OTHERS: [&str; 5] = ["gate/mandate.rs", "gate/audit.rs", "memory/restore.rs", "ledger.rs", "research"];

/// A piece of source.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Mark(char),
    Text(String),
}

/// Rust source without comments, as far as texts and brackets need it.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or(' ');
    let (mut out, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        match (at(i), at(i + 1)) {
            ('/', '/') => i += chars[i..].iter().take_while(|c| **c != '\n').count(),
            ('r', '"' | '#') | ('b', '"') if !matches!(out.last(), Some(Token::Mark('\''))) => {
                let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
                if at(i + 1 + hashes) != '"' {
                    out.push(Token::Word("r".into()));
                    i += 1;
                    continue;
                }
                let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                let from = i + 2 + hashes;
                let length = chars[from..].windows(end.len()).position(|w| w == end).expect("a text that ends");
                out.push(Token::Text(chars[from..from + length].iter().collect()));
                i = from + length + end.len();
            }
            ('"', _) => {
                let (text, end) = text_from(&chars, i + 1);
                out.push(Token::Text(text));
                i = end;
            }
            // A character, or a lifetime.
            ('\'', '\\') => i += 4 + chars[i + 3..].iter().take_while(|c| **c != '\'').count(),
            ('\'', _) if at(i + 2) == '\'' => i += 3,
            (c, _) if c.is_alphanumeric() || c == '_' => {
                let word: String = chars[i..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
                i += word.chars().count();
                out.push(Token::Word(word));
            }
            (c, _) => {
                if !c.is_whitespace() {
                    out.push(Token::Mark(c));
                }
                i += 1;
            }
        }
    }
    out
}

/// A text in quotes from behind its first one, and where the source goes on.
fn text_from(chars: &[char], mut i: usize) -> (String, usize) {
    let mut text = String::new();
    loop {
        match chars[i] {
            '"' => return (text, i + 1),
            '\\' if chars[i + 1] == '\n' => i += 1 + chars[i + 1..].iter().take_while(|c| c.is_whitespace()).count(),
            '\\' => {
                text.push(if chars[i + 1] == 'n' { '\n' } else { chars[i + 1] });
                i += 2;
            }
            c => {
                text.push(c);
                i += 1;
            }
        }
    }
}

/// A bracket that is open.
#[derive(Default)]
struct Open {
    /// What is called, and of which type: `ToolFailure`, `new`.
    of: String,
    call: String,
    argument: usize,
    /// Word in front of the last `:` or `=`.
    lead: String,
}

impl Open {
    fn is_unshown(&self) -> bool {
        (self.of == "ToolFailure" && self.call == "new" && self.argument == 2)
            || UNSHOWN.contains(&self.call.as_str())
            || UNSHOWN_FIELDS.contains(&self.lead.as_str())
    }
}

/// Texts of a source that read like a sentence and that an early version can show.
fn sentences(source: &str) -> Vec<String> {
    let tokens = tokens(source);
    let word = |i: usize| match tokens.get(i) {
        Some(Token::Word(word)) => word.as_str(),
        _ => "",
    };
    let is = |i: usize, mark: char| tokens.get(i) == Some(&Token::Mark(mark));
    let mut open = vec![Open::default()];
    let (mut out, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        // Tests, specifications and words of a schema (what is offered comes from a pack), and instructions (no early version shows them).
        let skipped = (word(i) == "cfg" && word(i + 2) == "test")
            || (word(i) == "const" && word(i + 1) == "SPEC")
            || (word(i) == "fn" && word(i + 1) == "instruction")
            || (word(i) == "words" && is(i + 1, '!'));
        if skipped {
            let begins = |i: usize| is(i, '{') || is(i, ';') || (is(i, '(') && is(i - 1, '!'));
            while i < tokens.len() && !begins(i) {
                i += 1;
            }
            let (from, to) = if is(i, '(') { ('(', ')') } else { ('{', '}') };
            let mut depth = 0;
            while i < tokens.len() {
                depth += i32::from(is(i, from)) - i32::from(is(i, to));
                i += 1;
                if depth <= 0 {
                    break;
                }
            }
            continue;
        }
        let depth = open.len();
        let top = open.last_mut().expect("one at least");
        match &tokens[i] {
            Token::Mark('(' | '[' | '{') => {
                let name = if i > 0 && is(i - 1, '!') { i.saturating_sub(2) } else { i.saturating_sub(1) };
                let of = if name > 2 && is(name - 1, ':') { word(name - 3) } else { "" };
                open.push(Open { of: of.to_owned(), call: word(name).to_owned(), ..Open::default() });
            }
            Token::Mark(')' | ']' | '}') if depth > 1 => _ = open.pop(),
            Token::Mark(',') => (top.argument, top.lead) = (top.argument + 1, String::new()),
            Token::Mark(';') => top.lead.clear(),
            Token::Mark(':' | '=') if i > 0 => {
                top.lead = match &tokens[i - 1] {
                    Token::Word(name) | Token::Text(name) => name.clone(),
                    Token::Mark(_) => std::mem::take(&mut top.lead),
                };
            }
            Token::Text(text) if text.matches(' ').count() >= 2 && !open.iter().any(Open::is_unshown) => {
                out.push(text.clone());
            }
            _ => {}
        }
        i += 1;
    }
    out
}

fn files(place: &Path, into: &mut Vec<PathBuf>) {
    if FOR_OTHERS.iter().any(|name| place.ends_with(name)) {
        return;
    }
    if place.is_dir() {
        let entries = std::fs::read_dir(place).expect("a folder");
        entries.for_each(|entry| files(&entry.expect("an entry").path(), into));
    } else if place.extension().is_some_and(|e| e == "rs") {
        into.push(place.to_owned());
    }
}

/// The longest run of words between placeholders, as JSON text holds it.
fn core(sentence: &str) -> &str {
    let pieces = sentence.split(['{', '}', '"', '\n', '\\']);
    pieces.max_by_key(|piece| piece.len()).unwrap_or_default().trim()
}

// spec/versions.md: a byte that changes fails; DESIGN rule 9
#[test]
fn every_sentence_of_code_that_an_early_version_shows_is_what_it_was() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    SOURCES.iter().for_each(|place| files(&root.join("crates").join(place), &mut sources));
    let found: BTreeSet<String> =
        sources.iter().flat_map(|file| sentences(&std::fs::read_to_string(file).expect("a source"))).collect();
    let mut shown = String::new();
    for entry in std::fs::read_dir(root.join("tests/tests/snapshots")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("version-v") && !name.contains("-v5-") || name == "versions-code.snap" {
            shown.push_str(&std::fs::read_to_string(&path).expect("a golden"));
        }
    }
    let mut text = String::new();
    for sentence in &found {
        // Those behind a dash are in no answer of another golden: this list alone holds them.
        let mark = if shown.contains(core(sentence)) { ' ' } else { '-' };
        let _ = writeln!(text, "{mark} {}", sentence.replace('\n', "\\n"));
    }
    assert!(found.len() > 150, "{} sentences", found.len());
    insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("versions-sentences", text, "recordings made under v1 to v4 would no longer replay");
    });
}

#[test]
fn sentences_are_found_where_they_are_shown() {
    let check = |source: &str, expected: &[&str]| assert_eq!(sentences(source), expected, "{source}");
    check(r#"ToolFailure::new(Code::A, "It is not here.", "Look for it there.")"#, &["It is not here."]);
    check(
        r#"ToolFailure::new(A, format!("{n} of them are gone."), format!("Ask for {n} of them."))"#,
        &["{n} of them are gone."],
    );
    check(r#"f.with("a", "no one sees this").message = format!("{} was changed here.", f.message);"#, &["{} was changed here."]);
    check("#[error(\"the day {0} is no day\")] A(u8)", &["the day {0} is no day"]);
    check("// \"not a sentence here\"\nlet c = '\"'; let l: &'a str = \"this is a sentence\";", &["this is a sentence"]);
    check("\"one that \\\n    goes on\"", &["one that goes on"]);
    check("r#\"raw \"words\" in it\"#", &["raw \"words\" in it"]);
    check("const SPEC: S = S { d: \"this is a description\" }; let a = \"this is a sentence\";", &["this is a sentence"]);
    check(
        "fn instruction(&self) -> &str { match self { A => { \"do as I say\" } } } fn b() { \"that is a sentence\" }",
        &["that is a sentence"],
    );
    check("#[cfg(test)]\nmod tests { const A: &str = \"words of a test\"; }", &[]);
    check("F { instruction: \"do as I say\", message: \"it was not done\" }", &["it was not done"]);
    check("words!(Side { Buy \"buy\" \"Buy it right now.\" }); \"this is a sentence\"", &["this is a sentence"]);
    check("#[allow(a, reason = \"the messages say it\")] json!({ \"description\": \"what a field means\" })", &[]);
    check("let c = ['\\'', '\\n', '\\u{1}']; \"this is a sentence\"", &["this is a sentence"]);
    check("let instruction = if a { \"do as I say\" } else { \"leave it to me\" }; \"short\"", &[]);
}
