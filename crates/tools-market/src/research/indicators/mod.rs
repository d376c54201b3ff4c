//! Technical indicators over columns of bars, oldest first. Pure arithmetic: no market, no dates, no missing values (who calls has none).
//! A value that is not defined is a named reason, never a NaN, an infinity or a zero.
//!
//! Conventions are those of TA-Lib where it has the indicator; where two libraries differ, the formula here says which one it is:
//!
//! | indicator | formula, with `c` close, `h` high, `l` low, `v` volume, `n` the period |
//! |---|---|
//! | sma | mean of the last `n` closes |
//! | ema | starts as the mean of the first `n` closes, then `e + 2 / (n + 1) * (c - e)` |
//! | wma | closes weighted 1 to `n`, the newest heaviest |
//! | rsi | Wilder: mean rise and fall of the first `n` changes, then `(avg * (n - 1) + new) / n`; `100 * rise / (rise + fall)` |
//! | macd | `ema(fast) - ema(slow)`, each as above from its own first bar; its ema(`signal`); their difference |
//! | bollinger | mean of `n` closes and `deviations` population standard deviations around it; place and relative width of the band |
//! | atr | Wilder: mean of the first `n` true ranges, then `(atr * (n - 1) + tr) / n`; the first bar has no true range |
//! | stochastic | `100 * (c - lowest l) / (highest h - lowest l)` over `k` bars, smoothed by a mean of `smooth`; `d` is its mean of `d` |
//! | obv | starts with the first bar's volume, then volume added on a rise of the close and taken off on a fall |
//! | roc | change of the close over `n` bars, percent |
//! | realised_volatility | sample standard deviation of the last `n` log returns, times the root of `annualisation` |
//! | max_drawdown | lowest close below the highest close before it, as a fraction of that, 0 when it never fell |

mod averages;
mod momentum;
mod risk;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Columns of bars, of equal length, every number finite and every price above zero.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    pub(super) high: Vec<f64>,
    pub(super) low: Vec<f64>,
    pub(super) close: Vec<f64>,
    pub(super) volume: Vec<f64>,
}

/// Why a value is not defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undefined {
    /// The observations do not vary.
    ZeroVariance,
    /// The numbers are too large to compute with.
    OutOfRange,
}

/// A value.
pub(super) type Cell = Result<f64, Undefined>;

/// A finite number, or why there is none.
pub(super) fn finite(value: f64) -> Cell {
    if value.is_finite() { Ok(value) } else { Err(Undefined::OutOfRange) }
}

/// `above / below`, not defined where there is nothing to divide by.
pub(super) fn ratio(above: f64, below: f64) -> Cell {
    if below == 0.0 { Err(Undefined::ZeroVariance) } else { finite(above / below) }
}

/// Named lines of values; the last value of each belongs to the last bar.
pub(super) type Lines = Vec<(&'static str, Vec<Cell>)>;

/// The indicators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "their formulas are in the table of the module")]
pub(super) enum Indicator {
    #[default]
    Sma,
    Ema,
    Wma,
    Rsi,
    Macd,
    Bollinger,
    Atr,
    Stochastic,
    Obv,
    Roc,
    RealisedVolatility,
    MaxDrawdown,
}

/// The settings of an indicator; those it does not have are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    /// Bars of the window. sma, ema, wma, bollinger, realised_volatility: default 20; rsi, atr: 14; roc: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 250))]
    pub(super) period: Option<usize>,
    /// Bars of the fast average of macd; below slow, default 12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 250))]
    pub(super) fast: Option<usize>,
    /// Bars of the slow average of macd; default 26.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 250))]
    pub(super) slow: Option<usize>,
    /// Bars of the signal line of macd; default 9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 250))]
    pub(super) signal: Option<usize>,
    /// Standard deviations of bollinger above and below the mean; default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.1, max = 10))]
    pub(super) deviations: Option<f64>,
    /// Bars of the range of stochastic; default 14.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 250))]
    pub(super) k: Option<usize>,
    /// Bars of the smoothing of stochastic's k line; 1 is none, default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub(super) smooth: Option<usize>,
    /// Bars of stochastic's d line; default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub(super) d: Option<usize>,
    /// Sessions of a year for realised_volatility; 1 gives it per session, default 252.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 366))]
    pub(super) annualisation: Option<usize>,
}

/// Names of all parameters, for the schema.
pub(super) const PARAMETERS: [&str; 9] = ["period", "fast", "slow", "signal", "deviations", "k", "smooth", "d", "annualisation"];

/// What an indicator reads of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    Close,
    CloseAndVolume,
    Range,
}

impl Indicator {
    /// Every indicator.
    pub(super) const ALL: [Self; 12] = [
        Self::Sma,
        Self::Ema,
        Self::Wma,
        Self::Rsi,
        Self::Macd,
        Self::Bollinger,
        Self::Atr,
        Self::Stochastic,
        Self::Obv,
        Self::Roc,
        Self::RealisedVolatility,
        Self::MaxDrawdown,
    ];

    /// Wire name.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Sma => "sma",
            Self::Ema => "ema",
            Self::Wma => "wma",
            Self::Rsi => "rsi",
            Self::Macd => "macd",
            Self::Bollinger => "bollinger",
            Self::Atr => "atr",
            Self::Stochastic => "stochastic",
            Self::Obv => "obv",
            Self::Roc => "roc",
            Self::RealisedVolatility => "realised_volatility",
            Self::MaxDrawdown => "max_drawdown",
        }
    }

    /// Names of the parameters it takes.
    pub(super) const fn takes(self) -> &'static [&'static str] {
        match self {
            Self::Sma | Self::Ema | Self::Wma | Self::Rsi | Self::Atr | Self::Roc => &["period"],
            Self::Macd => &["fast", "slow", "signal"],
            Self::Bollinger => &["period", "deviations"],
            Self::Stochastic => &["k", "smooth", "d"],
            Self::RealisedVolatility => &["period", "annualisation"],
            Self::Obv | Self::MaxDrawdown => &[],
        }
    }

    /// What it reads of a bar.
    pub(super) const fn reads(self) -> Reads {
        match self {
            Self::Atr | Self::Stochastic => Reads::Range,
            Self::Obv => Reads::CloseAndVolume,
            _ => Reads::Close,
        }
    }

    /// Whether a value depends on every bar before it, so that the whole window is needed and not only its end.
    pub(super) const fn needs_all(self) -> bool {
        matches!(self, Self::Ema | Self::Rsi | Self::Macd | Self::Atr | Self::Obv | Self::MaxDrawdown)
    }

    /// Its parameters with their defaults, and nothing else.
    pub(super) fn resolved(self, sent: Parameters) -> Parameters {
        let none = Parameters::default();
        let period = |default: usize| Parameters { period: sent.period.or(Some(default)), ..none };
        match self {
            Self::Sma | Self::Ema | Self::Wma => period(20),
            Self::Rsi | Self::Atr => period(14),
            Self::Roc => period(10),
            Self::Macd => {
                Parameters { fast: sent.fast.or(Some(12)), slow: sent.slow.or(Some(26)), signal: sent.signal.or(Some(9)), ..none }
            }
            Self::Bollinger => Parameters { deviations: sent.deviations.or(Some(2.0)), ..period(20) },
            Self::Stochastic => {
                Parameters { k: sent.k.or(Some(14)), smooth: sent.smooth.or(Some(3)), d: sent.d.or(Some(3)), ..none }
            }
            Self::RealisedVolatility => Parameters { annualisation: sent.annualisation.or(Some(252)), ..period(20) },
            Self::Obv | Self::MaxDrawdown => none,
        }
    }

    /// Bars the first value needs.
    pub(super) fn minimum(self, with: Parameters) -> usize {
        let of = |value: Option<usize>| value.unwrap_or(1).max(1);
        match self {
            Self::Sma | Self::Ema | Self::Wma | Self::Bollinger => of(with.period),
            Self::Rsi | Self::Atr | Self::Roc => of(with.period) + 1,
            // A sample standard deviation needs two returns.
            Self::RealisedVolatility => of(with.period).max(2) + 1,
            Self::Macd => of(with.slow).max(of(with.fast)) + of(with.signal) - 1,
            Self::Stochastic => of(with.k) + of(with.smooth) + of(with.d) - 2,
            Self::Obv | Self::MaxDrawdown => 2,
        }
    }

    /// The lines over bars of which there are at least [`Indicator::minimum`]; shorter columns give shorter or empty lines.
    pub(super) fn lines(self, bars: &Columns, with: Parameters) -> Lines {
        let of = |value: Option<usize>| value.unwrap_or(1).max(1);
        let n = of(with.period);
        let one = |line: Vec<Cell>| vec![("value", line)];
        match self {
            Self::Sma => one(averages::sma(&bars.close, n)),
            Self::Ema => one(averages::cells(&averages::ema(&bars.close, n))),
            Self::Wma => one(averages::wma(&bars.close, n)),
            Self::Macd => averages::macd(&bars.close, of(with.fast), of(with.slow), of(with.signal)),
            Self::Bollinger => averages::bollinger(&bars.close, n, with.deviations.unwrap_or(2.0)),
            Self::Rsi => one(momentum::rsi(&bars.close, n)),
            Self::Stochastic => momentum::stochastic(bars, of(with.k), of(with.smooth), of(with.d)),
            Self::Obv => one(momentum::obv(&bars.close, &bars.volume)),
            Self::Roc => one(momentum::roc(&bars.close, n)),
            Self::Atr => one(risk::atr(bars, n)),
            Self::RealisedVolatility => one(risk::volatility(&bars.close, n.max(2), of(with.annualisation))),
            Self::MaxDrawdown => one(risk::drawdown(&bars.close)),
        }
    }

    /// The unit of its values, for a reader of the result.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Sma | Self::Ema | Self::Wma | Self::Macd | Self::Atr => "CNY",
            Self::Bollinger => "CNY; percent_b and bandwidth are fractions",
            Self::Rsi | Self::Stochastic => "0 to 100",
            Self::Obv => "shares",
            Self::Roc => "percent",
            Self::RealisedVolatility | Self::MaxDrawdown => "fraction",
        }
    }
}

pub(super) use risk::deepest;
