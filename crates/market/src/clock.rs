//! The only source of "now": a day and a decision point (engine E1.1).

use crate::{Day, Minute, Moment};
use std::fmt;

/// Part of the trading day as agents name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "named by their wire names below")]
pub enum Phase {
    PreMarket,
    OpenWindow,
    CloseWindow,
}

impl Phase {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreMarket => "pre_market",
            Self::OpenWindow => "open_window",
            Self::CloseWindow => "close_window",
        }
    }
}

/// The five moments of a trading day at which an agent acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecisionPoint {
    /// Before the open; nothing of today is visible, orders are refused.
    PreMarket,
    /// 09:50; bars ended in (09:30, 09:50] fill orders.
    Open1,
    /// 10:00; bars ended in (09:50, 10:00].
    Open2,
    /// 14:50; bars ended in (14:30, 14:50].
    Close1,
    /// 15:00; bars ended in (14:50, 15:00].
    Close2,
}

impl DecisionPoint {
    /// All five, in order.
    pub const ALL: [Self; 5] = [Self::PreMarket, Self::Open1, Self::Open2, Self::Close1, Self::Close2];

    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreMarket => "pre_market",
            Self::Open1 => "open_1",
            Self::Open2 => "open_2",
            Self::Close1 => "close_1",
            Self::Close2 => "close_2",
        }
    }

    /// The point of this wire name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.as_str() == text)
    }

    /// Phase the point is in.
    pub const fn phase(self) -> Phase {
        match self {
            Self::PreMarket => Phase::PreMarket,
            Self::Open1 | Self::Open2 => Phase::OpenWindow,
            Self::Close1 | Self::Close2 => Phase::CloseWindow,
        }
    }

    /// Sub-window wire name; `None` in pre_market.
    pub const fn sub_window(self) -> Option<&'static str> {
        match self {
            Self::PreMarket => None,
            other => Some(other.as_str()),
        }
    }

    /// Last visible bar end of today; `None` in pre_market.
    pub const fn visible_until(self) -> Option<Minute> {
        match self {
            Self::PreMarket => None,
            Self::Open1 => Some(Minute::at(9, 50)),
            Self::Open2 => Some(Minute::at(10, 0)),
            Self::Close1 => Some(Minute::at(14, 50)),
            Self::Close2 => Some(Minute::at(15, 0)),
        }
    }

    /// Own trading interval `(after, until]` of bar ends that can fill an order here; `None` in pre_market.
    pub const fn interval(self) -> Option<(Minute, Minute)> {
        match self {
            Self::PreMarket => None,
            Self::Open1 => Some((Minute::at(9, 30), Minute::at(9, 50))),
            Self::Open2 => Some((Minute::at(9, 50), Minute::at(10, 0))),
            Self::Close1 => Some((Minute::at(14, 30), Minute::at(14, 50))),
            Self::Close2 => Some((Minute::at(14, 50), Minute::at(15, 0))),
        }
    }

    /// Minute of "now" for text (engine E2.3): 09:30 in pre_market, else the visible limit.
    pub const fn now_minute(self) -> Minute {
        match self.visible_until() {
            Some(minute) => minute,
            None => Minute::at(9, 30),
        }
    }

    /// The point of the day before this one.
    pub const fn previous(self) -> Option<Self> {
        match self {
            Self::PreMarket => None,
            Self::Open1 => Some(Self::PreMarket),
            Self::Open2 => Some(Self::Open1),
            Self::Close1 => Some(Self::Open2),
            Self::Close2 => Some(Self::Close1),
        }
    }

    /// The next point of the day.
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::PreMarket => Some(Self::Open1),
            Self::Open1 => Some(Self::Open2),
            Self::Open2 => Some(Self::Close1),
            Self::Close1 => Some(Self::Close2),
            Self::Close2 => None,
        }
    }
}

impl fmt::Display for DecisionPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A trading day and a decision point in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clock {
    /// Trading day.
    pub day: Day,
    /// Decision point.
    pub point: DecisionPoint,
}

impl Clock {
    /// Text and disclosures strictly before this moment are visible.
    pub const fn now(self) -> Moment {
        self.day.at(self.point.now_minute())
    }
}
