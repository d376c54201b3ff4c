//! The contract without a market: one tool over a shelf of books, published and checked. `cargo run -p traderharness-contract-only`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use traderharness_contract::audit::audit;
use traderharness_contract::{
    Definition, Effect, Envelope, ErrorCode, Family, Group, Handler, Outcome, Policy, Repeat, Tool, ToolFailure, ToolSpec,
    parse_arguments,
};

/// What a tool of this family may use.
struct Shelf;
impl Family for Shelf {
    type Ctx<'a> = &'a [(&'a str, u32)];
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Year of the oldest book wanted.
    #[schemars(range(min = 1450, max = 2100))]
    since: u32,
    /// Books returned at most.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
}

const fn ten() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Titles, oldest first.
    titles: Vec<String>,
}

struct ListBooks;
impl Tool for ListBooks {
    type Family = Shelf;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "list_books",
        group: Group::Text,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "Lists the books of the shelf that are not older than a year.",
        notes: &["The oldest book comes first."],
        example: r#"{"since": 1900, "limit": 2}"#,
        result_summary: "`titles`, at most `limit`",
        errors: &[ErrorCode::DataUnavailable],
        opt_in: false,
    };

    fn call(shelf: &mut &[(&str, u32)], args: Args) -> Result<Output, ToolFailure> {
        let mut found: Vec<_> = shelf.iter().filter(|(_, year)| *year >= args.since).collect();
        if found.is_empty() {
            return Err(ToolFailure::new(ErrorCode::DataUnavailable, "No book is that young.", "Ask for an earlier year."));
        }
        found.sort_by_key(|(_, year)| *year);
        Ok(Output { titles: found.into_iter().take(args.limit).map(|(title, _)| (*title).to_owned()).collect() })
    }
}

/// One call, in the order a dispatcher keeps: read, normal form, validate, run, render.
fn answer(handler: &Handler<Shelf>, definition: &Definition, text: &str) -> Envelope {
    let mut shelf: &[(&str, u32)] = &[("A Short Walk", 1958), ("The Lamp", 1907), ("North", 1975)];
    let name = definition.spec.name;
    let (outcome, sent) = match parse_arguments(text) {
        Err(fault) => (Outcome::Failed(fault.failure(name)), Value::from(text)),
        Ok(map) => {
            let sent = Value::Object(map);
            let args = definition.normalise(sent.clone()).args;
            let outcome = match definition.validate(&args) {
                Err(issues) => Outcome::Failed(definition.invalid(&issues)),
                Ok(()) => handler.invoke(&mut shelf, args).map_or_else(Outcome::Failed, Outcome::answered),
            };
            (outcome, sent)
        }
    };
    Envelope::render(&outcome, name, definition.example(), &sent)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let handler = Handler::<Shelf>::of::<ListBooks>();
    let definition = (handler.define)(&Policy::default());
    let findings = audit(&definition);
    if let Some(finding) = findings.first() {
        return Err(finding.to_string().into());
    }
    println!("{}\n", definition.to_openai());
    for text in [r#"{"since": 1950}"#, r#"{"since": "1950", "limits": 3}"#, r#"{"since": 2000}"#, r#"{"since": 19"#] {
        println!("{text}\n  {}", answer(&handler, &definition, text).0);
    }
    Ok(())
}

#[test]
fn the_example_runs() {
    main().unwrap();
    let handler = Handler::<Shelf>::of::<ListBooks>();
    let definition = (handler.define)(&Policy::default());
    let code = |text: &str| answer(&handler, &definition, text).error_code().map(str::to_owned);
    assert_eq!(code(r#"{"since": 1950}"#), None);
    assert_eq!(code(r#"{"since": "1950"}"#).as_deref(), Some("invalid_tool_arguments"));
    assert_eq!(code(r#"{"since": 19"#).as_deref(), Some("invalid_tool_arguments_json"));
}
