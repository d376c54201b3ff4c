//! Dataset, mask, card and tools of a run, and the one place where the command plays days.

use crate::fault::{Class, Fault};
use crate::manifest::{Manifest, Window, window as days_of};
use crate::plugins::Offer;
use serde_json::{Map, Value};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use traderharness_harness::model::{ClientFault, ModelClient, ModelError};
use traderharness_harness::run::{Observer, Prices, RunError, RunSettings, RunSummary};
use traderharness_harness::session::{Journal, SessionError};
use traderharness_harness::{Card, Contract, Sandbox, Session, SessionConfig, Toolbox};
use traderharness_ingest::Dataset;
use traderharness_market::{Cash, Day, Mask, Store};
use traderharness_replay::{Fingerprint, Meta, RecordingError};
use traderharness_tools_exec::memory::{Memory, MemorySink, NoSink};
use traderharness_tools_exec::{Fill, OrderGate};

/// A dataset that was loaded once, for as many runs as one likes.
#[derive(Debug, Clone)]
pub(crate) struct Market {
    pub(crate) store: Arc<Store>,
    /// Tables that the dataset does not have (DESIGN rule 10: reported, never invented).
    pub(crate) missing_tables: Vec<String>,
}

impl From<Dataset> for Market {
    fn from(dataset: Dataset) -> Self {
        let missing_tables = dataset.report.missing_tables().map(str::to_owned).collect();
        Self { store: Arc::new(dataset.store), missing_tables }
    }
}

impl Market {
    /// What the reader of a result must know of the data it stands on; empty when there is nothing.
    pub(crate) fn notes(&self) -> String {
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

    /// What of a window the data does not reach, in words; `None` when it reaches all of it. The words hold real days.
    pub(crate) fn unreached(&self, (start, end): (Day, Day)) -> Option<String> {
        let all = self.store.calendar().days();
        let (first, last) = all.first().copied().zip(all.last().copied())?;
        // Weekends around the data are no loss.
        let trades = |mut days: std::ops::Range<i32>| days.any(|day| !Day(day).is_weekend());
        let mut parts = Vec::new();
        if start < first && trades(start.0..first.0) {
            parts.push(format!("the data begins {first}"));
        }
        if end > last && trades(last.0 + 1..end.0 + 1) {
            parts.push(format!("the data ends {last}"));
        }
        let played = self.store.calendar().between(start, end).len();
        (!parts.is_empty()).then(|| format!("{}; {played} day(s) are played", parts.join(" and ")))
    }
}

/// What an account was when its run ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    pub(crate) initial: Cash,
    /// Real codes and days: they are hidden when a result is made of them.
    pub(crate) fills: Vec<Fill>,
}

/// Dataset, mask, card and tools of a run.
pub(crate) struct World {
    pub(crate) market: Market,
    pub(crate) store: Arc<Store>,
    pub(crate) mask: Arc<Mask>,
    pub(crate) card: Arc<Card>,
    pub(crate) toolbox: Arc<Toolbox>,
    check_output: bool,
    sampling: Map<String, Value>,
    prices: Option<Prices>,
    runtime: Runtime,
    /// Order gate of the run, until it begins.
    pub(crate) gate: Cell<Option<OrderGate>>,
    /// Where the code of the run runs, until it begins.
    pub(crate) sandbox: Cell<Option<Sandbox>>,
    /// Version of the agent's files that the run ended with.
    pub(crate) files_version: Cell<u64>,
    /// Limits of the run and who may end it.
    pub(crate) settings: Cell<RunSettings>,
    /// What was done of a run that stopped.
    pub(crate) stopped: RefCell<Option<RunSummary>>,
    /// The account at the end.
    pub(crate) books: RefCell<Books>,
}

impl World {
    /// Builds the world of a recording and writes the key's id into the manifest.
    pub(crate) fn build(
        dataset: impl Into<Market>,
        manifest: &mut Manifest,
        window: &Window,
        key: Vec<u8>,
        check_output: bool,
    ) -> Result<Self, Fault> {
        let offer = Offer::recorded(manifest.plug_ins.as_ref())?;
        Self::over(dataset.into(), manifest, window, key, check_output, &offer)
    }

    /// Builds the world and writes the key's id and what is kept of the plug-in tools into the manifest.
    pub(crate) fn over(
        market: Market,
        manifest: &mut Manifest,
        window: &Window,
        key: Vec<u8>,
        check_output: bool,
        offer: &Offer,
    ) -> Result<Self, Fault> {
        // A card out of a recording was not read by `Card::read`.
        manifest.card.check().map_err(|e| Fault::new(Class::Input, e).context("the card of the run"))?;
        let store = Arc::clone(&market.store);
        if manifest.mask_style.is_reference() && manifest.mask_seed.is_none() {
            return Err(Fault::text(
                Class::Input,
                "the recording hides codes by a map that follows from a seed, and holds no seed",
            ));
        }
        let days = days_of(&window.start, &window.end)?;
        let mask = Arc::new(Mask::new(&store, manifest.mask(key, Some(days))));
        manifest.entity_mask_seed = mask.key_id();
        manifest.window_id = mask.evidence_digest(&["window", &window.start, &window.end]);
        let toolbox = offer.build(&manifest.contract, &manifest.card, manifest.mask_entities)?;
        manifest.plug_ins = offer.kept(&toolbox);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| Fault::new(Class::Environment, e))?;
        Ok(Self {
            market,
            store,
            mask,
            card: Arc::new(manifest.card.clone()),
            toolbox: Arc::new(toolbox),
            check_output,
            sampling: manifest.sampling.clone(),
            prices: manifest.prices,
            runtime,
            gate: Cell::new(None),
            sandbox: Cell::new(None),
            files_version: Cell::new(0),
            settings: Cell::default(),
            stopped: RefCell::default(),
            books: RefCell::default(),
        })
    }

    /// What the reader of a result must know of the data it stands on; empty when there is nothing.
    pub(crate) fn data_notes(&self) -> String {
        self.market.notes()
    }

    /// Trading days of a window.
    pub(crate) fn days(&self, window: (Day, Day)) -> Result<Vec<Day>, Fault> {
        self.market.days(window)
    }

    /// Waits for something that needs the run's runtime.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Meta line of a cassette.
    pub(crate) fn meta(&self, manifest: &Manifest, model: &str) -> Meta {
        let data = self.store.meta();
        let hidden = self.mask.config();
        let mask = (hidden.dates || hidden.entities).then(|| traderharness_replay::cassette::Mask {
            entities: hidden.entities.then(|| manifest.mask_style.as_str().to_owned()),
            dates: hidden.dates,
            seed_sha256: None,
        });
        // Recordings under v5 have none: they are those of the version.
        let is_default = manifest.contract == Contract::default();
        let behaviour_flags = if is_default { Default::default() } else { manifest.contract.flags().numbers() };
        let extra = Map::from_iter([("manifest".to_owned(), serde_json::to_value(manifest).unwrap_or_default())]);
        Meta {
            contract_version: manifest.contract.name().to_owned(),
            behaviour_flags,
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
    pub(crate) fn play_keeping(
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
        let first = days.first().copied().unwrap_or_default();
        let session = Session::new(config, first, journal).map_err(|e| Fault::new(Class::Input, e))?;
        let mut session = session.with_memory(Memory::new(), memory);
        if let Some(gate) = self.gate.take() {
            session = session.with_gate(gate);
        }
        if let Some(sandbox) = self.sandbox.take() {
            session = session.with_sandbox(sandbox);
        }
        let settings =
            RunSettings { model: model.to_owned(), sampling: self.sampling.clone(), prices: self.prices, ..self.settings.take() };
        let outcome = self.wait(traderharness_harness::run::play(&mut session, client, days, &settings, observer));
        self.files_version.set(session.sandbox().map_or(0, Sandbox::version));
        let account = session.account();
        self.books.replace(Books { initial: account.initial_cash, fills: account.fills().to_vec() });
        match outcome.stopped {
            None => Ok(outcome.summary),
            Some(error) => {
                self.stopped.replace(Some(outcome.summary));
                Err(stopped(error))
            }
        }
    }
}

/// The fault of a run that stopped. A model that never answered is a matter of the set-up: nothing was run.
fn stopped(error: RunError) -> Fault {
    let class = match &error {
        RunError::Model { source: ModelError::Replay(_), .. }
        | RunError::Session(SessionError::Journal(RecordingError::Diverged { .. })) => Class::Finding,
        RunError::Model { source: ModelError::Client(ClientFault::Unsendable { .. }), .. } => Class::Input,
        RunError::Model { source: ModelError::Recording(_), .. }
        | RunError::Model { source: ModelError::Client(_), step: 0 }
        | RunError::Session(SessionError::Journal(_) | SessionError::Memory(_) | SessionError::Workspace(_)) => {
            Class::Environment
        }
        _ => Class::Stopped,
    };
    let hint = match &error {
        RunError::Model { source: ModelError::Client(fault), .. } => fault.hint(),
        _ => None,
    };
    let fault = Fault::new(class, error);
    match hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}
