//! The texts a day starts with and each window opens with (engine E10.1). Everything comes through the session's view and is masked.
//!
//! A brief never says how many days a run has, and never shows an item of text before its time.

use crate::Session;
use crate::masking::FieldMask;
use std::fmt::Write as _;
use traderharness_market::{Minute, Moment};
use traderharness_tools_exec::corporate::CorporateAction;

/// Headlines shown at most.
const HEADLINES: usize = 12;
/// Characters of a headline shown at most.
const HEADLINE_CHARS: usize = 120;

/// The user message a day starts with.
pub fn morning(session: &Session, actions: &[CorporateAction]) -> String {
    let view = session.view();
    let day = session.mask().day(view.today(), view.today());
    let mut text = format!("New trading day: {day}. Decision point: pre_market. Nothing of today is visible yet.\n");
    account(&mut text, session);
    if let Some(index) = view.index().and_then(|bars| {
        let (last, before) = (bars.len().checked_sub(1)?, bars.len().checked_sub(2)?);
        let change = bars.close[last] / bars.close[before] - 1.0;
        (Some(bars.day[last]) == view.previous_day()).then_some(())?;
        traderharness_market::money::round_f64(change * 100.0, 2)
    }) {
        let _ = writeln!(text, "Benchmark index on the previous trading day: {index:+.2}%.");
    }
    for (id, code) in &session.opening().expired {
        let code = view.find(*code).map_or("a security", |sec| session.mask().code(sec));
        let _ = writeln!(text, "Conditional order {id} on {code} has expired.");
    }
    for code in &session.opening().unwatched {
        let code = view.find(*code).map_or("A security", |sec| session.mask().code(sec));
        let _ = writeln!(text, "{code} left the watchlist: its time there is over.");
    }
    if !actions.is_empty() {
        text.push_str("Corporate actions on your holdings since the last session:\n");
        for action in actions {
            let code = view.find(action.code).map_or("a holding", |sec| session.mask().code(sec));
            let _ = write!(text, "- {code}:");
            if action.cash.0 > 0 {
                let _ = write!(text, " dividend {} CNY before tax;", action.cash);
            }
            if action.shares_in.0 > 0 {
                let _ = write!(text, " {} new shares, total cost kept;", action.shares_in.0);
            }
            if action.rights_not_exercised {
                text.push_str(" rights offered, not exercised;");
            }
            for level in &action.rescaled {
                let _ = write!(text, " {} moved from {} to {};", level.what, level.from, level.to);
            }
            text.push('\n');
        }
    }
    headlines(&mut text, session);
    text
}

/// The user message a window opens with.
pub fn window(session: &Session) -> String {
    let clock = session.clock();
    let until = clock.point.visible_until().unwrap_or_default();
    let mut text = format!("Decision point: {}. Bars of today are visible up to {until}.\n", clock.point);
    account(&mut text, session);
    headlines(&mut text, session);
    text
}

fn field_mask(session: &Session) -> FieldMask<'_> {
    FieldMask { store: &session.config.store, mask: &session.config.mask, today: session.clock.day }
}

fn account(text: &mut String, session: &Session) {
    let view = session.view();
    let worth = session.account().valuation(&view);
    let _ = writeln!(text, "Total assets {} CNY, usable cash {} CNY.", worth.total, worth.cash);
    if worth.positions.is_empty() {
        text.push_str("No positions.\n");
        return;
    }
    text.push_str("Positions:\n");
    for held in &worth.positions {
        let Some(position) = session.account().ledger().position(held.code) else { continue };
        let code = view.find(held.code).map_or("?", |sec| session.mask().code(sec));
        let at = held.mark.time.map_or_else(
            || held.mark.source.as_str().to_owned(),
            |(day, minute)| session.mask().moment(day.at(minute), view.today()),
        );
        let _ = writeln!(
            text,
            "- {code}: {} shares, {} sellable, average cost {}, last {} ({at})",
            position.total.0,
            position.sellable().0,
            position.average_cost(),
            held.mark.price
        );
    }
}

/// Conditional orders that were tried on the bars that just became visible.
///
/// `None` when none was tried. Sent before the window message (engine E10.1).
pub fn conditions(session: &Session) -> Option<String> {
    let mut text = String::new();
    for outcome in session.conditions_met() {
        let code = session.view().find(outcome.security).map_or("?", |sec| session.mask().code(sec));
        let _ = match &outcome.result {
            Ok(fill) => {
                let did = if fill.side == traderharness_market::Side::Buy { "bought" } else { "sold" };
                writeln!(
                    text,
                    "Conditional order {} {did} {} shares of {code} at {} ({}).",
                    outcome.order_id, fill.shares.0, fill.price, outcome.bar_end
                )
            }
            Err(refusal) => writeln!(
                text,
                "Conditional order {} on {code} was met at {} ({}) and refused: {}. It stays active.",
                outcome.order_id,
                outcome.price,
                outcome.bar_end,
                refusal.code()
            ),
        };
    }
    (!text.is_empty()).then_some(text)
}

/// Items strictly before now and not before the previous decision point's now (engine E2.3); three days back where there is none.
fn headlines(text: &mut String, session: &Session) {
    let view = session.view();
    let since = view.previous_now().unwrap_or_else(|| view.today().plus(-3).at(Minute::at(15, 0)));
    let mask = field_mask(session);
    // Time, code where the item is about a holding, text of the source.
    let mut found: Vec<(Moment, Option<&str>, &str)> = Vec::new();
    if let Some(news) = view.news() {
        let from = news.partition_point(|n| n.time < since);
        found.extend(
            news[from..].iter().map(|n| (n.time, None, if n.title.is_empty() { n.content.as_str() } else { n.title.as_str() })),
        );
    }
    for sec in session.account().ledger().positions().iter().filter_map(|p| view.find(p.code)) {
        let announcements = view.announcements(sec).unwrap_or_default();
        let from = announcements.partition_point(|a| a.time < since);
        let code = session.mask().code(sec);
        found.extend(announcements[from..].iter().map(|a| (a.time, Some(code), a.title.as_str())));
    }
    if found.is_empty() {
        return;
    }
    let total = found.len();
    found.sort_by_key(|(time, ..)| *time);
    // Only what can be shown is masked: the newest items, with all that share the time of the last of them.
    let oldest = found[total.saturating_sub(HEADLINES)].0;
    let shown = &found[found.partition_point(|(time, ..)| *time < oldest)..];
    let mut items: Vec<(Moment, String)> = shown
        .iter()
        .map(|(time, code, title)| {
            let title = mask.text(title);
            (*time, code.map_or_else(|| title.to_string(), |code| format!("{code}: {title}")))
        })
        .collect();
    items.sort();
    let _ = writeln!(
        text,
        "Since the previous decision point, {} items of text appeared{}:",
        total,
        if total > HEADLINES { ", the latest first" } else { "" }
    );
    for (time, title) in items.iter().rev().take(HEADLINES) {
        let short: String = title.chars().take(HEADLINE_CHARS).collect();
        let cut = if title.chars().count() > HEADLINE_CHARS { " ..." } else { "" };
        let _ = writeln!(text, "- {} {}{cut}", session.mask().moment(*time, view.today()), short.replace('\n', " "));
    }
}
