//! Generates a market of the size given (stocks, days, days of 5-minute bars) and times loading it from Parquet and from the cache.
//! `cargo run --release -p traderharness-ingest --example load_times -- 5400 250 5`
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use std::sync::Mutex;
use std::time::Instant;
use traderharness_ingest::{GenerateConfig, IngestError, LoadOptions, Progress, build_cache, generate, load, quiet};

fn main() -> Result<(), IngestError> {
    let sizes: Vec<u32> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let size = |i: usize, otherwise: u32| sizes.get(i).copied().unwrap_or(otherwise);
    let config =
        GenerateConfig { stocks: size(0, 300), days: size(1, 250), minute_days: size(2, 5), ..GenerateConfig::default() };
    let fail = |source| IngestError::Io { action: "create", path: "temporary directory".into(), source };
    let dir = tempfile::tempdir().map_err(fail)?;
    let (data, cache) = (dir.path().join("data"), dir.path().join("data.thc"));
    let options = LoadOptions::default();

    let start = Instant::now();
    let made = generate(&config, &data, &quiet)?;
    println!(
        "generate    {:>8.3} s  {} daily, {} 5-minute rows",
        start.elapsed().as_secs_f64(),
        made.daily_rows,
        made.minute_rows
    );
    memory("after generate");
    let start = Instant::now();
    let stages = Mutex::new(Vec::new());
    let stage = |p: Progress| {
        if let Ok(mut stages) = stages.lock() {
            stages.push(format!("{:.3} {}", start.elapsed().as_secs_f64(), p.stage));
        }
    };
    let dataset = load(&data, &options, &stage)?;
    println!("load        {:>8.3} s", start.elapsed().as_secs_f64());
    println!("stages      {}", stages.into_inner().unwrap_or_default().join(", "));
    memory("after load");
    let digest = dataset.report.digest.clone();
    println!("{}", dataset.report);
    drop(dataset);
    build_cache(&data, &cache, &options, &quiet)?;
    for _ in 0..3 {
        let (start, before) = (Instant::now(), processor_seconds());
        let dataset = load(&cache, &options, &quiet)?;
        let (wall, work) = (start.elapsed().as_secs_f64(), processor_seconds() - before);
        println!("load cache  {wall:>8.3} s  ({work:.2} s of processor)  same digest: {}", dataset.report.digest == digest);
    }
    memory("at the end");
    Ok(())
}

/// Resident memory now and at its peak, where the system tells.
fn memory(when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines: Vec<&str> = status.lines().filter(|l| l.starts_with("VmRSS") || l.starts_with("VmHWM")).collect();
    println!("memory      {when}: {}", lines.join(", ").replace('\t', " "));
}

/// Processor time of this process so far, where the system tells (in hundredths of a second).
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = |i: usize| stat.rsplit(')').next().and_then(|s| s.split_whitespace().nth(i)?.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
