//! `traderharness report`: results of recorded runs again, side by side, and held against their recordings: days, fills, tokens and every
//! figure that follows from them are computed anew, and the cassette must be whole. It opens no dataset and reads nothing private, so it can tell only what the run told.

use crate::args::ReportOptions;
use crate::bundle::recording;
use crate::fault::{Class, Fault, Outcome, read_text};
use crate::figures;
use crate::manifest::Manifest;
use crate::report::{print, result_text};
use crate::result::{DayFigures, RunResult, Trade, cents};
use crate::run::{RunFolder, pretty};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use traderharness_contract::{ErrorCode, ErrorFamily};
use traderharness_harness::metrics::{Basis, Metrics, Undefined, metrics};
use traderharness_harness::run::CallCounts;
use traderharness_market::{Cash, Code, Day, DecisionPoint, FeeSchedule, Fees, Minute, Price, Shares, Side};
use traderharness_replay::cassette::Scheme;
use traderharness_replay::trajectory::{self, Entry, RunStart};
use traderharness_replay::{Cassette, Fingerprint, Record, RecordingError};
use traderharness_tools_exec::order::RuleSet;
use traderharness_tools_exec::{Fill, Origin};

/// Why a figure is not there when only the recording is.
const WITHOUT_RESULT: &str = "only the run itself knew it, and there is no result file";

pub(crate) fn report(options: &ReportOptions) -> Outcome {
    let reports = options.runs.iter().flat_map(|path| each_run(path)).map(|(name, path)| Report::read(name, &path));
    let reports = reports.collect::<Result<Vec<_>, _>>()?;
    if options.json {
        print(&pretty(&json!({ "runs": reports.iter().map(Report::machine).collect::<Vec<_>>() })));
    } else if let [one] = &reports[..] {
        print(&format!("{}: {}, model {}, card {}", one.name, one.result.agent, one.result.model, one.card()));
        print(&result_text(&one.result, &one.notes()));
        print(&one.checked());
    } else {
        print(&side_by_side(&reports.iter().map(|report| (report.name.clone(), &report.result)).collect::<Vec<_>>()));
        for report in &reports {
            print(&format!("{}: {}{}", report.name, report.checked(), report.notes()));
        }
    }
    let differs = reports.iter().any(|report| !report.differences.is_empty() || matches!(report.cassette, Tape::Lost(_)));
    Ok(if differs { ExitCode::from(Class::Finding as u8) } else { ExitCode::SUCCESS })
}

/// The runs of an argument with their names: itself, or all that `compare --record` left in it.
fn each_run(path: &Path) -> Vec<(String, PathBuf)> {
    let runs = if RunFolder::of(path).is_run() { Vec::new() } else { RunFolder::runs_in(path) };
    if runs.is_empty() {
        let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        return vec![(name, path.to_path_buf())];
    }
    let name = |run: &PathBuf| run.strip_prefix(path).unwrap_or(run).display().to_string();
    runs.into_iter().map(|run| (name(&run), run)).collect()
}

/// Figures of several runs, one column each.
pub(crate) fn side_by_side(runs: &[(String, &RunResult)]) -> String {
    let short = |text: String| if text.starts_with("n/a") { "n/a".to_owned() } else { text };
    let mut lines = vec![vec![String::new()]];
    for (name, result) in runs {
        lines[0].push(name.clone());
        for (at, (name, value)) in figures::rows(result).into_iter().enumerate() {
            if lines.len() <= at + 1 {
                lines.push(vec![name.to_owned()]);
            }
            lines[at + 1].push(short(value));
        }
    }
    figures::table(&lines)
}

/// What the trajectory of a run says otherwise than its result file; `None` when one of the two is not there.
pub(crate) fn recomputed(folder: &RunFolder) -> Result<Option<Vec<String>>, Fault> {
    if !folder.trajectory().is_file() {
        return Ok(None);
    }
    let Some(kept) = read_result(folder)? else { return Ok(None) };
    Ok(Some(Recording::read(folder)?.differences(&kept)))
}

/// One run.
struct Report {
    name: String,
    result: RunResult,
    /// What the recording says otherwise.
    differences: Vec<String>,
    /// Whether there was a recording to hold the result against.
    recorded: bool,
    cassette: Tape,
}

/// What became of the cassette of a run.
enum Tape {
    /// Every request has its digest and no line was changed; so many answers.
    Whole(usize),
    /// Written before recordings had digests to check.
    Unsealed(usize),
    /// The run stopped before its end.
    Unfinished,
    /// Gone or damaged: a finding.
    Lost(String),
}

impl Tape {
    /// What it is, and the cassette itself where it can be read.
    fn of(folder: &RunFolder, status: &str) -> (Self, Option<Cassette>) {
        let path = folder.cassette();
        if !path.exists() {
            let tape = if status == "completed" {
                Self::Lost(format!("`{}` is not there, and the run came to its end", path.display()))
            } else {
                Self::Unfinished
            };
            return (tape, None);
        }
        let lost = |e: RecordingError| Self::Lost(Fault::new(Class::Finding, e).sentence());
        let cassette = match Cassette::load(&path) {
            Ok(cassette) => cassette,
            Err(e) => return (lost(e), None),
        };
        let calls = cassette.calls().len();
        let tape = match cassette.scheme() {
            Scheme::Whole => cassette.verify().map_or_else(lost, |()| Self::Whole(calls)),
            Scheme::Reference => Self::Unsealed(calls),
        };
        (tape, Some(cassette))
    }

    fn text(&self) -> String {
        match self {
            Self::Whole(calls) => {
                format!("The cassette is whole: {calls} request(s) have their digests, and no line was changed since its end.")
            }
            Self::Unsealed(calls) => {
                format!("The cassette can be read ({calls} requests); it holds no digests of whole requests.")
            }
            Self::Unfinished => "The run did not come to its end, so it has no finished cassette.".to_owned(),
            Self::Lost(why) => format!("The cassette is damaged or gone: {why}"),
        }
    }

    const fn state(&self) -> &'static str {
        match self {
            Self::Whole(_) => "whole",
            Self::Unsealed(_) => "read",
            Self::Unfinished => "unfinished",
            Self::Lost(_) => "lost",
        }
    }
}

impl Report {
    fn read(name: String, path: &Path) -> Result<Self, Fault> {
        if let Some(fault) = RunFolder::no_run(path) {
            return Err(fault);
        }
        let folder = RunFolder::of(path);
        let kept = read_result(&folder)?;
        let recording = if folder.trajectory().is_file() { Some(Recording::read(&folder)?) } else { None };
        let (result, mut differences) = match (kept, &recording) {
            (Some(kept), Some(recording)) => {
                let differences = recording.differences(&kept);
                (kept, differences)
            }
            (Some(kept), None) => (kept, Vec::new()),
            (None, Some(recording)) => (recording.result()?, Vec::new()),
            (None, None) => {
                return Err(Fault::text(Class::Input, format!("there is no run in `{}`", path.display()))
                    .hint("pass folders that `run --record` or `compare --record` wrote"));
            }
        };
        let (tape, cassette) = Tape::of(&folder, &result.status);
        differences.extend(recording.as_ref().zip(cassette.as_ref()).and_then(|(recording, cassette)| recording.other(cassette)));
        Ok(Self { name, result, differences, recorded: recording.is_some(), cassette: tape })
    }

    fn card(&self) -> &str {
        self.result.card.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    fn notes(&self) -> String {
        let dataset = &self.result.dataset;
        let mut notes = String::new();
        if dataset.get("synthetic") == Some(&Value::Bool(true)) {
            notes.push_str("\nThe data of this run is SYNTHETIC: prices and names are invented.");
        }
        let missing: Vec<&str> =
            dataset.get("missing_tables").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if !missing.is_empty() {
            notes.push_str(&format!("\nNot in this dataset: {}.", missing.join(", ")));
        }
        notes
    }

    fn checked(&self) -> String {
        let computed = match (self.recorded, self.differences.is_empty()) {
            (false, _) => "There is no trajectory beside the result, so nothing was computed again.".to_owned(),
            (true, true) => "Computed again from the trajectory: the same.".to_owned(),
            (true, false) => format!("The recording says otherwise:\n  {}", self.differences.join("\n  ")),
        };
        format!("{computed}\n{}", self.cassette.text())
    }

    fn machine(&self) -> Value {
        json!({ "run": self.name, "computed_again": self.recorded, "differences": self.differences, "cassette": { "state": self.cassette.state(), "text": self.cassette.text() }, "result": self.result })
    }
}

/// The result in a run folder, when there is one.
pub(crate) fn read_result(folder: &RunFolder) -> Result<Option<RunResult>, Fault> {
    let path = folder.result();
    if !path.is_file() {
        return Ok(None);
    }
    let named = |e: serde_json::Error| {
        Fault::new(Class::Input, e)
            .context(format!("`{}` is no result of a run", path.display()))
            .hint("take it as the run wrote it, or move it away: what the trajectory tells is computed without it")
    };
    serde_json::from_str(&read_text("result", &path)?).map(Some).map_err(named)
}

/// What a trajectory says of a run.
struct Recording {
    start: RunStart,
    days: Vec<DayFigures>,
    trades: Vec<Trade>,
    requests: u64,
    /// Calls of the agent that acts.
    calls: CallCounts,
    /// Tokens in and out, of the answers that told.
    tokens: (u64, u64),
    /// How the run ended, when it did.
    ended: Option<String>,
    /// Total assets when it ended, which may be in the middle of a day.
    assets: Option<f64>,
    /// Requests and answers, to hold them against the cassette.
    asked: Vec<Entry>,
    /// The file ends in the middle of a record.
    is_cut: bool,
}

impl Recording {
    fn read(folder: &RunFolder) -> Result<Self, Fault> {
        let read = trajectory::read(folder.trajectory()).map_err(|e| recording(e, Class::Finding))?;
        let mut recording = Self {
            start: RunStart::default(),
            days: Vec::new(),
            trades: Vec::new(),
            requests: 0,
            calls: CallCounts::default(),
            tokens: (0, 0),
            ended: None,
            assets: None,
            asked: Vec::new(),
            is_cut: read.cut.is_some(),
        };
        for entry in read.entries {
            if matches!(entry.record, Record::ModelRequest { .. } | Record::ModelResponse { .. }) {
                recording.asked.push(entry.clone());
            }
            match entry.record {
                Record::RunStart(start) => recording.start = start,
                Record::ModelResponse { response, .. } => {
                    recording.requests += 1;
                    if let Some(usage) = response.usage {
                        recording.tokens.0 += usage.input_tokens;
                        recording.tokens.1 += usage.output_tokens;
                    }
                }
                Record::ToolResult { scope: None, success, error_code, .. } => {
                    recording.calls.add(&one_call(success, error_code.as_deref()));
                }
                Record::Fill { event } => recording.trades.push(trade(&event, recording.days.len() as u32 + 1)),
                Record::RunEnd { status, totals } => {
                    // A hosted session that its caller closed is a run that was cancelled.
                    recording.ended = Some(if status == "closed" { "cancelled".to_owned() } else { status });
                    // Of a run, and of a hosted session.
                    let assets = ["final_equity", "total_value"].iter().find_map(|key| totals.get(*key)?.as_f64());
                    recording.assets = assets;
                }
                Record::DayEnd { account, .. } => recording.days.push(day(&account, recording.days.len() as u32 + 1)),
                _ => {}
            }
        }
        Ok(recording)
    }

    /// Where the trajectory is not of the cassette beside it.
    fn other(&self, cassette: &Cassette) -> Option<String> {
        trajectory::of_another(&self.asked, cassette)
            .map(|what| format!("trajectory: it is not of the cassette beside it: {what}"))
    }

    /// Where a result is not what the recording gives. What only the run could know (gains of sells, the index) is taken as it is.
    fn differences(&self, result: &RunResult) -> Vec<String> {
        let mut found = Vec::new();
        let mut check = |what: &str, kept: Value, now: Value| {
            if kept != now {
                found.push(format!("{what}: the result has {kept}, the recording gives {now}"));
            }
        };
        let without_dates =
            |days: &[DayFigures]| json!(days.iter().map(|d| DayFigures { date: None, ..d.clone() }).collect::<Vec<_>>());
        check("days", without_dates(&result.days), without_dates(&self.days));
        let bare = |trades: &[Trade]| {
            json!(trades.iter().map(|t| Trade { date: None, realised: None, ..t.clone() }).collect::<Vec<_>>())
        };
        check("trades", bare(&result.trades), bare(&self.trades));
        check("requests", result.requests.into(), self.requests.into());
        if let Some(ended) = &self.ended {
            check("status", result.status.clone().into(), ended.clone().into());
        }
        check("model", result.model.clone().into(), self.start.model.clone().into());
        check("contract_version", result.contract_version.clone().into(), self.start.contract_version.clone().into());
        let manifest = self.start.run.get("manifest");
        if let Some(cash) = manifest.and_then(|manifest| manifest.get("card")?.get("initial_cash")?.as_f64()) {
            check("initial_cash", result.initial_cash.into(), cash.into());
        }
        check("final_equity", result.final_equity.into(), self.final_equity(result.initial_cash).into());
        let of_run = |name: &str| result.dataset.get(name).cloned().unwrap_or_default();
        check("dataset", json!([of_run("name"), of_run("digest")]), json!([self.start.dataset.name, self.start.dataset.sha256]));
        if result.tokens.get("estimated_requests").and_then(Value::as_u64) == Some(0) {
            let kept = (result.tokens.get("input").cloned(), result.tokens.get("output").cloned());
            check("tokens", json!(kept), json!((Some(self.tokens.0), Some(self.tokens.1))));
        }
        let trades: Vec<Trade> = result.trades.clone();
        let mut now = figures_of(result.initial_cash, &self.days, &trades);
        now.index_return_pct = result.metrics.index_return_pct;
        now.excess_return_pct = result.metrics.excess_return_pct;
        // Reasons follow from the figures; those about the index are the run's.
        let figures = |m: &Metrics| json!(Metrics { missing_reasons: Vec::new(), ..m.clone() });
        check("metrics", figures(&result.metrics), figures(&now));
        if self.is_cut {
            found.push("trajectory: it ends in the middle of a record".to_owned());
        }
        found
    }

    /// Total assets at its end, or at the end of its last day where it has none.
    fn final_equity(&self, initial: f64) -> f64 {
        self.assets.or(self.days.last().map(|day| day.equity)).unwrap_or(initial)
    }

    /// The result of a run that was killed, as far as the recording goes.
    fn result(&self) -> Result<RunResult, Fault> {
        let manifest = self.start.run.get("manifest").cloned().unwrap_or_default();
        let manifest: Manifest = serde_json::from_value(manifest)
            .map_err(|e| Fault::new(Class::Input, e).context("the trajectory does not say what its run was"))?;
        let card = &manifest.card;
        let mut metrics = figures_of(card.initial_cash, &self.days, &self.trades);
        // Without the run's own books nobody knows what a sell gained.
        for (name, figure) in [("win_rate_pct", &mut metrics.win_rate_pct), ("profit_loss_ratio", &mut metrics.profit_loss_ratio)]
        {
            *figure = None;
            metrics.missing_reasons.retain(|missing| missing.metric != name);
            metrics.missing_reasons.push(Undefined { metric: name.to_owned(), reason: WITHOUT_RESULT.to_owned() });
        }
        Ok(RunResult {
            schema: 1,
            status: self.ended.clone().unwrap_or_else(|| "unfinished".to_owned()),
            stop_code: None,
            agent: self.start.run.get("agent").and_then(Value::as_str).unwrap_or("unknown").to_owned(),
            model: self.start.model.clone(),
            card: json!({ "id": card.id, "name": card.name, "sha256": Fingerprint::of(&json!(card)).to_string() }),
            dataset: json!({ "name": self.start.dataset.name, "digest": self.start.dataset.sha256.map(|d| d.to_string()), "synthetic": self.start.synthetic, "missing_tables": [] }),
            masked: json!({ "dates": manifest.mask_dates, "entities": manifest.mask_entities, "key_id": manifest.entity_mask_seed }),
            window: manifest.window.as_ref().map(|w| json!(w)),
            contract_version: self.start.contract_version.clone(),
            initial_cash: card.initial_cash,
            final_equity: self.final_equity(card.initial_cash),
            metrics,
            days: self.days.clone(),
            trades: self.trades.clone(),
            calls: json!(self.calls),
            requests: self.requests,
            advice: None,
            tokens: json!({ "input": self.tokens.0, "output": self.tokens.1, "estimated_requests": 0 }),
            cost: json!({ "amount": null, "reason": WITHOUT_RESULT }),
            budgets: Value::Null,
        })
    }
}

/// A call as it counts. A failure with a code of a newer program counts as one of the environment.
fn one_call(success: bool, code: Option<&str>) -> CallCounts {
    let family = code.and_then(|code| ErrorCode::ALL.iter().find(|known| known.as_str() == code)).map(|code| code.family());
    let mut counts = CallCounts::default();
    match (success, family) {
        (true, _) => counts.succeeded = 1,
        (false, Some(ErrorFamily::Arguments)) => counts.bad_arguments = 1,
        (false, Some(ErrorFamily::Refused)) => counts.refused = 1,
        (false, Some(ErrorFamily::Environment) | None) => counts.environment = 1,
    }
    counts
}

fn number(value: &Value, key: &str) -> f64 {
    value.get(key).and_then(Value::as_f64).unwrap_or_default()
}

fn count(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn trade(event: &Value, day: u32) -> Trade {
    let fees = event.get("fees").cloned().unwrap_or_default();
    let fees: i64 = ["commission", "stamp_duty", "transfer"].iter().map(|key| cents(number(&fees, key)).0).sum();
    Trade {
        number: count(event, "number"),
        day,
        date: None,
        time: text(event, "bar_end"),
        stock_code: text(event, "stock_code"),
        side: text(event, "side"),
        quantity: count(event, "quantity") as i64,
        price: number(event, "price"),
        amount: number(event, "amount"),
        fees: Cash(fees).to_f64(),
        realised: None,
        condition: event.get("origin").and_then(Value::as_str).map(str::to_owned),
    }
}

fn day(account: &Value, day: u32) -> DayFigures {
    let record = account.get("record").cloned().unwrap_or_default();
    DayFigures {
        day,
        date: None,
        equity: number(&record, "equity"),
        cash: number(&record, "cash"),
        positions: count(&record, "positions"),
        fills: count(&record, "fills"),
    }
}

/// Figures of days and trades, without an index.
fn figures_of(initial: f64, days: &[DayFigures], trades: &[Trade]) -> Metrics {
    let equity: Vec<Cash> = days.iter().map(|day| cents(day.equity)).collect();
    let fills: Vec<Fill> = trades.iter().filter_map(fill).collect();
    metrics(&Basis { initial: cents(initial), equity: &equity, fills: &fills, index: None })
}

/// The fill of a trade, as far as figures depend on it; nothing else of it is true.
fn fill(trade: &Trade) -> Option<Fill> {
    let net = cents(trade.realised.unwrap_or_default());
    Some(Fill {
        number: trade.number,
        day: Day::default(),
        point: DecisionPoint::Open1,
        bar_end: Minute::default(),
        bar_volume: Shares(0),
        liquidity_left: None,
        rules: RuleSet { band: "", limit_up: None, limit_down: None, fees: FeeSchedule::Dated, participation_basis_points: None },
        security: Code::parse("000000")?,
        side: if trade.side == "buy" { Side::Buy } else { Side::Sell },
        price: Price(0),
        shares: Shares(trade.quantity),
        amount: cents(trade.amount),
        fees: Fees { commission: cents(trade.fees), ..Fees::default() },
        realised: traderharness_tools_exec::ledger::Realised { net, ..Default::default() },
        opened: false,
        closed: false,
        cash_after: Cash(0),
        withdrawable_after: Cash(0),
        holdings_after: Vec::new(),
        protective_order_id: None,
        reasoning: String::new(),
        origin: Origin::Agent,
        repeated: false,
    })
}
