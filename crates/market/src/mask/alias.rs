//! Visible codes: keyed bijections inside a board, and which sent texts name a security. Must never echo a mapping.

use super::{MaskConfig, MaskStyle, Unresolved, reference};
use crate::{Board, Code, SecId};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Position of `board` in [`Board::ALL`]; codes of no board share one more bucket.
fn bucket(code: Code) -> usize {
    code.board().and_then(|b| Board::ALL.iter().position(|x| *x == b)).unwrap_or(Board::ALL.len())
}

/// Prefix of the aliases of a bucket. Codes of no known board do not enter a store; the last prefix keeps the map total.
fn prefix(bucket: usize) -> &'static str {
    Board::ALL.get(bucket).map_or("OTH", |b| b.alias_prefix())
}

/// HMAC-SHA-256(key, board prefix || code). Without the run key the order cannot be found by trying small seeds (spec/tools.md b39).
fn keyed(key: &[u8], bucket: usize, code: Code) -> [u8; 32] {
    // HMAC takes keys of every length, so the error case does not exist; the fallback keeps library code free of panics.
    let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(key) else { return [0; 32] };
    mac.update(prefix(bucket).as_bytes());
    mac.update(code.as_str().as_bytes());
    mac.finalize().into_bytes().into()
}

/// First 16 hex digits of SHA-256 over a domain text and the key; names the key in a manifest without giving it away.
pub(super) fn key_id(key: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(b"traderharness mask key id v1\0");
    hash.update(key);
    hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// The two directions of the code map.
#[derive(Debug)]
pub(super) struct CodeMap {
    /// Visible code of each security.
    visible: Vec<String>,
    /// Securities in order of visible codes.
    ordered: Vec<SecId>,
    /// Position of each security in that order.
    rank: Vec<u32>,
    /// Alias number to its securities, in visible order; empty unless opaque.
    numbers: BTreeMap<u32, Vec<SecId>>,
    opaque: bool,
}

impl CodeMap {
    /// The map depends on the set of codes and the key only, never on the order of rows or files. `universe` tells which codes count for
    /// the maps of the Python implementation; all when `None`.
    pub(super) fn new(codes: &[Code], universe: Option<&[bool]>, config: &MaskConfig) -> Self {
        let opaque = config.entities && config.style.is_opaque();
        let mut visible: Vec<String> = codes.iter().map(ToString::to_string).collect();
        let mut number_of = vec![0_u32; if opaque { codes.len() } else { 0 }];
        if let (true, MaskStyle::Reference { seed, .. }) = (config.entities, config.style) {
            for (i, (number, alias)) in reference::aliases(codes, universe, opaque, seed).into_iter().enumerate() {
                visible[i] = alias;
                if opaque {
                    number_of[i] = number;
                }
            }
        } else if config.entities {
            let mut boards: Vec<Vec<([u8; 32], usize)>> = vec![vec![]; Board::ALL.len() + 1];
            for (i, code) in codes.iter().enumerate() {
                let bucket = bucket(*code);
                boards[bucket].push((keyed(&config.key, bucket, *code), i));
            }
            for (bucket, mut members) in boards.into_iter().enumerate() {
                // Equal digests do not happen; the index makes the order total all the same.
                members.sort_unstable();
                for (position, (_, i)) in members.iter().enumerate() {
                    if opaque {
                        number_of[*i] = position as u32 + 1;
                        visible[*i] = format!("{}-{:06}", prefix(bucket), position + 1);
                    } else {
                        // One cycle through the keyed order: no security of a board of two or more keeps its own code.
                        let next = members[(position + 1) % members.len()].1;
                        visible[*i] = codes[next].to_string();
                    }
                }
            }
        }
        let mut ordered: Vec<SecId> = (0..codes.len() as u32).map(SecId).collect();
        ordered.sort_by(|a, b| visible[a.0 as usize].cmp(&visible[b.0 as usize]));
        let mut rank = vec![0; codes.len()];
        for (position, sec) in ordered.iter().enumerate() {
            rank[sec.0 as usize] = position as u32;
        }
        let mut numbers: BTreeMap<u32, Vec<SecId>> = BTreeMap::new();
        if opaque {
            for sec in &ordered {
                numbers.entry(number_of[sec.0 as usize]).or_default().push(*sec);
            }
        }
        Self { visible, ordered, rank, numbers, opaque }
    }

    pub(super) fn code(&self, sec: SecId) -> &str {
        &self.visible[sec.0 as usize]
    }

    pub(super) fn rank(&self, sec: SecId) -> u32 {
        self.rank[sec.0 as usize]
    }

    pub(super) fn in_order(&self) -> &[SecId] {
        &self.ordered
    }

    fn exact(&self, text: &str) -> Option<SecId> {
        self.ordered.binary_search_by(|sec| self.code(*sec).cmp(text)).ok().map(|i| self.ordered[i])
    }

    pub(super) fn resolve(&self, text: &str) -> Result<SecId, Unresolved> {
        if let Some(sec) = self.exact(text) {
            return Ok(sec);
        }
        let candidates = if self.opaque { self.near_alias(text.trim()) } else { self.near_code(text.trim()) };
        Err(if candidates.is_empty() { Unresolved::Unknown } else { Unresolved::Ambiguous(candidates) })
    }

    /// Bare numbers and incomplete aliases. A number that is a real code gets no other treatment than any number (engine E8.5).
    fn near_alias(&self, text: &str) -> Vec<SecId> {
        let number = |digits: &str| -> Option<u32> {
            let plain = (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        };
        if let Some(n) = number(text) {
            return self.numbers.get(&n).cloned().unwrap_or_default();
        }
        let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (name, rest) = text.split_at(letters);
        let digits = rest.trim_start_matches(['-', '_', ' ']);
        let Some(n) = number(digits).filter(|_| letters > 0) else { return vec![] };
        let alias = format!("{}-{n:06}", name.to_ascii_uppercase());
        self.exact(&alias).into_iter().collect()
    }

    /// Six digits with an exchange, or with leading zeros lost (a number where a text was meant). The exchange must be the right
    /// one: `000001.SH` is an index, not the bank.
    fn near_code(&self, text: &str) -> Vec<SecId> {
        let lower = text.to_ascii_lowercase();
        let bare = (1..=6).contains(&lower.len()) && lower.bytes().all(|b| b.is_ascii_digit());
        let found = if bare {
            self.exact(&format!("{lower:0>6}"))
        } else {
            split_exchange(&lower).and_then(|(exchange, digits)| {
                let code = Code::parse(digits)?;
                (exchange_of(code)? == exchange).then(|| self.exact(digits)).flatten()
            })
        };
        found.into_iter().collect()
    }
}

/// Two-letter exchange of a code in lower case.
pub(super) fn exchange_of(code: Code) -> Option<&'static str> {
    Some(match code.board()? {
        Board::ShMain | Board::Star => "sh",
        Board::SzMain | Board::ChiNext => "sz",
        Board::Bse => "bj",
    })
}

/// The exchange in lower case that a mark names.
pub(super) fn exchange_mark(mark: &str) -> Option<&'static str> {
    Some(match mark {
        "sh" | "ss" | "sse" | "xshg" => "sh",
        "sz" | "szse" | "xshe" => "sz",
        "bj" | "bse" | "xbse" => "bj",
        _ => return None,
    })
}

/// Splits `600519.sh`, `sh600519`, `sh.600519`, `sh-600519`, `600519 sh` into the exchange and the digits.
fn split_exchange(lower: &str) -> Option<(&'static str, &str)> {
    const BETWEEN: [char; 5] = ['.', '-', '_', ' ', ':'];
    if !lower.is_ascii() {
        return None;
    }
    if lower.starts_with(|c: char| c.is_ascii_digit()) {
        let (digits, rest) = lower.split_at_checked(6)?;
        return Some((exchange_mark(rest.strip_prefix(BETWEEN).unwrap_or(rest))?, digits));
    }
    let (mark, digits) = lower.split_at_checked(lower.len().checked_sub(6)?)?;
    Some((exchange_mark(mark.strip_suffix(BETWEEN).unwrap_or(mark))?, digits))
}
