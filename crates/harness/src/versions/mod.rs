//! [`Contract`]: the contract version of a session, as data and flags (spec/versions.md). v5 is code; of the earlier versions the tools as
//! they were offered and every word to the model are a pack, and everything else is a numbered behaviour.
//!
//! Nothing here asks for the name of a version: what differs has a flag, and words come from the pack where there is one. No byte of v5
//! depends on a pack.
//!
//! | file | holds |
//! |---|---|
//! | `calls` | what an earlier version does otherwise with a call: arguments before the handler, results behind it |
//! | `cards` | decision cards that do not fit, where arguments are not checked strictly |

mod calls;
mod cards;

pub(crate) use cards::SetAside;

use crate::card::PROTECTED;
use crate::{Card, phase};
use serde_json::Value;
use std::sync::Arc;
use traderharness_contract::version::{Behaviour, Behaviours, Pack, PackTool, Section, TOOL_NAMES, Version};
use traderharness_contract::{Policy, ToolSpec};
use traderharness_market::DecisionPoint;
use traderharness_tools_exec::CardLimits;

/// What a session's tools, prompts and results look like.
#[derive(Debug, Clone, PartialEq)]
pub struct Contract {
    name: String,
    flags: Behaviours,
    pack: Option<Arc<Pack>>,
}

impl Default for Contract {
    fn default() -> Self {
        Self::of(Version::default())
    }
}

impl From<Version> for Contract {
    fn from(version: Version) -> Self {
        Self::of(version)
    }
}

impl Contract {
    /// A version of ours.
    pub fn of(version: Version) -> Self {
        let pack = Pack::builtin(version).cloned().map(Arc::new);
        Self { name: version.as_str().to_owned(), flags: version.behaviours(), pack }
    }

    /// A pack from elsewhere: its own name, its own flags, its own words.
    pub fn foreign(pack: Pack) -> Self {
        Self { name: pack.version.clone(), flags: pack.flags.clone(), pack: Some(Arc::new(pack)) }
    }

    /// The same words and tools with other flags, as a recording names them.
    #[must_use]
    pub fn with_flags(mut self, flags: Behaviours) -> Self {
        self.flags = flags;
        self
    }

    /// As it stands in requests and recordings: `v5`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its flags.
    pub const fn flags(&self) -> &Behaviours {
        &self.flags
    }

    /// Whether a behaviour is part of it.
    pub fn has(&self, flag: Behaviour) -> bool {
        self.flags.has(flag)
    }

    /// Tools and words as data; `None` for v5, which is code.
    pub fn pack(&self) -> Option<&Pack> {
        self.pack.as_deref()
    }

    /// True for a contract that neither code nor a pack gives words to: a defect of this program.
    pub(crate) fn is_wordless(&self) -> bool {
        self.pack.is_none() && self.flags != Version::default().behaviours()
    }

    /// A text to the model: of the pack, or `ours` where there is none.
    pub(crate) fn text(&self, section: Section, values: &[(&str, &str)], ours: impl FnOnce() -> String) -> String {
        self.pack().map_or_else(ours, |pack| pack.text(section, values))
    }

    /// As [`Contract::text`], as a line of its own. A pack that leaves a section out has no line there.
    pub(crate) fn line(&self, section: Section, values: &[(&str, &str)], ours: impl FnOnce() -> String) -> String {
        let mut line = self.text(section, values, ours);
        if !line.is_empty() {
            line.push('\n');
        }
        line
    }

    /// Whether the clock of a card moves only on a completion call.
    pub fn protocol(&self, card: &Card) -> bool {
        card.require_phase_completion && self.has(Behaviour::CompletePhaseTool)
    }

    /// What a card asks of the tools, as far as this contract knows it.
    pub(crate) fn policy(&self, card: &Card, masked_codes: bool) -> Policy {
        let policy = card.policy(masked_codes);
        Policy { require_decision_card: self.cards(policy.require_decision_card), ..policy }
    }

    /// The order limits of a card, as far as this contract knows what they ask for.
    pub(crate) fn limits(&self, card: &Card) -> CardLimits {
        let limits = card.limits();
        CardLimits { require_decision_card: self.cards(limits.require_decision_card), ..limits }
    }

    /// Whether a card that asks for decision cards gets them: nobody can be asked for one who is never told what it is.
    pub(crate) fn cards(&self, required: bool) -> bool {
        required && self.has(Behaviour::DecisionCardSection)
    }

    /// A tool as the pack has it; `None` under v5, and for a tool that is not of the contract.
    pub(crate) fn tool(&self, name: &str) -> Option<&PackTool> {
        self.pack().and_then(|pack| pack.tool(name))
    }

    /// Whether a tool is one of ours that this contract does not have: it came with a later version. Plug-in tools are nobody's.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        self.pack.is_some() && self.tool(name).is_none() && TOOL_NAMES.contains(&name)
    }

    /// The definition that a model gets of a tool of the contract; `None` where it is the tool's own.
    pub(crate) fn definition(&self, name: &str) -> Option<Value> {
        self.tool(name).map(PackTool::definition)
    }

    /// Place of a tool among those offered. Under a pack that is the pack's order; tools it does not know come behind, as they were.
    pub(crate) fn place(&self, name: &str) -> usize {
        self.pack().map_or(0, |pack| pack.tools.iter().position(|tool| tool.name == name).unwrap_or(usize::MAX))
    }

    /// Whether a card offers a tool. `ours` for a tool of the contract: under a pack it has to be in it.
    pub(crate) fn enables(&self, card: &Card, spec: &ToolSpec, ours: bool) -> bool {
        let packed = self.tool(spec.name);
        if ours && self.pack.is_some() && packed.is_none() {
            return false;
        }
        if PROTECTED.contains(&spec.name) {
            return true;
        }
        if spec.name == "complete_phase" {
            if !self.has(Behaviour::CompletePhaseTool) {
                return false;
            }
            if card.require_phase_completion {
                return true;
            }
        }
        let listed = card.allowed_tools.iter().any(|name| name == spec.name);
        if packed.map_or(spec.opt_in, |tool| tool.opt_in) {
            listed && self.has(Behaviour::OptInTools)
        } else {
            listed || card.allowed_tools.is_empty()
        }
    }

    /// Whether a tool may be called at a decision point at all.
    pub(crate) fn offers(&self, tool: &str, point: DecisionPoint) -> bool {
        phase::is_offered(tool, point) || (tool == "finish_day" && self.has(Behaviour::FinishDayAtEveryPoint))
    }
}
