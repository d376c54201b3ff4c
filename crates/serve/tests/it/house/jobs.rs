//! Jobs: calls that outlast the patience of their caller (complaint RG-3).

use super::fixture::{Hosted, caller, server, session, store};
use super::gated::{self, Gate};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use traderharness_contract::FailureClass;
use traderharness_serve::config::{BudgetConfig, Costs, JobLimits};
use traderharness_serve::{House, HouseConfig, Invocation, Refusal, Reply, ReplyKind, Watch};

/// A house whose code waits at a gate; one worker, room for one job that waits.
fn gated(keep: Option<&Path>) -> (Hosted, Gate, tempfile::TempDir) {
    gated_as(|config| config.keep = keep.map(Path::to_owned))
}

fn gated_as(change: impl FnOnce(&mut HouseConfig)) -> (Hosted, Gate, tempfile::TempDir) {
    let files = tempfile::tempdir().unwrap();
    let (opens, gate) = gated::gated(files.path());
    let store = store();
    let mut server = server(&store, false, vec![caller("alice"), caller("bob")]);
    server.jobs = JobLimits { workers: 1, waiting: 1, patience_ms: 0 };
    let mut config = HouseConfig::new(server, BTreeMap::from([("small".to_owned(), store)]));
    config.sandbox = Some(opens);
    change(&mut config);
    (Hosted::over(House::open(config).unwrap(), "alice"), gate, files)
}

fn code(hosted: &Hosted, text: &str, key: &str, watch: &Watch) -> Result<Reply, Refusal> {
    hosted.house.invoke(&hosted.caller, &hosted.invocation("execute_code", json!({ "code": text })), key, watch)
}

fn id(reply: &Reply) -> &str {
    reply.body["job_id"].as_str().unwrap()
}

/// Asks until the job is done; the deadline is far beyond any machine.
fn done(hosted: &Hosted, id: &str) -> Value {
    let start = std::time::Instant::now();
    loop {
        let body = hosted.house.job(&hosted.caller, id).unwrap().body;
        if !["accepted", "running"].contains(&body["state"].as_str().unwrap()) {
            return body;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{body}");
        std::thread::yield_now();
    }
}

#[test]
fn slow_code_is_accepted_and_its_result_can_be_asked_for() {
    let (hosted, gate, _files) = gated(None);
    let accepted = code(&hosted, "result = 1", "k1", &Watch::default()).unwrap();
    assert_eq!(accepted.kind, ReplyKind::Accepted);
    assert_eq!(accepted.body["state"], "accepted");
    assert_eq!(accepted.body["status_url"], format!("/v1/jobs/{}", id(&accepted)));
    gate.started.recv().unwrap();
    assert_eq!(hosted.house.job(&hosted.caller, id(&accepted)).unwrap().body["state"], "running");
    let again = code(&hosted, "result = 1", "k1", &Watch::default()).unwrap();
    assert!(again.replayed && again.kind == ReplyKind::Accepted && again.body == accepted.body);
    gate.go.send(()).unwrap();
    let body = done(&hosted, id(&accepted));
    assert_eq!(body["state"], "succeeded", "{body}");
    assert_eq!(body["result"]["data"]["result"], 10);
    assert_eq!(body["result"]["schema_version"], "1.0");
    // What was acknowledged under the key stays what it was.
    assert_eq!(code(&hosted, "result = 1", "k1", &Watch::default()).unwrap().body, accepted.body);
}

#[test]
fn code_that_is_ready_in_time_is_answered_as_any_other_call() {
    let (hosted, gate, _files) = gated(None);
    gate.go.send(()).unwrap();
    let patient = Watch { patience: Some(Duration::from_secs(60)), ..Watch::default() };
    let reply = code(&hosted, "result = 12", "k1", &patient).unwrap();
    assert_eq!((reply.kind, &reply.body["data"]["result"]), (ReplyKind::Complete, &json!(11)));
    let again = code(&hosted, "result = 12", "k1", &Watch::default()).unwrap();
    assert!(again.replayed);
    assert_eq!(again.body, reply.body);
    let unknown = hosted.house.job(&hosted.caller, "job_nobody").unwrap_err();
    assert_eq!((unknown.status, unknown.class), (404, FailureClass::InvalidInput));
}

// spec/seeds.md C3.4
#[test]
fn a_job_is_asked_for_by_a_job_id_of_its_own_caller() {
    let (hosted, gate, _files) = gated(None);
    let invocation = hosted.call("get_portfolio", json!({}), "p").unwrap().body["invocation_id"].as_str().unwrap().to_owned();
    for wrong in [invocation.as_str(), "prop_1", "", "job_", "../jobs", "job_a b"] {
        let refused = hosted.house.job(&hosted.caller, wrong).unwrap_err();
        assert_eq!((refused.class, refused.status), (FailureClass::InvalidInput, 422), "{wrong}");
    }
    let accepted = code(&hosted, "x", "k1", &Watch::default()).unwrap();
    let bob = hosted.house.local_caller("bob").unwrap();
    let theirs = hosted.house.job(&bob, id(&accepted)).unwrap_err();
    assert_eq!(theirs, hosted.house.job(&bob, "job_nobody").unwrap_err());
    assert_eq!(hosted.house.cancel_job(&bob, id(&accepted)).unwrap_err(), theirs);
    gate.go.send(()).unwrap();
    done(&hosted, id(&accepted));
}

#[test]
fn the_pool_is_bounded_and_a_job_that_waits_can_be_cancelled() {
    let (hosted, gate, _files) = gated(None);
    let running = code(&hosted, "a", "k1", &Watch::default()).unwrap();
    gate.started.recv().unwrap();
    let waiting = code(&hosted, "b", "k2", &Watch::default()).unwrap();
    let refused = code(&hosted, "c", "k3", &Watch::default()).unwrap_err();
    assert_eq!(
        (refused.class, refused.code.as_str(), refused.retry_after),
        (FailureClass::BudgetExhausted, "too_many_jobs", Some(5))
    );
    let metrics = hosted.house.metrics();
    assert_eq!((metrics.jobs_running, metrics.jobs_waiting), (1, 1));
    let cancelled = hosted.house.cancel_job(&hosted.caller, id(&waiting)).unwrap().body;
    assert_eq!(
        (cancelled["state"].as_str(), cancelled["error"]["details"]["code"].as_str()),
        (Some("cancelled"), Some("cancelled"))
    );
    gate.go.send(()).unwrap();
    assert_eq!(done(&hosted, id(&running))["state"], "succeeded");
    // The key of what never ran is free again, and so is the refused one.
    gate.go.send(()).unwrap();
    let again = code(&hosted, "b", "k2", &Watch::default()).unwrap();
    assert!(!again.replayed);
    assert_eq!(done(&hosted, id(&again))["state"], "succeeded");
}

// spec/seeds.md C7: a job has its units set aside while it waits; cancelled, it gives them back
#[test]
fn a_job_that_is_cancelled_gives_its_units_back() {
    let (hosted, gate, _files) = gated_as(|config| {
        let costs = Costs { compute: 6, read: 4, ..Costs::default() };
        config.server.callers[0].budget = Some(BudgetConfig { units: 12, refill_per_minute: 0, costs });
    });
    let running = code(&hosted, "a", "k1", &Watch::default()).unwrap();
    gate.started.recv().unwrap();
    let waiting = code(&hosted, "b", "k2", &Watch::default()).unwrap();
    let other = session(&hosted.house, &hosted.caller, "other");
    let read = |key: &str| {
        let invocation = Invocation { session_id: Some(other.clone()), ..hosted.invocation("get_portfolio", json!({})) };
        hosted.house.invoke(&hosted.caller, &invocation, key, &Watch::default())
    };
    let refused = read("r1").unwrap_err();
    assert_eq!((refused.class, &refused.details["available"]), (FailureClass::BudgetExhausted, &json!(0)));
    hosted.house.cancel_job(&hosted.caller, id(&waiting)).unwrap();
    assert!(!read("r1").unwrap().replayed);
    gate.go.send(()).unwrap();
    assert_eq!(done(&hosted, id(&running))["state"], "succeeded");
    assert_eq!(hosted.house.metrics().units, 10);
}

// complaint RG-3: who finds a session busy is told so and holds no place; nothing was done, and the key is free.
#[test]
fn a_session_that_stays_busy_says_so_and_nothing_was_done() {
    let (hosted, gate, _files) = gated_as(|config| {
        config.session_wait = Duration::ZERO;
        config.server.jobs.workers = 2;
    });
    let (house, caller) = (&hosted.house, &hosted.caller);
    let job = code(&hosted, "a", "code", &Watch::default()).unwrap();
    gate.started.recv().unwrap();
    // A job waits for its turn as long as it takes.
    let mut later = hosted.invocation("get_portfolio", json!({}));
    later.job = true;
    let later = house.invoke(caller, &later, "later", &Watch::default()).unwrap();
    let records = house.records(caller, &hosted.session, 0, 100).unwrap();
    let calls = || {
        [
            hosted.call("get_portfolio", json!({}), "call").map(|_| ()),
            hosted.call("get_stock_price", json!({"stock_code": 7}), "unfit").map(|_| ()),
            house.step(caller, &hosted.session, "step").map(|_| ()),
            house.close_session(caller, &hosted.session, "close").map(|_| ()),
            house.brief(caller, &hosted.session).map(|_| ()),
        ]
    };
    for refused in calls().into_iter().chain(calls()) {
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.class, refused.status, refused.code.as_str(), refused.retryable, refused.retry_after),
            (FailureClass::DependencyUnavailable, 503, "session_busy", true, Some(5))
        );
    }
    assert_eq!(house.records(caller, &hosted.session, 0, 100).unwrap(), records);
    // What never waits for a call, and another session, are answered all the same.
    assert_eq!(house.session(caller, &hosted.session).unwrap().state, "open");
    house.step(caller, &session(house, caller, "other"), "step-other").unwrap();
    gate.go.send(()).unwrap();
    assert_eq!(done(&hosted, id(&job))["state"], "succeeded");
    assert_eq!(done(&hosted, id(&later))["state"], "succeeded");
    let patiently = |ask: &dyn Fn() -> Result<Reply, Refusal>| loop {
        match ask() {
            Err(refused) if refused.code == "session_busy" => std::thread::yield_now(),
            answered => break answered.unwrap(),
        }
    };
    assert!(!patiently(&|| hosted.call("get_portfolio", json!({}), "call")).replayed);
    let stepped = patiently(&|| house.step(caller, &hosted.session, "step"));
    assert_eq!((stepped.replayed, &stepped.body["point"]), (false, &json!("open_1")));
}

#[test]
fn any_call_can_be_made_a_job() {
    let (hosted, _gate, _files) = gated(None);
    let mut invocation: Invocation = hosted.invocation("get_portfolio", json!({}));
    invocation.job = true;
    let accepted = hosted.house.invoke(&hosted.caller, &invocation, "k", &Watch::default()).unwrap();
    assert_eq!(accepted.kind, ReplyKind::Accepted);
    assert_eq!(done(&hosted, id(&accepted))["result"]["tool"], "get_portfolio");
    // The same call not as a job is another request.
    assert_eq!(hosted.call("get_portfolio", json!({}), "k").unwrap_err().status, 409);
    invocation.tool = "get_stock_price".into();
    invocation.input = json!({"stock_code": "999999"});
    let accepted = hosted.house.invoke(&hosted.caller, &invocation, "k2", &Watch::default()).unwrap();
    let failed = done(&hosted, id(&accepted));
    assert_eq!((failed["state"].as_str(), failed["error"]["error_code"].as_str()), (Some("failed"), Some("INVALID_INPUT")));
}

#[test]
fn a_job_that_a_restart_cut_off_did_nothing_and_its_key_may_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let (job, records);
    {
        let (hosted, gate, _files) = gated(Some(folder.path()));
        job = id(&code(&hosted, "result = 1", "k1", &Watch::default()).unwrap()).to_owned();
        gate.started.recv().unwrap();
        records = hosted.house.records(&hosted.caller, &hosted.session, 0, 100).unwrap().len();
        // The process ends while the code runs: its outcome is never kept.
        let snapshot = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), snapshot.path().join(file.file_name())).unwrap();
        }
        gate.go.send(()).unwrap();
        done(&hosted, &job);
        drop(hosted);
        for file in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
        for file in std::fs::read_dir(snapshot.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
    }
    let (hosted, gate, _files) = gated(Some(folder.path()));
    let session = hosted.house.sessions(&hosted.caller).unwrap()[0].session_id.clone();
    let hosted = Hosted { session, ..hosted };
    let body = hosted.house.job(&hosted.caller, &job).unwrap().body;
    assert_eq!((body["state"].as_str(), body["error"]["retryable"].as_bool()), (Some("interrupted"), Some(true)));
    assert_eq!(hosted.house.records(&hosted.caller, &hosted.session, 0, 100).unwrap().len(), records);
    gate.go.send(()).unwrap();
    let again =
        code(&hosted, "result = 1", "k1", &Watch { patience: Some(Duration::from_secs(60)), ..Watch::default() }).unwrap();
    assert!(!again.replayed);
    assert_eq!(again.body["data"]["result"], 10);
}
