//! [`Mandate`]: what the owner of an account allows, read once and checked as a whole (spec/seeds.md B16.1). A mandate that could be
//! misunderstood is refused when it is read, with the field named; it is never repaired, and no tool can write one.
#![deny(clippy::float_arithmetic)]

use super::audit::sha256_hex;
use serde::Deserialize;
use serde_json::Value;
use traderharness_contract::json;
use traderharness_market::{Board, Cash, Code, Day, Minute, Moment};

/// The only schema version there is.
pub const SCHEMA_VERSION: u64 = 1;

/// Days a consent lasts when it names no end.
pub const DEFAULT_LIFE_DAYS: i32 = 30;

/// Kind of instrument an order may be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instrument {
    /// A share that is not under special treatment.
    Stock,
    /// A share under special treatment (ST, *ST).
    StStock,
}

impl Instrument {
    const NAMES: &'static str = "`stock` or `st_stock`";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "stock" => Some(Self::Stock),
            "st_stock" => Some(Self::StStock),
            _ => None,
        }
    }
}

/// Name of a board in a mandate.
pub const fn asset_class(board: Board) -> &'static str {
    match board {
        Board::ShMain => "sh_main",
        Board::SzMain => "sz_main",
        Board::ChiNext => "chinext",
        Board::Star => "star",
        Board::Bse => "bse",
    }
}

/// Caps no order may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardCaps {
    /// Money the owner put into the account; the base of the leverage and the most one buy may cost.
    pub account_funding: Cash,
    /// Largest amount of one order, either side.
    pub max_order_notional: Cash,
    /// Largest sum of the absolute values of all positions after an order.
    pub max_total_exposure: Cash,
    /// Largest exposure over funding, in ten-thousandths: 10,000 = 1.
    pub max_leverage: i64,
    /// Instruments an order may be in; never empty.
    pub allowed_instruments: Vec<Instrument>,
    /// Orders filled per trading day at most.
    pub max_trades_per_day: u32,
}

/// Securities an order may be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Universe {
    /// Boards; never empty.
    pub asset_classes: Vec<Board>,
    /// Smallest market value. Datasets hold no market values, so with a floor every order is denied.
    pub min_market_cap: Option<Cash>,
    /// Smallest mean of close times volume over the last 45 calendar days.
    pub min_avg_daily_turnover: Option<Cash>,
    /// Securities no order may be in.
    pub exclude_symbols: Vec<Code>,
}

/// The owner's consent. Times are those of the simulated clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// First moment at which orders are allowed.
    pub created_at: Moment,
    /// First moment at which they no longer are.
    pub expires_at: Moment,
    /// SHA-256 of the consent token, 64 lower-case hex digits. The token itself is never here.
    pub consent_token_sha256: String,
    /// The owner's own name for the account.
    pub account_ref: String,
}

/// What the owner allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mandate {
    /// Name of the channel orders go through; it names the folder of the channel's kill switch.
    pub channel: String,
    /// Caps.
    pub hard_caps: HardCaps,
    /// Securities.
    pub universe: Universe,
    /// Consent.
    pub consent: Consent,
    digest: String,
}

/// Why a mandate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MandateError {
    /// The text is not a mandate: not JSON, a field missing or unknown.
    #[error("the mandate cannot be read: {fault}")]
    Syntax {
        /// What and where.
        fault: String,
    },
    /// Another schema version.
    #[error("mandate field `schema_version` is {found}; only {SCHEMA_VERSION} is known")]
    Version {
        /// What was given.
        found: String,
    },
    /// A field is out of range.
    #[error("mandate field `{field}` is {found}; it must be {accepted}")]
    Field {
        /// Path of the field.
        field: &'static str,
        /// What was given.
        found: String,
        /// What is accepted.
        accepted: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMandate {
    #[expect(dead_code, reason = "checked before the rest is read; listed here so that it is a known field")]
    schema_version: Value,
    channel: Value,
    hard_caps: RawCaps,
    universe: RawUniverse,
    consent: RawConsent,
    #[serde(default)]
    flatten_on_halt: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCaps {
    account_funding_cny: Value,
    max_order_notional_cny: Value,
    max_total_exposure_cny: Value,
    max_leverage: Value,
    allowed_instruments: Value,
    max_trades_per_day: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUniverse {
    asset_classes: Value,
    min_market_cap_cny: Option<Value>,
    min_avg_daily_turnover_cny: Option<Value>,
    #[serde(default = "no_items")]
    exclude_symbols: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConsent {
    created_at: Value,
    expires_at: Option<Value>,
    consent_token_sha256: Value,
    account_ref: Value,
}

fn no_items() -> Value {
    Value::Array(vec![])
}

const AMOUNT: &str = "a finite amount above 0 and below 1e12 CNY with at most two decimals";
const MOMENT: &str = "a day or minute of exchange time, YYYY-MM-DD or YYYY-MM-DD HH:MM";

impl Mandate {
    /// Reads a mandate from JSON text. A host that reads YAML hands its value to [`Mandate::from_value`].
    ///
    /// # Errors
    /// [`MandateError`] naming the first faulty field.
    pub fn from_json(text: &str) -> Result<Self, MandateError> {
        let value = serde_json::from_str(text).map_err(|e| MandateError::Syntax { fault: e.to_string() })?;
        Self::from_value(value)
    }

    /// Checks a mandate.
    ///
    /// # Errors
    /// As [`Mandate::from_json`].
    pub fn from_value(value: Value) -> Result<Self, MandateError> {
        if !value.is_object() {
            return Err(MandateError::Syntax { fault: "it is not an object".to_owned() });
        }
        // The version comes first: fields of another version mean what we do not know.
        let version = value.get("schema_version").unwrap_or(&Value::Null);
        if version.as_u64() != Some(SCHEMA_VERSION) {
            return Err(MandateError::Version { found: shown(version) });
        }
        let digest = sha256_hex(json::canonical(&value).to_string().as_bytes());
        let raw: RawMandate = serde_json::from_value(value).map_err(|e| MandateError::Syntax { fault: e.to_string() })?;

        let channel = word("channel", &raw.channel, is_channel, "1 to 64 of a-z, 0-9, `_` and `-`")?;
        let hard_caps = HardCaps {
            account_funding: amount("hard_caps.account_funding_cny", &raw.hard_caps.account_funding_cny)?,
            max_order_notional: amount("hard_caps.max_order_notional_cny", &raw.hard_caps.max_order_notional_cny)?,
            max_total_exposure: amount("hard_caps.max_total_exposure_cny", &raw.hard_caps.max_total_exposure_cny)?,
            max_leverage: decimal_of(&raw.hard_caps.max_leverage, 4).filter(|n| (1..=1_000_000).contains(n)).ok_or_else(
                || {
                    let accepted = "a finite number above 0 and at most 100 with at most four decimals";
                    fault("hard_caps.max_leverage", &raw.hard_caps.max_leverage, accepted)
                },
            )?,
            allowed_instruments: list(
                "hard_caps.allowed_instruments",
                &raw.hard_caps.allowed_instruments,
                &format!("a list of at least one of {}", Instrument::NAMES),
                Instrument::parse,
            )?,
            max_trades_per_day: raw
                .hard_caps
                .max_trades_per_day
                .as_u64()
                .filter(|n| (1..=100_000).contains(n))
                .and_then(|n| u32::try_from(n).ok())
                .ok_or_else(|| {
                    let accepted = "a whole number from 1 to 100000; a HALT file stops all orders";
                    fault("hard_caps.max_trades_per_day", &raw.hard_caps.max_trades_per_day, accepted)
                })?,
        };
        let classes = Board::ALL.map(asset_class).join(", ");
        let board = |text: &str| Board::ALL.into_iter().find(|b| asset_class(*b) == text);
        let floor = |field, value: Option<&Value>| value.map(|v| amount(field, v)).transpose();
        let universe = Universe {
            asset_classes: list(
                "universe.asset_classes",
                &raw.universe.asset_classes,
                &format!("a list of at least one of {classes}"),
                board,
            )?,
            min_market_cap: floor("universe.min_market_cap_cny", raw.universe.min_market_cap_cny.as_ref())?,
            min_avg_daily_turnover: floor(
                "universe.min_avg_daily_turnover_cny",
                raw.universe.min_avg_daily_turnover_cny.as_ref(),
            )?,
            exclude_symbols: match &raw.universe.exclude_symbols {
                Value::Array(items) if items.is_empty() => vec![],
                other => list("universe.exclude_symbols", other, "a list of six-digit codes, as text", Code::parse)?,
            },
        };
        let created_at = moment("consent.created_at", &raw.consent.created_at)?;
        let expires_at = match &raw.consent.expires_at {
            Some(text) => moment("consent.expires_at", text)?,
            None => created_at.day().plus(DEFAULT_LIFE_DAYS).at(created_at.minute()),
        };
        if expires_at <= created_at {
            let found = raw.consent.expires_at.as_ref().map_or_else(String::new, shown);
            return Err(MandateError::Field {
                field: "consent.expires_at",
                found,
                accepted: "after `consent.created_at`".into(),
            });
        }
        let is_hash = |t: &str| t.len() == 64 && t.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let is_name = |t: &str| !t.trim().is_empty() && t.chars().count() <= 200;
        let consent = Consent {
            created_at,
            expires_at,
            consent_token_sha256: word(
                "consent.consent_token_sha256",
                &raw.consent.consent_token_sha256,
                is_hash,
                "a SHA-256 as 64 lower-case hex digits",
            )?,
            account_ref: word("consent.account_ref", &raw.consent.account_ref, is_name, "1 to 200 characters")?,
        };
        if !matches!(raw.flatten_on_halt, Value::Null | Value::Bool(false)) {
            let accepted = "false: this environment never sells on its own";
            return Err(fault("flatten_on_halt", &raw.flatten_on_halt, accepted));
        }
        Ok(Self { channel, hard_caps, universe, consent, digest })
    }

    /// SHA-256 of the canonical text of the mandate; audit records refer to it.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

fn is_channel(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

/// A value as an error shows it: whole, but never long.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "missing, null or not finite".to_owned(),
        other => {
            let text = other.to_string();
            let cut: String = text.chars().take(80).collect();
            if cut.len() < text.len() { format!("{cut}...") } else { cut }
        }
    }
}

fn fault(field: &'static str, found: &Value, accepted: &str) -> MandateError {
    MandateError::Field { field, found: shown(found), accepted: accepted.to_owned() }
}

fn word(field: &'static str, value: &Value, fits: impl Fn(&str) -> bool, accepted: &str) -> Result<String, MandateError> {
    value.as_str().filter(|t| fits(t)).map(str::to_owned).ok_or_else(|| fault(field, value, accepted))
}

fn list<T>(field: &'static str, value: &Value, accepted: &str, item: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, MandateError> {
    let items = value.as_array().filter(|items| !items.is_empty()).ok_or_else(|| fault(field, value, accepted))?;
    items.iter().map(|v| v.as_str().and_then(&item).ok_or_else(|| fault(field, v, accepted))).collect()
}

fn amount(field: &'static str, value: &Value) -> Result<Cash, MandateError> {
    decimal_of(value, 2).filter(|fen| (1..100_000_000_000_000).contains(fen)).map(Cash).ok_or_else(|| fault(field, value, AMOUNT))
}

/// A number or a text of one, exact to so many decimals. A text with an exponent or a sign is none.
fn decimal_of(value: &Value, places: usize) -> Option<i64> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    let (whole, frac) = text.split_once('.').unwrap_or((&text, ""));
    let frac = frac.trim_end_matches('0');
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 13 || !digits(whole) || !digits(frac) || frac.len() > places {
        return None;
    }
    format!("{whole}{frac:0<places$}").parse().ok()
}

fn moment(field: &'static str, value: &Value) -> Result<Moment, MandateError> {
    let parse = |text: &str| {
        let (day, time) = text.split_once(' ').unwrap_or((text, "00:00"));
        let (hour, minute) = time.split_once(':')?;
        let two = |t: &str| (t.len() == 2 && t.bytes().all(|b| b.is_ascii_digit())).then(|| t.parse::<u16>().ok()).flatten();
        let (hour, minute) = (two(hour)?, two(minute)?);
        let day = Day::parse(day).ok()?;
        (hour < 24 && minute < 60).then(|| day.at(Minute::at(hour, minute)))
    };
    value.as_str().and_then(parse).ok_or_else(|| fault(field, value, MOMENT))
}
