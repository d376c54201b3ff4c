//! Masking of dates and entities (engine E8): one [`Mask`] per run, built once, shared by everything that leaves the environment.
//!
//! | what | masked form |
//! |---|---|
//! | day, moment | `D-21`, `D-6 10:30`: calendar days from today |
//! | month, quarter, half, year in a text | `M-4`, `Q-2`, `H-1`, `Y-1`: calendar units from today's |
//! | day of a month alone in a text (`17日晚`) | `D?`: the month is not told, so no offset is either |
//! | code, style opaque | `SHM-000001`, `SZM-`, `GEM-`, `STAR-`, `BSE-` |
//! | code, style permutation | a real code of the same board, of another security |
//! | company name | `Company SHM-000001` |
//! | name of a company outside the universe | `another company` |
//! | code outside the universe, in a text | `another code` |
//!
//! The two switches are independent. This module must never print the real identity behind a visible code, in errors neither.
//! What it cannot hide is what a model remembers of the world (complaint LA-8): a text that tells a famous event without any
//! name, code or date stays as it is.

mod alias;
mod around;
mod codes;
mod dates;
mod fold;
mod names;
mod reference;
mod text;
mod when;

use crate::{Code, Day, Moment, SecId, Store};
use alias::CodeMap;
use codes::CodeScan;
use fold::Folded;
use names::NameTable;
use std::borrow::Cow;

/// How codes are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MaskStyle {
    /// A keyed bijection inside each board to aliases such as `SHM-000001` (v5).
    #[default]
    Opaque,
    /// A keyed permutation of the real codes inside each board (v1-v4).
    Permutation,
    /// The maps of the Python implementation, from its seed and the codes of its universe: only to hold runs against what it recorded.
    /// [`MaskConfig::key`] has no part in it, and anybody can find the map by trying seeds.
    Reference {
        /// Aliases such as `SHM-000001`; else real codes of the same board, moved on by one number.
        opaque: bool,
        /// Its mask seed.
        seed: i64,
        /// First and last day of the daily rows it loaded: its universe is the codes with a row among them. `None`: all codes of the
        /// store. Codes outside come behind the aliases of their board, and keep themselves where codes are exchanged.
        loaded: Option<(Day, Day)>,
    },
}

impl MaskStyle {
    /// Whether visible codes are aliases such as `SHM-000001`; else they are real codes of other securities.
    pub const fn is_opaque(self) -> bool {
        matches!(self, Self::Opaque | Self::Reference { opaque: true, .. })
    }
}

/// What a run hides.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct MaskConfig {
    /// Hide absolute dates.
    pub dates: bool,
    /// Hide codes and names.
    pub entities: bool,
    /// How codes are hidden.
    pub style: MaskStyle,
    /// Secret of the run; the alias map is derived from it by HMAC-SHA-256. At least 16 random bytes make it unsearchable.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for MaskConfig {
    /// Prints the key's id, never the key: debug output lands in logs and tracebacks (engine E8.7).
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MaskConfig")
            .field("dates", &self.dates)
            .field("entities", &self.entities)
            .field("style", &self.style)
            .field("key_id", &alias::key_id(&self.key))
            .finish()
    }
}

/// A visible code that names no single security.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unresolved {
    /// No visible code of this run.
    Unknown,
    /// A bare suffix or partial alias; the candidates, in visible order, never empty.
    Ambiguous(Vec<SecId>),
}

/// Visible name of every company that is not in the run's universe.
pub const OTHER_COMPANY: &str = "another company";

/// Visible form, in texts, of every code that is not in the run's universe.
pub const OTHER_CODE: &str = "another code";

/// The mask of one run.
pub struct Mask {
    config: MaskConfig,
    codes: CodeMap,
    /// Visible name of each security.
    names: Vec<String>,
    /// What texts are searched for; `None` when entities are not masked.
    entities: Option<Entities>,
}

/// Names and codes that texts must not show.
struct Entities {
    table: NameTable,
    universe: Vec<Code>,
    /// Day of the first bar of each security; from the day after it is a security of the universe in texts.
    since: Vec<Option<Day>>,
}

impl std::fmt::Debug for Mask {
    /// Says what is hidden; prints no mapping.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mask").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Mask {
    /// Builds the mask of a run over a store.
    pub fn new(store: &Store, config: MaskConfig) -> Self {
        let inside = |(first, last)| (0..store.len()).map(|i| store.has_daily(i, first, last)).collect();
        let universe: Option<Vec<bool>> = match config.style {
            MaskStyle::Reference { loaded, .. } => loaded.map(inside),
            _ => None,
        };
        let codes = CodeMap::new(store.codes(), universe.as_deref(), &config);
        let real = |code: Code| {
            let table = store.securities()?;
            table.binary_search_by(|s| s.code.cmp(&code)).ok().map(|i| table[i].name.clone())
        };
        let names =
            (0..store.len() as u32)
                .map(SecId)
                .map(|sec| {
                    if config.entities { label(codes.code(sec)) } else { real(store.codes()[sec.0 as usize]).unwrap_or_default() }
                })
                .collect();
        let entities = config.entities.then(|| {
            let since: Vec<Option<Day>> = (0..store.len()).map(|i| store.first_bar(i)).collect();
            Entities { table: NameTable::new(store, &since), universe: store.codes().to_vec(), since }
        });
        Self { config, codes, names, entities }
    }

    /// What is hidden.
    pub const fn config(&self) -> &MaskConfig {
        &self.config
    }

    /// Names the key without giving it away: 16 hex digits, for manifests.
    pub fn key_id(&self) -> String {
        alias::key_id(&self.config.key)
    }

    /// Visible code: the alias, or the real code when entities are not masked.
    pub fn code(&self, sec: SecId) -> &str {
        self.codes.code(sec)
    }

    /// Position of the security in the order of visible codes; the tie key of every list (spec/tools.md b39).
    pub fn rank(&self, sec: SecId) -> u32 {
        self.codes.rank(sec)
    }

    /// All securities of the universe in the order of their visible codes.
    pub fn in_visible_order(&self) -> &[SecId] {
        self.codes.in_order()
    }

    /// Security of a visible code. With entities masked, real codes and names are unknown (engine E8.5).
    ///
    /// Only the complete visible code is accepted. A bare number that is the number of aliases, an alias in lower case or without
    /// its zeros, and, unmasked, six digits with their exchange (`600519.SH`) are ambiguous with the candidates, even a single
    /// one: nothing is guessed (engine E8.6). In the permutation style every real code of the universe is also a visible one.
    ///
    /// # Errors
    /// [`Unresolved`].
    pub fn resolve(&self, visible: &str) -> Result<SecId, Unresolved> {
        self.codes.resolve(visible)
    }

    /// Visible form of a day: `D-3` relative to `today`, or ISO.
    pub fn day(&self, day: Day, today: Day) -> String {
        if self.config.dates { dates::day_label(day, today) } else { day.to_string() }
    }

    /// Visible form of a moment: `D-1 15:40`, or ISO.
    pub fn moment(&self, moment: Moment, today: Day) -> String {
        if self.config.dates { dates::moment_label(moment, today) } else { moment.to_string() }
    }

    /// Reads a visible day of an argument: `D-3` when dates are masked (an absolute date is then not a visible form), else
    /// `YYYY-MM-DD`.
    pub fn parse_day(&self, text: &str, today: Day) -> Option<Day> {
        if self.config.dates { dates::parse_day_label(text, today) } else { Day::parse(text).ok() }
    }

    /// Reads a visible moment of an argument: `D-3 10:30` when dates are masked, else `YYYY-MM-DD HH:MM`.
    pub fn parse_moment(&self, text: &str, today: Day) -> Option<Moment> {
        if self.config.dates {
            return dates::parse_moment_label(text, today);
        }
        let (day, time) = text.split_once(' ')?;
        Some(Day::parse(day).ok()?.at(dates::parse_minute(time)?))
    }

    /// Visible name of a security: the neutral label, or the dataset's name when entities are not masked (empty when it has none).
    pub fn security_name(&self, sec: SecId) -> &str {
        &self.names[sec.0 as usize]
    }

    /// Visible form of a company name given by the dataset: its neutral label, or [`OTHER_COMPANY`] for every name that belongs to
    /// no security of the universe. A label that is already neutral stays.
    pub fn name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        let Some(entities) = &self.entities else { return Cow::Borrowed(name) };
        let neutral = name == OTHER_COMPANY || name.strip_prefix(LABEL).is_some_and(|code| self.resolve(code).is_ok());
        if name.is_empty() || neutral {
            return Cow::Borrowed(name);
        }
        Cow::Owned(entities.table.neutral(name, |sec| self.code(sec)))
    }

    /// Visible form of a text from a source: names, standalone codes and absolute dates neutralised, everything else untouched.
    ///
    /// One pass, leftmost-longest. Names are full names of the dataset (companies, their aliases, the names announcements print) of
    /// two CJK characters or four letters at least, with full-width forms folded; the marks of the exchange (`*ST`, `XD`, share class
    /// `A`) may be missing. Six digits are a code only when they are one of the universe and stand alone, or carry the right
    /// exchange (`SH600519`, `600519.SH`); codes of other companies only in a place for codes. Dates: see the table above and
    /// engine E8.4. The result masked again is the same (style opaque; in the permutation style a visible code is itself a real one).
    ///
    /// What belongs to whom is bound to `today`: a security is one of the universe from the day after its first bar, a name that only
    /// announcements print is its company's from the day after the first of them. Before, a later name is hidden as
    /// [`OTHER_COMPANY`], only where nothing known stands: a later day hides more of an earlier text, and never says whose it is.
    pub fn text<'t>(&self, text: &'t str, today: Day) -> Cow<'t, str> {
        if text.is_empty() || (self.entities.is_none() && !self.config.dates) {
            return Cow::Borrowed(text);
        }
        let folded = Folded::new(text);
        text::replace(text, &folded, &self.hidden(&folded, today))
    }

    /// The beginning of a text from a source whose visible form has at most `limit` characters, and the number of characters of the
    /// visible form of the whole text. Neither depends on the length of anything hidden.
    ///
    /// The visible form of the part is the beginning of the visible form of the whole: a cut inside a name, a code or a date would
    /// leave a half that no mask knows, so the part ends before it.
    pub fn beginning<'t>(&self, text: &'t str, today: Day, limit: usize) -> (&'t str, usize) {
        if self.entities.is_none() && !self.config.dates {
            return text::fitting(text, &Folded::new(text), &[], limit);
        }
        let folded = Folded::new(text);
        let spans = self.hidden(&folded, today);
        let (part, characters) = text::fitting(text, &folded, &spans, limit);
        if part.len() == text.len() {
            return (part, characters);
        }
        // What stands after the cut may be why something before it is hidden, or not: `600519` before a seventh digit is no code.
        let whole = text::replace(text, &folded, &spans);
        let inside = |end: usize| spans.iter().any(|s| folded.original(s.start) < end && end < folded.original(s.end));
        let ends = std::iter::once(part.len()).chain(part.char_indices().rev().map(|(at, _)| at).take(REACH));
        let fit = ends.filter(|end| !inside(*end)).find(|end| {
            let shown = self.text(&text[..*end], today);
            whole.starts_with(&*shown) && shown.chars().count() <= limit
        });
        (&text[..fit.unwrap_or(0)], characters)
    }

    /// What a text must not show, and what stands there instead.
    fn hidden(&self, folded: &Folded<'_>, today: Day) -> Vec<text::Span> {
        let (mut spans, mut late) = (vec![], vec![]);
        if let Some(entities) = &self.entities {
            entities.table.spans(&folded.text, today, |sec| self.code(sec), &mut spans, &mut late);
            let mut codes = vec![];
            let known = |sec: SecId| entities.since[sec.0 as usize].is_some_and(|day| day < today);
            CodeScan { text: &folded.text, universe: &entities.universe, known: &known, map: &self.codes }
                .spans(&spans, &mut codes);
            spans.append(&mut codes);
        }
        if self.config.dates {
            when::spans(&folded.text, today, &mut spans);
        }
        text::chosen(spans, late)
    }
}

/// Characters before a cut that what stands after it may explain.
const REACH: usize = 64;

/// What a neutral company name begins with.
const LABEL: &str = "Company ";

/// Neutral label of a company, made from its visible code.
fn label(visible: &str) -> String {
    format!("{LABEL}{visible}")
}
