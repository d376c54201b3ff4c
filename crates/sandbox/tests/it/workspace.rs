//! Files of a run: a version per successful call, and nothing of what hostile code left beside files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use traderharness_sandbox::workspace::{Bounds, Changed};
use traderharness_sandbox::{Workspace, WorkspaceError};

const BOUNDS: Bounds = Bounds { bytes: 1_000, files: 10 };

fn workspace() -> (tempfile::TempDir, Workspace) {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(folder.path().join("workspace"));
    (folder, workspace)
}

/// Runs a call that does this to its folder and succeeds.
fn call(workspace: &Workspace, number: u64, base: u64, work: impl FnOnce(&Path)) -> Vec<(String, u64)> {
    let stage = workspace.stage(number, base, &BOUNDS).unwrap();
    work(stage.path());
    let changed = stage.commit(&BOUNDS, 946_690_200).unwrap();
    changed.into_iter().map(|Changed { name, bytes }| (name, bytes)).collect()
}

fn read(workspace: &Workspace, version: u64, name: &str) -> Option<String> {
    fs::read_to_string(workspace.root().join(version.to_string()).join(name)).ok()
}

fn entries(workspace: &Workspace) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(workspace.root()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_stay_for_later_calls_and_only_changes_are_named() {
    let (_folder, workspace) = workspace();
    let first = call(&workspace, 1, 0, |at| {
        fs::create_dir(at.join("b")).unwrap();
        fs::write(at.join("b/two"), "22").unwrap();
        fs::write(at.join("a"), "1").unwrap();
    });
    assert_eq!(first, [("a".to_owned(), 1), ("b/two".to_owned(), 2)]);
    let second = call(&workspace, 2, 1, |at| {
        assert_eq!(fs::read_to_string(at.join("b/two")).unwrap(), "22");
        fs::write(at.join("a"), "1").unwrap();
        fs::write(at.join("b/two"), "23").unwrap();
        fs::write(at.join("c"), "").unwrap();
    });
    assert_eq!(second, [("b/two".to_owned(), 2), ("c".to_owned(), 0)]);
    assert_eq!(call(&workspace, 3, 2, |at| fs::remove_file(at.join("a")).unwrap()), []);
    assert_eq!(read(&workspace, 3, "a"), None);
    assert_eq!(read(&workspace, 3, "b/two").as_deref(), Some("23"));
}

#[test]
fn a_worker_is_told_a_path_that_means_the_same_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let up: std::path::PathBuf = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect();
    let relative = Workspace::new(up.join(folder.path().strip_prefix("/").unwrap()));
    assert!(relative.root().is_relative());
    let stage = relative.stage(1, 0, &BOUNDS).unwrap();
    assert!(stage.path().is_absolute() && stage.path().is_dir());
}

#[test]
fn a_call_that_is_not_committed_leaves_nothing() {
    let (_folder, workspace) = workspace();
    call(&workspace, 1, 0, |at| fs::write(at.join("a"), "1").unwrap());
    let stage = workspace.stage(2, 1, &BOUNDS).unwrap();
    fs::write(stage.path().join("a"), "half").unwrap();
    drop(stage);
    assert_eq!(entries(&workspace), ["1"]);
    call(&workspace, 3, 1, |at| assert_eq!(fs::read_to_string(at.join("a")).unwrap(), "1"));
}

#[test]
fn a_killed_call_is_undone_by_going_back_to_the_version_that_was_recorded() {
    let (_folder, workspace) = workspace();
    call(&workspace, 1, 0, |at| fs::write(at.join("a"), "1").unwrap());
    // Committed and not recorded: call 2 is made again, from version 1.
    call(&workspace, 2, 1, |at| fs::write(at.join("a"), "never recorded").unwrap());
    assert_eq!(entries(&workspace), ["1", "2"], "the version before stays until the next call starts");
    // Killed inside: a stage and half a version are left.
    fs::create_dir_all(workspace.root().join("stage/x")).unwrap();
    fs::create_dir_all(workspace.root().join("next/y")).unwrap();
    call(&workspace, 2, 1, |at| {
        assert_eq!(fs::read_to_string(at.join("a")).unwrap(), "1");
        assert!(!at.join("x").exists());
    });
    assert_eq!(entries(&workspace), ["1", "2"]);
    assert_eq!(read(&workspace, 2, "a").as_deref(), Some("1"));
}

#[test]
fn a_version_that_is_gone_is_an_error_and_not_an_empty_folder() {
    let (_folder, workspace) = workspace();
    call(&workspace, 1, 0, |_| {});
    fs::remove_dir_all(workspace.root()).unwrap();
    assert!(matches!(workspace.stage(2, 1, &BOUNDS), Err(WorkspaceError::Lost { version: 1 })));
    assert!(workspace.stage(2, 0, &BOUNDS).is_ok());
}

// complaint PA-2
#[test]
fn nothing_but_files_and_folders_is_taken_over() {
    let (folder, workspace) = workspace();
    let secret = folder.path().join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("key"), "real").unwrap();
    let changed = call(&workspace, 1, 0, |at| {
        symlink(secret.join("key"), at.join("link")).unwrap();
        symlink(&secret, at.join("folder_link")).unwrap();
        symlink("/nowhere", at.join("dangling")).unwrap();
        symlink(".", at.join("loop")).unwrap();
        nix::unistd::mkfifo(&at.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        drop(std::os::unix::net::UnixListener::bind(at.join("socket")).unwrap());
        fs::write(at.join("kept"), "k").unwrap();
        fs::set_permissions(at.join("kept"), fs::Permissions::from_mode(0o4777)).unwrap();
    });
    assert_eq!(changed, [("kept".to_owned(), 1)]);
    let version = workspace.root().join("1");
    let names: Vec<_> = fs::read_dir(&version).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["kept"]);
    assert_eq!(fs::metadata(version.join("kept")).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(fs::read_to_string(secret.join("key")).unwrap(), "real", "no link was followed when the stage was removed");
}

#[test]
fn the_folder_itself_may_not_become_a_link() {
    let (folder, workspace) = workspace();
    let secret = folder.path().join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("key"), "real").unwrap();
    let stage = workspace.stage(1, 0, &BOUNDS).unwrap();
    fs::remove_dir(stage.path()).unwrap();
    symlink(&secret, stage.path()).unwrap();
    assert!(stage.commit(&BOUNDS, 946_690_200).is_err());
    assert_eq!(fs::read_to_string(secret.join("key")).unwrap(), "real");
    assert_eq!(call(&workspace, 2, 0, |_| {}), []);
}

#[test]
fn more_than_the_quota_is_refused_and_the_version_before_stays() {
    let (_folder, workspace) = workspace();
    call(&workspace, 1, 0, |at| fs::write(at.join("a"), "1").unwrap());
    let check = |work: &dyn Fn(&Path), fits: bool| {
        let stage = workspace.stage(2, 1, &BOUNDS).unwrap();
        work(stage.path());
        let result = stage.commit(&BOUNDS, 946_690_200);
        assert_eq!(matches!(result, Err(WorkspaceError::OverQuota { .. })), !fits, "{result:?}");
        assert_eq!(read(&workspace, 1, "a").as_deref(), Some("1"));
    };
    check(&|at| fs::write(at.join("b"), [0; 999]).unwrap(), true);
    check(&|at| fs::write(at.join("b"), [0; 1_000]).unwrap(), false);
    check(&|at| fs::File::create(at.join("holes")).unwrap().set_len(1 << 40).unwrap(), false);
    check(&|at| (0..9).for_each(|n| fs::write(at.join(format!("f{n}")), "").unwrap()), true);
    check(&|at| (0..10).for_each(|n| fs::write(at.join(format!("f{n}")), "").unwrap()), false);
    check(&|at| (0..10).for_each(|n| fs::create_dir(at.join(format!("d{n}"))).unwrap()), false);
}

#[test]
fn folders_nested_without_end_neither_stay_nor_stop_the_next_call() {
    let (_folder, workspace) = workspace();
    let stage = workspace.stage(1, 0, &BOUNDS).unwrap();
    // Deeper than a path can be long: made by walking down.
    let mut at = nix::dir::Dir::open(stage.path(), nix::fcntl::OFlag::O_DIRECTORY, nix::sys::stat::Mode::empty()).unwrap();
    let name = "d".repeat(200);
    for _ in 0..200 {
        nix::sys::stat::mkdirat(&at, name.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        at = nix::dir::Dir::openat(&at, name.as_str(), nix::fcntl::OFlag::O_DIRECTORY, nix::sys::stat::Mode::empty()).unwrap();
    }
    assert!(matches!(stage.commit(&BOUNDS, 946_690_200), Err(WorkspaceError::OverQuota { .. })));
    assert!(!workspace.root().join("stage").exists());
    assert_eq!(call(&workspace, 2, 0, |_| {}), []);
}

#[test]
fn folders_and_files_without_permissions_can_be_removed() {
    let (_folder, workspace) = workspace();
    call(&workspace, 1, 0, |at| {
        fs::create_dir_all(at.join("locked/inner")).unwrap();
        fs::write(at.join("locked/inner/file"), "x").unwrap();
        fs::set_permissions(at.join("locked/inner"), fs::Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(at.join("locked"), fs::Permissions::from_mode(0o0)).unwrap();
    });
    assert_eq!(call(&workspace, 2, 0, |_| {}), []);
    assert_eq!(entries(&workspace), ["2"]);
}

#[test]
fn a_run_may_start_with_files_and_leave_them_to_others() {
    let (folder, workspace) = workspace();
    let shared = folder.path().join("shared");
    workspace.start_with(&shared, &BOUNDS).unwrap();
    assert_eq!(entries(&workspace), ["0"]);
    call(&workspace, 1, 0, |at| fs::write(at.join("a"), "1").unwrap());
    workspace.publish(1, &shared, &BOUNDS).unwrap();
    assert_eq!(fs::read_to_string(shared.join("a")).unwrap(), "1");

    let next = Workspace::new(folder.path().join("next"));
    next.start_with(&shared, &BOUNDS).unwrap();
    assert_eq!(call(&next, 1, 0, |at| fs::write(at.join("a"), "1").unwrap()), [], "what was there already is no change");
    call(&next, 2, 1, |at| fs::remove_file(at.join("a")).unwrap());
    assert_eq!(read(&next, 0, "a").as_deref(), Some("1"), "what the run started with stays for its replay");
    next.publish(2, &shared, &BOUNDS).unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.ends_with(".new") || name.ends_with(".old")), "{left:?}");
    assert!(!shared.join("a").exists());
}

#[test]
fn files_have_the_time_of_the_call_that_changed_them() {
    let (folder, workspace) = workspace();
    let seconds = |version: u64, name: &str| {
        let meta = fs::metadata(workspace.root().join(version.to_string()).join(name)).unwrap();
        meta.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
    };
    let given = folder.path().join("given");
    fs::create_dir(&given).unwrap();
    fs::write(given.join("a"), "1").unwrap();
    workspace.start_with(&given, &BOUNDS).unwrap();
    assert_eq!(seconds(0, "a"), 0);
    for (number, moment) in [(1, 1_000), (2, 2_000)] {
        let stage = workspace.stage(number, number - 1, &BOUNDS).unwrap();
        fs::write(stage.path().join(format!("new{number}")), "x").unwrap();
        // Written again with the same bytes: not changed.
        fs::write(stage.path().join("a"), "1").unwrap();
        stage.commit(&BOUNDS, moment).unwrap();
    }
    assert_eq!([seconds(2, "a"), seconds(2, "new1"), seconds(2, "new2")], [0, 1_000, 2_000]);
    let stage = workspace.stage(3, 2, &BOUNDS).unwrap();
    let staged = fs::metadata(stage.path().join("new1")).unwrap().modified().unwrap();
    assert_eq!(staged.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1_000);
}
