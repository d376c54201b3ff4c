//! The tools of a run: every handler with its definition under the card's policy, and the subset the card enables.

use crate::Card;
use crate::card::{CardError, PROTECTED};
use serde_json::Value;
use std::collections::BTreeMap;
use traderharness_contract::{Definition, Family, Handler, Policy, ToolFailure, ToolSpec};
use traderharness_tools_exec::{ExecCtx, ExecTools};
use traderharness_tools_market::{MarketCtx, MarketTools};

/// A handler of either family.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// A read tool.
    Market(Handler<MarketTools>),
    /// An account tool.
    Exec(Handler<ExecTools>),
}

impl Bound {
    /// Published data.
    pub const fn spec(&self) -> &'static ToolSpec {
        match self {
            Self::Market(h) => h.spec,
            Self::Exec(h) => h.spec,
        }
    }

    fn define(&self, policy: &Policy) -> Definition {
        match self {
            Self::Market(h) => (h.define)(policy),
            Self::Exec(h) => (h.define)(policy),
        }
    }
}

/// What a handler gets. One of the two is used, by family.
pub(crate) struct Contexts<'m, 'e> {
    pub(crate) market: MarketCtx<'m>,
    pub(crate) exec: ExecCtx<'e>,
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
}

impl BoundTool {
    pub(crate) fn invoke(&self, contexts: &mut Contexts<'_, '_>, args: Value) -> Result<Value, ToolFailure> {
        fn run<F: Family>(handler: &Handler<F>, ctx: &mut F::Ctx<'_>, args: Value) -> Result<Value, ToolFailure> {
            handler.invoke(ctx, args)
        }
        match &self.bound {
            Bound::Market(h) => run(h, &mut contexts.market, args),
            Bound::Exec(h) => run(h, &mut contexts.exec, args),
        }
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
    handlers().iter().map(|b| b.define(policy)).collect()
}

/// Start-up faults of a toolbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolboxError {
    /// Two tools have one name (complaint RG-1: never silently one of them).
    #[error("two tools are named `{name}`")]
    Duplicate {
        /// Name.
        name: String,
    },
    /// The card names tools that do not exist.
    #[error(transparent)]
    Card(#[from] CardError),
}

/// The tools of a run. Shared between sessions of one card.
#[derive(Debug)]
pub struct Toolbox {
    tools: Vec<BoundTool>,
    by_name: BTreeMap<&'static str, usize>,
}

impl Toolbox {
    /// Compiles every definition for the card.
    ///
    /// # Errors
    /// [`ToolboxError`].
    pub fn new(card: &Card, masked_codes: bool) -> Result<Self, ToolboxError> {
        Self::with_handlers(card, masked_codes, handlers())
    }

    /// As [`Toolbox::new`], over these handlers: a host that adds tools of its own passes [`handlers`] and its additions.
    ///
    /// # Errors
    /// [`ToolboxError`]; a duplicate name is an error, never silently one of the two.
    pub fn with_handlers(card: &Card, masked_codes: bool, handlers: Vec<Bound>) -> Result<Self, ToolboxError> {
        let policy = card.policy(masked_codes);
        let mut by_name = BTreeMap::new();
        for (i, bound) in handlers.iter().enumerate() {
            if by_name.insert(bound.spec().name, i).is_some() {
                return Err(ToolboxError::Duplicate { name: bound.spec().name.to_owned() });
            }
        }
        let mut unknown: Vec<String> =
            card.allowed_tools.iter().filter(|name| !by_name.contains_key(name.as_str())).cloned().collect();
        unknown.sort();
        unknown.dedup();
        if !unknown.is_empty() {
            return Err(CardError::UnknownTools { names: unknown }.into());
        }
        let tools = handlers
            .into_iter()
            .map(|bound| {
                let definition = bound.define(&policy);
                let enabled = is_enabled(card, bound.spec());
                BoundTool { bound, definition, enabled }
            })
            .collect();
        Ok(Self { tools, by_name })
    }

    /// The enabled tool of this name; `Err` tells whether it exists at all.
    pub(crate) fn resolve(&self, name: &str) -> Result<&BoundTool, bool> {
        match self.by_name.get(name) {
            Some(i) if self.tools[*i].enabled => Ok(&self.tools[*i]),
            Some(_) => Err(true),
            None => Err(false),
        }
    }

    /// Enabled tools, in catalog order.
    pub fn enabled(&self) -> impl Iterator<Item = &BoundTool> {
        self.tools.iter().filter(|t| t.enabled)
    }
}

fn is_enabled(card: &Card, spec: &ToolSpec) -> bool {
    if PROTECTED.contains(&spec.name) {
        return true;
    }
    if spec.name == "complete_phase" && card.require_phase_completion {
        return true;
    }
    let listed = card.allowed_tools.iter().any(|name| name == spec.name);
    if spec.opt_in { listed } else { listed || card.allowed_tools.is_empty() }
}
