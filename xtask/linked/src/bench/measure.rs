//! Rows, targets and how time is taken. Knows nothing of what is measured.

use super::House;
use std::time::Instant;

/// What the design page asks of a row, in the row's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// A figure to watch.
    None,
}

impl Target {
    /// Whether a median holds the target; nothing when there is none.
    pub(crate) fn holds(self, median: f64) -> Option<bool> {
        match self {
            Self::AtMost(bound) => Some(median < bound),
            Self::AtLeast(bound) => Some(median >= bound),
            Self::None => None,
        }
    }
}

/// What came out of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// One number per run, in the row's unit.
    Samples(Vec<f64>),
    /// Why nothing was measured.
    Missing(String),
}

impl Outcome {
    /// The middle sample, or the mean of the two middle ones.
    pub(crate) fn median(&self) -> Option<f64> {
        let Self::Samples(samples) = self else { return None };
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(sorted[middle]),
            _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        }
    }

    pub(crate) fn runs(&self) -> usize {
        match self {
            Self::Samples(samples) => samples.len(),
            Self::Missing(_) => 0,
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Short name; part of `target/bench.json`, so it stays.
    pub(crate) name: &'static str,
    /// Unit of target, peer figure and samples.
    pub(crate) unit: &'static str,
    pub(crate) target: Target,
    /// Figure of the Python implementation at the same size, in the same unit.
    pub(crate) peer: Option<f64>,
    pub(crate) measure: fn(&mut House) -> anyhow::Result<Outcome>,
}

/// Seconds that each of `runs` calls took, times `scale` (1e3 for ms, 1e6 for us). For work above a millisecond.
pub(crate) fn each<T>(runs: usize, scale: f64, mut work: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<Outcome> {
    let mut samples = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        let result = work()?;
        samples.push(start.elapsed().as_secs_f64() * scale);
        std::hint::black_box(result);
    }
    Ok(Outcome::Samples(samples))
}

/// Microseconds per call, in 25 batches; `work` gets a running number, to vary its input. For work below a millisecond.
pub(crate) fn micros<T>(mut work: impl FnMut(usize) -> anyhow::Result<T>) -> anyhow::Result<Outcome> {
    const BATCHES: usize = 25;
    std::hint::black_box(work(0)?);
    let start = Instant::now();
    std::hint::black_box(work(1)?);
    let once = start.elapsed().as_secs_f64().max(1e-8);
    let calls = (0.004 / once).clamp(10.0, 20_000.0) as usize;
    let mut samples = Vec::with_capacity(BATCHES);
    for batch in 0..BATCHES {
        let start = Instant::now();
        for call in 0..calls {
            std::hint::black_box(work(batch * calls + call)?);
        }
        samples.push(start.elapsed().as_secs_f64() * 1e6 / calls as f64);
    }
    Ok(Outcome::Samples(samples))
}

/// Resident memory of this process in MiB; nothing where the system does not tell.
pub(crate) fn resident_mib() -> Option<f64> {
    resident_kib(std::process::id()).map(|kib| kib as f64 / 1024.0)
}

/// Resident memory of a process in KiB; nothing where the system does not tell.
pub(crate) fn resident_kib(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kib.trim().trim_end_matches(" kB").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let median = |samples: &[f64]| Outcome::Samples(samples.to_vec()).median();
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_target_holds_on_its_own_side() {
        assert_eq!(Target::AtMost(10.0).holds(10.0), Some(false));
        assert_eq!(Target::AtLeast(50.0).holds(50.0), Some(true));
        assert_eq!(Target::None.holds(1.0), None);
    }

    #[test]
    fn a_fault_of_the_work_ends_the_row() {
        assert!(micros(|_| -> anyhow::Result<()> { anyhow::bail!("refused") }).is_err());
        assert_eq!(each(3, 1e3, || Ok(())).expect("no fault").runs(), 3);
    }
}
