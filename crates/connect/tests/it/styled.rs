//! Models that write their calls as text: what they are sent, and how they are read.

use crate::ask::{block, turn};
use async_trait::async_trait;
use serde_json::{Value, json};
use traderharness_connect::StyledClient;
use traderharness_connect::styled::as_sent;
use traderharness_contract::parse::{CallStyle, describe, write_call};
use traderharness_harness::model::{ModelClient, ModelError, ReplayClient, Turn};
use traderharness_harness::resume::ResumingClient;
use traderharness_replay::request::function_tool;
use traderharness_replay::{Cassette, Message, Meta, Player, Recorder, Request, Response, ToolCall};

/// Says one thing and keeps what it was asked.
struct Says(String, String, Vec<Request>);

#[async_trait]
impl ModelClient for Says {
    async fn complete(&mut self, request: &Request, _: Turn) -> Result<Response, ModelError> {
        self.2.push(request.clone());
        let mut response = Response::new(Message::assistant(self.0.as_str(), &[]));
        response.finish_reason = self.1.clone();
        Ok(response)
    }
}

fn request() -> Request {
    let mut request = Request::new("m", "v5");
    let schema = json!({"type": "object", "properties": {"code": {"type": "string"}, "days": {"type": "integer"}}});
    request.tools = vec![function_tool("get_kline", "Bars of a stock.", &schema)];
    request.sampling = json!({"temperature": 0, "tool_choice": "auto", "parallel_tool_calls": true}).as_object().unwrap().clone();
    request.messages = vec![Message::system("You trade ≥ 股票."), Message::user("Go.")];
    request
}

fn read(style: CallStyle, words: &str, finish_reason: &str) -> Response {
    let mut client = StyledClient::new(Says(words.to_owned(), finish_reason.to_owned(), Vec::new()), style);
    block(client.complete(&request(), turn())).unwrap()
}

const STYLES: [CallStyle; 2] = [CallStyle::Json, CallStyle::Text];

// spec/seeds.md A6.8
#[test]
fn the_model_gets_a_description_and_nothing_native() {
    for style in STYLES {
        let mut whole = request();
        whole.messages.extend([
            Message::assistant(
                "I look.\nCalls",
                &[ToolCall::new("a", "get_kline", "{\"code\": \"1\"}"), ToolCall::new("b", "get_kline", "{}")],
            ),
            Message::tool("a", "{\"close\": 1}"),
            Message::tool("b", "{\"close\": 2}"),
            Message::user("Next."),
        ]);
        let sent = as_sent(style, &whole);
        assert_eq!((sent.tools.len(), Value::from(sent.sampling.clone())), (0, json!({"temperature": 0})));
        let prompt = describe(style, &whole.tools).unwrap();
        let messages: Vec<(&str, &str)> = sent.messages.iter().map(|m| (m.role(), m.content().unwrap())).collect();
        let system = format!("You trade ≥ 股票.\n\n{prompt}");
        let results =
            "## Result of get_kline({\"code\": \"1\"})\n\n{\"close\": 1}\n\n## Result of get_kline({})\n\n{\"close\": 2}";
        let expected =
            [("system", system.as_str()), ("user", "Go."), ("assistant", "I look.\nCalls"), ("user", results), ("user", "Next.")];
        assert_eq!(messages, expected);
        assert_eq!(as_sent(style, &whole), sent, "the same request is sent the same way");
    }
    assert_eq!(as_sent(CallStyle::Openai, &request()), request());
}

#[test]
fn a_system_prompt_apart_takes_the_description() {
    let mut apart = request();
    apart.messages.remove(0);
    apart.system = Some("You trade.".to_owned());
    let sent = as_sent(CallStyle::Text, &apart);
    assert!(sent.system.unwrap().starts_with("You trade.\n\n# Available tools"));
    assert_eq!(sent.messages, apart.messages);
}

// complaint JR-7
#[test]
fn what_the_style_shows_comes_back_as_calls() {
    let arguments = json!({"code": "SHM-000360", "days": 5}).as_object().unwrap().clone();
    for style in STYLES {
        let words = format!("Sure ≥.\n{}", write_call(style, "get_kline", &arguments));
        let message = read(style, &words, "stop").message;
        assert_eq!(message.content(), Some(words.as_str()), "the model's words stay as they are");
        let [call] = message.tool_calls().try_into().unwrap();
        assert_eq!((call.id.as_str(), call.name.as_str()), ("pre_market-4-1", "get_kline"));
        assert_eq!(serde_json::from_str::<Value>(&call.arguments).unwrap(), Value::from(arguments.clone()));
    }
}

// complaint JR-6, JR-2
#[test]
fn thoughts_and_cut_answers_run_nothing() {
    let call = "```json\n{\"tool\": \"get_kline\", \"params\": {\"days\": 5}}\n```";
    assert_eq!(read(CallStyle::Json, &format!("<think>{call}</think> No."), "stop").message.tool_calls(), []);
    let calls = read(CallStyle::Json, call, "length").message.tool_calls();
    assert!(calls.iter().all(|call| traderharness_contract::arguments::parse_arguments(&call.arguments).is_err()), "{calls:?}");
}

#[test]
fn a_model_is_told_what_was_not_taken_as_a_call() {
    let mut request = request();
    request.messages.extend([Message::assistant("- Action: get_kline(days=5)", &[]), Message::user("Next.")]);
    let sent = as_sent(CallStyle::Text, &request);
    let told: Vec<&str> = sent.messages[3..].iter().map(|m| m.content().unwrap()).collect();
    assert!(told[0].starts_with("Parts of your answer were not run:"), "{told:?}");
    assert_eq!(told[1], "Next.");
}

#[test]
fn calls_without_words_are_written_in_the_style() {
    let mut request = request();
    request.messages.push(Message::assistant("", &[ToolCall::new("a", "get_kline", "{\"days\": 5}")]));
    assert_eq!(as_sent(CallStyle::Text, &request).messages[2].content(), Some("Action: get_kline(days=5)"));
}

#[test]
fn the_recording_holds_what_was_sent_and_plays_again_in_the_style() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let model = Says("Action: get_kline(days=5)".to_owned(), "stop".to_owned(), Vec::new());
    let recording = ResumingClient::new(None, model, Recorder::create(&path, Meta::default()).unwrap());
    let mut client = StyledClient::new(recording, CallStyle::Text);
    let first = block(client.complete(&request(), turn())).unwrap();
    client.into_inner().into_recorder().finish().unwrap();
    let cassette = Cassette::load(&path).unwrap();
    assert_eq!(cassette.request(0).unwrap().unwrap(), as_sent(CallStyle::Text, &request()));
    let mut again = StyledClient::new(ReplayClient::new(Player::new(cassette).unwrap()), CallStyle::Text);
    assert_eq!(block(again.complete(&request(), turn())).unwrap(), first);
}
