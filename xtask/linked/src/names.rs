//! The 30 tools that contract v5 has (seed 000, tool inventory), and which of them are not built yet. Holds no contract itself.

use traderharness_contract::Group;

/// Names in catalog order, with their group.
pub(crate) const TOOLS: &[(&str, Group)] = &[
    ("get_kline", Group::Market),
    ("get_stock_price", Group::Market),
    ("get_stock_info", Group::Market),
    ("get_market_overview", Group::Market),
    ("get_narrative_market_overview", Group::Narrative),
    ("get_narrative_sector_summary", Group::Narrative),
    ("get_narrative_news", Group::Narrative),
    ("screen_stocks", Group::Screening),
    ("screen_behavioral_cycle", Group::Screening),
    ("get_sector_summary", Group::Screening),
    ("get_fundamentals", Group::Fundamentals),
    ("get_business_segments", Group::Fundamentals),
    ("get_valuation", Group::Fundamentals),
    ("get_announcements", Group::Text),
    ("get_announcement_evidence", Group::Text),
    ("get_news", Group::Text),
    ("get_portfolio", Group::Portfolio),
    ("get_position", Group::Portfolio),
    ("place_order", Group::Execution),
    ("manage_conditional_order", Group::Execution),
    ("list_conditional_orders", Group::Execution),
    ("add_watchlist", Group::Watchlist),
    ("remove_watchlist", Group::Watchlist),
    ("get_watchlist", Group::Watchlist),
    ("remember", Group::Memory),
    ("search_memory", Group::Memory),
    ("get_memory", Group::Memory),
    ("execute_code", Group::Sandbox),
    ("complete_phase", Group::Control),
    ("finish_day", Group::Control),
];

/// Tools still to come. A name leaves this list in the change that adds the tool; the audit holds the list against the catalog.
pub(crate) const TO_COME: &[&str] = &[];

/// Place of a tool in the catalog; names that are not of the 30 come last.
pub(crate) fn place(name: &str) -> usize {
    TOOLS.iter().position(|(known, _)| *known == name).unwrap_or(TOOLS.len())
}

/// Heading of a group.
pub(crate) use traderharness_contract::review::heading;
