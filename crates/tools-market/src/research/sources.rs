//! Which tables each tool reads, which tools it needs, and whether its tables keep their revisions: facts for manifests, coverage and data
//! rights. Says nothing of what one call happened to read.

use traderharness_contract::algebra::RevisionHistory;

/// Tables and records behind a tool, for `coverage.source_refs` and data rights; empty for a name that is no tool. The first one is the
/// source of records with an `evidence_id`.
///
/// | source | is |
/// |---|---|
/// | `daily`, `minute`, `index` | daily bars, 5-minute bars, bars of the benchmark |
/// | `dividends` | dividends, bonus, transfer and rights issues |
/// | `securities` | names and industries |
/// | `valuation`, `fundamentals`, `segments` | daily valuation with the ST mark that decides price limits, reports, revenue by segment |
/// | `announcements`, `news` | texts |
/// | `account` | the session's own records: cash, positions, orders, watchlist, memory |
pub fn sources(tool: &str) -> &'static [&'static str] {
    match tool {
        "market_bars" | "market.bars" | "technical_compute" | "technical.compute" => &["daily", "dividends", "securities"],
        "get_kline" => &["daily", "dividends"],
        "get_stock_price" => &["minute", "daily", "dividends", "valuation"],
        "get_stock_info" => &["securities", "daily", "valuation"],
        "get_market_overview" => &["daily", "minute", "index", "dividends", "securities"],
        "get_narrative_market_overview" => &["news", "daily", "minute", "dividends", "securities"],
        "get_narrative_sector_summary" => &["news", "daily", "minute", "dividends", "securities"],
        "get_narrative_news" => &["news"],
        "screen_stocks" => &["daily", "valuation", "dividends", "securities"],
        "screen_behavioral_cycle" => &["daily", "dividends", "securities"],
        "get_sector_summary" => &["daily", "dividends", "securities"],
        "get_fundamentals" => &["fundamentals"],
        "get_business_segments" => &["segments"],
        "get_valuation" => &["valuation"],
        "get_announcements" | "get_announcement_evidence" => &["announcements"],
        "get_news" => &["news"],
        "place_order" | "manage_conditional_order" => &["account", "minute", "daily", "dividends", "valuation"],
        "get_portfolio" | "get_position" | "list_conditional_orders" => &["account", "minute", "daily", "dividends", "valuation"],
        "add_watchlist" | "get_watchlist" | "remove_watchlist" => &["account", "minute", "daily"],
        "remember" | "get_memory" | "search_memory" | "complete_phase" | "finish_day" => &["account"],
        "execute_code" => &[
            "account",
            "daily",
            "minute",
            "index",
            "dividends",
            "securities",
            "valuation",
            "fundamentals",
            "segments",
            "announcements",
            "news",
        ],
        _ => &[],
    }
}

/// Tools whose answer is the input of this one; a caller needs the right to each of them (spec/seeds.md C2).
pub fn requires(tool: &str) -> &'static [&'static str] {
    match tool {
        "technical_compute" => &["market_bars"],
        "technical.compute" => &["market.bars"],
        _ => &[],
    }
}

/// Whether the tables behind a tool hold the earlier revisions of what they show. Reports and segments are kept as of their publication
/// and valuation ratios are computed from reports, but a figure that was corrected later may stand in place of the one first published; bars and
/// texts have no revisions.
pub fn revision_history(tool: &str) -> RevisionHistory {
    match tool {
        "get_fundamentals" | "get_business_segments" | "get_valuation" | "get_stock_info" | "screen_stocks" | "execute_code" => {
            RevisionHistory::Incomplete
        }
        // Quotes and account tools read the ST mark of the valuation table alone, which is not revised.
        _ => RevisionHistory::NotApplicable,
    }
}
