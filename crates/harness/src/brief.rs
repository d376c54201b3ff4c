//! The texts a day starts with and each window opens with (engine E10.1). Everything comes through the session's view and is masked.
//!
//! The words here are those of contract v5; under an earlier version they come from its pack, line by line. A brief never says how many
//! days a run has, except under those versions that said so, and never shows an item of text before its time.

use crate::masking::FieldMask;
use crate::{Contract, Session};
use traderharness_contract::version::{Behaviour, Section};
use traderharness_market::{Minute, Moment};
use traderharness_tools_exec::corporate::CorporateAction;

/// Headlines shown at most.
const HEADLINES: usize = 12;
/// Characters of a headline shown at most.
const HEADLINE_CHARS: usize = 120;

/// The user message a day starts with, of a run of one day.
pub fn morning(session: &Session, actions: &[CorporateAction]) -> String {
    morning_of(session, actions, 1)
}

/// The user message a day starts with; `days` is how many the run has.
pub fn morning_of(session: &Session, actions: &[CorporateAction], days: usize) -> String {
    let (view, contract) = (session.view(), session.contract());
    let day = session.mask().day(view.today(), view.today());
    let mut text = contract.line(Section::Morning, &[("day", &day)], || {
        format!("New trading day: {day}. Decision point: pre_market. Nothing of today is visible yet.")
    });
    if contract.has(Behaviour::HorizonLine) {
        let (number, days) = ((session.day_index() + 1).to_string(), days.to_string());
        text.push_str(&contract.line(Section::Horizon, &[("day_number", &number), ("days", &days)], || {
            format!("This is trading day {number} of {days}.")
        }));
    }
    account(&mut text, session);
    if let Some(index) = view.index().and_then(|bars| {
        let (last, before) = (bars.len().checked_sub(1)?, bars.len().checked_sub(2)?);
        let change = bars.close[last] / bars.close[before] - 1.0;
        (Some(bars.day[last]) == view.previous_day()).then_some(())?;
        traderharness_market::money::round_f64(change * 100.0, 2)
    }) {
        let change = format!("{index:+.2}");
        text.push_str(&contract.line(Section::IndexChange, &[("change_pct", &change)], || {
            format!("Benchmark index on the previous trading day: {change}%.")
        }));
    }
    for (id, code) in &session.opening().expired {
        let code = view.find(*code).map_or("a security", |sec| session.mask().code(sec));
        text.push_str(&contract.line(Section::OrderExpired, &[("order_id", id), ("code", code)], || {
            format!("Conditional order {id} on {code} has expired.")
        }));
    }
    for code in &session.opening().unwatched {
        let code = view.find(*code).map_or("A security", |sec| session.mask().code(sec));
        text.push_str(
            &contract
                .line(Section::Unwatched, &[("code", code)], || format!("{code} left the watchlist: its time there is over.")),
        );
    }
    if !actions.is_empty() {
        text.push_str(
            &contract
                .line(Section::CorporateActions, &[], || "Corporate actions on your holdings since the last session:".to_owned()),
        );
        for action in actions {
            let code = view.find(action.code).map_or("a holding", |sec| session.mask().code(sec));
            let what = happened(contract, action);
            text.push_str(&contract.line(Section::CorporateAction, &[("code", code), ("what", &what)], || match what.as_str() {
                "" => format!("- {code}:"),
                what => format!("- {code}: {what}"),
            }));
        }
    }
    headlines(&mut text, session);
    text
}

/// The parts of a corporate action, joined by blanks.
fn happened(contract: &Contract, action: &CorporateAction) -> String {
    let mut parts = Vec::new();
    if action.cash.0 > 0 {
        let cash = action.cash.to_string();
        parts.push(contract.text(Section::Dividend, &[("cash", &cash)], || format!("dividend {cash} CNY before tax;")));
    }
    if action.shares_in.0 > 0 {
        let shares = action.shares_in.0.to_string();
        parts
            .push(contract.text(Section::NewShares, &[("shares", &shares)], || format!("{shares} new shares, total cost kept;")));
    }
    if action.rights_not_exercised {
        parts.push(contract.text(Section::RightsOffered, &[], || "rights offered, not exercised;".to_owned()));
    }
    for level in &action.rescaled {
        let (what, from, to) = (level.what.to_string(), level.from.to_string(), level.to.to_string());
        parts.push(contract.text(Section::LevelMoved, &[("what", &what), ("from", &from), ("to", &to)], || {
            format!("{what} moved from {from} to {to};")
        }));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// The user message a window opens with.
pub fn window(session: &Session) -> String {
    let clock = session.clock();
    let until = clock.point.visible_until().unwrap_or_default().to_string();
    let values = [("point", clock.point.as_str()), ("until", &until)];
    let mut text = session
        .contract()
        .line(Section::Window, &values, || format!("Decision point: {}. Bars of today are visible up to {until}.", clock.point));
    account(&mut text, session);
    headlines(&mut text, session);
    text
}

fn field_mask(session: &Session) -> FieldMask<'_> {
    FieldMask { store: &session.config.store, mask: &session.config.mask, today: session.clock.day }
}

fn account(text: &mut String, session: &Session) {
    let (view, contract) = (session.view(), session.contract());
    let worth = session.account().valuation(&view);
    let (total, cash) = (worth.total.to_string(), worth.cash.to_string());
    text.push_str(&contract.line(Section::AccountNow, &[("total", &total), ("cash", &cash)], || {
        format!("Total assets {total} CNY, usable cash {cash} CNY.")
    }));
    if worth.positions.is_empty() {
        text.push_str(&contract.line(Section::NoPositions, &[], || "No positions.".to_owned()));
        return;
    }
    text.push_str(&contract.line(Section::Positions, &[], || "Positions:".to_owned()));
    for held in &worth.positions {
        let Some(position) = session.account().ledger().position(held.code) else { continue };
        let code = view.find(held.code).map_or("?", |sec| session.mask().code(sec));
        let at = held.mark.time.map_or_else(
            || held.mark.source.as_str().to_owned(),
            |(day, minute)| session.mask().moment(day.at(minute), view.today()),
        );
        let (shares, sellable) = (position.total.0.to_string(), position.sellable().0.to_string());
        let (cost, price) = (position.average_cost().to_string(), held.mark.price.to_string());
        let values = [
            ("code", code),
            ("shares", &shares),
            ("sellable", &sellable),
            ("average_cost", &cost),
            ("price", &price),
            ("price_time", &at),
        ];
        text.push_str(&contract.line(Section::Position, &values, || {
            format!("- {code}: {shares} shares, {sellable} sellable, average cost {cost}, last {price} ({at})")
        }));
    }
}

/// Conditional orders that were tried on the bars that just became visible.
///
/// `None` when none was tried. Sent before the window message (engine E10.1).
pub fn conditions(session: &Session) -> Option<String> {
    let mut text = String::new();
    let contract = session.contract();
    for outcome in session.conditions_met() {
        let code = session.view().find(outcome.security).map_or("?", |sec| session.mask().code(sec));
        let (id, time) = (outcome.order_id.to_string(), outcome.bar_end.to_string());
        text.push_str(&match &outcome.result {
            Ok(fill) => {
                let did = if fill.side == traderharness_market::Side::Buy { "bought" } else { "sold" };
                let (shares, price) = (fill.shares.0.to_string(), fill.price.to_string());
                let values = [
                    ("order_id", id.as_str()),
                    ("did", did),
                    ("shares", &shares),
                    ("code", code),
                    ("price", &price),
                    ("time", &time),
                ];
                contract.line(Section::ConditionFilled, &values, || {
                    format!("Conditional order {id} {did} {shares} shares of {code} at {price} ({time}).")
                })
            }
            Err(refusal) => {
                let (price, why) = (outcome.price.to_string(), refusal.code().to_string());
                let values =
                    [("order_id", id.as_str()), ("code", code), ("price", &price), ("time", &time), ("error_code", &why)];
                contract.line(Section::ConditionRefused, &values, || {
                    format!("Conditional order {id} on {code} was met at {price} ({time}) and refused: {why}. It stays active.")
                })
            }
        });
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
    let contract = session.contract();
    let (section, order) =
        if total > HEADLINES { (Section::HeadlinesCut, ", the latest first") } else { (Section::Headlines, "") };
    let count = total.to_string();
    text.push_str(&contract.line(section, &[("count", &count)], || {
        format!("Since the previous decision point, {count} items of text appeared{order}:")
    }));
    for (time, title) in items.iter().rev().take(HEADLINES) {
        let short: String = title.chars().take(HEADLINE_CHARS).collect();
        let cut = if title.chars().count() > HEADLINE_CHARS { " ..." } else { "" };
        let (time, title) = (session.mask().moment(*time, view.today()), format!("{}{cut}", short.replace('\n', " ")));
        text.push_str(&contract.line(Section::Headline, &[("time", &time), ("title", &title)], || format!("- {time} {title}")));
    }
}
