//! [`World`]: what the sessions of one profile share: market, card, tools, days. Made once when the house opens.

use crate::config::Profile;
use crate::manifest::registry;
use serde_json::{Value, json};
use std::sync::Arc;
use traderharness_harness::toolbox::ToolboxError;
use traderharness_harness::{Card, HostFacts, SessionConfig, Toolbox, prompt};
use traderharness_market::{Day, Mask, MaskConfig, MaskStyle, Store};

/// Why sessions of a profile cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldFault {
    /// The dataset is not there.
    #[error("there is no dataset `{name}`; there are {}", .known.join(", "))]
    Dataset {
        /// Name.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// More than one dataset and none named.
    #[error("the profile names no dataset, and there are {}", .known.join(", "))]
    NoDataset {
        /// What there is.
        known: Vec<String>,
    },
    /// No trading day.
    #[error("no trading day of the dataset lies between {start} and {end}")]
    NoDay {
        /// First day.
        start: String,
        /// Last day.
        end: String,
    },
    /// The card or its tools.
    #[error(transparent)]
    Tools(#[from] ToolboxError),
}

/// What the sessions of one profile share.
#[derive(Debug)]
pub(crate) struct World {
    /// With the card as its sessions have it, and both ends of its window.
    pub(crate) profile: Profile,
    pub(crate) store: Arc<Store>,
    pub(crate) card: Arc<Card>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) days: Vec<Day>,
    pub(crate) hide: MaskConfig,
    pub(crate) check_output: bool,
    /// What a session must find again to go on: a change of any of it gives other bytes.
    pub(crate) made_of: Value,
}

impl World {
    pub(crate) fn of(profile: &Profile, store: Arc<Store>, check_output: bool) -> Result<Self, WorldFault> {
        // The clock of a hosted session moves when a phase is completed, so the agent must be able to complete one.
        let card = Card { require_phase_completion: true, ..profile.card.clone() };
        let end = profile.end.as_ref().unwrap_or(&profile.start);
        let no_day = || WorldFault::NoDay { start: profile.start.clone(), end: end.clone() };
        let window = Day::parse(&profile.start).ok().zip(Day::parse(end).ok()).ok_or_else(no_day)?;
        let days = store.calendar().between(window.0, window.1).to_vec();
        if days.is_empty() {
            return Err(no_day());
        }
        let hide =
            MaskConfig { dates: profile.mask.dates, entities: profile.mask.entities, style: MaskStyle::Opaque, key: Vec::new() };
        let toolbox = registry()?.build(&card, hide.entities, &HostFacts::default())?;
        let meta = store.meta();
        let made_of = json!({
            "card": card,
            "start": profile.start,
            "end": end,
            "mask": profile.mask,
            "dataset": { "name": meta.name, "sha256": meta.digest },
            "program": env!("CARGO_PKG_VERSION"),
        });
        Ok(Self {
            profile: Profile { card: card.clone(), end: Some(end.clone()), ..profile.clone() },
            card: Arc::new(card),
            toolbox: Arc::new(toolbox),
            days,
            hide,
            check_output,
            made_of,
            store,
        })
    }

    /// The system prompt of its sessions.
    pub(crate) fn system(&self) -> String {
        prompt::system(&self.card, self.hide.dates, self.hide.entities)
    }

    /// A session's configuration under its key.
    pub(crate) fn session(&self, key: &[u8]) -> SessionConfig {
        let mask = Mask::new(&self.store, MaskConfig { key: key.to_vec(), ..self.hide.clone() });
        SessionConfig {
            store: Arc::clone(&self.store),
            mask: Arc::new(mask),
            card: Arc::clone(&self.card),
            toolbox: Arc::clone(&self.toolbox),
            check_output: self.check_output,
        }
    }
}
