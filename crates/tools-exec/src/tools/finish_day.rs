//! `finish_day`: ends the trading day. Only asks; the harness moves the clock (engine E10.4, E10.6).

use crate::{Completion, ExecCtx, ExecTools, control};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{Effect, ErrorCode, Group, Repeat, Tool, ToolFailure, ToolSpec};
use traderharness_market::DecisionPoint;

/// The tool.
#[derive(Debug)]
pub struct FinishDay;

/// What to record.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What the day came to, 1 to 500 characters. Give the reason for every abandoned error here.
    #[schemars(length(min = 1, max = 500))]
    pub summary: String,
    /// Codes of open retryable failures that are given up instead of repaired, at most 20; none by default.
    #[serde(default)]
    #[schemars(length(max = 20), inner(length(min = 1)))]
    pub abandon_error_codes: Vec<String>,
}

/// The end of the day, accepted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Always `day_complete`.
    pub status: String,
    /// Always true.
    pub summary_saved: bool,
    /// Fills of today, those of conditional orders included.
    pub trades_today: usize,
    /// Summary, as sent.
    pub summary: String,
    /// Codes given up, as sent.
    pub abandon_error_codes: Vec<String>,
}

impl Tool for FinishDay {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "finish_day",
        group: Group::Control,
        effect: Effect::Mutation,
        repeat: Repeat::OncePerMessage,
        description: "Ends the trading day and keeps its summary.",
        notes: &[
            "Available in close_2 only.",
            "Refused while a retryable failure of this decision point is neither repaired nor abandoned.",
        ],
        example: r#"{"summary": "Bought one leader at 09:50 and kept it; no other setup was confirmed."}"#,
        result_summary: "The number of fills of today and the summary as kept.",
        errors: &[ErrorCode::CompletionBlocked, ErrorCode::ToolUnavailableInPhase, ErrorCode::InvalidToolArguments],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let point = ctx.view.clock().point;
        if point != DecisionPoint::Close2 && !ctx.control.finish_anywhere {
            return Err(super::shown::wrong_point(Self::SPEC.name, point, "complete_phase"));
        }
        control::words("summary", &args.summary)?;
        let abandoned = ctx.control.settle(Self::SPEC.name, &args.abandon_error_codes)?;
        ctx.control.requested = Some(Completion {
            finishes_day: true,
            decision: String::new(),
            summary: args.summary.clone(),
            next_focus: String::new(),
            abandoned,
        });
        Ok(Output {
            status: "day_complete".to_owned(),
            summary_saved: true,
            trades_today: ctx.account.fills_on(ctx.view.today()).count(),
            summary: args.summary,
            abandon_error_codes: args.abandon_error_codes,
        })
    }
}
