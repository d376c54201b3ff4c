//! The workspace as `cargo metadata` tells it. Knows nothing of the rules.

use crate::steps;
use anyhow::Context as _;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Kind of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    #[default]
    Normal,
    Build,
    Dev,
}

/// A dependency as a manifest declares it, on any platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// True when it is a package of this workspace.
    pub(crate) internal: bool,
}

/// A package of the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    /// Key in the resolved graph.
    pub(crate) id: String,
    /// Package name.
    pub(crate) name: String,
    /// Folder of the manifest, relative to the root, with `/`.
    pub(crate) folder: String,
    /// Library name, if it has a library.
    pub(crate) lib: Option<String>,
    /// Names of its binaries.
    pub(crate) bins: Vec<String>,
    /// Root source file, relative to the package folder: of the library, else of the first binary.
    pub(crate) root_file: Option<PathBuf>,
    pub(crate) dependencies: Vec<Declared>,
}

impl Package {
    /// Name in the table: without the common prefix.
    pub(crate) fn short(&self) -> &str {
        self.name.strip_prefix("traderharness-").unwrap_or(&self.name)
    }
}

/// An edge of the resolved graph, not of kind dev.
pub(crate) type Edges = BTreeMap<String, Vec<String>>;

/// Packages, and the graph that cargo resolved for this platform.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) packages: Vec<Package>,
    /// Normal and build edges between package ids.
    pub(crate) edges: Edges,
    /// Package names by id.
    pub(crate) names: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<RawPackage>,
    workspace_members: Vec<String>,
    resolve: Resolve,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct RawPackage {
    id: String,
    name: String,
    manifest_path: PathBuf,
    targets: Vec<RawTarget>,
    dependencies: Vec<RawDependency>,
}

#[derive(Deserialize)]
struct RawTarget {
    kind: Vec<String>,
    name: String,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct RawDependency {
    name: String,
    kind: Option<Kind>,
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<NodeDependency>,
}

#[derive(Deserialize)]
struct NodeDependency {
    pkg: String,
    dep_kinds: Vec<NodeKind>,
}

#[derive(Deserialize)]
struct NodeKind {
    kind: Option<Kind>,
}

impl Workspace {
    /// Asks cargo. The graph is that of the host platform: without the filter cargo downloads what only other systems use, and fails
    /// in a checkout without network. `--locked` already keeps the answer from changing.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let rustc = steps::Step::new("rustc", root).args(["--version", "--verbose"]).read()?;
        let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
        let metadata =
            steps::cargo(root).args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host]).read()?;
        Self::parse(&metadata)
    }

    /// Names of everything that a package is built with when it is built alone, its own features only; without dev dependencies.
    pub(crate) fn built_with(&self, package: &Package) -> anyhow::Result<BTreeSet<String>> {
        let tree =
            ["tree", "--locked", "--package", &package.name, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
        let lines = steps::cargo(&self.root).args(tree).read()?;
        Ok(lines.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
    }

    /// Reads the JSON of `cargo metadata`.
    pub(crate) fn parse(json: &str) -> anyhow::Result<Self> {
        let metadata: Metadata = serde_json::from_str(json).context("cannot read the answer of `cargo metadata`")?;
        let names = metadata.packages.iter().map(|p| (p.id.clone(), p.name.clone())).collect();
        let mut packages = Vec::new();
        for raw in metadata.packages.into_iter().filter(|p| metadata.workspace_members.contains(&p.id)) {
            packages.push(package(&metadata.workspace_root, raw));
        }
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        let edges = metadata.resolve.nodes.into_iter().map(|node| (node.id, not_dev(node.deps))).collect();
        Ok(Self { root: metadata.workspace_root, packages, edges, names })
    }
}

fn not_dev(deps: Vec<NodeDependency>) -> Vec<String> {
    let counts = |d: &NodeDependency| d.dep_kinds.iter().any(|k| k.kind.unwrap_or_default() != Kind::Dev);
    deps.into_iter().filter(counts).map(|d| d.pkg).collect()
}

fn package(root: &Path, raw: RawPackage) -> Package {
    let dir = raw.manifest_path.parent().map(Path::to_path_buf).unwrap_or_default();
    let is = |t: &RawTarget, kinds: &[&str]| t.kind.iter().any(|k| kinds.contains(&k.as_str()));
    let lib = raw.targets.iter().find(|t| is(t, &["lib", "rlib", "cdylib", "dylib", "proc-macro"]));
    let bins: Vec<&RawTarget> = raw.targets.iter().filter(|t| is(t, &["bin"])).collect();
    let root_file =
        lib.or_else(|| bins.first().copied()).map(|t| t.src_path.strip_prefix(&dir).unwrap_or(&t.src_path).to_path_buf());
    Package {
        folder: dir.strip_prefix(root).unwrap_or(&dir).to_string_lossy().replace('\\', "/"),
        lib: lib.map(|t| t.name.clone()),
        bins: bins.iter().map(|t| t.name.clone()).collect(),
        root_file,
        dependencies: raw
            .dependencies
            .into_iter()
            .map(|d| Declared { internal: d.path.is_some(), kind: d.kind.unwrap_or_default(), name: d.name })
            .collect(),
        id: raw.id,
        name: raw.name,
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! Small workspaces for the tests of the rules.
    use super::*;

    /// A package `traderharness-NAME` in `crates/NAME` with dependencies `"name"`, `"dev:name"` or `"build:name"`; names that
    /// start with `traderharness-` are internal.
    pub(crate) fn package(short: &str, dependencies: &[&str]) -> Package {
        let name = format!("traderharness-{short}");
        Package {
            id: name.clone(),
            folder: format!("crates/{short}"),
            lib: Some(name.replace('-', "_")),
            bins: vec![],
            root_file: Some("src/lib.rs".into()),
            dependencies: dependencies.iter().map(|d| declared(d)).collect(),
            name,
        }
    }

    fn declared(text: &str) -> Declared {
        let (kind, name) = match text.split_once(':') {
            Some(("dev", name)) => (Kind::Dev, name),
            Some(("build", name)) => (Kind::Build, name),
            _ => (Kind::Normal, text),
        };
        Declared { name: name.to_owned(), kind, internal: name.starts_with("traderharness-") }
    }

    /// A workspace whose graph is what the packages declare, plus `external` edges written `"a -> b"`.
    pub(crate) fn workspace(packages: Vec<Package>, external: &[&str]) -> Workspace {
        let mut edges = Edges::new();
        for package in &packages {
            let kept = package.dependencies.iter().filter(|d| d.kind != Kind::Dev);
            edges.insert(package.id.clone(), kept.map(|d| d.name.clone()).collect());
        }
        for (from, to) in external.iter().filter_map(|edge| edge.split_once(" -> ")) {
            edges.entry(from.to_owned()).or_default().push(to.to_owned());
        }
        let mut names = BTreeMap::new();
        for (from, to) in &edges {
            for id in std::iter::once(from).chain(to) {
                names.insert(id.clone(), id.clone());
            }
        }
        Workspace { root: PathBuf::new(), packages, edges, names }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_cargo_becomes_packages_and_edges() {
        let json = serde_json::json!({
            "packages": [
                {"id": "path+file:///w/crates/a#traderharness-a@0.1.0", "name": "traderharness-a", "manifest_path": "/w/crates/a/Cargo.toml",
                 "targets": [{"kind": ["lib"], "name": "traderharness_a", "src_path": "/w/crates/a/src/lib.rs"},
                             {"kind": ["test"], "name": "it", "src_path": "/w/crates/a/tests/it/main.rs"}],
                 "dependencies": [{"name": "serde", "kind": null}, {"name": "cc", "kind": "build"}, {"name": "traderharness-b", "kind": "dev", "path": "/w/crates/b"}]},
                {"id": "serde", "name": "serde", "manifest_path": "/c/serde/Cargo.toml", "targets": [], "dependencies": []}
            ],
            "workspace_members": ["path+file:///w/crates/a#traderharness-a@0.1.0"],
            "resolve": {"nodes": [{"id": "path+file:///w/crates/a#traderharness-a@0.1.0", "deps": [
                {"pkg": "serde", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
                {"pkg": "insta", "dep_kinds": [{"kind": "dev"}]}]}]},
            "workspace_root": "/w"
        });
        let workspace = Workspace::parse(&json.to_string()).expect("valid metadata");
        let [package] = workspace.packages.as_slice() else { panic!("one member expected: {workspace:?}") };
        assert_eq!((package.folder.as_str(), package.short()), ("crates/a", "a"));
        assert_eq!(package.root_file.as_deref(), Some(Path::new("src/lib.rs")));
        let kinds: Vec<_> = package.dependencies.iter().map(|d| (d.kind, d.internal)).collect();
        assert_eq!(kinds, [(Kind::Normal, false), (Kind::Build, false), (Kind::Dev, true)]);
        assert_eq!(workspace.edges[&package.id], ["serde"], "dev edges are no part of what a crate can reach");
    }

    #[test]
    fn an_answer_that_is_not_metadata_is_an_error() {
        let fault = Workspace::parse("{}").expect_err("no packages");
        assert!(fault.to_string().contains("cargo metadata"), "{fault}");
    }
}
