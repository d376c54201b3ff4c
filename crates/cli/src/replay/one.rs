//! One recorded run, played again: where its key, window, gate, files and dataset come from, and everything that was kept of it is held
//! against what comes out.

use super::options::SetUpOptions;
use super::watch::{Noting, Watch, Wrong};
use super::{Hosted, Replayed, Setup, identical, manifest_under, play_watched};
use crate::bundle::recording;
use crate::code::{Files, LatePool, TOOL};
use crate::fault::{Class, Fault, read_text};
use crate::manifest::{Manifest, Private, Window, parse_key, read_key, read_key_file};
use crate::report::{print, summary_text};
use crate::reports::read_result;
use crate::result::{Played, RunResult, differing};
use crate::run::{Market, RunFolder, machine, pretty};
use crate::{gate, source};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use traderharness_harness::resume::CheckingJournal;
use traderharness_harness::run::{Budgets, Observer};
use traderharness_harness::session::{Journal, NoJournal};
use traderharness_market::Mask;
use traderharness_replay::diff::differences;
use traderharness_replay::{Cassette, Record, RecordingError, Replay};

/// Differences shown of one file.
const SHOWN: usize = 5;

/// A recording, and the folder of its run.
pub(crate) struct Tape {
    pub(crate) cassette: Cassette,
    pub(crate) folder: RunFolder,
    /// Whether what else lies in the folder is of this run: it was named, not the cassette alone.
    pub(crate) whole: bool,
}

/// What a replay came to.
pub(crate) struct Came {
    pub(crate) replayed: Replayed,
    code: Code,
    /// Records of the trajectory that came out the same.
    records: Option<usize>,
    /// The result file, and what the run gives.
    pub(crate) results: Option<(RunResult, RunResult)>,
}

impl Tape {
    /// The recording that a path leads to: a run folder, or a cassette file.
    pub(crate) fn at(path: &Path) -> Result<Self, Fault> {
        let folder = RunFolder::of(path);
        let file = if path.is_dir() { folder.cassette() } else { path.to_path_buf() };
        if let Some(fault) = RunFolder::no_run(path) {
            return Err(fault);
        }
        // Of a session over a door there is no part of a cassette before it has ended.
        let begun =
            || traderharness_replay::partial_path(&file).exists() || (folder.trajectory().is_file() && !folder.result().exists());
        if path.is_dir() && !file.exists() && begun() {
            return Err(Fault::text(
                Class::Input,
                format!("the run in `{}` stopped before its end, so there is nothing whole to replay", path.display()),
            )
            .hint("the command of the run with --resume goes on with it; `traderharness report` shows what was done"));
        }
        let cassette = Cassette::load(&file).map_err(|e| {
            let missing = matches!(e, RecordingError::Io { .. });
            let fault = recording(e, Class::Input).context(format!("cassette `{}`", file.display()));
            if missing { fault.hint("pass the folder that `run --record` wrote, or its cassette.jsonl") } else { fault }
        })?;
        Ok(Self { cassette, folder, whole: path.is_dir() })
    }
}

/// Where a dataset is found that a run did not say it was over: given, beside the recording, or bundled.
pub(crate) fn data_of(set_up: &SetUpOptions, private: Option<&Private>) -> Option<PathBuf> {
    set_up.data.clone().or_else(|| private.and_then(|private| private.data.clone()))
}

/// The key of a run, of those that were given, or beside the recording; empty when there is none.
fn key_of(set_up: &SetUpOptions, private: Option<&Private>, manifest: &Manifest, market: &Market) -> Result<Vec<u8>, Fault> {
    let given = set_up.mask_key.iter().map(|path| read_key(path)).collect::<Result<Vec<_>, _>>()?;
    match (&given[..], private) {
        ([], Some(private)) => parse_key(&private.mask_key),
        ([], None) => Ok(Vec::new()),
        ([one], _) => Ok(one.clone()),
        (several, _) => {
            let fits = |key: &&Vec<u8>| {
                Mask::new(&market.store, manifest.mask((*key).clone(), None)).key_id() == manifest.entity_mask_seed
            };
            let fault = || Fault::text(Class::Input, "none of the mask keys is that of the run");
            several.iter().find(fits).cloned().ok_or_else(fault)
        }
    }
}

/// The days that the given key files name, where all of those that name any agree: files of several runs do not say whose they are.
fn window_beside_key(set_up: &SetUpOptions) -> Result<Option<Window>, Fault> {
    let files = set_up.mask_key.iter().map(|path| read_key_file(path)).collect::<Result<Vec<_>, _>>()?;
    let mut windows = files.into_iter().filter_map(|file| file.window);
    let first = windows.next();
    Ok(first.filter(|first| windows.all(|other| other == *first)))
}

/// Plays a recording again over a dataset, or over the one that it names.
pub(crate) fn one(
    tape: Tape,
    market: Option<&Market>,
    set_up: &SetUpOptions,
    watch: Watch,
    quiet: bool,
    observer: &mut dyn Observer,
) -> Result<Came, Fault> {
    let Tape { cassette, folder, whole } = tape;
    let player = Replay::new(cassette);
    let private = folder.read_private()?;
    let manifest = manifest_under(&player, set_up.pack.as_deref())?;
    let gate = private.as_ref().and_then(|p| p.gate.as_ref());
    if manifest.gated && gate.is_none() {
        return Err(Fault::text(
            Class::Input,
            "the run had an order gate, and its mandate and audit log are not beside the recording",
        )
        .hint("replay in the run folder; the run kept them in private/"));
    }
    let gate = gate.map(|run| gate::replayed(run, &folder.gate())).transpose()?;
    let given = set_up.start.clone().zip(set_up.end.clone()).map(|(start, end)| Window { start, end });
    let window = match given.or_else(|| private.as_ref().map(|p| p.window.clone())).or_else(|| manifest.window.clone()) {
        Some(window) => window,
        None => window_beside_key(set_up)?.ok_or_else(|| {
            Fault::text(Class::Input, "the recording hides its dates, and its window is not beside it")
                .hint("pass --mask-key with the private/run.json of the run, which has key and days, or --start and --end")
        })?,
    };
    // Dates alone need the key too: evidence ids and cursors of a masked run are made with it.
    if manifest.is_masked() && private.is_none() && set_up.mask_key.is_empty() {
        return Err(Fault::text(Class::Input, "the recording is masked and its mask key is not beside it")
            .hint("pass --mask-key with the private/run.json of the run, or with a file that has its 64 hex digits"));
    }
    let market = match market {
        Some(market) => market.clone(),
        None => source::open(data_of(set_up, private.as_ref()).as_deref(), quiet)?.into(),
    };
    let key = key_of(set_up, private.as_ref(), &manifest, &market)?;
    // Beside its trajectory a run is held against that too: every record must come out as it was kept.
    let kept = if whole { folder.kept(&folder.path)? } else { None };
    let records = kept.as_ref().map(Vec::len);
    let outcomes = kept.iter().flatten().filter(|entry| is_code(&entry.record)).count() as u64;
    if manifest.hosted {
        if watch.until.is_some() || watch.explain {
            return Err(Fault::text(Class::Input, "the session was played through a door, which asked no model")
                .hint("leave --until and --explain out: they are about requests"));
        }
        let cassette = player.cassette();
        cassette.verify().map_err(|e| recording(e, Class::Finding))?;
        let meta = cassette.meta().cloned().unwrap_or_default();
        let sandbox = Files::replayed(&manifest.card, &folder.workspace())?.sandbox(&LatePool::new(&set_up.interpreter), false);
        let session = Hosted { market, meta, manifest, window, key, sandbox, records: Hosted::records(kept)? };
        let code = Code { outcomes, recorded: outcomes, absent: None };
        return came(&folder, whole, session.again()?, code, records);
    }
    let mut checked = CheckingJournal::new(kept.unwrap_or_default());
    let pool = LatePool::new(&set_up.interpreter);
    // Looked for only where there is code: a replay without any needs no Python.
    let absent = if outcomes > 0 && !set_up.recorded_code { pool.absent() } else { None };
    if !set_up.recorded_code && absent.is_none() {
        checked = checked.running_code();
    }
    let noting = Noting::new(checked.clone());
    let journal: Box<dyn Journal> = match records {
        None => Box::new(NoJournal),
        Some(_) if watch.explain => Box::new(noting.clone()),
        Some(_) => Box::new(checked.clone()),
    };
    let files = Files::replayed(&manifest.card, &folder.workspace())?;
    let sandbox = Some(files.sandbox(&pool, false));
    let setup = Setup { window, key, gate, sandbox, journal };
    let (played, seen) = play_watched(market, player, manifest, setup, watch, observer);
    let replayed = played.map_err(|fault| {
        if let Some(Wrong::Other(explained)) = seen.wrong.as_ref().filter(|_| watch.explain) {
            print(&if quiet { pretty(&json!({ "explanation": explained.machine() })) } else { explained.text() });
        }
        // Without its trajectory a recording has no outcome to fall back on.
        match pool.asked_in_vain().filter(|_| records.is_none()) {
            Some(why) => fault.hint(format!("the agent's code could not run: {why}")),
            None => hinted(fault, seen.wrong.as_ref(), watch),
        }
    })?;
    let code = Code { outcomes, recorded: checked.code_from_recording(), absent };
    if replayed.until.is_some() {
        return Ok(Came { replayed, code, records: None, results: None });
    }
    if let Some(diverged) = noting.diverged() {
        return Err(Fault::new(Class::Finding, diverged));
    }
    if checked.left() > 0 {
        return Err(Fault::text(
            Class::Finding,
            format!("the trajectory has {} record(s) that the run does not give", checked.left()),
        )
        .hint("lines were added to it, or the run ended early: take the trajectory as the run wrote it"));
    }
    came(&folder, whole, replayed, code, records)
}

/// What a replay came to, held against what the run left beside its recording.
fn came(folder: &RunFolder, whole: bool, replayed: Replayed, code: Code, records: Option<usize>) -> Result<Came, Fault> {
    if whole {
        check_summary(folder, &replayed)?;
    }
    let kept = if whole { read_result(folder)? } else { None };
    let results = kept.map(|kept| {
        let now = result_of(&replayed, Some(&kept));
        (kept, now)
    });
    Ok(Came { replayed, code, records, results })
}

/// Fails when the counts of a run that were kept are not those that it gives.
fn check_summary(folder: &RunFolder, replayed: &Replayed) -> Result<(), Fault> {
    let file = folder.summary();
    if !file.is_file() {
        return Ok(());
    }
    let changed = |what: String| {
        Fault::text(Class::Finding, format!("`{}` is not what the run gives: {what}", file.display()))
            .hint("requests and trajectory are identical; that file was changed")
    };
    let kept: Value = serde_json::from_str(&read_text("summary", &file)?).map_err(|e| changed(e.to_string()))?;
    let now = machine(&replayed.summary, &replayed.world);
    let found: Vec<String> = differences(&kept, &now, SHOWN).iter().map(ToString::to_string).collect();
    if found.is_empty() { Ok(()) } else { Err(changed(found.join("\n"))) }
}

/// The result of a replay, with the names of the kept one that nothing else of the run depends on.
fn result_of(replayed: &Replayed, kept: Option<&RunResult>) -> RunResult {
    let agent = kept.map_or("unknown", |kept| kept.agent.as_str());
    let currency = kept.and_then(|kept| kept.cost.get("currency")).and_then(Value::as_str);
    replayed.result(agent, currency)
}

impl Replayed {
    /// What the run came to, played by `agent`.
    pub(crate) fn result(&self, agent: &str, currency: Option<&str>) -> RunResult {
        RunResult::of(&Played {
            world: &self.world,
            manifest: &self.manifest,
            agent: agent.to_owned(),
            currency: currency.map(str::to_owned),
            model: self.model.clone(),
            summary: &self.summary,
            budgets: &Budgets::default(),
        })
    }
}

/// What to do about a request that got no answer; each of the ways it can be has its own.
fn hinted(fault: Fault, wrong: Option<&Wrong>, watch: Watch) -> Fault {
    match wrong {
        Some(Wrong::Other(_)) if !watch.explain => fault.hint("--explain shows the first difference with what stands around it"),
        Some(Wrong::Exhausted) => fault.hint(
            "the run goes on where the recording ends: it was cut, or days, card or limits are other than those of the run; record it again",
        ),
        Some(Wrong::NoOutput(before)) => fault.hint(match before {
            0 => "the model gave no answer when the run was recorded; record it again".to_owned(),
            before => format!("the model gave no answer when the run was recorded; --until {before} replays what came before it"),
        }),
        _ if !watch.explain && matches!(fault.cause::<RecordingError>(), Some(RecordingError::Diverged { .. })) => {
            fault.hint("--explain lets the run go on to the request in which this shows, and shows it there")
        }
        _ => fault,
    }
}

impl Came {
    /// What the run gives.
    pub(crate) fn result(&self) -> RunResult {
        self.results.as_ref().map_or_else(|| result_of(&self.replayed, None), |(_, now)| now.clone())
    }

    /// Fails when the result file is not what the run gives.
    pub(crate) fn check_result(&self, folder: &Path) -> Result<(), Fault> {
        let fields = self.results.as_ref().map(|(kept, now)| differing(kept, now)).unwrap_or_default();
        if fields.is_empty() {
            return Ok(());
        }
        let file = RunFolder::of(folder).result();
        let what = format!("`{}` is not what the run gives: {} differ", file.display(), fields.join(", "));
        Err(Fault::text(Class::Finding, what).hint("requests and trajectory are identical; the result file was changed"))
    }

    pub(crate) fn machine(&self) -> Value {
        let replayed = &self.replayed;
        let mut value = json!({ "identical": replayed.requests, "requests": replayed.requests, "result_identical": self.results.is_some().then_some(true), "code": self.code.machine(), "run": machine(&replayed.summary, &replayed.world) });
        if let Some(until) = replayed.until {
            value["requests"] = replayed.recorded.into();
            value["until"] = until.into();
        }
        value
    }

    /// The lines that say what was compared.
    pub(crate) fn compared(&self) -> String {
        let replayed = &self.replayed;
        if replayed.until.is_some() {
            let (asked, recorded) = (replayed.requests, replayed.recorded);
            return format!(
                "{asked} of {asked} requests identical; stopped there of {recorded}, as --until says. Nothing after them was looked at."
            );
        }
        let mut lines = vec![if replayed.manifest.hosted {
            let calls = replayed.summary.calls.total();
            format!("{calls} of {calls} calls identical; the session was played through a door, which asked no model.")
        } else {
            identical(replayed.requests)
        }];
        lines.extend(self.code.text());
        if let Some(records) = self.records {
            lines.push(format!("{records} of {records} trajectory records identical."));
        }
        if self.results.is_some() {
            lines.push("The result file is what the run gives.".to_owned());
        }
        lines.join("\n")
    }

    pub(crate) fn print(&self) {
        if self.replayed.until.is_none() {
            print(&summary_text(&self.replayed.summary, &self.replayed.world.data_notes()));
        }
        print(&self.compared());
    }
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
