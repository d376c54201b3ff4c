//! `traderharness run`: one agent over trading days, recorded when asked. A script, a rule, a model behind a server and a program over a
//! pipe are played in the same way; nothing here decides what an agent may see or do.

mod folder;
mod perform;
mod world;

pub(crate) use folder::RunFolder;
pub(crate) use perform::{Performance, Performed};
pub(crate) use world::{Books, Market, World};

use crate::agent::{Plan, environment};
use crate::args::RunOptions;
use crate::code::{Files, LatePool, require_walls};
use crate::fault::{Class, Fault, Outcome, read_text};
use crate::manifest::{Manifest, Private, Window, hex, new_key, parse_key, read_key, window};
use crate::plugins::Offer;
use crate::progress::Screen;
use crate::report::{print, result_text, tell};
use crate::{gate, limits, source};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use traderharness_harness::Card;
use traderharness_harness::run::{RunStatus, RunSummary};
use traderharness_harness::written::Format;

pub(crate) fn run(options: &RunOptions) -> Outcome {
    let window = window(&options.start, &options.end)?;
    let card = match &options.card {
        Some(path) => read_card(path)?,
        None => Card::builtin(),
    };
    let agent = options.agent.read(&card, &environment)?;
    if options.limits.max_cost.is_some() && agent.prices.is_none() {
        return Err(Fault::text(Class::Input, "--max-cost needs prices").hint("pass --price-in and --price-out"));
    }
    let chosen = options.contract.chosen()?;
    if matches!(agent.plan, Plan::Baseline(_)) && !chosen.serves_baselines() {
        return Err(Fault::text(
            Class::Input,
            format!("a rule-based baseline cannot be played under contract {}", chosen.contract.name()),
        )
        .hint(
            "leave --contract and --pack out; `compare --contract` plays baselines under v5 beside agents under another contract",
        ));
    }
    let settings = options.limits.settings(&agent.plan.model(), limits::on_signal())?;
    let folder = match options.record.as_deref() {
        Some(path) if options.resume => Some(RunFolder::interrupted(path)?),
        Some(path) => Some(RunFolder::create(path)?),
        None => None,
    };
    let kept = folder.as_ref().filter(|_| options.resume).map(RunFolder::read_private).transpose()?.flatten();
    same_player(kept.as_ref().and_then(|private| private.player.as_deref()), &agent.plan.identity())?;
    let kept_gate = kept.as_ref().and_then(|private| private.gate.clone());
    let key = match (&options.mask_key, kept) {
        (Some(path), _) => read_key(path)?,
        (None, Some(private)) => parse_key(&private.mask_key)?,
        (None, None) => new_key()?,
    };
    let (mask_dates, mask_entities) = Manifest::hides(options.mask);
    if let Some(note) = chosen.note().filter(|_| mask_entities) {
        tell(note);
    }
    let asked = Window { start: options.start.clone(), end: options.end.clone() };
    let offer = match &options.tools {
        None => Offer::default(),
        Some(path) => {
            let (offer, warnings) = Offer::load(path, options.allow_effects)?;
            warnings.iter().for_each(|warning| tell(&format!("warning: {warning}")));
            offer
        }
    };
    let dataset = source::open(options.data.as_deref(), options.json)?;
    let mut manifest = Manifest {
        window: (!mask_dates).then(|| asked.clone()),
        mask_dates,
        mask_entities,
        gated: options.gate.is_some(),
        ..Manifest::of(card, &agent)
    }
    .under(chosen);
    let world = World::over(dataset.into(), &mut manifest, &asked, key.clone(), options.check_output, &offer)?;
    let days = world.days(window)?;
    let unreached = world.market.unreached(window);
    // A result for a machine holds the note itself, unless dates are hidden: then it is for the person alone.
    if let Some(note) = unreached.as_ref().filter(|_| !options.json || mask_dates) {
        tell(&format!("note: {note}"));
    }
    let pool = LatePool::new(&options.interpreter);
    if options.strict_sandbox {
        require_walls(&pool, &world.toolbox)?;
    }
    let files = Files::open(&world.card, options.workspace.as_deref(), folder.as_ref().map(RunFolder::workspace))?;
    world.sandbox.set(Some(files.sandbox(&pool, options.strict_sandbox)));
    let closed = match &options.gate {
        Some(mandate) => Some(gate::look(mandate, &gate_dir(options, folder.as_ref())?, kept_gate.as_ref())?),
        None => None,
    };
    let mut screen = Screen::new(options.json, days.len());
    let watcher = screen.watcher();
    let performance = Performance {
        world: &world,
        manifest: &manifest,
        agent: &agent,
        days: &days,
        folder: folder.as_ref(),
        private: Private {
            mask_key: hex(&key),
            window: asked,
            data: absolute(options.data.as_deref()),
            gate: None,
            player: Some(agent.plan.identity()),
        },
        settings,
        gate: closed,
    };
    let performed = performance.play(&mut screen, watcher);
    screen.end();
    let Performed { summary, result, stopped } = performed?;
    if options.json {
        let mut value = machine(&summary, &world);
        value["result"] = json!(result);
        if let Some(note) = unreached.filter(|_| !mask_dates) {
            value["window_note"] = note.into();
        }
        print(&pretty(&value));
    } else {
        print(&result_text(&result, &world.data_notes()));
        // Said before the first day, too; by now that has scrolled away.
        if let Some(note) = unreached {
            tell(&format!("note: {note}"));
        }
    }
    if let Some(fault) = stopped {
        return Err(match &folder {
            Some(folder) if going_on_helps(summary.status, summary.stop_code, &result.agent) => {
                fault.hint(format!("it is kept in `{}`; repeat the command with --resume to go on", folder.path.display()))
            }
            _ => fault,
        });
    }
    files.finish(world.files_version.get())?;
    if let Some(folder) = folder.as_ref().filter(|_| !options.json) {
        print(&format!("Recorded in {0}. Check it with: traderharness replay {0}", folder.path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the same command with `--resume` can come further. What was answered is answered again from the recording, and a script or a rule
/// decides alike every time, so a run that its player ended stops again at the same place.
fn going_on_helps(status: RunStatus, stop_code: Option<&str>, agent: &str) -> bool {
    status.can_go_on()
        && match stop_code {
            Some("phase_completion_protocol_exhausted" | "empty_answers") => false,
            Some("model_failed") => matches!(agent, "model" | "program"),
            _ => true,
        }
}

/// A run that goes on is played by who played it: another script that begins alike would make a recording of two halves.
fn same_player(kept: Option<&str>, now: &str) -> Result<(), Fault> {
    match kept {
        Some(kept) if kept != now => {
            Err(Fault::text(Class::Input, format!("the interrupted run was played by `{kept}`, this command names `{now}`"))
                .hint("repeat the command of the run with --resume, or start a new run in another folder"))
        }
        _ => Ok(()),
    }
}

/// Where the order gate keeps its files. Without a folder nothing would be kept, and a gate that keeps nothing is none.
fn gate_dir(options: &RunOptions, folder: Option<&RunFolder>) -> Result<PathBuf, Fault> {
    let recorded = || folder.map(RunFolder::gate);
    options.gate_dir.clone().or_else(recorded).ok_or_else(|| {
        Fault::text(Class::Input, "--gate needs a folder for its counter and its audit log")
            .hint("pass --gate-dir DIR, or --record DIR to keep it with the run")
    })
}

/// Reads a card, YAML or JSON; every fault of it is named at once.
pub(crate) fn read_card(path: &Path) -> Result<Card, Fault> {
    let format = Format::of_name(&path.to_string_lossy()).unwrap_or(Format::Yaml);
    let named = |e: traderharness_harness::CardError| {
        Fault::new(Class::Input, e)
            .context(format!("card `{}`", path.display()))
            .hint("`traderharness cards schema` shows every field")
    };
    Card::read(&read_text("card", path)?, format).map_err(named)
}

pub(crate) fn absolute(path: Option<&Path>) -> Option<PathBuf> {
    path.map(|p| std::fs::canonicalize(p).unwrap_or_else(|_| p.to_path_buf()))
}

pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The summary with what it stands on.
pub(crate) fn machine(summary: &RunSummary, world: &World) -> Value {
    let meta = world.store.meta();
    json!({ "summary": summary, "dataset": { "name": meta.name, "digest": meta.digest, "synthetic": meta.synthetic, "missing_tables": world.market.missing_tables } })
}

#[cfg(test)]
mod tests {
    use super::{RunStatus, going_on_helps};

    fn check(status: RunStatus, code: &str, agent: &str, expected: bool) {
        assert_eq!(going_on_helps(status, Some(code), agent), expected, "{code} of {agent}");
    }

    #[test]
    fn going_on_is_offered_only_where_it_comes_further() {
        check(RunStatus::Cancelled, "cancelled", "script", true);
        check(RunStatus::BudgetExhausted, "budget_exhausted", "baseline random", true);
        check(RunStatus::Failed, "model_failed", "model", true);
        check(RunStatus::Failed, "model_failed", "program", true);
        check(RunStatus::Failed, "model_failed", "script", false);
        check(RunStatus::Failed, "phase_completion_protocol_exhausted", "model", false);
        check(RunStatus::Failed, "empty_answers", "program", false);
        check(RunStatus::Aborted, "aborted", "model", false);
    }
}
