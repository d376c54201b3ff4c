//! Replay of a bundle: all of it is checked first, then every agent is played again on one dataset, and what was compared is compared.

use super::ReplayOptions;
use super::one::{Came, Tape, data_of, one};
use super::watch::Watch;
use crate::bundle::{fault, listed};
use crate::fault::{Class, Fault, Outcome};
use crate::report::{Printer, print};
use crate::reports::side_by_side;
use crate::result::RunResult;
use crate::run::{Market, RunFolder, pretty};
use crate::source;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use traderharness_harness::run::{Observer, Silent};
use traderharness_replay::bundle::Bundle;

pub(crate) fn replay(options: &ReplayOptions) -> Outcome {
    let path = &options.cassette;
    let bundle = Bundle::open(path).map_err(|e| fault(e, path))?;
    let names: Vec<&str> = bundle.manifest().agents.iter().map(|agent| agent.name.as_str()).collect();
    if let Some(asked) = options.agent.as_deref().filter(|asked| !names.contains(asked)) {
        return Err(
            Fault::text(Class::Input, format!("the bundle has no agent `{asked}`")).hint(format!("it has {}", names.join(", ")))
        );
    }
    let chosen: Vec<&str> =
        names.into_iter().filter(|name| options.agent.as_deref().is_none_or(|asked| asked == *name)).collect();
    let market = market(&bundle, options)?;
    if !options.json {
        print(&listed(&bundle));
    }
    let watch = Watch { until: options.until, explain: options.explain };
    let mut came: Vec<(&str, Came)> = Vec::new();
    for name in chosen {
        let tape = tape(&bundle, name)?;
        let (mut silent, mut printer) = (Silent, Printer::new());
        let observer: &mut dyn Observer = if options.show && !options.json { &mut printer } else { &mut silent };
        let named = |fault: Fault| fault.context(format!("agent `{name}`"));
        let one = one(tape, Some(&market), &options.set_up, watch, options.json, observer).map_err(named)?;
        one.check_result(&bundle.run(name)).map_err(named)?;
        if !options.json {
            print(&format!("{name}: {}", one.compared().replace('\n', " ")));
        }
        came.push((name, one));
    }
    let compared = if options.until.is_none() { compared(path, &came)? } else { None };
    let results: Vec<(String, &RunResult)> =
        came.iter().filter_map(|(name, one)| Some(((*name).to_owned(), &one.results.as_ref()?.1))).collect();
    if options.json {
        let agents: Vec<Value> = came
            .iter()
            .map(|(name, one)| {
                let mut value = one.machine();
                value["agent"] = (*name).into();
                value
            })
            .collect();
        print(&pretty(&json!({ "bundle": bundle.manifest().tool_version, "agents": agents, "comparison_identical": compared })));
    } else {
        if results.len() > 1 {
            print(&side_by_side(&results));
        }
        let all: u64 = came.iter().map(|(_, one)| one.replayed.requests).sum();
        print(&format!("{all} of {all} requests identical, of {} agent(s).", came.len()));
        if compared == Some(true) {
            print("The results in compare.json are what the runs give.");
        }
        if options.until.is_none() {
            print(market.notes().trim());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The recording of an agent, with the folder of what else was kept of its run.
pub(crate) fn tape(bundle: &Bundle, agent: &str) -> Result<Tape, Fault> {
    let cassette = bundle.cassette(agent).cloned();
    let cassette = cassette.ok_or_else(|| Fault::text(Class::Input, format!("the bundle has no agent `{agent}`")))?;
    let path = bundle.run(agent);
    Ok(Tape { cassette, whole: path.is_dir(), folder: RunFolder { path } })
}

/// The dataset of all runs, loaded once; another one is refused before anything is asked.
pub(crate) fn market(bundle: &Bundle, options: &ReplayOptions) -> Result<Market, Fault> {
    let first = bundle.manifest().agents.first().map(|agent| RunFolder { path: bundle.run(&agent.name) });
    let private = first.map(|folder| folder.read_private()).transpose()?.flatten();
    let market: Market = source::open(data_of(&options.set_up, private.as_ref()).as_deref(), options.json)?.into();
    let (stated, here) = (&bundle.manifest().dataset, market.store.meta());
    match &stated.sha256 {
        Some(digest) if digest.to_string() != here.digest => Err(Fault::text(
            Class::Finding,
            format!(
                "the bundle was made on dataset {}, this is {}\n  expected {digest}\n  here     {}",
                stated.name, here.name, here.digest
            ),
        )
        .hint("pass the dataset of the runs with --data; nothing was replayed")),
        _ => Ok(market),
    }
}

/// Holds the results in `compare.json` against those of the replay; `None` without that file.
fn compared(path: &Path, came: &[(&str, Came)]) -> Result<Option<bool>, Fault> {
    let file = path.join("compare.json");
    if !file.is_file() {
        return Ok(None);
    }
    let wrong = |e: String| Fault::text(Class::Input, format!("`{}` is no comparison: {e}", file.display()));
    let text = std::fs::read_to_string(&file).map_err(|e| wrong(e.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    for (agent, one) in came {
        let Some((_, now)) = &one.results else { continue };
        let (name, key) = match agent.rsplit_once(".key-").and_then(|(name, key)| Some((name, key.parse::<usize>().ok()?))) {
            Some((name, key)) => (name, key),
            None => (*agent, 1),
        };
        let entrant = value["entrants"].as_array().into_iter().flatten().find(|entrant| entrant["name"] == name);
        let kept = entrant.and_then(|entrant| entrant["results"].get(key.saturating_sub(1))).map(|ended| &ended["result"]);
        let now = serde_json::to_value(now).map_err(|e| wrong(e.to_string()))?;
        let differs = match kept {
            None => vec!["it has no such agent".to_owned()],
            Some(kept) => traderharness_replay::diff::differences(kept, &now, 5).iter().map(ToString::to_string).collect(),
        };
        if !differs.is_empty() {
            let what = format!("compare.json is not what the runs give, agent `{agent}`:\n  {}", differs.join("\n  "));
            return Err(Fault::text(Class::Finding, what));
        }
    }
    Ok(Some(true))
}
