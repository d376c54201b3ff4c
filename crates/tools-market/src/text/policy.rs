//! News that speak of government, regulators or policy. The words are ours, so every run finds the same items.

use super::items::newest_first;
use super::news::Story;
use super::window::Window;
use super::words::Word;
use crate::fundamentals::no_table;
use traderharness_contract::ToolFailure;
use traderharness_market::View;
use traderharness_market::store::NewsItem;

/// Characters of a content that are shown.
const CONTENT: usize = 3_000;

/// Bodies that make policy, and words for what they make. An item with one of them in title or content counts.
const WORDS: [&str; 34] = [
    "国务院",
    "政治局",
    "中共中央",
    "发改委",
    "发展改革委",
    "财政部",
    "央行",
    "人民银行",
    "证监会",
    "金融监管总局",
    "银保监会",
    "工信部",
    "工业和信息化部",
    "商务部",
    "住建部",
    "科技部",
    "农业农村部",
    "生态环境部",
    "国资委",
    "税务总局",
    "市场监管总局",
    "外汇局",
    "统计局",
    "政策",
    "法规",
    "监管",
    "降准",
    "降息",
    "policy",
    "regulator",
    "ministry",
    "central bank",
    "state council",
    "government",
];

/// The items of the last `days` calendar days and today up to now, newest first.
pub(crate) fn stories(view: &View<'_>, days: u8) -> Result<Vec<Story>, ToolFailure> {
    let rows = view.news().ok_or_else(|| no_table("table of news"))?;
    // Looked for in what the agent may see, so that a hidden name with such a word in it puts no item on the list.
    let words: Vec<Word<'_>> = WORDS.iter().map(|word| Word::new(view, "keyword", word)).collect::<Result<_, _>>()?;
    let in_window = Window::of(view, days, None).of_rows(rows, |row| row.time);
    let speaks = |row: &&NewsItem| words.iter().any(|word| word.is_in(&row.title) || word.is_in(&row.content));
    let mut items: Vec<&NewsItem> = in_window.iter().filter(speaks).collect();
    newest_first(view, &mut items);
    Ok(items.into_iter().map(|row| Story::of(view, row, CONTENT)).collect())
}
