//! What the gate needs from outside: the kill switch, the counter, the audit log. This crate opens no file, so a host brings them.
//! [`Recorded`] gives a session the answers of an earlier run first, so that a replayed or resumed run decides as it did then.

use super::audit::Payload;
use std::collections::VecDeque;
use std::io;
use traderharness_market::Day;

/// State of the kill switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// Orders may go.
    Clear,
    /// All channels are halted.
    All,
    /// This channel is halted.
    Channel,
    /// The state cannot be read, which counts as halted.
    Unreadable,
}

impl Halt {
    /// Wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::All => "halted",
            Self::Channel => "channel_halted",
            Self::Unreadable => "unreadable",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Clear, Self::All, Self::Channel, Self::Unreadable].into_iter().find(|h| h.as_str() == text)
    }
}

/// What the counter of a day said. `None`: no counter was ever kept.
pub type Reading = io::Result<Option<u32>>;

/// The gate's outside. Every failure is an answer: the gate denies.
pub trait GateHost: Send {
    /// State of the kill switch of all channels and of this one. Existence decides, whatever the content; what cannot be read halts.
    fn halt(&mut self, channel: &str) -> Halt;
    /// Orders filled on a day.
    ///
    /// # Errors
    /// When the counter is there and cannot be read or is not of this day or an earlier one.
    fn trades(&mut self, day: Day) -> Reading;
    /// Keeps the number of orders filled on a day.
    ///
    /// # Errors
    /// When it is not safely kept.
    fn keep_trades(&mut self, day: Day, trades: u32) -> io::Result<()>;
    /// Appends one line, without its end, to the audit log and makes it durable.
    ///
    /// # Errors
    /// When it is not safely kept.
    fn append(&mut self, line: &str) -> io::Result<()>;
}

/// A host that gives the answers kept in an audit log first, and then those of `live`. What the gate appends must be what was
/// appended then: another line is refused, and with it the order.
#[derive(Debug)]
pub struct Recorded<H> {
    lines: VecDeque<String>,
    halts: VecDeque<Halt>,
    readings: VecDeque<Option<Option<u32>>>,
    live: H,
}

impl<H> Recorded<H> {
    /// Over the lines of one session of an audit log, which [`super::audit::session_after`] gives.
    pub fn new(lines: &[(String, Payload)], live: H) -> Self {
        let mut recorded = Self { lines: VecDeque::new(), halts: VecDeque::new(), readings: VecDeque::new(), live };
        for (line, payload) in lines {
            recorded.lines.push_back(line.clone());
            recorded.halts.extend(payload.halts());
            recorded.readings.extend(payload.reading());
        }
        recorded
    }

    /// Lines that were not reached again.
    pub fn left(&self) -> usize {
        self.lines.len()
    }
}

impl<H: GateHost> GateHost for Recorded<H> {
    fn halt(&mut self, channel: &str) -> Halt {
        self.halts.pop_front().unwrap_or_else(|| self.live.halt(channel))
    }

    fn trades(&mut self, day: Day) -> Reading {
        match self.readings.pop_front() {
            Some(Some(reading)) => Ok(reading),
            Some(None) => Err(io::Error::other("the counter could not be read then")),
            None => self.live.trades(day),
        }
    }

    fn keep_trades(&mut self, day: Day, trades: u32) -> io::Result<()> {
        // Kept then, before the line that follows was written.
        if self.lines.is_empty() { self.live.keep_trades(day, trades) } else { Ok(()) }
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        match self.lines.pop_front() {
            None => self.live.append(line),
            Some(then) if then == line => Ok(()),
            Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "the audit log has another record here")),
        }
    }
}

/// The outside of a replay: everything was recorded, so whatever is asked beyond that is a difference and is denied.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingLive;

impl GateHost for NothingLive {
    fn halt(&mut self, _: &str) -> Halt {
        Halt::Unreadable
    }
    fn trades(&mut self, _: Day) -> Reading {
        Err(io::Error::other("a replay keeps no counter"))
    }
    fn keep_trades(&mut self, _: Day, _: u32) -> io::Result<()> {
        Err(io::Error::other("a replay keeps no counter"))
    }
    fn append(&mut self, _: &str) -> io::Result<()> {
        Err(io::Error::other("the audit log has no such record"))
    }
}
