//! Company names in texts. Must match full names only: a part of a name, or a word that happens to be one, is not a company.
//!
//! Names of the table of companies have no date; the names announcements print have that of the first announcement. Whose a name is
//! must never be told before the day after that, see [`Name::owner`].

use super::fold::{folded_name, name_key};
use super::text::Span;
use super::{Code, OTHER_CODE, OTHER_COMPANY, label};
use crate::{Day, SecId, Store};
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use std::collections::BTreeMap;

/// Names that are everyday words. They count as the company only beside a code, in quotes, or as the head of a title (`机器人：...`).
const EVERYDAY: &[&str] =
    &["机器人", "太阳能", "农产品", "老百姓", "新产业", "信息发展", "国际医学", "好想你", "数据港", "新能源", "半导体"];

/// Who a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Universe(SecId),
    Other,
}

/// How sure a name is; a smaller class wins when two companies claim it, and within a class the name becomes nobody's.
const PRIMARY: u8 = 0;
const ALIAS: u8 = 1;
const OUTSIDE_PRIMARY: u8 = 2;
const OUTSIDE_ALIAS: u8 = 3;
const VARIANT: u8 = 4;
const OUTSIDE_VARIANT: u8 = 5;

/// Somebody to whom the dataset gives a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    /// Counts on the days after this one; `None` = always.
    since: Option<Day>,
    class: u8,
    owner: Owner,
}

/// Whose a name is, from when on: ascending, never empty.
#[derive(Debug, Clone)]
struct Name(Vec<Claim>);

impl Name {
    fn of(mut claims: Vec<Claim>) -> Self {
        claims.sort_unstable();
        let mut steps: Vec<Claim> = vec![];
        for claim in claims {
            let Some(held) = steps.last().copied() else {
                steps.push(claim);
                continue;
            };
            let now = if claim.class < held.class {
                claim
            } else if claim.class == held.class && claim.owner != held.owner {
                Claim { owner: Owner::Other, ..claim }
            } else {
                continue;
            };
            if held.since == now.since {
                steps.pop();
            }
            steps.push(now);
        }
        Self(steps)
    }

    /// Whose the name is on a day; `None` when the dataset does not know it yet.
    fn owner(&self, today: Day) -> Option<Owner> {
        let known = self.0.partition_point(|claim| claim.since.is_none_or(|day| day < today));
        known.checked_sub(1).map(|i| self.0[i].owner)
    }

    /// Whose the name is in the end.
    fn last(&self) -> Option<Owner> {
        self.0.last().map(|claim| claim.owner)
    }
}

/// All names the dataset knows.
pub(super) struct NameTable {
    owners: BTreeMap<String, Name>,
    search: Option<AhoCorasick>,
    /// Owner and flags of each pattern of `search`.
    patterns: Vec<Pattern>,
}

struct Pattern {
    name: Name,
    /// The first or last character is a letter or digit of ASCII, so a word boundary is needed there.
    bound: (bool, bool),
    everyday: bool,
}

/// Whether a name is long enough to be looked for: two CJK characters, or four of anything else.
fn searchable(name: &str) -> bool {
    let cjk = name.chars().filter(|c| !c.is_ascii()).count();
    let plain = name.chars().filter(char::is_ascii_alphanumeric).count();
    // A name that is part of the neutral words would be found in masked text again.
    let neutral =
        [OTHER_COMPANY, OTHER_CODE, "Company"].iter().any(|w| w.to_ascii_lowercase().contains(&name.to_ascii_lowercase()));
    (cjk >= 2 || plain + cjk >= 4) && name.chars().any(char::is_alphabetic) && !neutral
}

/// A name without marks of the exchange: `*ST`, `ST`, `N`, `XD` ... before it, share class after it. `None` when nothing is left to
/// strip or too little remains.
fn bare_name(name: &str) -> Option<&str> {
    let mut bare = name;
    for mark in ["*ST", "SST", "S*ST", "ST", "XD", "XR", "DR", "N", "C", "S"] {
        if let Some(rest) = bare.strip_prefix(mark).filter(|r| r.starts_with(|c: char| !c.is_ascii())) {
            bare = rest;
            break;
        }
    }
    for mark in ["-UW", "-U", "-W", "-WD", "-D", "-B", "A", "B", "退"] {
        if let Some(rest) = bare.strip_suffix(mark).filter(|r| r.ends_with(|c: char| !c.is_ascii())) {
            bare = rest;
            break;
        }
    }
    let cjk = bare.chars().filter(|c| !c.is_ascii()).count();
    // Two characters are enough when only a share class was cut (`万科A`), three when a mark in front was.
    (bare != name && cjk >= if name.starts_with(bare) { 2 } else { 3 }).then_some(bare)
}

impl NameTable {
    /// `since` is the day of the first bar of each security.
    pub(super) fn new(store: &Store, since: &[Option<Day>]) -> Self {
        let mut claims: BTreeMap<String, Vec<Claim>> = BTreeMap::new();
        let mut claim = |name: &str, claim: Claim| {
            if !name.is_empty() {
                let held = claims.entry(name.to_owned()).or_default();
                if !held.contains(&claim) {
                    held.push(claim);
                }
            }
        };
        let mut company = |name: &str, code: Code, primary: bool, day: Option<Day>| {
            let key = name_key(name);
            let bare = bare_name(&key);
            let mut give = |since: Option<Day>, owner: Owner, class: u8, variant: u8| {
                claim(&key, Claim { since, class, owner });
                // Texts print the name with the blanks it has: `Kweichow Moutai`, `万  科A`.
                claim(&folded_name(name), Claim { since, class, owner });
                if let Some(bare) = bare {
                    claim(bare, Claim { since, class: variant, owner });
                }
            };
            // Before its first bar a security is a company outside the universe.
            give(day, Owner::Other, if primary { OUTSIDE_PRIMARY } else { OUTSIDE_ALIAS }, OUTSIDE_VARIANT);
            if let Some((sec, traded)) = store.find(code).and_then(|sec| Some((sec, since[sec.0 as usize]?))) {
                let from = day.map_or(traded, |day| day.max(traded));
                give(Some(from), Owner::Universe(sec), if primary { PRIMARY } else { ALIAS }, VARIANT);
            }
        };
        for security in store.securities().unwrap_or_default() {
            company(&security.name, security.code, true, None);
            for alias in &security.aliases {
                company(alias, security.code, false, None);
            }
        }
        let mut last = None;
        for row in store.parts.announcements.as_deref().unwrap_or_default() {
            if last != Some((row.code, row.name.as_str())) {
                company(&row.name, row.code, false, Some(row.time.day()));
                last = Some((row.code, &row.name));
            }
        }
        let owners: BTreeMap<String, Name> = claims.into_iter().map(|(name, claims)| (name, Name::of(claims))).collect();
        let mut patterns = vec![];
        let mut texts = vec![];
        for (name, history) in owners.iter().filter(|(name, _)| searchable(name)) {
            let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            let bound = (edge(name.chars().next()), edge(name.chars().next_back()));
            patterns.push(Pattern { name: history.clone(), bound, everyday: EVERYDAY.contains(&name.as_str()) });
            texts.push(name.as_str());
        }
        // Every match is wanted, so that a boundary that fails for the longest name leaves the shorter ones.
        let search = (!texts.is_empty())
            .then(|| {
                AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).ascii_case_insensitive(true).build(&texts).ok()
            })
            .flatten();
        Self { owners, search, patterns }
    }

    /// Neutral form of a name field: the label of its company, else the neutral word. A field has no day of its own: its security
    /// is one that the agent sees.
    pub(super) fn neutral<'c>(&self, name: &str, visible: impl Fn(SecId) -> &'c str) -> String {
        match self.owners.get(&name_key(name)).and_then(Name::last) {
            Some(Owner::Universe(sec)) => label(visible(sec)),
            _ => OTHER_COMPANY.to_owned(),
        }
    }

    /// Adds the spans of the names known today, sorted by start, of those that start together the longest first; and to `late` those
    /// of names that are only known later, which belong to nobody yet.
    pub(super) fn spans<'c>(
        &self,
        text: &str,
        today: Day,
        visible: impl Fn(SecId) -> &'c str,
        spans: &mut Vec<Span>,
        late: &mut Vec<Span>,
    ) {
        let Some(search) = &self.search else { return };
        for found in search.find_overlapping_iter(text) {
            let pattern = &self.patterns[found.pattern().as_usize()];
            let (start, end) = (found.start(), found.end());
            let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            if (pattern.bound.0 && letter(super::around::before(text, start)))
                || (pattern.bound.1 && letter(super::around::after(text, end)))
                || (pattern.everyday && !names_a_company(text, start, end))
            {
                continue;
            }
            let other = || Span { start, end, with: OTHER_COMPANY.to_owned() };
            match pattern.name.owner(today) {
                Some(Owner::Universe(sec)) => spans.push(Span { start, end, with: label(visible(sec)) }),
                Some(Owner::Other) => spans.push(other()),
                None => late.push(other()),
            }
        }
        spans.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
    }
}

/// An everyday word stands for the company: in quotes, at the head of a title, or beside a code.
fn names_a_company(text: &str, start: usize, end: usize) -> bool {
    let (left, right) = (super::around::before(text, start), super::around::after(text, end));
    let quoted = matches!((left, right), (Some('“' | '"' | '「' | '《' | '【'), Some('”' | '"' | '」' | '》' | '】')));
    let head = start == 0 && matches!(right, Some('：' | ':'));
    let rest = text[end..].trim_start_matches([' ', '(', '（', '[', '【']);
    let marks = ["SH", "SZ", "BJ", "sh", "sz", "bj"];
    let rest = marks.iter().find_map(|m| rest.strip_prefix(m)).unwrap_or(rest);
    let code_after = rest.len() < text.len() - end && super::around::six_digits_after(rest, 0);
    let head_text = text[..start].trim_end_matches([' ', ')', '）', ']', '】']);
    let code_before = super::around::six_digits_before(text, head_text.len());
    quoted || head || code_after || code_before
}
