//! News and announcements.

use super::{Case, Entry, Kind};
use crate::differential::play::rows;
use serde_json::{Value, json};

const LISTS: &[&str] = &["get_news", "get_narrative_news", "get_announcements", "get_announcement_evidence"];

fn list(case: &Case<'_>) -> &'static str {
    if case.played.tool.ends_with("news") { "news" } else { "announcements" }
}

fn time(row: &Value) -> String {
    row["time"].as_str().unwrap_or_default().chars().take(16).collect()
}

/// All texts of ours at this clock, newest first.
fn all<'c>(case: &'c Case<'_>) -> &'c [Value] {
    case.played.probes.get("all").map_or(&[], |p| rows(p, list(case)))
}

fn of_today(case: &Case<'_>, row: &Value) -> bool {
    time(row).starts_with(&case.today())
}

/// Our page is the start of our whole list, and that is newest first. Days sort as text when bright; masked ones by their number.
fn newest_first(case: &Case<'_>) -> bool {
    let key = |row: &Value| {
        let text = time(row);
        let (day, rest) = text.split_at(text.find(' ').unwrap_or(0));
        match day.strip_prefix('D').and_then(|d| d.parse::<i64>().ok()) {
            Some(offset) => format!("{:06}{rest}", 100_000 + offset),
            None => text,
        }
    };
    let keys: Vec<String> = all(case).iter().map(key).collect();
    let page = rows(&case.played.ours, list(case));
    keys.windows(2).all(|w| w[0] >= w[1]) && page.iter().zip(all(case)).all(|(a, b)| a["evidence_id"] == b["evidence_id"])
}

/// Texts before today: as many as theirs counts.
fn same_total(case: &Case<'_>) -> bool {
    let before = all(case).iter().filter(|r| !of_today(case, r)).count();
    let shown = case.ours("total").as_u64() == Some(all(case).len() as u64);
    shown && case.theirs("count").as_u64() == Some(before as u64)
}

/// What is left of a text without names, codes, dates and the words of dates.
fn skeleton(text: &str) -> String {
    let text = text.replace("another company", "").replace("another code", "").replace("某公司", "");
    let dates = |c: char| "年月日号度第一二三四季所在截至：:，、（）()上下半".contains(c);
    text.chars().filter(|c| !c.is_ascii() && !dates(*c)).collect()
}

/// A masked text of one row: the same words once everything that is masked is taken out, and a label of ours where they differ.
fn masked_text(case: &Case<'_>, ours: &Value, theirs: &Value) -> bool {
    let (Some(a), Some(b)) = (ours.as_str(), theirs.as_str()) else { return ours == theirs };
    let labels = ["D-", "D+", "M-", "M+", "Q-", "Q+", "Y-", "Y+", "H-", "H+", "Company ", "another "];
    let (sa, sb) = (skeleton(a), skeleton(b));
    let cut = sa.len().min(sb.len());
    // Content is cut at 300 characters, so labels of another length move the end.
    let same = sa == sb
        || (a.chars().count().max(b.chars().count()) >= 299
            && cut > 300
            && sa.as_bytes()[..cut - 60] == sb.as_bytes()[..cut - 60]);
    a == b || (case.played.masked && same && labels.iter().any(|l| a.contains(l)))
}

/// The row of ours that is this text: same minute (or 15:00 for a text with only a day) and same words.
fn ours_of<'c>(case: &'c Case<'_>, theirs: &Value) -> Option<&'c Value> {
    all(case).iter().find(|o| {
        let when = if o["date_only"] == json!(true) { time(o).replace(" 15:00", " 00:00") } else { time(o) };
        when == time(theirs)
            && ["title", "content"].iter().all(|k| theirs[*k].is_null() || masked_text(case, &o[*k], &theirs[*k]))
            && ["type", "level"].iter().all(|k| theirs[*k].is_null() || o[*k] == theirs[*k])
    })
}

fn date_only(row: Option<&Value>) -> bool {
    row.is_some_and(|r| r["date_only"] == json!(true))
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "T1-total",
        tools: LISTS,
        fields: &["count"],
        reason: "`count` is `total`, beside `returned`, `complete` and `next_cursor`; it counts texts of today too.",
        covers: |case, diff| {
            diff.kind == Kind::Absent
                && (same_total(case)
                    || (diff.theirs == json!(0)
                        && *case.ours("total") == json!(all(case).len())
                        && all(case).iter().all(|r| of_today(case, r))))
        },
    },
    Entry {
        id: "T1-minute",
        tools: LISTS,
        fields: &["news[].time", "announcements[].time"],
        reason: "Times have minutes; theirs has seconds in bright runs and none in masked ones.",
        covers: |case, diff| {
            let (Some(a), Some(b)) = (diff.ours.as_str(), diff.theirs.as_str()) else { return false };
            !case.played.masked && b.len() == 19 && b.starts_with(a)
        },
    },
    Entry {
        id: "T1-evidence",
        tools: &["get_narrative_news", "get_announcement_evidence", "place_order", "get_position"],
        fields: &[
            "news[].evidence_id",
            "announcements[].evidence_id",
            "correction.received_arguments.decision_card.text_evidence_ids[]",
            "correction.available_evidence_ids[]",
            "position_plan.decision_card.text_evidence_ids[]",
        ],
        reason: "Evidence ids are made of the content; theirs are row numbers that change with the start of a run and the order of a file.",
        covers: |case, diff| {
            let own = diff.ours.as_str().is_some_and(|id| ["news-", "ann-", "seg-", "rep-"].iter().any(|p| id.starts_with(p)));
            let theirs = diff.theirs.as_str().unwrap_or_default();
            let paired = case.played.ids.get(theirs).is_some_and(|id| diff.ours == **id);
            own && (paired || diff.field.contains("available"))
        },
    },
    Entry {
        id: "E8.4",
        tools: LISTS,
        fields: &["news[].title", "news[].content", "news[].linked_stocks", "announcements[].title"],
        reason: "Every absolute date in a text is masked, years and months too, and companies outside the universe by name and code \
                 (engine E8.3, E8.4, b09, b10); theirs leaves some.",
        covers: |case, diff| diff.kind == Kind::Value && masked_text(case, &diff.ours, &diff.theirs),
    },
    Entry {
        id: "E2.4-date-only",
        tools: LISTS,
        fields: &["announcements[]"],
        reason: "An announcement with only a day counts as published at 15:00 of it, after the close; theirs has it at midnight.",
        covers: |case, diff| match diff.kind {
            Kind::Absent => time(&diff.theirs).ends_with(" 00:00") && date_only(ours_of(case, &diff.theirs)),
            Kind::Extra => {
                let twin = |t: &Value| ours_of(case, t).is_some_and(|o| o["evidence_id"] == diff.ours["evidence_id"]);
                date_only(Some(&diff.ours)) && rows(&case.played.theirs, "announcements").iter().any(twin)
            }
            _ => false,
        },
    },
    Entry {
        id: "b04",
        tools: LISTS,
        fields: &["news[]", "announcements[]", "returned"],
        reason: "Texts of today that came before now are visible (engine E2.3); theirs ends at midnight.",
        covers: |case, diff| {
            let today = all(case).iter().filter(|r| of_today(case, r)).count();
            newest_first(case)
                && match diff.kind {
                    Kind::Extra => of_today(case, &diff.ours),
                    // Pushed off the page by texts of today.
                    Kind::Absent => today > 0 && ours_of(case, &diff.theirs).is_some(),
                    _ => {
                        diff.ours.as_u64() == Some(rows(&case.played.ours, list(case)).len() as u64)
                            && super::gap(diff).is_some_and(|g| g > 0.0 && g <= today as f64)
                    }
                }
        },
    },
    Entry {
        id: "b18",
        tools: LISTS,
        fields: &["news", "announcements", "news[]", "announcements[]"],
        reason: "Latest means by time, newest first; theirs takes the last rows of the file.",
        covers: |case, diff| {
            newest_first(case)
                && match diff.kind {
                    Kind::Order => true,
                    Kind::Absent => ours_of(case, &diff.theirs).is_some(),
                    Kind::Extra => case.theirs("count").as_u64() > Some(rows(&case.played.theirs, list(case)).len() as u64),
                    _ => false,
                }
        },
    },
    Entry {
        id: "prose-filter",
        tools: &["get_news", "get_narrative_news"],
        fields: &["filter"],
        reason: "The word for no filter is English.",
        covers: |_, diff| diff.theirs == "(全部)" && diff.ours == "all",
    },
    Entry {
        id: "T5-budget",
        tools: &["get_narrative_news", "get_narrative_sector_summary"],
        fields: &["budget_exhausted", "limit"],
        reason: "The budget stands in `correction.budget` {used, limit} with what was asked already.",
        covers: |case, diff| {
            let correction = case.ours("correction");
            diff.kind == Kind::Absent && correction.to_string().contains("\"limit\":2")
        },
    },
];
