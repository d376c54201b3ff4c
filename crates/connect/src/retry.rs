//! [`RetryPolicy`]: which failures are worth another attempt and how long to wait for it. An answer that came whole is never asked for
//! again; a request has no effect of its own, so one without an answer may be.

use std::time::Duration;
use traderharness_harness::client_fault::ClientFault;
use traderharness_replay::Fingerprint;

/// How often and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts at most, the first one included.
    pub attempts: u32,
    /// Pause after the first failure; it doubles with every further one.
    pub first_pause: Duration,
    /// Longest pause of our own choice. What a server asks for (`Retry-After`) may be longer.
    pub longest_pause: Duration,
    /// No attempt begins after this time since the first one, and a pause that would end after it is not begun.
    pub give_up_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            give_up_after: Duration::from_secs(1_200),
        }
    }
}

/// How often a failure is worth another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worth {
    /// It would fail again.
    Never,
    /// Once more: the server spoke nonsense, which is rarely an accident (spec/seeds.md B12.4).
    Once,
    /// As often as the policy allows.
    Always,
}

/// What a failure is worth.
pub(crate) fn worth(fault: &ClientFault) -> Worth {
    match fault {
        ClientFault::Unreachable { .. } | ClientFault::Timeout { .. } | ClientFault::Cut { .. } => Worth::Always,
        ClientFault::Status { status: 408 | 409 | 425 | 429 | 500 | 502..=504 | 506..=599, .. } => Worth::Always,
        ClientFault::Status { status: 200, .. } | ClientFault::Empty { .. } | ClientFault::Malformed { .. } => Worth::Once,
        _ => Worth::Never,
    }
}

impl RetryPolicy {
    /// Pause after attempt `attempt` (from 1). It doubles each time; a part of up to a quarter is taken off, which follows from the
    /// request, so that many runs do not come back at the same moment and one run does the same thing each time.
    pub fn pause(&self, attempt: u32, request: &Fingerprint) -> Duration {
        let doubled = self.first_pause.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
        let pause = doubled.min(self.longest_pause);
        let bytes = request.0;
        let at = |n: u32| bytes.get(n as usize % bytes.len()).copied().unwrap_or_default();
        let share = u32::from(at(attempt.wrapping_mul(2))) << 8 | u32::from(at(attempt.wrapping_mul(2).wrapping_add(1)));
        pause - (pause / 4).saturating_mul(share) / 0x1_0000
    }
}

/// Pause that a server asks for: whole seconds, milliseconds in the header some providers use, or a date, which is held against the
/// server's own `Date`: clocks of two machines differ. `None` for what is none of these.
pub(crate) fn asked_pause(millis: Option<&str>, after: Option<&str>, date: Option<&str>) -> Option<Duration> {
    if let Some(millis) = millis.and_then(|text| text.trim().parse::<u64>().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let after = after?.trim();
    if let Ok(seconds) = after.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let instant = |text: &str| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok();
    let seconds = instant(after)?.as_second() - instant(date?)?.as_second();
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::{RetryPolicy, asked_pause};
    use std::time::Duration;
    use traderharness_replay::{Fingerprint, Request};

    fn print(model: &str) -> Fingerprint {
        Request::new(model, "v5").fingerprint()
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_depend_on_the_request_alone() {
        let policy = RetryPolicy::default();
        for attempt in 1..=40 {
            let whole = Duration::from_secs(1 << (attempt - 1).min(5)).min(Duration::from_secs(30));
            let pause = policy.pause(attempt, &print("a"));
            assert!(pause <= whole && pause >= whole * 3 / 4, "attempt {attempt}: {pause:?}");
            assert_eq!(pause, policy.pause(attempt, &print("a")));
        }
        assert_ne!(policy.pause(1, &print("a")), policy.pause(1, &print("b")));
    }

    #[test]
    fn servers_ask_for_pauses_in_three_ways() {
        let check = |millis, after, date, expected: Option<u64>| {
            assert_eq!(asked_pause(millis, after, date), expected.map(Duration::from_millis), "{millis:?} {after:?} {date:?}");
        };
        check(None, Some(" 7 "), None, Some(7_000));
        check(Some("250"), Some("1"), None, Some(250));
        check(None, Some("Wed, 21 Oct 2015 07:28:30 GMT"), Some("Wed, 21 Oct 2015 07:28:00 GMT"), Some(30_000));
        check(None, Some("Wed, 21 Oct 2015 07:28:00 GMT"), Some("Wed, 21 Oct 2015 07:28:30 GMT"), Some(0));
        check(None, Some("Wed, 21 Oct 2015 07:28:00 GMT"), None, None);
        check(None, Some("soon"), None, None);
        check(None, Some("-1"), None, None);
        check(None, None, None, None);
    }
}
