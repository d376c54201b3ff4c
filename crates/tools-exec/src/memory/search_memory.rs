//! `search_memory`: the agent's active records that share a word with a query.

use super::event::AgentKind;
use super::search::Query;
use super::shown::MemoryShown;
use crate::tools::shown;
use crate::{ExecCtx, ExecTools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{AsOf, Effect, ErrorCode, Group, Repeat, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct SearchMemory;

/// Characters the records of one answer keep to, so that none is compacted.
const ROOM: usize = 8_000;

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
    /// Records wanted at most, 1 to 20; 5 by default.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    pub max_results: usize,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Number of records in `memories`.
    pub count: usize,
    /// Active records that share a word with the query.
    pub total: usize,
    /// True when all of them are in `memories`.
    pub complete: bool,
    /// Records, best first.
    pub memories: Vec<MemoryShown>,
    /// Ids of found records that are not in `memories`, best first, at most 20: max_results or the length of an answer left them out.
    /// get_memory reads them.
    pub not_shown: Vec<String>,
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
            "Records come whole; an answer that would be too long holds fewer than max_results and names the others in not_shown.",
        ],
        example: r#"{"query": "breakout volume", "max_results": 5}"#,
        result_summary: "The records, best first, and how many there are.",
        errors: &[],
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
        let mut memories: Vec<MemoryShown> = Vec::new();
        let mut length = 0;
        for record in found.iter().take(args.max_results) {
            let shown = MemoryShown::of(record, today);
            length += serde_json::to_string(&shown).map_or(ROOM, |text| text.chars().count());
            if length > ROOM && !memories.is_empty() {
                break;
            }
            memories.push(shown);
        }
        Ok(Output {
            count: memories.len(),
            total: found.len(),
            complete: memories.len() == found.len(),
            not_shown: found.iter().skip(memories.len()).take(20).map(|r| r.id.clone()).collect(),
            memories,
            empty_reason,
            as_of: shown::as_of(&ctx.view),
        })
    }
}
