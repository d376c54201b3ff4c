//! What the one search over all texts looks for, and what each match has to prove before it counts.

use super::Form;
use super::around::{alnum, byte, digit};
use super::batch::fold;
use super::finding::FindingKind;
use super::rules::{DatePolicy, NameKind, Rules};
use crate::redact::shapes::{self, Shape};
use crate::redact::{forms, paths};
use std::collections::BTreeMap;

/// What a pattern begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Name(NameKind),
    /// A known secret in one of its forms.
    Known,
    Shape(Shape),
    /// The encoded beginning of a credential.
    Encoded,
    /// The beginning of an escape.
    Escape,
    /// The first letters of a month.
    Month,
    Root,
    /// The folder that holds home folders.
    Homes,
    Template,
    /// A placeholder in single braces.
    Placeholder,
}

/// Beginnings of credentials that are looked for in base64.
const HEADS: &[&str] =
    &["sk-proj-", "sk-ant-", "ghp_", "github_pat_", "AKIA", "xoxb-", "xoxp-", "pypi-", "Bearer ", "api_key", "password"];

/// All patterns, each once.
pub(super) fn patterns(rules: &Rules) -> Vec<(String, What)> {
    let mut all: BTreeMap<(String, What), ()> = BTreeMap::new();
    let mut add = |text: String, what| {
        if !text.is_empty() {
            all.insert((text, what), ());
        }
    };
    for (name, kind) in &rules.names {
        // As the texts are folded before they are searched.
        let name: String = name.trim().chars().filter_map(fold).collect();
        for form in [name.clone(), name.split_whitespace().collect()] {
            if searchable(&form) {
                add(form, What::Name(*kind));
            }
        }
    }
    for form in rules.secrets.iter().flat_map(|secret| forms::forms(secret)) {
        add(form, What::Known);
    }
    for (text, shape) in shapes::ANCHORS.iter() {
        add(text.clone(), What::Shape(*shape));
    }
    for head in HEADS {
        for offset in 0..3 {
            let form = forms::base64_inside(head.as_bytes(), offset);
            if form.len() >= 4 {
                add(form, What::Encoded);
            }
        }
    }
    add("c2st".to_owned(), What::Encoded);
    for escape in ["%", "&#", "\\u", "\\x", "\\2", "\\3"] {
        add(escape.to_owned(), What::Escape);
    }
    if rules.dates == DatePolicy::Forbidden {
        for month in ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"] {
            add(month.to_owned(), What::Month);
        }
    }
    for root in rules.paths.iter().flat_map(|root| paths::spellings(root)) {
        add(root, What::Root);
    }
    // By the names of their folders: where people's own folders lie on the three systems.
    for folder in ["home", "Users"] {
        add(format!("/{folder}/"), What::Homes);
        add(format!("\\/{folder}\\/"), What::Homes);
    }
    for homes in [":\\Users\\", ":\\\\Users\\\\", "/var/folders/"] {
        add(homes.to_owned(), What::Homes);
    }
    add(format!("/{}/", "root"), What::Homes);
    for open in ["{{", "${", "{%", "%("] {
        add(open.to_owned(), What::Template);
    }
    for name in &rules.templates {
        add(format!("{{{name}}}"), What::Placeholder);
    }
    all.into_keys().collect()
}

/// Whether a name is long enough to be told from words.
fn searchable(name: &str) -> bool {
    let wide = name.chars().filter(|c| !c.is_ascii()).count();
    let plain = name.chars().filter(char::is_ascii_alphanumeric).count();
    (wide >= 2 || plain + wide >= 4) && name.chars().any(char::is_alphabetic)
}

/// Whether a name stands alone where it begins or ends in letters.
pub(super) fn name_stands(text: &[u8], start: usize, end: usize) -> bool {
    !(alnum(text, start) && start > 0 && alnum(text, start - 1) || alnum(text, end.wrapping_sub(1)) && alnum(text, end))
}

/// Whether an everyday word stands for the company: in quotes, beside a code, at the head of a title.
pub(super) fn everyday_stands(text: &[u8], start: usize, end: usize) -> bool {
    let head = text.get(..start).unwrap_or_default();
    let tail = text.get(end..).unwrap_or_default();
    let opens = ["“", "\"", "「", "《", "【"].iter().any(|sign| head.ends_with(sign.as_bytes()));
    let closes = ["”", "\"", "」", "》", "】"].iter().any(|sign| tail.starts_with(sign.as_bytes()));
    let skip = tail.iter().take(8).take_while(|b| !b.is_ascii_digit()).count();
    let bracket = tail.first().is_some_and(|b| matches!(b, b'(' | b'[' | b' ')) || tail.starts_with("（".as_bytes());
    let code = bracket
        && skip < 6
        && tail.get(skip..skip + 6).is_some_and(|six| six.iter().all(u8::is_ascii_digit))
        && !digit(tail, skip + 6);
    opens && closes || code
}

/// End of the home folder whose parent ends at `end`.
pub(super) fn home(text: &[u8], start: usize, end: usize) -> Option<usize> {
    let windows = byte(text, start) == Some(b':');
    let before = start.checked_sub(1).and_then(|at| byte(text, at));
    let begins = if windows {
        before.is_some_and(|b| b.is_ascii_alphabetic()) && !alnum(text, start.wrapping_sub(2))
    } else {
        !before.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'~' | b'*' | b'>' | b'}'))
    };
    let rest = text.get(end..).unwrap_or_default();
    let len =
        rest.iter().take(64).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-') || **b >= 0x80).count();
    let user = rest.get(..len).unwrap_or_default();
    let placeholder = ["user", "username", "me", "you", "name"].iter().any(|known| user.eq_ignore_ascii_case(known.as_bytes()));
    (begins && len > 0 && !placeholder).then_some(end + len)
}

/// End of the placeholder that begins at `start`.
pub(super) fn template(text: &[u8], start: usize) -> Option<(usize, &'static str)> {
    let inner = |open: usize, close: &[u8], most: usize| {
        let from = start + open;
        let rest = text.get(from..text.len().min(from + most))?;
        let len = memchr::memmem::find(rest, close)?;
        Some((rest.get(..len)?, from + len + close.len()))
    };
    let named = |name: &[u8]| {
        name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
            && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
    };
    match text.get(start..start + 2)? {
        b"{{" => {
            let (body, end) = inner(2, b"}}", 80)?;
            let plain =
                body.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_' | b'.' | b'|' | b'-' | b'(' | b')'));
            (plain && named(body.trim_ascii().split(|b| matches!(b, b' ' | b'|' | b'(')).next()?))
                .then_some((end, "double_braces"))
        }
        b"${" => inner(2, b"}", 60).filter(|(name, _)| named(name)).map(|(_, end)| (end, "dollar_brace")),
        b"{%" => inner(2, b"%}", 160)
            .filter(|(body, _)| body.first().is_some_and(|b| matches!(b, b' ' | b'-')))
            .map(|(_, end)| (end, "block")),
        b"%(" => inner(2, b")", 40)
            .filter(|(name, end)| named(name) && matches!(byte(text, *end), Some(b's' | b'd' | b'f')) && !alnum(text, *end + 1))
            .map(|(_, end)| (end + 1, "percent")),
        _ => None,
    }
}

/// The base64 run around a match, when a credential is in it.
pub(super) fn encoded(text: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
    let of = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
    let from = start - text.get(..start)?.iter().rev().take(4096).take_while(|b| of(b)).count();
    let to = end + text.get(end..)?.iter().take(8192).take_while(|b| of(b)).count();
    let run = text.get(from..to)?;
    let held = (0..4).any(|skip| {
        let decoded = forms::base64_decode(run.get(skip..).unwrap_or_default());
        !shapes::find(&String::from_utf8_lossy(&decoded)).is_empty()
    });
    held.then_some((from, to))
}

/// A match that has proved itself by its pattern alone.
pub(super) const fn form(what: What) -> Option<Form> {
    Some(match what {
        What::Name(kind) => Form(FindingKind::Name, kind.detail()),
        What::Known => Form(FindingKind::Secret, "known"),
        What::Root => Form(FindingKind::HostPath, "root"),
        What::Placeholder => Form(FindingKind::Template, "braces"),
        _ => return None,
    })
}
