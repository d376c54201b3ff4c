//! Daily bars of one company: returns, price limits, sealed days, suspensions, ex-rights, in whole cents.
//!
//! Integers only; a price never leaves its band (engine E4) and never the tick.

use super::company::{Company, registration_since};
use super::random::Random;
use traderharness_market::{Board, Day};

/// One traded day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DailyBar {
    /// Position in the market's days.
    pub(crate) index: usize,
    /// Open, high, low, close in cents.
    pub(crate) prices: [i64; 4],
    /// Shares.
    pub(crate) volume: i64,
    /// Whole CNY.
    pub(crate) amount: i64,
    /// Upper limit in cents when there is one.
    pub(crate) up: Option<i64>,
}

impl DailyBar {
    /// True when one price was traded all day at the upper or lower limit.
    pub(crate) const fn one_price(&self) -> bool {
        self.prices[1] == self.prices[2]
    }
}

/// A dividend, bonus or rights event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    /// Position of the ex-date in the market's days; `None` for a plan without one.
    pub(crate) index: Option<usize>,
    pub(crate) announced: Day,
    /// Tenths of a share per 10 shares: 40 = 4 for 10.
    pub(crate) bonus: i64,
    /// As `bonus`.
    pub(crate) transfer: i64,
    /// Cents per 10 shares.
    pub(crate) cash: i64,
    /// As `bonus`.
    pub(crate) rights: i64,
    /// Cents per share.
    pub(crate) rights_price: i64,
}

impl Event {
    /// Reference price of the ex-date in cents, half-up (exchange trading rules, ex-rights formula).
    pub(crate) const fn reference(&self, previous: i64) -> i64 {
        let shares = 100 + self.bonus + self.transfer + self.rights;
        let worth = previous * 100 - self.cash * 10 + self.rights_price * self.rights;
        (worth * 2 + shares) / (shares * 2)
    }
}

/// Everything about a company that later tables need.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) bars: Vec<DailyBar>,
    pub(crate) events: Vec<Event>,
    /// Suspensions as ranges of positions.
    pub(crate) gaps: Vec<std::ops::Range<usize>>,
    /// Shares outstanding after each bar.
    pub(crate) shares: Vec<i64>,
    /// Close before the first day, in cents.
    pub(crate) first_price: i64,
}

/// Band in basis points; `None` on days without limit.
pub(crate) fn band(company: &Company, day: Day, index: usize) -> Option<i64> {
    let age = index.checked_sub(company.first_index).filter(|_| company.first_index > 0);
    let free = match company.board {
        Board::Bse => 1,
        board if registration_since(board).is_some_and(|since| company.listed >= since) => 5,
        _ => 0,
    };
    if age.is_some_and(|age| age < free) {
        return None;
    }
    Some(match company.board {
        Board::Star => 2_000,
        Board::ChiNext if registration_since(Board::ChiNext).is_some_and(|since| day >= since) => 2_000,
        Board::Bse => 3_000,
        // Before its reform ChiNext had the 10 % of the main boards and their 5 % for ST.
        Board::ChiNext | Board::ShMain | Board::SzMain => {
            if company.is_st(index) {
                500
            } else {
                1_000
            }
        }
    })
}

/// `reference` moved by `points` basis points, half-up to the cent.
pub(crate) const fn limit(reference: i64, points: i64) -> i64 {
    (reference * (10_000 + points) * 2 + 10_000) / 20_000
}

/// Moves of the market and of each industry, in millionths, by day.
#[derive(Debug)]
pub(crate) struct Factors {
    pub(crate) market: Vec<i64>,
    pub(crate) industries: Vec<Vec<i64>>,
}

impl Factors {
    pub(crate) fn new(seed: u64, days: usize, industries: usize) -> Self {
        let walk = |purpose: u64, index: u64, scale: i64| {
            let mut random = Random::new(seed, purpose, index);
            let mut drift = 0;
            (0..days)
                .map(|_| {
                    // A slow drift makes trends that last weeks.
                    drift = drift * 9 / 10 + random.bell(scale / 6);
                    let calm = random.between(6, 16);
                    (random.bell(scale) * calm / 10 + drift).clamp(-70_000, 70_000)
                })
                .collect::<Vec<i64>>()
        };
        Self { market: walk(2, 0, 9_000), industries: (0..industries).map(|i| walk(3, i as u64, 7_000)).collect() }
    }
}

/// Bars and events of a company over the market's days.
pub(crate) fn story(seed: u64, number: u64, company: &Company, days: &[Day], factors: &Factors) -> Story {
    let mut random = Random::new(seed, 4, number);
    let first_price = random.between(300, 6_000) * random.between(1, 3);
    let mut shares = random.between(80, 4_000) * 1_000_000;
    let (beta, noise) = (random.between(600, 1_500), random.between(9_000, 26_000));
    let turnover = random.between(2_000, 40_000);
    let gaps = gaps(&mut random, company.first_index, days.len());
    let events = events(&mut random, company, days, &gaps);
    let mut previous = first_price;
    let mut bars = Vec::with_capacity(days.len());
    let mut outstanding = Vec::with_capacity(days.len());
    for (index, day) in days.iter().enumerate().skip(company.first_index) {
        if gaps.iter().any(|gap| gap.contains(&index)) {
            continue;
        }
        let mut reference = previous;
        for event in events.iter().filter(|e| e.index == Some(index)) {
            reference = event.reference(reference);
            shares += shares / 100 * (event.bonus + event.transfer + event.rights);
        }
        let pull = if reference < 250 { 6_000 } else { 0 };
        let drift = factors.market[index] * beta / 1_000 + factors.industries[company.industry][index] + pull;
        let bar = day_bar(&mut random, company, *day, index, reference, drift, noise, shares / 1_000_000 * turnover);
        previous = bar.prices[3];
        bars.push(bar);
        outstanding.push(shares);
    }
    Story { bars, events, gaps, shares: outstanding, first_price }
}

#[allow(clippy::too_many_arguments, reason = "one day's inputs, used once")]
fn day_bar(
    random: &mut Random,
    company: &Company,
    day: Day,
    index: usize,
    reference: i64,
    drift: i64,
    noise: i64,
    usual_volume: i64,
) -> DailyBar {
    let points = band(company, day, index);
    // Days without limit still move inside half and double.
    let (up, down) = points.map_or((reference * 2, (reference / 2).max(1)), |p| (limit(reference, p), limit(reference, -p)));
    let noise = if points.is_none() { noise * 4 } else { noise };
    let moved = |random: &mut Random, from: i64, ppm: i64, scale: i64| {
        let ppm = (ppm + random.bell(scale)).clamp(-900_000, 900_000);
        ((from * (1_000_000 + ppm) + 500_000) / 1_000_000).clamp(down, up)
    };
    let mood = random.below(1_000);
    let mut open = moved(random, reference, drift / 3, noise / 3);
    let mut close = moved(random, reference, drift, noise);
    let mut high = open.max(close) + random.below(1 + reference * noise / 2_500_000);
    let mut low = open.min(close) - random.below(1 + reference * noise / 2_500_000);
    let mut busy = random.between(40, 220);
    match (mood, points.is_some()) {
        (0..3, true) => {
            // Sealed from the first to the last trade.
            (open, high, low, close) = (up, up, up, up);
            busy = random.between(1, 12);
        }
        (3..11, true) => {
            (high, close) = (up, up);
            busy += 200;
        }
        (11..15, true) => {
            high = up; // touched, not held
            busy += 150;
        }
        (15, true) => {
            (open, high, low, close) = (down, down, down, down);
            busy = random.between(1, 12);
        }
        (16..19, true) => {
            (low, close) = (down, down);
            busy += 150;
        }
        _ => {}
    }
    high = high.clamp(open.max(close), up.max(1));
    low = low.max(1).clamp(down.max(1), open.min(close));
    let volume = ((usual_volume * busy / 100) / 100).max(48) * 100;
    let prices = [open, high, low, close];
    DailyBar { index, prices, volume, amount: worth(volume, prices), up: points.map(|_| up) }
}

/// Turnover in whole CNY at the mean of the four prices.
pub(crate) const fn worth(volume: i64, prices: [i64; 4]) -> i64 {
    volume * (prices[0] + prices[1] + prices[2] + prices[3]) / 400
}

/// One in 40 companies is suspended once or twice.
fn gaps(random: &mut Random, first: usize, days: usize) -> Vec<std::ops::Range<usize>> {
    let mut gaps = Vec::new();
    if random.chance(25_000) && days > first + 8 {
        for _ in 0..random.between(1, 2) {
            let start = random.between(first as i64 + 2, days as i64 - 3) as usize;
            let length = random.between(1, 15) as usize;
            gaps.push(start..(start + length).min(days));
        }
    }
    gaps
}

/// Half of the companies have an ex-date per 250 days, some of them with bonus or transfer shares, few a rights issue; some plans
/// have no ex-date yet.
fn events(random: &mut Random, company: &Company, days: &[Day], gaps: &[std::ops::Range<usize>]) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let rounds = 1 + days.len() / 250;
    for _ in 0..rounds {
        if !random.chance(500_000) {
            continue;
        }
        let index = random.between(company.first_index as i64 + 10, days.len() as i64 + 10) as usize;
        let suspended = gaps.iter().any(|gap| gap.contains(&index));
        let ahead = random.between(15, 60) as i32;
        let (index, announced) = match days.get(index) {
            Some(day) if !suspended => (Some(index), day.plus(-ahead)),
            _ => (None, days.last().copied().unwrap_or_default().plus(-random.between(1, 60) as i32)),
        };
        if announced < company.listed || events.iter().any(|e| e.index == index) {
            continue;
        }
        let kind = random.below(100);
        let cash = if kind < 92 { random.between(10, 400) } else { 0 };
        let transfer = if (80..97).contains(&kind) { random.between(1, 5) * 10 } else { 0 };
        let bonus = if kind >= 97 { random.between(1, 3) * 10 } else { 0 };
        let rights = if kind == 96 { random.between(1, 3) * 10 } else { 0 };
        let rights_price = if rights > 0 { random.between(100, 250) } else { 0 };
        events.push(Event { index, announced, bonus, transfer, cash, rights, rights_price });
    }
    events.sort_by_key(|e| (e.index, e.announced));
    events
}
