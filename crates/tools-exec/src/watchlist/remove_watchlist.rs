//! `remove_watchlist`: takes a security off the watchlist.

use crate::tools::shown;
use crate::{ExecCtx, ExecTools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{Effect, ErrorCode, Group, Repeat, StockCode, Tool, ToolFailure, ToolSpec};

/// Watched codes a failure lists at most.
const LISTED: usize = 50;

/// The tool.
#[derive(Debug)]
pub struct RemoveWatchlist;

/// What to take off.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Complete code of a watched security, exactly as get_watchlist shows it.
    #[schemars(length(min = 6))]
    pub stock_code: StockCode,
}

/// What was taken off.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Code of the security that is no longer watched.
    pub removed: StockCode,
    /// Number of securities still watched.
    pub total_watching: usize,
}

impl Tool for RemoveWatchlist {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "remove_watchlist",
        group: Group::Watchlist,
        effect: Effect::Mutation,
        repeat: Repeat::Free,
        description: "Takes a security off the watchlist. A position in it is not touched.",
        notes: &["The other entries keep their order."],
        example: r#"{"stock_code": "600036"}"#,
        result_summary: "The code taken off and the number of securities still watched.",
        errors: &[ErrorCode::UnknownSecurity, ErrorCode::WatchlistEntryNotFound],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let code = shown::code(&ctx.view, &args.stock_code)?;
        let watchlist = &mut ctx.account.watchlist;
        if !watchlist.remove(code) {
            let watched: Vec<String> = watchlist.entries().iter().take(LISTED).map(|e| e.code.to_string()).collect();
            return Err(ToolFailure::new(
                ErrorCode::WatchlistEntryNotFound,
                "The security is not on the watchlist; nothing was changed.",
                "There is nothing to remove. get_watchlist shows what is watched.",
            )
            .with("required_tool", "get_watchlist")
            .with("watched", watched));
        }
        Ok(Output { removed: args.stock_code, total_watching: watchlist.entries().len() })
    }
}
