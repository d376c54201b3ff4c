//! Memory through a session: words that are never rewritten, events kept before an answer, days closed with journal and hard state.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation must stop its test at once, a skipped one says so")]

use crate::fixture::{Memory as Records, Setup, call, code, store, trading_days};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use traderharness_harness::model::{ModelClient, ModelError, Turn};
use traderharness_harness::run::{RunSettings, Silent, run};
use traderharness_harness::{Card, RawArguments, Session, SessionError};
use traderharness_market::DecisionPoint;
use traderharness_replay::{Message, Record, Request, Response, ToolCall};
use traderharness_tools_exec::memory::{Memory, MemoryEvent, MemorySink, NoSink};

/// Keeps lines where the test can see them; fails when told to.
#[derive(Clone, Default)]
struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
    full: bool,
}

impl MemorySink for Lines {
    fn keep(&mut self, events: &[MemoryEvent]) -> std::io::Result<()> {
        if self.full {
            return Err(std::io::Error::new(std::io::ErrorKind::StorageFull, "disk full"));
        }
        self.lines.lock().unwrap().extend(events.iter().map(MemoryEvent::to_line));
        Ok(())
    }
}

impl Lines {
    fn all(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    fn file(&self) -> String {
        self.all().iter().map(|line| format!("{line}\n")).collect()
    }
}

fn masked() -> Setup {
    Setup { masked: true, ..Setup::default() }
}

fn note(content: &str, kind: &str, tags: &[&str]) -> Value {
    json!({ "content": content, "memory_type": kind, "tags": tags })
}

// engine E8.5, E12.5: storing a guess and reading it again must not tell whether it was right
#[test]
fn what_an_agent_wrote_comes_back_as_written_from_every_outlet() {
    let store = store();
    let mut session = masked().session(&store);
    session.start_day(trading_days(&store)[0]).unwrap();
    let guess = "600001 Harbour Tools 0 of 2024-04-09, 600001.SH, 9 April 2024";
    let tags = ["600001", "Harbour Tools 0"];
    let written = call(&mut session, "remember", note(guess, "hypothesis", &tags));
    let memory = written.envelope.0["memory"].clone();
    assert_eq!((&memory["content"], &memory["tags"]), (&json!(guess), &json!(tags)));
    assert_eq!(memory["date"], "D+0");
    let refused = call(&mut session, "remember", note(&format!("again {guess}"), "hypothesis", &tags));
    assert_eq!(code(&refused), "memory_requires_supersedes");
    let correction = refused.envelope.0["correction"].clone();
    assert_eq!(correction["candidate_memories"][0]["content_preview"], guess);
    assert_eq!(correction["candidate_memories"][0]["tags"], json!(tags));
    assert_eq!(correction["retry_arguments"]["content"], format!("again {guess}"));
    let repaired = call(&mut session, "remember", correction["retry_arguments"].clone());
    assert_eq!(repaired.envelope.0["memory"]["supersedes_id"], "mem-0001");
    for (tool, args) in [("get_memory", json!({ "memory_id": "mem-0001" })), ("search_memory", json!({ "query": "again" }))] {
        let read = call(&mut session, tool, args);
        assert!(read.text.contains(guess), "{tool}: {}", read.text);
    }
    session.start_day(trading_days(&store)[1]).unwrap();
    let text = session.memory_text().unwrap();
    assert!(text.contains(guess) && text.contains("D-1"), "{text}");
    let read = call(&mut session, "get_memory", json!({ "memory_id": "mem-0001" }));
    assert_eq!(read.envelope.0["memory"]["superseded_on"], "D-1");
    let bright = {
        let mut session = Setup::default().at(DecisionPoint::PreMarket);
        call(&mut session, "remember", note("x", "lesson", &[])).envelope.0["memory"]["date"].clone()
    };
    assert_eq!(bright, trading_days(&store)[0].to_string());
}

#[test]
fn an_event_is_kept_before_its_call_is_answered() {
    let lines = Lines::default();
    let mut session = masked().at(DecisionPoint::PreMarket).with_memory(Memory::new(), Box::new(lines.clone()));
    call(&mut session, "remember", note("x", "lesson", &[]));
    call(&mut session, "remember", json!({ "content": "y", "memory_type": "lesson", "supersedes_id": "mem-0001" }));
    call(&mut session, "remember", json!({ "content": "z", "memory_type": "lesson", "supersedes_id": "mem-0001" }));
    call(&mut session, "search_memory", json!({ "query": "x" }));
    let kinds: Vec<Value> = lines.all().iter().map(|l| serde_json::from_str::<Value>(l).unwrap()["event"].clone()).collect();
    assert_eq!(kinds, ["remember", "remember", "supersede"]);

    let records = Records::default();
    let setup = Setup { journal: Box::new(records.clone()), ..masked() };
    let full = Lines { full: true, ..Lines::default() };
    let mut session = setup.at(DecisionPoint::PreMarket).with_memory(Memory::new(), Box::new(full));
    let stopped = session.call("remember", RawArguments::Value(note("x", "lesson", &[])));
    assert!(matches!(stopped, Err(SessionError::Memory(_))), "{stopped:?}");
    let records = records.records.lock().unwrap();
    assert!(matches!(records.last(), Some(Record::ToolCall { .. })), "an effect that is not kept is not acknowledged");
}

// engine E12.6
#[test]
fn a_closed_day_leaves_a_journal_and_the_hard_state_in_visible_codes() {
    let store = store();
    let days = trading_days(&store);
    let lines = Lines::default();
    let mut session = masked().session(&store).with_memory(Memory::new(), Box::new(lines.clone()));
    session.start_day(days[0]).unwrap();
    let alias =
        session.mask().code(session.view().find(traderharness_market::Code::parse("600001").unwrap()).unwrap()).to_owned();
    let order = json!({ "operation": "create", "action": "buy", "stock_code": alias, "quantity": 100, "comparator": "price_lte", "trigger_price": 9.0, "reasoning": "r" });
    assert_eq!(code(&call(&mut session, "manage_conditional_order", order)), "success");
    session.close_day("watched only").unwrap();
    session.close_day("a second time").unwrap();
    let closed = lines.all();
    assert_eq!(closed.len(), 2, "{closed:?}");
    let journal: Value = serde_json::from_str(&closed[0]).unwrap();
    assert_eq!(journal, json!({ "event": "daily_journal", "date": days[0].to_string(), "summary": "watched only" }));
    let state: Value = serde_json::from_str(&closed[1]).unwrap();
    assert_eq!((&state["memory_id"], &state["source"]), (&json!("env-0001"), &json!("environment")));
    assert!(closed[1].contains(&alias) && !closed[1].contains("600001"), "{}", closed[1]);
    // An unchanged state is not written again; the agent's tools do not see it.
    session.start_day(days[1]).unwrap();
    session.hold_state().unwrap();
    let cancel = json!({ "operation": "cancel", "order_id": "cond-0001", "reasoning": "no longer" });
    assert_eq!(code(&call(&mut session, "manage_conditional_order", cancel)), "success");
    session.close_day("").unwrap();
    let ids: Vec<Value> =
        lines.all()[2..].iter().map(|l| serde_json::from_str::<Value>(l).unwrap()["memory_id"].clone()).collect();
    assert_eq!(ids, ["env-0002", "env-0001"], "the new state, then the end of the old one; no summary, no journal");
    assert_eq!(code(&call(&mut session, "get_memory", json!({ "memory_id": "env-0002" }))), "memory_not_found");
    assert_eq!(call(&mut session, "search_memory", json!({ "query": "environment" })).envelope.0["count"], 0);
}

#[test]
fn the_next_day_closes_one_that_a_host_left_open() {
    let store = store();
    let days = trading_days(&store);
    let lines = Lines::default();
    let mut session = masked().session(&store).with_memory(Memory::new(), Box::new(lines.clone()));
    session.start_day(days[0]).unwrap();
    while session.advance().is_ok() {}
    assert_eq!(code(&call(&mut session, "finish_day", json!({ "summary": "left open" }))), "success");
    assert!(lines.all().is_empty());
    session.start_day(days[1]).unwrap();
    assert!(lines.all()[0].contains("left open") && lines.all()[0].contains(&days[0].to_string()));
    assert!(session.memory_text().unwrap().contains("D-1: left open"));
}

#[test]
fn a_memory_is_carried_over_by_its_lines() {
    let store = store();
    let days = trading_days(&store);
    let lines = Lines::default();
    let mut first = masked().session(&store).with_memory(Memory::new(), Box::new(lines.clone()));
    first.start_day(days[0]).unwrap();
    call(&mut first, "remember", note("wait for volume", "lesson", &["entry"]));
    first.close_day("one lesson").unwrap();
    let restored = Memory::restore(lines.file().as_bytes()).unwrap().memory;
    let mut second = masked().session(&store).with_memory(restored.clone(), Box::new(NoSink));
    second.start_day(days[1]).unwrap();
    assert_eq!(
        call(&mut second, "search_memory", json!({ "query": "volume" })).envelope.0["memories"][0]["memory_id"],
        "mem-0001"
    );
    assert_eq!(call(&mut second, "remember", note("x", "lesson", &[])).envelope.0["memory"]["memory_id"], "mem-0002");
    assert!(second.memory_text().unwrap().contains("one lesson"));
    // spec/tools.md b35: without being handed one, a run begins with nothing.
    let mut third = masked().session(&store);
    third.start_day(days[1]).unwrap();
    assert_eq!(third.memory_text(), None);
    // A run of earlier days cannot read what later ones wrote.
    let later = Memory::restore(lines.file().replace(&days[0].to_string(), &days[2].to_string()).as_bytes()).unwrap().memory;
    let mut earlier = masked().session(&store).with_memory(later, Box::new(NoSink));
    earlier.start_day(days[1]).unwrap();
    assert_eq!(earlier.memory_text(), None);
    assert_eq!(call(&mut earlier, "search_memory", json!({ "query": "volume" })).envelope.0["count"], 0);
}

#[test]
fn the_limits_of_the_card_reach_the_tools() {
    let card = Card { max_daily_memories: 2, max_active_memories: 1, ..Card::builtin() };
    let mut session = Setup { card, ..masked() }.at(DecisionPoint::PreMarket);
    let first = call(&mut session, "remember", note("x", "lesson", &[]));
    assert_eq!(first.envelope.0["budget"], json!({ "used": 1, "limit": 2 }));
    assert_eq!(first.envelope.0["active"], json!({ "used": 1, "limit": 1 }));
    let full = call(&mut session, "remember", note("y", "lesson", &[]));
    assert_eq!(code(&full), "active_memory_limit_reached");
    // Open until it is repaired; the repair is the same call with one of the candidates.
    assert_eq!(session.phase().pending().len(), 1);
    let mut repaired = full.envelope.0["correction"]["received_arguments"].clone();
    repaired["supersedes_id"] = full.envelope.0["correction"]["candidate_memory_ids"][0].clone();
    assert_eq!(code(&call(&mut session, "remember", repaired)), "success");
    assert!(session.phase().pending().is_empty());
    let day_over = call(&mut session, "remember", note("z", "lesson", &[]));
    assert_eq!((code(&day_over), &day_over.envelope.0["retryable"]), ("daily_memory_limit_reached", &json!(false)));
    assert!(session.phase().pending().is_empty(), "what no repair can help does not block the phase");
}

// complaints AR-3, AR-6: unused optional fields filled with null, "" or 0
#[test]
fn unused_optional_fields_are_dropped_or_named() {
    let mut session = masked().at(DecisionPoint::PreMarket);
    let with = |field: &str, value: Value| {
        let mut args = note("x", "lesson", &[]);
        args[field] = value;
        args
    };
    for (field, value, expected) in [
        ("supersedes_id", json!(null), "success"),
        ("tags", json!(null), "success"),
        ("importance", json!(0), "success"),
        ("supersedes_id", json!(""), "invalid_tool_arguments"),
        ("supersedes_id", json!("null"), "invalid_tool_arguments"),
        ("tags", json!("[\"a\"]"), "success"),
        ("tags", json!([""]), "invalid_tool_arguments"),
    ] {
        session.begin_message();
        let report = call(&mut session, "remember", with(field, value.clone()));
        assert_eq!(code(&report), expected, "{field} = {value}: {}", report.text);
    }
    let mut wrong = || call(&mut session, "search_memory", json!({ "query": "x", "memory_type": "" })).text;
    let (first, _) = (wrong(), wrong());
    assert!(first.contains("memory_type") && wrong().contains("failed 3 times"), "{first}");
}

/// Does nothing on every day, and keeps the requests it was asked with.
struct Idle(Vec<Request>);

#[async_trait]
impl ModelClient for Idle {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        self.0.push(request.clone());
        let (name, args) = match turn.point {
            DecisionPoint::Close2 => ("finish_day", json!({ "summary": format!("did nothing on day {}", turn.day_index) })),
            _ => ("complete_phase", json!({ "decision": "no_trade", "summary": "idle" })),
        };
        let id = format!("c{}", self.0.len());
        let message = Message::assistant("", &[ToolCall::new(id, name, args.to_string())]);
        Ok(Response::new(message))
    }
}

// engine E10.1: system prompt, memory text, brief
#[test]
fn a_day_begins_with_the_memory_between_system_prompt_and_brief() {
    let store = store();
    let records = Records::default();
    let mut session = Setup { journal: Box::new(records.clone()), ..masked() }.session(&store);
    let mut client = Idle(Vec::new());
    let settings = RunSettings { model: "m".into(), ..RunSettings::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(run(&mut session, &mut client, &trading_days(&store), &settings, &mut Silent)).unwrap();
    let first_of_day: Vec<&Request> = client.0.iter().step_by(5).collect();
    assert_eq!(first_of_day.len(), 3);
    let content = |request: &Request, at: usize| request.messages[at].content().unwrap_or_default().to_owned();
    assert!(content(first_of_day[0], 1).starts_with("New trading day"), "nothing to remember on the first day");
    assert!(content(first_of_day[1], 0).starts_with("You manage"));
    assert!(content(first_of_day[1], 1).starts_with("Your memory."));
    assert!(content(first_of_day[1], 1).contains("D-1: did nothing on day 0"));
    assert!(content(first_of_day[1], 2).starts_with("New trading day"));
    let third = content(first_of_day[2], 1);
    assert!(third.contains("D-2: did nothing on day 0") && third.contains("D-1: did nothing on day 1"), "{third}");
    let records = records.records.lock().unwrap();
    let shown = records.iter().filter(|r| matches!(r, Record::Brief { text, .. } if text.starts_with("Your memory."))).count();
    assert_eq!(shown, 2, "what the model was told is in the record");
}

fn is_send<T: Send>(_: &T) {}

#[test]
fn a_session_with_a_sink_can_move_to_another_thread() {
    let session: Session = masked().session(&store()).with_memory(Memory::new(), Box::new(Lines::default()));
    is_send(&session);
}
