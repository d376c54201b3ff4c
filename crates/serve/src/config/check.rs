//! What is wrong with a configuration, all of it at once, each fault with its path.

use super::{CallerConfig, Profile, ServerConfig};
use crate::caller::SCOPE_TRADE;
use crate::manifest::Catalog;
use std::collections::{BTreeMap, BTreeSet};
use traderharness_contract::document::closest;
use traderharness_contract::{Document, Issue};
use traderharness_harness::written::{self, Format};
use traderharness_market::Day;

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is no JSON or YAML object.
    #[error("the configuration cannot be read: {fault}")]
    Syntax {
        /// What and where.
        fault: String,
    },
    /// Faulty fields.
    #[error("the configuration is faulty: {}", places(.issues))]
    Fields {
        /// Every fault, sorted by path.
        issues: Vec<Issue>,
    },
    /// The published schema is no schema. No configuration causes it.
    #[error("the schema of the configuration is faulty: {fault}")]
    Defect {
        /// What.
        fault: String,
    },
}

/// Every fault with the path of its field.
pub(crate) fn places(issues: &[Issue]) -> String {
    let one = |issue: &Issue| {
        let at = if issue.path.is_empty() { "the whole" } else { issue.path.as_str() };
        format!("{at}: {}", issue.message.trim_end_matches('.'))
    };
    issues.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl ServerConfig {
    /// The published schema of a configuration file, with the checker for it.
    ///
    /// # Errors
    /// [`ConfigError::Defect`].
    pub fn document() -> Result<Document, ConfigError> {
        Document::of::<Self>("the configuration").map_err(|fault| ConfigError::Defect { fault: fault.to_string() })
    }

    /// Reads a configuration file and checks it. Datasets and the days of profiles are checked when a house opens over them.
    ///
    /// # Errors
    /// [`ConfigError`] naming every faulty field.
    pub fn read(text: &str, format: Format) -> Result<Self, ConfigError> {
        let syntax = |fault: String| ConfigError::Syntax { fault };
        let value = written::read(text, format).map_err(|fault| syntax(fault.to_string()))?;
        let issues = Self::document()?.issues(&value);
        if !issues.is_empty() {
            return Err(ConfigError::Fields { issues });
        }
        let config: Self = serde_json::from_value(value).map_err(|fault| syntax(fault.to_string()))?;
        let mut issues = config.faults();
        for (i, caller) in config.callers.iter().enumerate() {
            if caller.token_sha256.is_some() == caller.token_env.is_some() {
                let message = "exactly one of token_sha256 and token_env says how the caller proves who it is";
                issues.push(Issue::new(format!("/callers/{i}"), message));
            }
        }
        issues.sort();
        if issues.is_empty() { Ok(config) } else { Err(ConfigError::Fields { issues }) }
    }

    /// What a schema cannot say: names that come twice, names that name nothing, days that are none.
    pub fn faults(&self) -> Vec<Issue> {
        let mut faults = Faults::default();
        let catalog = match Catalog::standard() {
            Ok(catalog) => catalog,
            Err(fault) => {
                faults.add("", fault.to_string());
                return faults.found;
            }
        };
        if self.profiles.is_empty() {
            faults.add("/profiles", "at least one profile is needed: a session is made of one");
        }
        faults.unique("/profiles", "name", self.profiles.iter().map(|p| p.name.as_str()));
        for (i, profile) in self.profiles.iter().enumerate() {
            faults.profile(&format!("/profiles/{i}"), profile);
        }
        faults.unique("/callers", "id", self.callers.iter().map(|c| c.id.as_str()));
        let mut digests = BTreeMap::new();
        for (i, caller) in self.callers.iter().enumerate() {
            let at = format!("/callers/{i}");
            if let Some(digest) = &caller.token_sha256
                && let Some(first) = digests.insert(digest.as_str(), i)
            {
                faults.add(
                    format!("{at}/token_sha256"),
                    format!("the token is that of /callers/{first} too; each caller needs its own"),
                );
            }
            faults.caller(&at, caller, self, &catalog);
        }
        for (i, name) in self.disabled.iter().enumerate() {
            faults.capability(format!("/disabled/{i}"), name, &catalog);
        }
        faults.found.sort();
        faults.found
    }
}

#[derive(Default)]
struct Faults {
    found: Vec<Issue>,
}

impl Faults {
    fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.found.push(Issue::new(path, message));
    }

    fn unique<'n>(&mut self, list: &str, field: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen = BTreeMap::new();
        for (i, name) in names.enumerate() {
            if let Some(first) = seen.insert(name, i) {
                self.add(format!("{list}/{i}/{field}"), format!("the {field} of {list}/{first} again"));
            }
        }
    }

    /// A name that must be one of a list; the nearest one is said.
    fn one_of(&mut self, path: String, name: &str, what: &str, all: &[&str]) {
        if !all.contains(&name) {
            let near = closest(name, all).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            self.add(path, format!("there is no {what} of this name{near}"));
        }
    }

    fn capability(&mut self, path: String, name: &str, catalog: &Catalog) {
        let names: Vec<&str> = catalog.all().iter().map(|c| c.name.as_str()).collect();
        self.one_of(path, name, "capability", &names);
    }

    fn profile(&mut self, at: &str, profile: &Profile) {
        let start = Day::parse(&profile.start);
        let end = profile.end.as_deref().map(Day::parse);
        if let Err(fault) = &start {
            self.add(format!("{at}/start"), fault.to_string());
        }
        if let Some(Err(fault)) = &end {
            self.add(format!("{at}/end"), fault.to_string());
        }
        if let (Ok(start), Some(Ok(end))) = (start, end)
            && end < start
        {
            self.add(format!("{at}/end"), "the last day is before the first");
        }
        if let Err(fault) = profile.card.check() {
            self.add(format!("{at}/card"), fault.to_string());
        }
    }

    fn caller(&mut self, at: &str, caller: &CallerConfig, config: &ServerConfig, catalog: &Catalog) {
        let profiles: Vec<&str> = config.profiles.iter().map(|p| p.name.as_str()).collect();
        if let Some(name) = &caller.profile {
            self.one_of(format!("{at}/profile"), name, "profile", &profiles);
        }
        for (i, name) in caller.profiles.iter().enumerate() {
            self.one_of(format!("{at}/profiles/{i}"), name, "profile", &profiles);
        }
        let groups: BTreeSet<String> =
            catalog.all().iter().filter_map(|c| c.name.split_once('.')).map(|(group, _)| format!("{group}.*")).collect();
        let scopes: Vec<&str> = catalog
            .all()
            .iter()
            .flat_map(|c| c.scopes.iter().map(String::as_str))
            .chain(groups.iter().map(String::as_str))
            .chain(["*", SCOPE_TRADE])
            .collect();
        for (i, scope) in caller.grants.iter().enumerate() {
            self.one_of(format!("{at}/grants/{i}"), scope, "scope", &scopes);
        }
        let sources: Vec<&str> = catalog.all().iter().flat_map(|c| c.sources.iter().map(String::as_str)).chain(["*"]).collect();
        for (i, source) in caller.data_rights.iter().enumerate() {
            self.one_of(format!("{at}/data_rights/{i}"), source, "source", &sources);
        }
        self.unique(&format!("{at}/agent_revisions"), "id", caller.agent_revisions.iter().map(|r| r.id.as_str()));
        for (i, revision) in caller.agent_revisions.iter().enumerate() {
            for name in revision.pins.keys() {
                self.capability(format!("{at}/agent_revisions/{i}/pins/{name}"), name, catalog);
            }
        }
    }
}
