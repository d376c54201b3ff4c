//! `traderharness compare`: several agents over the same days on one store that nobody can change. Each has a session, an account and a
//! recording of its own; a day is played by one after the other in the order in which they are named, so that no byte depends on how
//! threads are scheduled. One that stops does not stop the others.

pub(crate) mod pair;
mod rank;
mod spec;
mod turns;

use crate::args::CompareOptions;
use crate::code::{Files, LatePool};
use crate::fault::{Class, Fault, Outcome};
use crate::figures;
use crate::limits;
use crate::manifest::{Manifest, Private, hex, new_key, read_key, window, write_whole};
use crate::plugins::Offer;
use crate::report::{print, tell};
use crate::result::RunResult;
use crate::run::{Market, Performance, Performed, RunFolder, World, absolute, pretty};
use crate::source;
use rank::Difference;
use serde_json::{Value, json};
use spec::{Entrant, Spec};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use traderharness_harness::CancelToken;
use traderharness_market::Day;
use traderharness_replay::Fingerprint;
use turns::{DayTold, InTurn, Place, Turns};

/// What one agent came to under one key.
struct Ended {
    result: Option<RunResult>,
    /// Why it stopped or never began.
    fault: Option<String>,
    cancelled: bool,
}

/// Everything the agents share.
struct Arena<'a> {
    spec: &'a Spec,
    market: &'a Market,
    days: &'a [Day],
    options: &'a CompareOptions,
    cancel: &'a CancelToken,
    told: DayTold<'a>,
}

pub(crate) fn compare(options: &CompareOptions) -> Outcome {
    let spec = Spec::read(options)?;
    if options.limits.max_cost.is_some() && spec.entrants.iter().all(|entrant| entrant.agent.prices.is_none()) {
        return Err(
            Fault::text(Class::Input, "--max-cost needs prices, and no agent has any").hint("pass --price-in and --price-out")
        );
    }
    let window = window(&spec.window.start, &spec.window.end)?;
    let first = match &spec.mask_key {
        Some(path) => read_key(path)?,
        None => new_key()?,
    };
    let market = Market::from(source::open(spec.data.as_deref(), options.json)?);
    let days = market.days(window)?;
    let unreached = market.unreached(window);
    let folder = RunFolder::create(&options.record)?;
    let cancel = limits::on_signal();
    let quiet = options.json;
    let of = days.len();
    let told = move |name: &str, day: u32, assets: f64| {
        if !quiet {
            tell(&format!("day {day}/{of}  {name}  total assets {assets:.2}"));
        }
    };
    let hides_dates = Manifest::hides(spec.mask).0;
    if let Some(note) = spec.chosen.note().filter(|_| Manifest::hides(spec.mask).1) {
        tell(note);
    }
    if let Some(note) = unreached.as_ref().filter(|_| !quiet || hides_dates) {
        tell(&format!("note: {note}"));
    }
    let arena = Arena { spec: &spec, market: &market, days: &days, options, cancel: &cancel, told: &told };
    let mut played: Vec<Vec<Ended>> = spec.entrants.iter().map(|_| Vec::new()).collect();
    for seed in 0..spec.seeds {
        let base = if spec.seeds == 1 { folder.path.clone() } else { folder.path.join(format!("key-{}", seed + 1)) };
        for (entrant, ended) in played.iter_mut().zip(arena.play(&key_of(&first, seed), &base)) {
            entrant.push(ended);
        }
    }
    let compared = Compared::of(&spec, played);
    let mut value = compared.machine(&spec, &market);
    if let Some(note) = unreached.filter(|_| !hides_dates) {
        value["window_note"] = note.into();
    }
    write_whole(&folder.path.join("compare.json"), pretty(&value).as_bytes(), false)?;
    if quiet {
        print(&pretty(&value));
    } else {
        print(&compared.text());
        print(&format!("{}\nRecorded in {}.", market.notes(), folder.path.display()));
        if let Some((one, other)) = compared.alike().filter(|_| spec.seeds == 1) {
            let of = |name: &str| folder.path.join(name).display().to_string();
            print(&format!("{one} and {other} play one card: why they differ says traderharness diff {} {}", of(one), of(other)));
        }
    }
    let agents = || compared.rows.iter().flat_map(|row| &row.ended);
    Ok(if agents().any(|ended| ended.cancelled) || agents().all(|ended| ended.fault.is_some()) {
        ExitCode::from(Class::Stopped as u8)
    } else {
        ExitCode::SUCCESS
    })
}

/// Mask keys of a comparison follow from the first one.
fn key_of(first: &[u8], seed: u32) -> Vec<u8> {
    if seed == 0 { first.to_vec() } else { Fingerprint::of(&json!({ "key": hex(first), "seed": seed })).0.to_vec() }
}

impl Arena<'_> {
    /// Plays every agent under one key, each on a thread of its own that waits for its turn.
    fn play(&self, key: &[u8], base: &Path) -> Vec<Ended> {
        let turns = Turns::new(self.spec.entrants.len());
        std::thread::scope(|scope| {
            let entrants = self.spec.entrants.iter().enumerate();
            let threads: Vec<_> = entrants
                .map(|(n, entrant)| {
                    let place = Place::new(turns.clone(), n);
                    scope.spawn(move || self.one(entrant, key, base, place))
                })
                .collect();
            let lost = |_| Err(Fault::text(Class::Stopped, "a defect of this program ended the agent's run"));
            threads
                .into_iter()
                .map(|thread| match thread.join().unwrap_or_else(lost) {
                    Ok(performed) => Ended {
                        cancelled: performed.result.status == "cancelled",
                        result: Some(performed.result),
                        fault: performed.stopped.map(|fault| fault.sentence()),
                    },
                    Err(fault) => Ended { result: None, fault: Some(fault.sentence()), cancelled: false },
                })
                .collect()
        })
    }

    fn one(&self, entrant: &Entrant, key: &[u8], base: &Path, place: Place) -> Result<Performed, Fault> {
        let folder = RunFolder::create(&base.join(&entrant.name))?;
        let agent = &entrant.agent;
        let (mask_dates, mask_entities) = Manifest::hides(self.spec.mask);
        let asked = self.spec.window.clone();
        let mut manifest = Manifest {
            window: (!mask_dates).then(|| asked.clone()),
            mask_dates,
            mask_entities,
            ..Manifest::of(entrant.card.clone(), agent)
        }
        .under(self.spec.chosen(entrant));
        let world = World::over(self.market.clone(), &mut manifest, &asked, key.to_vec(), false, &Offer::default())?;
        let pool = LatePool::new(&self.options.interpreter);
        let files = Files::open(&world.card, None, Some(folder.workspace()))?;
        world.sandbox.set(Some(files.sandbox(&pool, false)));
        let limits = if agent.prices.is_some() { self.options.limits.clone() } else { self.options.limits.without_cost() };
        let performance = Performance {
            world: &world,
            manifest: &manifest,
            agent,
            days: self.days,
            folder: Some(&folder),
            private: Private {
                mask_key: hex(key),
                window: asked,
                data: absolute(self.spec.data.as_deref()),
                gate: None,
                player: Some(agent.plan.identity()),
            },
            settings: limits.settings(&agent.plan.model(), self.cancel.clone())?,
            gate: None,
        };
        let mut observer = InTurn { place, name: &entrant.name, told: self.told };
        performance.play(&mut observer, traderharness_connect::progress::unwatched())
    }
}

/// One agent with all its results.
struct Row {
    name: String,
    is_baseline: bool,
    /// Name of the contract it played under.
    contract: String,
    ended: Vec<Ended>,
    rank: Option<usize>,
}

struct Compared {
    rows: Vec<Row>,
    differences: Vec<Difference>,
}

impl Row {
    fn results(&self) -> impl Iterator<Item = &RunResult> {
        self.ended.iter().filter_map(|ended| ended.result.as_ref())
    }

    /// Daily returns, the mean over keys of each day that ended under all of them. Empty when it stopped under one.
    fn returns(&self) -> Vec<f64> {
        if self.ended.iter().any(|ended| ended.fault.is_some()) {
            return Vec::new();
        }
        let of = |r: &RunResult| {
            rank::returns(&std::iter::once(r.initial_cash).chain(r.days.iter().map(|d| d.equity)).collect::<Vec<_>>())
        };
        let all: Vec<Vec<f64>> = self.results().map(of).collect();
        let days = all.iter().map(Vec::len).min().unwrap_or(0);
        (0..days).map(|day| all.iter().map(|returns| returns[day]).sum::<f64>() / all.len() as f64).collect()
    }

    /// Mean of a figure over the keys under which it is there.
    fn mean(&self, figure: impl Fn(&RunResult) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.results().filter_map(figure).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn sum(&self, of: impl Fn(&RunResult) -> u64) -> u64 {
        self.results().map(of).sum()
    }
}

fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

impl Compared {
    /// Two agents with one card and one model: whatever they differ in is neither of the two.
    fn alike(&self) -> Option<(&str, &str)> {
        let of = |row: &Row| row.results().next().map(|result| (result.card.clone(), result.model.clone()));
        let players: Vec<&Row> = self.rows.iter().filter(|row| !row.is_baseline).collect();
        players.iter().enumerate().find_map(|(at, one)| {
            let other = players.iter().skip(at + 1).find(|other| of(one).is_some() && of(one) == of(other))?;
            Some((one.name.as_str(), other.name.as_str()))
        })
    }

    fn of(spec: &Spec, played: Vec<Vec<Ended>>) -> Self {
        let mut rows: Vec<Row> = spec
            .entrants
            .iter()
            .zip(played)
            .map(|(e, ended)| Row {
                name: e.name.clone(),
                is_baseline: e.is_baseline,
                contract: spec.chosen(e).contract.name().to_owned(),
                ended,
                rank: None,
            })
            .collect();
        let returns: Vec<Vec<f64>> = rows.iter().map(Row::returns).collect();
        let whole = |n: &usize| rows[*n].ended.iter().all(|ended| ended.fault.is_none());
        let judged: Vec<usize> = (0..rows.len()).filter(whole).collect();
        let mut differences = Vec::new();
        for (at, a) in judged.iter().enumerate() {
            for b in &judged[at + 1..] {
                differences.push(rank::difference((&rows[*a].name, &returns[*a]), (&rows[*b].name, &returns[*b])));
            }
        }
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        for (row, rank) in rows.iter_mut().zip(rank::ranks(&names, &differences)) {
            row.rank = rank;
        }
        Self { rows, differences }
    }

    fn machine(&self, spec: &Spec, market: &Market) -> Value {
        let meta = market.store.meta();
        let of_mask = Manifest::hides(spec.mask);
        json!({
            "schema": 1,
            "window": (!of_mask.0).then_some(&spec.window),
            "masked": { "dates": of_mask.0, "entities": of_mask.1, "keys": spec.seeds },
            "dataset": { "name": meta.name, "digest": meta.digest, "synthetic": meta.synthetic, "missing_tables": market.missing_tables },
            "entrants": self.rows.iter().map(|row| json!({
                "name": row.name,
                "baseline": row.is_baseline,
                "contract": row.contract,
                "rank": row.rank,
                "total_return_pct": row.mean(|r| r.metrics.total_return_pct),
                "results": row.ended.iter().map(|ended| json!({ "fault": ended.fault, "result": ended.result })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "ranking": {
                "method": "circular block bootstrap of the mean difference of daily returns, 95 %",
                "resamples": rank::RESAMPLES,
                "days_needed": rank::ENOUGH_DAYS,
                "enough": self.enough(),
                "pairs": self.differences,
            },
        })
    }

    fn enough(&self) -> bool {
        self.rows.iter().any(|row| row.rank.is_some())
    }

    fn text(&self) -> String {
        let mut order: Vec<&Row> = self.rows.iter().collect();
        // By rank, then by what they earned; the order of naming decides between equals.
        let earned = |row: &Row| row.mean(|r| r.metrics.total_return_pct).unwrap_or(f64::NEG_INFINITY);
        order.sort_by(|a, b| {
            a.rank.unwrap_or(usize::MAX).cmp(&b.rank.unwrap_or(usize::MAX)).then(earned(b).total_cmp(&earned(a)))
        });
        let head =
            ["rank", "agent", "return %", "annual %", "vs index", "Sharpe", "Sortino", "Calmar", "drawdown %", "losing days"];
        let more = ["win %", "P/L", "turnover %", "trades", "fees"];
        let mut lines = vec![head.iter().chain(&more).map(|text| (*text).to_owned()).collect::<Vec<_>>()];
        let count = [
            "agent",
            "requests",
            "calls",
            "bad arguments",
            "refused",
            "environment",
            "tokens in",
            "tokens out",
            "cost",
            "status",
        ];
        let mut counts = vec![count.map(str::to_owned).to_vec()];
        for row in &order {
            let figure =
                |of: &dyn Fn(&RunResult) -> Option<f64>| row.mean(of).map_or_else(|| "n/a".to_owned(), |v| format!("{v:.2}"));
            lines.push(vec![
                row.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string()),
                row.name.clone(),
                figure(&|r| r.metrics.total_return_pct),
                figure(&|r| r.metrics.annual_return_pct),
                figure(&|r| r.metrics.excess_return_pct),
                figure(&|r| r.metrics.sharpe),
                figure(&|r| r.metrics.sortino),
                figure(&|r| r.metrics.calmar),
                figure(&|r| r.metrics.max_drawdown_pct),
                row.results().map(|r| r.metrics.longest_losing_streak).max().unwrap_or(0).to_string(),
                figure(&|r| r.metrics.win_rate_pct),
                figure(&|r| r.metrics.profit_loss_ratio),
                figure(&|r| r.metrics.turnover_pct),
                row.sum(|r| (r.metrics.buys + r.metrics.sells) as u64).to_string(),
                figure(&|r| Some(r.metrics.fees)),
            ]);
            let calls = |key: &str| row.sum(|r| number(&r.calls, key));
            let all: u64 = ["succeeded", "bad_arguments", "refused", "environment"].iter().map(|key| calls(key)).sum();
            let faults: Vec<&str> = row.ended.iter().filter_map(|ended| ended.fault.as_deref()).collect();
            counts.push(vec![
                row.name.clone(),
                row.sum(|r| r.requests).to_string(),
                all.to_string(),
                calls("bad_arguments").to_string(),
                calls("refused").to_string(),
                calls("environment").to_string(),
                row.tokens("input"),
                row.tokens("output"),
                row.cost(),
                faults.first().map_or_else(|| "completed".to_owned(), |fault| format!("stopped: {fault}")),
            ]);
        }
        let mut text = format!("\n{}\n{}", figures::table(&lines), figures::table(&counts));
        text.push_str(&self.contracts());
        text.push_str(&self.ranking());
        text
    }

    /// Who played under what, where not all played under one contract.
    fn contracts(&self) -> String {
        let mut under: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        self.rows.iter().for_each(|row| under.entry(&row.contract).or_default().push(&row.name));
        if under.len() < 2 {
            return String::new();
        }
        let each: Vec<String> = under.iter().map(|(contract, names)| format!("{contract}: {}", names.join(", "))).collect();
        format!(
            "\nPlayed under {}. A rule reads results in the shape of v5; what is traded and charged is the same under every contract.\n",
            each.join("; ")
        )
    }

    /// What the ranks mean, in words.
    fn ranking(&self) -> String {
        let short = self.differences.iter().all(|d| d.verdict == rank::SHORT);
        if self.differences.is_empty() {
            return "\nNothing to rank: fewer than two agents came to their end.".to_owned();
        }
        if short {
            return format!("\nNot enough to rank: {} days are needed to tell agents apart.", rank::ENOUGH_DAYS);
        }
        if !self.enough() {
            return "\nNot enough to rank: no two agents differ by more than chance (95 % block bootstrap of daily returns)."
                .to_owned();
        }
        let clear: Vec<String> = self
            .differences
            .iter()
            .filter_map(|d| match d.verdict {
                rank::A => Some(format!("{} > {}", d.a, d.b)),
                rank::B => Some(format!("{} > {}", d.b, d.a)),
                _ => None,
            })
            .collect();
        let open = self.differences.len() - clear.len();
        format!(
            "\nA rank is one more than the agents that are better beyond chance (95 % block bootstrap of daily returns).\nBeyond chance: {}. Not enough to rank: {open} of {} pairs.",
            clear.join(", "),
            self.differences.len()
        )
    }
}

impl Row {
    /// Tokens under all keys; rules and scripts use none.
    fn tokens(&self, key: &str) -> String {
        if self.results().any(figures::asks) { self.sum(|r| number(&r.tokens, key)).to_string() } else { "n/a".to_owned() }
    }

    /// Cost under all keys; known only when it is known under each.
    fn cost(&self) -> String {
        let one =
            |r: &RunResult| Some((r.cost.get("amount")?.as_str()?.to_owned(), r.cost.get("currency")?.as_str()?.to_owned()));
        match self.results().map(one).collect::<Option<Vec<_>>>() {
            Some(costs) if !costs.is_empty() => {
                costs.iter().map(|(amount, currency)| format!("{amount} {currency}")).collect::<Vec<_>>().join(" + ")
            }
            _ => "n/a".to_owned(),
        }
    }
}
