//! Rule-based baselines: agents without a model, so that a model has something to beat.
//!
//! A baseline is a [`ModelClient`]: it reads what a model would read, calls the same tools, and is refused by the same rules. It keeps
//! nothing between requests; what it does follows from the request, the turn and its settings alone, so its runs record, replay and
//! resume like any other. None of them is meant to be good.

use crate::Card;
use crate::model::{ModelClient, ModelError, Turn, advisor_role};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::str::FromStr;
use traderharness_market::DecisionPoint;
use traderharness_replay::{Message, Request, Response, ToolCall};

/// Which rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Buys the largest stocks by amount on the first day on which they can be traded, and holds them.
    BuyAndHold,
    /// Among the largest stocks by amount, holds those whose mean close of 5 sessions is above that of 20.
    MovingAverage,
    /// Buys and sells by chance, from this seed.
    Random(u64),
}

/// A text that names no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no baseline; use buy-and-hold, moving-average, random or random:SEED")]
pub struct RuleError {
    /// What was given.
    pub text: String,
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        match (text, text.strip_prefix("random:")) {
            ("buy-and-hold", _) => Ok(Self::BuyAndHold),
            ("moving-average", _) => Ok(Self::MovingAverage),
            ("random", _) => Ok(Self::Random(1)),
            (_, Some(seed)) => seed.parse().map(Self::Random).map_err(|_| RuleError { text: text.to_owned() }),
            _ => Err(RuleError { text: text.to_owned() }),
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuyAndHold => f.write_str("buy-and-hold"),
            Self::MovingAverage => f.write_str("moving-average"),
            Self::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

impl Rule {
    /// What the rule decides by, as data: for listings of what a result was measured against. Nothing is read back from it.
    pub fn parameters(self) -> Value {
        let mut parameters = json!({
            "selected_by": "amount of the previous session, largest first, ST excluded",
            "share_of_a_position": "what the card lets a position have, or an equal share if that is less",
            "filled_share": FILL,
            "lot": LOT,
            "smallest_order": SMALLEST,
            "orders_at": DecisionPoint::Open1.as_str(),
        });
        let own = match self {
            Self::BuyAndHold => json!({ "candidates": CHOICE, "sells": "never" }),
            Self::MovingAverage => json!({
                "candidates": "three for each position of the card, at most 30",
                "short_mean_sessions": 5,
                "long_mean_sessions": 20,
                "buys": "short mean above long mean",
                "sells": "short mean not above long mean",
            }),
            Self::Random(seed) => {
                json!({ "candidates": CHOICE, "seed": seed, "buys": "one in two days", "sells": "one in five holdings" })
            }
        };
        if let (Value::Object(all), Value::Object(own)) = (&mut parameters, own) {
            all.extend(own);
        }
        parameters
    }
}

/// Stocks that are looked at: the random baseline chooses among them, buy-and-hold takes the first that can be traded.
const CHOICE: u32 = 30;
/// Shares of a lot that every board takes: at least 200, in hundreds.
const LOT: u64 = 100;
/// Smallest order that every board takes.
const SMALLEST: u64 = 200;
/// Share of what the card lets a position have that is used, so that fees and a price that moves still fit.
const FILL: f64 = 0.95;

/// A baseline that plays.
#[derive(Debug, Clone)]
pub struct BaselineClient {
    rule: Rule,
    positions: usize,
    position_share: f64,
    /// Opening buys carry a structured plan.
    plans: bool,
}

/// A card that no rule can play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a rule-based baseline cannot write the decision cards that this card requires; play it with a card whose require_decision_card is false"
)]
pub struct NeedsDecisionCards;

impl BaselineClient {
    /// A baseline within the limits of a card.
    ///
    /// # Errors
    /// [`NeedsDecisionCards`]: their text is judgement, and a rule has none.
    pub fn new(rule: Rule, card: &Card) -> Result<Self, NeedsDecisionCards> {
        if card.require_decision_card {
            return Err(NeedsDecisionCards);
        }
        let positions = card.max_positions.max(1) as usize;
        let position_share = (card.max_position_pct / 100.0).min(1.0 / positions as f64);
        Ok(Self { rule, positions, position_share, plans: card.require_structured_plan })
    }

    fn calls(&self, request: &Request, turn: Turn) -> Vec<(&'static str, Value)> {
        let seen = Seen::of(&request.messages);
        match (turn.point, turn.iteration) {
            (DecisionPoint::PreMarket, 0) => vec![("get_portfolio", json!({})), ("screen_stocks", self.screen())],
            (DecisionPoint::PreMarket, 1) if self.rule == Rule::MovingAverage => {
                let codes = seen.held().map(|(code, _)| code).chain(seen.screened());
                let mut asked: Vec<&str> = Vec::new();
                codes.for_each(|code| {
                    if !asked.contains(&code) {
                        asked.push(code);
                    }
                });
                asked.into_iter().map(|code| ("get_kline", json!({ "stock_code": code, "days": 20 }))).collect()
            }
            (DecisionPoint::Open1, 0) => {
                let sells = self.sells(&seen, turn.day_index);
                let sell = |code: &&str| {
                    ("place_order", json!({ "action": "sell", "stock_code": code, "quantity": 0, "reasoning": self.why("sell") }))
                };
                let price = |code: &str| ("get_stock_price", json!({ "stock_code": code }));
                let buys = self.buys(&seen, turn.day_index);
                sells.iter().map(sell).chain(buys.into_iter().map(price)).collect()
            }
            (DecisionPoint::Open1, 1) => self.orders(&seen, turn.day_index),
            _ => Vec::new(),
        }
    }

    fn screen(&self) -> Value {
        let wanted = if self.rule == Rule::MovingAverage { (3 * self.positions).min(30) as u32 } else { CHOICE };
        json!({ "sort_by": "amount", "exclude_st": true, "max_results": wanted })
    }

    fn why(&self, action: &str) -> String {
        format!("Rule {}: {action}.", self.rule)
    }

    /// Holdings the rule wants gone.
    fn sells<'s>(&self, seen: &Seen<'s>, day: u32) -> Vec<&'s str> {
        let held = seen.held().filter(|(_, sellable)| *sellable > 0).map(|(code, _)| code);
        match self.rule {
            Rule::BuyAndHold => Vec::new(),
            Rule::MovingAverage => held.filter(|code| seen.trend(code) == Some(false)).collect(),
            Rule::Random(seed) => held.filter(|code| chance(seed, day, "sell", code).is_multiple_of(5)).collect(),
        }
    }

    /// Securities the rule wants, best first; none when there is no room without today's sells. They are more than there is room for: not
    /// each can be traded when the market opens.
    fn buys<'s>(&self, seen: &Seen<'s>, day: u32) -> Vec<&'s str> {
        let held: Vec<&str> = seen.held().map(|(code, _)| code).collect();
        let room = self.positions.saturating_sub(held.len());
        let mut wanted: Vec<&str> = seen.screened().filter(|code| !held.contains(code)).collect();
        match self.rule {
            // The first day may be one on which nothing can be traded.
            Rule::BuyAndHold if !held.is_empty() => wanted.clear(),
            Rule::BuyAndHold => {}
            Rule::MovingAverage => wanted.retain(|code| seen.trend(code) == Some(true)),
            Rule::Random(seed) => {
                wanted.sort_by_key(|code| (chance(seed, day, "rank", code), *code));
                wanted.truncate(1);
                wanted.retain(|code| chance(seed, day, "buy", code).is_multiple_of(2));
            }
        }
        if room == 0 {
            wanted.clear();
        }
        wanted
    }

    fn orders(&self, seen: &Seen<'_>, day: u32) -> Vec<(&'static str, Value)> {
        let Some(portfolio) = seen.latest.get("get_portfolio") else { return Vec::new() };
        let number = |key: &str| portfolio.get(key).and_then(Value::as_f64).unwrap_or_default();
        let share = number("total_value") * self.position_share * FILL;
        let mut cash = number("usable_cash") * FILL;
        let mut orders = Vec::new();
        let room = self.positions.saturating_sub(seen.held().count());
        for code in self.buys(seen, day) {
            if orders.len() == room {
                break;
            }
            let Some(quote) = seen.of_security.get(&("get_stock_price", code)) else { continue };
            let tradable = quote.get("tradable_now").and_then(Value::as_bool).unwrap_or(false);
            let price = quote.get("price").and_then(Value::as_f64).unwrap_or_default();
            if !tradable || price <= 0.0 {
                continue;
            }
            let quantity = (share.min(cash) / price) as u64 / LOT * LOT;
            if quantity < SMALLEST {
                continue;
            }
            cash -= quantity as f64 * price;
            let mut order = json!({ "action": "buy", "stock_code": code, "quantity": quantity, "reasoning": self.why("buy") });
            if let (true, Value::Object(fields)) = (self.plans, &mut order) {
                // A rule confirms itself and bets on nothing: levels on the tick, out of the way of the price.
                let tick = |share: f64| (price * share * 100.0).floor() / 100.0;
                fields.insert("behavior_hypothesis".to_owned(), self.why("what it selects goes on as before").into());
                fields.insert("confirmation_level".to_owned(), tick(0.99).into());
                fields.insert("original_structural_stop".to_owned(), tick(0.85).into());
                fields.insert("exit_condition".to_owned(), self.why("it no longer selects the security").into());
                fields.insert("expected_holding_days".to_owned(), 20.into());
            }
            orders.push(("place_order", order));
        }
        orders
    }
}

#[async_trait]
impl ModelClient for BaselineClient {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        let offered =
            |tool: &str| request.tools.iter().any(|t| t.pointer("/function/name").and_then(Value::as_str) == Some(tool));
        let mut calls: Vec<(&str, Value)> = self.calls(request, turn).into_iter().filter(|(tool, _)| offered(tool)).collect();
        if calls.is_empty() {
            if offered("finish_day") {
                calls.push(("finish_day", json!({ "summary": self.why("the day is done") })));
            } else if offered("complete_phase") {
                calls.push(("complete_phase", json!({ "decision": "monitor", "summary": self.why("nothing more to do") })));
            } else {
                return Ok(Response::new(Message::assistant(self.why("nothing more to do"), &[])));
            }
        }
        let numbered = calls.iter().enumerate();
        let calls: Vec<ToolCall> = numbered
            .map(|(n, (tool, args))| {
                ToolCall::new(format!("{}-{}-{}", turn.point, turn.iteration + 1, n + 1), *tool, args.to_string())
            })
            .collect();
        Ok(Response::new(Message::assistant("", &calls)))
    }

    /// A rule takes no advice and gives none.
    async fn complete_in(&mut self, scope: &str, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        match advisor_role(scope) {
            Some(_) => Ok(Response::new(Message::assistant("Nothing to add.", &[]))),
            None => self.complete(request, turn).await,
        }
    }
}

/// What the tools answered today.
struct Seen<'s> {
    /// Last success of each tool.
    latest: BTreeMap<&'static str, Value>,
    /// Last success of each tool about one security.
    of_security: BTreeMap<(&'static str, &'s str), Value>,
    held: Vec<(&'s str, u64)>,
    screened: Vec<&'s str>,
}

const READ: [&str; 4] = ["get_portfolio", "screen_stocks", "get_kline", "get_stock_price"];

impl<'s> Seen<'s> {
    fn of(messages: &'s [Message]) -> Self {
        let mut calls: BTreeMap<String, &'static str> = BTreeMap::new();
        let mut seen = Self { latest: BTreeMap::new(), of_security: BTreeMap::new(), held: Vec::new(), screened: Vec::new() };
        for message in messages {
            for call in message.tool_calls() {
                if let Some(tool) = READ.iter().find(|tool| **tool == call.name) {
                    calls.insert(call.id, tool);
                }
            }
            let Some((tool, text)) = message.tool_call_id().and_then(|id| calls.get(id)).zip(message.content()) else { continue };
            let Ok(result) = serde_json::from_str::<Value>(text) else { continue };
            if result.get("success") != Some(&Value::Bool(true)) {
                continue;
            }
            // Codes are borrowed from the message text, where each stands in full.
            let code = |value: &Value| value.as_str().and_then(|code| text.find(code).map(|at| &text[at..at + code.len()]));
            let rows = |field: &str| result.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
            match *tool {
                "get_portfolio" => {
                    let held = |row: &Value| Some((code(row.get("stock_code")?)?, row.get("sellable")?.as_u64()?));
                    seen.held = rows("positions").iter().filter_map(held).collect();
                }
                "screen_stocks" => seen.screened = rows("stocks").iter().filter_map(|row| code(row.get("code")?)).collect(),
                _ => {}
            }
            if let Some(code) = result.get("stock_code").and_then(code) {
                seen.of_security.insert((tool, code), result.clone());
            }
            seen.latest.insert(tool, result);
        }
        seen
    }

    fn held(&self) -> impl Iterator<Item = (&'s str, u64)> {
        self.held.clone().into_iter()
    }

    fn screened(&self) -> impl Iterator<Item = &'s str> {
        self.screened.clone().into_iter()
    }

    /// Whether the mean close of 5 sessions is above that of 20; `None` without 20 closes.
    fn trend(&self, code: &str) -> Option<bool> {
        let rows = self.of_security.get(&("get_kline", code))?.get("recent_20")?.as_array()?;
        let closes: Vec<f64> = rows.iter().filter_map(|row| row.get("close")?.as_f64()).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        (closes.len() == 20).then(|| mean(&closes[15..]) > mean(&closes))
    }
}

/// A number from a seed, a day and words; the same everywhere.
fn chance(seed: u64, day: u32, what: &str, code: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(day.to_le_bytes()).chain(what.bytes()).chain(code.bytes());
    // FNV-1a, then the finaliser of splitmix64: neighbours in the input are far apart in the output.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Rule, &str>) {
        assert_eq!(text.parse::<Rule>().map_err(|e| e.text), expected.map_err(str::to_owned));
    }

    #[test]
    fn rules_are_read_by_name() {
        check("buy-and-hold", Ok(Rule::BuyAndHold));
        check("moving-average", Ok(Rule::MovingAverage));
        check("random", Ok(Rule::Random(1)));
        check("random:42", Ok(Rule::Random(42)));
        check("random:x", Err("random:x"));
        check("hold", Err("hold"));
        for rule in [Rule::BuyAndHold, Rule::MovingAverage, Rule::Random(7)] {
            check(&rule.to_string(), Ok(rule));
        }
    }

    #[test]
    fn chance_is_the_same_everywhere_and_spreads() {
        assert_eq!(chance(1, 0, "buy", "SHM-000001"), chance(1, 0, "buy", "SHM-000001"));
        let hits = (0..10_000).filter(|day| chance(3, *day, "sell", "SHM-000001").is_multiple_of(5)).count();
        assert!((1_850..=2_150).contains(&hits), "{hits}");
    }
}
