//! The generator's own random numbers: xoshiro256** seeded by SplitMix64, integers only, so that a seed gives the same market on
//! every machine and with every version of every library.
//!
//! Source of both algorithms: D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021), and
//! the public-domain reference code at prng.di.unimi.it.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: [u64; 4],
}

const fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The stream of a purpose and an index under a seed; streams of different purposes or indices are unrelated.
    pub(crate) fn new(seed: u64, purpose: u64, index: u64) -> Self {
        let mut state = seed;
        let mut mixed = split_mix(&mut state) ^ purpose.wrapping_mul(0xd134_2543_de82_ef95);
        mixed = split_mix(&mut mixed) ^ index.wrapping_mul(0xaf25_1af3_b0f0_25b5);
        Self { state: [split_mix(&mut mixed), split_mix(&mut mixed), split_mix(&mut mixed), split_mix(&mut mixed)] }
    }

    pub(crate) const fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..n`; 0 for `n` < 1. The bias of the multiplication is far below anything visible here.
    pub(crate) const fn below(&mut self, n: i64) -> i64 {
        if n < 1 {
            return 0;
        }
        ((self.next() as u128 * n as u128) >> 64) as i64
    }

    /// A number in `low..=high`.
    pub(crate) const fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below(high - low + 1)
    }

    /// True in `n` of a million cases.
    pub(crate) const fn chance(&mut self, ppm: i64) -> bool {
        self.below(1_000_000) < ppm
    }

    /// Nearly normal, mean 0, deviation `scale`: the sum of twelve uniform numbers, which needs no transcendental function (whose
    /// last digit differs between machines).
    pub(crate) fn bell(&mut self, scale: i64) -> i64 {
        let sum: i64 = (0..3)
            .map(|_| {
                let word = self.next();
                (0..4).map(|i| ((word >> (16 * i)) & 0xffff) as i64).sum::<i64>()
            })
            .sum();
        (sum - 6 * 65_536) * scale / 65_536
    }

    /// One of the items.
    pub(crate) const fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as i64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // First outputs of xoshiro256** from the state 1, 2, 3, 4 (reference code).
        let mut random = Random { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| random.next()).collect();
        assert_eq!(first, [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
        // First outputs of SplitMix64 from 1234567 (reference code).
        let mut state = 1_234_567;
        assert_eq!(split_mix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_stay_in_their_range_and_spread() {
        let mut random = Random::new(7, 1, 2);
        let mut seen = [0_u32; 6];
        for _ in 0..6_000 {
            seen[random.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (850..1_150).contains(n)), "{seen:?}");
        let draws: Vec<i64> = (0..10_000).map(|_| random.bell(1_000)).collect();
        let mean = draws.iter().sum::<i64>() / 10_000;
        let variance = draws.iter().map(|d| d * d).sum::<i64>() / 10_000;
        assert!(mean.abs() < 40 && (900_000..1_100_000).contains(&variance), "{mean} {variance}");
    }
}
