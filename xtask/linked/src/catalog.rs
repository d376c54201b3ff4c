//! The generated pages: in `docs/catalog` one page per tool, the table of error codes, what agent code can
//! ask for, an index, and everything as JSON; in `docs/rules.md` the dated market rules;
//! in `docs/*.schema.json` the schemas of cards, plug-in manifests and server configurations; in `docs/openapi.json` the HTTP door.
//!
//! Pages are rendered from the contracts that the tools publish, from the docstrings of the Python module, from the rule table, and
//! from nothing else, so they cannot say what the code does not. Never edit a page: change the tool or the rule and run `cargo xtask catalog`.

mod api_page;
mod code_page;
mod index;
mod rules_page;
mod tool_page;
mod version_page;

use crate::names;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use traderharness_connect::plugin::Manifest;
use traderharness_contract::{Definition, Document, Policy};
use traderharness_harness::Card;
use traderharness_serve::ServerConfig;
use traderharness_serve::http::document::published;

/// Command that a stale page asks for.
pub(crate) const COMMAND: &str = "cargo xtask catalog";

/// First line of each page.
const PREAMBLE: &str =
    "<!-- Written by `cargo xtask catalog` from the contracts of the tools. Change the tool, not this page. -->\n\n";

/// First line of the page on `traderharness_api`.
const API_PREAMBLE: &str =
    "<!-- Written by `cargo xtask catalog` from crates/sandbox-worker/python/api.py. Change that, not this page. -->\n\n";

/// A card switch: its name in a card, and how to turn it on.
type Switch = (&'static str, fn(&mut Policy));

/// Card switches that may change a schema.
const SWITCHES: &[Switch] = &[
    ("require_structured_plan", |policy| policy.require_structured_plan = true),
    ("require_decision_card", |policy| policy.require_decision_card = true),
    ("masked_codes", |policy| policy.masked_codes = true),
];

/// One tool as the catalog shows it.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Contract under the default policy.
    pub(crate) definition: Definition,
    /// Contract under each card switch that changes the input schema.
    pub(crate) switched: Vec<(&'static str, Definition)>,
}

impl Entry {
    fn of(define: fn(&Policy) -> Definition) -> Self {
        let definition = define(&Policy::default());
        let under = |set: fn(&mut Policy)| {
            let mut policy = Policy::default();
            set(&mut policy);
            define(&policy)
        };
        let switched = SWITCHES.iter().map(|(name, set)| (*name, under(*set)));
        let switched = switched.filter(|(_, other)| other.input_schema != definition.input_schema).collect();
        Self { definition, switched }
    }

    fn name(&self) -> &'static str {
        self.definition.spec.name
    }
}

/// Every tool, in catalog order. The one place that says where tools come from.
pub(crate) fn entries() -> Vec<Entry> {
    let read = traderharness_tools_market::tools().into_iter().map(|handler| handler.define);
    let account = traderharness_tools_exec::tools().into_iter().map(|handler| handler.define);
    let mut entries: Vec<Entry> = read.chain(account).map(Entry::of).collect();
    entries.sort_by_key(|entry| (names::place(entry.name()), entry.name()));
    entries
}

/// File name and text of each page.
pub(crate) type Pages = BTreeMap<String, String>;

/// Renders the whole catalog.
pub(crate) fn render(entries: &[Entry]) -> anyhow::Result<Pages> {
    let mut pages = Pages::new();
    for entry in entries {
        pages.insert(format!("{}.md", entry.name()), format!("{PREAMBLE}{}", tool_page::render(entry)));
    }
    pages.insert("README.md".into(), format!("{PREAMBLE}{}", index::markdown(entries)));
    pages.insert("codes.md".into(), format!("{PREAMBLE}{}", code_page::render(entries)));
    pages.insert("versions.md".into(), format!("{PREAMBLE}{}", version_page::render()));
    pages.insert("traderharness_api.md".into(), format!("{API_PREAMBLE}{}", api_page::render()?));
    pages.insert("catalog.json".into(), index::json(entries)?);
    Ok(pages)
}

/// What the folder and the rendered pages disagree on: file name, and what is wrong with it.
pub(crate) fn stale(folder: &Path, pages: &Pages) -> anyhow::Result<BTreeMap<String, &'static str>> {
    let mut stale = BTreeMap::new();
    for (name, text) in pages {
        match std::fs::read_to_string(folder.join(name)) {
            Ok(found) if found == *text => {}
            Ok(_) => _ = stale.insert(name.clone(), "differs"),
            Err(_) => _ = stale.insert(name.clone(), "missing"),
        }
    }
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !pages.contains_key(&name) {
                stale.insert(name, "of no tool");
            }
        }
    }
    Ok(stale)
}

/// Makes the folder hold the pages and nothing else.
fn write(folder: &Path, pages: &Pages, stale: &BTreeMap<String, &'static str>) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for name in stale.keys() {
        let path = folder.join(name);
        match pages.get(name) {
            Some(text) => std::fs::write(&path, text),
            None => std::fs::remove_file(&path),
        }
        .with_context(|| format!("cannot change {}", path.display()))?;
    }
    Ok(())
}

/// `docs/catalog` as it should be, and where.
pub(crate) fn current(root: &Path) -> anyhow::Result<(std::path::PathBuf, Pages)> {
    Ok((root.join("docs/catalog"), render(&entries())?))
}

/// Generated files outside the catalog's folder, with their texts: the market rules, and the schemas of files that people write.
fn others() -> anyhow::Result<Vec<(&'static str, String)>> {
    let schema = |document: &Document| serde_json::to_string_pretty(&document.published()).map(|text| text + "\n");
    Ok(vec![
        ("docs/rules.md", rules_page::render()),
        ("docs/card.schema.json", schema(&Card::document()?)?),
        ("docs/plugins.schema.json", schema(&Manifest::document()?)?),
        ("docs/server.schema.json", schema(&ServerConfig::document()?)?),
        ("docs/sft.schema.json", serde_json::to_string_pretty(&traderharness_replay::export::sft_schema())? + "\n"),
        ("docs/rl.schema.json", serde_json::to_string_pretty(&traderharness_replay::export::rl_schema())? + "\n"),
        ("docs/openapi.json", serde_json::to_string_pretty(&published()?)? + "\n"),
    ])
}

/// Those of [`others`] whose file is not their text.
fn stale_others(root: &Path) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut others = others()?;
    others.retain(|(path, text)| !std::fs::read_to_string(root.join(path)).is_ok_and(|found| found == *text));
    Ok(others)
}

/// Writes the pages, or with `check` only says whether they are current.
pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<ExitCode> {
    let others = stale_others(root)?;
    for (path, text) in &others {
        println!("{path}: differs");
        if !check {
            std::fs::write(root.join(path), text).with_context(|| format!("cannot change {path}"))?;
        }
    }
    if check && !others.is_empty() {
        println!("catalog: {} files beside the catalog are stale; run `{COMMAND}` and commit the result", others.len());
        return Ok(ExitCode::from(1));
    }
    let (folder, pages) = current(root)?;
    let stale = stale(&folder, &pages)?;
    for (name, state) in &stale {
        println!("docs/catalog/{name}: {state}");
    }
    let all = pages.len();
    if stale.is_empty() {
        println!("catalog: {all} files are current");
    } else if check {
        println!("catalog: {} of {all} files are stale; run `{COMMAND}` and commit the result", stale.len());
        return Ok(ExitCode::from(1));
    } else {
        write(&folder, &pages, &stale)?;
        println!("catalog: wrote {} of {all} files; review them as a diff", stale.len());
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod sample;

#[cfg(test)]
pub(crate) use sample::entry as sample;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_catalog_is_current() {
        let (folder, pages) = current(&crate::workspace_root()).expect("the catalog renders");
        let stale = stale(&folder, &pages).expect("the folder can be read");
        assert!(stale.is_empty(), "run `{COMMAND}`: {stale:#?}");
    }

    #[test]
    fn the_committed_rules_and_schemas_are_current() {
        let stale: Vec<&str> =
            stale_others(&crate::workspace_root()).expect("they render").into_iter().map(|(path, _)| path).collect();
        assert!(stale.is_empty(), "run `{COMMAND}`: {stale:?}");
    }

    #[test]
    fn pages_that_are_missing_changed_or_left_over_are_stale_until_written() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let folder = folder.path().join("catalog");
        let pages = render(&[sample::entry()]).expect("the sample renders");
        assert_eq!(stale(&folder, &pages).expect("no folder yet").len(), pages.len());
        let all = stale(&folder, &pages).expect("no folder yet");
        write(&folder, &pages, &all).expect("can write");
        assert!(stale(&folder, &pages).expect("readable").is_empty());

        std::fs::write(folder.join("codes.md"), "edited").expect("can write");
        std::fs::write(folder.join("get_gone.md"), "left over").expect("can write");
        let found = stale(&folder, &pages).expect("readable");
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("codes.md".to_owned(), "differs"), ("get_gone.md".to_owned(), "of no tool")]
        );
    }

    #[test]
    fn a_switch_is_shown_only_where_it_changes_the_schema() {
        let names: Vec<&str> = sample::entry().switched.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["require_structured_plan"]);
    }
}
