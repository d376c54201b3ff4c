//! [`MadeOf`]: what a session is made of, for the run folder of whoever runs the house. No door shows any of it.

use super::House;
use super::sessions::gone;
use crate::caller::Caller;
use crate::config::Profile;
use crate::refusal::Refusal;
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
        let row = self.keep.session(&hosted.id)?.ok_or_else(gone)?;
        if row.made_of != world.made_of {
            let message = "The session was made of another card, window, mask, dataset or version of this program.";
            return Err(Refusal::new(FailureClass::DependencyUnavailable, 503, "made_of_other", message, false));
        }
        Ok(MadeOf { profile: world.profile.clone(), store: Arc::clone(&world.store), key: row.mask_key })
    }
}
