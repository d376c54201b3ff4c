//! The contract audit: every tool under every card switch, catalog parity, generated pages, the snapshots of the contracts, and
//! the tests that hold results to their output schemas and failures to the codes a tool lists; the golden tests of the contract
//! versions; and the leak audit over every bundled artifact. Lists all it finds; changes nothing.

use crate::catalog::{self, Entry};
use crate::names;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use traderharness_contract::Group;
use traderharness_contract::audit::{audit, audit_all};

/// Workspace-level test modules that hold the tools to their contracts: reviewed snapshots, and real answers and failures.
const TESTS: [&str; 3] = ["contracts::", "corrections::", "results::"];

/// Recordings and what they are made from: of masked runs, so they may tell nothing.
const BUNDLED: [&str; 2] = ["crates/cli/demo", "crates/cli/recordings"];

/// Packages with golden tests of the contract versions, and the modules that hold them: a byte of an early version that changes fails.
const GOLDEN: [(&str, &str); 2] = [("traderharness-contract", "version"), ("traderharness-tests", "versions")];

/// Pages and inputs that the repository ships: they may say days, since they are of no masked run, and nothing else.
const DATED: [&str; 2] = ["docs/catalog", "examples"];

/// Runs all seven parts and prints each finding on a line.
pub(crate) fn run(root: &Path) -> anyhow::Result<ExitCode> {
    let entries = catalog::entries();
    let mut findings = contracts(&entries);
    let published: Vec<(&str, Group)> = entries.iter().map(|e| (e.definition.spec.name, e.definition.spec.group)).collect();
    findings.extend(parity(&published, names::TOOLS, names::TO_COME));
    let (folder, pages) = catalog::current(root)?;
    let stale = catalog::stale(&folder, &pages)?;
    findings.extend(stale.iter().map(|(name, state)| format!("docs/catalog/{name}: {state}; run `{}`", catalog::COMMAND)));
    for finding in &findings {
        println!("{finding}");
    }
    let held = tests(root)?;
    if !held {
        println!(
            "tests of the contracts fail: see above. A snapshot that differs is reviewed with INSTA_UPDATE=always and `git diff`; a result \
             that its output schema does not allow and a code that the tool does not list are faults of the tool; an early version never \
             changes, recordings made under it would no longer replay"
        );
    }
    let tight = leaks(root)?;
    if !tight {
        println!(
            "a bundled artifact tells what it must not: see above; the recordings are made again with `cargo xtask cassettes`"
        );
    }
    let (have, all) = (entries.len(), names::TOOLS.len());
    let held = held && tight;
    if findings.is_empty() && held {
        println!("audit: {have} of {all} tools, nothing found; {} still to come", names::TO_COME.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("audit: {have} of {all} tools, {} found", findings.len() + usize::from(!held));
    Ok(ExitCode::from(1))
}

/// Faults of single contracts; those that only a card switch brings name the switch.
fn contracts(entries: &[Entry]) -> Vec<String> {
    let mut findings: Vec<String> =
        audit_all(entries.iter().map(|entry| &entry.definition)).iter().map(ToString::to_string).collect();
    for (switch, definition) in entries.iter().flat_map(|entry| &entry.switched) {
        let more =
            audit(definition).iter().map(ToString::to_string).filter(|found| !findings.contains(found)).collect::<Vec<_>>();
        findings.extend(more.into_iter().map(|found| format!("{found} (with {switch})")));
    }
    findings
}

/// The published tools against the names of the contract: each name once, in its group, or in the list of those to come.
fn parity(published: &[(&str, Group)], names: &[(&str, Group)], to_come: &[&str]) -> Vec<String> {
    let known: BTreeMap<&str, Group> = names.iter().copied().collect();
    let mut findings = Vec::new();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, group) in published {
        *seen.entry(name).or_default() += 1;
        match known.get(name) {
            None => findings.push(format!("{name}: is not one of the {} names of the contract", names.len())),
            Some(expected) if expected != group => {
                findings.push(format!("{name}: is in group {}, not {}", names::heading(*group), names::heading(*expected)));
            }
            Some(_) => {}
        }
    }
    findings
        .extend(seen.iter().filter(|(_, count)| **count > 1).map(|(name, count)| format!("{name}: is published {count} times")));
    for (name, _) in names {
        match (seen.contains_key(name), to_come.contains(name)) {
            (false, false) => findings
                .push(format!("{name}: is neither published nor in the list of tools to come (xtask/linked/src/names.rs)")),
            (true, true) => {
                findings.push(format!("{name}: is published; take it off the list of tools to come (xtask/linked/src/names.rs)"));
            }
            _ => {}
        }
    }
    let unknown = to_come.iter().filter(|name| !known.contains_key(*name));
    findings.extend(unknown.map(|name| format!("{name}: is in the list of tools to come, and is no name of the contract")));
    findings
}

/// Runs the leak audit, as anybody would, over the bundled recordings and over [`DATED`]; false when it finds something.
fn leaks(root: &Path) -> anyhow::Result<bool> {
    let mut recordings: Vec<PathBuf> = vec![];
    for folder in BUNDLED {
        for entry in std::fs::read_dir(root.join(folder)).with_context(|| format!("the bundled artifacts in {folder}"))? {
            let path = entry?.path();
            // Keys of the masks of bundled recordings are public on purpose: anybody may replay them.
            if path.extension().is_none_or(|ending| ending != "key") {
                recordings.push(path);
            }
        }
    }
    anyhow::ensure!(!recordings.is_empty(), "no bundled recording was found; is {} the repository?", root.display());
    recordings.sort();
    let audit = |options: &[&str], artifacts: &[PathBuf]| -> anyhow::Result<bool> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let run = ["run", "--locked", "--quiet", "--package", "traderharness-cli", "--", "audit"];
        let mut command = Command::new(cargo);
        let status = command.args(run).args(options).args(artifacts).current_dir(root).status();
        Ok(status.context("cannot start the leak audit")?.success())
    };
    let dated: Vec<PathBuf> = DATED.iter().map(|path| root.join(path)).collect();
    // Both, so that all is told at once.
    Ok(audit(&[], &recordings)? & audit(&["--allow-dates"], &dated)?)
}

/// Runs all tests of [`TESTS`] and [`GOLDEN`]; false when one fails.
fn tests(root: &Path) -> anyhow::Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let nextest = Command::new(&cargo).args(["nextest", "--version"]).output().is_ok_and(|output| output.status.success());
    let run = |package: &str, filters: &[&str]| -> anyhow::Result<bool> {
        let mut command = Command::new(&cargo);
        if nextest {
            command.args(["nextest", "run", "--locked", "--package", package, "--no-fail-fast"]).args(filters);
        } else {
            command.args(["test", "--locked", "--quiet", "--package", package, "--test", "it", "--"]).args(filters);
        }
        let status = command.current_dir(root).env("INSTA_UPDATE", "no").status();
        Ok(status.with_context(|| format!("cannot start the tests of {package}"))?.success())
    };
    let mut held = run("traderharness-tests", &TESTS)?;
    for (package, filter) in GOLDEN {
        // All, so that all is told at once.
        held &= run(package, &[filter])?;
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[(&str, Group)] = &[("get_a", Group::Market), ("get_b", Group::Text), ("do_c", Group::Control)];

    #[track_caller]
    fn check(published: &[(&str, Group)], to_come: &[&str], expected: &[&str]) {
        let found = parity(published, NAMES, to_come);
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (finding, part) in found.iter().zip(expected) {
            assert!(finding.contains(part), "{finding}\nexpected {part}");
        }
    }

    #[test]
    fn published_and_to_come_make_up_the_contract() {
        check(&[("get_a", Group::Market)], &["get_b", "do_c"], &[]);
        check(&[("get_a", Group::Market)], &["get_b"], &["do_c: is neither"]);
        check(&[("get_a", Group::Market), ("get_b", Group::Text)], &["get_b", "do_c"], &["get_b: is published; take it off"]);
        check(NAMES, &["get_d"], &["get_d: is in the list"]);
    }

    #[test]
    fn a_name_of_another_contract_group_or_twice_is_found() {
        check(&[("get_x", Group::Market)], &["get_a", "get_b", "do_c"], &["get_x: is not one of the 3"]);
        check(&[("get_a", Group::Text)], &["get_b", "do_c"], &["get_a: is in group Text, not Market"]);
        check(&[("get_a", Group::Market), ("get_a", Group::Market)], &["get_b", "do_c"], &["get_a: is published 2 times"]);
    }

    #[test]
    fn a_fault_of_a_contract_is_listed_once() {
        let found = contracts(&[catalog::sample()]);
        let unique: std::collections::BTreeSet<&String> = found.iter().collect();
        assert_eq!(found.len(), unique.len(), "{found:#?}");
        assert!(
            found.iter().any(|finding| finding.contains("get_sample")),
            "the sample of the tests is no good contract: {found:#?}"
        );
    }

    #[test]
    fn the_contract_has_thirty_names() {
        assert_eq!(names::TOOLS.len(), 30);
        assert_eq!(names::TOOLS.iter().map(|(name, _)| *name).collect::<std::collections::BTreeSet<_>>().len(), 30);
    }

    #[test]
    fn the_published_tools_are_the_contract_less_those_to_come() {
        let entries = catalog::entries();
        let published: Vec<(&str, Group)> = entries.iter().map(|e| (e.definition.spec.name, e.definition.spec.group)).collect();
        assert_eq!(parity(&published, names::TOOLS, names::TO_COME), [""; 0]);
    }
}
