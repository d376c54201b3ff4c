//! Manifests: everything shared comes from the workspace, nothing is published by accident, and the lock file has one source.

use super::workspace::Workspace;
use crate::finding::Finding;
use anyhow::Context as _;
use std::path::Path;
use toml_edit::{Document, Item, TableLike};

/// Keys that a package takes from `[workspace.package]`.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "repository", "publish"];

/// Where a locked package may come from; `path` packages have no source.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks every manifest of the workspace and the lock file.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let read = |path: &Path| std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    for package in &workspace.packages {
        let place = format!("{}/Cargo.toml", package.folder);
        findings.extend(manifest(&place, &read(&workspace.root.join(&place))?)?);
    }
    findings.extend(root_manifest(&read(&workspace.root.join("Cargo.toml"))?)?);
    findings.extend(lock(&read(&workspace.root.join("Cargo.lock"))?)?);
    Ok(findings)
}

fn parse(place: &str, text: &str) -> anyhow::Result<Document<String>> {
    Document::parse(text.to_owned()).with_context(|| format!("cannot read {place}"))
}

/// True for `{ workspace = true, .. }` and `x.workspace = true`.
fn from_workspace(item: &Item) -> bool {
    item.as_table_like().and_then(|t| t.get("workspace")).and_then(Item::as_bool) == Some(true)
}

fn manifest(place: &str, text: &str) -> anyhow::Result<Vec<Finding>> {
    let document = parse(place, text)?;
    let mut findings = Vec::new();
    let package = document.get("package").and_then(Item::as_table_like);
    for key in INHERITED {
        if !package.and_then(|p| p.get(key)).is_some_and(from_workspace) {
            findings.push(Finding::new("inherit", place, format!("write `{key}.workspace = true` under [package]")));
        }
    }
    if package.and_then(|p| p.get("description")).and_then(Item::as_str).is_none_or(str::is_empty) {
        findings.push(Finding::new("description", place, "say in `description` what the package is for"));
    }
    if !document.get("lints").is_some_and(from_workspace) {
        findings.push(Finding::new("inherit", place, "write `workspace = true` under [lints]"));
    }
    sections(document.as_table(), &mut |section, name, item| {
        if !from_workspace(item) {
            let message = format!(
                "`{name}` in [{section}]: put version and features in [workspace.dependencies] and write `{name}.workspace = true`"
            );
            findings.push(Finding::new("shared-version", place, message));
        }
    });
    Ok(findings)
}

/// Calls `f` on each dependency of each dependency section, those of `[target.*]` included.
fn sections(table: &dyn TableLike, f: &mut dyn FnMut(&str, &str, &Item)) {
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        for (name, item) in table.get(section).and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter) {
            f(section, name, item);
        }
    }
    for (_, target) in table.get("target").and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter) {
        if let Some(target) = target.as_table_like() {
            sections(target, f);
        }
    }
}

fn root_manifest(text: &str) -> anyhow::Result<Vec<Finding>> {
    let place = "Cargo.toml";
    let document = parse(place, text)?;
    let mut findings = Vec::new();
    let package = document.get("workspace").and_then(|w| w.get("package")).and_then(Item::as_table_like);
    let text_of = |key: &str| package.and_then(|p| p.get(key)).and_then(Item::as_str).unwrap_or_default();
    for (key, expected) in [("edition", "2024"), ("license", "MIT")] {
        if text_of(key) != expected {
            findings.push(Finding::new("workspace", place, format!("`{key}` under [workspace.package] is \"{expected}\"")));
        }
    }
    if package.and_then(|p| p.get("publish")).and_then(Item::as_bool) != Some(false) {
        findings.push(Finding::new("workspace", place, "`publish = false` under [workspace.package] until a release is decided"));
    }
    let shared = document.get("workspace").and_then(|w| w.get("dependencies")).and_then(Item::as_table_like);
    for (name, item) in shared.into_iter().flat_map(TableLike::iter) {
        let key = |key: &str| item.as_table_like().and_then(|t| t.get(key));
        if key("git").is_some() || key("registry").is_some() {
            findings.push(Finding::new("source", place, format!("`{name}` must come from crates.io")));
        }
        if key("path").is_some() != name.starts_with("traderharness-") {
            findings.push(Finding::new("source", place, format!("`{name}`: only packages of this workspace have a path")));
        }
        let version = item.as_str().or_else(|| key("version").and_then(Item::as_str)).unwrap_or("path");
        if version.contains('*') {
            findings.push(Finding::new("source", place, format!("`{name}` needs a version without a star")));
        }
    }
    Ok(findings)
}

fn lock(text: &str) -> anyhow::Result<Vec<Finding>> {
    let place = "Cargo.lock";
    let document = parse(place, text)?;
    let packages = document.get("package").and_then(Item::as_array_of_tables);
    let mut findings = Vec::new();
    for package in packages.into_iter().flatten() {
        let name = package.get("name").and_then(Item::as_str).unwrap_or("?");
        if package.get("source").and_then(Item::as_str).is_some_and(|source| source != SOURCE) {
            findings.push(Finding::new("source", place, format!("`{name}` is not locked to crates.io")));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [package]
        name = "traderharness-x"
        description = "Something"
        version.workspace = true
        edition.workspace = true
        rust-version.workspace = true
        license.workspace = true
        repository.workspace = true
        publish.workspace = true
        [lints]
        workspace = true
        [dependencies]
        serde.workspace = true
        tokio = { workspace = true, features = ["time"] }
        [target.'cfg(unix)'.dependencies]
        nix.workspace = true
    "#;

    #[track_caller]
    fn check_manifest(from: &str, to: &str, expected: &[&str]) {
        assert!(GOOD.contains(from), "the case changes nothing");
        let found = manifest("x/Cargo.toml", &GOOD.replace(from, to)).expect("valid TOML");
        let rules: Vec<&str> = found.iter().map(|f| f.rule).collect();
        assert_eq!(rules, expected, "{found:#?}");
    }

    #[test]
    fn a_manifest_that_inherits_everything_passes() {
        check_manifest("name", "name", &[]);
    }

    #[test]
    fn what_is_not_inherited_is_found() {
        for key in INHERITED {
            check_manifest(&format!("\n        {key}.workspace = true"), "", &["inherit"]);
        }
        check_manifest("license.workspace = true", "license = \"GPL-3.0\"", &["inherit"]);
        check_manifest("publish.workspace = true", "publish = true", &["inherit"]);
        check_manifest("[lints]\n        workspace = true", "", &["inherit"]);
        check_manifest("description = \"Something\"", "", &["description"]);
    }

    #[test]
    fn a_version_outside_the_workspace_table_is_found() {
        check_manifest("serde.workspace = true", "serde = \"1\"", &["shared-version"]);
        check_manifest("nix.workspace = true", "nix = { version = \"0.32\" }", &["shared-version"]);
        check_manifest("[dependencies]", "[dev-dependencies.insta]\npath = \"../insta\"\n[dependencies]", &["shared-version"]);
    }

    #[test]
    fn the_root_manifest_and_the_lock_file_have_one_source() {
        let root = "[workspace.package]\nedition = \"2024\"\nlicense = \"MIT\"\npublish = false\n[workspace.dependencies]\n";
        assert_eq!(root_manifest(root).expect("valid TOML"), []);
        for bad in [
            "x = \"*\"",
            "x = { git = \"https://example.org/x\" }",
            "x = { path = \"x\" }",
            "x = { version = \"1\", registry = \"y\" }",
        ] {
            assert_eq!(root_manifest(&format!("{root}{bad}")).expect("valid TOML").len(), 1, "{bad}");
        }
        assert_eq!(root_manifest("[workspace]").expect("valid TOML").len(), 3);
        let locked = |source: &str| lock(&format!("[[package]]\nname = \"x\"\nsource = \"{source}\"")).expect("valid TOML").len();
        assert_eq!((locked(SOURCE), locked("registry+https://example.org/index")), (0, 1));
    }

    #[test]
    fn a_manifest_that_is_not_toml_is_an_error_that_names_it() {
        let fault = manifest("crates/x/Cargo.toml", "[package").expect_err("broken");
        assert!(fault.to_string().contains("crates/x/Cargo.toml"), "{fault}");
    }
}
