//! `technical_compute`, the capability `technical.compute`: an indicator over the bars that `market_bars` serves.
//!
//! It judges its input itself (spec/seeds.md C4.7): which bars it took is its `input_snapshot`, how it judged them its `eligibility`. Bars
//! with holes stay usable elsewhere and fail here; nothing is filled in.

use super::bars::pair;
use super::indicators::{Columns, Indicator, PARAMETERS, Parameters, Reads, Undefined, deepest};
use super::series::{Adjustment, Applied, Bar, Found, Gap, GapReason, NoBars, Series};
use super::snapshot::{Snapshot, snapshot};
use super::window::{SHOWN_DAY, Window};
use crate::{MarketCtx, MarketTools, lookup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use traderharness_contract::{AsOf, DayField, Effect, ErrorCode, Group, Policy, Repeat, StockCode, Tool, ToolFailure, ToolSpec};
use traderharness_market::{Day, View};

/// The tool.
#[derive(Debug)]
pub struct TechnicalCompute;

/// How much is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Shape {
    /// The value of the last session.
    #[default]
    Last,
    /// The values of the last sessions.
    Series,
}

/// What is done about sessions without a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnGaps {
    /// The computation fails.
    #[default]
    Refuse,
    /// The sessions on which the security traded follow each other.
    TradedSessions,
}

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Complete code of the security as shown in this run.
    #[serde(rename = "instrumentId")]
    #[schemars(length(min = 6))]
    instrument_id: StockCode,
    /// What to compute. Default sma.
    #[serde(default)]
    indicator: Indicator,
    /// Settings of the indicator; each has a default, and none of another indicator is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parameters: Option<Parameters>,
    /// How the prices are made comparable, as in market_bars: split_only, total_return or none. Default split_only.
    #[serde(default)]
    adjustment: Adjustment,
    /// First day of the bars, inclusive, as days are shown in this run. Only together with end; without both, the last 252 finished
    /// sessions. Recursive indicators (ema, rsi, macd, atr, obv, max_drawdown) start here.
    #[serde(default)]
    #[schemars(regex(pattern = SHOWN_DAY))]
    start: Option<String>,
    /// Last day of the bars, inclusive, before today. Only together with start.
    #[serde(default)]
    #[schemars(regex(pattern = SHOWN_DAY))]
    end: Option<String>,
    /// Sessions without a bar inside the bars that are needed. refuse: the computation fails and names them. traded_sessions: the
    /// sessions on which the security traded follow each other. Default refuse.
    #[serde(default)]
    gaps: OnGaps,
    /// last: the value of the last session. series: the values of the last limit sessions. Default last.
    #[serde(default)]
    output: Shape,
    /// Values of a series, 1 to 50, default 20. Only with output series.
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

/// An indicator.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Code of the security.
    #[serde(rename = "instrumentId")]
    instrument_id: StockCode,
    /// As of when the answer is true.
    as_of: AsOf,
    /// What was computed.
    indicator: Indicator,
    /// Settings used, defaults included.
    parameters: Parameters,
    /// Unit of the values.
    unit: String,
    /// Convention of the prices.
    adjustment: Applied,
    /// The bars that were used.
    input_snapshot: Snapshot,
    /// How they were judged.
    eligibility: Eligibility,
    /// Values by session, oldest first.
    #[schemars(extend("x-order" = "oldest_first"))]
    points: Vec<Point>,
    /// Where the deepest drawdown was; null when the close never fell. Only of max_drawdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    drawdown: Option<Option<Drawdown>>,
    /// What limits the values.
    warnings: Vec<String>,
    /// Why values are null.
    missing_reasons: Vec<Gap>,
}

/// Whether a computation may use its input.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Eligibility {
    /// True for a result; a failure has the same record with false.
    eligible: bool,
    /// Why.
    reason: String,
}

/// Values of one session.
#[derive(Debug, Serialize, JsonSchema)]
struct Point {
    /// Session of the last bar that went in.
    session: DayField,
    /// Value by the name of its line: `value`, or macd, signal, histogram; upper, middle, lower, percent_b, bandwidth; k, d.
    values: BTreeMap<String, Option<f64>>,
}

/// The deepest drawdown.
#[derive(Debug, Serialize, JsonSchema)]
struct Drawdown {
    /// Session of the highest close before it.
    peak: DayField,
    /// Session of its lowest close.
    trough: DayField,
}

impl Tool for TechnicalCompute {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;

    const SPEC: ToolSpec = ToolSpec {
        name: "technical_compute",
        group: Group::Market,
        effect: Effect::Compute,
        repeat: Repeat::Free,
        description: "One technical indicator over the finished daily bars of one security.",
        notes: &[
            "The bars are those of market_bars with the same window and adjustment; input_snapshot names the ones that were used.",
            "Averages of closes are in CNY; rsi and atr are Wilder's; bollinger uses the population deviation; volatility is of log \
             returns and annualised.",
            "Too few bars, or a hole inside of those that are needed, fail the computation; nothing is filled in.",
            "A value that is not defined is null with its reason; values have 12 significant digits.",
        ],
        example: r#"{"instrumentId": "SHM-000360", "indicator": "rsi", "parameters": {"period": 14}}"#,
        result_summary: "`points` with the values, oldest first, `input_snapshot` and `eligibility`.",
        errors: &[
            ErrorCode::UnknownSecurity,
            ErrorCode::InvalidFilterRange,
            ErrorCode::UnsupportedAdjustment,
            ErrorCode::InsufficientEvidence,
            ErrorCode::SecurityDataUnavailable,
            ErrorCode::DataUnavailable,
        ],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let view = &ctx.view;
        let parameters = args.indicator.resolved(args.parameters.unwrap_or_default());
        if let (Some(fast), Some(slow)) = (parameters.fast, parameters.slow)
            && fast >= slow
        {
            return Err(ToolFailure::new(
                ErrorCode::InvalidFilterRange,
                "`fast` is not below `slow`.",
                "Send fewer bars for the fast average than for the slow one.",
            ));
        }
        let Found { sec, window, series } = Found::of(view, &args.instrument_id, (&args.start, &args.end), args.adjustment)?;
        let wanted = match args.output {
            Shape::Last => 1,
            Shape::Series => args.limit.unwrap_or(20),
        };
        let input = Input { view, series: &series, window };
        let (bars, reason) = input.judged(args.indicator, parameters, wanted, args.gaps)?;
        let columns = columns(bars, args.indicator.reads());
        let lines = args.indicator.lines(&columns, parameters);
        let count = lines.iter().map(|(_, line)| line.len()).min().unwrap_or(0).min(wanted);
        let mut missing_reasons = Vec::new();
        let points = (0..count).map(|at| {
            let values = lines.iter().map(|(name, line)| {
                let value = line[line.len() - count + at].map(significant);
                if let Err(why) = value {
                    let reason = match why {
                        Undefined::ZeroVariance => GapReason::ZeroVariance,
                        Undefined::OutOfRange => GapReason::BadValue,
                    };
                    missing_reasons.push(Gap { field: format!("points[{at}].values.{name}"), reason });
                }
                ((*name).to_owned(), value.ok())
            });
            Point { values: values.collect(), session: bars[bars.len() - count + at].day.into() }
        });
        let points: Vec<Point> = points.collect();
        let drawdown = (args.indicator == Indicator::MaxDrawdown).then(|| {
            deepest(&columns.close)
                .map(|(peak, trough)| Drawdown { peak: bars[peak].day.into(), trough: bars[trough].day.into() })
        });
        let mut warnings = series.warnings.clone();
        if args.output == Shape::Series && count < wanted {
            warnings.push(format!("The bars are enough for {count} of the {wanted} values asked for."));
        }
        Ok(Output {
            instrument_id: lookup::code(view, sec),
            as_of: lookup::as_of(view),
            indicator: args.indicator,
            parameters,
            unit: args.indicator.unit().to_owned(),
            input_snapshot: snapshot(view, bars, &series.adjustment),
            adjustment: series.adjustment,
            eligibility: Eligibility { eligible: true, reason },
            points,
            drawdown,
            warnings,
            missing_reasons,
        })
    }

    fn refine(schema: &mut Value, _: &Policy) {
        pair(schema);
        let Some(map) = schema.as_object_mut() else { return };
        let mut rules: Vec<Value> = Indicator::ALL
            .iter()
            .map(|indicator| {
                let foreign = PARAMETERS.iter().filter(|name| !indicator.takes().contains(name));
                let foreign: Map<String, Value> = foreign.map(|name| ((*name).to_owned(), Value::Bool(false))).collect();
                let mut when = json!({"properties": {"indicator": {"const": indicator.as_str()}}});
                // Without the field it is the default one.
                if *indicator != Indicator::default() {
                    when["required"] = json!(["indicator"]);
                }
                json!({"if": when, "then": {"properties": {"parameters": {"properties": foreign}}}})
            })
            .collect();
        rules.push(json!({
            "if": {"required": ["limit"]},
            "then": {"properties": {"output": {"const": "series"}}, "required": ["output"]}
        }));
        map.insert("allOf".to_owned(), rules.into());
    }
}

/// 12 significant digits: far more than any input has, and few enough that no platform's logarithm shows.
fn significant(value: f64) -> f64 {
    format!("{value:.11e}").parse().map_or(value, |v: f64| if v == 0.0 { 0.0 } else { v })
}

fn columns(bars: &[Bar], reads: Reads) -> Columns {
    // Judged bars have what is read of them.
    let close = bars.iter().map(|b| b.close.unwrap_or_default()).collect();
    let mut columns = Columns { close, ..Columns::default() };
    match reads {
        Reads::Close => {}
        Reads::Range => {
            columns.high = bars.iter().map(|b| b.high.unwrap_or_default()).collect();
            columns.low = bars.iter().map(|b| b.low.unwrap_or_default()).collect();
        }
        Reads::CloseAndVolume => columns.volume = bars.iter().map(|b| b.volume.unwrap_or_default() as f64).collect(),
    }
    columns
}

/// What a computation was given.
struct Input<'i, 'v> {
    view: &'i View<'v>,
    series: &'i Series,
    window: Window<'v>,
}

impl<'i> Input<'i, '_> {
    /// The bars that are used, and why they may be.
    ///
    /// # Errors
    /// `insufficient_evidence` with snapshot, eligibility and the holes.
    fn judged(
        &self,
        indicator: Indicator,
        with: Parameters,
        wanted: usize,
        gaps: OnGaps,
    ) -> Result<(&'i [Bar], String), ToolFailure> {
        let all = self.series.bars.as_slice();
        let minimum = indicator.minimum(with);
        let used = if indicator.needs_all() { all } else { &all[all.len().saturating_sub(minimum + wanted - 1)..] };
        let refuse = |reason: String, instruction: String, holes: Vec<Value>| {
            let eligibility = Eligibility { eligible: false, reason };
            let input = snapshot(self.view, used, &self.series.adjustment);
            let day = |day: &Option<DayField>| day.as_ref().map(|day| self.shown(day));
            ToolFailure::new(
                ErrorCode::InsufficientEvidence,
                format!("{} cannot be computed from these bars: {}.", indicator.as_str(), eligibility.reason),
                instruction,
            )
            .with("required_bars", minimum)
            .with("available_bars", all.len())
            .with("eligibility", json!(eligibility))
            // In the visible form already; a mask over texts would take digits of the digest for something they are not.
            .with_own_words(
                "input_snapshot",
                json!({
                    "digest": input.digest,
                    "first_session": day(&input.first_session),
                    "last_session": day(&input.last_session),
                    "bars": input.bars,
                    "adjustment": input.adjustment,
                }),
            )
            .with_own_words("holes", holes)
        };
        if all.len() < minimum {
            let instruction = "Use smaller parameters or a longer window; market_bars shows which bars there are.";
            return Err(refuse(format!("{} bars < {minimum}", all.len()), instruction.to_owned(), self.runs(all.first())));
        }
        let unusable: Vec<Value> = used
            .iter()
            .filter(|bar| !has(bar, indicator.reads()))
            .map(|bar| json!({"session": self.shown(&bar.day.into())}))
            .collect();
        if !unusable.is_empty() {
            let reason = format!("{} of the {} bars needed lack a number that is read", unusable.len(), used.len());
            let instruction = "Choose a window without these sessions, or an indicator that reads less of a bar.";
            return Err(refuse(reason, instruction.to_owned(), unusable.into_iter().take(20).collect()));
        }
        if self.window.unfinished {
            let instruction = "End the window with a finished session.";
            return Err(refuse("the last session asked for is not finished".to_owned(), instruction.to_owned(), vec![]));
        }
        let first = used.first().map(|bar| bar.day);
        let inside = self.window.sessions.iter().filter(|day| Some(**day) >= first).count();
        let absent = inside.saturating_sub(used.len());
        match gaps {
            OnGaps::Refuse if absent > 0 => Err(refuse(
                format!("{absent} of the {inside} sessions needed have no bar"),
                "Send gaps traded_sessions to compute over the sessions on which the security traded, or choose another window."
                    .to_owned(),
                self.runs(used.first()),
            )),
            _ if absent > 0 => {
                Ok((used, format!("{} bars >= {minimum}; {absent} sessions without a bar are passed over", used.len())))
            }
            _ => Ok((used, format!("{} bars >= {minimum}, no hole", used.len()))),
        }
    }

    fn shown(&self, day: &DayField) -> String {
        Day::parse(day.as_str()).map_or_else(|_| String::new(), |day| self.view.mask().day(day, self.view.today()))
    }

    /// Runs of sessions without a bar that are not all before the first bar that is used.
    fn runs(&self, first: Option<&Bar>) -> Vec<Value> {
        let runs = self.series.coverage.missing.iter().filter(|run| {
            let last = Day::parse(run.to.as_str()).ok();
            first.is_none_or(|bar| last > Some(bar.day))
        });
        let run = |run: &NoBars| json!({"from": self.shown(&run.from), "to": self.shown(&run.to), "sessions": run.sessions, "reason": run.reason});
        runs.take(20).map(run).collect()
    }
}

fn has(bar: &Bar, reads: Reads) -> bool {
    bar.close.is_ok()
        && match reads {
            Reads::Close => true,
            Reads::CloseAndVolume => bar.volume.is_ok(),
            Reads::Range => bar.high.is_ok() && bar.low.is_ok(),
        }
}
