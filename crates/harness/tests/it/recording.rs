//! Record and replay of whole days, in one process.

use crate::fixture::{Memory, Setup, store, trading_days};
use serde_json::json;
use traderharness_harness::model::{ModelError, RecordingClient, ReplayClient, ScriptedClient};
use traderharness_harness::run::{RunError, RunSettings, Silent, run};
use traderharness_harness::script::Script;
use traderharness_market::{Mask, MaskConfig};
use traderharness_replay::{Cassette, Meta, Player, Recorder, ReplayError};

fn script() -> Script {
    let store = store();
    let mask =
        Mask::new(&store, MaskConfig { dates: true, entities: true, key: b"harness tests".to_vec(), ..MaskConfig::default() });
    Script::from_value(json!({ "schema": 1, "days": [
        { "pre_market": [{ "calls": [{ "tool": "get_kline", "args": { "stock_code": "$600001", "days": 9_999 } }] }, { "calls": [{ "tool": "get_kline", "args": { "stock_code": "$600001" } }] }, { "calls": [{ "tool": "complete_phase", "args": { "decision": "ready", "summary": "ok" } }] }],
          "open_1": [{ "say": "buy", "calls": [{ "tool": "place_order", "args": { "action": "buy", "stock_code": "$600001", "quantity": 1000, "reasoning": "r" } }] }] },
        { "open_1": [{ "say": "sell", "calls": [{ "tool": "place_order", "args": { "action": "sell", "stock_code": "$600001", "quantity": 0, "reasoning": "r" } }] }] }
    ] })).unwrap().resolve(&store, &mask).unwrap()
}

fn settings() -> RunSettings {
    RunSettings { model: "scripted".into(), ..RunSettings::default() }
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn record(path: &std::path::Path) -> (String, Vec<u8>) {
    let store = store();
    let memory = Memory::default();
    let mut session = Setup { masked: true, journal: Box::new(memory.clone()), ..Setup::default() }.session(&store);
    let meta = Meta { contract_version: "v5".into(), model: "scripted".into(), ..Meta::default() };
    let mut client = RecordingClient::new(ScriptedClient::new(script()), Recorder::create(path, meta).unwrap());
    let summary = block(run(&mut session, &mut client, &trading_days(&store), &settings(), &mut Silent)).unwrap();
    assert_eq!(summary.days.iter().map(|d| d.fills).collect::<Vec<_>>(), [1, 1, 0]);
    client.into_recorder().finish().unwrap();
    let records = serde_json::to_string(&*memory.records.lock().unwrap()).unwrap();
    (records, std::fs::read(path).unwrap())
}

fn replay(cassette: Cassette) -> Result<u64, RunError> {
    let store = store();
    let mut session = Setup { masked: true, ..Setup::default() }.session(&store);
    let mut client = ReplayClient::new(Player::new(cassette).unwrap());
    let summary = block(run(&mut session, &mut client, &trading_days(&store), &settings(), &mut Silent))?;
    client.into_player().finish().unwrap();
    Ok(summary.requests)
}

// DESIGN rule 4; engine E13.5
#[test]
fn a_recorded_run_replays_and_two_recordings_are_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (records, bytes) = record(&folder.path().join("a.jsonl"));
    let (records_again, bytes_again) = record(&folder.path().join("b.jsonl"));
    assert_eq!(records, records_again);
    assert_eq!(bytes, bytes_again);
    let cassette = Cassette::load(folder.path().join("a.jsonl")).unwrap();
    let calls = cassette.calls().len() as u64;
    assert_eq!(replay(cassette).unwrap(), calls);
}

// complaint RP-3
#[test]
fn a_recording_with_one_changed_character_stops_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let (_, bytes) = record(&folder.path().join("a.jsonl"));
    let text = String::from_utf8(bytes).unwrap();
    // The model's words change, so the next request differs from the recorded one.
    let changed = text.replacen("\"content\":\"buy\"", "\"content\":\"bux\"", 1);
    assert_ne!(text, changed);
    let Ok(cassette) = Cassette::from_bytes("changed", changed.as_bytes()) else { return };
    match replay(cassette) {
        Err(RunError::Model { source: ModelError::Replay(ReplayError::Mismatch { index, .. }), .. }) => assert!(index > 0),
        other => panic!("{other:?}"),
    }
}
