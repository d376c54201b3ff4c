//! How long is waited between attempts, and who is told.

use crate::ask::{endpoint, request, turn, whole};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use traderharness_connect::testing::{Reply, Server};
use traderharness_connect::{ChatCompletions, OpenAiClient, Progress, RetryPolicy};
use traderharness_harness::client_fault::ClientFault;
use traderharness_harness::model::{ModelClient, ModelError};
use traderharness_replay::Response;

/// What is told while a server with these replies is asked.
async fn told(replies: Vec<Reply>, retry: RetryPolicy) -> (Result<Response, ModelError>, Vec<String>) {
    let server = Server::replies(replies).unwrap();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let watcher = move |progress: &Progress<'_>| {
        kept.lock().unwrap().push(match progress {
            Progress::Asking { attempt } => format!("asking {attempt}"),
            Progress::Receiving { .. } => "receiving".to_owned(),
            Progress::Waiting { attempt, of, pause, why } => format!("waiting {attempt}/{of} {} ms: {why}", pause.as_millis()),
            other => format!("{other:?}"),
        });
    };
    let client = OpenAiClient::new(ChatCompletions::default(), endpoint(&server), retry).unwrap();
    let mut client = client.watched(Arc::new(watcher));
    let answer = client.complete(&request(), turn()).await;
    let mut lines = lines.lock().unwrap().clone();
    lines.dedup();
    (answer, lines)
}

fn good() -> Reply {
    Reply::json(&whole(&json!({"role": "assistant", "content": "a"}), "stop"))
}

#[tokio::test]
async fn a_person_sees_every_attempt_and_pause() {
    let retry = RetryPolicy { first_pause: Duration::from_millis(4), ..RetryPolicy::default() };
    let limited = Reply::status(429, &[("Retry-After-Ms", "9")], json!({"error": {"message": "slow down"}}).to_string());
    let (answer, lines) = told(vec![limited, good()], retry).await;
    assert!(answer.is_ok());
    assert_eq!(lines, ["asking 1", "waiting 1/5 9 ms: the model server answered 429: slow down", "asking 2", "receiving"]);
}

#[tokio::test]
async fn a_pause_longer_than_the_run_waits_is_not_begun() {
    let limited =
        |value: &'static str| Reply::status(429, &[("Retry-After", value), ("Date", "Wed, 21 Oct 2015 07:28:00 GMT")], "");
    for value in ["3600", "Wed, 21 Oct 2015 08:28:00 GMT"] {
        let (answer, lines) = told(vec![limited(value)], RetryPolicy::default()).await;
        assert_eq!(lines, ["asking 1"]);
        let Err(ModelError::Client(fault)) = answer else { panic!("{answer:?}") };
        assert_eq!((fault.kind(), matches!(fault, ClientFault::GaveUp { attempts: 1, .. })), ("gave_up_after_retries", true));
    }
}

#[tokio::test]
async fn one_request_waits_the_same_every_time() {
    let retry = RetryPolicy { first_pause: Duration::from_millis(3), ..RetryPolicy::default() };
    let replies = || vec![Reply::status(503, &[], "busy"), Reply::status(500, &[], "busy"), good()];
    let (first, second) = (told(replies(), retry.clone()).await.1, told(replies(), retry).await.1);
    assert_eq!(first, second);
    assert_eq!(first.len(), 6, "{first:?}");
}
