//! Turns of a decision point: the notice before they end, the last one, answers without a call, and answers with nothing in them.

use crate::fixture::{Memory, Setup, store, trading_days};
use crate::phases::{calls, completes, play, says};
use async_trait::async_trait;
use serde_json::{Value, json};
use traderharness_harness::model::{ModelClient, ModelError, Turn};
use traderharness_harness::phase::wrap_up_turn;
use traderharness_harness::run::{RunError, RunSettings, Silent, play as play_run};
use traderharness_harness::{Card, prompt};
use traderharness_market::DecisionPoint;
use traderharness_replay::{Record, Request, Response};

fn offered(request: &Request) -> Vec<&str> {
    request.tools.iter().filter_map(|t| t.pointer("/function/name").and_then(Value::as_str)).collect()
}

/// The last message that is kept in the conversation: behind it a request has the phase protocol, which is not.
fn last_kept(request: &Request) -> &str {
    let protocol = request.messages.last().is_some_and(|m| m.content().is_some_and(|c| c.starts_with("Phase protocol")));
    let kept = if protocol { &request.messages[..request.messages.len() - 1] } else { &request.messages[..] };
    kept.last().and_then(|m| m.content()).unwrap_or_default()
}

fn look() -> Response {
    calls(&[("get_portfolio", json!({}))])
}

// spec/seeds.md B12.2
#[test]
fn the_notice_comes_once_at_four_fifths_when_that_is_neither_the_first_nor_the_last_turn() {
    let check = |turns: u32, expected: Option<u32>| assert_eq!(wrap_up_turn(turns), expected, "{turns}");
    check(0, None);
    check(1, None);
    check(2, None);
    check(3, Some(2));
    check(5, Some(4));
    check(10, Some(8));
    check(11, Some(8));
    check(u32::MAX, Some(3_435_973_836));

    let card = Card { max_window_iterations: 2, ..Card::builtin() };
    let mut noticed = Vec::new();
    let (_, outcome) = play(card, |request, turn| {
        if turn.point != DecisionPoint::Open1 {
            return completes(turn.point);
        }
        // 2 turns of the card and 8 of the protocol.
        if last_kept(request).starts_with("This is turn") {
            noticed.push((turn.iteration, last_kept(request).to_owned()));
        }
        if turn.iteration == 9 { completes(turn.point) } else { look() }
    });
    outcome.unwrap();
    assert_eq!(noticed.len(), 1, "{noticed:?}");
    assert_eq!(noticed[0].0, 7);
    assert_eq!(
        noticed[0].1,
        "This is turn 8 of 10 at this decision point. Finish what matters and call complete_phase; the last turn offers nothing else."
    );
}

// spec/seeds.md B12.1 under the phase protocol; engine E10.2, E10.5
#[test]
fn the_last_turn_of_a_phase_offers_its_completion_alone() {
    let card = Card { max_window_iterations: 1, max_pre_iterations: 1, ..Card::builtin() };
    let mut last = Vec::new();
    let (session, outcome) = play(card, |request, turn| {
        if turn.iteration < 8 {
            assert!(offered(request).len() > 10);
            return look();
        }
        last.push((turn.point, offered(request).join(" ")));
        completes(turn.point)
    });
    outcome.unwrap();
    let expected: Vec<(DecisionPoint, String)> = DecisionPoint::ALL
        .into_iter()
        .map(|point| (point, if point == DecisionPoint::Close2 { "finish_day" } else { "complete_phase" }.to_owned()))
        .collect();
    assert_eq!(last, expected);
    assert!(session.offered().count() > 10, "the limit of the last turn is lifted behind it");
}

// engine E10.2 wins over spec/seeds.md B12.1: without the protocol every turn of a card is a working turn
#[test]
fn without_the_protocol_the_only_turn_of_a_window_can_trade() {
    let card = Card { max_pre_iterations: 1, max_window_iterations: 1, ..Card::default() };
    let (session, outcome) = play(card, |_, turn| match turn.point {
        DecisionPoint::Open1 => {
            calls(&[("place_order", json!({ "action": "buy", "stock_code": "600001", "quantity": 100, "reasoning": "r" }))])
        }
        DecisionPoint::Close2 => completes(turn.point),
        _ => says("waiting"),
    });
    outcome.unwrap();
    assert_eq!(session.account().fills().len(), 1);
}

/// Records of a run under a card whose model gives these answers before the open, then completes.
fn records(card: Card, answers: &[&str]) -> (Vec<Record>, Option<RunError>, u32) {
    struct Words<'a>(&'a [&'a str], u32);
    #[async_trait]
    impl ModelClient for Words<'_> {
        async fn complete(&mut self, _: &Request, turn: Turn) -> Result<Response, ModelError> {
            if turn.point != DecisionPoint::PreMarket {
                return Ok(if turn.point == DecisionPoint::Close2 { completes(turn.point) } else { completes_or_waits(turn) });
            }
            self.1 += 1;
            Ok(self.0.get(turn.iteration as usize).map_or_else(|| completes_or_waits(turn), |words| says(words)))
        }
    }
    fn completes_or_waits(turn: Turn) -> Response {
        completes(turn.point)
    }
    let store = store();
    let memory = Memory::default();
    let mut session = Setup { card, journal: Box::new(memory.clone()), ..Setup::default() }.session(&store);
    let settings = RunSettings { model: "test".into(), ..RunSettings::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut model = Words(answers, 0);
    let outcome = runtime.block_on(play_run(&mut session, &mut model, &trading_days(&store)[..1], &settings, &mut Silent));
    let records = memory.records.lock().unwrap().clone();
    (records, outcome.stopped, model.1)
}

/// What the environment said after the morning message, and how the pre-market phase ended.
fn said(records: &[Record]) -> (Vec<&str>, Value) {
    let end = records.iter().position(|r| matches!(r, Record::Completion { .. }));
    let said = records[..end.unwrap_or(records.len())].iter().filter_map(|r| match r {
        Record::Brief { role, text } if role == "user" && !text.starts_with("New trading day") => Some(text.as_str()),
        _ => None,
    });
    let detail =
        end.map_or(
            Value::Null,
            |end| if let Record::Completion { detail, .. } = &records[end] { detail.clone() } else { Value::Null },
        );
    (said.collect(), detail)
}

// spec/seeds.md B12.4
#[test]
fn an_empty_answer_is_told_once_and_the_second_in_a_row_stops_the_run() {
    let (kept, stopped, requests) = records(Card::builtin(), &["", " \n"]);
    assert!(matches!(stopped, Some(RunError::EmptyAnswers { step: 1 })), "{stopped:?}");
    assert_eq!((requests, said(&kept).0), (2, vec![prompt::NO_CALL]));
    let [.., Record::Error { code, .. }, Record::RunEnd { status, totals }] = kept.as_slice() else {
        panic!("{:?}", kept.last())
    };
    assert_eq!((code.as_str(), status.as_str(), &totals["stop_code"]), ("empty_answers", "failed", &json!("empty_answers")));
    // Words in between begin the count anew.
    let (kept, stopped, _) = records(Card::builtin(), &["", "hm", "", "done?"]);
    assert!(stopped.is_none(), "{stopped:?}");
    assert_eq!(said(&kept).0, [prompt::NO_CALL; 4]);
}

#[test]
fn without_the_protocol_empty_answers_and_equal_answers_end_the_phase() {
    let card = || Card { allowed_tools: vec!["complete_phase".into()], ..Card::default() };
    let check = |answers: &[&str], told: &[&str], ended_by: &str, turns: u32| {
        let (kept, stopped, requests) = records(card(), answers);
        assert!(stopped.is_none(), "{stopped:?}");
        let (said, detail) = said(&kept);
        assert_eq!(said, told, "{answers:?}");
        assert_eq!((&detail["ended_by"], requests), (&json!(ended_by), turns), "{answers:?}");
    };
    check(&["", ""], &[prompt::NO_CALL_TURNS], "empty_answers", 2);
    check(&["I wait.", "I wait. "], &[prompt::NO_CALL_TURNS], "repeated_answer", 2);
    check(&["I wait.", "Still.", "Still."], &[prompt::NO_CALL_TURNS; 2], "repeated_answer", 3);
}

// engine E10.5 wins over spec/seeds.md B12: under the protocol words use up turns and end nothing
#[test]
fn under_the_protocol_equal_words_are_told_to_be_the_same_and_use_up_turns() {
    let words = ["I am done."; 18];
    let (kept, stopped, requests) = records(Card::builtin(), &words);
    assert!(matches!(stopped, Some(RunError::PhaseProtocol { .. })), "{stopped:?}");
    assert_eq!(requests, 18);
    let (said, _) = said(&kept);
    assert_eq!((said[0], said[1]), (prompt::NO_CALL, prompt::SAME_ANSWER));
    assert!(said.iter().any(|text| text.starts_with("This is turn 14 of 18")));
}

// spec/seeds.md B12.3: a call that was written into the words is not run, and such words are no answer
#[test]
fn a_call_that_is_left_in_the_words_is_told_and_never_executed() {
    let words = "Buying now.\n<tool_call>{\"name\": \"place_order\"}</tool_call>";
    for card in [Card::builtin(), Card { allowed_tools: vec!["complete_phase".into()], ..Card::default() }] {
        let (kept, stopped, requests) = records(card, &[words, words]);
        assert!(stopped.is_none(), "{stopped:?}");
        let (said, detail) = said(&kept);
        assert_eq!((said, requests), (vec![prompt::CALL_IN_TEXT; 2], 3));
        assert_eq!(detail["decision"], "monitor", "the phase ended by its completion: {detail}");
        assert!(!kept.iter().any(|r| matches!(r, Record::ToolCall { tool, .. } if tool == "place_order")));
    }
}
