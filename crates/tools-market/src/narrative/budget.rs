//! Daily budgets of different questions. Only a successful question that was not asked before counts (spec/tools.md b16).

use schemars::JsonSchema;
use serde::Serialize;
use traderharness_contract::{ErrorCode, ToolFailure};

/// Different questions of a budgeted tool per day.
pub(crate) const LIMIT: usize = 2;

/// The day's budget of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Budget {
    /// Different questions answered today, this one included.
    used: usize,
    /// Different questions a day.
    limit: usize,
}

/// Questions of one tool that were answered today, in visible terms, in order.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    questions: Vec<String>,
    /// New questions are refused; see [`crate::MarketState::without_new_questions`].
    pub(crate) closed: bool,
}

impl Asked {
    /// Refuses a new question when the budget is used up; changes nothing.
    ///
    /// # Errors
    /// [`ErrorCode::DailyToolBudgetExhausted`] with what was asked today.
    pub(crate) fn admit(&self, question: &str) -> Result<(), ToolFailure> {
        if self.questions.iter().any(|q| q == question) {
            return Ok(());
        }
        if self.closed {
            return Err(ToolFailure::new(
                ErrorCode::DailyToolBudgetExhausted,
                "Code gets only the answers that this tool has given today: each new question uses its daily budget.",
                "Call the tool with this question first, then run the code again.",
            ));
        }
        if self.questions.len() < LIMIT {
            return Ok(());
        }
        Err(ToolFailure::new(
            ErrorCode::DailyToolBudgetExhausted,
            format!("This tool answers {LIMIT} different questions a day, and both were asked."),
            "Repeat one of correction.asked_today for free, use another tool, or ask again on the next trading day.",
        )
        .with_own_words("asked_today", self.questions.clone())
        .with("used", self.questions.len())
        .with("limit", LIMIT))
    }

    /// Counts an answered question. True when it was asked before today.
    pub(crate) fn count(&mut self, question: String) -> bool {
        let repeated = self.questions.contains(&question);
        if !repeated {
            self.questions.push(question);
        }
        repeated
    }

    /// The budget as the result shows it.
    pub(crate) fn budget(&self) -> Budget {
        Budget { used: self.questions.len(), limit: LIMIT }
    }
}
