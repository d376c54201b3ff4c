//! Names that a client may send. None of them is ever a path: sessions, jobs and files of code go by ids that the house drew itself
//! (spec/seeds.md B13; no client and no configuration can name a file here).

use super::fixture::{Hosted, buy, caller, open, server, store};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use traderharness_serve::house::OpensSandbox;
use traderharness_serve::{HouseConfig, Invocation, SessionRequest, Watch};

const HOSTILE: &[&str] = &[
    "",
    ".",
    "..",
    "../ses_a",
    "/etc/passwd",
    "~/x",
    "C:\\x",
    "C:x",
    "\\\\server\\share",
    "//server/share",
    "CON",
    "nul.txt",
    "a\0b",
    "a\nb",
    "%2e%2e%2f",
    "file.txt:stream",
    "ses_'; DROP TABLE sessions; --",
    "ses_\u{202e}",
];

#[test]
fn hostile_names_are_refused_as_names_that_nobody_has() {
    let folder = tempfile::tempdir().unwrap();
    let store = store();
    let hosted =
        Hosted::over(open(&store, server(&store, false, vec![caller("alice")]), Some(&folder.path().join("keep"))), "alice");
    let everything = || {
        let mut names: Vec<String> = Vec::new();
        let mut folders = vec![folder.path().to_owned()];
        while let Some(at) = folders.pop() {
            for entry in std::fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                names.push(path.display().to_string());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        names.sort();
        names
    };
    let before = everything();
    for name in HOSTILE {
        let (house, caller) = (&hosted.house, &hosted.caller);
        assert_eq!(house.session(caller, name).unwrap_err().status, 404, "{name:?}");
        assert_eq!(house.step(caller, name, "k").unwrap_err().status, 404, "{name:?}");
        assert_eq!(house.records(caller, name, 0, 1).unwrap_err().status, 404, "{name:?}");
        assert_eq!(house.job(caller, name).unwrap_err().status, 422, "{name:?}");
        assert!(house.local_caller(name).is_none() && house.capability(name).is_none());
        let request = SessionRequest { profile: Some((*name).to_owned()), ..SessionRequest::default() };
        assert_eq!(house.create_session(caller, &request, "k").unwrap_err().code, "unknown_profile", "{name:?}");
        let request = SessionRequest { agent_revision_id: Some((*name).to_owned()), ..SessionRequest::default() };
        assert_eq!(house.create_session(caller, &request, "k").unwrap_err().code, "unknown_agent_revision", "{name:?}");
        let call = |tool: &str, session: &str| Invocation {
            agent_revision_id: None,
            session_id: Some(session.to_owned()),
            tool: tool.to_owned(),
            input: json!({}),
            job: false,
        };
        let refused = house.invoke(caller, &call(name, &hosted.session), "k", &Watch::default()).unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (404, "unknown_tool"), "{name:?}");
        let refused = house.invoke(caller, &call("get_portfolio", name), "k", &Watch::default()).unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (404, "session_not_found"), "{name:?}");
    }
    assert_eq!(everything(), before, "no name made a file");
    assert!(hosted.call("get_portfolio", json!({}), "after").is_ok());
}

#[test]
fn ids_that_the_house_draws_are_bare() {
    let store = store();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let opens: OpensSandbox = Arc::new(move |id, _| {
        tell.lock().unwrap().push(id.to_owned());
        Err("no code here".to_owned())
    });
    let server = server(&store, false, vec![caller("alice")]);
    let mut config = HouseConfig::new(server, [("small".to_owned(), Arc::clone(&store))].into_iter().collect());
    config.sandbox = Some(opens);
    let house = traderharness_serve::House::open(config).unwrap();
    let alice = house.local_caller("alice").unwrap();
    let refused = house.create_session(&alice, &SessionRequest::default(), "k").unwrap_err();
    assert_eq!((refused.code.as_str(), refused.status), ("sandbox_unavailable", 503));
    let ids = told.lock().unwrap().clone();
    let bare = |id: &String| {
        id.strip_prefix("ses_").is_some_and(|rest| rest.len() == 26 && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
    };
    assert!(ids.len() == 1 && ids.iter().all(bare), "{ids:?}");
}

// engine E8: what a door says of a masked session tells no code, no name and no date of the market
#[test]
fn nothing_of_a_masked_session_leads_to_the_market() {
    let store = store();
    let hosted = Hosted::over(open(&store, server(&store, true, vec![caller("alice")]), None), "alice");
    let mut said: Vec<Value> = Vec::new();
    hosted.open_the_market();
    let screened = hosted.call("screen_stocks", json!({"max_results": 5}), "s").unwrap().body;
    let code = screened["data"]["stocks"][0]["code"].as_str().unwrap().to_owned();
    said.push(screened);
    said.push(hosted.call("place_order", buy(&code), "o").unwrap().body);
    for capability in hosted.house.capabilities(&hosted.caller) {
        let Some(tool) = capability.tool.as_deref().filter(|t| !["finish_day", "complete_phase"].contains(t)) else { continue };
        let mut input = capability.example.clone();
        for field in ["stock_code", "instrumentId"] {
            if input.get(field).is_some() {
                input[field] = code.as_str().into();
            }
        }
        match hosted.call(tool, input, &format!("k-{tool}")) {
            Ok(reply) => said.push(reply.body),
            Err(refusal) => said.push(refusal.record()),
        }
    }
    said.push(serde_json::to_value(hosted.house.session(&hosted.caller, &hosted.session).unwrap()).unwrap());
    said.push(serde_json::to_value(hosted.house.brief(&hosted.caller, &hosted.session).unwrap()).unwrap());
    said.push(hosted.house.account(&hosted.caller, &hosted.session).unwrap());
    said.push(hosted.house.records(&hosted.caller, &hosted.session, 0, 1_000).unwrap().into());
    said.push(hosted.house.audit(0, 1_000).unwrap().into());
    // Whoever runs the house knows what it is over.
    let whole = hosted.house.trajectory(&hosted.caller, &hosted.session, 0, 1).unwrap();
    assert_eq!(whole[0]["dataset"]["sha256"], store.meta().digest.as_str());
    // The examples of the contract name an alias that has digits of a code of this market.
    let said = serde_json::to_string(&said).unwrap().replace("SHM-000360", "");
    let (name, digest) = (store.meta().name.clone(), store.meta().digest.clone());
    for secret in [
        name.as_str(),
        digest.as_str(),
        "600001",
        "600002",
        "000360",
        "300360",
        "688001",
        "Harbour Tools",
        "2024-0",
        "2024/0",
        "202404",
    ] {
        let at = said.find(secret);
        assert!(at.is_none(), "{secret}: ...{}...", at.map_or("", |at| &said[at.saturating_sub(200)..(at + 60).min(said.len())]));
    }
}
