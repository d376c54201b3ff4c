//! The registry: which tools there are, where each comes from, and the gates between being registered and being offered.
//!
//! Nothing is lost silently (complaint RG-1): a name that two sources give is a start-up error that names both, a tool that a gate
//! hides keeps its reason, and a source that failed keeps what it would have given. The contract tools have no gate: they are always
//! there and answer for themselves when they cannot serve (spec/seeds.md D8).

use crate::plugin::ExternalTool;
use crate::toolbox::{Bound, ToolboxError, handlers};
use crate::{Card, Contract, Toolbox};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use traderharness_contract::{Definition, Effect, Family, Handler, Policy, SchemaFault, Tool};
use traderharness_tools_exec::ExecTools;
use traderharness_tools_market::MarketTools;

/// Source of the contract tools.
pub const STANDARD: &str = "traderharness";

/// What the host lets tools have. The default allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Tools may change something outside of the session (spec/seeds.md B2.5).
    pub host_effects: bool,
    /// What else the host has, in words that its tools' availability gates know: `news-feed`, `gpu`.
    pub provides: BTreeSet<String>,
}

/// A family of tools that the harness can serve.
pub trait Served: Family + Sized {
    /// The handler in the form the toolbox holds.
    fn bind(handler: Handler<Self>) -> Bound;
}

impl Served for MarketTools {
    fn bind(handler: Handler<Self>) -> Bound {
        Bound::Market(handler)
    }
}

impl Served for ExecTools {
    fn bind(handler: Handler<Self>) -> Bound {
        Bound::Exec(handler)
    }
}

/// `Ok` when the tool can work under this host; otherwise the reason, one sentence.
pub type Gate = Arc<dyn Fn(&HostFacts) -> Result<(), String> + Send + Sync>;

/// One tool with where it comes from and its gates.
#[derive(Clone)]
pub struct Entry {
    bound: Bound,
    source: String,
    available: Option<Gate>,
    host_effects: bool,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.bound.spec().name).field("source", &self.source).finish_non_exhaustive()
    }
}

impl Entry {
    /// A tool of a crate. `source` says which: it stands in errors about it.
    pub fn of<T: Tool<Family: Served>>(source: impl Into<String>) -> Self {
        Self::bound(source, Served::bind(Handler::of::<T>()))
    }

    /// A plug-in tool. One that changes something needs a host that allows it.
    pub fn external(tool: ExternalTool) -> Self {
        let host_effects = tool.spec().effect == Effect::Mutation;
        let source = tool.source().to_owned();
        Self { host_effects, ..Self::bound(source, Bound::External(Arc::new(tool))) }
    }

    pub(crate) fn bound(source: impl Into<String>, bound: Bound) -> Self {
        Self { bound, source: source.into(), available: None, host_effects: false }
    }

    /// Offers the tool only where the gate lets it; elsewhere it is hidden and its reason can be asked for.
    #[must_use]
    pub fn available_if(mut self, gate: impl Fn(&HostFacts) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.available = Some(Arc::new(gate));
        self
    }

    /// The tool changes something outside of the session: it is offered only where the host allows that.
    #[must_use]
    pub const fn with_host_effects(mut self) -> Self {
        self.host_effects = true;
        self
    }

    /// Name of the tool.
    pub fn name(&self) -> &'static str {
        self.bound.spec().name
    }

    /// The contract under a policy, for reviews and tests.
    ///
    /// # Errors
    /// As [`Bound::define`].
    pub fn define(&self, policy: &Policy) -> Result<Definition, SchemaFault> {
        self.bound.define(policy)
    }

    fn hidden(&self, host: &HostFacts) -> Option<HiddenReason> {
        if self.host_effects && !host.host_effects {
            return Some(HiddenReason::HostPolicy);
        }
        let gate = self.available.as_ref()?;
        gate(host).err().map(HiddenReason::Unavailable)
    }
}

/// Why a registered tool is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HiddenReason {
    /// It has effects outside of the session and the host does not allow those.
    HostPolicy,
    /// Its own gate says no: the reason.
    Unavailable(String),
}

impl HiddenReason {
    /// Stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::HostPolicy => "host_policy",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

impl std::fmt::Display for HiddenReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::HostPolicy => f.write_str("the host does not allow tools with effects outside of the session"),
            Self::Unavailable(reason) => f.write_str(reason),
        }
    }
}

/// A tool that a gate hides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// Tool.
    pub name: &'static str,
    /// Where it comes from.
    pub source: String,
    /// Why.
    pub reason: HiddenReason,
}

/// A source that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFailure {
    /// The source: `mcp server news`.
    pub source: String,
    /// Why.
    pub reason: String,
    /// Names it would have given, as far as they are known.
    pub names: Vec<String>,
    /// Start that all of its names have; empty when they have none in common.
    pub prefix: String,
}

impl SourceFailure {
    /// True when the failed source would have, or might have, given this name.
    pub fn covers(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name) || (!self.prefix.is_empty() && name.starts_with(&self.prefix))
    }
}

/// Tools by name, and what could not be loaded.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    entries: Vec<Entry>,
    failures: Vec<SourceFailure>,
}

impl Registry {
    /// The contract tools, in catalog order.
    pub fn standard() -> Self {
        Self::of(handlers())
    }

    pub(crate) fn of(handlers: Vec<Bound>) -> Self {
        let ours: BTreeMap<&str, usize> = self::handlers().iter().map(|b| (b.spec().name, b.spec().description.len())).collect();
        let entries = handlers.into_iter().map(|bound| {
            let spec = bound.spec();
            let source = if ours.get(spec.name) == Some(&spec.description.len()) { STANDARD } else { "the host" };
            match bound {
                Bound::External(tool) => Entry {
                    host_effects: tool.spec().effect == Effect::Mutation,
                    ..Entry::bound(tool.source().to_owned(), Bound::External(tool))
                },
                bound => Entry::bound(source, bound),
            }
        });
        Self { entries: entries.collect(), failures: Vec::new() }
    }

    /// Adds a tool after those that are there.
    ///
    /// # Errors
    /// [`ToolboxError::Duplicate`] naming both sources (spec/seeds.md A3.1).
    pub fn add(&mut self, entry: Entry) -> Result<(), ToolboxError> {
        if let Some(first) = self.entries.iter().find(|e| e.name() == entry.name()) {
            return Err(duplicate(first, &entry));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// As [`Registry::add`], for a chain.
    ///
    /// # Errors
    /// As [`Registry::add`].
    pub fn with(mut self, entry: Entry) -> Result<Self, ToolboxError> {
        self.add(entry)?;
        Ok(self)
    }

    /// Notes a source that could not be loaded, so that a call of one of its tools is told why.
    pub fn source_failed(&mut self, failure: SourceFailure) {
        self.failures.push(failure);
    }

    /// Every tool, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Compiles the tools for a card under what the host allows.
    ///
    /// # Errors
    /// [`ToolboxError`]: duplicates, a contract that the audit refuses, tools that the card names and nobody has.
    pub fn build(&self, card: &Card, masked_codes: bool, host: &HostFacts) -> Result<Toolbox, ToolboxError> {
        self.build_under(&Contract::default(), card, masked_codes, host)
    }

    /// As [`Registry::build`], under a contract version.
    ///
    /// # Errors
    /// As [`Registry::build`].
    pub fn build_under(
        &self,
        contract: &Contract,
        card: &Card,
        masked_codes: bool,
        host: &HostFacts,
    ) -> Result<Toolbox, ToolboxError> {
        let mut seen: BTreeMap<&str, &Entry> = BTreeMap::new();
        let mut shown = Vec::new();
        let mut hidden = Vec::new();
        for entry in &self.entries {
            if let Some(first) = seen.insert(entry.name(), entry) {
                return Err(duplicate(first, entry));
            }
            match entry.hidden(host) {
                Some(reason) => hidden.push(Hidden { name: entry.name(), source: entry.source.clone(), reason }),
                None => shown.push((entry.bound.clone(), entry.source.as_str())),
            }
        }
        Toolbox::compile(contract, card, masked_codes, shown, hidden, self.failures.clone())
    }
}

fn duplicate(first: &Entry, second: &Entry) -> ToolboxError {
    ToolboxError::Duplicate { name: first.name().to_owned(), first: first.source.clone(), second: second.source.clone() }
}
