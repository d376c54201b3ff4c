//! [`Caller`]: who calls, and what they are entitled to. Tokens are kept as digests only, and compared without telling by time how much
//! of one was right.

use crate::config::{CallerConfig, ServerConfig};
use crate::random;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The scope that orders need beside that of their capability: the separate authority of the execution boundary (spec/seeds.md C1.3).
pub const SCOPE_TRADE: &str = "trade";

/// Longest bearer token, bytes.
const LONGEST_TOKEN: usize = 512;

/// One who may call. Made from the configuration; nothing a tool returns can change it (spec/seeds.md C1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Id.
    pub id: String,
    /// Scopes: dotted capability names, `group.*`, `trade`, or `*`.
    pub grants: BTreeSet<String>,
    /// Source tables the caller may see, or `*`.
    pub data_rights: BTreeSet<String>,
    /// Agent revisions: id to pinned capability revisions.
    pub agent_revisions: BTreeMap<String, BTreeMap<String, String>>,
    /// Agent revision of calls that name none.
    pub default_revision: Option<String>,
    /// Profile of sessions that name none.
    pub profile: String,
    /// Profiles the caller may use; empty = every profile.
    pub profiles: BTreeSet<String>,
}

impl Caller {
    /// Whether the caller holds a scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        let group = scope.split_once('.').map(|(group, _)| format!("{group}.*"));
        self.grants.contains("*") || self.grants.contains(scope) || group.is_some_and(|group| self.grants.contains(&group))
    }

    /// Whether the caller may see a source.
    pub fn has_right(&self, source: &str) -> bool {
        self.data_rights.contains("*") || self.data_rights.contains(source)
    }

    /// Whether the caller may make sessions of a profile.
    pub fn may_use(&self, profile: &str) -> bool {
        self.profiles.is_empty() || self.profile == profile || self.profiles.contains(profile)
    }

    fn of(config: &CallerConfig, server: &ServerConfig) -> Self {
        let first = server.profiles.first().map(|p| p.name.clone()).unwrap_or_default();
        Self {
            id: config.id.clone(),
            grants: config.grants.iter().cloned().collect(),
            data_rights: config.data_rights.iter().cloned().collect(),
            agent_revisions: config.agent_revisions.iter().map(|r| (r.id.clone(), r.pins.clone())).collect(),
            default_revision: config.agent_revisions.first().map(|r| r.id.clone()),
            profile: config.profile.clone().unwrap_or(first),
            profiles: config.profiles.iter().cloned().collect(),
        }
    }
}

/// A new bearer token and its digest for the configuration. The token is shown once and kept nowhere.
///
/// # Errors
/// When the system gives no random bytes.
pub fn draw_token() -> Result<(String, String), getrandom::Error> {
    let token = format!("th_{}", random::letters(48)?);
    let digest = digest_of(&token);
    Ok((token, digest))
}

/// The digest of a token as it stands in a configuration.
pub fn digest_of(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

/// Lowercase hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(nibble.into(), 16).unwrap_or('0'));
        }
        text
    })
}

/// A token that cannot be looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// The environment variable is not there or empty.
    #[error("caller `{caller}`: the environment variable {variable} holds no token")]
    Missing {
        /// Caller.
        caller: String,
        /// Variable.
        variable: String,
    },
    /// The digest is none.
    #[error("caller `{caller}`: token_sha256 is not 64 lowercase hex digits")]
    Digest {
        /// Caller.
        caller: String,
    },
    /// Two callers have one token.
    #[error("callers `{first}` and `{second}` have one token; each needs its own")]
    Shared {
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
}

/// Everybody who may call.
pub(crate) struct Callers {
    all: Vec<Arc<Caller>>,
    /// Digests with the place of their caller in `all`.
    digests: Vec<([u8; 32], u32)>,
}

impl std::fmt::Debug for Callers {
    /// Without digests.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all.iter().map(|c| &c.id)).finish()
    }
}

impl Callers {
    pub(crate) fn of(server: &ServerConfig) -> Result<Self, TokenFault> {
        let mut all = Vec::new();
        let mut digests: Vec<([u8; 32], u32)> = Vec::new();
        for (place, config) in (0_u32..).zip(&server.callers) {
            let digest = match (&config.token_sha256, &config.token_env) {
                (Some(text), _) => Some(bytes_of(text).ok_or_else(|| TokenFault::Digest { caller: config.id.clone() })?),
                (None, Some(variable)) => {
                    let missing = || TokenFault::Missing { caller: config.id.clone(), variable: variable.clone() };
                    let token = std::env::var(variable).map_err(|_| missing())?;
                    if token.is_empty() || token.len() > LONGEST_TOKEN {
                        return Err(missing());
                    }
                    Some(Sha256::digest(token.as_bytes()).into())
                }
                (None, None) => None,
            };
            if let Some(digest) = digest {
                if let Some((_, first)) = digests.iter().find(|(known, _)| *known == digest) {
                    let first = server.callers[*first as usize].id.clone();
                    return Err(TokenFault::Shared { first, second: config.id.clone() });
                }
                digests.push((digest, place));
            }
            all.push(Arc::new(Caller::of(config, server)));
        }
        Ok(Self { all, digests })
    }

    /// The caller of a token. Every digest is compared whole, whoever it is.
    pub(crate) fn of_token(&self, token: &str) -> Option<Arc<Caller>> {
        if token.is_empty() || token.len() > LONGEST_TOKEN {
            return None;
        }
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let (mut found, mut place) = (Choice::from(0), 0_u32);
        for (known, at) in &self.digests {
            let same = known.ct_eq(&digest);
            place.conditional_assign(at, same);
            found |= same;
        }
        bool::from(found).then(|| Arc::clone(&self.all[place as usize]))
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn named(&self, id: &str) -> Option<&Arc<Caller>> {
        self.all.iter().find(|c| c.id == id)
    }
}

fn bytes_of(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return None;
    }
    let mut bytes = [0; 32];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_token_is_found_by_its_digest_alone() {
        let (token, digest) = draw_token().unwrap();
        let caller = |id: &str, digest: &str| CallerConfig {
            id: id.to_owned(),
            token_sha256: Some(digest.to_owned()),
            ..CallerConfig::default()
        };
        let (other, other_digest) = draw_token().unwrap();
        let server = ServerConfig { callers: vec![caller("a", &digest), caller("b", &other_digest)], ..ServerConfig::default() };
        let callers = Callers::of(&server).unwrap();
        assert_eq!(callers.of_token(&token).unwrap().id, "a");
        assert_eq!(callers.of_token(&other).unwrap().id, "b");
        for wrong in ["", &digest, &token[1..], &format!("{token} "), &"x".repeat(10_000)] {
            assert!(callers.of_token(wrong).is_none());
        }
        assert!(!format!("{callers:?}").contains(&digest[..8]));
        let twice = ServerConfig { callers: vec![caller("a", &digest), caller("b", &digest)], ..ServerConfig::default() };
        assert!(matches!(Callers::of(&twice), Err(TokenFault::Shared { .. })));
        let bad = ServerConfig { callers: vec![caller("a", &digest.to_uppercase()), caller("b", "")], ..ServerConfig::default() };
        assert!(matches!(Callers::of(&bad), Err(TokenFault::Digest { .. })));
    }

    #[test]
    fn scopes_are_names_groups_or_everything() {
        let check = |grants: &[&str], scope: &str, expected: bool| {
            let caller = Caller {
                id: "a".into(),
                grants: grants.iter().map(|g| (*g).to_owned()).collect(),
                data_rights: BTreeSet::new(),
                agent_revisions: BTreeMap::new(),
                default_revision: None,
                profile: "p".into(),
                profiles: BTreeSet::new(),
            };
            assert_eq!(caller.has_scope(scope), expected, "{grants:?} {scope}");
        };
        check(&["market.bars"], "market.bars", true);
        check(&["market.bars"], "market.get_kline", false);
        check(&["market.*"], "market.get_kline", true);
        check(&["market.*"], "marketing.get_kline", false);
        check(&["*"], "trade", true);
        check(&["execution.*"], "trade", false);
        check(&[], "market.bars", false);
    }
}
