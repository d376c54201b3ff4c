//! The audit finds what it is meant to find, and nothing in a clean tool.

use crate::sample::{FindBooks, ListShelves, MoveBook, Shelf, define, define_masked};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use traderharness_contract::audit::{Check, audit, audit_all};
use traderharness_contract::{ErrorCode, Policy, Tool, ToolFailure, ToolSpec};

#[test]
fn clean_tools_have_no_findings() {
    for definition in [define::<FindBooks>(), define_masked::<FindBooks>(), define::<MoveBook>(), define::<ListShelves>()] {
        assert_eq!(audit(&definition), [], "{}", definition.spec.name);
    }
}

#[test]
fn two_tools_of_one_name_are_found() {
    let (a, b) = (define::<ListShelves>(), define::<ListShelves>());
    let findings = audit_all([&a, &b]);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].to_string(), "list_shelves Name at name: two tools have this name");
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Row {
    code: String,
    /// Any value.
    any: Value,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Faulty {
    silent: u32,
    /// Rows.
    rows: Option<Vec<Row>>,
    /// By name.
    map: Option<BTreeMap<String, u32>>,
    /// See [`Row`], e.g. 600519.
    link: String,
    /// 股票 default.
    #[serde(default = "zero")]
    #[schemars(range(min = 1))]
    defaulted: u32,
}

fn zero() -> u32 {
    0
}

struct Bad;

impl Tool for Bad {
    type Family = Shelf;
    type Args = Faulty;
    type Output = Vec<Row>;
    const SPEC: ToolSpec = ToolSpec {
        name: "Bad-Tool",
        description: "Shows 000001 but not SHM-000360, 20240102, 1000000 or 3.141592.",
        notes: &["Read [`Row`]."],
        example: r#"{"silent": 1, "map": null, "link": ""}"#,
        result_summary: " ",
        errors: &[ErrorCode::InvalidCursor, ErrorCode::InvalidCursor, ErrorCode::Internal],
        ..ListShelves::SPEC
    };
    fn call(_: &mut Vec<String>, _: Faulty) -> Result<Vec<Row>, ToolFailure> {
        Ok(vec![])
    }
    fn refine(schema: &mut Value, policy: &Policy) {
        schema["properties"]["silent"]["$ref"] = json!("#/$defs/x");
        schema["$defs"] = json!({"x": {"type": "integer"}});
        if policy.masked_codes {
            schema["properties"]["link"]["pattern"] = json!("^x$");
        }
    }
}

#[test]
fn every_kind_of_fault_is_found() {
    let lines: Vec<String> = audit(&define::<Bad>()).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"));
    let kinds: Vec<Check> = audit(&define::<Bad>()).iter().map(|f| f.check).collect();
    for kind in [
        Check::Name,
        Check::UndescribedField,
        Check::Example,
        Check::Default,
        Check::OpenObject,
        Check::Description,
        Check::ErrorCodes,
        Check::Keyword,
        Check::Untyped,
        Check::RealCode,
        Check::Wording,
    ] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
}
