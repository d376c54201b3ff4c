//! [`Reader`]: somebody who reads beside the agent of a session, such as an advisor of a committee. What a reader calls goes the same way as
//! every call; it can name only tools that read, and nothing of it counts for the agent: no failure stays open, no correction moves, no
//! evidence is booked.

use super::Session;
use crate::Toolbox;
use crate::card::Advisor;
use crate::phase::PhaseState;
use crate::toolbox::BoundTool;

/// What a reader may call, and who it is in the records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rights {
    pub(crate) scope: String,
    tools: Vec<&'static str>,
}

impl Rights {
    /// Whatever a list says, a reader has no tool that changes anything.
    pub(crate) fn allow(&self, tool: &BoundTool) -> bool {
        let spec = tool.bound.spec();
        spec.effect.is_read() && self.tools.contains(&spec.name)
    }
}

/// Somebody who reads beside the agent, at one decision point.
#[derive(Debug, Default)]
pub struct Reader {
    rights: Rights,
    phase: PhaseState,
}

impl Reader {
    /// Takes every tool away, for a turn that is meant for words.
    pub fn close(&mut self) {
        self.rights.tools.clear();
    }
}

impl Session {
    /// An advisor of the card as a reader; `scope` is its name in the records.
    pub fn reader(&self, advisor: &Advisor, scope: &str) -> Reader {
        let tools = self.config.toolbox.of_advisor(advisor).map(|tool| tool.bound.spec().name).collect();
        Reader { rights: Rights { scope: scope.to_owned(), tools }, phase: PhaseState::default() }
    }

    /// Lets a reader call and look at what it is offered: inside, [`Session::call_batch`], [`Session::tool_definitions`] and
    /// [`Session::is_read`] are the reader's. The agent's own phase, corrections and message are as before afterwards.
    pub fn reading<T>(&mut self, reader: &mut Reader, work: impl FnOnce(&mut Self) -> T) -> T {
        let effects = std::mem::take(&mut self.message_effects);
        let corrections = std::mem::take(&mut self.corrections);
        let only = self.only.take();
        std::mem::swap(&mut self.phase, &mut reader.phase);
        self.reader = Some(std::mem::take(&mut reader.rights));
        let done = work(self);
        reader.rights = self.reader.take().unwrap_or_default();
        std::mem::swap(&mut self.phase, &mut reader.phase);
        self.only = only;
        self.corrections = corrections;
        self.message_effects = effects;
        done
    }

    /// The tool of this name for whoever calls now; `Err` tells whether it exists at all.
    pub(crate) fn resolve<'t>(&self, toolbox: &'t Toolbox, name: &str) -> Result<&'t BoundTool, bool> {
        let Some(rights) = &self.reader else { return toolbox.resolve(name) };
        match toolbox.named(name) {
            Some(tool) if rights.allow(tool) => Ok(tool),
            Some(_) => Err(true),
            None => Err(false),
        }
    }
}
