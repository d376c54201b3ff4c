//! What a person sees while a run is played: a bar on a terminal with day, phase, calls, assets and what the model is doing; plain lines
//! elsewhere. It only listens: nothing of a run depends on it.

use crate::report::Printer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use traderharness_connect::{Progress, Watcher};
use traderharness_harness::run::{DayRecord, Observer};
use traderharness_harness::{CallReport, Session};
use traderharness_replay::Response;

/// Where a run is, in words.
#[derive(Debug, Clone, Default, PartialEq)]
struct Status {
    day: u64,
    days: u64,
    point: String,
    calls: u64,
    failed: u64,
    assets: String,
    /// What the model is doing; empty when it is not asked.
    model: String,
}

impl Status {
    fn line(&self) -> String {
        let mut line = format!("day {}/{}", self.day, self.days);
        if !self.point.is_empty() {
            line.push_str(&format!(" {}", self.point));
        }
        line.push_str(&format!(" | {} calls", self.calls));
        if self.failed > 0 {
            line.push_str(&format!(", {} failed", self.failed));
        }
        if !self.assets.is_empty() {
            line.push_str(&format!(" | assets {}", self.assets));
        }
        if !self.model.is_empty() {
            line.push_str(&format!(" | {}", self.model));
        }
        line
    }
}

/// What the model's client says, in words; `None` for what nobody needs to see where there is no bar.
fn words(progress: &Progress<'_>) -> Option<String> {
    match progress {
        Progress::Waiting { attempt, of, pause, why } => {
            Some(format!("attempt {attempt} of {of} failed, again in {:.1} s: {why}", pause.as_secs_f64()))
        }
        Progress::Note { text } => Some(format!("agent: {text}")),
        _ => None,
    }
}

/// The screen of a run.
pub(crate) struct Screen {
    printer: Option<Printer>,
    bar: ProgressBar,
    status: Arc<Mutex<Status>>,
}

impl Screen {
    /// A screen for a run of so many days. With `quiet` it shows nothing at all.
    pub(crate) fn new(quiet: bool, days: usize) -> Self {
        let on_terminal = !quiet && std::io::stderr().is_terminal();
        let bar = if on_terminal {
            let bar = ProgressBar::with_draw_target(Some(days as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        } else {
            ProgressBar::hidden()
        };
        let status = Arc::new(Mutex::new(Status { days: days as u64, ..Status::default() }));
        Self { printer: (!quiet).then(Printer::new), bar, status }
    }

    /// Tells the screen what the model's client is doing.
    pub(crate) fn watcher(&self) -> Watcher {
        let (bar, status, quiet) = (self.bar.clone(), Arc::clone(&self.status), self.printer.is_none());
        Arc::new(move |progress| {
            let model = match progress {
                Progress::Asking { attempt: 1 } => "waiting for the model".to_owned(),
                Progress::Asking { attempt } => format!("waiting for the model, attempt {attempt}"),
                Progress::Receiving { bytes } => format!("receiving, {bytes} bytes"),
                other => words(other).unwrap_or_default(),
            };
            let mut status = status.lock().unwrap_or_else(PoisonError::into_inner);
            status.model = model;
            if !bar.is_hidden() {
                bar.set_message(status.line());
            } else if !quiet && let Some(text) = words(progress) {
                tell(&text);
            }
        })
    }

    /// Takes the bar away before the result is printed.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&mut self, change: impl FnOnce(&mut Status), print: impl FnOnce(&mut Printer)) {
        let line = {
            let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
            status.model.clear();
            change(&mut status);
            status.line()
        };
        if let Some(printer) = &mut self.printer {
            // A bar is taken away while lines are printed, so that they do not run into it.
            self.bar.suspend(|| print(printer));
        }
        self.bar.set_message(line);
    }
}

#[expect(clippy::print_stderr, reason = "a person is waiting for a model that does not answer")]
fn tell(text: &str) {
    eprintln!("    model: {text}");
}

impl Observer for Screen {
    fn day(&mut self, session: &Session) {
        let day = u64::from(session.day_index()) + 1;
        self.show(|status| status.day = day, |printer| printer.day(session));
    }

    fn point(&mut self, session: &Session, text: &str) {
        let (point, assets) = (session.clock().point.to_string(), session.account().equity(&session.view()).to_string());
        self.show(
            |status| {
                status.point = point;
                status.assets = assets;
            },
            |printer| printer.point(session, text),
        );
    }

    fn answer(&mut self, session: &Session, response: &Response) {
        self.show(|_| {}, |printer| printer.answer(session, response));
    }

    fn call(&mut self, session: &Session, report: &CallReport) {
        let failed = u64::from(report.code.is_some());
        self.show(
            |status| {
                status.calls += 1;
                status.failed += failed;
            },
            |printer| printer.call(session, report),
        );
    }

    fn day_end(&mut self, session: &Session, record: &DayRecord) {
        let assets = format!("{:.2}", record.equity);
        self.show(|status| status.assets = assets, |printer| printer.day_end(session, record));
    }
}

#[cfg(test)]
mod tests {
    use super::{Status, words};
    use std::time::Duration;
    use traderharness_connect::Progress;
    use traderharness_harness::model::ClientFault;

    #[test]
    fn the_status_line_says_where_the_run_is() {
        let mut status = Status { days: 22, day: 3, ..Status::default() };
        assert_eq!(status.line(), "day 3/22 | 0 calls");
        status = Status {
            point: "open_1".into(),
            calls: 41,
            failed: 2,
            assets: "1012345.60".into(),
            model: "waiting for the model".into(),
            ..status
        };
        assert_eq!(status.line(), "day 3/22 open_1 | 41 calls, 2 failed | assets 1012345.60 | waiting for the model");
    }

    #[test]
    fn a_wait_says_how_long_and_why() {
        let why = ClientFault::Status { status: 429, message: "slow down".into() };
        let waiting = Progress::Waiting { attempt: 1, of: 5, pause: Duration::from_millis(1_500), why: &why };
        assert_eq!(
            words(&waiting).as_deref(),
            Some("attempt 1 of 5 failed, again in 1.5 s: the model server answered 429: slow down")
        );
        assert_eq!(words(&Progress::Asking { attempt: 1 }), None);
    }
}
