//! `screen_behavioral_cycle`: stocks by the stage their bars look like, best score first.

use super::behavior::{Behavior, Behaviors, NEEDED};
use crate::adjust::{ChangeBasis, change_basis};
use crate::number::{Gaps, RATIO, rounded};
use crate::{MarketCtx, MarketTools, lookup, page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{AsOf, Effect, ErrorCode, Group, Missing, Reason, Repeat, StockCode, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub(crate) struct ScreenBehavioralCycle;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Candidates of one answer, 1 to 20; one answer holds at most 16, the others come with next_cursor. Default 8.
    #[serde(default = "default_results")]
    #[schemars(range(min = 1, max = 20))]
    max_results: u32,
    /// next_cursor of the previous answer, with otherwise equal arguments at the same decision point. Default: the first page.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    cursor: Option<String>,
}

/// A candidate has up to 550 characters, and a page must fit the result budget.
const PAGE: usize = 16;

fn default_results() -> u32 {
    8
}

/// What the bars of a stock look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// Closed above the highs of 20 sessions on more volume, near its high.
    Markup,
    /// Back near a level it broke out of lately, on no more volume.
    Washout,
    /// Touched the lows of 20 sessions and closed above them, on no more volume.
    Test,
    /// Low in its range with at least three points of quiet buying.
    AccumulationCandidate,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// As of when the answer is true.
    as_of: AsOf,
    /// Candidates, best score first.
    candidates: Vec<Candidate>,
    /// Listed stocks looked at.
    sample_size: usize,
    /// Stocks with at least 60 usable sessions that traded on the previous one.
    eligible_size: usize,
    /// Stocks that are in one of the stages.
    matched_size: usize,
    /// Stocks left out because they have no bar on the previous session.
    suspended_count: usize,
    /// Candidates returned here.
    returned: usize,
    /// True when all stocks that are in a stage are returned here.
    complete: bool,
    /// Cursor of the next candidates; null after the last ones.
    next_cursor: Option<String>,
    /// Which rows the features are made of.
    as_of_rule: String,
    /// How to read stages.
    interpretation: String,
    /// Why there is no candidate; null when there is one.
    empty_reason: Option<String>,
    /// How prices across ex-dates are made comparable.
    adjustment: ChangeBasis,
    /// Why numbers are null.
    missing_reasons: Vec<Missing>,
}

/// A stock in a stage.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Candidate {
    /// Code of the security.
    code: StockCode,
    /// Stage.
    stage: Stage,
    /// Score after deductions for risk flags.
    score: Option<f64>,
    /// Place of the close between lowest low (0) and highest high (1) of 60 sessions.
    range_position_60: Option<f64>,
    /// Close against the highest high of 120 sessions, percent.
    drawdown_120_pct: Option<f64>,
    /// Change over 20 sessions, percent.
    change_20_pct: Option<f64>,
    /// Mean true range of 20 sessions against the close, percent.
    atr_20_pct: Option<f64>,
    /// Mean true range of 5 sessions to that of 20.
    atr_5_to_20: Option<f64>,
    /// Mean volume of 5 sessions to that of 20.
    volume_5_to_20: Option<f64>,
    /// Volume of rising to volume of falling sessions among 20; null without a falling one.
    up_down_volume_ratio: Option<f64>,
    /// Mean place of the close in its bar, 5 sessions: -1 at the low, 1 at the high.
    clv_5: Option<f64>,
    /// Volume of rising minus falling sessions to all volume, 20 sessions.
    obv_flow_20: Option<f64>,
    /// Close against resistance_20, percent.
    breakout_20d_pct: Option<f64>,
    /// Lowest low of the 20 sessions before the last, CNY.
    support_20: f64,
    /// Highest high of the 20 sessions before the last, CNY.
    resistance_20: f64,
    /// Price below which the stage no longer holds, CNY.
    invalidation: Option<f64>,
    /// Reasons for caution, each with a deduction: extended_20d (change_20_pct >= 25) 1.5, distribution_risk (volume_5_to_20 >= 1.5
    /// while clv_5 <= -0.25) 2, zero_volume_baseline (no volume in 20 sessions) 2.
    risk_flags: Vec<String>,
    /// The other features the stage was read from.
    features: Features,
}

/// Features of a stock that are not among the fields of the candidate itself.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Features {
    /// Usable sessions among the last 120.
    observations: usize,
    /// Last close, CNY.
    last_close: f64,
    /// Last low, CNY.
    last_low: f64,
    /// Place of the last close in its bar: -1 at the low, 1 at the high.
    clv_last: Option<f64>,
    /// Highest high of the 20 sessions that end 6 sessions before the last, CNY.
    earlier_resistance: f64,
    /// The last low is at most 1 % above support_20.
    touched_support: bool,
    /// One of the 5 closes before the last is at least 0.5 % above earlier_resistance.
    recently_broke_out: bool,
}

/// Points of quiet buying low in the range.
fn base(b: &Behavior) -> f64 {
    let points = [
        (b.drawdown_120_pct.is_some_and(|v| v <= -15.0), 1.5),
        (b.range_position_60.is_some_and(|v| v <= 0.45), 1.5),
        (b.atr_5_to_20.is_some_and(|v| v <= 0.9), 1.0),
        (b.up_down_volume_ratio.is_some_and(|v| v >= 1.1), 1.0),
        (b.obv_flow_20.is_some_and(|v| v > 0.0), 1.0),
        (b.clv_5.is_some_and(|v| v > 0.0), 0.5),
    ];
    points.iter().filter(|(holds, _)| *holds).map(|(_, points)| points).sum()
}

/// The first stage that fits, with its score before deductions and its invalidation price. An undefined feature fits no stage.
fn stage(b: &Behavior) -> Option<(Stage, f64, f64)> {
    let clv = b.clv_last.unwrap_or(f64::NEG_INFINITY);
    let calm = |limit: f64| b.volume_5_to_20.is_some_and(|v| v <= limit);
    let base = base(b);
    if let (Some(breakout), Some(volume)) = (b.breakout_20d_pct, b.volume_5_to_20)
        && breakout >= 0.5
        && volume >= 1.2
        && clv >= 0.25
    {
        let score = 8.0 + breakout.min(10.0) / 5.0 + volume.min(3.0) / 3.0;
        return Some((Stage::Markup, score, b.resistance_20 * 0.98));
    }
    if b.recently_broke_out && b.last_close >= b.earlier_resistance * 0.98 && calm(1.1) && clv >= -0.2 {
        return Some((Stage::Washout, 6.0 + base, b.support_20));
    }
    if b.touched_support && b.last_close >= b.support_20 && clv > 0.0 && calm(1.05) {
        return Some((Stage::Test, 5.0 + base, b.support_20 * 0.98));
    }
    (base >= 3.0).then_some((Stage::AccumulationCandidate, base, b.support_20 * 0.98))
}

fn risks(b: &Behavior) -> [(&'static str, bool, f64); 3] {
    [
        ("extended_20d", b.extended_20d, 1.5),
        ("distribution_risk", b.distribution_risk, 2.0),
        ("zero_volume_baseline", b.zero_volume_baseline, 2.0),
    ]
}

impl Tool for ScreenBehavioralCycle {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "screen_behavioral_cycle",
        group: Group::Screening,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Stocks whose last 120 daily bars look like markup, washout, test or accumulation, best score first.",
        notes: &[
            "Stages are tried in the order markup, washout, test, accumulation_candidate; the first that fits is given.",
            "markup: breakout_20d_pct >= 0.5, volume_5_to_20 >= 1.2, clv_last >= 0.25. washout: recently_broke_out, close >= 98 % of \
             earlier_resistance, volume_5_to_20 <= 1.1, clv_last >= -0.2. test: touched_support, close >= support_20, clv_last > 0, \
             volume_5_to_20 <= 1.05. accumulation_candidate: base >= 3.",
            "base adds 1.5 for drawdown_120_pct <= -15, 1.5 for range_position_60 <= 0.45, 1 each for atr_5_to_20 <= 0.9, \
             up_down_volume_ratio >= 1.1 and obv_flow_20 > 0, 0.5 for clv_5 > 0.",
            "Score: markup 8 + min(breakout_20d_pct, 10) / 5 + min(volume_5_to_20, 3) / 3; washout 6 + base; test 5 + base; else base; \
             minus the deductions of risk_flags.",
            "Ordered by score, descending; ties by visible code. Today's bars are no part of it.",
        ],
        example: r#"{"max_results": 8}"#,
        result_summary: "Candidates with stage, score, features, invalidation price and risk flags; sizes of sample, eligible and matched.",
        errors: &[ErrorCode::InvalidCursor],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = ctx.view;
        if let Some(known) = ctx.state.at(&view).tick.cycle.get(&args) {
            return Ok(known);
        }
        let behaviors = ctx.state.behaviors(&view);
        let mut found: Vec<(f64, &Behavior, Stage, f64)> = Vec::new();
        for b in &behaviors.rows {
            if let Some((stage, score, invalidation)) = stage(b) {
                let deducted: f64 = risks(b).iter().filter(|(_, holds, _)| *holds).map(|(_, _, points)| points).sum();
                found.push((rounded(Ok(score - deducted), RATIO).unwrap_or(0.0), b, stage, invalidation));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.rank.cmp(&b.1.rank)));
        let mut gaps = Gaps::default();
        let (matched_size, empty_reason) = (found.len(), found.is_empty().then(|| empty(&behaviors)));
        let query = format!("screen_behavioral_cycle {}", args.max_results);
        let page = page::page(&view, &query, args.cursor.as_deref(), found, PAGE.min(args.max_results as usize))?;
        let shown = page.records.iter().enumerate();
        let candidates: Vec<Candidate> =
            shown.map(|(i, found)| candidate(lookup::code(&view, found.1.sec), *found, i, &mut gaps)).collect();
        let output = Output {
            as_of: lookup::as_of(&view),
            sample_size: behaviors.sample,
            eligible_size: behaviors.rows.len(),
            matched_size,
            suspended_count: behaviors.suspended,
            returned: candidates.len(),
            complete: page.complete,
            next_cursor: page.next_cursor,
            candidates,
            as_of_rule: "daily bars strictly before today".to_owned(),
            interpretation: "Stages describe what bars look like; they are hypotheses, not anyone's intention.".to_owned(),
            empty_reason,
            adjustment: change_basis(&view),
            missing_reasons: gaps.done(),
        };
        ctx.state.tick.cycle.put(args, &output);
        Ok(output)
    }
}

fn empty(behaviors: &Behaviors) -> String {
    if behaviors.rows.is_empty() {
        format!("insufficient_history: no stock has {NEEDED} usable sessions up to the previous one")
    } else {
        "no_match: no stock is in a stage".to_owned()
    }
}

fn candidate(
    code: StockCode,
    (score, b, stage, invalidation): (f64, &Behavior, Stage, f64),
    i: usize,
    gaps: &mut Gaps,
) -> Candidate {
    let mut known = |field: &str, value: Option<f64>| {
        if value.is_none() {
            // Every window is long enough here, so what is undefined is a division by a zero range, volume or counter-volume.
            gaps.note(&format!("candidates[{i}].{field}"), Reason::BadValue);
        }
        value
    };
    Candidate {
        code,
        stage,
        score: Some(score),
        range_position_60: known("range_position_60", b.range_position_60),
        drawdown_120_pct: known("drawdown_120_pct", b.drawdown_120_pct),
        change_20_pct: known("change_20_pct", b.change_20_pct),
        atr_20_pct: known("atr_20_pct", b.atr_20_pct),
        atr_5_to_20: known("atr_5_to_20", b.atr_5_to_20),
        volume_5_to_20: known("volume_5_to_20", b.volume_5_to_20),
        up_down_volume_ratio: known("up_down_volume_ratio", b.up_down_volume_ratio),
        clv_5: known("clv_5", b.clv_5),
        obv_flow_20: known("obv_flow_20", b.obv_flow_20),
        breakout_20d_pct: known("breakout_20d_pct", b.breakout_20d_pct),
        support_20: b.support_20,
        resistance_20: b.resistance_20,
        invalidation: rounded(Ok(invalidation), RATIO),
        risk_flags: risks(b).iter().filter(|(_, holds, _)| *holds).map(|(name, ..)| (*name).to_owned()).collect(),
        features: Features {
            observations: b.observations,
            last_close: b.last_close,
            last_low: b.last_low,
            clv_last: b.clv_last,
            earlier_resistance: b.earlier_resistance,
            touched_support: b.touched_support,
            recently_broke_out: b.recently_broke_out,
        },
    }
}
