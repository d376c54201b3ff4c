//! Masking of dates and entities (engine E8). Stub: the API is fixed, the bodies follow.

use crate::{Day, Moment, SecId, Store};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// How codes are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MaskStyle {
    /// A keyed bijection inside each board to aliases such as `SHM-000001` (v5).
    #[default]
    Opaque,
    /// A keyed permutation of the real codes inside each board (v1-v4).
    Permutation,
}

/// What a run hides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MaskConfig {
    /// Hide absolute dates.
    pub dates: bool,
    /// Hide codes and names.
    pub entities: bool,
    /// How codes are hidden.
    pub style: MaskStyle,
    /// Secret of the run; the alias map is derived from it by HMAC-SHA-256.
    pub key: Vec<u8>,
}

/// A visible code that names no single security.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unresolved {
    /// No visible code of this run.
    Unknown,
    /// A bare suffix or partial alias; the candidates, in visible order, never empty.
    Ambiguous(Vec<SecId>),
}

/// The mask of one run.
#[derive(Debug)]
pub struct Mask {
    config: MaskConfig,
    visible: Vec<String>,
    by_visible: BTreeMap<String, SecId>,
}

impl Mask {
    /// Builds the mask of a run over a store.
    pub fn new(store: &Store, config: MaskConfig) -> Self {
        let visible: Vec<String> = store.codes().iter().map(ToString::to_string).collect();
        let by_visible = visible.iter().enumerate().map(|(i, v)| (v.clone(), SecId(i as u32))).collect();
        Self { config, visible, by_visible }
    }

    /// What is hidden.
    pub const fn config(&self) -> &MaskConfig {
        &self.config
    }

    /// Visible code: the alias, or the real code when entities are not masked.
    pub fn code(&self, sec: SecId) -> &str {
        &self.visible[sec.0 as usize]
    }

    /// Position of the security in the order of visible codes; the tie key of every list (spec/tools.md b39).
    pub fn rank(&self, sec: SecId) -> u32 {
        sec.0
    }

    /// Security of a visible code. With entities masked, real codes and names are unknown (engine E8.5).
    ///
    /// # Errors
    /// [`Unresolved`].
    pub fn resolve(&self, visible: &str) -> Result<SecId, Unresolved> {
        self.by_visible.get(visible).copied().ok_or(Unresolved::Unknown)
    }

    /// Visible form of a day: `D-3` relative to `today`, or ISO.
    pub fn day(&self, day: Day, today: Day) -> String {
        let _ = today;
        day.to_string()
    }

    /// Visible form of a moment: `D-1 15:40`, or ISO.
    pub fn moment(&self, moment: Moment, today: Day) -> String {
        let _ = today;
        moment.to_string()
    }

    /// Visible form of a company name given by the dataset.
    pub fn name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        Cow::Borrowed(name)
    }

    /// Visible form of a text from a source: names, standalone codes and absolute dates neutralised.
    pub fn text<'t>(&self, text: &'t str, today: Day) -> Cow<'t, str> {
        let _ = today;
        Cow::Borrowed(text)
    }
}
