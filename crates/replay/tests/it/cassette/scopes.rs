//! Recordings of several askers: each is played by itself, and a failure of one in its place.

use super::{day, folder, meta};
use traderharness_replay::{Cassette, Meta, Player, Recorder, Replay, ReplayError};

#[test]
fn scopes_play_apart() {
    let (_folder, path) = folder();
    let day = day(3);
    let mut recorder = Recorder::create(&path, meta()).unwrap();
    for (request, response) in &day {
        for scope in ["main", "main__advisor_risk"] {
            recorder.record(scope, request, response).unwrap();
        }
    }
    recorder.finish().unwrap();
    let cassette = std::sync::Arc::new(Cassette::load(&path).unwrap());
    cassette.verify().unwrap();
    assert_eq!(cassette.scopes(), ["main", "main__advisor_risk"]);
    for scope in ["main__advisor_risk", "main"] {
        let mut player = Player::for_scope(cassette.clone(), scope).unwrap();
        for (request, response) in &day {
            assert_eq!(&player.next(request).unwrap(), response);
        }
        player.finish().unwrap();
    }
    assert!(matches!(Player::new(cassette.clone()), Err(ReplayError::UnknownScope { .. })));

    let mut replay = Replay::new(cassette.clone());
    for (request, response) in &day {
        assert_eq!(&replay.next("main", request).unwrap(), response);
    }
    assert!(matches!(replay.next("main__executor", &day[0].0), Err(ReplayError::UnknownScope { .. })));
    assert_eq!((replay.played(), replay.total()), (3, 6));
    // A scope that was never asked is unused, too.
    let mut whole = replay.clone();
    assert!(matches!(replay.finish(), Err(ReplayError::Unused { played: 0, unused: 3, .. })));
    for (request, response) in &day {
        assert_eq!(&whole.next("main__advisor_risk", request).unwrap(), response);
    }
    assert_eq!(whole.finish().unwrap(), 6);

    let error = Player::for_scope(cassette, "main__executor").unwrap_err();
    assert_eq!(error.to_string(), "the recording has no scope \"main__executor\"; it has main, main__advisor_risk");
}

// What a run that goes on without one asker needs: its failure is played like an answer, in its place.
#[test]
fn a_recorded_failure_is_one_way_a_call_can_end_for_who_asks_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let day = day(3);
    let mut recorder = Recorder::create(&path, Meta::default()).unwrap();
    recorder.record("a", &day[0].0, &day[0].1).unwrap();
    recorder.record_failure("a", &day[1].0, "timeout").unwrap();
    recorder.record("a", &day[2].0, &day[2].1).unwrap();
    recorder.record("b", &day[0].0, &day[0].1).unwrap();
    recorder.finish().unwrap();
    let mut replay = Replay::new(Cassette::load(&path).unwrap());
    assert_eq!(replay.scopes().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((replay.left("a"), replay.left("b"), replay.left("c")), (3, 1, 0));
    assert_eq!(replay.next_or_failure("a", &day[0].0).unwrap().unwrap(), day[0].1);
    assert!(matches!(replay.next_or_failure("a", &day[2].0), Err(ReplayError::Mismatch { .. })), "its request is checked too");
    assert!(matches!(replay.next("a", &day[1].0), Err(ReplayError::NoOutput { .. })), "an answer is not made up");
    assert_eq!(replay.next_or_failure("a", &day[1].0).unwrap(), Err("timeout".to_owned()));
    assert_eq!(replay.next("a", &day[2].0).unwrap(), day[2].1);
    assert!(matches!(replay.next_or_failure("a", &day[2].0), Err(ReplayError::Exhausted { .. })));
    assert_eq!((replay.left("a"), replay.played(), replay.total()), (0, 3, 4));
}

#[test]
fn one_scope_is_played_as_a_whole_recording_of_one_agent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let day = day(2);
    let mut recorder = Recorder::create(&path, Meta::default()).unwrap();
    for scope in ["a", "b"] {
        for (request, response) in &day {
            recorder.record(scope, request, response).unwrap();
        }
    }
    recorder.finish().unwrap();
    let mut player = Player::for_scope(Cassette::load(&path).unwrap(), "b").unwrap();
    player.next(&day[0].0).unwrap();
    let mut replay = Replay::from(player);
    assert_eq!((replay.played(), replay.total(), replay.left("b")), (1, 2, 1));
    replay.next("b", &day[1].0).unwrap();
    assert!(matches!(replay.next("a", &day[0].0), Err(ReplayError::UnknownScope { .. })));
    assert_eq!(replay.finish().unwrap(), 2);
    // A recording that ended before its first call is exhausted, whoever asks.
    let empty = folder.path().join("b.jsonl");
    Recorder::create(&empty, Meta::default()).unwrap().finish().unwrap();
    let mut replay = Replay::new(Cassette::load(&empty).unwrap());
    assert!(matches!(replay.next("main", &day[0].0), Err(ReplayError::Exhausted { total: 0, sealed: true, .. })));
}
