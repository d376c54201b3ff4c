//! Internal edges: only those of the table, no cycle even through tests, and names that follow the folder.
//!
//! Dev-dependencies do not ship, so a test may use more than its crate: anything of the same or a lower layer, as long as no cycle
//! comes up through tests. The layer of a package is the longest way down from it in the table.

use super::table::Row;
use super::workspace::{Kind, Package, Workspace};
use crate::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// Checks edges, cycles and names.
pub(crate) fn check(workspace: &Workspace, rows: &[Row]) -> Vec<Finding> {
    let table: BTreeMap<&str, &[&str]> = rows.iter().map(|row| (row.package, row.may_use)).collect();
    let layers = layers(&table);
    let mut findings = Vec::new();
    for package in &workspace.packages {
        findings.extend(names(package));
        let place = format!("{}/Cargo.toml", package.folder);
        let from = package.short();
        let Some(may_use) = table.get(from) else {
            findings.push(Finding::new("unlisted-crate", place, format!("`{from}` has no line in xtask/src/layers/table.rs")));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|d| d.internal) {
            let to = dependency.name.strip_prefix("traderharness-").unwrap_or(&dependency.name);
            let allowed = may_use.contains(&to) || dependency.kind == Kind::Dev && layers.get(to) <= layers.get(from);
            if !allowed || !table.contains_key(to) {
                let how = if dependency.kind == Kind::Dev { "may not use, even in tests," } else { "may not use" };
                findings.push(Finding::new(
                    "edge",
                    &place,
                    format!("`{from}` {how} `{to}`; a new edge needs a line in the table first"),
                ));
            }
        }
    }
    findings.extend(cycle(workspace));
    findings
}

/// Longest way down in the table; a table with a cycle has no layers for its members.
fn layers<'a>(table: &BTreeMap<&'a str, &'a [&'a str]>) -> BTreeMap<&'a str, usize> {
    let mut layers = BTreeMap::new();
    loop {
        let before = layers.len();
        for (package, below) in table {
            let known: Option<Vec<usize>> = below.iter().map(|b| layers.get(b).copied()).collect();
            if let Some(known) = known {
                layers.insert(*package, known.into_iter().max().map_or(0, |top| top + 1));
            }
        }
        if layers.len() == before {
            return layers;
        }
    }
}

/// One cycle over declared edges of every kind, if there is one.
fn cycle(workspace: &Workspace) -> Option<Finding> {
    let graph: BTreeMap<&str, Vec<&str>> = workspace
        .packages
        .iter()
        .map(|p| (p.name.as_str(), p.dependencies.iter().filter(|d| d.internal).map(|d| d.name.as_str()).collect()))
        .collect();
    let mut done = BTreeSet::new();
    graph.keys().find_map(|start| walk(start, &graph, &mut Vec::new(), &mut done)).map(|path| {
        Finding::new("cycle", "Cargo.toml", format!("packages use each other in a circle, tests included: {}", path.join(" -> ")))
    })
}

fn walk<'a>(
    at: &'a str,
    graph: &BTreeMap<&'a str, Vec<&'a str>>,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(first) = path.iter().position(|seen| *seen == at) {
        return Some(path[first..].iter().copied().chain([at]).collect());
    }
    if !done.contains(at) {
        path.push(at);
        for next in graph.get(at).into_iter().flatten() {
            if let Some(found) = walk(next, graph, path, done) {
                return Some(found);
            }
        }
        path.pop();
        done.insert(at);
    }
    None
}

/// Package `traderharness-FOLDER`, library `traderharness_FOLDER`, and one binary called `traderharness`, in `cli`. An example is a
/// binary called as its package.
fn names(package: &Package) -> Vec<Finding> {
    let place = format!("{}/Cargo.toml", package.folder);
    let mut findings = Vec::new();
    let folder = package.folder.rsplit('/').next().unwrap_or_default();
    let task = package.folder.starts_with("xtask");
    let expected = if task { package.folder.replace('/', "-") } else { format!("traderharness-{folder}") };
    if package.name != expected {
        findings.push(Finding::new("name", &place, format!("the package in `{}` is called `{expected}`", package.folder)));
    }
    if package.lib.as_ref().is_some_and(|lib| *lib != expected.replace('-', "_")) {
        findings.push(Finding::new(
            "name",
            &place,
            format!("the library of `{expected}` is called `{}`", expected.replace('-', "_")),
        ));
    }
    if !task {
        let example = package.folder.starts_with("examples/");
        let allowed = if example { expected.as_str() } else { ["", "traderharness"][usize::from(folder == "cli")] };
        if let Some(bin) = package.bins.iter().find(|bin| *bin != allowed) {
            findings.push(Finding::new("name", &place, format!("binary `{bin}`: the one binary is `traderharness`, in `cli`")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::table::ROWS;
    use super::super::workspace::fake::{package, workspace};
    use super::*;

    /// Rules broken by a workspace of these packages, in order.
    #[track_caller]
    fn check_packages(packages: &[(&str, &[&str])], expected: &[(&str, &str)]) {
        let packages = packages.iter().map(|(name, dependencies)| package(name, dependencies)).collect();
        let found = check(&workspace(packages, &[]), ROWS);
        let shown: Vec<(&str, &str)> = found.iter().map(|f| (f.rule, f.message.as_str())).collect();
        assert_eq!(shown.len(), expected.len(), "{shown:#?}");
        for ((rule, message), (expected_rule, part)) in shown.iter().zip(expected) {
            assert!(rule == expected_rule && message.contains(part), "{rule}: {message}\nexpected {expected_rule}: {part}");
        }
    }

    #[test]
    fn edges_of_the_table_pass() {
        check_packages(
            &[
                ("contract", &["serde"]),
                ("market", &[]),
                ("ingest", &["traderharness-market", "parquet"]),
                ("tools-exec", &["traderharness-contract", "traderharness-market"]),
                ("harness", &["traderharness-tools-exec", "traderharness-contract", "dev:traderharness-ingest"]),
            ],
            &[],
        );
    }

    #[test]
    fn an_edge_that_the_table_lacks_is_found() {
        check_packages(
            &[("market", &[]), ("ingest", &["traderharness-market"]), ("harness", &["traderharness-ingest"])],
            &[("edge", "`harness` may not use `ingest`")],
        );
    }

    #[test]
    fn build_dependencies_count_like_normal_ones() {
        check_packages(
            &[("market", &[]), ("contract", &["build:traderharness-market"])],
            &[("edge", "`contract` may not use `market`")],
        );
    }

    #[test]
    fn tests_may_use_their_own_layer_but_not_a_higher_one() {
        check_packages(&[("contract", &[]), ("market", &["dev:traderharness-contract"])], &[]);
        check_packages(
            &[("market", &["dev:traderharness-ingest"]), ("ingest", &[])],
            &[("edge", "`market` may not use, even in tests, `ingest`")],
        );
    }

    #[test]
    fn a_circle_through_tests_is_found() {
        check_packages(
            &[("contract", &["dev:traderharness-market"]), ("market", &["dev:traderharness-contract"])],
            &[("cycle", "traderharness-contract -> traderharness-market -> traderharness-contract")],
        );
    }

    #[test]
    fn a_crate_without_a_line_in_the_table_is_found() {
        check_packages(&[("helpers", &[])], &[("unlisted-crate", "`helpers` has no line")]);
    }

    #[test]
    fn names_follow_the_folder() {
        let mut misnamed = package("market", &[]);
        misnamed.folder = "crates/store".into();
        misnamed.bins = vec!["market".into()];
        let found = check(&workspace(vec![misnamed], &[]), ROWS);
        assert_eq!(found.iter().map(|f| f.rule).collect::<Vec<_>>(), ["name", "name", "name"], "{found:#?}");
    }

    #[test]
    fn the_table_has_no_circle_and_names_only_its_own_rows() {
        let table: BTreeMap<&str, &[&str]> = ROWS.iter().map(|row| (row.package, row.may_use)).collect();
        assert_eq!(layers(&table).len(), ROWS.len(), "a package without a layer is in a circle, or uses an unlisted one");
    }
}
