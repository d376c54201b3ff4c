//! External crates: some must not be reachable at all from a package, some may be named by few packages only.

use super::table::{Forbidden, OnlyThrough};
use super::workspace::{Kind, Package, Workspace};
use crate::finding::Finding;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a package is built with when it is built alone; `None` when nobody can say.
pub(crate) type Alone<'a> = &'a dyn Fn(&Package) -> Option<BTreeSet<String>>;

/// Checks both rules. Reachability is that of the resolved graph, features included; dev edges do not count.
///
/// The graph is that of the whole workspace, where one package's features of a shared crate are everybody's. What is only there because
/// of another package is nothing that this one brings, so a hit counts when `alone` has it too.
pub(crate) fn check(
    workspace: &Workspace,
    forbidden: &[Forbidden],
    only_through: &[OnlyThrough],
    alone: Alone<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let place = format!("{}/Cargo.toml", package.folder);
        let came_from = reachable(workspace, &package.id);
        let mut built_with = None;
        for rule in forbidden.iter().filter(|rule| rule.from.contains(&package.short())) {
            let hits = came_from.keys().filter(|id| rule.crates.contains(&name(workspace, id)));
            for id in hits {
                let built_with = built_with.get_or_insert_with(|| alone(package));
                if built_with.as_ref().is_some_and(|names| !names.contains(name(workspace, id))) {
                    continue;
                }
                let path = path(workspace, &came_from, id).join(" -> ");
                findings.push(Finding::new("reachable", &place, format!("{path}: {}", rule.why)));
            }
        }
        for dependency in package.dependencies.iter().filter(|d| d.kind != Kind::Dev) {
            for rule in only_through.iter().filter(|rule| rule.name == dependency.name) {
                if !rule.packages.contains(&package.short()) {
                    let allowed = rule.packages.join(", ");
                    let message = format!("`{}` may be named by {allowed} only: {}", rule.name, rule.why);
                    findings.push(Finding::new("only-through", &place, message));
                }
            }
        }
    }
    findings
}

fn name<'a>(workspace: &'a Workspace, id: &'a str) -> &'a str {
    workspace.names.get(id).map_or(id, String::as_str)
}

/// Every package that `start` reaches, with the package it was first reached from; breadth first, so paths are shortest.
fn reachable<'a>(workspace: &'a Workspace, start: &'a str) -> BTreeMap<&'a str, &'a str> {
    let mut came_from = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for next in workspace.edges.get(at).into_iter().flatten() {
            if next != start && !came_from.contains_key(next.as_str()) {
                came_from.insert(next.as_str(), at);
                queue.push_back(next);
            }
        }
    }
    came_from
}

fn path<'a>(workspace: &'a Workspace, came_from: &BTreeMap<&'a str, &'a str>, end: &'a str) -> Vec<&'a str> {
    let mut steps = vec![name(workspace, end)];
    let mut at = end;
    while let Some(before) = came_from.get(at) {
        steps.push(name(workspace, before));
        at = before;
    }
    steps.reverse();
    steps
}

#[cfg(test)]
mod tests {
    use super::super::table::{FORBIDDEN, ONLY_THROUGH};
    use super::super::workspace::fake::{package, workspace};
    use super::*;

    #[track_caller]
    fn check_graph(short: &str, dependencies: &[&str], external: &[&str], expected: &[&str]) {
        let found = check(&workspace(vec![package(short, dependencies)], external), FORBIDDEN, ONLY_THROUGH, &|_| None);
        let shown: Vec<String> = found.iter().map(|f| format!("{}: {}", f.rule, f.message)).collect();
        assert_eq!(shown.len(), expected.len(), "{shown:#?}");
        for (message, part) in shown.iter().zip(expected) {
            assert!(message.contains(part), "{message}\nexpected {part}");
        }
    }

    #[test]
    fn a_forbidden_crate_is_found_through_others_and_the_way_is_named() {
        check_graph(
            "contract",
            &["jsonschema"],
            &["jsonschema -> reqwest", "reqwest -> serde"],
            &["traderharness-contract -> jsonschema -> reqwest"],
        );
        check_graph("market", &["sha2"], &["sha2 -> cpufeatures", "cpufeatures -> sha2"], &[]);
    }

    #[test]
    fn what_another_package_turns_on_is_no_finding() {
        let workspace = workspace(vec![package("contract", &["schemars"])], &["schemars -> chrono"]);
        let found = |alone: &[&str]| {
            let alone: BTreeSet<String> = alone.iter().map(|name| (*name).to_owned()).collect();
            check(&workspace, FORBIDDEN, ONLY_THROUGH, &|_| Some(alone.clone())).len()
        };
        assert_eq!((found(&["schemars"]), found(&["schemars", "chrono"])), (0, 1));
    }

    #[test]
    fn every_kind_of_ban_is_found() {
        for (short, external) in [
            ("contract", "pyo3"),
            ("market", "tokio"),
            ("tools-market", "tempfile"),
            ("tools-exec", "rand"),
            ("harness", "arrow"),
            ("ingest", "tokio"),
            ("cli", "pyo3-ffi"),
        ] {
            check_graph(short, &["between"], &[&format!("between -> {external}")], &[external]);
        }
    }

    #[test]
    fn what_only_tests_use_is_not_reachable() {
        check_graph("market", &["dev:tempfile"], &["tempfile -> fastrand"], &[]);
    }

    #[test]
    fn a_crate_with_one_place_is_refused_elsewhere() {
        check_graph("serve", &["jsonschema"], &[], &["only-through: `jsonschema` may be named by contract only"]);
        check_graph("replay", &["anyhow"], &[], &["only-through: `anyhow`"]);
        check_graph("ingest", &["parquet", "dev:anyhow"], &[], &[]);
    }

    #[test]
    fn a_build_script_counts() {
        check_graph("market", &["build:reqwest"], &[], &["reachable: ", "only-through: "]);
    }
}
