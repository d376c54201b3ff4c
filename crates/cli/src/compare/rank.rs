//! Ranks with a memory for chance: two agents are told apart only where an interval around the mean difference of their daily returns
//! leaves zero out. The interval comes from a circular block bootstrap with a fixed seed, so equal runs give equal ranks.

use serde::Serialize;

/// Days that both must have ended.
pub(crate) const ENOUGH_DAYS: usize = 20;
/// Resamples.
pub(crate) const RESAMPLES: usize = 2_000;
const SEED: u64 = 0x5eed_0000_0000_0001;

/// What is known about the difference of two agents.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Difference {
    pub(crate) a: String,
    pub(crate) b: String,
    /// Days both ended.
    pub(crate) days: usize,
    /// Mean of the daily returns of `a` less those of `b`, percentage points.
    pub(crate) mean_pct: Option<f64>,
    /// Its 95 % interval, percentage points.
    pub(crate) interval_pct: Option<(f64, f64)>,
    /// `a is better`, `b is better`, or why nobody knows.
    pub(crate) verdict: &'static str,
}

pub(crate) const A: &str = "a is better";
pub(crate) const B: &str = "b is better";
pub(crate) const UNCLEAR: &str = "not enough to rank: zero is inside of the interval";
pub(crate) const SHORT: &str = "not enough to rank: fewer than 20 days";

/// Numbers that follow from a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // The high half of a product: no division, and as even as 64 bits are.
        ((u128::from(mixed) * end as u128) >> 64) as usize
    }
}

/// Length of a block: the cube root of the days, rounded up.
fn block(days: usize) -> usize {
    (1..=days).find(|length| length.pow(3) >= days).unwrap_or(1)
}

/// 95 % interval of the mean of `values`.
fn interval(values: &[f64]) -> (f64, f64) {
    let (days, length) = (values.len(), block(values.len()));
    let mut dice = Dice(SEED);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut sum = 0.0;
            let mut taken = 0;
            while taken < days {
                let start = dice.below(days);
                let wanted = length.min(days - taken);
                sum += (0..wanted).map(|n| values[(start + n) % days]).sum::<f64>();
                taken += wanted;
            }
            sum / days as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((RESAMPLES - 1) as f64 * share).round() as usize];
    (at(0.025), at(0.975))
}

/// A percentage as reports hold it, six decimals.
pub(crate) fn rounded(percent: f64) -> f64 {
    (percent * 1e6).round() / 1e6
}

/// Daily returns out of total assets, the start first.
pub(crate) fn returns(assets: &[f64]) -> Vec<f64> {
    assets.windows(2).map(|pair| if pair[0] > 0.0 { pair[1] / pair[0] - 1.0 } else { 0.0 }).collect()
}

/// Compares two agents by their daily returns.
pub(crate) fn difference(a: (&str, &[f64]), b: (&str, &[f64])) -> Difference {
    let values: Vec<f64> = a.1.iter().zip(b.1).map(|(a, b)| a - b).collect();
    let days = values.len();
    let names = (a.0.to_owned(), b.0.to_owned());
    if days < ENOUGH_DAYS {
        return Difference { a: names.0, b: names.1, days, mean_pct: None, interval_pct: None, verdict: SHORT };
    }
    let percent = |value: f64| rounded(value * 100.0);
    let (low, high) = interval(&values);
    let verdict = if low > 0.0 {
        A
    } else if high < 0.0 {
        B
    } else {
        UNCLEAR
    };
    let mean = values.iter().sum::<f64>() / days as f64;
    let interval_pct = Some((percent(low), percent(high)));
    Difference { a: names.0, b: names.1, days, mean_pct: Some(percent(mean)), interval_pct, verdict }
}

/// Rank of each agent: one more than there are agents that are better than it for sure. None when nobody can be told apart.
pub(crate) fn ranks(names: &[String], differences: &[Difference]) -> Vec<Option<usize>> {
    let is_worse = |name: &str| {
        let worse = |d: &&Difference| (d.a == name && d.verdict == B) || (d.b == name && d.verdict == A);
        differences.iter().filter(worse).count()
    };
    let told_apart = differences.iter().any(|d| d.verdict == A || d.verdict == B);
    let judged = |name: &str| differences.iter().any(|d| (d.a == name || d.b == name) && d.verdict != SHORT);
    names.iter().map(|name| (told_apart && judged(name)).then(|| is_worse(name) + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::{A, B, SHORT, UNCLEAR, block, difference, ranks, returns};

    fn check(a: &[f64], b: &[f64], expected: &str) {
        let found = difference(("a", a), ("b", b));
        assert_eq!(found.verdict, expected, "{found:?}");
        // The other way round it is the mirror image.
        let mirrored = match expected {
            A => B,
            B => A,
            other => other,
        };
        assert_eq!(difference(("b", b), ("a", a)).verdict, mirrored);
        assert_eq!(found, difference(("a", a), ("b", b)), "a second time it is the same");
    }

    #[test]
    fn a_difference_counts_only_outside_of_chance() {
        let flat = vec![0.0; 40];
        let steady: Vec<f64> = (0..40).map(|n| 0.002 + f64::from(n % 3) * 0.0005).collect();
        // Blocks of four see different parts of it: a period of two would look steady to them.
        let wild: Vec<f64> = (0..40).map(|n| if n % 7 < 4 { 0.03 } else { -0.039 }).collect();
        check(&steady, &flat, A);
        check(&flat, &steady, B);
        check(&wild, &flat, UNCLEAR);
        check(&flat, &flat, UNCLEAR);
        check(&steady[..19], &flat, SHORT);
        check(&steady[..20], &flat, A);
    }

    #[test]
    fn the_interval_of_a_constant_difference_is_that_difference() {
        let found = difference(("a", &[0.01; 25]), ("b", &[0.0; 25]));
        assert_eq!(found.interval_pct, Some((1.0, 1.0)));
        assert_eq!(found.mean_pct, Some(1.0));
    }

    #[test]
    fn blocks_grow_with_the_cube_root() {
        assert_eq!([1, 8, 20, 27, 28, 252].map(block), [1, 2, 3, 3, 4, 7]);
    }

    #[test]
    fn returns_are_of_one_day_to_the_next() {
        assert_eq!(returns(&[100.0, 110.0, 99.0]).len(), 2);
        assert!((returns(&[100.0, 110.0])[0] - 0.1).abs() < 1e-12);
        assert_eq!(returns(&[0.0, 5.0]), [0.0]);
    }

    #[test]
    fn a_rank_counts_who_is_better_for_sure() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let flat = vec![0.0; 40];
        let steady = vec![0.002; 40];
        let slow = vec![0.0001; 40];
        let all = [
            difference(("a", &flat), ("b", &steady)),
            difference(("a", &flat), ("c", &slow)),
            difference(("b", &steady), ("c", &slow)),
        ];
        assert_eq!(ranks(&names, &all), [Some(3), Some(1), Some(2)]);
        let same = [difference(("a", &flat), ("b", &flat))];
        assert_eq!(ranks(&names[..2], &same), [None, None]);
    }
}
