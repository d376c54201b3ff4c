//! Agents as processes: the examples, and processes that break every rule.

use crate::ask::{block, request, turn};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use traderharness_connect::plugin::Launch;
use traderharness_connect::{PipeClient, PipeLimits, Progress, SetupError};
use traderharness_harness::client_fault::ClientFault;
use traderharness_harness::model::{ModelClient, ModelError};
use traderharness_replay::request::function_tool;
use traderharness_replay::{Message, Request, Response};

const SECRET: &str = "planted-agent-secret-0123456789";
const HELLO: &str = r#"echo '{"type":"hello","protocol":1,"name":"≥股"}'"#;

fn launch(argv: &[&str]) -> Launch {
    let environment = |name: &str| match name {
        "AGENT_KEY" => Some(SECRET.to_owned()),
        "LANG" => Some("C".to_owned()),
        _ => std::env::var(name).ok(),
    };
    let argv = argv.iter().map(|&text| text.to_owned()).collect();
    Launch::new(argv, &["AGENT_KEY".to_owned(), "LANG".to_owned()], None, &environment).unwrap()
}

fn short() -> PipeLimits {
    PipeLimits {
        greeting: Duration::from_secs(20),
        answer: Duration::from_secs(20),
        end: Duration::from_millis(300),
        line_bytes: 4096,
    }
}

async fn start(script: &str, limits: PipeLimits) -> Result<PipeClient, SetupError> {
    PipeClient::start(launch(&["sh", "-c", script]), limits).await
}

async fn ask(client: &mut PipeClient, request: &Request) -> Result<Response, ClientFault> {
    match client.complete(request, turn()).await {
        Ok(response) => Ok(response),
        Err(ModelError::Client(fault)) => Err(fault),
        Err(other) => panic!("{other}"),
    }
}

/// A shell that greets and then runs `script` fails the first request with this kind and text.
fn check_failure(script: &str, limits: PipeLimits, kind: &str, text: &str) {
    block(async {
        let mut client = start(&format!("read -r hello; {HELLO}; {script}"), limits).await.unwrap();
        let fault = ask(&mut client, &request()).await.unwrap_err();
        assert_eq!((fault.kind(), fault.to_string().as_str()), (kind, text), "{script}");
        // Nothing is asked of a process that broke the protocol.
        assert_eq!(ask(&mut client, &request()).await.unwrap_err(), fault);
    });
}

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents").join(name);
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

fn with_tools(names: &[&str]) -> Request {
    let mut request = request();
    request.tools = names.iter().map(|name| function_tool(name, "", &json!({"type": "object"}))).collect();
    request
}

#[test]
fn the_python_example_plays() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3 to run the example");
        return;
    }
    block(async {
        let mut client = PipeClient::start(launch(&["python3", &example("cautious.py")]), short()).await.unwrap();
        assert_eq!(client.name(), "cautious");
        let mut request = with_tools(&["get_portfolio", "complete_phase"]);
        let first = ask(&mut client, &request).await.unwrap();
        assert_eq!(first.message.content(), Some("First I look at the account."));
        assert_eq!(first.message.tool_calls()[0].name, "get_portfolio");
        assert_eq!((first.finish_reason.as_str(), first.message.tool_calls()[0].id.as_str()), ("tool_calls", "pre_market-4-1"));
        request.messages.push(first.message);
        request.messages.push(Message::tool("pre_market-4-1", "{\"cash\": 1}"));
        let second = ask(&mut client, &request).await.unwrap();
        assert_eq!(second.message.tool_calls()[0].arguments, r#"{"decision":"monitor","summary":"Nothing to do."}"#);
        client.end().await;
    });
}

#[test]
fn the_shell_example_plays() {
    block(async {
        let mut client = PipeClient::start(launch(&["sh", &example("silent.sh")]), short()).await.unwrap();
        for _ in 0..3 {
            assert_eq!(ask(&mut client, &request()).await.unwrap().message.content(), Some("No further action."));
        }
        client.end().await;
    });
}

// complaint WN-1: the process runs with LANG=C.
#[test]
fn texts_go_both_ways_as_utf8_and_the_request_is_whole() {
    let script = format!(
        r#"read -r hello; {HELLO}; read -r line; echo "$line" >&2; echo '{{"type":"log","message":"≥ note"}}'; echo; printf '%s\r\n' '{{"type":"answer","id":1,"content":"≥ 3% 股票 😀","reasoning":"hm","usage":{{"input_tokens":3,"output_tokens":4,"x":1}}}}'; case "$line" in *'≥ 3% 股票 😀'*) ;; *) exit 1 ;; esac; read -r rest"#
    );
    block(async {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&notes);
        let client = start(&script, short()).await.unwrap();
        assert_eq!(client.name(), "≥股");
        let mut client = client.watched(Arc::new(move |progress| {
            if let Progress::Note { text } = progress {
                kept.lock().unwrap().push((*text).to_owned());
            }
        }));
        let response = ask(&mut client, &request()).await.unwrap();
        assert_eq!(response.message.0, json!({"role": "assistant", "content": "≥ 3% 股票 😀"}));
        assert_eq!((response.finish_reason.as_str(), response.reasoning.as_deref()), ("stop", Some("hm")));
        let usage = response.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.extra["x"].clone()), (3, 4, json!(1)));
        assert_eq!(*notes.lock().unwrap(), ["≥ note"]);
        // The shell would have ended if it had not read the text as it was sent.
        let fault = ask(&mut client, &request()).await.unwrap_err();
        assert_eq!(fault.kind(), "agent_exited");
        assert!(fault.to_string().starts_with("the agent's process ended (exit status: 0)"), "{fault}");
    });
}

#[test]
fn every_way_to_break_the_protocol_has_its_fault() {
    let answer = |text: &str| format!("read -r line; echo '{text}'; read -r rest");
    let broken = |text: &str| format!("the agent's process broke the protocol: {text}");
    let check = |script: &str, text: &str| check_failure(script, short(), "agent_protocol", &broken(text));
    check(&answer("hello there"), "a line is not one of its lines (expected value at line 1 column 1): hello there");
    check(
        &answer("[1]"),
        "a line is not one of its lines (invalid type: integer `1`, expected variant identifier at line 1 column 2): [1]",
    );
    check(
        &answer(r#"{"type":"answer","id":1,"tool_call":[]}"#),
        r#"a line is not one of its lines (unknown field `tool_call`, expected one of `id`, `content`, `tool_calls`, `reasoning`, `finish_reason`, `usage`): {"type":"answer","id":1,"tool_call":[]}"#,
    );
    check(&answer(r#"{"type":"answer","id":7}"#), "it answered request 7 when 1 was asked");
    check(&answer(r#"{"type":"error","id":0,"message":"x"}"#), "it answered request 0 when 1 was asked");
    check(&answer(r#"{"type":"hello","protocol":1}"#), "an `answer` or `error` line belongs here, not `hello`");
    check("read -r line; head -c 9000 /dev/zero | tr '\\0' a; read -r rest", "a line is longer than 4096 bytes");
}

#[test]
fn processes_that_end_are_told_with_their_last_words() {
    let ended = |status: &str, said: &str| format!("the agent's process ended ({status}){said}");
    check_failure(
        "read -r line; echo 'Traceback' >&2; echo \"KeyError: $AGENT_KEY\" >&2; exit 3",
        short(),
        "agent_exited",
        &ended("exit status: 3", "; its standard error ends with: KeyError: [redacted]"),
    );
    // A line that was cut is no line.
    check_failure("read -r line; printf '{\"type\":'; exit 0", short(), "agent_exited", &ended("exit status: 0", ""));
    check_failure("kill -9 $$", short(), "agent_exited", &ended("signal: 9 (SIGKILL)", ""));
    check_failure(
        "read -r line; exec 1>&-; exec sleep 600",
        PipeLimits { end: Duration::from_millis(30), ..short() },
        "agent_exited",
        &ended("it closed its output and stayed, and was killed", ""),
    );
}

#[test]
fn a_process_that_ends_while_it_is_written_to_is_told() {
    block(async {
        let mut client = start(&format!("read -r hello; {HELLO}; exec 0<&-; sleep 0.05; exit 4"), short()).await.unwrap();
        let mut long = request();
        long.messages.push(Message::user("a".repeat(1 << 20)));
        let fault = ask(&mut client, &long).await.unwrap_err();
        assert_eq!(fault.to_string(), "the agent's process ended (exit status: 4)");
    });
}

#[test]
fn silence_ends_with_the_limit() {
    let limits = || PipeLimits { answer: Duration::from_millis(50), ..short() };
    check_failure("read -r line; exec sleep 600", limits(), "timeout", "no answer of the agent within 50 ms");
    check_failure(
        r#"read -r line; while :; do echo '{"type":"log","message":"x"}'; done"#,
        limits(),
        "timeout",
        "no answer of the agent within 50 ms",
    );
    block(async {
        let mut client = start(&format!("read -r hello; {HELLO}; exec sleep 600"), limits()).await.unwrap();
        let mut long = request();
        long.messages.push(Message::user("a".repeat(1 << 20)));
        let fault = ask(&mut client, &long).await.unwrap_err();
        assert_eq!(fault.to_string(), "no reading of the request by the agent within 50 ms");
    });
}

#[test]
fn an_agent_that_fails_says_so_and_may_be_asked_again() {
    block(async {
        let script = format!(
            r#"read -r hello; {HELLO}; read -r line; echo "{{\"type\":\"error\",\"id\":1,\"message\":\"no key $AGENT_KEY\"}}"; read -r line; echo '{{"type":"answer","id":2,"content":"a"}}'; read -r rest"#
        );
        let mut client = start(&script, short()).await.unwrap();
        let fault = ask(&mut client, &request()).await.unwrap_err();
        assert_eq!(fault, ClientFault::Agent { message: "no key [redacted]".to_owned() });
        assert_eq!(ask(&mut client, &request()).await.unwrap().message.content(), Some("a"));
    });
}

#[test]
fn a_bad_start_is_told_before_anything_is_asked() {
    let check = |argv: &[&str], limits: PipeLimits, text: &str| {
        let error = block(PipeClient::start(launch(argv), limits)).unwrap_err();
        assert_eq!(error.to_string(), text);
    };
    check(
        &["no-such-program-here"],
        short(),
        "the agent's process cannot be started: `no-such-program-here` cannot be started: No such file or directory (os error 2)",
    );
    check(&["true"], short(), "the agent's process ended (exit status: 0)");
    check(
        &["sh", "-c", r#"echo '{"type":"hello","protocol":2}'; read -r rest"#],
        short(),
        "the agent's process broke the protocol: it speaks version 2, and this is version 1",
    );
    check(
        &["sh", "-c", r#"echo '{"type":"log","message":"x"}'; echo '{"type":"answer","id":1}'; read -r rest"#],
        short(),
        "the agent's process broke the protocol: a `hello` line comes first, not `answer`",
    );
    check(&["sleep", "600"], PipeLimits { greeting: Duration::from_millis(30), ..short() }, "no greeting within 30 ms");
}

/// Whether a process still runs; one that only waits to be collected does not.
fn runs(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z")
}

#[test]
fn nothing_that_the_process_has_started_outlives_the_client() {
    let started = |script: &str| {
        format!(
            r#"read -r hello; {HELLO}; read -r line; sleep 600 & echo "{{\"type\":\"answer\",\"id\":1,\"content\":\"$!\"}}"; {script}"#
        )
    };
    let pid = |client: PipeClient| async move {
        let mut client = client;
        (ask(&mut client, &request()).await.unwrap().message.content().unwrap().to_owned(), client)
    };
    let gone = |pid: &str| {
        let until = Instant::now() + Duration::from_secs(10);
        while runs(pid) {
            assert!(Instant::now() < until, "process {pid} still runs");
            std::thread::yield_now();
        }
    };
    block(async {
        let (dropped, client) = pid(start(&started("read -r rest; exit 0"), short()).await.unwrap()).await;
        assert!(runs(&dropped));
        drop(client);
        gone(&dropped);
        let (ended, client) = pid(start(&started("read -r rest; exit 0"), short()).await.unwrap()).await;
        client.end().await;
        gone(&ended);
        let limits = PipeLimits { answer: Duration::from_millis(500), ..short() };
        let (late, mut client) = pid(start(&started("exec sleep 600"), limits).await.unwrap()).await;
        assert_eq!(ask(&mut client, &request()).await.unwrap_err().kind(), "timeout");
        gone(&late);
    });
}

#[test]
fn the_environment_is_what_was_passed_on() {
    block(async {
        let script = format!(
            r#"read -r hello; {HELLO}; read -r line; echo "{{\"type\":\"answer\",\"id\":1,\"content\":\"$(env | cut -d= -f1 | grep -v '^\(_\|PWD\|SHLVL\|OLDPWD\)$' | sort | tr '\n' ' ')\"}}"; read -r rest"#
        );
        let mut client = start(&script, short()).await.unwrap();
        assert_eq!(ask(&mut client, &request()).await.unwrap().message.content(), Some("AGENT_KEY LANG PATH "));
        let shown = format!("{client:?}");
        assert!(!shown.contains(SECRET), "{shown}");
    });
}

#[test]
fn arguments_may_be_an_object_or_its_text() {
    block(async {
        let calls =
            json!([{"name": "a", "arguments": {"股": 1}}, {"id": "x", "name": "b", "arguments": "{\"y\":"}, {"name": "c"}]);
        let line = json!({"type": "answer", "id": 1, "tool_calls": calls});
        let mut client = start(&format!("read -r hello; {HELLO}; read -r line; printf '%s\\n' '{line}'; read -r rest"), short())
            .await
            .unwrap();
        let message = ask(&mut client, &request()).await.unwrap().message;
        let seen: Vec<Value> = message.tool_calls().iter().map(|call| json!([call.id, call.name, call.arguments])).collect();
        assert_eq!(
            Value::from(seen),
            json!([["pre_market-4-1", "a", "{\"股\":1}"], ["x", "b", "{\"y\":"], ["pre_market-4-3", "c", ""]])
        );
    });
}
