//! What a run came to, as `result.json` in its folder: figures with reasons for those that are not there, the curve of total assets, trades,
//! calls by family, tokens, cost, limits and status. Codes and days stand in it as the run showed them to its agent: a result of a masked
//! run names neither. Nothing measured is in it ([`crate::measured`]), so two equal runs write equal bytes.

use crate::manifest::Manifest;
use crate::run::World;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use traderharness_connect::price::Amount;
use traderharness_harness::metrics::{Basis, Metrics, index_around, metrics};
use traderharness_harness::run::{Budgets, RunStatus, RunSummary};
use traderharness_market::{Cash, Side};
use traderharness_replay::Fingerprint;
use traderharness_tools_exec::{Fill, Origin};

/// Version of the file.
const SCHEMA: u32 = 1;

/// One day that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DayFigures {
    /// From 1.
    pub(crate) day: u32,
    /// YYYY-MM-DD; absent when the run hides dates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
    /// Total assets at 15:00, CNY.
    pub(crate) equity: f64,
    /// Usable cash, CNY.
    pub(crate) cash: f64,
    /// Positions held.
    pub(crate) positions: u64,
    /// Fills of the day.
    pub(crate) fills: u64,
}

/// One fill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trade {
    /// From 1.
    pub(crate) number: u64,
    /// Day of the run, from 1.
    pub(crate) day: u32,
    /// YYYY-MM-DD; absent when the run hides dates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
    /// End of the bar it filled at, HH:MM.
    pub(crate) time: String,
    /// Code as the agent saw it.
    pub(crate) stock_code: String,
    /// `buy` or `sell`.
    pub(crate) side: String,
    /// Shares.
    pub(crate) quantity: i64,
    /// CNY per share.
    pub(crate) price: f64,
    /// `price x quantity`, CNY.
    pub(crate) amount: f64,
    /// Commission, stamp duty and transfer fee, CNY.
    pub(crate) fees: f64,
    /// Gain of a sell after the fees of both sides, CNY; null for a buy.
    pub(crate) realised: Option<f64>,
    /// Conditional order that placed it; null for the agent.
    pub(crate) condition: Option<String>,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunResult {
    pub(crate) schema: u32,
    /// `completed`, `cancelled`, `budget_exhausted`, `aborted` or `failed`.
    pub(crate) status: String,
    /// Stable code of why it stopped.
    pub(crate) stop_code: Option<String>,
    /// Who played: `script`, `baseline RULE`, `model`, `program`.
    pub(crate) agent: String,
    pub(crate) model: String,
    /// `id`, `name`, `sha256`.
    pub(crate) card: Value,
    /// `name`, `digest`, `synthetic`, `missing_tables`.
    pub(crate) dataset: Value,
    /// `dates`, `entities`, `key_id`.
    pub(crate) masked: Value,
    /// First and last day asked for; null when the run hides dates.
    pub(crate) window: Option<Value>,
    pub(crate) contract_version: String,
    pub(crate) initial_cash: f64,
    pub(crate) final_equity: f64,
    pub(crate) metrics: Metrics,
    pub(crate) days: Vec<DayFigures>,
    pub(crate) trades: Vec<Trade>,
    /// `succeeded`, `bad_arguments`, `refused`, `environment`.
    pub(crate) calls: Value,
    pub(crate) requests: u64,
    /// What advisors did, apart from their agent: `requests` (among those above), `absences`, `calls`. Only for a card with a committee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<Value>,
    /// `input`, `output`, `estimated_requests`.
    pub(crate) tokens: Value,
    /// `amount` (decimal text), `currency`, `reason` when there is no amount.
    pub(crate) cost: Value,
    /// Limits of the process that stopped; null for a run that came to its end, whatever its limits were: they changed nothing of it.
    pub(crate) budgets: Value,
}

/// What a result is made of, beside the world after its run.
pub(crate) struct Played<'a> {
    pub(crate) world: &'a World,
    pub(crate) manifest: &'a Manifest,
    /// Who played, in words ([`crate::agent::Plan::describe`]).
    pub(crate) agent: String,
    pub(crate) model: String,
    /// Currency of the manifest's prices.
    pub(crate) currency: Option<String>,
    pub(crate) summary: &'a RunSummary,
    pub(crate) budgets: &'a Budgets,
}

impl RunResult {
    /// The result of a run that ended, at its end or before.
    pub(crate) fn of(played: &Played<'_>) -> Self {
        let Played { world, manifest, agent, model, currency, summary, budgets } = played;
        let books = world.books.borrow();
        let meta = world.store.meta();
        let real: Vec<_> = summary.days.iter().map(|d| d.day).collect();
        let equity: Vec<Cash> = summary.days.iter().map(|d| cents(d.equity)).collect();
        let index = real.first().zip(real.last()).and_then(|(a, b)| index_around(&world.store, &world.mask, *a, *b));
        let date = |day: traderharness_market::Day| (!manifest.mask_dates).then(|| day.to_string());
        let number = |day| real.iter().position(|d| *d == day).unwrap_or(real.len()) as u32 + 1;
        let trade = |fill: &Fill| Trade {
            number: fill.number,
            day: number(fill.day),
            date: date(fill.day),
            time: fill.bar_end.to_string(),
            stock_code: world.store.find(fill.security).map_or_else(String::new, |sec| world.mask.code(sec).to_owned()),
            side: if fill.side == Side::Buy { "buy" } else { "sell" }.to_owned(),
            quantity: fill.shares.0,
            price: fill.price.to_f64(),
            amount: fill.amount.to_f64(),
            fees: fill.fees.total().to_f64(),
            realised: (fill.side == Side::Sell).then(|| fill.realised.net.to_f64()),
            condition: match &fill.origin {
                Origin::Agent => None,
                Origin::Condition { order_id, .. } => Some(order_id.clone()),
            },
        };
        let card = serde_json::to_value(&manifest.card).unwrap_or_default();
        Self {
            schema: SCHEMA,
            status: summary.status.as_str().to_owned(),
            stop_code: summary.stop_code.map(str::to_owned),
            agent: agent.clone(),
            model: model.clone(),
            card: json!({ "id": manifest.card.id, "name": manifest.card.name, "sha256": Fingerprint::of(&card).to_string() }),
            dataset: json!({ "name": meta.name, "digest": meta.digest, "synthetic": meta.synthetic, "missing_tables": world.market.missing_tables }),
            masked: json!({ "dates": manifest.mask_dates, "entities": manifest.mask_entities, "key_id": manifest.entity_mask_seed }),
            window: manifest.window.as_ref().map(|w| json!(w)),
            contract_version: manifest.contract.name().to_owned(),
            initial_cash: summary.initial_cash,
            final_equity: summary.final_equity,
            metrics: metrics(&Basis { initial: books.initial, equity: &equity, fills: &books.fills, index }),
            days: summary
                .days
                .iter()
                .map(|d| DayFigures {
                    day: d.day_index + 1,
                    date: date(d.day),
                    equity: d.equity,
                    cash: d.cash,
                    positions: d.positions as u64,
                    fills: d.fills as u64,
                })
                .collect(),
            trades: books.fills.iter().filter(|fill| !fill.repeated).map(trade).collect(),
            calls: json!(summary.calls),
            requests: summary.requests,
            advice: summary.advice.map(|advice| json!(advice)),
            tokens: json!({
                "input": summary.spending.input_tokens,
                "output": summary.spending.output_tokens,
                "estimated_requests": summary.spending.estimated_requests,
            }),
            cost: cost(summary, currency.as_deref()),
            budgets: if summary.status == RunStatus::Completed { Value::Null } else { json!(budgets) },
        }
    }
}

/// Fields of two results that are not the same.
pub(crate) fn differing(a: &RunResult, b: &RunResult) -> Vec<String> {
    let (Ok(Value::Object(a)), Ok(Value::Object(b))) = (serde_json::to_value(a), serde_json::to_value(b)) else {
        return vec!["everything".to_owned()];
    };
    a.iter().filter(|(name, value)| b.get(*name) != Some(value)).map(|(name, _)| name.clone()).collect()
}

/// A cost that is not known is none with a reason. Estimated tokens have no exact cost.
fn cost(summary: &RunSummary, currency: Option<&str>) -> Value {
    let spending = &summary.spending;
    let known = match (currency, spending.cost) {
        (None, _) => Err("no prices were given".to_owned()),
        _ if spending.estimated_requests > 0 => {
            Err(format!("{} of {} answers came without token counts", spending.estimated_requests, summary.requests))
        }
        (Some(currency), cost) => Ok((Amount(cost.unwrap_or_default()), currency)),
    };
    match known {
        Ok((amount, currency)) => json!({ "amount": amount, "currency": currency }),
        Err(reason) => json!({ "amount": null, "reason": reason }),
    }
}

/// Whole cents of an amount that was made of whole cents.
pub(crate) fn cents(amount: f64) -> Cash {
    Cash((amount * 100.0).round() as i64)
}
