//! Which cause a difference of two recordings is listed under, on recordings that are made for it.

use serde_json::{Map, Value, json};
use traderharness_replay::cassette::Dataset;
use traderharness_replay::causes::{Comparison, Kind, Run, compare};
use traderharness_replay::redact::Redactor;
use traderharness_replay::request::function_tool;
use traderharness_replay::trajectory::{Entry, RunStart};
use traderharness_replay::{Cassette, Fingerprint, Message, Meta, Record, Recorder, Request, Response, ToolCall};

/// What a recording is made of: two days of the scope `main`, three requests each.
#[derive(Clone)]
struct Play {
    meta: Meta,
    tool: &'static str,
    /// Results of the call of each day.
    results: [String; 2],
    /// What is said at the end of each day.
    last: [&'static str; 2],
    tools: Vec<Value>,
    served: Map<String, Value>,
    instructions: &'static str,
    /// The second request of the first day gets no answer.
    fails: bool,
    /// Something outside answered for the call.
    outside: bool,
    /// Another scope speaks before the first day, and what it says is told to `main`.
    advice: Option<&'static str>,
    /// Days that are played.
    days: usize,
    fill: Value,
    /// The recording holds no requests.
    bare: bool,
}

fn play() -> Play {
    let meta = Meta {
        contract_version: "v5".into(),
        model: "model-1".into(),
        dataset: Some(Dataset { name: "market".into(), sha256: Some(Fingerprint([7; 32])) }),
        extra: Map::from_iter([("manifest".to_owned(), json!({"card": {"persona": "calm"}, "entity_mask_seed": "a"}))]),
        ..Meta::default()
    };
    let result = |day: u32| json!({"success": true, "day": day, "close": 10.5}).to_string();
    Play {
        meta,
        tool: "get_kline",
        results: [result(1), result(2)],
        last: ["Good night.", "Good night."],
        tools: vec![function_tool("get_kline", "Bars.", &json!({"type": "object"}))],
        served: Map::new(),
        instructions: "You trade.",
        fails: false,
        outside: false,
        advice: None,
        days: 2,
        fill: json!({"number": 1, "stock_code": "A", "side": "buy", "quantity": 100, "price": 10.5}),
        bare: false,
    }
}

/// A recording and its trajectory, written and read again.
struct Made {
    cassette: Cassette,
    entries: Vec<Entry>,
}

impl Made {
    fn run(&self, told: bool) -> Run<'_> {
        Run { cassette: &self.cassette, trajectory: told.then_some(self.entries.as_slice()) }
    }
}

fn record(play: &Play) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let mut recorder = Recorder::create(&path, play.meta.clone()).unwrap();
    if play.bare {
        recorder = recorder.without_requests();
    }
    let mut records = vec![Record::RunStart(RunStart { run: play.meta.extra.clone(), ..RunStart::default() })];
    let mut step = 0;
    let mut ask = |records: &mut Vec<Record>, scope: &str, request: &Request, response: Option<Response>| {
        let request_sha256 = request.fingerprint();
        let messages = request.messages.len();
        records.push(Record::ModelRequest { scope: scope.into(), step, request_sha256, messages });
        match response {
            Some(response) => {
                recorder.record(scope, request, &response).unwrap();
                records.push(Record::ModelResponse { scope: scope.into(), step, response });
            }
            None => {
                recorder.record_failure(scope, request, "timeout").unwrap();
                records.push(Record::ModelFailure { scope: scope.into(), step, error: "timeout".into() });
            }
        }
        step += 1;
    };
    let said = |message: Message| Response { served: play.served.clone(), ..Response::new(message) };
    for day in 0..play.days {
        let account = json!({"total_value": 1000.0});
        records.push(Record::DayStart { day_index: day as u32 + 1, day: format!("D+{day}"), account });
        records.push(Record::DecisionPoint { point: "open_1".into(), time: "09:50".into(), equity: None });
        let mut request = Request::new(play.meta.model.clone(), play.meta.contract_version.clone());
        request.sampling.insert("temperature".into(), json!(0));
        request.tools.clone_from(&play.tools);
        request.messages.push(Message::system(play.instructions));
        if let Some(advice) = play.advice.filter(|_| day == 0) {
            ask(&mut records, "main__advisor_skeptic", &request, Some(said(Message::assistant(advice, &[]))));
            request.messages.push(Message::user(format!("Your advisor says: {advice}")));
        }
        request.messages.push(Message::user(format!("Day {day}.")));
        let call = ToolCall::new("c1", play.tool, r#"{"stock_code": "A"}"#);
        let first = Message::assistant("", std::slice::from_ref(&call));
        ask(&mut records, "main", &request, Some(said(first.clone())));
        let (call_id, tool) = (call.id.clone(), call.name.clone());
        records.push(Record::ToolCall { scope: None, call_id: call_id.clone(), tool: tool.clone(), arguments: call.arguments });
        if play.outside {
            records.push(Record::External { call_id: call_id.clone(), tool: tool.clone(), outcome: json!({"ok": true}) });
        }
        let result = serde_json::from_str(&play.results[day]).unwrap();
        records.push(Record::ToolResult { scope: None, call_id, tool, success: true, error_code: None, result, shown: None });
        records.push(Record::Fill { event: play.fill.clone() });
        request.messages.extend([first, Message::tool("c1", play.results[day].clone())]);
        let second = said(Message::assistant("I hold.", &[]));
        ask(&mut records, "main", &request, (!play.fails || day > 0).then_some(second.clone()));
        request.messages.extend([second.message, Message::user("The day ends.")]);
        ask(&mut records, "main", &request, Some(said(Message::assistant(play.last[day], &[]))));
        let equity = 1000.0 + day as f64;
        records.push(Record::DayEnd { day: format!("D+{day}"), account: json!({"total_value": equity}) });
    }
    records.push(Record::RunEnd { status: "completed".into(), totals: Value::Null });
    recorder.finish().unwrap();
    let entries = records.into_iter().zip(0..).map(|(record, seq)| Entry { seq, record }).collect();
    Made { cassette: Cassette::load(&path).unwrap(), entries }
}

fn compared(a: &Play, b: &Play, told: bool) -> Comparison {
    compare(record(a).run(told), record(b).run(told), &Redactor::new(), 20).unwrap()
}

/// Kind and field of every cause, when one run is changed.
#[track_caller]
fn check(change: impl Fn(&mut Play), expected: &[(Kind, &str)]) -> Comparison {
    let mut other = play();
    change(&mut other);
    let mut last = None;
    // With and without what else was kept, and both ways round.
    for told in [true, false] {
        for (a, b) in [(&other, &play()), (&play(), &other)] {
            let comparison = compared(a, b, told);
            let found: Vec<_> = comparison.causes.iter().map(|cause| (cause.kind, cause.place.field.as_str())).collect();
            assert_eq!(found, expected, "trajectories: {told}: {comparison:#?}");
            assert!(!comparison.identical);
            last = Some(comparison);
        }
    }
    last.unwrap()
}

#[test]
fn equal_runs_are_identical_whatever_the_key_of_a_mask_is_that_hides_nothing() {
    let mut other = play();
    other.meta.extra["manifest"]["entity_mask_seed"] = json!("b");
    let comparison = compared(&play(), &other, true);
    assert!(comparison.identical && comparison.causes.is_empty(), "{comparison:#?}");
    let (asked, effect) = (&comparison.scopes[0], comparison.effect.unwrap());
    assert_eq!((asked.requests, asked.together, asked.same_digest, asked.parted_at), ((6, 6), 6, 6, None));
    assert_eq!((effect.parted_on, effect.a.return_pct, effect.days.len()), (None, Some(0.1), 2));
}

// complaint RP-6
#[test]
fn another_answer_is_the_model_and_its_build_is_named() {
    let found = check(|play| play.last[1] = "Good day.", &[(Kind::Model, "message.content")]);
    let (cause, scope) = (&found.causes[0], &found.scopes[0]);
    assert_eq!((cause.place.request, found.consequences, scope.parted_at), (Some(5), 0, Some(5)));
    assert!(cause.why.contains("temperature 0"), "{}", cause.why);
    // The first day ends otherwise, and the second is the same again.
    let found = check(|play| play.last[0] = "Good day.", &[(Kind::Model, "message.content")]);
    assert_eq!((found.scopes[0].came_back, found.scopes[0].together), (1, 6));
    // Another build with other words is one cause that says so; with the same words it is a cause all the same, once.
    let build = |play: &mut Play| drop(play.served.insert("system_fingerprint".into(), json!("fp_2")));
    let found = check(build, &[(Kind::Model, "served")]);
    assert_eq!((found.causes[0].times, found.consequences), (6, 0));
    let both = |play: &mut Play| {
        build(play);
        play.last = ["Good day.", "Good night."];
    };
    let found = check(both, &[(Kind::Model, "served"), (Kind::Model, "message.content")]);
    assert!(found.causes[1].why.contains("system_fingerprint not told and fp_2"), "{}", found.causes[1].why);
    // Every answer has an id of its own.
    let mut named = play();
    named.served.insert("id".into(), json!("chatcmpl-2"));
    assert!(compared(&play(), &named, true).identical);
}

#[test]
fn a_result_is_listed_under_what_it_can_come_from() {
    let other = || json!({"success": true, "day": 1, "close": 10.6}).to_string();
    let found = check(|play| play.results[0] = other(), &[(Kind::Fault, "content.close")]);
    let cause = &found.causes[0];
    assert_eq!((cause.place.request, cause.place.message), (Some(1), Some(3)));
    assert_eq!(
        (cause.place.tool.as_deref(), cause.a.as_deref(), cause.b.as_deref()),
        (Some("get_kline"), Some("10.5"), Some("10.6"))
    );
    assert!(cause.lines.iter().any(|line| line.starts_with("+ ") && line.contains("10.6")), "{:?}", cause.lines);
    // The rest of the day follows; the next one begins alike.
    assert_eq!((found.scopes[0].following, found.scopes[0].came_back, found.consequences), ((2, 2), 1, 4));
    let on_other_data = |play: &mut Play| {
        play.results = [other(), other()];
        play.meta.dataset.as_mut().unwrap().sha256 = Some(Fingerprint([8; 32]));
    };
    check(on_other_data, &[(Kind::Data, "dataset.sha256"), (Kind::Data, "content.close")]);
    // The second day begins alike, and what was done until then is the same: it is another place, where that is known.
    let mut elsewhere = play();
    on_other_data(&mut elsewhere);
    let places = |told: bool| compared(&play(), &elsewhere, told).causes[1].times;
    assert_eq!((places(true), places(false)), (2, 1));
    let code = |play: &mut Play| {
        play.results[0] = other();
        play.tool = "execute_code";
    };
    let (mut a, mut b) = (play(), play());
    a.tool = "execute_code";
    code(&mut b);
    let found = compared(&a, &b, false);
    assert_eq!((found.causes[0].kind, found.causes.len()), (Kind::Environment, 1));
    // Another setting explains it, so it is counted.
    let set = |play: &mut Play| {
        play.results[0] = other();
        play.meta.extra["manifest"]["card"]["persona"] = json!("bold");
    };
    let found = check(set, &[(Kind::Settings, "card.persona")]);
    assert_eq!(found.scopes[0].states, 1);
    // Who answered for the call is known from the trajectory.
    (a, b) = (Play { outside: true, ..play() }, Play { outside: true, ..play() });
    b.results[0] = other();
    assert_eq!(compared(&a, &b, true).causes[0].kind, Kind::Environment);
}

#[test]
fn what_stands_around_a_conversation_is_listed_once_with_its_places() {
    let found = check(|play| play.instructions = "You trade well.", &[(Kind::Settings, "prompt")]);
    assert_eq!((found.causes[0].times, found.consequences, found.scopes[0].same_digest), (6, 0, 0));
    let words = |play: &mut Play| play.tools[0]["function"]["description"] = json!("Daily bars.");
    let found = check(words, &[(Kind::ToolsOffered, "tools[get_kline].function.description")]);
    assert_eq!((found.causes[0].times, found.causes[0].place.tool.as_deref()), (6, Some("get_kline")));
    let model = |play: &mut Play| {
        play.meta.model = "model-2".into();
        play.last[1] = "Good day.";
    };
    // Another model answers otherwise: that is no cause of its own.
    let found = check(model, &[(Kind::Settings, "model")]);
    assert_eq!((found.scopes[0].answers, found.consequences), (1, 1));
}

#[test]
fn a_failure_and_an_end_are_the_surroundings_and_a_missing_end_is_not() {
    let found = check(|play| play.fails = true, &[(Kind::Environment, "error")]);
    assert_eq!(found.causes[0].place.request, Some(1));
    let found = check(|play| play.days = 1, &[(Kind::Fault, "requests")]);
    assert_eq!((found.scopes[0].following.0 + found.scopes[0].following.1, found.scopes[0].parted_at), (3, Some(3)));
}

#[test]
fn where_requests_are_not_kept_nothing_is_guessed() {
    let bare = Play { bare: true, ..play() };
    let mut other = bare.clone();
    assert!(compared(&bare, &other, true).identical);
    other.results[0] = json!({"success": true, "day": 1, "close": 10.6}).to_string();
    let found = compared(&bare, &other, true);
    assert_eq!((found.causes.len(), found.identical, found.scopes[0].states), (0, false, 1), "{found:#?}");
    assert!(found.notes.iter().any(|note| note.contains("holds no requests")), "{:?}", found.notes);
    // An answer that differs to a request that does not is known all the same.
    let other = Play { last: ["Good night.", "Good day."], ..bare.clone() };
    assert_eq!(compared(&bare, &other, true).causes[0].kind, Kind::Model);
}

#[test]
fn what_an_advisor_said_is_the_cause_and_what_was_told_of_it_is_not() {
    let advised = Play { advice: Some("Wait."), ..play() };
    let other = Play { advice: Some("Sell."), ..play() };
    for told in [true, false] {
        let found = compared(&advised, &other, told);
        assert_eq!(found.causes.len(), 1, "{found:#?}");
        let cause = &found.causes[0];
        assert_eq!((cause.kind, cause.place.scope.as_deref()), (Kind::Model, Some("main__advisor_skeptic")));
        assert_eq!(found.scopes.iter().map(|scope| scope.states).sum::<usize>(), 1);
    }
}

#[test]
fn a_record_that_differs_beside_equal_requests_is_found() {
    let other = Play { fill: json!({"number": 1, "stock_code": "A", "side": "buy", "quantity": 100, "price": 10.6}), ..play() };
    let found = compared(&play(), &other, true);
    let fields: Vec<_> = found.causes.iter().map(|cause| (cause.kind, cause.place.field.as_str(), cause.place.day)).collect();
    assert_eq!(fields, [(Kind::Fault, "fill.event.price", Some(1))]);
    let effect = found.effect.unwrap();
    assert_eq!((effect.parted_on, effect.days[0].a.as_ref().unwrap().fills[0].as_str()), (Some(1), "buy A 100 10.5"));
}

#[test]
fn nothing_is_shown_that_the_redactor_takes_out() {
    let secret = "hunter2-hunter2";
    let other = Play { instructions: "You trade with hunter2-hunter2 and care.", ..play() };
    let redactor = Redactor::new().with_secrets([secret]);
    let found = compare(record(&play()).run(true), record(&other).run(true), &redactor, 20).unwrap();
    let told = serde_json::to_string(&found).unwrap();
    assert!(told.contains("[redacted]") && !told.contains("hunter2"), "{told}");
    // A difference in the secret alone is there, without a value.
    let third = Play { instructions: "You trade with [redacted] and care.", ..play() };
    let found = compare(record(&third).run(true), record(&other).run(true), &redactor, 20).unwrap();
    assert!(!found.identical, "{found:#?}");
}

#[test]
fn every_cause_is_found_up_to_the_limit_and_counted_beyond_it() {
    let mut other = play();
    other.meta.extra["manifest"]["card"] = (0..30).map(|n| (format!("field_{n:02}"), json!(n))).collect::<Map<_, _>>().into();
    let (a, b) = (record(&play()), record(&other));
    let at = |limit: usize| compare(a.run(true), b.run(true), &Redactor::new(), limit).unwrap();
    let whole = at(100);
    assert_eq!((whole.causes.len(), whole.more_causes), (31, 0));
    assert_eq!((at(4).causes.len(), at(4).more_causes), (4, 27));
    assert_eq!(at(4).causes, whole.causes[..4]);
}
