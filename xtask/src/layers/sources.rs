//! Root files of crates: they say what the crate does not know, and those that must not touch the host deny the bans of `clippy.toml`.

use super::table::DENYING;
use super::workspace::Workspace;
use crate::finding::Finding;
use anyhow::Context as _;

/// Lints that a pure crate denies in its root file; they are off for the rest of the workspace.
const DENIED: &[&str] = &["clippy::disallowed_methods", "clippy::disallowed_types"];

/// A crate's text must have one of these words: it has to say what the crate does not know or never does.
const LIMITS: &[&str] = &["no", "not", "never", "nothing", "none", "neither", "nor", "without", "cannot"];

/// Checks the root file of every package.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let Some(root_file) = &package.root_file else { continue };
        let path = workspace.root.join(&package.folder).join(root_file);
        let place = format!("{}/{}", package.folder, root_file.to_string_lossy().replace('\\', "/"));
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {place}"))?;
        findings.extend(says_its_limits(&place, &text));
        if DENYING.contains(&package.short()) {
            findings.extend(denies_the_bans(&place, &text));
        }
    }
    Ok(findings)
}

/// The text before the first item, without `//!`, up to the end of the second paragraph.
fn opening(text: &str) -> String {
    let doc = text.lines().map(str::trim).take_while(|line| line.starts_with("//!"));
    let doc: Vec<&str> = doc.map(|line| line.trim_start_matches("//!").trim()).collect();
    doc.split(|line| line.is_empty())
        .filter(|paragraph| !paragraph.is_empty())
        .take(2)
        .flatten()
        .copied()
        .collect::<Vec<_>>()
        .join(" ")
}

fn says_its_limits(place: &str, text: &str) -> Option<Finding> {
    let opening = opening(text).to_lowercase();
    let words = opening.split(|c: char| !c.is_alphabetic());
    let says = words.into_iter().any(|word| LIMITS.contains(&word));
    (!says).then(|| {
        let message =
            "the first two paragraphs of the crate's text must say what it is for and what it does not know or never does";
        Finding::new("crate-text", format!("{place}:1"), message)
    })
}

fn denies_the_bans(place: &str, text: &str) -> Vec<Finding> {
    let attributes: String =
        text.lines().map(str::trim).filter(|line| line.starts_with("#![deny(") || line.starts_with("#![forbid(")).collect();
    let missing = DENIED.iter().filter(|lint| !attributes.contains(*lint));
    missing.map(|lint| Finding::new("bans", place, format!("this crate must have `#![deny({lint})]` in its root file"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn the_opening_must_name_a_limit() {
        let check = |text: &str, ok: bool| assert_eq!(says_its_limits("lib.rs", text).is_none(), ok, "{text}");
        check("//! Reads bars.\n//!\n//! It opens no file.\nfn a() {}", true);
        check("//! Reads bars and never writes.\n", true);
        check("//! Reads bars.\n", false);
        check("//! Reads bars. A note on another thing.\n", false);
        check("//! One.\n//!\n//! Two.\n//!\n//! Third: no.\n", false);
        check("use a;\n//! no\n", false);
    }

    #[test]
    fn a_pure_crate_without_the_deny_line_is_found() {
        let check = |text: &str, expected: usize| assert_eq!(denies_the_bans("lib.rs", text).len(), expected, "{text}");
        check("#![deny(clippy::disallowed_methods, clippy::disallowed_types)]", 0);
        check("#![deny(clippy::disallowed_types)]", 1);
        check("// #![deny(clippy::disallowed_methods, clippy::disallowed_types)]", 2);
    }

    /// Every entry of `clippy.toml` fires on the call that it forbids: a path that clippy cannot resolve is silently dead.
    #[test]
    fn every_ban_fires_in_a_crate_that_denies_it() {
        let root = crate::steps::workspace_root();
        let config = std::fs::read_to_string(root.join("clippy.toml")).expect("clippy.toml");
        let listed: BTreeSet<String> = quoted_paths(&config).filter(|path| path.starts_with("std::")).collect();
        assert!(listed.len() > 60, "the list of bans has shrunk to {}", listed.len());
        let out = tempfile::tempdir().expect("temporary folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/banned.rs");
        let driver = std::process::Command::new("clippy-driver")
            .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--error-format", "short"])
            .args(["-D", "clippy::disallowed_methods", "-D", "clippy::disallowed_types", "-A", "unused"])
            .arg("--out-dir")
            .arg(out.path())
            .arg(source)
            .env("CLIPPY_CONF_DIR", &root)
            .output();
        let Ok(driver) = driver else {
            println!("clippy is not installed: the bans were not tried");
            return;
        };
        let said = String::from_utf8_lossy(&driver.stderr);
        let fired: BTreeSet<String> =
            said.lines().filter_map(|line| line.split("disallowed ").nth(1)?.split('`').nth(1).map(str::to_owned)).collect();
        let dead: Vec<&String> = listed.difference(&fired).collect();
        assert!(dead.is_empty(), "these bans did not fire: {dead:#?}\nclippy said:\n{said}");
    }

    fn quoted_paths(config: &str) -> impl Iterator<Item = String> {
        config.lines().filter_map(|line| line.trim().strip_prefix("{ path = \"")?.split('"').next().map(str::to_owned))
    }
}
