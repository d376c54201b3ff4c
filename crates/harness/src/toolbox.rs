//! The tools of a run: every handler with its definition under the card's policy, and the subset the card enables.

use crate::Card;
use crate::card::{Advisor, CardError};
use crate::plugin::ExternalTool;
use crate::registry::{Hidden, HostFacts, Registry, STANDARD, SourceFailure};
use crate::versions::Contract;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use traderharness_contract::audit::{Check, Finding, audit};
use traderharness_contract::{Definition, Effect, ErrorCode, Group, Handler, Policy, SchemaFault, ToolFailure, ToolSpec};
use traderharness_tools_exec::ExecTools;
use traderharness_tools_market::MarketTools;

/// A handler of either family, or a tool outside this process.
#[derive(Debug, Clone)]
pub enum Bound {
    /// A read tool.
    Market(Handler<MarketTools>),
    /// An account tool.
    Exec(Handler<ExecTools>),
    /// A plug-in tool.
    External(Arc<ExternalTool>),
}

impl Bound {
    /// Published data.
    pub fn spec(&self) -> &'static ToolSpec {
        match self {
            Self::Market(h) => h.spec,
            Self::Exec(h) => h.spec,
            Self::External(tool) => tool.spec(),
        }
    }

    /// Whether equal arguments give an equal answer whenever they are sent, as the host says of a plug-in tool. The tools of the
    /// contract are not: they look at clock and account.
    pub fn is_deterministic(&self) -> bool {
        matches!(self, Self::External(tool) if tool.is_deterministic())
    }

    /// The contract under a policy.
    ///
    /// # Errors
    /// [`SchemaFault`] of a plug-in tool's written schemas; its construction found it first.
    pub fn define(&self, policy: &Policy) -> Result<Definition, SchemaFault> {
        match self {
            Self::Market(h) => Ok((h.define)(policy)),
            Self::Exec(h) => Ok((h.define)(policy)),
            Self::External(tool) => tool.define(policy),
        }
    }
}

/// One tool of a run.
#[derive(Debug)]
pub struct BoundTool {
    /// Handler.
    pub bound: Bound,
    /// Contract under the run's policy.
    pub definition: Definition,
    /// Offered by this card.
    pub enabled: bool,
    /// What a model gets in place of the definition, under an earlier contract version.
    pub(crate) offer: Option<Value>,
}

impl BoundTool {
    /// The definition as a model gets it.
    pub fn offered_definition(&self) -> Value {
        self.offer.clone().unwrap_or_else(|| self.definition.to_openai())
    }
}

/// Every handler there is, in catalog order.
pub fn handlers() -> Vec<Bound> {
    let market = traderharness_tools_market::tools().into_iter().map(Bound::Market);
    let exec = traderharness_tools_exec::tools().into_iter().map(Bound::Exec);
    let mut all: Vec<Bound> = market.chain(exec).collect();
    all.sort_by_key(|b| b.spec().group); // stable: order inside a group is the family's
    all
}

/// Definitions of every tool under a policy, in catalog order; for the catalog and the audit.
pub fn definitions(policy: &Policy) -> Vec<Definition> {
    handlers().iter().filter_map(|b| b.define(policy).ok()).collect()
}

/// Start-up faults of a toolbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolboxError {
    /// Two tools have one name (complaint RG-1: never silently one of them).
    #[error("two tools are named `{name}`: one comes from {first}, one from {second}")]
    Duplicate {
        /// Name.
        name: String,
        /// Where the first comes from.
        first: String,
        /// Where the second comes from.
        second: String,
    },
    /// A contract that a model would stumble over.
    #[error("the contract of `{name}` from {from} is faulty: {}", words(.findings))]
    Contract {
        /// Tool.
        name: String,
        /// Where it comes from.
        from: String,
        /// Findings of the audit, sorted.
        findings: Vec<Finding>,
    },
    /// Neither code nor a pack says how this contract's tools are offered.
    #[error("defect: contract {name} has no pack")]
    NoPack {
        /// The contract.
        name: String,
    },
    /// A schema that is none.
    #[error(transparent)]
    Schema(#[from] SchemaFault),
    /// The card names tools that do not exist.
    #[error(transparent)]
    Card(#[from] CardError),
}

fn words(findings: &[Finding]) -> String {
    findings.iter().map(|f| format!("{}: {}", f.place, f.detail)).collect::<Vec<_>>().join("; ")
}

/// The tools of a run. Shared between sessions of one card.
#[derive(Debug)]
pub struct Toolbox {
    contract: Contract,
    tools: Vec<BoundTool>,
    by_name: BTreeMap<&'static str, usize>,
    hidden: Vec<Hidden>,
    failures: Vec<SourceFailure>,
}

impl Toolbox {
    /// Compiles every contract tool for the card.
    ///
    /// # Errors
    /// [`ToolboxError`].
    pub fn new(card: &Card, masked_codes: bool) -> Result<Self, ToolboxError> {
        Registry::standard().build(card, masked_codes, &HostFacts::default())
    }

    /// As [`Toolbox::new`], over these handlers. [`Registry`] says more about tools of one's own: where they come from, and when they
    /// are there.
    ///
    /// # Errors
    /// [`ToolboxError`]; a duplicate name is an error, never silently one of the two.
    pub fn with_handlers(card: &Card, masked_codes: bool, handlers: Vec<Bound>) -> Result<Self, ToolboxError> {
        Registry::of(handlers).build(card, masked_codes, &HostFacts::default())
    }

    /// As [`Toolbox::new`], under a contract version.
    ///
    /// # Errors
    /// [`ToolboxError`].
    pub fn under(contract: &Contract, card: &Card, masked_codes: bool) -> Result<Self, ToolboxError> {
        Registry::standard().build_under(contract, card, masked_codes, &HostFacts::default())
    }

    pub(crate) fn compile(
        contract: &Contract,
        card: &Card,
        masked_codes: bool,
        mut shown: Vec<(Bound, &str)>,
        hidden: Vec<Hidden>,
        failures: Vec<SourceFailure>,
    ) -> Result<Self, ToolboxError> {
        if contract.is_wordless() {
            return Err(ToolboxError::NoPack { name: contract.name().to_owned() });
        }
        shown.sort_by_key(|(bound, _)| contract.place(bound.spec().name)); // stable
        let policy = contract.policy(card, masked_codes);
        let by_name: BTreeMap<&'static str, usize> = shown.iter().enumerate().map(|(i, (b, _))| (b.spec().name, i)).collect();
        // A name that is hidden or lost is no mistake of the card: the session starts, and a call of it is told why.
        let known = |name: &str| {
            by_name.contains_key(name) || hidden.iter().any(|h| h.name == name) || failures.iter().any(|f| f.covers(name))
        };
        let mut unknown: Vec<String> = card.allowed_tools.iter().filter(|name| !known(name)).cloned().collect();
        unknown.sort();
        unknown.dedup();
        if !unknown.is_empty() {
            return Err(CardError::UnknownTools { names: unknown }.into());
        }
        for advisor in card.committee.iter().flat_map(|c| &c.advisors) {
            check_advisor(advisor, &shown, &known)?;
        }
        let mut tools = Vec::with_capacity(shown.len());
        for (bound, source) in shown {
            let definition = bound.define(&policy)?;
            // Those of the contract are audited in its own tests, those of plug-ins when they are declared.
            if source != STANDARD && !matches!(bound, Bound::External(_)) {
                let mut findings = audit(&definition);
                findings.retain(|f| f.check != Check::Wording);
                if !findings.is_empty() {
                    let name = bound.spec().name.to_owned();
                    return Err(ToolboxError::Contract { name, from: source.to_owned(), findings });
                }
            }
            let spec = bound.spec();
            let enabled = contract.enables(card, spec, source == STANDARD);
            let offer = contract.definition(spec.name);
            tools.push(BoundTool { bound, definition, enabled, offer });
        }
        Ok(Self { contract: contract.clone(), tools, by_name, hidden, failures })
    }

    /// Tools of an advisor, in catalog order: those it names and the contract has, or every tool of the card that fetches evidence. None
    /// of them changes anything.
    pub fn of_advisor<'t>(&'t self, advisor: &'t Advisor) -> impl Iterator<Item = &'t BoundTool> {
        self.tools.iter().filter(|tool| {
            let spec = tool.bound.spec();
            match advisor.tools.as_slice() {
                [] => tool.enabled && spec.effect == Effect::Read,
                named => {
                    let named = named.iter().any(|name| name == spec.name);
                    named && spec.effect.is_read() && !self.contract.lacks(spec.name)
                }
            }
        })
    }

    /// The contract the tools are offered under.
    pub const fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Registered tools that a gate hides, with the reason of each.
    pub fn hidden(&self) -> &[Hidden] {
        &self.hidden
    }

    /// Sources that could not be loaded.
    pub fn failures(&self) -> &[SourceFailure] {
        &self.failures
    }

    /// Every tool that can be enabled, in order, offered by the card or not.
    pub fn all(&self) -> &[BoundTool] {
        &self.tools
    }

    /// Stops the plug-in calls that are running now.
    pub fn cancel_external(&self) {
        for tool in &self.tools {
            if let Bound::External(external) = &tool.bound {
                external.cancel();
            }
        }
    }

    /// The enabled tool of this name; `Err` tells whether it exists at all.
    pub(crate) fn resolve(&self, name: &str) -> Result<&BoundTool, bool> {
        match self.by_name.get(name) {
            Some(i) if self.tools[*i].enabled => Ok(&self.tools[*i]),
            Some(_) => Err(true),
            None => Err(false),
        }
    }

    /// The tool of this name, offered by the card or not.
    pub(crate) fn named(&self, name: &str) -> Option<&BoundTool> {
        self.by_name.get(name).map(|i| &self.tools[*i])
    }

    /// Why a tool that a card or a model may know is not there: hidden by a gate, or of a source that failed (complaint RG-1). `None` for
    /// a name nobody ever gave.
    pub(crate) fn absent(&self, name: &str) -> Option<ToolFailure> {
        if let Some(hidden) = self.hidden.iter().find(|h| h.name == name) {
            let message = format!("{name} is not available in this run: {}.", hidden.reason.to_string().trim_end_matches('.'));
            let failure = ToolFailure::new(ErrorCode::EnvironmentUnavailable, message, "Use one of available_tools.");
            return Some(failure.with("hidden_by", hidden.reason.code()));
        }
        let failed = self.failures.iter().find(|f| f.covers(name) && !self.by_name.contains_key(name))?;
        let reason = failed.reason.trim_end_matches('.');
        let message = format!("{name} is not available in this run: its source, {}, failed to load: {reason}.", failed.source);
        let failure = ToolFailure::new(ErrorCode::EnvironmentUnavailable, message, "Use one of available_tools.");
        Some(failure.with("failed_source", failed.source.as_str()).with_facts(self.incomplete()))
    }

    /// Facts for the answer about an unknown name when start-up lost something (spec/seeds.md B2.8).
    pub(crate) fn incomplete(&self) -> serde_json::Map<String, Value> {
        let mut facts = serde_json::Map::new();
        if !self.failures.is_empty() {
            facts.insert("registry_incomplete".into(), true.into());
            facts.insert("registry_failure_count".into(), self.failures.len().into());
        }
        facts
    }

    /// Enabled tools, in catalog order.
    pub fn enabled(&self) -> impl Iterator<Item = &BoundTool> {
        self.tools.iter().filter(|t| t.enabled)
    }
}

fn check_advisor(advisor: &Advisor, shown: &[(Bound, &str)], known: &dyn Fn(&str) -> bool) -> Result<(), CardError> {
    let sorted = |faulty: &dyn Fn(&str) -> bool| {
        let mut names: Vec<String> = advisor.tools.iter().filter(|name| faulty(name)).cloned().collect();
        names.sort();
        names.dedup();
        names
    };
    let names = sorted(&|name| !known(name));
    if !names.is_empty() {
        return Err(CardError::UnknownAdvisorTools { role: advisor.role.clone(), names });
    }
    // Code writes files and spends the day's attempts, which are the executor's.
    let acts = |spec: &ToolSpec| !spec.effect.is_read() || spec.group == Group::Sandbox;
    let names = sorted(&|name| shown.iter().any(|(b, _)| b.spec().name == name && acts(b.spec())));
    if !names.is_empty() {
        return Err(CardError::ActingAdvisor { role: advisor.role.clone(), names });
    }
    Ok(())
}
