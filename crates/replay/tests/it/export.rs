//! Rows of recorded runs: what was sent and answered, where in the run, and what came of it.

use crate::cassette::{folder, meta};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use traderharness_replay::export::{self, ExportError, Per, Recorded, RlRow, SftRow};
use traderharness_replay::redact::Redactor;
use traderharness_replay::trajectory::{Entry, RunStart};
use traderharness_replay::{Cassette, Message, Meta, Record, Recorder, Request, Response, TokenRecord, ToolCall};

/// Plays a run into a recording and a trajectory.
struct Play {
    recorder: Recorder,
    entries: Vec<Entry>,
    talks: BTreeMap<String, Vec<Message>>,
    path: std::path::PathBuf,
    _folder: tempfile::TempDir,
    step: usize,
}

impl Play {
    fn new(meta: Meta) -> Self {
        let (folder, path) = folder();
        let recorder = Recorder::create(&path, meta).unwrap();
        let mut play = Self { recorder, entries: vec![], talks: BTreeMap::new(), path, _folder: folder, step: 0 };
        play.note(Record::RunStart(RunStart::default()));
        play
    }

    fn note(&mut self, record: Record) -> &mut Self {
        let seq = self.entries.len() as u64;
        self.entries.push(Entry { seq, record });
        self
    }

    fn day(&mut self, day_index: u32, worth: f64) -> &mut Self {
        self.talks.clear();
        self.note(Record::DayStart { day_index, day: "D+0".into(), account: json!({ "total_value": worth }) })
    }

    fn point(&mut self, point: &str, equity: Option<f64>) -> &mut Self {
        self.note(Record::DecisionPoint { point: point.into(), time: "09:50".into(), equity })
    }

    fn day_end(&mut self, worth: f64) -> &mut Self {
        self.note(Record::DayEnd { day: "D+0".into(), account: json!({ "total_value": worth }) })
    }

    fn run_end(&mut self, status: &str) -> &mut Self {
        self.note(Record::RunEnd { status: status.into(), totals: Value::Null })
    }

    fn request(&mut self, scope: &str, told: &str) -> Request {
        let mut request = Request::new("scripted", "v5");
        request.system = Some("You trade.".into());
        request.tools = vec![json!({"type": "function", "function": {"name": "get_price", "parameters": {"type": "object"}}})];
        let talk = self.talks.entry(scope.to_owned()).or_default();
        talk.push(Message::user(told));
        request.messages = talk.clone();
        // Only for this request.
        request.messages.push(Message::user("Answer with calls."));
        self.entries.push(Entry {
            seq: self.entries.len() as u64,
            record: Record::ModelRequest {
                scope: scope.into(),
                step: self.step,
                request_sha256: request.fingerprint(),
                messages: request.messages.len(),
            },
        });
        request
    }

    fn ask(&mut self, scope: &str, told: &str, response: Response) -> &mut Self {
        let request = self.request(scope, told);
        self.recorder.record(scope, &request, &response).unwrap();
        self.talks.entry(scope.to_owned()).or_default().push(response.message.clone());
        let step = self.step;
        self.step += 1;
        self.note(Record::ModelResponse { scope: scope.into(), step, response })
    }

    fn fail(&mut self, scope: &str) -> &mut Self {
        let request = self.request(scope, "again");
        self.recorder.record_failure(scope, &request, "timeout").unwrap();
        let step = self.step;
        self.step += 1;
        self.note(Record::ModelFailure { scope: scope.into(), step, error: "timeout".into() })
    }

    fn refused(&mut self, scope: Option<&str>, call_id: &str) -> &mut Self {
        self.note(Record::ToolResult {
            scope: scope.map(str::to_owned),
            call_id: call_id.into(),
            tool: "get_price".into(),
            success: false,
            error_code: Some("unknown_symbol".into()),
            result: json!({"success": false}),
            shown: None,
        })
    }

    /// Recording and trajectory.
    fn done(self) -> (Cassette, Vec<Entry>) {
        let Self { recorder, entries, path, _folder, .. } = self;
        recorder.finish().unwrap();
        (Cassette::load(path).unwrap(), entries)
    }
}

fn says(text: &str) -> Response {
    Response::new(Message::assistant(text, &[]))
}

fn calls(id: &str) -> Response {
    Response::new(Message::assistant("", &[ToolCall::new(id, "get_price", "{}")]))
}

fn checked(schema: &Value, row: impl serde::Serialize) -> Value {
    let row = serde_json::to_value(row).unwrap();
    let faults: Vec<String> = jsonschema::validator_for(schema).unwrap().iter_errors(&row).map(|e| e.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?} in {row:#}");
    row
}

fn rl(cassette: &Cassette, entries: &[Entry]) -> Vec<RlRow> {
    let mut rows = vec![];
    export::rl::<ExportError>(&Recorded::new("run-1", cassette, entries), |row| {
        checked(&export::rl_schema(), &row);
        rows.push(row);
        Ok(())
    })
    .unwrap();
    rows
}

fn sft(cassette: &Cassette, entries: &[Entry], per: Per) -> Result<Vec<SftRow>, ExportError> {
    let mut rows = vec![];
    export::sft::<ExportError>(&Recorded::new("run-1", cassette, entries), per, |row| {
        checked(&export::sft_schema(), &row);
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

/// Two days with an advisor, a failed call and a failed tool.
fn two_days() -> (Cassette, Vec<Entry>) {
    let mut play = Play::new(meta());
    play.day(1, 100.0).point("pre_market", Some(100.0));
    play.ask("advisor_bear", "what now", calls("a1")).refused(Some("advisor_bear"), "a1");
    play.ask("main", "day one", calls("c1")).refused(None, "c1").ask("main", "result", says("I wait."));
    play.point("open_1", Some(110.0)).fail("main").ask("main", "again", says("Bought."));
    play.point("open_2", Some(121.0)).day_end(132.0);
    play.day(2, 132.0).point("pre_market", Some(132.0)).ask("main", "day two", says("Done.")).day_end(66.0);
    play.run_end("completed");
    play.done()
}

#[test]
fn steps_have_their_place_reward_and_end() {
    let (cassette, entries) = two_days();
    let rows = rl(&cassette, &entries);
    let seen: Vec<_> = rows
        .iter()
        .map(|r| {
            let reward = r.reward.map(|reward| reward.round());
            (r.scope.as_str(), r.step, r.day_index, r.point.as_deref(), reward, r.return_pct, r.done)
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("advisor_bear", 0, Some(1), Some("pre_market"), None, Some(-34.0), true),
            ("main", 0, Some(1), Some("pre_market"), Some(0.0), None, false),
            ("main", 1, Some(1), Some("pre_market"), Some(10.0), None, false),
            ("main", 2, Some(1), Some("open_1"), Some(0.0), None, false),
            // Up to the next point at which the agent was asked, on the next day.
            ("main", 3, Some(1), Some("open_1"), Some(20.0), None, false),
            ("main", 4, Some(2), Some("pre_market"), Some(-50.0), Some(-34.0), true),
        ]
    );
    let product: f64 = rows.iter().filter_map(|r| r.reward).map(|r| 1.0 + r / 100.0).product();
    assert!((product - 0.66).abs() < 1e-12, "{product}");
    // The advisor and the agent fail apart, and a call that got no answer says why.
    assert_eq!(rows[0].tool_errors.len(), 1);
    assert_eq!((rows[1].call_ids.as_slice(), rows[1].tool_errors[0].call_id.as_str()), (&["c1".to_owned()][..], "c1"));
    assert_eq!(rows[1].tool_errors[0].error_code.as_deref(), Some("unknown_symbol"));
    assert_eq!((rows[3].error.as_deref(), rows[3].action.is_none()), (Some("timeout"), true));
    assert!(rows.iter().all(|r| !r.truncated));
}

/// The requests of a scope can be put together again from its observations.
#[test]
fn observations_add_up_to_the_requests() {
    let (cassette, entries) = two_days();
    let mut talks: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for row in rl(&cassette, &entries) {
        let talk = talks.entry(row.scope.clone()).or_default();
        let skip = usize::from(row.step == 0);
        assert_eq!(skip == 1, row.observation.messages_added[0]["role"] == "system");
        talk.truncate(row.observation.messages_kept);
        talk.extend(row.observation.messages_added.iter().skip(skip).cloned());
        let request = cassette.request(row.call).unwrap().unwrap();
        let messages: Vec<Value> = request.messages.iter().map(|message| message.0.clone()).collect();
        assert_eq!(*talk, messages);
        assert_eq!(row.observation.request_sha256, request.fingerprint().to_string());
    }
}

#[test]
fn a_turn_is_the_whole_request_and_its_answer() {
    let (cassette, entries) = two_days();
    let rows = sft(&cassette, &entries, Per::Turn).unwrap();
    // The call that failed has no answer to learn.
    assert_eq!(rows.len(), 5);
    let row = &rows[2];
    let contents: Vec<&str> = row.messages.iter().map(|m| m["content"].as_str().unwrap_or("-")).collect();
    assert_eq!(contents, ["You trade.", "day one", "-", "result", "Answer with calls.", "I wait."]);
    assert_eq!((row.tools.len(), row.metadata.scope.as_str(), row.metadata.step), (1, "main", 2));
    assert_eq!(
        (row.metadata.day_index, row.metadata.point.as_deref(), row.metadata.day_return_pct.map(f64::round)),
        (Some(1), Some("pre_market"), Some(32.0))
    );
    let facts = &row.metadata.facts;
    assert_eq!((facts.is_masked(), facts.mask_style.as_deref(), facts.model.as_str()), (true, Some("opaque"), "scripted"));
    assert_eq!((facts.dataset.as_str(), facts.synthetic, facts.contract_version.as_str()), ("real-pack", false, "v5"));
}

#[test]
fn a_day_is_one_conversation_until_it_is_rewritten() {
    let (cassette, entries) = two_days();
    let days = |cassette, entries: &[Entry]| -> Vec<(String, Option<u32>, u32, usize)> {
        let rows = sft(cassette, entries, Per::Day).unwrap();
        rows.into_iter().map(|r| (r.metadata.scope, r.metadata.day_index, r.metadata.part, r.metadata.step)).collect()
    };
    assert_eq!(
        days(&cassette, &entries),
        [("main".into(), Some(1), 0, 4), ("advisor_bear".into(), Some(1), 0, 0), ("main".into(), Some(2), 0, 5)]
    );
    let mut play = Play::new(meta());
    play.day(1, 1.0).ask("main", "a", says("1")).ask("main", "b", says("2"));
    // Earlier answers are replaced by a summary.
    play.talks.insert("main".into(), vec![Message::user("summary of a and b")]);
    play.ask("main", "c", says("3")).ask("main", "d", says("4"));
    let (cassette, entries) = play.done();
    assert_eq!(days(&cassette, &entries), [("main".into(), Some(1), 0, 1), ("main".into(), Some(1), 1, 3)]);
    assert!(matches!(sft(&cassette, &[], Per::Day), Err(ExportError::NoTimeline)));
}

#[test]
fn what_nobody_knows_is_null() {
    let (cassette, _) = two_days();
    let rows = rl(&cassette, &[]);
    assert!(rows.iter().all(|r| r.reward.is_none() && r.return_pct.is_none() && r.day.is_none() && r.point.is_none()));
    // The recording is whole, so its last rows are ends.
    assert_eq!(rows.iter().filter(|r| r.done).count(), 2);

    let mut play = Play::new(Meta { mask: None, ..meta() });
    play.day(1, 100.0).point("pre_market", Some(100.0)).ask("main", "a", says("1")).point("open_1", Some(105.0));
    play.ask("main", "b", says("2")).ask("main", "c", says("3"));
    let (cassette, entries) = play.done();
    let rows = rl(&cassette, &entries);
    let rewards: Vec<Option<f64>> = rows.iter().map(|r| r.reward.map(f64::round)).collect();
    assert_eq!(rewards, [Some(5.0), None, None]);
    assert_eq!((rows[2].done, rows[2].truncated, rows[2].return_pct), (false, true, None));
    assert!(!rows[0].facts.is_masked());

    // Trajectories of earlier programs know the worth of days only.
    let mut play = Play::new(meta());
    play.day(1, 100.0).point("pre_market", None).ask("main", "a", says("1")).point("open_1", None);
    play.ask("main", "b", says("2")).day_end(90.0).run_end("completed");
    let (cassette, entries) = play.done();
    let rewards: Vec<Option<f64>> = rl(&cassette, &entries).iter().map(|r| r.reward.map(f64::round)).collect();
    assert_eq!(rewards, [Some(0.0), Some(-10.0)]);
}

#[test]
fn tokens_come_as_the_client_recorded_them() {
    let tokens = TokenRecord {
        prompt_ids: Some(vec![1, 2]),
        ids: Some(vec![3]),
        logprobs: Some(vec![json!({"token": "wait", "logprob": -0.25})]),
    };
    let mut play = Play::new(meta());
    play.day(1, 1.0).ask("main", "a", Response { tokens: Some(tokens), ..says("wait") });
    play.ask("main", "key sk-aaaaaaaaaaaaaaaaaaaaaaaa", says("x"));
    let (cassette, entries) = play.done();
    let rows = rl(&cassette, &entries);
    assert_eq!((rows[0].token_ids.as_deref(), rows[0].prompt_token_ids.as_deref()), (Some(&[3][..]), Some(&[1, 2][..])));
    let redactor = Redactor::new().with_secrets(["wait-for-it"]);
    let (row, changed) = export::redacted(checked(&export::rl_schema(), &rows[0]), &redactor);
    assert_eq!((changed, &row["logprobs"][0]["token"], &row["redacted"]), (false, &json!("wait"), &json!(false)));
    let (row, changed) = export::redacted(serde_json::to_value(&rows[1]).unwrap(), &redactor);
    checked(&export::rl_schema(), &row);
    assert!(changed && row["redacted"] == true && !row.to_string().contains("sk-aaaa"), "{row:#}");
    let with_tokens = RlRow { token_ids: Some(vec![7]), ..rows[1].clone() };
    let (row, _) = export::redacted(serde_json::to_value(with_tokens).unwrap(), &redactor);
    assert_eq!(row["token_ids"], Value::Null);
    let turn = sft(&cassette, &entries, Per::Turn).unwrap().pop().unwrap();
    let (row, changed) = export::redacted(serde_json::to_value(turn).unwrap(), &redactor);
    assert!(changed && row["metadata"]["redacted"] == true && row.get("redacted").is_none());
}

#[test]
fn a_recording_without_requests_says_so() {
    let (_folder, path) = folder();
    let mut recorder = Recorder::create(&path, meta()).unwrap().without_requests();
    recorder.record("main", &Request::new("m", "v5"), &says("x")).unwrap();
    recorder.finish().unwrap();
    let cassette = Cassette::load(path).unwrap();
    assert!(matches!(sft(&cassette, &[], Per::Turn), Err(ExportError::NoRequest { step: 0 })));
}

proptest! {
    /// Whatever a run went through, its rewards multiply to its return, and every row of one scope but the last goes on.
    #[test]
    fn rewards_multiply_to_the_return(
        days in prop::collection::vec(prop::collection::vec((0_usize..4, 50.0_f64..200.0, any::<bool>()), 1..6), 1..4),
        known in any::<bool>(),
    ) {
        let mut play = Play::new(meta());
        let (mut asked, mut last) = (0, 100.0);
        for (index, points) in days.iter().enumerate() {
            play.day(index as u32 + 1, last);
            for (turns, worth, advised) in points {
                play.point("open_1", known.then_some(*worth));
                if *advised {
                    play.ask("advisor_bull", "x", says("y"));
                }
                for _ in 0..*turns {
                    play.ask("main", "x", says("y"));
                    asked += 1;
                }
                last = *worth;
            }
            play.day_end(last);
        }
        play.run_end("completed");
        let (cassette, entries) = play.done();
        let rows = rl(&cassette, &entries);
        let product: f64 = rows.iter().filter_map(|r| r.reward).map(|r| 1.0 + r / 100.0).product();
        if asked > 0 {
            prop_assert!((product * 100.0 - last).abs() < 1e-6, "{} {}", product, last);
        }
        let ends = rows.iter().filter(|r| r.done).count();
        let scopes: std::collections::BTreeSet<&str> = rows.iter().map(|r| r.scope.as_str()).collect();
        prop_assert_eq!(ends, scopes.len());
    }
}
