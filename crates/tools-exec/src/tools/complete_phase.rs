//! `complete_phase`: ends the current decision point. Only asks; the harness moves the clock (engine E10.4, E10.5).

use crate::{Completion, ExecCtx, ExecTools, control};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{Effect, ErrorCode, Group, Repeat, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct CompletePhase;

/// What the phase came to.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Research is done; ready for the next decision point.
    Ready,
    /// The trades meant for this decision point are done.
    TradeComplete,
    /// Decided not to trade here.
    NoTrade,
    /// Only watching.
    Monitor,
}

impl Decision {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::TradeComplete => "trade_complete",
            Self::NoTrade => "no_trade",
            Self::Monitor => "monitor",
        }
    }
}

/// What to record.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What this decision point came to: ready, trade_complete, no_trade or monitor.
    pub decision: Decision,
    /// What was done and why, 1 to 1000 characters. Give the reason for every abandoned error here.
    #[schemars(length(min = 1, max = 1000))]
    pub summary: String,
    /// What to look at next, at most 1000 characters; empty by default.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub next_focus: String,
    /// Codes of open retryable failures that are given up instead of repaired, at most 20; none by default. Only the codes of failures
    /// that really happened here matter.
    #[serde(default)]
    #[schemars(length(max = 20), inner(length(min = 1)))]
    pub abandon_error_codes: Vec<String>,
}

/// The completion, accepted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Always `phase_complete`.
    pub status: String,
    /// Phase that ends.
    pub phase: String,
    /// Decision point that ends inside a window; null in pre_market.
    pub sub_window: Option<String>,
    /// Decision point that follows.
    pub next_decision_point: String,
    /// Decision, as sent.
    pub decision: String,
    /// Summary, as sent.
    pub summary: String,
    /// Next focus, as sent.
    pub next_focus: String,
    /// Codes given up, as sent.
    pub abandon_error_codes: Vec<String>,
}

impl Tool for CompletePhase {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "complete_phase",
        group: Group::Control,
        effect: Effect::Mutation,
        repeat: Repeat::OncePerMessage,
        description: "Ends the current decision point; the clock then moves to the next one and new bars become visible.",
        notes: &[
            "Not available in close_2: end the day there with finish_day.",
            "Refused while a retryable failure of this decision point is neither repaired nor abandoned.",
        ],
        example: r#"{"decision": "no_trade", "summary": "No candidate met the entry conditions.", "next_focus": "Watch the two leaders into the close."}"#,
        result_summary: "The completion as recorded, and the decision point that follows.",
        errors: &[ErrorCode::CompletionBlocked, ErrorCode::ToolUnavailableInPhase, ErrorCode::InvalidToolArguments],
        opt_in: true,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let point = ctx.view.clock().point;
        let Some(next) = point.next() else {
            return Err(super::shown::wrong_point(Self::SPEC.name, point, "finish_day"));
        };
        control::words("summary", &args.summary)?;
        let abandoned = ctx.control.settle(Self::SPEC.name, &args.abandon_error_codes)?;
        ctx.control.requested = Some(Completion {
            finishes_day: false,
            decision: args.decision.as_str().to_owned(),
            summary: args.summary.clone(),
            next_focus: args.next_focus.clone(),
            abandoned,
        });
        Ok(Output {
            status: "phase_complete".to_owned(),
            phase: point.phase().as_str().to_owned(),
            sub_window: point.sub_window().map(str::to_owned),
            next_decision_point: next.as_str().to_owned(),
            decision: args.decision.as_str().to_owned(),
            summary: args.summary,
            next_focus: args.next_focus,
            abandon_error_codes: args.abandon_error_codes,
        })
    }
}
