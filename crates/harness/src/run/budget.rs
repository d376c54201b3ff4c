//! Budgets of a run (engine E10.11): how much a run may ask, call, read, pay and last. A limit is looked at before each request and
//! before each call; when one is reached the run stops with its name, and everything that was done stays recorded.
//!
//! Counts are exact integers and money is whole units of 1e-12. Wall time is the only thing here that is not a fact of the run: it is
//! measured by the host and never reaches a record.

use crate::context::estimate_values;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use traderharness_replay::{Request, Response, Usage};

/// Limits of a run; `None` is no limit, 0 allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// Model requests.
    pub max_requests: Option<u64>,
    /// Tool calls, failed ones too.
    pub max_calls: Option<u64>,
    /// Tokens of requests and answers together, as the client reports them, else as estimated.
    pub max_tokens: Option<u64>,
    /// Cost in micro-units of the currency of the prices: 1,000,000 = 1 USD where prices are in USD.
    pub max_cost_micros: Option<u64>,
    /// Wall time of this process, whole milliseconds. A resumed run begins to count again.
    pub max_wall_millis: Option<u64>,
}

/// What one million tokens cost, in micro-units of one currency: 2,500,000 = 2.50 USD per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Tokens of a request.
    pub input_micros: u64,
    /// Tokens of an answer.
    pub output_micros: u64,
    /// Tokens of a request that the provider had in its cache; as other input when absent.
    #[serde(default)]
    pub cached_input_micros: Option<u64>,
}

impl Prices {
    /// Exact cost of one exchange in 1e-12 of the currency. Cached tokens are part of the request's.
    pub fn cost(&self, usage: &Usage) -> u128 {
        let cached = usage.cached_tokens().unwrap_or(0).min(usage.input_tokens);
        let wide = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        wide(usage.input_tokens - cached, self.input_micros)
            + wide(cached, self.cached_input_micros.unwrap_or(self.input_micros))
            + wide(usage.output_tokens, self.output_micros)
    }
}

/// Measures wall time for [`Budgets::max_wall_millis`]. The host implements it: this crate reads no clock.
pub trait Stopwatch: Send + Sync + std::fmt::Debug {
    /// Time since the run was begun.
    fn elapsed(&self) -> Duration;
}

/// Tokens and cost of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spending {
    /// Tokens of all requests.
    pub input_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
    /// Requests whose tokens the provider did not report, so that they are estimates.
    pub estimated_requests: u64,
    /// Exact cost in 1e-12 of the currency of the prices; `None` without prices. Written in micro-units, rounded up.
    #[serde(rename = "cost_micros", serialize_with = "as_micros")]
    pub cost: Option<u128>,
}

fn as_micros<S: serde::Serializer>(cost: &Option<u128>, serializer: S) -> Result<S::Ok, S::Error> {
    cost.map(micros).serialize(serializer)
}

/// An amount of 1e-12 in 1e-6, rounded up: a cap is never passed by rounding.
fn micros(cost: u128) -> u64 {
    u64::try_from(cost.div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

impl Spending {
    /// Tokens of both directions.
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Counts one exchange.
    pub(crate) fn count(&mut self, request: &Request, response: &Response, prices: Option<&Prices>) {
        let usage = response.usage.clone().unwrap_or_else(|| {
            self.estimated_requests += 1;
            Usage {
                input_tokens: estimate_values(request.messages.iter().map(|m| &m.0).chain(&request.tools)),
                output_tokens: estimate_values(std::iter::once(&response.message.0)),
                ..Usage::default()
            }
        });
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        if let Some(prices) = prices {
            self.cost = Some(self.cost.unwrap_or_default().saturating_add(prices.cost(&usage)));
        }
    }
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// [`Budgets::max_requests`].
    Requests,
    /// [`Budgets::max_calls`].
    Calls,
    /// [`Budgets::max_tokens`].
    Tokens,
    /// [`Budgets::max_cost_micros`].
    Cost,
    /// [`Budgets::max_wall_millis`].
    WallTime,
}

impl BudgetKind {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Calls => "calls",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::WallTime => "wall_time",
        }
    }

    /// Unit of `limit` and `used`.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Calls => "calls",
            Self::Tokens => "tokens",
            Self::Cost => "micro-units",
            Self::WallTime => "ms",
        }
    }
}

/// A limit was reached before the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the run's budget of {} {} is used up ({used} used)", .limit, .which.unit())]
pub struct BudgetExhausted {
    /// Which.
    pub which: BudgetKind,
    /// The limit.
    pub limit: u64,
    /// What was used when it was looked at; may be above the limit for tokens, cost and time, whose size is known only afterwards.
    pub used: u64,
}

/// What is used so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    pub(crate) requests: u64,
    pub(crate) calls: u64,
    pub(crate) spending: Spending,
}

impl Budgets {
    /// Looks at every limit but the number of calls, before a request.
    ///
    /// # Errors
    /// The first limit that is reached, in the order of [`BudgetKind`].
    pub(crate) fn before_request(&self, used: &Used, watch: Option<&dyn Stopwatch>) -> Result<(), BudgetExhausted> {
        reached(BudgetKind::Requests, self.max_requests, used.requests)?;
        self.running(used, watch)
    }

    /// Looks at the limits that hold for a call.
    ///
    /// # Errors
    /// As [`Budgets::before_request`].
    pub(crate) fn before_call(&self, used: &Used, watch: Option<&dyn Stopwatch>) -> Result<(), BudgetExhausted> {
        reached(BudgetKind::Calls, self.max_calls, used.calls)?;
        // The tokens and the cost of the answer that makes these calls are spent; its calls cost none.
        reached(BudgetKind::WallTime, self.max_wall_millis, millis(watch))
    }

    /// Calls that may still be made.
    pub(crate) fn calls_left(&self, used: &Used) -> u64 {
        self.max_calls.map_or(u64::MAX, |limit| limit.saturating_sub(used.calls))
    }

    fn running(&self, used: &Used, watch: Option<&dyn Stopwatch>) -> Result<(), BudgetExhausted> {
        reached(BudgetKind::Tokens, self.max_tokens, used.spending.tokens())?;
        reached(BudgetKind::Cost, self.max_cost_micros, micros(used.spending.cost.unwrap_or_default()))?;
        reached(BudgetKind::WallTime, self.max_wall_millis, millis(watch))
    }
}

fn millis(watch: Option<&dyn Stopwatch>) -> u64 {
    watch.map_or(0, |watch| u64::try_from(watch.elapsed().as_millis()).unwrap_or(u64::MAX))
}

fn reached(which: BudgetKind, limit: Option<u64>, used: u64) -> Result<(), BudgetExhausted> {
    match limit {
        Some(limit) if used >= limit => Err(BudgetExhausted { which, limit, used }),
        _ => Ok(()),
    }
}
