//! `traderharness replay`: every tool is executed again on the data, and every request must be identical to the recorded one.

mod options;

pub(crate) use options::ReplayOptions;

use crate::code::{Files, LatePool, TOOL};
use crate::fault::{Class, Fault, Outcome, read_text};
use crate::manifest::{Manifest, Window, parse_key, window};
use crate::report::{Printer, print, summary_text};
use crate::reports::read_result;
use crate::result::{Played, RunResult, differing};
use crate::run::{RunFolder, World, machine, pretty};
use crate::{contract, gate, source};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use traderharness_connect::StyledClient;
use traderharness_harness::Sandbox;
use traderharness_harness::model::ReplayClient;
use traderharness_harness::resume::CheckingJournal;
use traderharness_harness::run::{Budgets, Observer, RunSummary, Silent};
use traderharness_harness::session::{Journal, NoJournal};
use traderharness_ingest::Dataset;
use traderharness_replay::cassette::Scheme;
use traderharness_replay::{Cassette, Meta, Record, RecordingError, Replay};
use traderharness_tools_exec::OrderGate;

pub(crate) fn replay(options: &ReplayOptions) -> Outcome {
    let folder = RunFolder::of(&options.cassette);
    let file = if options.cassette.is_dir() { folder.cassette() } else { options.cassette.clone() };
    if let Some(fault) = RunFolder::no_run(&options.cassette) {
        return Err(fault);
    }
    if options.cassette.is_dir() && !file.exists() && traderharness_replay::partial_path(&file).exists() {
        return Err(Fault::text(
            Class::Input,
            format!("the run in `{}` stopped before its end, so there is nothing whole to replay", options.cassette.display()),
        )
        .hint("the command of the run with --resume goes on with it; `traderharness report` shows what was done"));
    }
    let cassette = Cassette::load(&file).map_err(|e| {
        let class = if matches!(e, RecordingError::Io { .. }) { Class::Environment } else { Class::Input };
        let missing = class == Class::Environment;
        let fault = Fault::new(class, e).context(format!("cassette `{}`", file.display()));
        if missing { fault.hint("pass the folder that `run --record` wrote, or its cassette.jsonl") } else { fault }
    })?;
    let player = Replay::new(cassette);
    let private = folder.read_private()?;
    let key = match (&options.mask_key, &private) {
        (Some(path), _) => parse_key(&read_text("mask key", path)?)?,
        (None, Some(private)) => parse_key(&private.mask_key)?,
        (None, None) => Vec::new(),
    };
    let manifest = manifest_under(&player, options.pack.as_deref())?;
    let gate = private.as_ref().and_then(|p| p.gate.as_ref());
    if manifest.gated && gate.is_none() {
        return Err(Fault::text(
            Class::Input,
            "the run had an order gate, and its mandate and audit log are not beside the recording",
        )
        .hint("replay in the run folder; the run kept them in private/"));
    }
    let gate = gate.map(|run| gate::replayed(run, &folder.gate())).transpose()?;
    let given = options.start.clone().zip(options.end.clone()).map(|(start, end)| Window { start, end });
    let window =
        given.or_else(|| private.as_ref().map(|p| p.window.clone())).or_else(|| manifest.window.clone()).ok_or_else(|| {
            Fault::text(Class::Input, "the recording hides its dates, and its window is not beside it")
                .hint("pass --start and --end of the run; it kept them in private/run.json")
        })?;
    let data = options.data.clone().or_else(|| private.and_then(|p| p.data));
    // Dates alone need the key too: evidence ids and cursors of a masked run are made with it.
    if manifest.is_masked() && key.is_empty() {
        return Err(Fault::text(Class::Input, "the recording is masked and its mask key is not beside it")
            .hint("pass --mask-key FILE; the run kept it in private/run.json"));
    }
    let dataset = source::open(data.as_deref(), options.json)?;
    let mut silent = Silent;
    let mut printer = Printer::new();
    let observer: &mut dyn Observer = if options.show && !options.json { &mut printer } else { &mut silent };
    // Beside its trajectory a run is held against that too: every record must come out as it was kept.
    let kept = folder.kept(&options.cassette)?;
    let records = kept.as_ref().map(Vec::len);
    let outcomes = kept.iter().flatten().filter(|entry| is_code(&entry.record)).count() as u64;
    let mut checked = CheckingJournal::new(kept.unwrap_or_default());
    let pool = LatePool::new(&options.interpreter);
    // Looked for only where there is code: a replay without any needs no Python.
    let absent = if outcomes > 0 && !options.recorded_code { pool.absent() } else { None };
    if !options.recorded_code && absent.is_none() {
        checked = checked.running_code();
    }
    let journal: Box<dyn Journal> = if records.is_some() { Box::new(checked.clone()) } else { Box::new(NoJournal) };
    let files = Files::replayed(&manifest.card, &folder.workspace())?;
    let sandbox = Some(files.sandbox(&pool, false));
    let replayed = play(dataset, player, manifest, Setup { window, key, gate, sandbox, journal }, observer).map_err(|fault| {
        // Without its trajectory a recording has no outcome to fall back on.
        match pool.asked_in_vain().filter(|_| records.is_none()) {
            Some(why) => fault.hint(format!("the agent's code could not run: {why}")),
            None => fault,
        }
    })?;
    let code = Code { outcomes, recorded: checked.code_from_recording(), absent };
    if checked.left() > 0 {
        return Err(Fault::text(
            Class::Finding,
            format!("the trajectory has {} record(s) that the run does not give", checked.left()),
        ));
    }
    let result = check_result(&folder, &options.cassette, &replayed)?;
    if options.json {
        print(&pretty(
            &json!({ "identical": replayed.requests, "requests": replayed.requests, "result_identical": result, "code": code.machine(), "run": machine(&replayed.summary, &replayed.world) }),
        ));
    } else {
        print(&summary_text(&replayed.summary, &replayed.world.data_notes()));
        print(&identical(replayed.requests));
        if let Some(text) = code.text() {
            print(&text);
        }
        if let Some(records) = records {
            print(&format!("{records} of {records} trajectory records identical."));
        }
        if result == Some(true) {
            print("The result file is what the run gives.");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Holds `result.json` against what the replay gives: the figures that a recording alone does not hold, too. `None` without the file.
fn check_result(folder: &RunFolder, asked: &std::path::Path, replayed: &Replayed) -> Result<Option<bool>, Fault> {
    let Some(kept) = asked.is_dir().then(|| read_result(folder)).transpose()?.flatten() else { return Ok(None) };
    let now = RunResult::of(&Played {
        world: &replayed.world,
        manifest: &replayed.manifest,
        // Names that nothing else of the run depends on.
        agent: kept.agent.clone(),
        currency: kept.cost.get("currency").and_then(Value::as_str).map(str::to_owned),
        model: replayed.model.clone(),
        summary: &replayed.summary,
        budgets: &Budgets::default(),
    });
    let fields = differing(&kept, &now);
    if fields.is_empty() {
        return Ok(Some(true));
    }
    let what = format!("`{}` is not what the run gives: {} differ", folder.result().display(), fields.join(", "));
    Err(Fault::text(Class::Finding, what).hint("requests and trajectory are identical; the result file was changed"))
}

fn is_code(record: &Record) -> bool {
    matches!(record, Record::External { tool, .. } if tool == TOOL)
}

/// What became of the agent's code in a replay.
struct Code {
    /// Outcomes in the recording.
    outcomes: u64,
    /// Of these, taken from the recording.
    recorded: u64,
    /// Why no code could run.
    absent: Option<String>,
}

impl Code {
    fn text(&self) -> Option<String> {
        let (ran, recorded) = (self.outcomes.saturating_sub(self.recorded), self.recorded);
        match (&self.absent, self.outcomes) {
            (_, 0) => None,
            (Some(why), _) => {
                Some(format!("{recorded} code outcome(s) were taken from the recording, none was run again: {why}"))
            }
            (None, _) => Some(format!("{ran} code outcome(s) identical when run again, {recorded} taken from the recording.")),
        }
    }

    fn machine(&self) -> Value {
        let ran = self.outcomes.saturating_sub(self.recorded);
        json!({ "run_again": ran, "from_recording": self.recorded, "no_interpreter": self.absent })
    }
}

/// The line everybody looks for.
pub(crate) fn identical(requests: u64) -> String {
    format!("{requests} of {requests} requests identical.")
}

/// What a replay needs beside cassette and dataset.
pub(crate) struct Setup {
    pub(crate) window: Window,
    pub(crate) key: Vec<u8>,
    pub(crate) gate: Option<OrderGate>,
    pub(crate) sandbox: Option<Sandbox>,
    pub(crate) journal: Box<dyn Journal>,
}

/// A replay that went through.
pub(crate) struct Replayed {
    pub(crate) requests: u64,
    pub(crate) summary: RunSummary,
    pub(crate) world: World,
    pub(crate) manifest: Manifest,
    pub(crate) model: String,
}

/// Manifest of a cassette.
pub(crate) fn manifest(player: &Replay) -> Result<Manifest, Fault> {
    manifest_under(player, None)
}

/// Manifest of a cassette that may have been made with a pack, with the contract of the recording in it.
pub(crate) fn manifest_under(player: &Replay, pack: Option<&Path>) -> Result<Manifest, Fault> {
    let meta = meta(player);
    let value = meta.extra.get("manifest").cloned().ok_or_else(|| {
        Fault::text(Class::Input, "the cassette has no manifest, so the run cannot be set up again")
            .hint("record with `traderharness run --record DIR`")
    })?;
    let mut manifest: Manifest = serde_json::from_value(value)
        .map_err(|e| Fault::new(Class::Input, e).context("the manifest of the cassette cannot be read"))?;
    manifest.contract = contract::of_recording(&meta, manifest.pack.as_deref(), pack)?;
    Ok(manifest)
}

/// Replays a cassette over a dataset.
pub(crate) fn play(
    dataset: Dataset,
    player: Replay,
    mut manifest: Manifest,
    setup: Setup,
    observer: &mut dyn Observer,
) -> Result<Replayed, Fault> {
    let meta = meta(&player);
    let recorded = manifest.clone();
    let days = window(&setup.window.start, &setup.window.end)?;
    let world = World::build(dataset, &mut manifest, &setup.window, setup.key, true)?;
    let data = world.store.meta();
    if let Some(recorded) = &meta.dataset
        && let Some(digest) = &recorded.sha256
        && digest.to_string() != data.digest
    {
        return Err(Fault::text(
            Class::Finding,
            format!(
                "the recording was made on dataset {} ({}), this is {} ({})",
                recorded.name,
                head(&digest.to_string()),
                data.name,
                head(&data.digest)
            ),
        )
        .hint("pass the dataset of the run with --data; nothing was replayed"));
    }
    if manifest.is_masked() && recorded.entity_mask_seed != manifest.entity_mask_seed {
        return Err(Fault::text(
            Class::Input,
            format!(
                "the mask key has id {}, the recording was made with {}",
                manifest.entity_mask_seed, recorded.entity_mask_seed
            ),
        )
        .hint("pass the key of that run with --mask-key"));
    }
    if recorded.window_id != manifest.window_id {
        return Err(Fault::text(
            Class::Input,
            format!("the recording is of another window than {} to {}", setup.window.start, setup.window.end),
        )
        .hint("pass --start and --end of that run"));
    }
    let days = world.days(days)?;
    world.gate.set(setup.gate);
    world.sandbox.set(setup.sandbox);
    // The recording holds what a model in a style was sent.
    let mut client = StyledClient::new(ReplayClient::new(player), manifest.style);
    let summary = world.play(setup.journal, &mut client, &days, &meta.model, observer)?;
    let player = client.into_inner().into_player();
    if player.cassette().scheme() == Scheme::Whole {
        // Every request matched its fingerprint; the file itself may still have been edited where no fingerprint looks.
        player.cassette().verify().map_err(|e| Fault::new(Class::Finding, e))?;
    }
    player.finish().map_err(|e| Fault::new(Class::Finding, e))?;
    Ok(Replayed { requests: summary.requests, summary, world, manifest, model: meta.model })
}

fn head(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn meta(player: &Replay) -> Meta {
    player.cassette().meta().cloned().unwrap_or_default()
}
