//! A session under a contract version over the fixture market, and a day that is recorded and replayed in this process.

use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use traderharness_contract::version::{Behaviour, Version};
use traderharness_harness::model::{ModelClient, ReplayClient, ScriptedClient};
use traderharness_harness::resume::ResumingClient;
use traderharness_harness::run::{Observer, RunSettings, RunSummary, Silent, run};
use traderharness_harness::script::Script;
use traderharness_harness::session::Journal;
use traderharness_harness::{Card, Contract, Session, SessionConfig, Toolbox};
use traderharness_market::{Day, Mask, MaskStyle, Store};
use traderharness_replay::{Cassette, Meta, Record, Recorder, RecordingError, Replay};
use traderharness_tests::market;
use traderharness_tests::session::mask_config;

pub(super) static STORE: LazyLock<Arc<Store>> = LazyLock::new(|| Arc::new(Store::new(market::parts()).expect("a store")));

/// A day with bars in all windows, and the one after it.
pub(super) fn days() -> [Day; 2] {
    let days = market::days();
    [days[market::SESSIONS - 2], days[market::SESSIONS - 1]]
}

/// The versions that are frozen.
pub(super) const EARLY: [Version; 4] = [Version::V1, Version::V2, Version::V3, Version::V4];

/// The mask that a version hides with by itself.
pub(super) fn mask(contract: &Contract, masked: bool) -> Arc<Mask> {
    mask_of(&STORE, contract, masked)
}

/// The same over another market.
pub(super) fn mask_of(store: &Store, contract: &Contract, masked: bool) -> Arc<Mask> {
    let mut config = mask_config(masked);
    if contract.has(Behaviour::PermutationByDefault) {
        config.style = MaskStyle::Permutation;
    }
    Arc::new(Mask::new(store, config))
}

/// Keeps its records; copies share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept(pub(super) Arc<Mutex<Vec<Record>>>);

impl Journal for Kept {
    fn append(&mut self, record: Record) -> Result<(), RecordingError> {
        self.0.lock().expect("one thread").push(record);
        Ok(())
    }
}

pub(super) fn session(contract: &Contract, card: &Card, masked: bool, kept: &Kept) -> Session {
    let toolbox = Arc::new(Toolbox::under(contract, card, masked).expect("a toolbox"));
    let mask = mask(contract, masked);
    let config = SessionConfig { store: Arc::clone(&STORE), mask, card: Arc::new(card.clone()), toolbox, check_output: true };
    Session::new(config, days()[0], Box::new(kept.clone())).expect("a trading day")
}

/// What a day came to: the summary and every record.
pub(super) struct Played {
    pub(super) summary: RunSummary,
    pub(super) records: Vec<Record>,
}

fn play(contract: &Contract, card: &Card, masked: bool, days: &[Day], client: &mut dyn ModelClient) -> Played {
    let kept = Kept::default();
    let mut session = session(contract, card, masked, &kept);
    let settings = RunSettings { model: "scripted".into(), ..RunSettings::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let observer: &mut dyn Observer = &mut Silent;
    let summary = runtime.block_on(run(&mut session, client, days, &settings, observer)).expect("a whole run");
    drop(session);
    let records = kept.0.lock().expect("one thread").clone();
    Played { summary, records }
}

/// Plays a script and records it.
pub(super) fn record(version: Version, card: &Card, masked: bool, days: &[Day], script: Value, path: &Path) -> Played {
    record_under(&Contract::of(version), card, masked, days, script, path)
}

/// The same under any contract.
pub(super) fn record_under(contract: &Contract, card: &Card, masked: bool, days: &[Day], script: Value, path: &Path) -> Played {
    let script = Script::from_value(script).expect("a script");
    let script = script.resolve(&STORE, &mask(contract, masked)).expect("known codes");
    let meta = Meta {
        contract_version: contract.name().to_owned(),
        behaviour_flags: contract.flags().numbers(),
        model: "scripted".into(),
        ..Meta::default()
    };
    let recorder = Recorder::create(path, meta).expect("a file");
    let mut client = ResumingClient::new(None, ScriptedClient::new(script), recorder);
    let played = play(contract, card, masked, days, &mut client);
    client.into_recorder().finish().expect("a cassette");
    played
}

/// Plays a recording with every tool run again; each request must be the recorded one.
pub(super) fn replay(version: Version, card: &Card, masked: bool, days: &[Day], path: &Path) -> Played {
    let mut client = ReplayClient::new(Replay::new(Cassette::load(path).expect("a cassette")));
    let played = play(&Contract::of(version), card, masked, days, &mut client);
    client.into_player().finish().expect("every answer was used");
    played
}
