//! The README's commands run as printed.

use crate::command::{command, ran, repo};
use crate::sandbox::is_set_up;

#[test]
fn every_command_of_the_readme_runs() {
    let readme = std::fs::read_to_string(repo("README.md")).unwrap();
    // A server does not end; the tests of `serve` run that line.
    let runs = |line: &&str| line.starts_with("traderharness ") && !line.starts_with("traderharness serve --http ");
    let commands: Vec<&str> = readme.lines().map(str::trim).filter(runs).collect();
    assert!(commands.len() >= 8, "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    for file in ["crates/cli/demo/script.yaml", "examples/sandbox/breadth.py"] {
        std::fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
        std::fs::copy(repo(file), folder.path().join(file)).unwrap();
    }
    for line in commands {
        let needs_python = line.starts_with("traderharness sandbox") || line.starts_with("traderharness doctor");
        if needs_python && !is_set_up() {
            continue;
        }
        let args: Vec<&str> = line.split_whitespace().skip(1).collect();
        let ran = ran(command(&args).current_dir(folder.path()).output().unwrap());
        assert_eq!(ran.code, 0, "`{line}`: {}{}", ran.out, ran.err);
    }
}
