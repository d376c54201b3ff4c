//! The alias maps of the Python implementation, for replaying what it recorded: its boards, its random source, its two styles.
//!
//! A map follows from the codes of the universe and a small seed, so that anybody who knows the codes finds it by trying seeds. This
//! file must never be what a run hides behind by itself: those draw a key.

use crate::Code;
use rand_mt::Mt;
use sha2::{Digest, Sha512};

/// Boards as that implementation tells them apart: name in the seed text, prefix of the aliases.
const BOARDS: [(&str, &str); 5] =
    [("sh_main", "SHM"), ("sz_main", "SZM"), ("sz_chinext", "GEM"), ("sh_star", "STAR"), ("bse", "BSE")];

/// Position in [`BOARDS`]. By the first digits only: 302xxx counts as a main board of Shenzhen there.
fn board(code: Code) -> usize {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| code.as_str().starts_with(prefix));
    if starts(&["688", "689"]) {
        3
    } else if starts(&["300", "301"]) {
        2
    } else if starts(&["4", "8", "920"]) {
        4
    } else if starts(&["6", "9"]) {
        0
    } else {
        1
    }
}

/// Number and visible code of each of some ascending codes; numbers are 0 unless opaque. A code outside `universe` has no part in the map:
/// it comes behind the aliases of its board, or keeps itself.
pub(super) fn aliases(codes: &[Code], universe: Option<&[bool]>, opaque: bool, seed: i64) -> Vec<(u32, String)> {
    let counts = |i: &usize| universe.is_none_or(|inside| inside.get(*i) == Some(&true));
    let mut out = vec![(0, String::new()); codes.len()];
    for (index, (name, prefix)) in BOARDS.iter().enumerate() {
        let (members, others): (Vec<usize>, Vec<usize>) =
            (0..codes.len()).filter(|i| board(codes[*i]) == index).partition(counts);
        let count = members.len() as u32;
        if opaque {
            let mut numbers: Vec<u32> = (1..=count).collect();
            Random::of(&format!("{seed}:{name}:opaque")).shuffle(&mut numbers);
            let behind = count + 1..=count + others.len() as u32;
            for (member, number) in members.iter().chain(&others).zip(numbers.into_iter().chain(behind)) {
                out[*member] = (number, format!("{prefix}-{number:06}"));
            }
        } else {
            let shift = match count {
                0 | 1 => 0,
                count => 1 + Random::of(&format!("{seed}:{name}")).below(count - 1),
            };
            for (position, member) in members.iter().enumerate() {
                let other = members[(position + shift as usize) % members.len()];
                out[*member] = (0, codes[other].to_string());
            }
            for other in others {
                out[other] = (0, codes[other].to_string());
            }
        }
    }
    out
}

/// `random.Random(text)` of CPython 3: MT19937, seeded by version 2 of its seeding.
struct Random(Mt);

impl Random {
    /// Seeds by the text's bytes and their SHA-512, read as one big integer whose 32-bit words, lowest first, are the key.
    fn of(text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend(Sha512::digest(text.as_bytes()));
        let mut words: Vec<u32> =
            bytes.rchunks(4).map(|word| word.iter().fold(0, |value, byte| (value << 8) | u32::from(*byte))).collect();
        // An integer has no leading zeros.
        while words.len() > 1 && words.last() == Some(&0) {
            words.pop();
        }
        Self(Mt::new_with_key(words))
    }

    /// A number below `limit`, above 0: draws of as many bits as the limit has, until one is below it.
    fn below(&mut self, limit: u32) -> u32 {
        loop {
            let drawn = self.0.next_u32() >> limit.leading_zeros();
            if drawn < limit {
                return drawn;
            }
        }
    }

    /// Exchanges each item, the last first, with one that is not behind it.
    fn shuffle(&mut self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u32 + 1) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Drawn by CPython 3.11: r = random.Random(text); [r._randbelow(n) for n in (1, 2, 7, 1000, 5400)], then r.shuffle(list(range(1, 11)))
    #[test]
    fn draws_are_those_of_cpython() {
        check("42:sh_main:opaque", [0, 1, 6, 475, 1798], [4, 8, 10, 1, 6, 2, 9, 5, 3, 7]);
        check("42:bse", [0, 1, 5, 389, 2843], [2, 4, 1, 6, 9, 7, 8, 5, 10, 3]);
        check("-7:sz_main", [0, 0, 6, 22, 5230], [3, 6, 9, 5, 1, 2, 8, 4, 7, 10]);
        check("a", [0, 0, 4, 614, 5277], [7, 6, 8, 10, 1, 4, 5, 2, 3, 9]);
        check("中文 seed", [0, 1, 2, 14, 2116], [9, 7, 3, 4, 8, 5, 10, 2, 1, 6]);
    }

    fn check(text: &str, below: [u32; 5], shuffled: [u32; 10]) {
        let mut random = Random::of(text);
        assert_eq!([1, 2, 7, 1000, 5400].map(|limit| random.below(limit)), below, "{text}");
        let mut items: Vec<u32> = (1..=10).collect();
        random.shuffle(&mut items);
        assert_eq!(items, shuffled, "{text}");
    }
}
