//! The README's commands run as printed.

use crate::command::{command, ran, repo};

#[test]
fn every_command_of_the_readme_runs() {
    let readme = std::fs::read_to_string(repo("README.md")).unwrap();
    let commands: Vec<&str> = readme.lines().map(str::trim).filter(|l| l.starts_with("traderharness ")).collect();
    assert!(commands.len() >= 8, "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("crates/cli/demo")).unwrap();
    std::fs::copy(repo("crates/cli/demo/script.yaml"), folder.path().join("crates/cli/demo/script.yaml")).unwrap();
    for line in commands {
        let args: Vec<&str> = line.split_whitespace().skip(1).collect();
        let ran = ran(command(&args).current_dir(folder.path()).output().unwrap());
        assert_eq!(ran.code, 0, "`{line}`: {}{}", ran.out, ran.err);
    }
}
