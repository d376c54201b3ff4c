//! `add_watchlist`: watches a security, or refreshes one that is watched.

use crate::tools::shown;
use crate::{ExecCtx, ExecTools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{Effect, ErrorCode, Group, Repeat, StockCode, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct AddWatchlist;

/// What to watch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Complete code of the security, exactly as another tool of this run showed it.
    #[schemars(length(min = 6))]
    pub stock_code: StockCode,
    /// Why it is watched, in your own words, at most 500 characters; empty by default. It is given back as written. Adding a watched
    /// security again replaces its reason, also by an empty one.
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub reason: String,
}

/// The entry as kept.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Code of the security.
    pub stock_code: StockCode,
    /// Reason as kept.
    pub reason: String,
    /// Number of watched securities.
    pub total_watching: usize,
    /// True when the security was not watched before; false when its reason and time limit were renewed in its old place.
    pub added: bool,
    /// Trading days it stays after today; null when the card sets no limit.
    pub expires_in_trading_days: Option<u32>,
}

impl Tool for AddWatchlist {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "add_watchlist",
        group: Group::Watchlist,
        effect: Effect::Mutation,
        repeat: Repeat::Free,
        description: "Puts a security on the watchlist with a reason. Adding a watched one again renews its reason and time limit.",
        notes: &[
            "The list stays over trading days. Where the card sets a limit, an entry that is not held leaves it that many trading \
             days after it was last added.",
            "A security added again keeps its place in the order.",
        ],
        example: r#"{"stock_code": "600036", "reason": "Waits for volume above the base."}"#,
        result_summary: "The entry as kept and the number of watched securities.",
        errors: &[ErrorCode::UnknownSecurity],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let code = shown::code(&ctx.view, &args.stock_code)?;
        let ttl = ctx.limits.watchlist_ttl_days;
        let watchlist = &mut ctx.account.watchlist;
        let added = watchlist.add(code, args.reason.clone(), ctx.view.today(), ttl);
        Ok(Output {
            stock_code: args.stock_code,
            reason: args.reason,
            total_watching: watchlist.entries().len(),
            added,
            expires_in_trading_days: (ttl > 0).then_some(ttl),
        })
    }
}
