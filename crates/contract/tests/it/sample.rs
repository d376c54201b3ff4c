//! Tools of an imaginary crate: a shelf of books. They exercise every shape a schema can have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use traderharness_contract::{
    AsOf, CompanyName, DayField, Definition, Effect, ErrorCode, Family, FreeText, Group, Missing, Policy, Repeat, StockCode,
    Tool, ToolFailure, ToolSpec,
};

/// The family of shelf tools.
#[derive(Debug)]
pub struct Shelf;

impl Family for Shelf {
    type Ctx<'a> = Vec<String>;
}

/// How rows are ordered.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Newest first.
    Newest,
    /// By title.
    Title,
}

/// A nested group of filters.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Lowest price in CNY; no lower bound when left out.
    #[schemars(range(min = 0.0))]
    pub low: Option<f64>,
    /// Highest price in CNY; no upper bound when left out.
    #[schemars(range(min = 0.0))]
    pub high: Option<f64>,
    /// Reason for the range.
    pub reason: String,
}

/// Arguments of `find_books`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindArgs {
    /// Complete visible code of the publisher.
    pub stock_code: StockCode,
    /// Rows wanted, 1 to 250; 60 when
    /// left out.
    #[schemars(range(min = 1, max = 250))]
    #[serde(default = "sixty")]
    pub days: u32,
    /// Literal text to look for in titles.
    pub keyword: Option<String>,
    /// Order of the rows.
    pub order: Option<Order>,
    /// Codes to compare with, 1 to 3.
    #[schemars(length(min = 1, max = 3))]
    pub peers: Option<Vec<StockCode>>,
    /// Price range.
    pub range: Option<Range>,
    /// Tags as entries of name and weight.
    pub title: Option<String>,
    /// Include lent books.
    pub lent: Option<bool>,
}

fn sixty() -> u32 {
    60
}

/// A row.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Book {
    /// Publisher code.
    pub code: StockCode,
    /// Publisher name.
    pub publisher: CompanyName,
    /// Day of publication.
    pub day: DayField,
    /// Title as printed.
    pub title: FreeText,
    /// Price in CNY; null when unknown.
    pub price: Option<f64>,
}

/// Result of `find_books`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Found {
    /// As of.
    pub as_of: AsOf,
    /// Books, oldest first.
    #[schemars(extend("x-order" = "oldest_first"))]
    pub books: Vec<Book>,
    /// Copies by code of the branch.
    #[schemars(extend("x-key-kind" = "code"))]
    pub copies: BTreeMap<String, u32>,
    /// Numbers that are null, and why.
    pub missing_reasons: Vec<Missing>,
}

/// `find_books`.
#[derive(Debug)]
pub struct FindBooks;

impl Tool for FindBooks {
    type Family = Shelf;
    type Args = FindArgs;
    type Output = Found;
    const SPEC: ToolSpec = ToolSpec {
        name: "find_books",
        group: Group::Text,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Finds books of one publisher.",
        notes: &["Rows are ordered by day, ties by code.", "Prices are in CNY."],
        example: r#"{"stock_code": "600000", "days": 20}"#,
        result_summary: "`books`, oldest first, with `missing_reasons` for each null.",
        errors: &[ErrorCode::UnknownSecurity, ErrorCode::InvalidCursor],
        opt_in: false,
    };

    fn call(ctx: &mut Vec<String>, args: FindArgs) -> Result<Found, ToolFailure> {
        ctx.push(args.stock_code.to_owned().0);
        Ok(Found {
            as_of: AsOf { day: "2024-06-26".into(), time: "15:00".into(), decision_point: "open_1".into() },
            books: vec![],
            copies: BTreeMap::new(),
            missing_reasons: vec![],
        })
    }
}

/// Arguments of `move_book`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveArgs {
    /// What to do.
    pub operation: Operation,
    /// Price level in CNY; needed to create.
    #[schemars(range(min = 0.01))]
    pub price: Option<f64>,
    /// Copies, a multiple of 100; needed to create.
    #[schemars(range(min = 100), extend("multipleOf" = 100))]
    pub quantity: Option<u64>,
    /// Id of the record; needed to cancel.
    pub id: Option<String>,
}

/// Operation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Create,
    Cancel,
    List,
}

/// Result of `move_book`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Moved {
    /// Id of the record.
    pub id: String,
}

/// `move_book`: conditional requirements per operation.
#[derive(Debug)]
pub struct MoveBook;

impl Tool for MoveBook {
    type Family = Shelf;
    type Args = MoveArgs;
    type Output = Moved;
    const SPEC: ToolSpec = ToolSpec {
        name: "move_book",
        group: Group::Execution,
        effect: Effect::Mutation,
        repeat: Repeat::OncePerMessage,
        description: "Moves books.",
        notes: &[],
        example: r#"{"operation": "create", "price": 10.5, "quantity": 100}"#,
        result_summary: "the `id` of the record.",
        errors: &[],
        opt_in: false,
    };

    fn call(_: &mut Vec<String>, _: MoveArgs) -> Result<Moved, ToolFailure> {
        Ok(Moved { id: "r-1".into() })
    }

    fn refine(schema: &mut Value, _: &Policy) {
        let is = |op: &str| json!({"properties": {"operation": {"const": op}}, "required": ["operation"]});
        schema["allOf"] = json!([
            {"if": is("create"), "then": {"required": ["price", "quantity"], "properties": {"id": false}}},
            {"if": is("cancel"), "then": {"required": ["id"], "properties": {"price": false, "quantity": false}}},
            {"if": is("list"), "then": {"properties": {"price": false, "quantity": false, "id": false}}}
        ]);
    }
}

/// Arguments with nothing in them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArgs {}

/// `list_shelves`: takes nothing.
#[derive(Debug)]
pub struct ListShelves;

impl Tool for ListShelves {
    type Family = Shelf;
    type Args = NoArgs;
    type Output = Moved;
    const SPEC: ToolSpec = ToolSpec {
        name: "list_shelves",
        group: Group::Text,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Lists shelves.",
        notes: &[],
        example: "{}",
        result_summary: "`id`.",
        errors: &[],
        opt_in: false,
    };

    fn call(_: &mut Vec<String>, _: NoArgs) -> Result<Moved, ToolFailure> {
        Ok(Moved { id: "s-1".into() })
    }
}

/// Definition under the default policy.
pub fn define<T: Tool>() -> Definition {
    Definition::of::<T>(&Policy::default())
}

/// Definition of a card with masked codes.
pub fn define_masked<T: Tool>() -> Definition {
    Definition::of::<T>(&Policy { masked_codes: true, ..Policy::default() })
}
