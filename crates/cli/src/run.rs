//! `traderharness run`: a scripted agent over trading days, recorded when asked.

use crate::args::RunOptions;
use crate::code::{Files, LatePool, require_walls};
use crate::fault::{Class, Fault, Outcome, read_text, read_value};
use crate::manifest::{Manifest, Private, Window, hex, new_key, parse_key, window, write_whole};
use crate::memory::MemoryFile;
use crate::replay::player;
use crate::report::{Printer, print, summary_text};
use crate::{gate, limits, source};
use serde_json::{Map, Value, json};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use traderharness_harness::model::{ModelClient, ModelError, ScriptedClient};
use traderharness_harness::resume::{ResumingClient, ResumingJournal};
use traderharness_harness::run::{CONTRACT_VERSION, Observer, RunError, RunSettings, RunSummary, Silent};
use traderharness_harness::script::Script;
use traderharness_harness::session::{Journal, NoJournal, SessionError};
use traderharness_harness::{Card, Sandbox, Session, SessionConfig, Toolbox};
use traderharness_ingest::Dataset;
use traderharness_market::{Day, Mask, Store};
use traderharness_replay::trajectory::{self, Entry, RunStart};
use traderharness_replay::{Fingerprint, Meta, Player, Record, Recorder, RecordingError, Trajectory};
use traderharness_tools_exec::OrderGate;
use traderharness_tools_exec::memory::{Memory, MemorySink, NoSink};

pub(crate) fn run(options: &RunOptions) -> Outcome {
    let window = window(&options.start, &options.end)?;
    let card = match &options.card {
        Some(path) => read_card(path)?,
        None => Card::builtin(),
    };
    let script = Script::from_value(read_value("script", &options.script)?)
        .map_err(|e| Fault::new(Class::Input, e).context(format!("script `{}`", options.script.display())))?;
    let folder = match options.record.as_deref() {
        Some(path) if options.resume => Some(RunFolder::interrupted(path)?),
        Some(path) => Some(RunFolder::create(path)?),
        None => None,
    };
    let kept = folder.as_ref().filter(|_| options.resume).map(RunFolder::read_private).transpose()?.flatten();
    let kept_gate = kept.as_ref().and_then(|private| private.gate.clone());
    let key = match (&options.mask_key, kept) {
        (Some(path), _) => parse_key(&read_text("mask key", path)?)?,
        (None, Some(private)) => parse_key(&private.mask_key)?,
        (None, None) => new_key()?,
    };
    let (mask_dates, mask_entities) = Manifest::hides(options.mask);
    let asked = Window { start: options.start.clone(), end: options.end.clone() };
    let dataset = source::open(options.data.as_deref(), options.json)?;
    let mut manifest = Manifest {
        card,
        window: (!mask_dates).then(|| asked.clone()),
        window_id: String::new(),
        mask_dates,
        mask_entities,
        entity_mask_seed: String::new(),
        gated: options.gate.is_some(),
    };
    let world = World::build(dataset, &mut manifest, &asked, key.clone(), options.check_output)?;
    let script = script.resolve(&world.store, &world.mask).map_err(|e| Fault::new(Class::Input, e))?;
    let model = script.model.clone();
    let days = world.days(window)?;
    let client = ScriptedClient::new(script);
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

    let mut silent = Silent;
    let mut printer = Printer::new();
    let observer: &mut dyn Observer = if options.json { &mut silent } else { &mut printer };
    world.settings.set(options.limits.settings(&model, limits::on_signal()));
    let played = match &folder {
        None => {
            world.gate.set(closed.map(gate::Closed::open).transpose()?);
            world.play(Box::new(NoJournal), &mut { client }, &days, &model, observer)
        }
        Some(folder) => {
            // Kept before the gate opens: a resumed run must know where the gate's records of this run begin.
            let gate = closed.as_ref().map(|closed| closed.run.clone());
            folder.keep_private(&Private {
                mask_key: hex(&key),
                window: asked,
                data: absolute(options.data.as_deref()),
                gate,
            })?;
            let meta = world.meta(&manifest, &model);
            let memory = Box::new(MemoryFile::start(&folder.memory())?);
            let (journal, player, recorder) = folder.open(&meta)?;
            world.gate.set(closed.map(gate::Closed::open).transpose()?);
            let mut client = ResumingClient::new(player, client, recorder);
            let played = world.play_keeping(journal, memory, &mut client, &days, &model, observer);
            // A run that stopped has a summary too, of what was done.
            let summary = played.as_ref().ok().cloned().or_else(|| world.stopped.borrow().clone());
            if let Some(summary) = &summary {
                write_whole(&folder.summary(), pretty(&machine(summary, &world)).as_bytes(), false)?;
            }
            // The cassette is finished last: a folder with a finished cassette is whole.
            if played.is_ok() {
                client.into_recorder().finish().map_err(|e| Fault::new(Class::Environment, e))?;
            }
            played
        }
    };
    let summary = match (played, world.stopped.take()) {
        (Ok(summary), _) => summary,
        (Err(fault), None) => return Err(fault),
        (Err(fault), Some(summary)) => {
            print(&if options.json { pretty(&machine(&summary, &world)) } else { summary_text(&summary, &world.data_notes()) });
            return Err(match &folder {
                Some(folder) if summary.status.can_go_on() => {
                    fault.hint(format!("it is kept in `{}`; repeat the command with --resume to go on", folder.path.display()))
                }
                _ => fault,
            });
        }
    };
    files.finish(world.files_version.get())?;
    if options.json {
        print(&pretty(&machine(&summary, &world)));
    } else {
        print(&summary_text(&summary, &world.data_notes()));
        if let Some(folder) = &folder {
            print(&format!("Recorded in {0}. Check it with: traderharness replay {0}", folder.path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the order gate keeps its files. Without a folder nothing would be kept, and a gate that keeps nothing is none.
fn gate_dir(options: &RunOptions, folder: Option<&RunFolder>) -> Result<PathBuf, Fault> {
    let recorded = || folder.map(RunFolder::gate);
    options.gate_dir.clone().or_else(recorded).ok_or_else(|| {
        Fault::text(Class::Input, "--gate needs a folder for its counter and its audit log")
            .hint("pass --gate-dir DIR, or --record DIR to keep it with the run")
    })
}

pub(crate) fn read_card(path: &Path) -> Result<Card, Fault> {
    let value = read_value("card", path)?;
    let named = |e: traderharness_harness::CardError| Fault::new(Class::Input, e).context(format!("card `{}`", path.display()));
    Card::from_json(&value.to_string()).map_err(named)
}

fn absolute(path: Option<&Path>) -> Option<PathBuf> {
    path.map(|p| std::fs::canonicalize(p).unwrap_or_else(|_| p.to_path_buf()))
}

pub(crate) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The summary with what it stands on.
pub(crate) fn machine(summary: &RunSummary, world: &World) -> Value {
    let meta = world.store.meta();
    json!({ "summary": summary, "dataset": { "name": meta.name, "digest": meta.digest, "synthetic": meta.synthetic, "missing_tables": world.missing_tables } })
}

/// Dataset, mask, card and tools of a run.
pub(crate) struct World {
    pub(crate) store: Arc<Store>,
    pub(crate) mask: Arc<Mask>,
    card: Arc<Card>,
    toolbox: Arc<Toolbox>,
    check_output: bool,
    /// Tables that the dataset does not have (DESIGN rule 10: reported, never invented).
    missing_tables: Vec<String>,
    /// Order gate of the run, until it begins.
    pub(crate) gate: Cell<Option<OrderGate>>,
    /// Where the code of the run runs, until it begins.
    pub(crate) sandbox: Cell<Option<Sandbox>>,
    /// Version of the agent's files that the run ended with.
    files_version: Cell<u64>,
    /// Limits of the run and who may end it.
    settings: Cell<RunSettings>,
    /// What was done of a run that stopped.
    stopped: RefCell<Option<RunSummary>>,
}

impl World {
    /// Builds the world and writes the key's id into the manifest.
    pub(crate) fn build(
        dataset: Dataset,
        manifest: &mut Manifest,
        window: &Window,
        key: Vec<u8>,
        check_output: bool,
    ) -> Result<Self, Fault> {
        // A card out of a recording was not read by `Card::from_json`.
        manifest.card.check().map_err(|e| Fault::new(Class::Input, e).context("the card of the run"))?;
        let missing_tables = dataset.report.missing_tables().map(str::to_owned).collect();
        let store = Arc::new(dataset.store);
        let mask = Arc::new(Mask::new(&store, manifest.mask(key)));
        manifest.entity_mask_seed = mask.key_id();
        manifest.window_id = mask.evidence_digest(&["window", &window.start, &window.end]);
        let toolbox = Toolbox::new(&manifest.card, manifest.mask_entities).map_err(|e| Fault::new(Class::Input, e))?;
        Ok(Self {
            store,
            mask,
            card: Arc::new(manifest.card.clone()),
            toolbox: Arc::new(toolbox),
            check_output,
            missing_tables,
            gate: Cell::new(None),
            sandbox: Cell::new(None),
            files_version: Cell::new(0),
            settings: Cell::default(),
            stopped: RefCell::default(),
        })
    }

    /// What the reader of a result must know of the data it stands on; empty when there is nothing.
    pub(crate) fn data_notes(&self) -> String {
        let mut notes = String::new();
        if self.store.meta().synthetic {
            notes.push_str("\nThe data of this run is SYNTHETIC: prices and names are invented.");
        }
        if !self.missing_tables.is_empty() {
            let list = self.missing_tables.join(", ");
            notes.push_str(&format!("\nNot in this dataset: {list}. Tools that need them answered data_unavailable."));
        }
        if self.missing_tables.iter().any(|table| table.starts_with("valuation")) {
            notes.push_str("\nWithout valuation no security is known to be ST: every band is that of its board, and no buy is refused for ST.");
        }
        notes
    }

    /// Trading days of a window.
    pub(crate) fn days(&self, (start, end): (Day, Day)) -> Result<Vec<Day>, Fault> {
        let days = self.store.calendar().between(start, end).to_vec();
        if days.is_empty() {
            let all = self.store.calendar().days();
            let range = all.first().zip(all.last()).map_or_else(String::new, |(a, b)| format!("; it has {a} to {b}"));
            return Err(
                Fault::new(Class::Input, RunError::NoTradingDay { start, end }).hint(format!("pick days of the dataset{range}"))
            );
        }
        Ok(days)
    }

    /// Meta line of a cassette.
    pub(crate) fn meta(&self, manifest: &Manifest, model: &str) -> Meta {
        let data = self.store.meta();
        let hidden = self.mask.config();
        let mask = (hidden.dates || hidden.entities).then(|| traderharness_replay::cassette::Mask {
            entities: hidden.entities.then(|| "opaque".to_owned()),
            dates: hidden.dates,
            seed_sha256: None,
        });
        let extra = Map::from_iter([("manifest".to_owned(), serde_json::to_value(manifest).unwrap_or_default())]);
        Meta {
            contract_version: CONTRACT_VERSION.to_owned(),
            model: model.to_owned(),
            mask,
            dataset: Some(traderharness_replay::cassette::Dataset {
                name: data.name.clone(),
                sha256: data.digest.parse::<Fingerprint>().ok(),
            }),
            synthetic: data.synthetic,
            extra,
            ..Meta::default()
        }
    }

    /// Plays the days with a client; what the agent remembers ends with the run.
    pub(crate) fn play(
        &self,
        journal: Box<dyn Journal>,
        client: &mut dyn ModelClient,
        days: &[Day],
        model: &str,
        observer: &mut dyn Observer,
    ) -> Result<RunSummary, Fault> {
        self.play_keeping(journal, Box::new(NoSink), client, days, model, observer)
    }

    /// Plays the days with a client and hands memory events to `memory`. Every run begins with an empty memory (spec/tools.md b35).
    fn play_keeping(
        &self,
        journal: Box<dyn Journal>,
        memory: Box<dyn MemorySink>,
        client: &mut dyn ModelClient,
        days: &[Day],
        model: &str,
        observer: &mut dyn Observer,
    ) -> Result<RunSummary, Fault> {
        let config = SessionConfig {
            store: Arc::clone(&self.store),
            mask: Arc::clone(&self.mask),
            card: Arc::clone(&self.card),
            toolbox: Arc::clone(&self.toolbox),
            check_output: self.check_output,
        };
        let stopped = |e: RunError| {
            let class = match &e {
                RunError::Model { source: ModelError::Replay(_), .. }
                | RunError::Session(SessionError::Journal(RecordingError::Diverged { .. })) => Class::Finding,
                RunError::Model { source: ModelError::Recording(_), .. }
                | RunError::Session(SessionError::Journal(_) | SessionError::Memory(_) | SessionError::Workspace(_)) => {
                    Class::Environment
                }
                _ => Class::Stopped,
            };
            Fault::new(class, e)
        };
        let first = days.first().copied().unwrap_or_default();
        let session = Session::new(config, first, journal).map_err(|e| Fault::new(Class::Input, e))?;
        let mut session = session.with_memory(Memory::new(), memory);
        if let Some(gate) = self.gate.take() {
            session = session.with_gate(gate);
        }
        if let Some(sandbox) = self.sandbox.take() {
            session = session.with_sandbox(sandbox);
        }
        let settings = RunSettings { model: model.to_owned(), ..self.settings.take() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| Fault::new(Class::Environment, e))?;
        let outcome = runtime.block_on(traderharness_harness::run::play(&mut session, client, days, &settings, observer));
        self.files_version.set(session.sandbox().map_or(0, Sandbox::version));
        match outcome.stopped {
            None => Ok(outcome.summary),
            Some(error) => {
                self.stopped.replace(Some(outcome.summary));
                Err(stopped(error))
            }
        }
    }
}

/// Trajectory, what was already asked, and cassette of a run that begins or goes on.
type Opened = (Box<dyn Journal>, Option<Player>, Recorder);

/// The folder of a recorded run.
pub(crate) struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes the folder; an existing one must be empty, nothing is ever overwritten.
    fn create(path: &Path) -> Result<Self, Fault> {
        let fault = |e: std::io::Error| {
            Fault::new(Class::Environment, e).context(format!("run folder `{}` cannot be made", path.display()))
        };
        std::fs::create_dir_all(path).map_err(fault)?;
        if std::fs::read_dir(path).map_err(fault)?.next().is_some() {
            return Err(Fault::text(Class::Input, format!("`{}` is not empty", path.display()))
                .hint("name a new folder for --record; recordings are never overwritten"));
        }
        Ok(Self { path: path.to_path_buf() })
    }

    /// The folder of a run that was killed.
    fn interrupted(path: &Path) -> Result<Self, Fault> {
        let folder = Self { path: path.to_path_buf() };
        if folder.cassette().exists() {
            return Err(Fault::text(Class::Input, format!("the run in `{}` is finished", path.display()))
                .hint(format!("look at it with: traderharness replay {} --show", path.display())));
        }
        if !path.is_dir() {
            return Err(Fault::text(Class::Input, format!("there is no run in `{}`", path.display()))
                .hint("leave --resume out to start one"));
        }
        Ok(folder)
    }

    /// Opens trajectory and cassette, new or where they were cut. The player answers what was already asked.
    fn open(&self, meta: &Meta) -> Result<Opened, Fault> {
        let fault = |e: RecordingError| Fault::new(Class::Environment, e);
        let start = RunStart {
            contract_version: meta.contract_version.clone(),
            model: meta.model.clone(),
            dataset: meta.dataset.clone().unwrap_or_default(),
            synthetic: meta.synthetic,
            run: meta.extra.clone(),
            ..RunStart::default()
        };
        let interrupted = match Recorder::resume(self.cassette()) {
            Ok((recorder, cassette)) => Some((recorder, cassette)),
            // Killed before its first line was whole: nothing was asked yet.
            Err(RecordingError::Empty { .. }) => None,
            Err(RecordingError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(fault(e)),
        };
        let Some((recorder, cassette)) = interrupted else {
            for leftover in [traderharness_replay::partial_path(&self.cassette()), self.trajectory()] {
                if leftover.exists() {
                    std::fs::remove_file(&leftover).map_err(|e| {
                        Fault::new(Class::Environment, e).context(format!("`{}` cannot be removed", leftover.display()))
                    })?;
                }
            }
            let recorder = Recorder::create(self.cassette(), meta.clone()).map_err(fault)?;
            let journal = Trajectory::create(self.trajectory(), start).map_err(fault)?;
            return Ok((Box::new(journal), None, recorder));
        };
        let recorded = cassette.meta().map(|m| &m.extra);
        if recorded != Some(&meta.extra) || cassette.meta().map(|m| &m.dataset) != Some(&meta.dataset) {
            return Err(Fault::text(
                Class::Input,
                "the options are not those of the interrupted run (card, window, masks, dataset)",
            )
            .hint("repeat the command of the run and add --resume"));
        }
        let journal: Box<dyn Journal> = if self.trajectory().exists() {
            let (mut trajectory, entries) = Trajectory::resume(self.trajectory()).map_err(fault)?;
            if entries.is_empty() {
                Trajectory::append(&mut trajectory, Record::RunStart(start)).map_err(fault)?;
            }
            Box::new(ResumingJournal::new(trajectory, entries))
        } else {
            Box::new(Trajectory::create(self.trajectory(), start).map_err(fault)?)
        };
        Ok((journal, Some(player(cassette)?), recorder))
    }

    /// The folder a recording was read from: the argument itself, or the folder of a cassette file.
    pub(crate) fn of(path: &Path) -> Self {
        let path = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
        Self { path: path.to_path_buf() }
    }

    pub(crate) fn cassette(&self) -> PathBuf {
        self.path.join("cassette.jsonl")
    }

    fn trajectory(&self) -> PathBuf {
        self.path.join("trajectory.jsonl")
    }

    /// What the agent remembered, with real days.
    fn memory(&self) -> PathBuf {
        self.path.join("private").join("memory.jsonl")
    }

    /// Files of the agent's code.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.path.join("workspace")
    }

    fn summary(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    /// Files of the order gate, unless the run was told another folder.
    pub(crate) fn gate(&self) -> PathBuf {
        self.path.join("private").join("gate")
    }

    fn private(&self) -> PathBuf {
        self.path.join("private").join("run.json")
    }

    fn keep_private(&self, private: &Private) -> Result<(), Fault> {
        let path = self.private();
        let folder = self.path.join("private");
        let fault =
            |e: std::io::Error| Fault::new(Class::Environment, e).context(format!("`{}` cannot be made", folder.display()));
        std::fs::create_dir_all(&folder).map_err(fault)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).map_err(fault)?;
        }
        write_whole(&path, pretty(&serde_json::to_value(private).unwrap_or_default()).as_bytes(), true)
    }

    /// Records of the trajectory, when a whole folder is replayed and it has one.
    pub(crate) fn kept(&self, asked: &Path) -> Result<Option<Vec<Entry>>, Fault> {
        if !asked.is_dir() || !self.trajectory().is_file() {
            return Ok(None);
        }
        let read = trajectory::read(self.trajectory()).map_err(|e| Fault::new(Class::Finding, e))?;
        match read.cut {
            None => Ok(Some(read.entries)),
            Some(_) => {
                Err(Fault::text(Class::Finding, format!("`{}` ends in the middle of a record", self.trajectory().display())))
            }
        }
    }

    /// Private facts, when they are there.
    pub(crate) fn read_private(&self) -> Result<Option<Private>, Fault> {
        let path = self.private();
        if !path.is_file() {
            return Ok(None);
        }
        let text = read_text("private run file", &path)?;
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|e| Fault::new(Class::Input, e).context(format!("`{}` is not a private run file", path.display())))
    }
}
