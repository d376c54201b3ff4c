//! A market tool of one's own beside those of the contract, called through a session. Its handler opens no
//! file and never sees past the clock: all it gets is a view. `cargo run -p traderharness-own-tool`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use traderharness_contract::{Effect, ErrorCode, Group, Repeat, StockCode, Tool, ToolFailure, ToolSpec, review};
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, Entry, HostFacts, RawArguments, Registry, Session, SessionConfig};
use traderharness_market::{Code, Mask, MaskConfig};
use traderharness_tools_market::{MarketCtx, MarketTools};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Complete visible code of the security.
    stock_code: StockCode,
    /// Completed sessions to look back on.
    #[schemars(range(min = 2, max = 250))]
    sessions: usize,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Code of the security.
    stock_code: StockCode,
    /// Sessions with a bar, of those looked at.
    bars: usize,
    /// Share of those bars that closed above their open, percent with one decimal.
    up_days_pct: f64,
}

/// A handler gets its arguments, already checked and unmasked, and a view of the market that ends at the clock.
struct GetUpDays;
impl Tool for GetUpDays {
    type Family = MarketTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "get_up_days",
        group: Group::Market,
        effect: Effect::Read,
        repeat: Repeat::Free,
        description: "How often a security closed above its open lately.",
        notes: &["Only completed daily bars count."],
        example: r#"{"stock_code": "SHM-000360", "sessions": 20}"#,
        result_summary: "`bars` and `up_days_pct`",
        errors: &[ErrorCode::SecurityDataUnavailable],
        opt_in: false,
    };

    fn call(ctx: &mut MarketCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        let sec = Code::parse(args.stock_code.as_str()).and_then(|code| ctx.view.find(code));
        let none = || {
            let message = "The security has no completed bar yet.";
            ToolFailure::new(ErrorCode::SecurityDataUnavailable, message, "Ask about another security.")
        };
        let bars = ctx.view.daily(sec.ok_or_else(none)?).tail(args.sessions);
        if bars.is_empty() {
            return Err(none());
        }
        let up = bars.iter().filter(|bar| bar.open.zip(bar.close).is_some_and(|(open, close)| close > open)).count();
        let up_days_pct = (up as f64 / bars.len() as f64 * 1000.0).round() / 10.0;
        Ok(Output { stock_code: args.stock_code, bars: bars.len(), up_days_pct })
    }
}

/// A session in which the tool is registered; the gate would hide it, with its reason, where the host has no daily bars.
fn session() -> Result<Session, Box<dyn std::error::Error>> {
    let store = Arc::new(traderharness_ingest::bundled()?.store);
    let config = MaskConfig { dates: true, entities: true, key: b"any secret".to_vec(), ..MaskConfig::default() };
    let mask = Arc::new(Mask::new(&store, config));
    let card = Arc::new(Card::builtin());
    let bars = |host: &HostFacts| host.provides.contains("daily-bars").then_some(()).ok_or_else(|| "no daily bars here".into());
    let registry = Registry::standard().with(Entry::of::<GetUpDays>("own-tool").available_if(bars))?;
    let host = HostFacts { provides: ["daily-bars".to_owned()].into(), ..HostFacts::default() };
    let toolbox = Arc::new(registry.build(&card, true, &host)?);
    let day = store.calendar().days().last().copied().ok_or("an empty calendar")?;
    let config = SessionConfig { store, mask, card, toolbox, check_output: true };
    let mut session = Session::new(config, day, Box::new(NoJournal))?;
    session.start_day(day)?;
    Ok(session)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut session = session()?;
    let tool = session.offered().find(|t| t.bound.spec().name == "get_up_days").ok_or("the tool is not offered")?;
    println!("{}", review::page(&tool.definition));
    let code = session.view().securities().next().map(|sec| session.mask().code(sec).to_owned()).ok_or("an empty market")?;
    for args in [json!({ "stock_code": code, "sessions": 20 }), json!({ "stock_code": code, "sessions": 1 })] {
        println!("{}\n", session.call("get_up_days", RawArguments::Value(args))?.text);
    }
    Ok(())
}

#[test]
fn the_example_runs() {
    main().unwrap();
    let mut session = session().unwrap();
    let report = session.call("get_up_days", RawArguments::Value(json!({ "stock_code": "x", "sessions": 20 }))).unwrap();
    assert!(!report.envelope.is_success());
}
