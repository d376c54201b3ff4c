//! `get_memory`: one record of the agent by id, active or superseded.

use super::shown::MemoryShown;
use crate::tools::shown;
use crate::{ExecCtx, ExecTools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_contract::{AsOf, Effect, ErrorCode, Group, Repeat, Tool, ToolFailure, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct GetMemory;

/// Which record.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Id of the record, exactly as another memory tool showed it, e.g. mem-0001.
    #[schemars(length(min = 1))]
    pub memory_id: String,
}

/// The record.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The record.
    pub memory: MemoryShown,
    /// As of when this is true.
    pub as_of: AsOf,
}

impl Tool for GetMemory {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "get_memory",
        group: Group::Memory,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Reads one record of your memory by its id.",
        notes: &["A superseded record stays readable; status, superseded_on and superseded_by say what became of it."],
        example: r#"{"memory_id": "mem-0001"}"#,
        result_summary: "The record in full.",
        errors: &[ErrorCode::MemoryNotFound],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let today = ctx.view.today();
        let record = ctx.account.memory.find(&args.memory_id, today).ok_or_else(|| {
            ToolFailure::new(
                ErrorCode::MemoryNotFound,
                "No record of yours has this id.",
                "Use an id exactly as search_memory or remember showed it.",
            )
            .with("required_tool", "search_memory")
        })?;
        Ok(Output { memory: MemoryShown::of(record, today), as_of: shown::as_of(&ctx.view) })
    }
}
