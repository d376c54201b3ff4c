//! Memory of a session: what is kept, when, and what of it a prompt shows (engine E12). Events go to the sink before the call that made
//! them is answered; journals and hard state are written when a day is closed.

use crate::Session;
use crate::session::SessionError;
use traderharness_tools_exec::memory::hard_state::hard_state;
use traderharness_tools_exec::memory::{Memory, MemorySink, text};

impl Session {
    /// Gives the session a memory to begin with, and a sink for what it adds. Without this call a session begins with an empty memory
    /// that lasts as long as the session (spec/tools.md b35).
    #[must_use]
    pub fn with_memory(mut self, memory: Memory, sink: Box<dyn MemorySink>) -> Self {
        self.account.memory = memory;
        self.memory_sink = sink;
        self
    }

    /// Hands new memory events to the sink.
    pub(crate) fn keep_memory(&mut self) -> Result<(), SessionError> {
        if !self.account.memory.has_fresh() {
            return Ok(());
        }
        let events = self.account.memory.take_fresh();
        self.memory_sink.keep(&events).map_err(SessionError::Memory)
    }

    /// Writes plans and active conditions as an environment record, when they changed. Call it before a context is compacted; closing
    /// a day does it (engine E12.6).
    ///
    /// # Errors
    /// [`SessionError::Memory`].
    pub fn hold_state(&mut self) -> Result<(), SessionError> {
        let content = hard_state(&self.account, &self.view());
        self.account.memory.write_hard_state(self.clock.day, content);
        self.keep_memory()
    }

    /// Plans and active conditions as the agent may see them, compact JSON: what stays word for word when a context is compacted. The
    /// words of a plan are the agent's own and are never rewritten; its day is shown as the mask shows it.
    pub fn hard_state_text(&self) -> String {
        let view = self.view();
        let content = hard_state(&self.account, &view);
        let Ok(mut state) = serde_json::from_str::<serde_json::Value>(&content) else { return content };
        for held in self.account.ledger().positions() {
            let Some(plan) = self.account.plan(held.code) else { continue };
            let code = view.find(held.code).map_or("", |sec| self.mask().code(sec));
            if let Some(shown) = state.get_mut("position_plans").and_then(|plans| plans.get_mut(code)) {
                shown["entry_date"] = self.mask().day(plan.entry_day, self.clock.day).into();
            }
        }
        state.to_string()
    }

    /// Closes the trading day: its summary becomes a journal, the hard state a record. Closing a closed day changes nothing; starting
    /// the next day closes the one before with what `finish_day` said.
    ///
    /// # Errors
    /// [`SessionError::Memory`].
    pub fn close_day(&mut self, summary: &str) -> Result<(), SessionError> {
        if std::mem::replace(&mut self.day_closed, true) {
            return Ok(());
        }
        if !summary.trim().is_empty() {
            self.account.memory.journal(self.clock.day, summary.trim());
        }
        self.hold_state()
    }

    /// Closes the day that lies behind, for hosts that only start days.
    pub(crate) fn close_previous_day(&mut self) -> Result<(), SessionError> {
        let summary = self.phase.completed.as_ref().filter(|done| done.finishes_day).map(|done| done.summary.clone());
        self.close_day(&summary.unwrap_or_default())
    }

    /// What the agent remembers, for the start of a day; `None` when there is nothing (engine E12.5). Days are shown as the mask shows
    /// them; the words are the agent's own and are never rewritten.
    pub fn memory_text(&self) -> Option<String> {
        let today = self.clock.day;
        text::memory_text(&self.account.memory, today, &|day| self.mask().day(day, today))
    }
}
