//! A tool for the tests of the pages: every kind of field that real tools have, and one card switch. Never listed in a catalog.

use super::Entry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use traderharness_contract::{Definition, Effect, ErrorCode, Family, Group, Repeat, StockCode, Tool, ToolFailure, ToolSpec};

pub(crate) struct Samples;

impl Family for Samples {
    type Ctx<'a> = ();
}

pub(crate) struct Sample;

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Detail {
    /// Twenty rows.
    #[default]
    Short,
    /// All rows.
    Full,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is looked at")]
pub(crate) struct Args {
    /// Complete visible code.
    code: StockCode,
    /// Sessions to return.
    #[schemars(range(min = 1, max = 250))]
    #[serde(default = "sixty")]
    days: u32,
    /// Rows | columns
    /// to keep.
    #[serde(default)]
    detail: Detail,
    /// Reason of the call.
    #[schemars(length(min = 1, max = 80))]
    reason: Option<String>,
    /// Filters.
    #[schemars(length(max = 3))]
    #[serde(default)]
    filters: Vec<Filter>,
}

fn sixty() -> u32 {
    60
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is looked at")]
pub(crate) struct Filter {
    /// Lower bound, CNY.
    min: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Visible code.
    code: StockCode,
    /// Last price, CNY; null when there is none.
    price: Option<f64>,
}

impl Tool for Sample {
    type Family = Samples;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "get_sample",
        group: Group::Market,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Returns a sample. It is of no use.",
        notes: &["Rows are ordered by day."],
        example: r#"{"code": "000001"}"#,
        result_summary: "A price.",
        errors: &[ErrorCode::UnknownSecurity],
        opt_in: true,
    };

    fn call((): &mut (), args: Args) -> Result<Output, ToolFailure> {
        Ok(Output { code: args.code, price: None })
    }

    fn refine(schema: &mut Value, policy: &traderharness_contract::Policy) {
        if policy.require_structured_plan {
            schema["allOf"] = json!([{"required": ["reason"]}]);
        }
    }
}

/// The sample as the catalog holds it.
pub(crate) fn entry() -> Entry {
    Entry::of(Definition::of::<Sample>)
}
