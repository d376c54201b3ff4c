//! One search over a batch, and the findings it gives. Must find the same whatever the pieces were.

use super::around::{alnum, digits, is_number_word};
use super::batch::{Batch, Role, Token, fold};
use super::finding::{Finding, FindingKind, Findings};
use super::marks::{self, What};
use super::rules::{NameKind, looks_secret};
use super::{Auditor, Form, Kind, codes, dates, encoded, spelled};
use crate::redact::paths;
use crate::redact::shapes::{self, Shape};
use aho_corasick::AhoCorasick;

/// Something in the text of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) form: Form,
}

/// What of a text that is written in another way is still looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deep {
    /// Runs of base64 and hexadecimal digits, and escapes.
    Runs,
    /// Escapes: what base64 holds is JSON more often than not.
    Escapes,
    Plain,
}

/// The audit of one artifact.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub(super) rules: &'a Auditor,
    file: String,
    kind: Kind,
    pub(super) out: Findings,
    hits: Vec<Hit>,
    /// Findings of pieces overlap; the place of the last ones tells those that were told already.
    last: Option<(u64, Form)>,
}

/// What the byte at the beginning of something is.
const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut b = b'0';
    while b <= b'9' {
        class[b as usize] = 1;
        b += 1;
    }
    // First bytes of CJK numerals: 〇 ○ and 一 to 十.
    class[0xe2] = 3;
    class[0xe3] = 3;
    class[0xe4] = 3;
    class[0xe5] = 3;
    class[0xe9] = 3;
    class
};

impl<'a> Search<'a> {
    pub(super) fn new(rules: &'a Auditor, file: &str, kind: Kind) -> Self {
        Self { rules, file: file.to_owned(), kind, out: Findings::default(), hits: vec![], last: None }
    }

    /// Searches a batch and adds what is found.
    pub(super) fn run(&mut self, batch: &Batch) {
        let mut hits = std::mem::take(&mut self.hits);
        hits.clear();
        let program = |at: usize| token_at(batch, at).is_some_and(|token| token.role == Role::Code);
        self.rules.hits(&batch.text, &program, Deep::Runs, &mut hits);
        hits.extend(batch.numbers.iter().map(|(start, end, form)| Hit {
            start: *start as usize,
            end: *end as usize,
            form: *form,
        }));
        // Of overlapping ones of a kind the leftmost, then the longest.
        hits.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)).then(a.form.cmp(&b.form)));
        let mut free = [0; FindingKind::ALL.len()];
        hits.retain(|hit| {
            let Some(free) = free.get_mut(hit.form.0 as usize) else { return true };
            let fits = hit.start >= *free;
            *free = if fits { hit.end } else { *free };
            fits
        });
        for hit in &hits {
            if let Some(token) = token_at(batch, hit.start)
                && (token.owned.0..token.owned.1).contains(&(hit.start as u32))
                && !self.excused(batch, token, *hit)
            {
                self.add(batch, token, *hit, &hits);
            }
        }
        self.hits = hits;
    }

    fn add(&mut self, batch: &Batch, token: &Token, hit: Hit, hits: &[Hit]) {
        let structured = self.kind.is_structured() && token.role != Role::Text;
        let offset = if structured { token.raw } else { batch.raw(token, hit.start) };
        let told = (offset, hit.form);
        if !structured && self.last.is_some_and(|last| last == told) {
            return;
        }
        self.last = Some(told);
        let lines = |from: usize| {
            let text = batch.text.as_bytes().get(from..hit.start).unwrap_or_default();
            memchr::memchr_iter(b'\n', text).count() as u64
        };
        let line = token.line + if structured { 0 } else { lines(token.start as usize) };
        let finding = || Finding {
            file: self.file.clone(),
            line,
            offset,
            row: None,
            column: None,
            pointer: structured.then(|| batch.pointer(token)),
            kind: hit.form.0,
            severity: hit.form.0.severity(),
            detail: hit.form.1.to_owned(),
            excerpt: super::excerpt::excerpt(&batch.text, token, hit, hits),
        };
        self.out.add(finding, hit.form.0, self.rules.listed);
    }

    /// What the key or an allowed text explains.
    fn excused(&self, batch: &Batch, token: &Token, hit: Hit) -> bool {
        let whole = hit.start == token.start as usize && hit.end == token.end as usize;
        let key = batch.key_of(token.step);
        if hit.form == Form(FindingKind::Code, "alone") && token.role == Role::Value && whole && is_number_word(key) {
            return true;
        }
        if hit.form.1 == "everyday_name" {
            let named = whole && key.ends_with("name");
            return !named && !marks::everyday_stands(batch.text.as_bytes(), hit.start, hit.end);
        }
        if hit.form.0 == FindingKind::Template && token.role == Role::Code {
            return true;
        }
        self.rules.allowed.as_ref().is_some_and(|allowed| covered(allowed, &batch.text, token, hit))
    }
}

/// Whether an allowed text covers a hit.
fn covered(allowed: &AhoCorasick, text: &str, token: &Token, hit: Hit) -> bool {
    const REACH: usize = 200;
    let from = text.ceil_char_boundary(hit.start.saturating_sub(REACH).max(token.start as usize));
    let to = text.floor_char_boundary((hit.end + REACH).min(token.end as usize));
    let window = text.get(from..to).unwrap_or_default();
    allowed.find_overlapping_iter(window).any(|m| from + m.start() <= hit.start && hit.end <= from + m.end())
}

fn token_at(batch: &Batch, at: usize) -> Option<&Token> {
    let next = batch.tokens.partition_point(|token| token.start as usize <= at);
    next.checked_sub(1).and_then(|i| batch.tokens.get(i))
}

impl Auditor {
    /// Everything in a text, and in what is written in another way in it.
    fn hits(&self, text: &str, program: &dyn Fn(usize) -> bool, deep: Deep, hits: &mut Vec<Hit>) {
        let bytes = text.as_bytes();
        self.patterns(text, deep, hits);
        if deep == Deep::Runs {
            encoded::runs(bytes, |decoded| {
                self.inside(&decoded.text, Deep::Escapes, hits, |start, end| decoded.place(start, end));
            });
            self.apart(text, hits);
        }
        let mut at = 0;
        while let Some(step) = bytes.get(at..).and_then(|rest| rest.iter().position(|b| CLASS[*b as usize] != 0)) {
            at += step;
            let class = CLASS[bytes.get(at).copied().unwrap_or_default() as usize];
            let (found, next) = match class {
                1 => {
                    let end = digits(bytes, at);
                    if end - at == 6
                        && let Some((start, end, form)) = codes::six(bytes, at, end, self, program(at))
                    {
                        hits.push(Hit { start, end, form });
                    }
                    if end - at == 1
                        && !self.permuted
                        && let Some((end, code)) = spelled::six_digits(bytes, at)
                        && self.universe.contains_key(&code)
                        && !program(at)
                    {
                        hits.push(Hit { start: at, end, form: Form(FindingKind::Code, "spelled_out") });
                    }
                    (if self.dates { dates::number(bytes, at, end) } else { None }, end)
                }
                _ => (if self.dates && dates::is_numeral(bytes, at) { dates::cjk(bytes, at) } else { None }, at + 1),
            };
            at = match found {
                Some((end, form)) => {
                    hits.push(Hit { start: at, end, form });
                    end.max(next)
                }
                None => next,
            };
        }
    }

    /// What a decoded text says; `place` tells where a part of it stands.
    fn inside(&self, text: &str, deep: Deep, hits: &mut Vec<Hit>, place: impl Fn(usize, usize) -> (usize, usize)) {
        let folded: String = text.chars().filter_map(fold).collect();
        // Where folding changed its length, the whole of it is the place.
        let whole = folded.len() != text.len();
        let mut inner = vec![];
        self.hits(&folded, &|_| false, deep, &mut inner);
        hits.extend(inner.iter().filter(|hit| hit.form.0 != FindingKind::Template).map(|hit| {
            let (start, end) = if whole { place(0, text.len()) } else { place(hit.start, hit.end) };
            Hit { start, end, form: hit.form }
        }));
    }

    /// Names with something between their characters.
    fn apart(&self, text: &str, hits: &mut Vec<Hit>) {
        let Some(search) = self.search.as_ref().filter(|_| self.named) else { return };
        spelled::stretches(text, |squeezed| {
            for m in search.find_overlapping_iter(&squeezed.text) {
                if let Some(What::Name(kind)) = self.whats.get(m.pattern().as_usize())
                    && *kind != NameKind::Everyday
                    && marks::name_stands(squeezed.text.as_bytes(), m.start(), m.end())
                    && let Some((start, end)) = squeezed.apart(text.as_bytes(), m.start(), m.end())
                {
                    hits.push(Hit { start, end, form: Form(FindingKind::Name, kind.detail()) });
                }
            }
        });
    }

    fn patterns(&self, text: &str, deep: Deep, hits: &mut Vec<Hit>) {
        let Some(search) = &self.search else { return };
        let bytes = text.as_bytes();
        // Ends of what was looked at already: long runs full of anchors are looked at once.
        let (mut credential, mut encoded, mut decoded) = (0, 0, 0);
        for m in search.find_overlapping_iter(text) {
            let (start, end) = (m.start(), m.end());
            let Some(what) = self.whats.get(m.pattern().as_usize()) else { continue };
            match what {
                What::Name(_) if !marks::name_stands(bytes, start, end) => {}
                What::Root if !paths::stands(bytes, start, end) => {}
                What::Name(_) | What::Known | What::Root | What::Placeholder => {
                    hits.extend(marks::form(*what).map(|form| Hit { start, end, form }));
                }
                What::Shape(shape) => {
                    if start >= credential
                        && let Some(found) = shapes::at(bytes, *shape, start, end)
                    {
                        credential = found.end;
                        let text = text.get(found.start..found.end).unwrap_or_default();
                        // A name and a value may be prose; the shapes of issuers are not.
                        let sure = !matches!(shape, Shape::Pair | Shape::Bearer | Shape::Basic) || looks_secret(text);
                        if sure {
                            hits.push(Hit { start: found.start, end: found.end, form: Form(FindingKind::Secret, shape.name()) });
                        }
                    }
                }
                What::Encoded => {
                    if start >= encoded
                        && let Some((from, to)) = marks::encoded(bytes, start, end)
                    {
                        hits.push(Hit { start: from, end: to, form: Form(FindingKind::Secret, "base64") });
                        encoded = to;
                    }
                }
                What::Escape => {
                    if deep != Deep::Plain
                        && start >= decoded
                        && let Some((from, to, plain)) = encoded::escaped(text, start)
                    {
                        decoded = to;
                        self.inside(&plain, Deep::Plain, hits, |_, _| (from, to));
                    }
                }
                What::Month => {
                    if !(start > 0 && alnum(bytes, start - 1)) {
                        hits.extend(dates::english(bytes, start).map(|(end, form)| Hit { start, end, form }));
                    }
                }
                What::Homes => {
                    hits.extend(marks::home(bytes, start, end).map(|end| Hit {
                        start,
                        end,
                        form: Form(FindingKind::HostPath, "home"),
                    }));
                }
                What::Template => {
                    hits.extend(marks::template(bytes, start).map(|(end, detail)| Hit {
                        start,
                        end,
                        form: Form(FindingKind::Template, detail),
                    }));
                }
            }
        }
    }
}
