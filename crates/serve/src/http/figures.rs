//! What the door counts, and how it is shown to a scraper. Labels are patterns of routes, methods and statuses: no path that a client
//! chose, no name of a caller.

use crate::Metrics;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in seconds.
const BOUNDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

/// Counters since the process started.
#[derive(Debug, Default)]
pub(super) struct Figures {
    requests: Mutex<BTreeMap<(String, &'static str, u16), u64>>,
    buckets: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

impl Figures {
    /// Counts an answered request.
    pub(super) fn count(&self, route: &str, method: &'static str, status: u16, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *requests.entry((route.to_owned(), method, status)).or_default() += 1;
        drop(requests);
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Everything in the text format of Prometheus.
    pub(super) fn text(&self, house: &Metrics, working: usize) -> String {
        let mut out = String::with_capacity(4096);
        head(&mut out, "requests_total", "counter", "Answered HTTP requests.");
        let requests = self.requests.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        for ((route, method, status), count) in requests {
            let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{status}\"");
            let _ = writeln!(out, "traderharness_requests_total{{{labels}}} {count}");
        }
        head(&mut out, "request_seconds", "histogram", "Time from the head of a request to its answer.");
        let mut sum = 0;
        let bounds = BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, bucket) in bounds.zip(&self.buckets) {
            sum += bucket.load(Ordering::Relaxed);
            let _ = writeln!(out, "traderharness_request_seconds_bucket{{le=\"{bound}\"}} {sum}");
        }
        let micros = self.microseconds.load(Ordering::Relaxed);
        let _ = writeln!(out, "traderharness_request_seconds_sum {}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let _ = writeln!(out, "traderharness_request_seconds_count {sum}");
        labelled(&mut out, "calls_total", "Tool calls that ran.", "effect", &house.calls);
        labelled(&mut out, "refusals_total", "Requests that were refused.", "class", &house.refusals);
        for (name, kind, help, value) in [
            ("replayed_total", "counter", "Answers given again under a key.", house.replayed),
            ("budget_units_total", "counter", "Units of budget that were settled.", house.units),
            ("audit_rows_total", "counter", "Rows of the audit log.", house.audit_rows),
            ("keep_bytes", "gauge", "Bytes that are kept.", house.keep_bytes),
            ("sessions", "gauge", "Open sessions.", house.sessions),
            ("sessions_loaded", "gauge", "Sessions that stand in memory.", house.sessions_loaded),
            ("jobs_running", "gauge", "Jobs that run.", house.jobs_running),
            ("jobs_waiting", "gauge", "Jobs that wait.", house.jobs_waiting),
            ("calls_working", "gauge", "Requests that work at this moment.", working as u64),
        ] {
            head(&mut out, name, kind, help);
            let _ = writeln!(out, "traderharness_{name} {value}");
        }
        out
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP traderharness_{name} {help}\n# TYPE traderharness_{name} {kind}");
}

fn labelled(out: &mut String, name: &str, help: &str, label: &str, counts: &BTreeMap<String, u64>) {
    head(out, name, "counter", help);
    for (value, count) in counts {
        let _ = writeln!(out, "traderharness_{name}{{{label}=\"{value}\"}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown_with_their_labels() {
        let figures = Figures::default();
        figures.count("/v1/tools", "GET", 200, Duration::from_micros(900));
        figures.count("/v1/tools", "GET", 200, Duration::from_millis(3));
        figures.count("/v1/tools/{name}", "GET", 404, Duration::from_secs(100));
        let house = Metrics { calls: BTreeMap::from([("read".to_owned(), 3)]), sessions: 2, ..Metrics::default() };
        let text = figures.text(&house, 1);
        for line in [
            "traderharness_requests_total{route=\"/v1/tools\",method=\"GET\",status=\"200\"} 2",
            "traderharness_requests_total{route=\"/v1/tools/{name}\",method=\"GET\",status=\"404\"} 1",
            "traderharness_request_seconds_bucket{le=\"0.001\"} 1",
            "traderharness_request_seconds_bucket{le=\"0.005\"} 2",
            "traderharness_request_seconds_bucket{le=\"+Inf\"} 3",
            "traderharness_request_seconds_sum 100.003900",
            "traderharness_request_seconds_count 3",
            "traderharness_calls_total{effect=\"read\"} 3",
            "traderharness_sessions 2",
            "traderharness_calls_working 1",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
    }
}
