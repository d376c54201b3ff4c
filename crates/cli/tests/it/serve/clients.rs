//! Clients that are programs of their own.

use super::Server;
use crate::command::repo;
use std::path::Path;
use std::process::Command;

/// A program on this machine; `None`, with a line that says so, where it is absent.
fn program(name: &str) -> Option<&str> {
    let there = Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        println!("skipped: {name} is not here");
    }
    there.then_some(name)
}

#[test]
fn a_python_program_plays_a_window_with_its_standard_library() {
    let Some(python) = program("python3") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--end", "2020-02-05", "--mask", "none"]);
    let output = Command::new(python)
        .arg(repo("examples/agents/http_day.py"))
        .arg(&server.url)
        .arg(folder.path().join("private/token"))
        .arg("000338")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("bars: complete") && out.contains("order: complete"), "{out}");
    assert!(out.contains("2020-02-05 close_2"), "{out}");
    assert!(out.lines().last().unwrap().contains("000338"), "{out}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_three_lines_of_the_readme_run() {
    let Some(python) = program("python3") else { return };
    let readme = std::fs::read_to_string(repo("README.md")).unwrap();
    let served = readme.lines().find(|line| line.starts_with("traderharness serve --http ")).unwrap();
    let lines = readme.split("```python\nfrom http_day").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(lines.trim().lines().count(), 3, "{lines}");
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("desk");
    let more: Vec<&str> = served.split(" --start 2020-02-04").nth(1).unwrap().split_whitespace().collect();
    let server = Server::start(&keep, &more);
    let output = Command::new(python)
        .args(["-c", &format!("from http_day{}", lines.replace("http://127.0.0.1:8750", &server.url))])
        .current_dir(folder.path())
        .env("PYTHONPATH", repo("examples/agents"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("000338"), "{out}");
}

#[test]
fn the_session_by_curl_runs_as_printed() {
    let (Some(_), Some(bash)) = (program("curl"), program("bash")) else { return };
    let page = std::fs::read_to_string(repo("docs/http.md")).unwrap();
    let block = page.split("```sh session\n").nth(1).unwrap().split("```").next().unwrap();
    // A port of its own: the printed one may be taken.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = format!("set -eu\ntrap 'kill $SERVER 2>/dev/null || true' EXIT\n{}", block.replace("8751", &port.to_string()));
    let folder = tempfile::tempdir().unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_traderharness")).parent().unwrap();
    let output = Command::new(bash)
        .args(["-c", &script])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", own.display()))
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains(r#""state":"closed""#), "{out}{err}");
}

#[test]
fn a_session_is_there_after_a_restart() {
    let Some(python) = program("python3") else { return };
    let folder = tempfile::tempdir().unwrap();
    let ask = |server: &Server, script: &str| {
        let head =
            "import sys\nsys.path.insert(0, sys.argv[1])\nfrom http_day import Desk\ndesk = Desk(sys.argv[2], sys.argv[3])\n";
        let output = Command::new(python)
            .args(["-c", &format!("{head}{script}")])
            .arg(repo("examples/agents"))
            .args([&server.url, &server.token])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let server = Server::start(folder.path(), &["--mask", "none"]);
    let made = ask(
        &server,
        "desk.open()\nprint(desk.ask('POST', f'/v1/sessions/{desk.session}/step', key='s')['point'])\n\
         body = {'session_id': desk.session, 'tool': 'place_order', 'input': {'stock_code': '000338', 'action': 'buy', 'quantity': 100, 'reasoning': 'x'}}\n\
         print(desk.ask('POST', '/v1/tool-invocations', body, key='o')['invocation_id'])\nprint(desk.session)\n\
         print(desk.ask('GET', f'/v1/sessions/{desk.session}/account'))",
    );
    let lines: Vec<&str> = made.lines().collect();
    assert_eq!(lines[0], "open_1", "{made}");
    // Killed, not closed.
    drop(server);
    let server = Server::start(folder.path(), &["--mask", "none"]);
    let again = ask(
        &server,
        &format!(
            "desk.session = '{}'\nprint(desk.state()['point'])\n\
             body = {{'session_id': desk.session, 'tool': 'place_order', 'input': {{'stock_code': '000338', 'action': 'buy', 'quantity': 100, 'reasoning': 'x'}}}}\n\
             print(desk.ask('POST', '/v1/tool-invocations', body, key='o')['invocation_id'])\nprint(desk.session)\n\
             print(desk.ask('GET', f'/v1/sessions/{{desk.session}}/account'))",
            lines[2]
        ),
    );
    assert_eq!(again, made);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_log_of_requests_holds_patterns_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &["--access-log"]);
    let address = server.url.trim_start_matches("http://").to_owned();
    let ask = |path: &str| {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let text = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            server.token
        );
        stream.write_all(text.as_bytes()).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    };
    ask("/v1/tools/secret-word");
    ask("/v1/sessions");
    let mut stderr = server.child.stderr.take().unwrap();
    let token = server.token.clone();
    assert_eq!(server.end(), Some(0));
    let mut log = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut log).unwrap();
    assert!(log.contains(r#""route":"/v1/tools/{name}","status":404"#), "{log}");
    assert!(log.contains(r#""caller":"owner""#), "{log}");
    assert!(!log.contains(&token) && !log.contains("secret-word"), "{log}");
}
