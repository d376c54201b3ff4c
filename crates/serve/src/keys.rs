//! Idempotency keys (spec/seeds.md C3.3): what one may look like, digests, and which are being worked on. A key counts for one caller and
//! one capability. Keys are kept as digests, so that no list of them can be read out of the file.

use crate::keep::Kept;
use crate::refusal::Refusal;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use traderharness_contract::FailureClass;
use traderharness_contract::json::{canonical, text};

/// Characters of a key at most.
pub const LONGEST_KEY: usize = 128;

/// The digest of a key.
pub(crate) fn key_digest(key: &str) -> Result<[u8; 32], Refusal> {
    let fault = |code: &str, message: &str| Refusal::new(FailureClass::InvalidInput, 400, code, message, true);
    if key.is_empty() {
        return Err(fault("idempotency_key_missing", "An idempotency key is needed: a new one for each new request."));
    }
    if key.len() > LONGEST_KEY || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(fault("idempotency_key_invalid", "An idempotency key has 1 to 128 visible ASCII characters without blanks."));
    }
    Ok(Sha256::digest(key.as_bytes()).into())
}

/// The digest of a request, without regard to the order of its fields.
pub(crate) fn digest_of_request(body: &Value) -> [u8; 32] {
    Sha256::digest(text(&canonical(body)).as_bytes()).into()
}

type Claims = Arc<Mutex<BTreeMap<Kept, [u8; 32]>>>;

fn lock(claims: &Claims) -> MutexGuard<'_, BTreeMap<Kept, [u8; 32]>> {
    claims.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keys that are being worked on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Claims);

impl Running {
    /// Takes a key for oneself until the claim is dropped.
    ///
    /// # Errors
    /// 409: with a time to come back for the same request, without one for another.
    pub(crate) fn claim(&self, kept: &Kept, request: &[u8; 32]) -> Result<Claim, Refusal> {
        let mut claims = lock(&self.0);
        match claims.get(kept) {
            None => {
                claims.insert(kept.clone(), *request);
                Ok(Claim { claims: Arc::clone(&self.0), kept: kept.clone() })
            }
            Some(running) if running == request => {
                let message = "The request under this key is still running; ask again for its answer.";
                Err(Refusal::new(FailureClass::IdempotencyConflict, 409, "still_running", message, true).after(1))
            }
            Some(_) => Err(crate::admission::other_request()),
        }
    }
}

/// A key that is being worked on.
#[derive(Debug)]
pub(crate) struct Claim {
    claims: Claims,
    kept: Kept,
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.claims).remove(&self.kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_is_short_and_visible() {
        let check = |key: &str, code: Option<&str>| {
            assert_eq!(key_digest(key).err().map(|r| (r.status, r.code)), code.map(|c| (400, c.to_owned())), "{key:?}");
        };
        check("k1", None);
        check(&"k".repeat(128), None);
        check("", Some("idempotency_key_missing"));
        check(&"k".repeat(129), Some("idempotency_key_invalid"));
        check("a b", Some("idempotency_key_invalid"));
        check("a\nb", Some("idempotency_key_invalid"));
        check("schlüssel", Some("idempotency_key_invalid"));
    }

    #[test]
    fn equal_requests_have_equal_digests() {
        assert_eq!(digest_of_request(&json!({"a": 1, "b": 2})), digest_of_request(&json!({"b": 2, "a": 1})));
        assert_ne!(digest_of_request(&json!({"a": 1})), digest_of_request(&json!({"a": "1"})));
    }

    #[test]
    fn a_key_is_worked_on_once() {
        let running = Running::default();
        let kept = |caller: &str| Kept { caller: caller.into(), capability: "x.y".into(), key: [7; 32] };
        let first = running.claim(&kept("a"), &[1; 32]).unwrap();
        assert_eq!(running.claim(&kept("a"), &[1; 32]).unwrap_err().retry_after, Some(1));
        let other = running.claim(&kept("a"), &[2; 32]).unwrap_err();
        assert_eq!((other.retryable, other.retry_after), (false, None));
        assert!(running.claim(&kept("b"), &[1; 32]).is_ok());
        drop(first);
        assert!(running.claim(&kept("a"), &[2; 32]).is_ok());
    }
}
