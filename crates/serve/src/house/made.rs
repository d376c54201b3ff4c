//! [`MadeOf`]: what a session is made of, for the run folder of whoever runs the house. No door shows any of it.

use super::House;
use crate::caller::Caller;
use crate::config::{MaskChoice, Profile};
use crate::refusal::Refusal;
use serde_json::Value;
use std::sync::Arc;
use traderharness_contract::FailureClass;
use traderharness_market::Store;

/// What a session is made of; with it [`crate::rerun`] plays the session again.
#[derive(Debug, Clone)]
pub struct MadeOf {
    /// Card, window and mask.
    pub profile: Profile,
    /// Market.
    pub store: Arc<Store>,
    /// Key of the masks: private.
    pub key: Vec<u8>,
}

impl House {
    /// What a session of a caller is made of.
    ///
    /// # Errors
    /// As [`House::session`]; 503 when its profile is gone.
    pub fn made_of(&self, caller: &Caller, id: &str) -> Result<MadeOf, Refusal> {
        let hosted = self.find(caller, id)?;
        let world = self.world(&hosted.profile)?;
        let gone = || {
            let message = "The session is not kept any more.";
            Refusal::new(FailureClass::DependencyUnavailable, 503, "session_gone", message, false)
        };
        let row = self.keep.session(&hosted.id)?.ok_or_else(gone)?;
        if row.made_of != world.made_of {
            let message = "The session was made of another card, window, mask, dataset or version of this program.";
            return Err(Refusal::new(FailureClass::DependencyUnavailable, 503, "made_of_other", message, false));
        }
        let day = |key: &str| world.made_of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let profile = Profile {
            name: world.profile.clone(),
            card: (*world.card).clone(),
            start: day("start"),
            end: Some(day("end")),
            mask: MaskChoice { dates: world.hide.dates, entities: world.hide.entities },
            dataset: None,
        };
        Ok(MadeOf { profile, store: Arc::clone(&world.store), key: row.mask_key })
    }
}
