//! Record and replay of whole days, in one process.

use crate::fixture::{Memory, Setup, market, store, trading_days};
use serde_json::json;
use std::sync::Arc;
use traderharness_harness::model::{ModelError, ReplayClient, ScriptedClient};
use traderharness_harness::resume::ResumingClient;
use traderharness_harness::run::{RunError, RunSettings, Silent, run};
use traderharness_harness::script::Script;
use traderharness_market::{Mask, MaskConfig, Store};
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
    let mut client = ResumingClient::new(None, ScriptedClient::new(script()), Recorder::create(path, meta).unwrap());
    let summary = block(run(&mut session, &mut client, &trading_days(&store), &settings(), &mut Silent)).unwrap();
    assert_eq!(summary.days.iter().map(|d| d.fills).collect::<Vec<_>>(), [1, 1, 0]);
    client.into_recorder().finish().unwrap();
    let records = serde_json::to_string(&*memory.records.lock().unwrap()).unwrap();
    (records, std::fs::read(path).unwrap())
}

fn replay(cassette: Cassette) -> Result<u64, RunError> {
    replay_over(&store(), cassette)
}

fn replay_over(store: &Arc<Store>, cassette: Cassette) -> Result<u64, RunError> {
    let mut session = Setup { masked: true, ..Setup::default() }.session(store);
    let mut client = ReplayClient::new(Player::new(cassette).unwrap());
    let summary = block(run(&mut session, &mut client, &trading_days(store), &settings(), &mut Silent))?;
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

// complaint RP-3: the model's words change, so the next request is not the recorded one
#[test]
fn a_recording_with_one_changed_character_stops_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let (_, bytes) = record(&folder.path().join("a.jsonl"));
    let text = String::from_utf8(bytes).unwrap();
    let changed = text.replacen("\"content\":\"buy\"", "\"content\":\"bux\"", 1);
    assert_ne!(text, changed);
    let cassette = Cassette::from_bytes("changed", changed.as_bytes()).unwrap();
    let spoken = cassette.calls().iter().position(|call| call.output.as_ref().is_some_and(|o| o.to_string().contains("bux")));
    match replay(cassette) {
        Err(RunError::Model { source: ModelError::Replay(ReplayError::Mismatch { index, expected, actual, .. }), .. }) => {
            assert_eq!(index, spoken.expect("the answer") + 1);
            assert_ne!(expected, actual);
        }
        other => panic!("{other:?}"),
    }
}

// complaint RP-3: one digit of one tool's result changes with the data; the old answer is never served
#[test]
fn one_changed_number_of_one_result_stops_the_replay_with_both_digests_and_a_diff() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder.path().join("a.jsonl"));
    let cassette = Cassette::load(folder.path().join("a.jsonl")).unwrap();
    let mut parts = market().parts();
    let today = trading_days(&store())[0];
    let first = parts.codes.iter().position(|code| code.as_str() == "600001").expect("the security of the script");
    let rows = parts.daily_offsets[first] as usize..parts.daily_offsets[first + 1] as usize;
    let row = rows.rev().find(|row| parts.daily.day[*row] < today).expect("a bar that get_kline shows");
    parts.daily.volume[row] += 100.0;
    match replay_over(&Arc::new(Store::new(parts).unwrap()), cassette) {
        Err(RunError::Model { step, source: ModelError::Replay(error) }) => {
            let ReplayError::Mismatch { index, expected, actual, differences: Some(differences), .. } = &error else {
                panic!("{error}")
            };
            assert_eq!((*index as u64, expected == actual), (step, false));
            // The call of get_kline that succeeds is made in the second turn.
            assert_eq!(*index, 2);
            assert_eq!(differences.len(), 1, "{error}");
            let shown = error.to_string();
            for part in [&differences[0].path, "recorded", "now", &expected.to_string(), &actual.to_string()] {
                assert!(shown.contains(part), "`{part}` is not in {shown}");
            }
            assert!(differences[0].path.starts_with("messages["), "{shown}");
        }
        other => panic!("{other:?}"),
    }
}
