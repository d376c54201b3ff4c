//! `search_memory`: the agent's active records that share a word with a query.

use super::event::{AgentKind, MemoryKind};
use super::search::Query;
use super::shown::MemoryShown;
use crate::tools::shown;
use crate::{ExecCtx, ExecTools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use traderharness_contract::budget::ListRequest;
use traderharness_contract::{AsOf, Effect, ErrorCode, Group, Repeat, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct SearchMemory;

fn five() -> usize {
    5
}

/// What to look for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Words to look for, at least one letter a-z, digit or CJK character. Words are compared whole and without case, CJK text also by
    /// pairs of characters.
    #[schemars(length(min = 1))]
    pub query: String,
    /// Only records of this type; all types when left out.
    #[serde(default)]
    pub memory_type: Option<AgentKind>,
    /// Records of one page at most, 1 to 20; 5 by default.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    pub max_results: usize,
    /// next_cursor of the previous page, with the same query and memory_type; left out for the first one. It is good at the same decision
    /// point while the records found are the same.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    pub cursor: Option<String>,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Records, best first.
    pub memories: Vec<MemoryShown>,
    /// The same as returned.
    pub count: usize,
    /// Active records that share a word with the query, on all pages.
    pub total: usize,
    /// Number of records on this page.
    pub returned: usize,
    /// True when this page holds them all.
    pub complete: bool,
    /// Cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Why nothing was found; null when something was.
    pub empty_reason: Option<String>,
    /// As of when this is true.
    pub as_of: AsOf,
}

impl Tool for SearchMemory {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "search_memory",
        group: Group::Memory,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Finds active records of your memory by words in their content, type and tags.",
        notes: &[
            "Order: records that hold the whole query, then by the share of its words they have, then by importance; ties by id.",
            "Superseded records are not searched; get_memory reads them.",
            "Records come whole, max_results or as many as fit in one answer; ask again with cursor set to next_cursor for the next ones.",
        ],
        example: r#"{"query": "breakout volume", "max_results": 5}"#,
        result_summary: "The records, best first, and total; next_cursor leads to the others.",
        errors: &[ErrorCode::InvalidCursor],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let query = Query::new(&args.query).ok_or_else(|| {
            ToolFailure::new(
                ErrorCode::InvalidToolArguments,
                "`query` has no word that could be found: no letter a-z, no digit, no CJK character.",
                "Send the call again with at least one word of the record you look for.",
            )
        })?;
        let today = ctx.view.today();
        let memory = &ctx.account.memory;
        let kind = args.memory_type.map(Into::into);
        let found = memory.search(&query, kind, today);
        let empty_reason = found.is_empty().then(|| {
            match (memory.active(today).next(), memory.active(today).find(|r| kind.is_none_or(|k| r.kind == k))) {
                (None, _) => "there is no active record",
                (Some(_), None) => "there is no active record of this type",
                _ => "no active record shares a word with the query",
            }
            .to_owned()
        });
        let clock = ctx.view.clock_digest();
        let ids: Vec<&str> = found.iter().map(|r| r.id.as_str()).collect();
        let request = ListRequest {
            tool: Self::SPEC.name,
            query: json!([args.query, args.memory_type.map(MemoryKind::from).map(MemoryKind::as_str), ids]),
            clock: &clock,
            cursor: args.cursor.as_deref(),
            max_records: args.max_results,
        };
        let page = request.page_that_fits(&found, |record| MemoryShown::of(record, today))?;
        Ok(Output {
            count: page.records.len(),
            total: page.total,
            returned: page.records.len(),
            complete: page.complete,
            next_cursor: page.next_cursor,
            memories: page.records,
            empty_reason,
            as_of: shown::as_of(&ctx.view),
        })
    }
}
