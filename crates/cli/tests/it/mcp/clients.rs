//! The official Python SDK and the MCP Inspector, over stdio and over HTTP. They come from package indexes: part of `cargo xtask test
//! --deep`, and skipped with a line where they cannot be had.

use crate::command::repo;
use crate::serve::Server;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pinned, so that a client of another kind is a change that somebody makes.
const SDK: &str = "mcp==2.3.0";
/// The last Inspector of its first line, which runs on Node 20.
const INSPECTOR: &str = "@modelcontextprotocol/inspector@0.17.5";
/// The newest Inspector; it is installed with the Node that it needs.
const NEW_INSPECTOR: &str = "@modelcontextprotocol/inspector@2.12.0";
const NEW_NODE: &str = "22.23.3";

fn target() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_traderharness")).ancestors().nth(2).unwrap().to_path_buf()
}

pub(super) fn is_deep() -> bool {
    let deep = std::env::var_os("TRADERHARNESS_DEEP").is_some();
    if !deep {
        println!("skipped: a slow suite (cargo xtask test --deep)");
    }
    deep
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// A Python that has the SDK.
pub(super) fn python() -> Option<PathBuf> {
    let venv = target().join("venvs/mcp");
    let python = venv.join("bin/python");
    let works = || succeeds(Command::new(&python).args(["-c", "import mcp.client.stdio, mcp.client.streamable_http"]));
    if !works() {
        let made = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        if !made || !succeeds(Command::new(venv.join("bin/pip")).args(["install", "--quiet", SDK])) || !works() {
            println!("skipped: {SDK} cannot be installed here");
            return None;
        }
    }
    Some(python)
}

/// A script of packages from npm (several with a space between them), installed into a folder of their own.
pub(super) fn npm(name: &str, package: &str, script: &str) -> Option<PathBuf> {
    let folder = target().join("venvs").join(name);
    let script = folder.join("node_modules").join(script);
    // A folder of another pin is not the package that is asked for.
    let asked = format!("{{\"name\": \"{name}\", \"private\": true, \"description\": \"{package}\"}}");
    let pin = folder.join("pin.json");
    if !script.is_file() || std::fs::read_to_string(&pin).ok().as_ref() != Some(&asked) {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("package.json"), &asked).unwrap();
        let npm = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--engine-strict=false"];
        if !succeeds(Command::new("npm").args(npm).args(package.split(' ')).current_dir(&folder)) || !script.is_file() {
            println!("skipped: {package} cannot be installed here");
            return None;
        }
        std::fs::write(&pin, &asked).unwrap();
    }
    Some(script)
}

/// The Inspector's command line.
struct Inspector {
    node: PathBuf,
    script: PathBuf,
    /// Its first words.
    first: &'static [&'static str],
    /// What it exits with when a tool failed.
    failed: i32,
}

impl Inspector {
    /// That of its first line.
    fn old() -> Option<Self> {
        let script = npm("inspector", INSPECTOR, "@modelcontextprotocol/inspector-cli/build/index.js")?;
        Some(Self { node: "node".into(), script, first: &[], failed: 0 })
    }

    /// The newest, with its Node.
    fn new() -> Option<Self> {
        let system = match std::env::consts::OS {
            "macos" => "darwin",
            other => other,
        };
        let machine = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        let node = format!("node-{system}-{machine}");
        let packages = format!("{NEW_INSPECTOR} {node}@{NEW_NODE}");
        let script = npm("inspector-new", &packages, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")?;
        let modules = script.ancestors().find(|folder| folder.ends_with("node_modules")).unwrap();
        Some(Self { node: modules.join(node).join("bin/node"), script, first: &["--cli"], failed: 5 })
    }

    fn inspects(&self, target: &[&str], more: &[&str], code: i32) -> Value {
        // It looks for its own package file above the folder it is started in, and for its catalog in that of its user.
        let folder = self.script.ancestors().find(|folder| folder.ends_with("node_modules")).unwrap();
        let mut command = Command::new(&self.node);
        command.current_dir(folder).env("MCP_CATALOG_PATH", folder.join("catalog.json"));
        let output = command.arg(&self.script).args(self.first).args(target).args(more).output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {out}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("{more:?}: {out}"))
    }
}

/// Plays the example's day and holds what it printed.
fn plays(command: &mut Command, era: &str) {
    let output = command.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{era}: {out}{err}");
    let lines: Vec<&str> = out.lines().collect();
    for expected in
        ["pre_market -> open_1", "open_1 -> open_2", "open_2 -> close_1", "close_1 -> close_2", "the session has ended"]
    {
        assert!(lines.iter().any(|line| line.contains(expected)), "{era}: no `{expected}` in\n{out}{err}");
    }
    assert!(out.contains("repaired: days, stock_code"), "{era}: {out}");
    assert!(out.contains("bought 1000"), "{era}: {out}");
    // A strict client complains on standard error about results that do not fit.
    for complaint in ["Traceback", "Invalid structured content", "Session termination failed"] {
        assert!(!err.contains(complaint), "{era}: {err}");
    }
}

#[test]
fn the_python_sdk_plays_a_day_in_both_eras_of_the_protocol() {
    if !is_deep() {
        return;
    }
    let Some(python) = python() else { return };
    let script = repo("examples/agents/mcp_day.py");
    let served = [env!("CARGO_BIN_EXE_traderharness"), "mcp", "--start", "2020-02-04", "--mask", "none"];
    for era in ["legacy", "auto"] {
        plays(Command::new(&python).arg(&script).args(["--stock", "000338", "--era", era]).args(served), era);
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("keep"), &["--mask", "none"]);
    for era in ["legacy", "auto"] {
        let url = format!("{}/mcp", server.url);
        plays(
            Command::new(&python)
                .arg(&script)
                .args(["--stock", "000338", "--era", era, &url])
                .env("TRADERHARNESS_TOKEN", &server.token),
            era,
        );
    }
    assert_eq!(server.end(), Some(0));
}

fn lists_calls_and_reads(inspector: &Inspector) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("keep"), &["--mask", "none"]);
    let (url, token) = (format!("{}/mcp", server.url), format!("Authorization: Bearer {}", server.token));
    let stdio = vec![env!("CARGO_BIN_EXE_traderharness"), "mcp", "--start", "2020-02-04", "--mask", "none"];
    let http = vec![url.as_str(), "--transport", "http", "--header", &token, "traderharness-session: key:inspector"];
    for target in [&stdio, &http] {
        let tools = inspector.inspects(target, &["--method", "tools/list"], 0);
        assert!(tools["tools"].as_array().unwrap().len() > 20);
        // The Inspector holds every structured result against the published schema, that of a failure too.
        let bars = inspector.inspects(
            target,
            &["--method", "tools/call", "--tool-name", "get_kline", "--tool-arg", "stock_code=000338"],
            0,
        );
        assert_eq!(bars["structuredContent"]["status"], "complete", "{bars}");
        let failed = inspector.inspects(
            target,
            &["--method", "tools/call", "--tool-name", "get_kline", "--tool-arg", "stock_code=x"],
            inspector.failed,
        );
        assert_eq!(failed["isError"], true);
        let brief = inspector.inspects(target, &["--method", "resources/read", "--uri", "traderharness://brief"], 0);
        assert!(brief["contents"][0]["text"].as_str().unwrap().contains("pre_market"));
        let prompt = inspector.inspects(target, &["--method", "prompts/get", "--prompt-name", "morning"], 0);
        assert_eq!(prompt["messages"][0]["role"], "user");
        let templates = inspector.inspects(target, &["--method", "resources/templates/list"], 0);
        assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 2);
    }
    // Over HTTP every command is a connection of its own, and the label leads it to the same session.
    let session = || inspector.inspects(&http, &["--method", "resources/read", "--uri", "traderharness://session"], 0);
    let first = session()["contents"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(session()["contents"][0]["text"], first);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_inspector_lists_calls_and_reads_over_both_transports() {
    if !is_deep() {
        return;
    }
    let (old, new) = (Inspector::old(), Inspector::new());
    [&old, &new].into_iter().flatten().for_each(lists_calls_and_reads);
    let Some(inspector) = new else { return };
    // Providers of models refuse schemas that the protocol allows; the newest Inspector fails where it finds one.
    let stdio = [env!("CARGO_BIN_EXE_traderharness"), "mcp", "--start", "2020-02-04", "--mask", "none"];
    let tools = inspector.inspects(&stdio, &["--method", "tools/list", "--strict"], 0);
    assert!(tools["tools"].as_array().unwrap().len() > 20);
}
