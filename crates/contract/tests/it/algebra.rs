//! The result algebra: ids, invariants, checks, the schemas of both doors, and results that are made to fit (spec/seeds.md C4, C6, C10).

use proptest::prelude::*;
use serde_json::{Value, json};
use traderharness_contract::algebra::check::{self, BarFault, BarFigures, EXTERNAL_TOLERANCE, OWN_TOLERANCE};
use traderharness_contract::algebra::{
    Answer, Coverage, ErrorRecord, EvidenceRef, FitFault, IdFault, InvocationId, JobId, LabelFault, MomentLabel, ProposalId,
    ResultSchema, ResultStatus, RevisionHistory, SchemaVersion, ToolResult, Violation, data_schema, envelope_schema, fit,
};
use traderharness_contract::render::{Invocation, answer, tool_result};
use traderharness_contract::{ErrorCode, FailureClass, Outcome, ToolFailure};

fn id() -> InvocationId {
    InvocationId::new("7f3a").unwrap()
}

/// A result that holds every invariant.
fn sound() -> ToolResult {
    ToolResult {
        schema_version: SchemaVersion::V1,
        invocation_id: id(),
        tool: "market.bars".into(),
        status: ResultStatus::Complete,
        data: json!({"bars": [{"session": "D-2", "close": 10.5}, {"session": "D-1", "close": 10.6}]}),
        evidence: vec![EvidenceRef { id: "src_daily".into(), revision: "as_of D-1 15:00".into(), source_ref: "daily".into() }],
        coverage: Coverage {
            requested_start: Some("D-2".into()),
            requested_end: Some("D-1".into()),
            as_of: "D-1 15:00".into(),
            source_refs: vec!["daily".into()],
            missing_reasons: vec![],
            revision_history: RevisionHistory::NotApplicable,
        },
        warnings: vec![],
        next_cursor: None,
    }
}

const CUTOFF: &str = "D+0 10:30";

fn broken(change: impl FnOnce(&mut ToolResult)) -> Vec<String> {
    let mut result = sound();
    change(&mut result);
    check::check(&result, CUTOFF).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

// spec/seeds.md C3.4
#[test]
fn an_id_of_another_kind_is_refused_by_name() {
    assert_eq!(JobId::parse("inv_1"), Err(IdFault::OtherKind { found: "an invocation id", wanted: "a job id" }));
    let failure = JobId::parse("inv_1").unwrap_err().failure();
    assert_eq!(failure.code.class(), FailureClass::InvalidInput);
    assert_eq!(failure.message, "This is an invocation id, and a job id is wanted here.");
    assert!(ProposalId::parse("job_1").is_err() && InvocationId::parse("prop_1").is_err());
    for text in ["", "inv_", "inv", "INV_1", "inv_a b", "inv_é", "inv_a/b", &format!("inv_{}", "a".repeat(200))] {
        assert!(matches!(InvocationId::parse(text), Err(IdFault::Malformed { .. })), "{text}");
        assert!(!InvocationId::parse(text).unwrap_err().to_string().contains(text) || text.is_empty() || "inv_".contains(text));
    }
    assert_eq!(serde_json::from_value::<JobId>(json!("job_7")).unwrap().as_str(), "job_7");
    assert!(serde_json::from_value::<JobId>(json!("inv_7")).is_err());
    assert_eq!(InvocationId::new(17).unwrap().to_string(), "inv_17");
}

// spec/seeds.md C4.5
#[test]
fn each_invariant_of_a_result_is_held() {
    assert_eq!(check::check(&sound(), CUTOFF), Ok(()));
    type Case = (&'static str, fn(&mut ToolResult), &'static str);
    let cases: [Case; 12] = [
        ("partial", |r| r.status = ResultStatus::Partial, "the status is partial and missing_reasons is empty"),
        ("holes", |r| r.coverage.missing_reasons.push("x: y".into()), "the status is complete and missing_reasons is not empty"),
        ("no evidence", |r| r.evidence.clear(), "source `daily` has no evidence"),
        (
            "no source",
            |r| r.evidence[0].source_ref = "news".into(),
            "evidence `src_daily` is of a source that coverage.source_refs does not name",
        ),
        ("twice", |r| r.evidence.push(r.evidence[0].clone()), "evidence id `src_daily` is there twice"),
        (
            "cited",
            |r| r.data["bars"][0]["evidence_id"] = json!("ev-1"),
            "/bars/0/evidence_id cites an evidence id that the evidence does not list",
        ),
        ("future", |r| r.coverage.as_of = "D+0 10:31".into(), "coverage.as_of is after the moment the call was admitted"),
        ("no as_of", |r| r.coverage.as_of.clear(), "coverage.as_of: it is no day or moment"),
        (
            "mixed",
            |r| r.coverage.as_of = "2024-06-26 15:00".into(),
            "coverage.as_of: one is an absolute date and the other is relative to today",
        ),
        ("reversed", |r| r.coverage.requested_start = Some("D+0".into()), "coverage.requested_start: the start is after the end"),
        (
            "integer",
            |r| r.data["shares"] = json!(9_007_199_254_740_993_u64),
            "/shares is an integer beyond 2^53 and must be a string",
        ),
        ("number", |r| r.data["bars"][1]["close"] = json!("-Infinity"), "/bars/1/close is not a finite number"),
    ];
    for (name, change, want) in cases {
        let found = broken(change);
        assert!(found.iter().any(|f| f.starts_with(want)), "{name}: {found:?}");
    }
    // A cursor alone does not make a result partial, and big integers may travel as strings.
    assert_eq!(broken(|r| r.next_cursor = Some("c".into())), [""; 0]);
    assert_eq!(broken(|r| r.data["shares"] = json!("9007199254740993")), [""; 0]);
    assert_eq!(broken(|r| r.data["shares"] = json!(9_007_199_254_740_992_u64)), [""; 0]);
}

// spec/seeds.md C10.2
#[test]
fn times_strictly_increase_and_none_is_after_as_of() {
    let found = |times: &[&str], as_of: &str| -> Vec<String> {
        check::times("/bars", times.iter().copied(), as_of).iter().map(ToString::to_string).collect()
    };
    assert_eq!(found(&["2024-06-24", "2024-06-25"], "2024-06-25 15:00"), [""; 0]);
    assert_eq!(found(&["D-2", "D-2", "D-1"], "D-1 15:00"), ["/bars: record 1 is not after the one before it"]);
    assert_eq!(found(&["D-2 09:35", "D-2 09:40", "D-2 09:35"], "D-1"), ["/bars: record 2 is not after the one before it"]);
    assert_eq!(found(&["D-1", "D+0"], "D-1 15:00"), ["/bars/1 is after coverage.as_of"]);
    assert_eq!(found(&["yesterday"], "D-1").len(), 1);
    assert_eq!(check::range("range", "2026-01-01", "2024-01-01").len(), 1);
}

#[test]
fn labels_have_one_order_each_and_none_together() {
    let label = |text: &str| MomentLabel::parse(text);
    assert!(label("D-3").unwrap().order(label("D+0 10:30").unwrap()).unwrap().is_lt());
    assert!(label("2024-12-31 23:59").unwrap().order(label("2025-01-01 00:00").unwrap()).unwrap().is_lt());
    assert!(label("D-1").unwrap().order(label("D-1 15:00").unwrap()).unwrap().is_eq());
    assert_eq!(label("D-1").unwrap().order(label("2025-01-01").unwrap()), Err(LabelFault::Mixed));
    for text in
        ["", "D", "D1", "D-", "D-1234567", "2024-13-01", "2024-1-1", "2024-01-01 9:30", "2024-01-01 24:00", "24-01-01", "D-1 15"]
    {
        assert_eq!(label(text), Err(LabelFault::Malformed), "{text}");
    }
}

// spec/seeds.md C10.3
#[test]
fn probabilities_and_distributions() {
    assert_eq!(check::distribution("/p", &[0.2, 0.3, 0.4], OWN_TOLERANCE).len(), 1);
    assert_eq!(check::distribution("/p", &[1.0 / 3.0; 3], OWN_TOLERANCE), []);
    assert_eq!(check::distribution("/p", &[0.5, 0.500_001], OWN_TOLERANCE).len(), 1);
    assert_eq!(check::distribution("/p", &[0.5, 0.500_001], EXTERNAL_TOLERANCE), []);
    assert_eq!(check::distribution("/p", &[1.2, -0.2], OWN_TOLERANCE).len(), 2);
    assert_eq!(check::distribution("/p", &[], OWN_TOLERANCE).len(), 1, "nothing sums to 0");
    for value in [f64::NAN, f64::INFINITY, -1e-12, 1.000_001] {
        assert_eq!(check::probability("/p", value).len(), 1, "{value}");
    }
}

// spec/seeds.md C10.4
#[test]
fn amounts_are_in_the_currency_of_the_instrument_or_the_report() {
    assert_eq!(check::currency("/notional", "USD", "CNY", "CNY").len(), 1);
    assert_eq!(check::currency("/notional", "USD", "CNY", "USD"), []);
}

// spec/seeds.md C10.5
#[test]
fn bars_whose_figures_contradict_each_other_are_found() {
    let bar = |open: f64, high: f64, low: f64, close: f64, volume: f64| BarFigures {
        open: Some(open),
        high: Some(high),
        low: Some(low),
        close: Some(close),
        volume: Some(volume),
        amount: None,
    };
    for (figures, want) in [
        (bar(10.0, 11.0, 9.0, 10.5, 0.0), Ok(())),
        (bar(11.5, 11.0, 9.0, 10.5, 1.0), Err(BarFault::Range)),
        (bar(10.0, 11.0, 9.0, 8.9, 1.0), Err(BarFault::Range)),
        (bar(10.0, 9.0, 11.0, 10.0, 1.0), Err(BarFault::Range)),
        (bar(10.0, 11.0, 9.0, 10.5, -1.0), Err(BarFault::Size)),
        (bar(0.0, 11.0, 0.0, 10.5, 1.0), Err(BarFault::Price)),
        (bar(f64::NAN, 11.0, 9.0, 10.5, 1.0), Err(BarFault::Price)),
        (BarFigures { high: Some(10.0), ..BarFigures::default() }, Ok(())),
    ] {
        assert_eq!(figures.check(), want, "{figures:?}");
    }
    let rows =
        [json!({"session": "D-2", "open": 10, "high": 9, "low": 8, "close": 8.5}), json!({"session": "D-2", "volume": null})];
    assert_eq!(check::bars("/bars", &rows, "D-1").len(), 2);
}

fn invocation<'a>(id: &'a InvocationId, received: &'a Value) -> Invocation<'a> {
    Invocation { source_refs: &["announcements", "securities"], received: Some(received), ..Invocation::new(id, "t", CUTOFF) }
}

#[test]
fn an_answer_has_its_channels_apart_and_its_coverage_whole() {
    let (id, received) = (id(), json!({"start": "D-9", "end": "D-1"}));
    let payload = json!({
        "as_of": {"day": "D+0", "time": "10:00", "decision_point": "open_2"},
        "items": [{"evidence_id": "ev-b"}, {"evidence_id": "ev-a", "volume": null}, {"evidence_id": "ev-b"}],
        "warnings": ["thin"], "next_cursor": "cxyz",
        "missing_reasons": [{"field": "items[1].volume", "reason": "suspended"}, "the feed was down on D-3"],
    });
    let Some(Answer::Result(result)) = answer(&Outcome::answered(payload), &invocation(&id, &received)) else { panic!() };
    assert_eq!(check::check(&result, CUTOFF), Ok(()));
    assert_eq!(result.status, ResultStatus::Partial);
    assert_eq!(result.data.as_object().unwrap().keys().collect::<Vec<_>>(), ["items"]);
    assert_eq!(result.coverage.as_of, "D+0 10:00");
    assert_eq!(result.coverage.missing_reasons, ["items[1].volume: suspended", "the feed was down on D-3"]);
    assert_eq!(
        (result.coverage.requested_start.as_deref(), result.coverage.requested_end.as_deref()),
        (Some("D-9"), Some("D-1"))
    );
    assert_eq!((result.warnings, result.next_cursor), (vec!["thin".to_owned()], Some("cxyz".to_owned())));
    let evidence: Vec<(&str, &str)> = result.evidence.iter().map(|e| (e.id.as_str(), e.source_ref.as_str())).collect();
    assert_eq!(
        evidence,
        [
            ("src_announcements", "announcements"),
            ("src_securities", "securities"),
            ("ev-b", "announcements"),
            ("ev-a", "announcements")
        ]
    );
}

#[test]
fn as_of_is_the_clock_where_a_payload_does_not_say_it() {
    let (id, none) = (id(), json!({}));
    for payload in
        [json!({"order": 1}), json!({"as_of": null}), json!({"as_of": ""}), json!({"as_of": {"day": "D-1"}}), json!([1])]
    {
        let answered = answer(&Outcome::answered(payload.clone()), &invocation(&id, &none)).unwrap();
        let result = answered.result().unwrap();
        assert_eq!(result.coverage.as_of, CUTOFF, "{payload}");
        assert_eq!(check::check(result, CUTOFF), Ok(()), "{payload}");
    }
}

// spec/seeds.md C6: a failure has an error record and no data
#[test]
fn a_failure_is_a_record_of_its_class() {
    let (id, received) = (id(), json!({"x": 1}));
    for code in ErrorCode::ALL {
        let outcome = Outcome::Failed(ToolFailure::new(*code, "It failed.", "Go on."));
        let answered = answer(&outcome, &invocation(&id, &received)).unwrap();
        let value = answered.to_value();
        assert_eq!(value["error_code"], code.class().as_str());
        assert_eq!(value["details"]["code"], code.as_str());
        assert!(value.get("data").is_none());
        let read: ErrorRecord = serde_json::from_value(value).unwrap();
        assert_eq!(Some(&read), answered.error());
    }
    for class in FailureClass::ALL {
        let record = ErrorRecord::new(*class, "x").with("pinned", "1.0");
        assert_eq!(serde_json::to_value(&record).unwrap()["error_code"], class.as_str());
        assert!((400..600).contains(&class.http_status()));
    }
    assert_eq!(FailureClass::ToolRevisionConflict.http_status(), 409);
}

#[test]
fn a_job_without_a_job_id_is_not_passed_on() {
    let (id, none) = (id(), json!({}));
    let job = |text: &str| Outcome::Job { job_id: text.into(), status_url: "/v1/jobs/1".into() };
    let accepted = tool_result(&job("job_1"), &invocation(&id, &none)).unwrap();
    assert_eq!(accepted, json!({"job_id": "job_1", "state": "accepted", "status_url": "/v1/jobs/1"}));
    let refused = tool_result(&job("inv_1"), &invocation(&id, &none)).unwrap();
    assert_eq!(refused["error_code"], "DEPENDENCY_UNAVAILABLE");
}

fn validator(schema: &Value) -> ResultSchema {
    ResultSchema::compile("market.bars", schema).unwrap()
}

// complaint MC-1
#[test]
fn the_envelope_and_its_data_have_schemas_that_are_not_mixed_up() {
    let output = json!({
        "type": "object",
        "properties": {"bars": {"type": "array"}, "as_of": {"type": "object"}, "next_cursor": {"type": ["string", "null"]}},
        "required": ["bars", "as_of", "next_cursor"]
    });
    let data = data_schema(&output);
    assert_eq!(data, json!({"type": "object", "properties": {"bars": {"type": "array"}}, "required": ["bars"]}));
    let envelope = envelope_schema(&data);
    let (data_says, envelope_says) = (validator(&data), validator(&envelope));
    let result = serde_json::to_value(sound()).unwrap();
    assert!(envelope_says.fits(&result) && data_says.fits(&result["data"]));
    assert!(!envelope_says.fits(&result["data"]) && !data_says.fits(&result));
    for field in ["schema_version", "invocation_id", "tool", "status", "data", "evidence", "coverage", "warnings", "next_cursor"]
    {
        let mut less = result.clone();
        less.as_object_mut().unwrap().remove(field);
        assert!(!envelope_says.fits(&less), "{field}");
    }
    for (pointer, wrong) in [
        ("/schema_version", json!("1.1")),
        ("/invocation_id", json!("job_1")),
        ("/status", json!("failed")),
        ("/coverage/as_of", json!(null)),
        ("/coverage/as_of", json!("")),
        ("/coverage/revision_history", json!("some")),
        ("/evidence/0/id", json!(1)),
        ("/data/bars", json!({})),
    ] {
        let mut changed = result.clone();
        *changed.pointer_mut(pointer).unwrap() = wrong;
        assert!(!envelope_says.fits(&changed), "{pointer}");
    }
    let mut wrong = result.clone();
    wrong["coverage"]["as_of"] = json!(null);
    wrong["evidence"][0]["id"] = json!(1);
    assert_eq!(envelope_says.faults(&wrong), ["/coverage/as_of", "/evidence/0/id"]);
    assert!(ResultSchema::compile("x", &json!({"type": "text"})).is_err());
    let mut more = result;
    more["coverage"]["note"] = json!("x");
    assert!(!envelope_says.fits(&more), "the envelope is closed");
    insta::assert_snapshot!(serde_json::to_string_pretty(&envelope_schema(&json!({"type": "object"}))).unwrap());
}

fn long(records: usize) -> ToolResult {
    let mut result = sound();
    let row =
        |i: usize| json!({"session": format!("D-{}", records - i), "evidence_id": format!("ev-{i}"), "text": "x".repeat(40)});
    result.data =
        json!({"records": (0..records).map(row).collect::<Vec<_>>(), "returned": records, "complete": true, "note": "n"});
    let item = |i| EvidenceRef { id: format!("ev-{i}"), revision: "1".into(), source_ref: "daily".into() };
    result.evidence.extend((0..records).map(item));
    result.warnings.push("A limitation.".into());
    result
}

// spec/seeds.md C4.8
#[test]
fn a_long_result_loses_records_and_nothing_else() {
    let whole = long(100);
    let fitted = fit(whole.clone(), 5_000, None, |kept| Some(format!("c{kept}"))).unwrap();
    let short = &fitted.result;
    assert!(fitted.kept > 10 && fitted.kept + fitted.dropped == 100 && fitted.characters <= 5_000);
    assert_eq!((&short.coverage, &short.warnings, short.status), (&whole.coverage, &whole.warnings, whole.status));
    assert_eq!(short.next_cursor, Some(format!("c{}", fitted.kept)));
    assert_eq!(short.data["records"].as_array().unwrap()[..], whole.data["records"].as_array().unwrap()[..fitted.kept]);
    assert_eq!(
        (&short.data["returned"], &short.data["complete"], &short.data["note"]),
        (&json!(fitted.kept), &json!(false), &json!("n"))
    );
    assert_eq!(short.evidence, whole.evidence[..=fitted.kept], "the source and the kept records");
    assert_eq!(check::check(short, CUTOFF), Ok(()));
    assert_eq!(fit(whole.clone(), 1_000_000, None, |_| None).unwrap().result, whole, "what fits is not touched");
    assert!(matches!(fit(whole.clone(), 5_000, None, |_| None), Err(FitFault::NoPages { .. })));
    assert!(matches!(fit(whole.clone(), 100, None, |_| Some(String::new())), Err(FitFault::OneTooMany { .. })));
    assert!(matches!(fit(whole, 5_000, Some("other"), |_| Some(String::new())), Err(FitFault::NoRecords { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_fitted_result_is_within_its_limit_and_still_sound(records in 1_usize..60, limit in 600_usize..8_000) {
        if let Ok(fitted) = fit(long(records), limit, Some("records"), |kept| Some(format!("c{kept}"))) {
            let text = serde_json::to_string(&fitted.result).unwrap();
            prop_assert!(fitted.characters <= limit);
            prop_assert!(fitted.kept >= 1);
            prop_assert_eq!(check::check(&fitted.result, CUTOFF), Ok(()));
            prop_assert_eq!(fitted.result.next_cursor.is_some(), fitted.dropped > 0);
            let again: ToolResult = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(again, fitted.result);
        }
    }

    // spec/seeds.md C4.5: whatever a handler answers, the rendered result holds the invariants or says which one is broken
    #[test]
    fn every_rendered_answer_is_sound(
        holes in prop::collection::vec("[a-z]{1,6}", 0..3),
        ids in prop::collection::vec("ev-[a-c]", 0..5),
        number in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), any::<f64>()],
    ) {
        let missing: Vec<Value> = holes.iter().map(|f| json!({"field": f, "reason": "source_missing"})).collect();
        let items: Vec<Value> = ids.iter().map(|id| json!({"evidence_id": id, "number": number})).collect();
        let id = id();
        let none = json!({});
        let answered = answer(&Outcome::answered(json!({"items": items, "missing_reasons": missing})), &invocation(&id, &none)).unwrap();
        let result = answered.result().unwrap();
        prop_assert_eq!(check::check(result, CUTOFF), Ok(()));
        prop_assert_eq!(result.status == ResultStatus::Partial, !holes.is_empty());
    }

    // spec/seeds.md C10.6
    #[test]
    fn integers_survive_a_reader_with_doubles_or_are_found(number: i64) {
        let mut result = sound();
        result.data = json!({"n": number});
        let found = check::check(&result, CUTOFF).err().unwrap_or_default();
        let survives = number.unsigned_abs() <= 1 << 53;
        prop_assert_eq!(found.is_empty(), survives);
        let large = matches!(found.first(), Some(Violation::LargeInteger { .. }));
        prop_assert_eq!(large, !survives);
    }

    #[test]
    fn ids_read_back(rest in "[A-Za-z0-9_-]{1,40}") {
        let id = ProposalId::new(&rest).unwrap();
        prop_assert_eq!(ProposalId::parse(id.as_str()).unwrap(), id.clone());
        prop_assert!(JobId::parse(id.as_str()).is_err());
    }
}
