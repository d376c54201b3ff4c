//! `cargo xtask load`: requests to a served process at a fixed rate, whether or not it keeps up, and what that did to their latency and
//! to the memory of the process. The server is the release build of the command, over a generated market; nothing else is measured.
//!
//! A request has a time at which it is due; its latency counts from there. A server that stalls is therefore seen by every request that
//! should have been sent meanwhile, and not by one alone.
//!
//! Memory is looked at ten times in the run, or every so many requests. What it grows by per request is told of the second half: until
//! then threads, caches and the allocator come to what they keep.

use crate::bench::resident_kib;
use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use traderharness_ingest::{GenerateConfig, LoadOptions, generate, load, quiet};

/// Market of the run: large enough that a careless look-up costs something.
const SIZE: (u32, u32, u32) = (800, 120, 5);

/// What to send.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// Sessions, each over a connection of its own.
    #[arg(long, default_value_t = Self::default().sessions)]
    pub(crate) sessions: usize,
    /// Requests per second, all sessions together; 0 sends as fast as answers come.
    #[arg(long, default_value_t = Self::default().rate)]
    pub(crate) rate: u64,
    /// Seconds of the run.
    #[arg(long, default_value_t = Self::default().seconds)]
    pub(crate) seconds: u64,
    /// Requests of the run, in place of its seconds.
    #[arg(long)]
    pub(crate) requests: Option<u64>,
    /// Calls after which a session is closed and another one made in its place; 0 keeps it to the end.
    #[arg(long, default_value_t = Self::default().turnover)]
    pub(crate) turnover: u64,
    /// Requests between two looks at the memory of the server; a tenth of the run when left out.
    #[arg(long)]
    pub(crate) every: Option<u64>,
    /// Tool that is called; its arguments name one security.
    #[arg(long, default_value_t = Self::default().tool)]
    pub(crate) tool: String,
    /// Print the figures as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            sessions: 64,
            rate: 200,
            seconds: 10,
            requests: None,
            turnover: 0,
            every: None,
            tool: "get_stock_price".to_owned(),
            json: false,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    /// Answers by status; 0 for a connection that broke.
    pub(crate) answers: BTreeMap<u16, u64>,
    /// Milliseconds from due to answered, sorted.
    pub(crate) latencies: Vec<f64>,
    /// Seconds from the first request to the last answer.
    pub(crate) seconds: f64,
    /// Requests that were answered and resident KiB of the server then, from the start with all sessions open to the end.
    pub(crate) resident: Vec<(u64, u64)>,
}

impl Figures {
    /// The latency that this share of the requests stays within, milliseconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get(((last as f64) * share).ceil() as usize).copied().unwrap_or(f64::NAN)
    }

    /// Requests that were not answered with 200 or 201.
    pub(crate) fn errors(&self) -> u64 {
        self.answers.iter().filter(|(status, _)| !is_good(**status)).map(|(_, count)| count).sum()
    }

    /// Bytes by which the server grew per request in the second half of the run; `None` where there is no such figure.
    pub(crate) fn growth(&self) -> Option<f64> {
        let half = self.resident.len() / 2;
        Some(slope(self.resident.get(half..)?)? * 1024.0)
    }
}

const fn is_good(status: u16) -> bool {
    matches!(status, 200 | 201)
}

/// The slope of a line through points: the middle one of those of all pairs, so that one odd point changes nothing.
fn slope(points: &[(u64, u64)]) -> Option<f64> {
    let pairs = points.iter().enumerate().flat_map(|(at, a)| points[at + 1..].iter().map(move |b| (a, b)));
    let steep = |(a, b): (&(u64, u64), &(u64, u64))| (b.0 != a.0).then(|| (b.1 as f64 - a.1 as f64) / (b.0 as f64 - a.0 as f64));
    let mut slopes: Vec<f64> = pairs.filter_map(steep).collect();
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

pub(crate) fn run(command: &Path, plan: &Plan) -> anyhow::Result<ExitCode> {
    let figures = measure(command, plan)?;
    let sent = figures.latencies.len();
    if plan.json {
        println!(
            "{}",
            json!({
                "requests": sent, "errors": figures.errors(), "answers": figures.answers, "seconds": figures.seconds,
                "p50_ms": figures.quantile(0.5), "p99_ms": figures.quantile(0.99), "max_ms": figures.quantile(1.0),
                "resident_kib": figures.resident, "bytes_per_request": figures.growth(),
            })
        );
    } else {
        let rate = sent as f64 / figures.seconds;
        println!(
            "{sent} requests over {} sessions in {:.1} s ({rate:.0}/s), {} errors",
            plan.sessions,
            figures.seconds,
            figures.errors()
        );
        let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|share| figures.quantile(share));
        println!("latency ms: p50 {p50:.2}, p90 {p90:.2}, p99 {p99:.2}, max {max:.2}");
        println!("resident KiB after so many requests:");
        for (requests, resident) in &figures.resident {
            println!("  {requests:>9} {resident:>9}");
        }
        if let Some(growth) = figures.growth() {
            println!("growth in the second half: {growth:.1} bytes per request");
        }
        for (status, count) in figures.answers.iter().filter(|(status, _)| !is_good(**status)) {
            println!("answers with status {status}: {count}");
        }
    }
    Ok(if figures.errors() == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Serves a generated market and sends what the plan says.
pub(crate) fn measure(command: &Path, plan: &Plan) -> anyhow::Result<Figures> {
    ensure!(plan.sessions > 0, "at least one session");
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let (stocks, days, minute_days) = SIZE;
    generate(&GenerateConfig { stocks, days, minute_days, ..GenerateConfig::default() }, &data, &quiet)?;
    let store = load(&data, &LoadOptions::default(), &quiet)?.store;
    let day = store.calendar().days().last().copied().context("the market has no day")?;
    let codes: Vec<String> = store.codes().iter().take(200).map(ToString::to_string).collect();
    drop(store);
    let server = Server::start(command, &data, &folder.path().join("keep"), &day.to_string())?;
    let sessions: Vec<Client> = (0..plan.sessions).map(|n| Client::open(&server, n, plan, &codes)).collect::<Result<_, _>>()?;
    let open = server.resident();
    let total = plan.requests.unwrap_or_else(|| plan.rate.max(1) * plan.seconds);
    let begun = Instant::now() + Duration::from_millis(50);
    let every = plan.every.unwrap_or(total / 10).max(1);
    let (answered, looked) = (AtomicU64::new(0), Mutex::new(vec![(0, open)]));
    let (server, plan) = (&server, &plan);
    let mut lines = Vec::new();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let senders: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(own, mut client)| {
                let (answered, looked) = (&answered, &looked);
                scope.spawn(move || {
                    let mut done = Vec::new();
                    for number in (own as u64..total).step_by(plan.sessions) {
                        let due = (number * 1_000_000_000)
                            .checked_div(plan.rate)
                            .map_or_else(Instant::now, |nanoseconds| begun + Duration::from_nanos(nanoseconds));
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        let status = client.call(number);
                        done.push((status, due.elapsed().as_secs_f64() * 1e3));
                        let answered = answered.fetch_add(1, Ordering::Relaxed) + 1;
                        if answered % every == 0 {
                            let seen = (answered, server.resident());
                            looked.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
                        }
                    }
                    done
                })
            })
            .collect();
        for sender in senders {
            lines.extend(sender.join().map_err(|_| anyhow::anyhow!("a sender broke"))?);
        }
        Ok(())
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let mut answers: BTreeMap<u16, u64> = BTreeMap::new();
    for (status, _) in &lines {
        *answers.entry(*status).or_default() += 1;
    }
    let mut latencies: Vec<f64> = lines.into_iter().map(|(_, latency)| latency).collect();
    latencies.sort_by(f64::total_cmp);
    let mut resident = looked.into_inner().unwrap_or_else(PoisonError::into_inner);
    resident.sort_unstable();
    Ok(Figures { answers, latencies, seconds, resident })
}

/// The served process; it ends with this value.
struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    fn start(command: &Path, data: &Path, keep: &Path, day: &str) -> anyhow::Result<Self> {
        let mut child = Command::new(command)
            .args(["serve", "--http", "127.0.0.1:0", "--json", "--print-token", "--mask", "none", "--start", day])
            .arg("--data")
            .arg(data)
            .arg("--keep")
            .arg(keep)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", command.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line).with_context(|| format!("the server said `{}`", line.trim()))?;
        let of = |name: &str| said[name].as_str().map(str::to_owned).with_context(|| format!("no {name} in `{}`", line.trim()));
        Ok(Self { address: of("url")?.trim_start_matches("http://").to_owned(), token: of("token")?, child })
    }

    /// Resident KiB; 0 where the system does not say.
    fn resident(&self) -> u64 {
        resident_kib(self.child.id()).unwrap_or(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection with a session of its own.
struct Client {
    stream: BufReader<TcpStream>,
    head: String,
    session: String,
    tool: String,
    code: String,
    own: usize,
    turnover: u64,
    /// Calls of the session.
    calls: u64,
}

impl Client {
    fn open(server: &Server, own: usize, plan: &Plan, codes: &[String]) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(&server.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let head = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", server.address, server.token);
        let code = codes.get(own % codes.len().max(1)).cloned().unwrap_or_default();
        let mut client = Self {
            stream: BufReader::new(stream),
            head,
            session: String::new(),
            tool: plan.tool.clone(),
            code,
            own,
            turnover: plan.turnover,
            calls: 0,
        };
        client.begin(&format!("open-{own}"))?;
        // What is done once per session is no part of a request.
        let (status, body) = client.invoke(&format!("first-{own}"))?;
        ensure!(status == 200, "the first call: {status} {}", String::from_utf8_lossy(&body));
        Ok(client)
    }

    /// Makes the session.
    fn begin(&mut self, key: &str) -> anyhow::Result<u16> {
        let (status, body) = self.post("/v1/sessions", key, &json!({}))?;
        ensure!(status == 201, "no session: {status} {}", String::from_utf8_lossy(&body));
        let body: Value = serde_json::from_slice(&body)?;
        self.session = body["session_id"].as_str().context("no session_id")?.to_owned();
        self.calls = 0;
        Ok(status)
    }

    /// One request: a call, or the end of a session that had its calls, or the beginning of the next.
    fn call(&mut self, number: u64) -> u16 {
        let key = format!("load-{}-{number}", self.own);
        self.calls += 1;
        let done = match self.calls.checked_sub(self.turnover).filter(|_| self.turnover > 0) {
            None | Some(0) => self.invoke(&key).map(|(status, _)| status),
            Some(1) => {
                let close = format!("/v1/sessions/{}/close", self.session);
                self.post(&close, &key, &json!({})).map(|(status, _)| status)
            }
            Some(_) => self.begin(&key),
        };
        done.unwrap_or(0)
    }

    fn invoke(&mut self, key: &str) -> anyhow::Result<(u16, Vec<u8>)> {
        let body = json!({ "session_id": self.session, "tool": self.tool, "input": { "stock_code": self.code } });
        self.post("/v1/tool-invocations", key, &body)
    }

    fn post(&mut self, path: &str, key: &str, body: &Value) -> anyhow::Result<(u16, Vec<u8>)> {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\n{}Idempotency-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.head,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let Some(status) = status else { bail!("no answer") };
        let mut length = 0;
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line)? > 0, "the answer ends in its head");
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, body))
    }
}

/// The command, built beside this program.
pub(crate) fn command() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("this program does not know its own path")?;
    let command = own.with_file_name("traderharness").with_extension(std::env::consts::EXE_EXTENSION);
    ensure!(command.is_file(), "`{}` is not built", command.display());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn a_slope_is_that_of_most_pairs() {
        let check = |points: &[(u64, u64)], expected: Option<f64>| assert_eq!(slope(points), expected, "{points:?}");
        check(&[], None);
        check(&[(1, 5)], None);
        check(&[(1, 5), (1, 6)], None);
        check(&[(0, 0), (10, 20), (20, 40)], Some(2.0));
        check(&[(0, 7), (10, 7), (20, 900), (30, 7), (40, 7), (50, 7)], Some(0.0));
        check(&[(0, 40), (10, 20)], Some(-2.0));
    }
}
