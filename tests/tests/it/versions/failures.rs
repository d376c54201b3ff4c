//! What goes wrong under the early versions, to the byte: one call for each way a tool fails, and those that no tool gives by itself. The
//! reasons are words of the handlers of today; a better wording there has to show here before it breaks a recording.

use super::shape;
use super::world::EARLY;
use crate::corrections::cases::{Case, read_tools};
use crate::corrections::cases_account::{code, conditions, orders, others, plans};
use crate::corrections::world::{BSE, FULL, PLAIN, STAR, Step, TODAY, free_card, run, send_in_message, visible};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use traderharness_contract::ErrorCode;
use traderharness_contract::version::Version;
use traderharness_harness::{CallReport, Contract, RawArguments, Session};
use traderharness_market::{Day, DecisionPoint};
use traderharness_tests::sandbox::{self, Files};
use traderharness_tools_exec::OrderGate;
use traderharness_tools_exec::gate::{GateHost, Halt, Mandate, Reading, verify};

/// Codes that an agent meets in a day under the version, at least (each is in its snapshot with its words).
const REACHED: usize = 25;

/// Code that ends in each way in which what it printed and left is shown.
const CODE: [&str; 10] = [
    "result = {'a': [1, 2.5, None, '中']}\nprint('x')",
    "result = float('nan')",
    "print('only printed')",
    "pass",
    "result = {'volume': None, 'success': False, 'error': 'mine'}",
    "print('é' * 6000)",
    "print('x' * 70000)\nresult = 'r' * 4000",
    "print('before')\nopen('kept.txt', 'w').write('x')\n1 / 0",
    "def deep(n):\n    if n == 0:\n        raise KeyError('中')\n    deep(n - 1)\nprint('y' * 3000)\ndeep(60)",
    " ",
];

/// The steps before a call, as far as the version has them: what fails there is no matter here.
fn leading(case: &Case) -> Vec<Step> {
    let soft = |step: &Step| match step {
        Step::Call(tool, args) => Step::Try(tool, args.clone()),
        step => step.clone(),
    };
    case.steps.iter().map(soft).collect()
}

fn open(contract: &Contract, case: &Case) -> Session {
    case.world.open_under(contract, &case.card, case.start.0, case.start.1)
}

struct Told {
    version: Version,
    contract: Contract,
    reached: BTreeSet<ErrorCode>,
    text: String,
}

impl Told {
    fn new(version: Version) -> Self {
        Self { version, contract: Contract::of(version), reached: BTreeSet::new(), text: String::new() }
    }

    fn note(&mut self, tool: &str, what: &str, args: &Value, report: &CallReport) {
        shape::check(&self.contract, self.version, tool, report);
        self.reached.extend(report.code);
        let code = report.code.map_or("-", ErrorCode::as_str);
        let _ = writeln!(
            self.text,
            "{tool} {code}{what}\n  {}\n  {}",
            shape::shown(&args.to_string(), 300),
            shape::shown(&report.text, 900)
        );
    }

    fn cases(&mut self, cases: Vec<Case>, give: impl Fn(Session) -> Session) {
        for case in cases {
            if self.contract.pack().is_some_and(|pack| pack.tool(case.tool).is_none()) {
                continue;
            }
            let mut session = give(open(&self.contract, &case));
            run(&mut session, &leading(&case));
            session.begin_message();
            let answer = send_in_message(&mut session, case.tool, &case.args);
            self.note(case.tool, "", &case.args, &answer.report);
        }
    }

    /// A call in the message of the one before.
    fn call(&mut self, session: &mut Session, what: &str, tool: &str, args: &Value) {
        let report = send_in_message(session, tool, args).report;
        self.note(tool, what, args, &report);
    }
}

fn buy(code: &str, shares: i64) -> Value {
    json!({ "action": "buy", "stock_code": code, "quantity": shares, "reasoning": "r" })
}

/// What the way of a call answers before any handler runs.
fn on_the_way(told: &mut Told) {
    told.text.push_str("\n=== before a handler\n");
    let at = |told: &Told, point| FULL.open_under(&told.contract, &free_card(), TODAY, point);
    let mut session = at(told, DecisionPoint::Open1);
    session.begin_message();
    told.call(&mut session, "", "get_no_such_tool", &json!({}));
    told.call(&mut session, ", no code of the run", "get_kline", &json!({ "stock_code": "999999" }));
    let mut shown = json!(PLAIN);
    visible(&session, &mut shown);
    let with_exchange = format!("{}.SH", shown.as_str().unwrap_or_default());
    told.call(&mut session, ", with its exchange", "get_kline", &json!({ "stock_code": with_exchange }));
    told.call(&mut session, ", once", "place_order", &buy(PLAIN, 100));
    told.call(&mut session, ", again in the message", "place_order", &buy(PLAIN, 100));
    told.call(&mut session, ", a field missing", "place_order", &json!({ "action": "buy", "stock_code": PLAIN }));
    told.call(&mut session, ", at another point", "finish_day", &json!({ "summary": "s" }));
    told.call(&mut session, ", behind it", "get_portfolio", &json!({}));
    for text in ["", "{", "[]", "{\"stock_code\": NaN}", "{\"a\": 1, \"a\": 2}", "{} {}"] {
        let report = session.call("get_kline", RawArguments::Text(text)).expect("no call stops a session");
        told.note("get_kline", ", as text", &Value::from(text), &report);
    }
    // The same call for the fourth time.
    let mut session = at(told, DecisionPoint::Open1);
    for n in ["1st", "2nd", "3rd", "4th"] {
        session.begin_message();
        told.call(&mut session, &format!(", the {n} time"), "get_position", &json!({ "stock_code": PLAIN }));
    }
    let mut session = at(told, DecisionPoint::Open1);
    session.begin_message();
    told.call(&mut session, "", "complete_phase", &json!({ "decision": "monitor", "summary": "s" }));
    told.call(&mut session, ", the phase may be over", "get_kline", &json!({ "stock_code": PLAIN, "days": 1 }));
    // A card that names few tools.
    let card = traderharness_harness::Card { allowed_tools: vec!["get_kline".into()], ..free_card() };
    let mut session = FULL.open_under(&told.contract, &card, TODAY, DecisionPoint::Open1);
    session.begin_message();
    told.call(&mut session, ", not on the card", "get_news", &json!({}));
}

/// An order gate whose host does nothing but stand.
struct Outside(Halt);

impl GateHost for Outside {
    fn halt(&mut self, _: &str) -> Halt {
        self.0
    }
    fn trades(&mut self, _: Day) -> Reading {
        Ok(Some(0))
    }
    fn keep_trades(&mut self, _: Day, _: u32) -> io::Result<()> {
        Ok(())
    }
    fn append(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

fn gated(told: &mut Told) {
    told.text.push_str("\n=== behind an order gate\n");
    let mandate = json!({
        "schema_version": 1,
        "channel": "paper",
        "hard_caps": {
            "account_funding_cny": 1_000_000, "max_order_notional_cny": 5_000, "max_total_exposure_cny": 900_000,
            "max_leverage": 1, "allowed_instruments": ["stock"], "max_trades_per_day": 9
        },
        "universe": { "asset_classes": ["sh_main"] },
        "consent": {
            "created_at": "2024-01-01", "expires_at": "2025-01-01", "consent_token_sha256": "0".repeat(64), "account_ref": "a"
        }
    });
    let none = verify(b"").expect("an empty log");
    for (halt, code, shares) in
        [(Halt::Channel, PLAIN, 100), (Halt::Clear, STAR, 200), (Halt::Clear, BSE, 100), (Halt::Clear, PLAIN, 600)]
    {
        let mandate = Mandate::from_value(mandate.clone()).expect("a mandate");
        let gate = OrderGate::open(mandate, Box::new(Outside(halt)), &none).expect("a gate");
        let mut session = FULL.open_under(&told.contract, &free_card(), TODAY, DecisionPoint::Open1).with_gate(gate);
        session.begin_message();
        told.call(&mut session, "", "place_order", &buy(code, shares));
    }
}

fn render(version: Version) -> (String, BTreeSet<ErrorCode>) {
    let mut told = Told::new(version);
    for (what, cases) in [
        ("read tools", read_tools()),
        ("orders", orders()),
        ("plans and decision cards", plans()),
        ("conditional orders", conditions()),
        ("the rest", others()),
    ] {
        let _ = writeln!(told.text, "\n=== {what}");
        told.cases(cases, |session| session);
    }
    on_the_way(&mut told);
    gated(&mut told);
    let names: Vec<&str> = told.reached.iter().map(|code| code.as_str()).collect();
    (format!("{} codes: {}\n{}", names.len(), names.join(", "), told.text), told.reached)
}

// spec/versions.md, table: failure shapes; DESIGN rule 9
#[test]
fn every_failure_of_an_early_version_has_the_words_it_had() {
    for version in EARLY {
        let (text, reached) = render(version);
        assert!(reached.len() >= REACHED, "{version} reaches {} codes", reached.len());
        insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(
                format!("version-{version}-failures"),
                text,
                &format!("recordings made under {version} would no longer replay")
            );
        });
    }
}

// spec/versions.md: execute_code under every version; its words are those of the sandbox of today
#[test]
fn code_of_an_agent_fails_in_the_shape_of_its_version() {
    let Some(pool) = sandbox::pool() else {
        println!("skipped: no Python for the sandbox; `cargo xtask setup` makes one");
        return;
    };
    let mut all = String::new();
    for version in EARLY {
        let files = std::cell::RefCell::new(Vec::new());
        let give = |session| {
            let place = Files::new();
            let session = place.give(session, &pool);
            files.borrow_mut().push(place);
            session
        };
        let mut told = Told::new(version);
        let quick = code().into_iter().filter(|case| case.code != ErrorCode::SandboxTimeout).collect();
        told.cases(quick, give);
        let mut session = give(FULL.open_under(&told.contract, &free_card(), TODAY, DecisionPoint::Open1));
        session.begin_message();
        for source in CODE {
            told.call(&mut session, "", "execute_code", &json!({ "code": source }));
        }
        assert!(told.reached.len() >= 4, "{version}: {:?}", told.reached);
        let _ = write!(all, "=== {version}\n{}", told.text);
    }
    insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("versions-code", all, "recordings made under v1 to v4 would no longer replay");
    });
}
