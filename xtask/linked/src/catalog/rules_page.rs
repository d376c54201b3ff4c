//! The dated market rules as a page: every row of the table, by rule, with its boards, dates and source. It adds no rule of its own.

use super::tool_page::cell;
use std::fmt::Write as _;
use traderharness_market::Board;
use traderharness_market::rules::{RuleRow, table};

const HEAD: &str = "<!-- Written by `cargo xtask catalog` from the rule table. Change crates/market/src/rules/table.rs, not this page. -->

# Market rules

Every price limit, order size and fee comes from one dated table, `traderharness_market::rules::table()`; nothing else in the code holds a rate or an
effective date. A day is judged by the row that holds on it. An empty date is as far as any dataset here goes, or still in force. The short name
of a rule is shown with a fill or a refusal. What could not be traced to a published text is left out and named in the text of that module.
";

/// Renders the page.
pub(crate) fn render() -> String {
    let rows = table();
    let mut page = HEAD.to_owned();
    let mut names: Vec<&str> = Vec::new();
    for row in &rows {
        if !names.contains(&row.kind.name()) {
            names.push(row.kind.name());
        }
    }
    for name in names {
        let title: String = name.chars().take(1).flat_map(char::to_uppercase).chain(name.chars().skip(1)).collect();
        _ = write!(page, "\n## {title}\n\n| boards | value | from | until | rule | source |\n|---|---|---|---|---|---|\n");
        for row in rows.iter().filter(|row| row.kind.name() == name) {
            page.push_str(&line(row));
        }
    }
    page
}

fn line(row: &RuleRow) -> String {
    let boards = if row.boards == Board::ALL {
        "all".to_owned()
    } else {
        row.boards.iter().map(|board| board.as_str()).collect::<Vec<_>>().join(", ")
    };
    let day = |day: Option<_>| day.map_or_else(String::new, |day: traderharness_market::Day| day.to_string());
    let (from, until) = (day(row.from), day(row.until));
    format!("| {boards} | {} | {from} | {until} | `{}` | {} |\n", cell(&row.kind.value()), row.rule, cell(row.source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_on_the_page_once_with_its_dates_and_source() {
        let page = render();
        let lines: Vec<&str> = page.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| boards")).collect();
        assert_eq!(lines.len(), table().len());
        for row in table() {
            let named: Vec<&&str> = lines.iter().filter(|l| l.contains(&format!("| `{}` |", row.rule))).collect();
            assert_eq!(named.len(), 1, "{}", row.rule);
            assert!(named[0].contains(row.source), "{}", row.rule);
            for day in [row.from, row.until].into_iter().flatten() {
                assert!(named[0].contains(&format!("| {day} |")), "{}: {day}", row.rule);
            }
        }
    }
}
