//! News of a synthetic market: the day's market, industries and companies. Every item says that it is invented.

use super::company::{Company, INDUSTRIES};
use super::path::Factors;
use super::random::Random;
use crate::civil::DAY;
use traderharness_market::Day;

/// A news item; `time` in wall-clock seconds.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) id: i64,
    pub(crate) time: i64,
    pub(crate) title: String,
    pub(crate) content: String,
    pub(crate) level: &'static str,
    pub(crate) tags: String,
    pub(crate) codes: String,
}

const WHAT: [(&str, &str); 6] = [
    ("签订大额订单", "公司称该订单将对未来业绩产生积极影响。"),
    ("新产线投产", "新增产能将在下半年释放。"),
    ("控股股东拟增持", "增持计划将在六个月内实施。"),
    ("产品价格上调", "本次调价幅度约为百分之五。"),
    ("子公司收到监管问询", "公司将在规定期限内回复。"),
    ("与高校共建实验室", "双方将在关键技术上合作。"),
];

/// News of all calendar days of the window, ordered by time.
pub(crate) fn news(seed: u64, days: &[Day], companies: &[Company], factors: &Factors) -> Vec<Item> {
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return Vec::new() };
    let mut random = Random::new(seed, 6, 0);
    let mut items = Vec::new();
    let a_day = 16 + companies.len() as i64 / 150;
    for day in first.0 - 3..=last.0 {
        let open = days.binary_search(&Day(day)).ok();
        if let Some(index) = open {
            items.push(close_of_day(&mut random, Day(day), index, factors));
        }
        let count = if open.is_some() { random.between(a_day / 2, a_day) } else { random.between(2, 6) };
        for _ in 0..count {
            let time = i64::from(day) * DAY + random.between(7 * 3_600, 23 * 3_600 + 1_800);
            let known = open.or_else(|| days.partition_point(|d| d.0 < day).checked_sub(1));
            items.push(one(&mut random, time, known, companies, factors));
        }
    }
    items.sort_by(|a, b| (a.time, &a.title).cmp(&(b.time, &b.title)));
    for (i, item) in items.iter_mut().enumerate() {
        item.id = 1_000_001 + i as i64;
    }
    items
}

fn one(random: &mut Random, time: i64, known: Option<usize>, companies: &[Company], factors: &Factors) -> Item {
    let level = *random.pick(&["A", "B", "B", "C", "C", "C"]);
    let listed: &[Company] = companies;
    if random.chance(600_000) && !listed.is_empty() {
        let company = random.pick(listed);
        let (what, more) = *random.pick(&WHAT);
        // A company that lists later is not in the news before.
        if company.listed.0 <= (time / DAY) as i32 {
            let name = company.name_on(known.unwrap_or(0));
            return Item {
                id: 0,
                time,
                title: format!("【合成】{name}{what}"),
                content: format!("{name}（{}）公告{what}。{more}本条为虚构内容。", company.code),
                level,
                tags: INDUSTRIES[company.industry].0.to_owned(),
                codes: company.code.to_string(),
            };
        }
    }
    let industry = random.below(INDUSTRIES.len() as i64) as usize;
    let name = INDUSTRIES[industry].0;
    // The move of a finished day only: the day before the item.
    let up = known.and_then(|i| i.checked_sub(1)).is_some_and(|i| factors.industries[industry][i] >= 0);
    let word = if up { "走强" } else { "走弱" };
    Item {
        id: 0,
        time,
        title: format!("【合成】{name}板块前一交易日{word}"),
        content: format!("{name}板块前一交易日{word}，机构观点分化。本条为虚构内容。"),
        level,
        tags: name.to_owned(),
        codes: String::new(),
    }
}

fn close_of_day(random: &mut Random, day: Day, index: usize, factors: &Factors) -> Item {
    let move_ppm = factors.market[index];
    let word = if move_ppm >= 0 { "收涨" } else { "收跌" };
    let hundredths = move_ppm.abs() / 100;
    Item {
        id: 0,
        time: i64::from(day.0) * DAY + random.between(15 * 3_600 + 120, 15 * 3_600 + 1_800),
        title: format!("【合成】沪深两市{word}"),
        content: format!("今日市场{word}，合成指数变动约{}.{:02}%。本条为虚构内容。", hundredths / 100, hundredths % 100),
        level: "A",
        tags: "收评".to_owned(),
        codes: String::new(),
    }
}
