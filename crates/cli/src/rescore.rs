//! `traderharness rescore`: figures, result and leak audit of a recording again, without a model and without a byte of the recording being
//! touched, held against what was stored.

use crate::args::AuditOptions;
use crate::audit::{Looked, look};
use crate::bundle;
use crate::fault::{Class, Fault, Outcome};
use crate::replay::{SetUpOptions, Tape, Watch, manifest, one, tape};
use crate::report::print;
use crate::reports::recomputed;
use crate::result::RunResult;
use crate::run::{RunFolder, pretty};
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use traderharness_harness::run::Silent;
use traderharness_replay::Replay;
use traderharness_replay::bundle::Bundle;
use traderharness_replay::diff::differences;

/// Differences shown of one result.
const MOST: usize = 40;

#[derive(Debug, Args)]
pub(crate) struct RescoreOptions {
    /// Run folder or bundle.
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// Take days and trades from the trajectory and run no tool again: needs no dataset and no key, and gives what follows from them alone.
    #[arg(long)]
    trajectory: bool,
    /// Leave the leak audit out.
    #[arg(long)]
    no_audit: bool,
    #[command(flatten)]
    set_up: SetUpOptions,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// One run, scored again.
struct Score {
    run: String,
    /// Where stored and recomputed figures differ.
    differences: Vec<String>,
    /// Whether there was a result to hold it against.
    stored: bool,
    /// The result that the recording gives, when it was played again.
    result: Option<RunResult>,
    /// Dates and codes are hidden.
    hides: (bool, bool),
}

pub(crate) fn rescore(options: &RescoreOptions) -> Outcome {
    let scores = scores(options)?;
    let audit = if options.no_audit { None } else { Some(audit(options, &scores)?) };
    let differs = scores.iter().any(|score| !score.differences.is_empty());
    let clean = audit.as_ref().is_none_or(|looked| looked.clean);
    if options.json {
        let told = audit.as_ref().map(|looked| serde_json::from_str::<Value>(&looked.told).unwrap_or_default());
        let basis = if options.trajectory { "trajectory" } else { "replay" };
        let runs: Vec<Value> = scores
            .iter()
            .map(|s| json!({ "run": s.run, "stored": s.stored, "differences": s.differences, "result": s.result }))
            .collect();
        print(&pretty(&json!({ "schema": 1, "basis": basis, "identical": !differs, "runs": runs, "audit": told })));
    } else {
        scores.iter().for_each(|score| print(&score.text(options.trajectory)));
        if let Some(looked) = &audit {
            print(&format!("Leak audit: {}", looked.told));
        }
    }
    Ok(if differs || !clean { ExitCode::from(Class::Finding as u8) } else { ExitCode::SUCCESS })
}

impl Score {
    fn text(&self, from_trajectory: bool) -> String {
        let how = if from_trajectory { "computed again from its trajectory" } else { "played again without a model" };
        let mut out = format!("{}: {how}; ", self.run);
        match (self.stored, self.differences.is_empty()) {
            (false, _) => out.push_str("there is no stored result to hold it against."),
            (true, true) => out.push_str("the stored result is what the recording gives."),
            (true, false) => {
                out.push_str("the stored result differs:");
                for difference in &self.differences {
                    let _ = write!(out, "\n  {}", difference.replace('\n', "\n  "));
                }
            }
        }
        out
    }
}

fn scores(options: &RescoreOptions) -> Result<Vec<Score>, Fault> {
    let path = &options.recording;
    if !(path.is_dir() && Bundle::is_bundle(path)) {
        if path.is_file() {
            return Err(Fault::text(Class::Input, format!("`{}` is a file; its result lies beside it", path.display()))
                .hint("pass the folder of the run, or a bundle"));
        }
        return Ok(vec![score(path.display().to_string(), Tape::at(path)?, options)?]);
    }
    let bundle = Bundle::open(path).map_err(|e| bundle::fault(e, path))?;
    let names = bundle.manifest().agents.iter().map(|agent| agent.name.clone());
    names.map(|name| score(name.clone(), tape(&bundle, &name)?, options)).collect()
}

fn score(run: String, tape: Tape, options: &RescoreOptions) -> Result<Score, Fault> {
    let named = |fault: Fault| fault.context(format!("the run `{run}`"));
    let manifest = manifest(&Replay::new(tape.cassette.clone())).map_err(named)?;
    let hides = (manifest.mask_dates, manifest.mask_entities);
    if options.trajectory {
        tape.cassette.verify().map_err(|e| named(bundle::recording(e, Class::Finding)))?;
        let folder = RunFolder { path: tape.folder.path };
        let differences = recomputed(&folder).map_err(named)?.ok_or_else(|| {
            named(Fault::text(Class::Input, "it has no trajectory or no result").hint("without --trajectory it is played again"))
        })?;
        return Ok(Score { run, differences, stored: true, result: None, hides });
    }
    let came = one(tape, None, &options.set_up, Watch::default(), options.json, &mut Silent)
        .map_err(|fault| named(fault).hint("--trajectory computes again what follows from the trajectory alone"))?;
    let of = |result: &RunResult| serde_json::to_value(result).map_err(|e| Fault::new(Class::Input, e));
    let found = match &came.results {
        Some((kept, now)) => differences(&of(kept)?, &of(now)?, MOST).iter().map(ToString::to_string).collect(),
        None => Vec::new(),
    };
    Ok(Score { run, differences: found, stored: came.results.is_some(), result: Some(came.result()), hides })
}

/// The leak audit of the recording, for what its runs hid.
fn audit(options: &RescoreOptions, scores: &[Score]) -> Result<Looked, Fault> {
    let first = if Bundle::is_bundle(&options.recording) {
        options.recording.join("runs").join(scores.first().map_or("", |score| score.run.as_str()))
    } else {
        options.recording.clone()
    };
    let private = RunFolder { path: first }.read_private()?;
    look(&AuditOptions {
        artifacts: vec![options.recording.clone()],
        data: options.set_up.data.clone().or_else(|| private.and_then(|private| private.data)),
        allow_dates: scores.iter().any(|score| !score.hides.0),
        allow_entities: scores.iter().any(|score| !score.hides.1),
        private: false,
        json: options.json,
    })
}
