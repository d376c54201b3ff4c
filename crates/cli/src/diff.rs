//! `traderharness diff`: why two recorded runs differ, cause by cause, and what came of it. It plays nothing, opens no dataset and reads
//! nothing private.

mod read;
mod told;

use crate::audit::secrets_here;
use crate::fault::{Class, Fault, Outcome};
use crate::report::print;
use crate::run::pretty;
use clap::Args;
use read::{Recorded, read};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use traderharness_replay::causes::{Comparison, Run, compare};
use traderharness_replay::redact::Redactor;

#[derive(Debug, Args)]
pub(crate) struct DiffOptions {
    /// First recording: a run folder, a cassette, a bundle, or a folder that `compare --record` wrote.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Second recording.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Causes listed of each pair of runs.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: u16,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Two runs and what was found of them.
struct Pair {
    name: String,
    comparison: Comparison,
}

pub(crate) fn diff(options: &DiffOptions) -> Outcome {
    let redactor = Redactor::new().with_secrets(secrets_here());
    let (a, b) = (read(&options.a)?, read(&options.b)?);
    let (pairs, only_a, only_b) = paired(a, b, options)?;
    let mut compared = Vec::new();
    for (a, b) in pairs {
        let limit = usize::from(options.limit);
        let (one, other) = (run(&a), run(&b));
        let mut comparison = compare(one, other, &redactor, limit).map_err(|e| read::fault(e, &options.a))?;
        comparison.notes.extend(a.notes("the first run").chain(b.notes("the second run")));
        let name = if a.name == b.name { a.name } else { format!("{} and {}", a.name, b.name) };
        compared.push(Pair { name, comparison });
    }
    let identical = only_a.is_empty() && only_b.is_empty() && compared.iter().all(|pair| pair.comparison.identical);
    let one_path = is_same_path(&options.a, &options.b);
    if options.json {
        let pairs =
            compared.iter().map(|pair| json!({ "name": pair.name, "comparison": pair.comparison })).collect::<Vec<Value>>();
        let (a, b) = (options.a.display().to_string(), options.b.display().to_string());
        print(&pretty(&json!({
            "schema": 1, "identical": identical, "a": a, "b": b, "same_path": one_path, "pairs": pairs, "only_in_a": only_a, "only_in_b": only_b,
        })));
    } else {
        print(&format!("A: {}\nB: {}", options.a.display(), options.b.display()));
        if one_path {
            print("Both are one and the same recording.");
        }
        let several = compared.len() > 1;
        for pair in &compared {
            if several {
                print(&format!("\n{}", pair.name));
            }
            print(&told::text(&pair.comparison));
        }
        for (names, which) in [(&only_a, "A"), (&only_b, "B")] {
            if !names.is_empty() {
                print(&format!("Only in {which}: {}", names.join(", ")));
            }
        }
    }
    Ok(if identical { ExitCode::SUCCESS } else { ExitCode::from(Class::Finding as u8) })
}

fn run(recorded: &Recorded) -> Run<'_> {
    Run { cassette: &recorded.cassette, trajectory: recorded.trajectory.as_deref() }
}

type Pairs = (Vec<(Recorded, Recorded)>, Vec<String>, Vec<String>);

/// Runs of one name are a pair, and so are two that are alone, whatever their names are.
fn paired(a: Vec<Recorded>, b: Vec<Recorded>, options: &DiffOptions) -> Result<Pairs, Fault> {
    let names = |runs: &[Recorded]| runs.iter().map(|run| run.name.clone()).collect::<Vec<_>>();
    let (in_a, in_b) = (names(&a), names(&b));
    let alone = (a.len(), b.len()) == (1, 1);
    let mut b: Vec<Option<Recorded>> = b.into_iter().map(Some).collect();
    let mut pairs = Vec::new();
    let mut only_a = Vec::new();
    for one in a {
        let at = b.iter().position(|other| other.as_ref().is_some_and(|other| alone || other.name == one.name));
        match at.and_then(|at| b.get_mut(at)?.take()) {
            Some(other) => pairs.push((one, other)),
            None => only_a.push(one.name),
        }
    }
    if pairs.is_empty() {
        let listed = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let what = format!(
            "no run of `{}` ({}) has the name of one of `{}` ({})",
            options.a.display(),
            listed(&in_a),
            options.b.display(),
            listed(&in_b)
        );
        return Err(
            Fault::text(Class::Input, what).hint("name one run of each: two single runs are compared whatever their names are")
        );
    }
    Ok((pairs, only_a, b.into_iter().flatten().map(|run| run.name).collect()))
}

fn is_same_path(a: &Path, b: &Path) -> bool {
    a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b)
}
