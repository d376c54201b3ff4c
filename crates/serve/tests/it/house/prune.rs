//! What is removed after its days, and what never is.

use super::fixture::{Hosted, caller, open, server, session, store};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use traderharness_serve::config::KeepLimits;
use traderharness_serve::house::{ForgetsSession, Pruned, prune};
use traderharness_serve::{House, HouseConfig};

/// Sessions of a folder that nobody serves: one that ended, one that is open, one that ended after it.
struct Folder {
    folder: tempfile::TempDir,
    old: String,
    open: String,
    new: String,
}

fn house(keep: &Path, limits: KeepLimits) -> Arc<House> {
    let store = store();
    let mut server = server(&store, false, vec![caller("alice")]);
    server.keep = limits;
    open(&store, server, Some(keep))
}

fn for_ever() -> KeepLimits {
    KeepLimits { days: 0, max_megabytes: 0 }
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hosted = Hosted::over(house(folder.path(), for_ever()), "alice");
        let (house, alice) = (&hosted.house, &hosted.caller);
        hosted.call("get_portfolio", json!({}), "old-call").unwrap();
        let mut job = hosted.invocation("get_portfolio", json!({}));
        job.job = true;
        let accepted = house.invoke(alice, &job, "old-job", &Default::default()).unwrap();
        let job = accepted.body["job_id"].as_str().unwrap().to_owned();
        until(|| house.job(alice, &job).unwrap().body["state"] == "succeeded");
        house.close_session(alice, &hosted.session, "old-close").unwrap();
        let opened = Hosted { session: session(house, alice, "make-open"), house: Arc::clone(house), caller: Arc::clone(alice) };
        opened.call("get_portfolio", json!({}), "open-call").unwrap();
        let new = session(house, alice, "make-new");
        house.close_session(alice, &new, "new-close").unwrap();
        Self { old: hosted.session.clone(), open: opened.session.clone(), new, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path().join("house.sqlite")).unwrap()
    }

    /// Everything happened that many days earlier.
    fn age(&self, days: u32) {
        let seconds = days * 86_400;
        self.sql()
            .execute_batch(&format!("UPDATE sessions SET ended = ended - {seconds}; UPDATE audit SET at = at - {seconds};"))
            .unwrap();
    }

    fn count(&self, table: &str) -> u64 {
        let rows: i64 = self.sql().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        u64::try_from(rows).unwrap()
    }

    fn counts(&self) -> Vec<u64> {
        ["sessions", "ops", "records", "answers", "jobs", "audit"].map(|table| self.count(table)).to_vec()
    }

    fn prune(&self, days: u32, dry_run: bool) -> (Pruned, Vec<String>) {
        let forgotten = Mutex::new(Vec::new());
        let pruned = prune(self.path(), days, dry_run, &|id| forgotten.lock().unwrap().push(id.to_owned())).unwrap();
        (pruned, forgotten.into_inner().unwrap())
    }

    fn hosted(&self, session: &str) -> Hosted {
        let house = house(self.path(), for_ever());
        let caller = house.local_caller("alice").unwrap();
        Hosted { house, caller, session: session.to_owned() }
    }
}

/// Waits for what another thread does; the deadline is far beyond any machine.
fn until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
}

#[test]
fn a_session_that_ended_is_removed_after_its_days_with_all_that_is_its_own() {
    let folder = Folder::new();
    let untouched = folder.counts();
    assert_eq!(folder.prune(30, false), (Pruned::default(), Vec::new()));
    assert_eq!(folder.counts(), untouched, "nothing is old yet");
    folder.age(31);
    let lines = folder.count("audit");
    let (expected, none) = folder.prune(30, true);
    assert_eq!((folder.counts(), none.len()), (untouched, 0), "a dry run changes nothing");
    let (pruned, forgotten) = folder.prune(30, false);
    assert_eq!((pruned, forgotten), (expected, vec![folder.old.clone()]));
    assert_eq!((pruned.sessions, pruned.jobs, pruned.answers), (1, 1, 4));
    assert!(pruned.records > 4, "{pruned:?}");
    let left =
        "SELECT count(*) FROM (SELECT session FROM ops UNION SELECT session FROM records UNION SELECT session FROM answers)
                WHERE session NOT IN (SELECT number FROM sessions)";
    assert_eq!(folder.sql().query_row(left, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    assert_eq!((folder.count("sessions"), folder.count("jobs"), folder.count("gone")), (2, 0, 0));

    // Every line of the log is in the file or in the database, once.
    let moved = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    let mut seqs: Vec<u64> =
        moved.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs.len() as u64, pruned.audit_lines);

    let hosted = folder.hosted(&folder.open);
    seqs.extend(hosted.house.audit(0, 1_000).unwrap().iter().map(|line| line["seq"].as_u64().unwrap()));
    assert_eq!(seqs, (1..=lines).collect::<Vec<_>>());
    // An open session and the newest one are whole, however old they are; keys of the open one are answered as ever.
    assert!(hosted.call("get_portfolio", json!({}), "open-call").unwrap().replayed);
    assert!(!hosted.call("get_portfolio", json!({}), "another").unwrap().replayed);
    let ids: Vec<String> = hosted.house.sessions(&hosted.caller).unwrap().into_iter().map(|session| session.session_id).collect();
    assert_eq!(ids, [folder.open.clone(), folder.new.clone()]);
    assert_eq!(hosted.house.session(&hosted.caller, &folder.old).unwrap_err().status, 404);
    // The key of what is gone is a new key.
    assert!(!hosted.house.create_session(&hosted.caller, &Default::default(), "make").unwrap().replayed);
}

#[test]
fn a_session_with_a_job_that_is_not_done_stays() {
    let folder = Folder::new();
    folder.age(31);
    folder.sql().execute_batch("UPDATE jobs SET state = 'accepted'").unwrap();
    assert_eq!((folder.prune(30, false).0.sessions, folder.count("jobs")), (0, 1));
}

#[test]
fn a_removal_that_was_cut_off_is_finished() {
    let folder = Folder::new();
    folder.sql().execute_batch("INSERT INTO gone VALUES (1); DELETE FROM sessions WHERE number = 1;").unwrap();
    let (pruned, _) = folder.prune(30, false);
    assert_eq!((pruned.sessions, pruned.answers), (0, 4));
    assert_eq!(folder.sql().query_row("SELECT min(session) FROM records", [], |row| row.get::<_, i64>(0)).unwrap(), 2);
}

/// Serves the folder until the old session is gone, and calls all the while.
fn served_until_gone(folder: &Folder, limits: KeepLimits) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let forget: ForgetsSession = Arc::new(move |id: &str| tell.lock().unwrap().push(id.to_owned()));
    let store = store();
    let mut server = server(&store, false, vec![caller("alice")]);
    server.keep = limits;
    let mut config = HouseConfig::new(server, [("small".to_owned(), store)].into_iter().collect());
    config.keep = Some(folder.path().to_owned());
    config.forget = Some(forget);
    let house = House::open(config).unwrap();
    let caller = house.local_caller("alice").unwrap();
    let hosted = Hosted { house, caller, session: folder.open.clone() };
    let start = Instant::now();
    let mut calls = 0;
    while hosted.house.session(&hosted.caller, &folder.old).is_ok() {
        calls += 1;
        hosted.call("get_portfolio", json!({}), &format!("meanwhile-{calls}")).unwrap();
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    assert_eq!(*told.lock().unwrap(), [folder.old.as_str()]);
    assert!(hosted.call("get_portfolio", json!({}), "open-call").unwrap().replayed);
}

#[test]
fn a_server_removes_what_is_old_by_itself() {
    let folder = Folder::new();
    folder.age(31);
    served_until_gone(&folder, KeepLimits { days: 30, max_megabytes: 0 });
}

#[test]
fn beyond_its_megabytes_a_folder_loses_what_ended_first() {
    let folder = Folder::new();
    folder.sql().execute_batch("INSERT INTO records VALUES (1, 1000000, randomblob(2000000))").unwrap();
    served_until_gone(&folder, KeepLimits { days: 0, max_megabytes: 1 });
}

#[test]
fn for_ever_is_for_ever() {
    let folder = Folder::new();
    folder.age(30_000);
    let before = folder.counts();
    let hosted = folder.hosted(&folder.old);
    assert!(hosted.house.session(&hosted.caller, &folder.old).is_ok());
    drop(hosted);
    assert_eq!(folder.counts(), before);
}

#[test]
fn a_folder_of_the_version_before_is_brought_up() {
    let folder = Folder::new();
    folder
        .sql()
        .execute_batch(
            "DROP INDEX sessions_ended; DROP INDEX answers_of; DROP INDEX jobs_of; DROP INDEX audit_at; DROP TABLE gone;
             ALTER TABLE sessions DROP COLUMN ended; ALTER TABLE answers DROP COLUMN session;
             ALTER TABLE audit DROP COLUMN at; ALTER TABLE audit DROP COLUMN count; PRAGMA user_version = 1;",
        )
        .unwrap();
    let hosted = folder.hosted(&folder.open);
    assert!(hosted.call("get_portfolio", json!({}), "open-call").unwrap().replayed);
    assert!(!hosted.call("get_portfolio", json!({}), "next").unwrap().replayed);
    assert!(hosted.house.audit(0, 1).unwrap()[0]["at"].as_str().unwrap() > "2020");
    drop(hosted);
    let ended: Vec<bool> = {
        let sql = folder.sql();
        let mut rows = sql.prepare("SELECT ended IS NOT NULL FROM sessions ORDER BY number").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(ended, [true, false, true]);
    folder.sql().execute_batch("PRAGMA user_version = 3").unwrap();
    let fault = prune(folder.path(), 30, false, &|_| ()).unwrap_err().to_string();
    assert!(fault.contains("version 3") && fault.contains("version 2"), "{fault}");
}

#[test]
fn a_folder_without_a_server_is_told_apart_from_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    assert!(prune(folder.path(), 30, true, &|_| ()).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
    let served = house(folder.path(), for_ever());
    let fault = prune(folder.path(), 30, true, &|_| ()).unwrap_err().to_string();
    assert!(fault.contains("another process"), "{fault}");
    drop(served);
    assert_eq!(prune(folder.path(), 30, true, &|_| ()).unwrap(), Pruned::default());
}
