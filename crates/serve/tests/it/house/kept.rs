//! What survives the process: sessions, their records, answers by key.

use super::fixture::{Hosted, buy, caller, open, server, session, store};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use traderharness_contract::FailureClass;
use traderharness_market::Store;
use traderharness_serve::{House, HouseConfig, HouseError};

fn again(store: &Arc<Store>, masked: bool, keep: &Path) -> Hosted {
    let house = open(store, server(store, masked, vec![caller("alice")]), Some(keep));
    let caller = house.local_caller("alice").unwrap();
    let session = house.sessions(&caller).unwrap()[0].session_id.clone();
    Hosted { house, caller, session }
}

fn played(hosted: &Hosted) -> Vec<Value> {
    hosted.house.records(&hosted.caller, &hosted.session, 0, 1_000).unwrap()
}

#[test]
fn a_session_goes_on_after_a_restart_as_if_there_had_been_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = store();
    for masked in [false, true] {
        let keep = folder.path().join(masked.to_string());
        let (before, state, brief, portfolio, answer);
        {
            let house = open(&store, server(&store, masked, vec![caller("alice")]), Some(&keep));
            let hosted = Hosted::over(house, "alice");
            hosted.open_the_market();
            let codes = hosted.call("screen_stocks", json!({"max_results": 5}), "screen").unwrap();
            let code = codes.body["data"]["stocks"][0]["code"].as_str().unwrap().to_owned();
            assert_eq!(masked, code.contains("M-"), "{code}");
            answer = hosted.call("place_order", buy(&code), "order").unwrap();
            hosted.call("remember", json!({"content": "I bought the first one of the list."}), "memory").unwrap_err();
            hosted.house.step(&hosted.caller, &hosted.session, "step").unwrap();
            before = played(&hosted);
            state = hosted.house.session(&hosted.caller, &hosted.session).unwrap();
            brief = hosted.house.brief(&hosted.caller, &hosted.session).unwrap();
            portfolio = hosted.call("get_portfolio", json!({}), "portfolio").unwrap().body["data"].clone();
        }
        let hosted = again(&store, masked, &keep);
        assert_eq!(hosted.house.session(&hosted.caller, &hosted.session).unwrap(), state);
        assert_eq!(hosted.house.metrics().sessions_loaded, 0, "nothing is made again before it is needed");
        assert_eq!(hosted.house.brief(&hosted.caller, &hosted.session).unwrap(), brief);
        assert_eq!(played(&hosted)[..before.len()], before);
        assert_eq!(hosted.call("get_portfolio", json!({}), "portfolio-2").unwrap().body["data"], portfolio);
        let replayed = hosted.house.invoke(
            &hosted.caller,
            &hosted.invocation(
                "place_order",
                buy(before.iter().find(|r| r["type"] == "fill").unwrap()["event"]["stock_code"].as_str().unwrap()),
            ),
            "order",
            &Default::default(),
        );
        let replayed = replayed.unwrap();
        assert!(replayed.replayed);
        assert_eq!((replayed.body, replayed.text), (answer.body, answer.text));
        assert_eq!(played(&hosted).iter().filter(|r| r["type"] == "fill").count(), 1);
    }
}

#[test]
fn one_process_at_a_time_serves_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = store();
    let config = || {
        let mut config = HouseConfig::new(
            server(&store, false, vec![caller("alice")]),
            [("small".to_owned(), Arc::clone(&store))].into_iter().collect(),
        );
        config.keep = Some(folder.path().to_owned());
        config
    };
    let first = House::open(config()).unwrap();
    let second = House::open(config()).unwrap_err();
    assert!(matches!(second, HouseError::Keep(_)) && second.to_string().contains("another process"), "{second}");
    drop(first);
    assert!(House::open(config()).is_ok());
}

#[cfg(unix)]
#[test]
fn the_folder_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("keep");
    let store = store();
    let _house = open(&store, server(&store, true, vec![caller("alice")]), Some(&keep));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&keep), 0o700);
    for file in std::fs::read_dir(&keep).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path) & 0o077, 0, "{path:?}");
    }
}

/// Changes the closed file of a house, and opens it again.
fn tampered(folder: &Path, statement: &str) -> (Arc<House>, Arc<traderharness_serve::Caller>, String) {
    let store = store();
    let server = || server(&store, false, vec![caller("alice")]);
    let first = Hosted::over(open(&store, server(), Some(folder)), "alice");
    session(&first.house, &first.caller, "another");
    let id = first.session.clone();
    drop(first);
    rusqlite::Connection::open(folder.join("house.sqlite")).unwrap().execute_batch(statement).unwrap();
    let house = open(&store, server(), Some(folder));
    let caller = house.local_caller("alice").unwrap();
    (house, caller, id)
}

#[test]
fn a_session_that_cannot_be_read_is_not_left_out_of_the_list() {
    for statement in [
        "UPDATE sessions SET shown = x'007b7d' WHERE number = 1",
        "UPDATE sessions SET shown = x'07' WHERE number = 1",
        "UPDATE sessions SET state = 'asleep', shown = x'07' WHERE number = 1",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (house, caller, id) = tampered(folder.path(), statement);
        for refused in [house.sessions(&caller).unwrap_err(), house.session(&caller, &id).unwrap_err()] {
            assert_eq!(
                (refused.class, refused.status, refused.code.as_str(), refused.retryable),
                (FailureClass::DependencyUnavailable, 503, "keep_unreadable", false),
                "{statement}"
            );
        }
    }
}

#[test]
fn a_list_that_cannot_be_read_is_no_empty_list() {
    let folder = tempfile::tempdir().unwrap();
    let (house, caller, _) = tampered(folder.path(), "ALTER TABLE sessions RENAME TO lost");
    let refused = house.sessions(&caller).unwrap_err();
    assert_eq!((refused.status, refused.code.as_str(), refused.retryable), (503, "keep_unavailable", true));
}

#[test]
fn a_session_over_other_data_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = store();
    drop(Hosted::over(open(&store, server(&store, false, vec![caller("alice")]), Some(folder.path())), "alice"));
    let mut changed = server(&store, false, vec![caller("alice")]);
    changed.profiles[0].card.max_positions = 2;
    let house = open(&store, changed, Some(folder.path()));
    let caller = house.local_caller("alice").unwrap();
    let session = house.sessions(&caller).unwrap()[0].session_id.clone();
    let hosted = Hosted { house, caller, session };
    let refused = hosted.call("get_portfolio", json!({}), "k").unwrap_err();
    assert_eq!((refused.class, refused.code.as_str()), (FailureClass::DependencyUnavailable, "session_not_restored"));
    // The key was not used up, and a session of the new profile can be made.
    assert!(hosted.house.create_session(&hosted.caller, &Default::default(), "new").is_ok());
}

// spec/seeds.md C3.3; a cursor leads on in the session and at the clock that it was given for, nowhere else
#[test]
fn a_cursor_of_another_session_or_another_clock_is_no_cursor() {
    for masked in [false, true] {
        let store = store();
        let house = open(&store, server(&store, masked, vec![caller("alice")]), None);
        let first = Hosted::over(house, "alice");
        let other = session(&first.house, &first.caller, "other");
        let code = first.call("screen_stocks", json!({"max_results": 1}), "s").unwrap().body["data"]["stocks"][0]["code"].clone();
        let page = |cursor: Option<&Value>| {
            let mut input = json!({"instrumentId": code, "limit": 5});
            if let Some(cursor) = cursor {
                input["cursor"] = cursor.clone();
            }
            input
        };
        let cursor = first.call("market_bars", page(None), "p1").unwrap().body["next_cursor"].clone();
        assert!(cursor.is_string());
        let second = first.call("market_bars", page(Some(&cursor)), "p2").unwrap();
        assert_eq!(second.body["data"]["offset"], 5);
        assert!(
            first.call("market_bars", page(Some(&cursor)), "p2").unwrap().replayed,
            "a page that is asked for again is the same call"
        );
        let mut elsewhere = first.invocation("market_bars", page(Some(&cursor)));
        elsewhere.session_id = Some(other);
        let refused = first.house.invoke(&first.caller, &elsewhere, "p3", &Default::default()).unwrap_err();
        assert_eq!(refused.class, FailureClass::InvalidInput, "{refused:?}");
        first.house.step(&first.caller, &first.session, "step").unwrap();
        let refused = first.call("market_bars", page(Some(&cursor)), "p4").unwrap_err();
        assert_eq!((refused.class, refused.code.as_str()), (FailureClass::InvalidInput, "invalid_cursor"), "{refused:?}");
    }
}

#[test]
fn many_threads_under_one_key_have_one_effect() {
    let hosted = Hosted::new();
    hosted.open_the_market();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let hosted = &hosted;
        let calls: Vec<_> = (0..12).map(|_| scope.spawn(move || hosted.call("place_order", buy("600001"), "k"))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let bodies: Vec<&Value> = outcomes.iter().filter_map(|o| o.as_ref().ok()).map(|r| &r.body).collect();
    assert!(!bodies.is_empty() && bodies.iter().all(|body| *body == bodies[0]));
    for refused in outcomes.iter().filter_map(|o| o.as_ref().err()) {
        assert_eq!((refused.code.as_str(), refused.status, refused.retry_after), ("still_running", 409, Some(1)));
    }
    assert_eq!(played(&hosted).iter().filter(|r| r["type"] == "fill").count(), 1);
}
