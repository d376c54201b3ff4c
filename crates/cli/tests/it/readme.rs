//! The README's commands run as printed, and it names every command there is.

use crate::command::{command, ran, repo, run};
use crate::sandbox::is_set_up;

/// Runs the commands of the README that are chosen, in their order.
fn runs(chosen: fn(&str) -> bool, at_least: usize) {
    let readme = std::fs::read_to_string(repo("README.md")).unwrap();
    // A server does not end; the tests of `serve` run that line.
    let printed = |line: &&str| line.starts_with("traderharness ") && !line.starts_with("traderharness serve --http ");
    let commands: Vec<&str> = readme.lines().map(str::trim).filter(printed).filter(|line| chosen(line)).collect();
    assert!(commands.len() >= at_least, "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    for file in ["crates/cli/demo/script.yaml", "examples/sandbox/breadth.py"] {
        std::fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
        std::fs::copy(repo(file), folder.path().join(file)).unwrap();
    }
    for line in commands {
        let args: Vec<&str> = line.split_whitespace().skip(1).collect();
        let ran = ran(command(&args).current_dir(folder.path()).output().unwrap());
        assert_eq!(ran.code, 0, "`{line}`: {}{}", ran.out, ran.err);
    }
}

fn makes_data(line: &str) -> bool {
    line.starts_with("traderharness data")
}

fn needs_python(line: &str) -> bool {
    line.starts_with("traderharness sandbox") || line.starts_with("traderharness doctor")
}

#[test]
fn every_command_of_the_readme_runs() {
    runs(|line| !makes_data(line) && !needs_python(line), 7);
}

#[test]
fn the_datasets_of_the_readme_are_made_and_looked_at() {
    runs(makes_data, 4);
}

#[test]
fn the_code_of_the_readme_runs_in_the_sandbox() {
    if is_set_up() {
        runs(needs_python, 2);
    }
}

#[test]
fn the_readme_names_every_command() {
    let readme = std::fs::read_to_string(repo("README.md")).unwrap();
    let table: Vec<&str> = readme.lines().filter(|line| line.starts_with("| `")).collect();
    let help = run(&["--help"]).out;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    assert!(names.len() >= 18, "{help}");
    for name in names {
        let named = |line: &&&str| line.starts_with(&format!("| `{name}`")) || line.starts_with(&format!("| `{name} "));
        assert_eq!(table.iter().filter(named).count().min(1), 1, "the table of commands has no `{name}`");
    }
}
