//! Requests of several askers at the same time.

use crate::ask::{at_once, block, request, turn};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use traderharness_connect::testing::{Reply, Server};
use traderharness_connect::{ChatCompletions, Endpoint, OpenAiClient, StyledClient};
use traderharness_contract::parse::CallStyle;
use traderharness_harness::client_fault::ClientFault;
use traderharness_harness::model::{Asked, ModelClient, ModelError};
use traderharness_replay::{Message, Request, Response};

fn client(url: String) -> OpenAiClient {
    let mut endpoint = Endpoint::new(url, None);
    // A client that asks one after the other gets no answer here, and must not wait for it for long.
    endpoint.limits.first_byte = Duration::from_secs(10);
    OpenAiClient::new(ChatCompletions { stream: false, ..ChatCompletions::default() }, endpoint, at_once(1)).unwrap()
}

fn requests(words: &[&str]) -> Vec<Request> {
    words.iter().map(|word| Request { messages: vec![Message::user(*word)], ..request() }).collect()
}

fn asked(requests: &[Request]) -> Vec<Asked<'_>> {
    requests.iter().map(|request| Asked { scope: "s", request, turn: turn() }).collect()
}

fn says(words: &str) -> Value {
    json!({ "choices": [{ "message": { "role": "assistant", "content": words }, "finish_reason": "stop" }] })
}

/// What the last message of a request says, when all of it has come.
fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..length]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str::<Value>(body)
        {
            return body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        }
        assert!(length > 0, "{text}");
    }
}

#[test]
fn requests_are_under_way_at_the_same_time_and_answers_keep_their_places() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    // Answers nobody before everybody has asked, and then the last one first.
    let server = std::thread::spawn(move || {
        let mut open: Vec<(TcpStream, String)> = Vec::new();
        while open.len() < 3 {
            let (mut stream, _) = listener.accept().unwrap();
            let said = read(&mut stream);
            open.push((stream, said));
        }
        open.sort_by(|(_, a), (_, b)| b.cmp(a));
        for (mut stream, said) in open {
            let body = says(&format!("to {said}")).to_string();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    let requests = requests(&["a", "b", "c"]);
    let answers = block(client(url).complete_all(&asked(&requests)));
    server.join().unwrap();
    let answers: Vec<String> = answers.into_iter().map(|a| a.unwrap().message.content().unwrap().to_owned()).collect();
    assert_eq!(answers, ["to a", "to b", "to c"]);
}

#[test]
fn one_failure_among_several_is_that_ones_alone() {
    let server = Server::start(|received| {
        let said = received.json()["messages"][0]["content"].as_str().unwrap_or_default().to_owned();
        if said == "b" { Reply::status(500, &[], "down") } else { Reply::json(&says(&said)) }
    })
    .unwrap();
    let requests = requests(&["a", "b", "c"]);
    let answers = block(client(server.url()).complete_all(&asked(&requests)));
    let said = |answer: &Result<Response, ModelError>| answer.as_ref().ok().and_then(|a| a.message.content().map(str::to_owned));
    assert_eq!(answers.iter().map(said).collect::<Vec<_>>(), [Some("a".into()), None, Some("c".into())]);
    let Err(error @ ModelError::Client(ClientFault::GaveUp { .. })) = &answers[1] else { panic!("{:?}", answers[1]) };
    assert_eq!(error.silence().as_deref(), Some("http_status"));
    assert!(block(client(server.url()).complete_all(&[])).is_empty());
}

#[test]
fn a_style_is_translated_for_each_of_several_askers() {
    let server = Server::start(|_| Reply::json(&says("```json\n{\"tool\": \"get_portfolio\", \"params\": {}}\n```"))).unwrap();
    let tool = json!({ "type": "function", "function": { "name": "get_portfolio", "description": "d", "parameters": { "type": "object" } } });
    let mut requests = requests(&["a", "b"]);
    requests.iter_mut().for_each(|request| request.tools = vec![tool.clone()]);
    let mut styled = StyledClient::new(client(server.url()), CallStyle::Json);
    let answers = block(styled.complete_all(&asked(&requests)));
    for answer in answers {
        let calls = answer.unwrap().message.tool_calls();
        assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["get_portfolio"]);
    }
    assert!(server.received().iter().all(|received| received.json().get("tools").is_none()));
}
