//! Whole trading days of the bundled market through every kind of client, and back from their recordings.

use crate::ask::block;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use traderharness_connect::plugin::Launch;
use traderharness_connect::testing::ScriptedModel;
use traderharness_connect::{ChatCompletions, Endpoint, OpenAiClient, PipeClient, PipeLimits, RetryPolicy, Secret, StyledClient};
use traderharness_contract::parse::CallStyle;
use traderharness_harness::model::{ModelClient, ReplayClient};
use traderharness_harness::resume::ResumingClient;
use traderharness_harness::run::{RunSettings, RunSummary, Silent, run};
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, Session, SessionConfig, Toolbox};
use traderharness_market::{Mask, MaskConfig};
use traderharness_replay::{Cassette, Meta, Player, Recorder};

const KEY: &str = "sk-planted-0123456789abcdef0123456789";

/// Plays the last two days of the bundled market.
async fn play(client: &mut dyn ModelClient) -> RunSummary {
    let store = Arc::new(traderharness_ingest::bundled().unwrap().store);
    let hidden = MaskConfig { dates: true, entities: true, key: b"k".to_vec(), ..MaskConfig::default() };
    let mask = Arc::new(Mask::new(&store, hidden));
    let card = Arc::new(Card::builtin());
    let toolbox = Arc::new(Toolbox::new(&card, true).unwrap());
    let days: Vec<_> = store.calendar().days().iter().rev().take(2).rev().copied().collect();
    let config = SessionConfig { store, mask, card, toolbox, check_output: false };
    let mut session = Session::new(config, days[0], Box::new(NoJournal)).unwrap();
    let settings = RunSettings { model: "model-1".to_owned(), ..RunSettings::default() };
    run(&mut session, client, &days, &settings, &mut Silent).await.unwrap()
}

fn recorder(path: &Path) -> Recorder {
    Recorder::create(path, Meta::default()).unwrap()
}

fn replayed(path: &Path, style: CallStyle) -> RunSummary {
    let player = Player::new(Cassette::load(path).unwrap()).unwrap();
    block(play(&mut StyledClient::new(ReplayClient::new(player), style)))
}

fn server(model: &ScriptedModel, stream: bool) -> OpenAiClient {
    let wire = ChatCompletions { stream, ..ChatCompletions::default() };
    OpenAiClient::new(wire, Endpoint::new(model.url(), Some(Secret::new(KEY))), RetryPolicy::default()).unwrap()
}

fn turns() -> Value {
    json!([{"say": "≥ 股票 😀", "calls": [{"tool": "get_portfolio"}, {"tool": "get_market_overview"}]}])
}

#[test]
fn days_behind_a_server_are_recorded_and_play_again_to_the_same_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut ends = Vec::new();
    for stream in [true, false] {
        let path = folder.path().join(format!("{stream}.jsonl"));
        let model = ScriptedModel::start(turns()).unwrap();
        let mut client = ResumingClient::new(None, server(&model, stream), recorder(&path));
        let summary = block(play(&mut client));
        client.into_recorder().finish().unwrap();
        assert_eq!(summary.requests as usize, model.received().len());
        assert_eq!(summary.days.len(), 2);
        assert_eq!(json!(replayed(&path, CallStyle::Openai)), json!(summary));
        let record = std::fs::read_to_string(&path).unwrap();
        assert!(record.contains("≥ 股票 😀") && !record.contains("planted"));
        ends.push(json!(summary.calls));
    }
    assert_eq!(ends[0], ends[1], "streaming changes nothing");
}

#[test]
fn days_of_a_model_that_writes_its_calls_play_again_in_its_style() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("styled.jsonl");
    let call = |tool: &str, params: Value| json!({"say": format!("```json\n{}\n```", json!({"tool": tool, "params": params}))});
    let look = call("get_portfolio", json!({}));
    let on = call("complete_phase", json!({"decision": "monitor", "summary": "≥ nothing"}));
    let finish = call("finish_day", json!({"summary": "Done."}));
    let points = traderharness_market::DecisionPoint::ALL.len() - 1;
    let day = std::iter::once(look).chain(std::iter::repeat_n(on, points)).chain(std::iter::once(finish));
    let turns: Vec<Value> = day.clone().chain(day).collect();
    let asked = turns.len();
    let model = ScriptedModel::start(turns.into()).unwrap();
    let recording = ResumingClient::new(None, server(&model, true), recorder(&path));
    let mut client = StyledClient::new(recording, CallStyle::Json);
    let summary = block(play(&mut client));
    client.into_inner().into_recorder().finish().unwrap();
    assert_eq!(summary.requests as usize, asked, "{}", json!(summary));
    assert_eq!(json!(replayed(&path, CallStyle::Json)), json!(summary));
    let tools = model.received().iter().filter(|received| received.json().get("tools").is_some()).count();
    assert_eq!(tools, 0, "nothing native is sent");
}

#[test]
fn days_of_the_python_example_end() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3 to run the example");
        return;
    }
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents/cautious.py");
    let argv = vec!["python3".to_owned(), script.to_str().unwrap().to_owned()];
    let launch = Launch::new(argv, &[], None, &|name| std::env::var(name).ok()).unwrap();
    let summary = block(async {
        let mut client = PipeClient::start(launch, PipeLimits::default()).await.unwrap();
        let summary = play(&mut client).await;
        client.end().await;
        summary
    });
    assert_eq!(summary.days.len(), 2);
    assert!(summary.days.iter().all(|day| day.summary == "Looked and did nothing."), "{}", json!(summary));
}
