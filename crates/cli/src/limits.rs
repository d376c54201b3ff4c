//! What ends a run before its last day: limits that the caller sets, and Ctrl-C. The first signal asks the run to end at its next step,
//! with everything recorded; the second ends the process at once, which loses nothing either: records are whole up to the last line.

use crate::fault::{Class, Fault};
use clap::Args as ClapArgs;
use std::process::exit;
use std::sync::Arc;
use std::time::{Duration, Instant};
use traderharness_harness::CancelToken;
use traderharness_harness::run::{Budgets, RunSettings, Stopwatch};

/// Exit code of a process that a second signal ended, as shells give it for Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Limits of a run. They are no part of its recording: a run that stopped at one goes on with --resume and a larger one.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct LimitOptions {
    /// Stop before more model requests than this.
    #[arg(long, value_name = "N")]
    pub(crate) max_requests: Option<u64>,
    /// Stop before more tool calls than this.
    #[arg(long, value_name = "N")]
    pub(crate) max_calls: Option<u64>,
    /// Stop before the next request once so many tokens are used, requests and answers together.
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Stop at the next step after so many seconds; a resumed run begins to count again.
    #[arg(long, value_name = "S")]
    pub(crate) max_seconds: Option<u64>,
    /// The same in minutes.
    #[arg(long, value_name = "M", conflicts_with = "max_seconds")]
    pub(crate) max_minutes: Option<u64>,
    /// Stop before the next request once this much is spent, in the currency of the prices: 2.50.
    #[arg(long, value_name = "X")]
    pub(crate) max_cost: Option<String>,
}

impl LimitOptions {
    /// The same for an agent without prices, which costs nothing that could be limited.
    pub(crate) fn without_cost(&self) -> Self {
        Self { max_cost: None, ..self.clone() }
    }

    /// Settings of a run of this model under these limits.
    pub(crate) fn settings(&self, model: &str, cancel: CancelToken) -> Result<RunSettings, Fault> {
        let max_cost_micros = self.max_cost.as_deref().map(micros).transpose()?;
        let max_seconds = self.max_seconds.or_else(|| self.max_minutes.map(|minutes| minutes.saturating_mul(60)));
        Ok(RunSettings {
            model: model.to_owned(),
            budgets: Budgets {
                max_requests: self.max_requests,
                max_calls: self.max_calls,
                max_tokens: self.max_tokens,
                max_cost_micros,
                max_wall_millis: max_seconds.map(|seconds| seconds.saturating_mul(1_000)),
            },
            stopwatch: Some(Arc::new(Since(Instant::now()))),
            cancel,
            ..RunSettings::default()
        })
    }
}

/// A decimal amount in millionths of its currency.
fn micros(text: &str) -> Result<u64, Fault> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let read = || {
        let fraction = (digits(whole) && digits(fraction) && fraction.len() <= 6).then(|| format!("{fraction:0<6}"))?;
        whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction.parse().ok()?)
    };
    read().ok_or_else(|| {
        Fault::text(Class::Input, format!("--max-cost `{text}` is no decimal number of at most 6 places"))
            .hint("write for example 2.50")
    })
}

/// Wall time since the run was begun.
#[derive(Debug)]
struct Since(Instant);

impl Stopwatch for Since {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A token that Ctrl-C sets (and SIGTERM, where there is one). Where signals cannot be heard, nobody sets it.
pub(crate) fn on_signal() -> CancelToken {
    let cancel = CancelToken::new();
    let heard = cancel.clone();
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() {
        // From here on a signal is heard, also before the thread below runs.
        let signals = {
            let _inside = runtime.enter();
            Signals::new()
        };
        // A thread of its own: the run itself waits for models and tools. It ends with the process.
        if let Some(signals) = signals {
            let listener = std::thread::Builder::new().name("signals".into());
            let _ = listener.spawn(move || runtime.block_on(listen(signals, &heard)));
        }
    }
    cancel
}

async fn listen(mut signals: Signals, cancel: &CancelToken) {
    while signals.next().await {
        if !cancel.cancel() {
            // Nothing is dropped from here on, so what was started is ended by name.
            traderharness_connect::end_started_programs();
            exit(INTERRUPTED);
        }
        tell("Stopping at the next step; what was done is kept. Press Ctrl-C again to stop at once.");
    }
}

/// Signals that ask a process to end.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Option<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Some(Self { interrupt: signal(SignalKind::interrupt()).ok()?, terminate: signal(SignalKind::terminate()).ok()? })
    }

    /// Waits for one; false when none can come any more.
    async fn next(&mut self) -> bool {
        tokio::select! {
            heard = self.interrupt.recv() => heard.is_some(),
            heard = self.terminate.recv() => heard.is_some(),
        }
    }
}

/// Signals that ask a process to end.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    const fn new() -> Option<Self> {
        Some(Self)
    }

    /// Waits for one; false when none can come any more.
    async fn next(&mut self) -> bool {
        tokio::signal::ctrl_c().await.is_ok()
    }
}

#[expect(clippy::print_stderr, reason = "a person is waiting at the terminal")]
fn tell(text: &str) {
    eprintln!("{text}");
}
