//! Reports, segments, announcements and valuation of one company, consistent with its bars and ex-events.
//!
//! Ratios are computed with the four basic operations and rounded, which gives the same value on every machine.

use super::company::{Company, INDUSTRIES};
use super::path::Story;
use super::random::Random;
use crate::civil::DAY;
use traderharness_market::Day;

/// A quarterly report; amounts in CNY, ratios as fractions.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) period: Day,
    pub(crate) published: Day,
    pub(crate) revenue: f64,
    pub(crate) net_profit: f64,
    pub(crate) net_margin: f64,
    pub(crate) gross_margin: f64,
    pub(crate) roe: f64,
    pub(crate) eps: f64,
    pub(crate) eps_ttm: f64,
    pub(crate) bvps: f64,
    /// Net profit, EPS, equity, assets, parent net profit against the same period a year before.
    pub(crate) yoy: [f64; 5],
    /// Revenue of the last four quarters over shares, for PS.
    pub(crate) sales_ttm: f64,
}

/// A line of revenue by segment.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) period: Day,
    pub(crate) published: Day,
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    pub(crate) revenue: f64,
    pub(crate) share: f64,
    pub(crate) gross_margin: f64,
}

/// An announcement; a time at midnight stands for a bare date.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(crate) time: i64,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) kind: &'static str,
}

/// A valuation row, one for each bar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Worth {
    /// Percent of the shares traded.
    pub(crate) turn: f64,
    pub(crate) pe: f64,
    pub(crate) pb: f64,
    pub(crate) ps: f64,
    pub(crate) st: bool,
}

/// `value` rounded to `places` decimals; exact operations only.
pub(crate) fn rounded(value: f64, places: u32) -> f64 {
    let scale = 10_u32.pow(places);
    (value * f64::from(scale)).round() / f64::from(scale)
}

/// Quarters of history before the first report that is written, for the comparisons with a year before.
const HISTORY: usize = 8;

/// Reports published from about two years before the first day until the last day.
pub(crate) fn reports(random: &mut Random, company: &Company, story: &Story, days: &[Day]) -> Vec<Report> {
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return Vec::new() };
    let shares = story.shares.first().copied().unwrap_or(1_000_000).max(1);
    let value = shares as f64 * story.first_price as f64 / 100.0;
    // Quarter sales between 2 % and 30 % of the market value; margins from -8 % to 24 %.
    let sales = value * random.between(20, 300) as f64 / 1_000.0;
    let margin = random.between(-80, 240);
    let gross = random.between(120, 620);
    let mut equity = value * 1_000.0 / random.between(800, 6_000) as f64;
    let mut assets = equity * random.between(1_200, 3_500) as f64 / 1_000.0;
    let start = first.ymd().0 - 4;
    let mut quarters: Vec<(f64, f64, f64, f64)> = Vec::new();
    let mut reports = Vec::new();
    let mut season = sales;
    for number in 0.. {
        let (year, quarter) = (start + (number / 4) as i16, number % 4);
        let (month, day) = [(3, 31), (6, 30), (9, 30), (12, 31)][quarter];
        let Some(period) = Day::from_ymd(year, month, day) else { break };
        if period >= *last {
            break;
        }
        season = season * (1_000 + random.bell(60)) as f64 / 1_000.0;
        let swing = random.bell(30);
        let net = rounded(season * (margin + swing).clamp(-400, 400) as f64 / 1_000.0, 2);
        equity += net;
        assets += net + equity * random.bell(10) as f64 / 1_000.0;
        quarters.push((rounded(season, 2), net, equity, assets));
        let published = publication(random, year, quarter);
        if number < HISTORY
            || published > *last
            || period < first.plus(-800)
            || (company.first_index > 0 && published < company.listed)
        {
            continue;
        }
        reports.push(report(&quarters, quarter, period, published, shares as f64, gross + random.bell(15), equity, assets));
    }
    reports.sort_by_key(|r| (r.published, r.period));
    reports
}

#[allow(clippy::too_many_arguments, reason = "one report's inputs, used once")]
fn report(
    quarters: &[(f64, f64, f64, f64)],
    quarter: usize,
    period: Day,
    published: Day,
    shares: f64,
    gross: i64,
    equity: f64,
    assets: f64,
) -> Report {
    let now = quarters.len();
    let sum = |until: usize, count: usize, of: fn(&(f64, f64, f64, f64)) -> f64| -> f64 {
        quarters[until.saturating_sub(count)..until].iter().map(of).sum()
    };
    // A report covers the year so far; comparisons take the same quarters of the year before.
    let (revenue, net) = (sum(now, quarter + 1, |q| q.0), sum(now, quarter + 1, |q| q.1));
    let before = sum(now - 4, quarter + 1, |q| q.1);
    let past = quarters[now - 5];
    let growth = |new: f64, old: f64| if old > 0.0 { rounded(new / old - 1.0, 6) } else { f64::NAN };
    let profit = growth(net, before);
    Report {
        period,
        published,
        revenue: rounded(revenue, 2),
        net_profit: rounded(net, 2),
        net_margin: rounded(net / revenue.max(1.0), 6),
        gross_margin: rounded(gross.clamp(20, 950) as f64 / 1_000.0, 6),
        roe: rounded(net / equity.max(1.0), 6),
        eps: rounded(net / shares, 4),
        eps_ttm: rounded(sum(now, 4, |q| q.1) / shares, 6),
        bvps: rounded(equity / shares, 4),
        yoy: [profit, profit, growth(equity, past.2), growth(assets, past.3), profit],
        sales_ttm: sum(now, 4, |q| q.0) / shares,
    }
}

/// Day a report of a quarter comes out: Q1 and the year in April, the half-year in August, Q3 in October.
fn publication(random: &mut Random, year: i16, quarter: usize) -> Day {
    let (year, month, from, to) = match quarter {
        0 => (year, 4, 18, 30),
        1 => (year, 8, 10, 31),
        2 => (year, 10, 15, 31),
        _ => (year + 1, 4, 1, 28),
    };
    let mut day = Day::from_ymd(year, month, random.between(from, to) as i8).unwrap_or_default();
    while crate::civil::is_weekend(day) {
        day = day.plus(-1);
    }
    day
}

/// Segments of the half-year and full-year reports. Shares sum to one, revenue to the report's.
pub(crate) fn segments(random: &mut Random, company: &Company, reports: &[Report]) -> Vec<Segment> {
    let products = INDUSTRIES[company.industry].1;
    let mut segments = Vec::new();
    for report in reports.iter().filter(|r| matches!(r.period.ymd().1, 6 | 12)) {
        for (kind, names) in [("按产品分类", products), ("按地区分类", ["境内", "境外", "其他地区"])] {
            let cents = (report.revenue * 100.0).round() as i64;
            let first = cents / 1_000 * random.between(350, 650);
            let second = (cents - first) / 1_000 * random.between(300, 900);
            for (name, part) in names.into_iter().zip([first, second, cents - first - second]) {
                let gross_margin = if random.chance(80_000) {
                    f64::NAN
                } else {
                    rounded((report.gross_margin + random.bell(40) as f64 / 1_000.0).clamp(0.01, 0.97), 6)
                };
                segments.push(Segment {
                    period: report.period,
                    published: report.published,
                    kind,
                    name,
                    revenue: part as f64 / 100.0,
                    share: rounded(part as f64 / cents.max(1) as f64, 6),
                    gross_margin,
                });
            }
        }
    }
    segments
}

/// Valuation of each bar from the newest report published before its day.
pub(crate) fn worths(company: &Company, story: &Story, reports: &[Report], days: &[Day]) -> Vec<Worth> {
    story
        .bars
        .iter()
        .zip(&story.shares)
        .map(|(bar, shares)| {
            let day = days[bar.index];
            let close = bar.prices[3] as f64 / 100.0;
            let known = reports.partition_point(|r| r.published < day);
            let latest = known.checked_sub(1).map(|i| &reports[i]);
            let over = |base: f64| if base > 0.0 { rounded(close / base, 4) } else { f64::NAN };
            Worth {
                turn: rounded(bar.volume as f64 / *shares as f64 * 100.0, 4),
                // A loss makes the ratio negative; it is missing only where there is no report.
                pe: latest.map_or(f64::NAN, |r| if r.eps_ttm == 0.0 { f64::NAN } else { rounded(close / r.eps_ttm, 4) }),
                pb: latest.map_or(f64::NAN, |r| over(r.bvps)),
                ps: latest.map_or(f64::NAN, |r| over(r.sales_ttm)),
                st: company.is_st(bar.index),
            }
        })
        .collect()
}

/// Announcements: reports, dividends, suspensions, the ST mark, unusual moves, and routine ones.
pub(crate) fn notices(random: &mut Random, company: &Company, story: &Story, reports: &[Report], days: &[Day]) -> Vec<Notice> {
    let (Some(first), Some(last)) = (days.first().copied(), days.last().copied()) else { return Vec::new() };
    let mut notices = Vec::new();
    let index_of = |day: Day| days.partition_point(|d| *d < day).min(days.len() - 1);
    let mut add = |random: &mut Random, day: Day, title: &str, kind: &'static str| {
        if day < first.plus(-30) || day > last || (company.first_index > 0 && day < company.listed) {
            return;
        }
        let name = company.name_on(index_of(day));
        let time = i64::from(day.0) * DAY + time_of_day(random);
        notices.push(Notice { time, title: format!("{name}：{title}"), name, kind });
    };
    for report in reports {
        let (year, month, _) = report.period.ymd();
        let what = match month {
            3 => "第一季度报告",
            6 => "半年度报告",
            9 => "第三季度报告",
            _ => "年度报告",
        };
        add(random, report.published, &format!("{year}年{what}"), "定期报告");
    }
    for event in &story.events {
        add(random, event.announced, "关于利润分配方案的公告", "权益分派");
        if let Some(index) = event.index.filter(|i| *i > 4) {
            add(random, days[index - 4], "权益分派实施公告", "权益分派");
        }
    }
    for gap in &story.gaps {
        add(random, days[gap.start - 1], "关于股票停牌的公告", "停牌");
        if let Some(back) = gap.end.checked_sub(1).filter(|i| *i + 1 < days.len()) {
            add(random, days[back], "关于股票复牌的公告", "复牌");
        }
    }
    if let Some(from) = company.st_from.filter(|f| *f > 0) {
        add(random, days[from - 1], "关于公司股票被实施其他风险警示的公告", "风险提示");
    }
    for bar in story.bars.iter().filter(|b| b.up == Some(b.prices[3])) {
        if random.chance(300_000) {
            add(random, days[bar.index], "股票交易异常波动公告", "交易异动");
        }
    }
    const ROUTINE: [(&str, &str); 8] = [
        ("关于召开临时股东大会的通知", "股东大会"),
        ("董事会会议决议公告", "临时公告"),
        ("关于签订日常经营合同的公告", "重大合同"),
        ("关于股东减持计划的预披露公告", "股东变动"),
        ("关于回购公司股份的进展公告", "股份回购"),
        ("关于获得政府补助的公告", "临时公告"),
        ("关于对外投资设立子公司的公告", "对外投资"),
        ("产销数据快报", "临时公告"),
    ];
    for _ in 0..1 + days.len() / 30 {
        let day = first.plus(random.between(0, i64::from(last.0 - first.0)) as i32);
        let (title, kind) = *random.pick(&ROUTINE);
        add(random, day, title, kind);
    }
    notices.sort_by(|a, b| (a.time, &a.title).cmp(&(b.time, &b.title)));
    notices.dedup_by(|a, b| (a.time, &a.title) == (b.time, &b.title));
    notices
}

/// Seconds after midnight: mostly in the evening, some before the open or at noon, one in eight only a date.
fn time_of_day(random: &mut Random) -> i64 {
    match random.below(100) {
        0..12 => 0,
        12..20 => random.between(7 * 3_600, 9 * 3_600),
        20..30 => random.between(11 * 3_600 + 1_900, 12 * 3_600 + 3_000),
        _ => random.between(15 * 3_600 + 600, 22 * 3_600),
    }
}
