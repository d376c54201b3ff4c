//! Claude Code and Codex as they come from npm, set up by the README's lines, play a day against a model of ours that only knows a script;
//! the README's lines for Python run as printed. Part of `cargo xtask test --deep`, and skipped with a line where they cannot be had.

use super::clients::{is_deep, npm, python};
use super::scripted::{Call, LAST_WORDS, Scripted, Told};
use crate::command::{repo, run, text};
use crate::serve::Server;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pinned: what docs/mcp.md says of them was seen with these.
const CLAUDE_CODE: Package = ["claude-code", "@anthropic-ai/claude-code@2.1.332", "@anthropic-ai/claude-code/cli-wrapper.cjs"];
const CODEX: Package = ["codex", "@openai/codex@0.171.0", "@openai/codex/bin/codex.js"];

/// Name of its folder, what npm installs, and the script in it that is the command.
type Package = [&'static str; 3];

/// Seconds after which an agent that does not come to its end is a fault.
const PATIENCE: &str = "240";

fn card(mode: &str) -> Value {
    json!({
        "decision": "trade", "mode": mode, "entry_setup": "trend_continuation", "theme": "Engines",
        "theme_logic": "Orders for trucks grow.", "text_evidence_ids": ["none"], "business_fit": "It makes engines.",
        "business_fit_basis": "industry_proxy", "sector_state": "confirmed_leading", "sector_confirmation": "Breadth.",
        "candidate_role": "true_leader", "leadership_comparison": "The largest.", "best_expression_reason": "The most liquid.",
        "candidate_rank": "best_expression", "stronger_candidate_status": "none_identified", "execution_compromise": "none",
        "capacity_liquidity": "Enough.", "price_volume_confirmation": "Volume grows.", "market_stage": "confirmation",
        "extension_assessment": "acceptable", "counter_evidence": "The market fell.", "why_now": "It held.",
        "abstention_case": "The fall may go on.", "invalidation": "A close under the low.",
    })
}

fn order(mode: &str) -> Value {
    json!({"stock_code": "000338", "action": "buy", "quantity": 1000, "reasoning": "It held in a fall.", "decision_card": card(mode)})
}

/// The day, and what must come back to the model for each call: a text that is in it, and whether it is a failure.
fn day() -> Vec<(Call, &'static str, bool)> {
    let done = || ("complete_phase", json!({"decision": "monitor", "summary": "Nothing more to do."}));
    let brief = || ("read_brief", json!({}));
    vec![
        (brief(), "Decision point: pre_market", false),
        (("get_market_overview", json!({})), "down_count", false),
        (("get_kline", json!({"stock_code": "338", "days": "many"})), "`days` must be an integer from 1 to 250", true),
        (("get_kline", json!({"stock_code": "000338", "days": 20})), "dataset_forward_adjusted", false),
        (done(), "open_1", false),
        (brief(), "Decision point: open_1", false),
        (("place_order", order("leader")), "/decision_card/mode", true),
        (("place_order", order("leader_attack")), "main_10pct", false),
        (("finish_day", json!({"summary": "Too early."})), "complete_phase ends pre_market, open_1, open_2 and close_1", true),
        (("get_portfolio", json!({})), "today_bought", false),
        (done(), "open_2", false),
        (done(), "close_1", false),
        (done(), "close_2", false),
        (("finish_day", json!({"summary": "One order, as planned."})), "day_complete", false),
        (brief(), "close_2", false),
        (("get_portfolio", json!({})), "session_finished", true),
    ]
}

fn calls() -> Vec<Call> {
    day().into_iter().map(|(call, _, _)| call).collect()
}

/// Holds what the model was shown, call by call.
fn holds(told: &[Told]) {
    let day = day();
    assert_eq!(told.len(), day.len(), "{told:?}");
    for (told, ((tool, _), expected, fails)) in told.iter().zip(&day) {
        assert!(told.tool.ends_with(tool), "{told:?}");
        assert!(told.text.contains(expected), "{tool}: no `{expected}` in {told:?}");
        assert_eq!(told.failed.unwrap_or(*fails), *fails, "{tool}: {told:?}");
        assert_eq!(told.text.contains("\"error_code\""), *fails, "{tool}: {told:?}");
    }
}

/// A project folder with its own home and a command on its path; a server whose folder the README's lines name.
struct Desk {
    folder: tempfile::TempDir,
    server: Server,
}

impl Desk {
    /// With the README's lines for the command, to be run against the server of this test: a session over stdio, one at the server, and
    /// what plays. `None` where the package cannot be had.
    fn with(command: &str, [name, package, script]: Package) -> Option<(Self, [String; 3])> {
        let script = is_deep().then(|| npm(name, package, script)).flatten()?;
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "bin", "project"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let shim = folder.path().join("bin").join(command);
        std::fs::write(&shim, format!("#!/bin/sh\nexec node '{}' \"$@\"\n", script.display())).unwrap();
        std::fs::set_permissions(&shim, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let server = Server::start(&folder.path().join("project/desk"), &["--mask", "none"]);
        let readme = std::fs::read_to_string(repo("README.md")).unwrap();
        let lines = readme.lines().filter(|line| line.starts_with(&format!("{command} ")));
        let lines: Vec<String> = lines.map(|line| line.replace("http://127.0.0.1:8750", &server.url)).collect();
        let lines = lines.try_into().unwrap_or_else(|lines| panic!("{lines:?}"));
        Some((Self { folder, server }, lines))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a line as a person would type it; what it said to them.
    fn sh(&self, line: &str, more: &[(&str, &str)]) -> String {
        let ours = Path::new(env!("CARGO_BIN_EXE_traderharness")).parent().unwrap();
        let path = [text(&self.path("bin")), text(ours), &std::env::var("PATH").unwrap()].join(":");
        let mut command = Command::new("timeout");
        command.args([PATIENCE, "sh", "-c", line]).current_dir(self.path("project")).env_clear();
        command.env("PATH", path).env("HOME", self.path("home")).env("TRADERHARNESS_TOKEN", &self.server.token);
        let output = command.envs(more.iter().copied()).stdin(std::process::Stdio::null()).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "`{line}`: {out}{err}");
        out.into_owned()
    }

    /// The day over stdio is in its folder like any run.
    fn recorded(&self, name: &str) {
        let kept = self.path("project").join(name);
        let report = run(&["report", text(&kept), "--json"]);
        assert_eq!(report.code, 0, "{}{}", report.out, report.err);
        let report: Value = serde_json::from_str(&report.out).unwrap();
        let result = &report["runs"][0]["result"];
        assert_eq!((&result["status"], result["days"].as_array().map(Vec::len)), (&json!("completed"), Some(1)), "{result}");
        let trades = result["trades"].as_array().unwrap();
        assert_eq!((trades.len(), &trades[0]["stock_code"], &trades[0]["quantity"]), (1, &json!("000338"), &json!(1000)));
        for command in [&["replay", text(&kept)][..], &["audit", text(&kept), "--allow-dates", "--allow-entities"]] {
            let ran = run(command);
            assert_eq!(ran.code, 0, "{command:?}: {}{}", ran.out, ran.err);
        }
    }
}

#[test]
fn claude_code_plays_a_day_over_stdio_and_over_http() {
    let Some((desk, [stdio, http, plays])) = Desk::with("claude", CLAUDE_CODE) else { return };
    let quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    for line in [stdio, http] {
        desk.sh(&line, &[quiet]);
    }
    let health = desk.sh("claude mcp list", &[quiet]);
    assert_eq!(health.matches("Connected").count(), 2, "{health}");

    let whole = ("ENABLE_TOOL_SEARCH", "false");
    for (server, line, search) in
        [("market", plays.clone(), None), ("market-served", plays.replace("mcp__market", "mcp__market-served"), Some(whole))]
    {
        let model = Scripted::start(server, calls());
        let origin = model.origin();
        let mut env = vec![quiet, ("ANTHROPIC_BASE_URL", &origin), ("ANTHROPIC_API_KEY", "none")];
        env.extend(search);
        let said = desk.sh(&line, &env);
        assert!(said.contains(LAST_WORDS), "{server}: {said}");
        holds(&model.told());
        let first = model.first();
        // It holds the schemas back until the model asks for them, unless it is told otherwise; the names are there at once.
        assert_eq!(model.tools().contains(&format!("mcp__{server}__finish_day")), search.is_some(), "{:?}", model.tools());
        assert!(first.contains(&format!("mcp__{server}__finish_day")) && first.contains("Call read_brief"), "{server}: {first}");
    }
    desk.recorded("claude-day");
    assert_eq!(desk.server.end(), Some(0));
}

#[test]
fn codex_plays_a_day_over_stdio_and_over_http() {
    let Some((desk, [stdio, http, plays])) = Desk::with("codex", CODEX) else { return };
    for line in [stdio, http] {
        desk.sh(&line, &[]);
    }
    let listed = desk.sh("codex mcp list", &[]);
    assert!(listed.contains("market-served") && listed.contains("TRADERHARNESS_TOKEN"), "{listed}");

    // A hyphen in the name of a server is an underscore in the names of its tools.
    let served = plays.replace("mcp_servers.market.", "mcp_servers.market-served.");
    for (server, line) in [("market", plays), ("market_served", served)] {
        let model = Scripted::start(server, calls());
        let provider = format!(
            "codex exec -c model=scripted -c model_provider=scripted -c 'model_providers.scripted={{name=\"scripted\", \
             base_url=\"{}/v1\", wire_api=\"responses\"}}'",
            model.origin()
        );
        let said = desk.sh(&line.replace("codex exec", &provider), &[]);
        assert!(said.contains(LAST_WORDS), "{server}: {said}");
        holds(&model.told());
        // It reads the list of tools once: what ends the day has to be in it from the first request on.
        assert!(model.tools().contains(&format!("mcp__{server}__finish_day")), "{:?}", model.tools());
        assert!(model.first().contains("Call read_brief"), "{server}");
    }
    desk.recorded("codex-day");
    assert_eq!(desk.server.end(), Some(0));
}

#[test]
fn the_lines_for_python_run_as_printed() {
    if !is_deep() {
        return;
    }
    let Some(python) = python() else { return };
    let readme = std::fs::read_to_string(repo("README.md")).unwrap();
    let mut blocks = readme.split("```python\n").filter_map(|rest| rest.split("```").next());
    let lines = blocks.find(|lines| lines.starts_with("from mcp import")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines.py");
    // An empty line ends the block, as a person ends it.
    std::fs::write(&file, format!("{lines}\n")).unwrap();
    let ours = Path::new(env!("CARGO_BIN_EXE_traderharness")).parent().unwrap();
    let output = Command::new(python)
        .args(["-m", "asyncio"])
        .stdin(std::fs::File::open(&file).unwrap())
        .env("PATH", format!("{}:{}", text(ours), std::env::var("PATH").unwrap()))
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("Decision point: pre_market") && !err.contains("Traceback"), "{out}{err}");
}
