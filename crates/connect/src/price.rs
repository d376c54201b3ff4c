//! [`PriceTable`] and [`CostTotal`]: what a run costs. Prices are decimal texts per million tokens, sums are whole numbers of 1e-12 of
//! the currency, so that no amount is ever rounded. A cost that is not known is none with a reason, never zero.

use crate::endpoint::SetupError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use traderharness_harness::run::Prices;
use traderharness_replay::Usage;

/// Digits behind the point of an amount: prices have six, and they are for a million tokens.
const PLACES: usize = 12;

/// Prices of models in one currency, as a person writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceList {
    /// Currency of all prices, e.g. `USD`.
    pub currency: String,
    /// By model name; a name ending in `*` stands for all names that begin so, and the longest one that fits is taken.
    pub models: BTreeMap<String, PriceText>,
}

/// Prices of one model, decimal text per million tokens with at most six places: `"0.27"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceText {
    /// Tokens of requests.
    pub input: String,
    /// Tokens of answers, thoughts included.
    pub output: String,
    /// Tokens of requests that the provider had in its cache; as `input` when absent.
    #[serde(default)]
    pub cached_input: Option<String>,
}

/// Prices that were read and are right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceTable {
    currency: String,
    models: BTreeMap<String, Prices>,
}

impl PriceTable {
    /// Reads a list.
    ///
    /// # Errors
    /// [`SetupError::Price`] for a text that is no decimal number, is negative or has more than six places.
    pub fn new(list: &PriceList) -> Result<Self, SetupError> {
        let mut models = BTreeMap::new();
        for (model, text) in &list.models {
            let read = |field: &str, text: &str| {
                micros(text).ok_or_else(|| SetupError::Price { what: format!("{model} ({field})"), text: text.to_owned() })
            };
            let price = Prices {
                input_micros: read("input", &text.input)?,
                output_micros: read("output", &text.output)?,
                cached_input_micros: text.cached_input.as_deref().map(|text| read("cached_input", text)).transpose()?,
            };
            models.insert(model.clone(), price);
        }
        Ok(Self { currency: list.currency.clone(), models })
    }

    /// Currency of the prices.
    pub fn currency(&self) -> &str {
        &self.currency
    }

    /// Prices of a model, for the budget of a run too; `None` when the table has none that fits.
    pub fn price(&self, model: &str) -> Option<Prices> {
        let begins = |(name, price): (&String, &Prices)| {
            let start = name.strip_suffix('*')?;
            model.starts_with(start).then_some((start.len(), *price))
        };
        self.models
            .get(model)
            .copied()
            .or_else(|| Some(self.models.iter().filter_map(begins).max_by_key(|(length, _)| *length)?.1))
    }
}

/// An exact amount: whole 1e-12 of a currency. It is written as a decimal number without needless zeros.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(pub u128);

impl Amount {
    /// The amount in 1e-6 of the currency, rounded up.
    pub fn micros(self) -> u64 {
        u64::try_from(self.0.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_u128.pow(PLACES as u32);
        let fraction = format!("{:0PLACES$}", self.0 % unit);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{}", self.0 / unit),
            fraction => write!(f, "{}.{fraction}", self.0 / unit),
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Tokens and cost of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CostTotal {
    /// Answers counted.
    pub answers: u64,
    /// Answers without token counts.
    pub without_usage: u64,
    /// Tokens of requests, of the answers that told.
    pub input_tokens: u64,
    /// Of these, cached at the provider.
    pub cached_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Of these, thought and not said.
    pub reasoning_tokens: u64,
    /// Exact cost as a decimal text; null with a reason beside it.
    pub cost: Option<Amount>,
    /// Currency of the cost.
    pub currency: Option<String>,
    /// Why there is no cost.
    pub cost_reason: Option<String>,
}

impl CostTotal {
    /// Sums up the answers of one model.
    pub fn of<'a>(usages: impl IntoIterator<Item = Option<&'a Usage>>, model: &str, prices: Option<&PriceTable>) -> Self {
        let mut total = Self::default();
        let price = prices.and_then(|table| table.price(model));
        let mut sum = Amount::default();
        for usage in usages {
            total.answers += 1;
            let Some(usage) = usage else {
                total.without_usage += 1;
                continue;
            };
            total.input_tokens = total.input_tokens.saturating_add(usage.input_tokens);
            total.output_tokens = total.output_tokens.saturating_add(usage.output_tokens);
            total.cached_tokens = total.cached_tokens.saturating_add(usage.cached_tokens().unwrap_or(0));
            total.reasoning_tokens = total.reasoning_tokens.saturating_add(usage.reasoning_tokens().unwrap_or(0));
            if let Some(price) = price {
                sum.0 = sum.0.saturating_add(price.cost(usage));
            }
        }
        total.cost_reason = match (prices, price) {
            (None, _) => Some("no prices were given".to_owned()),
            (_, None) => Some(format!("the prices have no entry for {model}")),
            _ if total.without_usage > 0 => {
                Some(format!("{} of {} answers came without token counts", total.without_usage, total.answers))
            }
            _ => None,
        };
        if total.cost_reason.is_none() {
            total.cost = Some(sum);
            total.currency = prices.map(|table| table.currency.clone());
        }
        total
    }
}

/// A decimal text in millionths; `None` for anything else.
fn micros(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 6 || !digits(whole) || !digits(fraction) || text.ends_with('.') {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::{Amount, CostTotal, PriceList, PriceTable, micros};
    use serde_json::json;
    use traderharness_replay::Usage;

    fn usage(input: u64, cached: u64, output: u64) -> Usage {
        let value = json!({"input_tokens": input, "output_tokens": output, "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": 3}});
        serde_json::from_value(value).unwrap()
    }

    fn table() -> PriceTable {
        let list: PriceList = serde_json::from_value(json!({"currency": "USD", "models": {
            "small*": {"input": "0.1", "output": "0.2"},
            "small-2*": {"input": "1", "output": "1"},
            "large": {"input": "2.50", "cached_input": "0.000001", "output": "10"},
        }}))
        .unwrap();
        PriceTable::new(&list).unwrap()
    }

    #[test]
    fn decimal_texts_are_read_exactly_or_not_at_all() {
        let check = |text, expected| assert_eq!(micros(text), expected, "{text}");
        check("0.27", Some(270_000));
        check("15", Some(15_000_000));
        check("0.000001", Some(1));
        for wrong in ["", ".", ".5", "1.", "-1", "+1", "1e3", "0.0000001", "1,5", "99999999999999999999", " 1", "NaN"] {
            check(wrong, None);
        }
    }

    #[test]
    fn amounts_are_exact_to_the_last_place() {
        let table = table();
        assert_eq!(Amount(table.price("large").unwrap().cost(&usage(1_000_001, 1, 3))).to_string(), "2.500030000001");
        // Ten million small amounts that no binary fraction holds.
        let one = table.price("small-1").unwrap().cost(&usage(1, 0, 1));
        assert_eq!(Amount(one * 10_000_000).to_string(), "3");
        assert_eq!(Amount(1).micros(), 1);
        assert_eq!(Amount(0).to_string(), "0");
    }

    #[test]
    fn the_longest_name_that_fits_is_taken() {
        let table = table();
        assert_eq!(table.price("small-2-mini").unwrap().input_micros, 1_000_000);
        assert_eq!(table.price("small-1").unwrap().input_micros, 100_000);
        assert_eq!(table.price("large-2"), None);
    }

    #[test]
    fn a_cost_that_is_not_known_has_a_reason() {
        let (a, table) = (usage(10, 4, 5), table());
        let check =
            |usages: &[Option<&Usage>], model: &str, prices: Option<&PriceTable>, cost: Option<&str>, reason: Option<&str>| {
                let total = CostTotal::of(usages.iter().copied(), model, prices);
                assert_eq!(total.cost.map(|c| c.to_string()).as_deref(), cost);
                assert_eq!(total.cost_reason.as_deref(), reason);
                assert_eq!((total.input_tokens, total.cached_tokens, total.output_tokens, total.reasoning_tokens), (10, 4, 5, 3));
            };
        check(&[Some(&a)], "small", Some(&table), Some("0.000002"), None);
        check(&[Some(&a)], "small", None, None, Some("no prices were given"));
        check(&[Some(&a)], "huge", Some(&table), None, Some("the prices have no entry for huge"));
        check(&[Some(&a), None], "small", Some(&table), None, Some("1 of 2 answers came without token counts"));
    }
}
