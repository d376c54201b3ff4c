//! [`Channel`]: the host's end of a job's socket. The other end belongs to a process that is not trusted: frames are bounded before they
//! are read, reads never block past the caller's patience, and descriptors that come along are dropped by the kernel.

use crate::protocol::ToWorker;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, recv, send, sendmsg};
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Bytes taken from the socket at once.
const CHUNK: usize = 64 << 10;

/// What reading gave.
#[derive(Debug)]
pub(crate) enum Received {
    /// One frame, not parsed yet.
    Frame(Vec<u8>),
    /// Nothing in time.
    Nothing,
    /// The other end is closed.
    Closed,
    /// A frame longer than any worker sends.
    TooLong(usize),
}

/// The host's end of a job's socket.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    buffer: Vec<u8>,
    start: usize,
    longest: usize,
}

impl Channel {
    /// Over a socket; no frame that comes in is longer than `longest` bytes.
    pub(crate) const fn new(socket: OwnedFd, longest: usize) -> Self {
        Self { socket, buffer: Vec::new(), start: 0, longest }
    }

    /// The next frame, waiting at most this long.
    pub(crate) fn receive(&mut self, patience: Duration) -> Received {
        let until = Instant::now() + patience;
        loop {
            match self.buffered() {
                Some(Received::Nothing) | None => {}
                Some(received) => return received,
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            let filled = self.buffer.len();
            self.buffer.resize(filled + CHUNK, 0);
            let got = recv(self.socket.as_raw_fd(), &mut self.buffer[filled..], MsgFlags::MSG_DONTWAIT);
            self.buffer.truncate(filled + *got.as_ref().unwrap_or(&0));
            match got {
                Ok(0) => return Received::Closed,
                Ok(_) => continue,
                Err(Errno::EAGAIN) => {}
                Err(Errno::EINTR) => continue,
                Err(_) => return Received::Closed,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !wait(self.socket.as_fd(), PollFlags::POLLIN, left) {
                return Received::Nothing;
            }
        }
    }

    /// A whole frame of the buffer.
    fn buffered(&mut self) -> Option<Received> {
        let rest = &self.buffer[self.start..];
        let (head, body) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*head) as usize;
        if length > self.longest {
            return Some(Received::TooLong(length));
        }
        let frame = body.get(..length)?.to_vec();
        self.start += 4 + length;
        Some(Received::Frame(frame))
    }

    /// Sends as much of a frame as goes in this time. To be called again until nothing is left: what else the caller watches is not
    /// to wait for a worker that does not read.
    pub(crate) fn send(&self, frame: &mut Outgoing<'_>, patience: Duration) -> Sent {
        let until = Instant::now() + patience;
        while let Some(rest) = frame.bytes.get(frame.sent..).filter(|rest| !rest.is_empty()) {
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            let outcome = match frame.descriptor {
                Some(fd) => {
                    let rights = [fd.as_raw_fd()];
                    sendmsg::<()>(
                        self.socket.as_raw_fd(),
                        &[IoSlice::new(rest)],
                        &[ControlMessage::ScmRights(&rights)],
                        flags,
                        None,
                    )
                }
                None => send(self.socket.as_raw_fd(), rest, flags),
            };
            let full = match outcome {
                Ok(count) => {
                    frame.sent += count;
                    frame.descriptor = None;
                    false
                }
                Err(Errno::EINTR) => false,
                Err(Errno::EAGAIN) => true,
                Err(_) => return Sent::Closed,
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || (full && !wait(self.socket.as_fd(), PollFlags::POLLOUT, left)) {
                return Sent::Part;
            }
        }
        Sent::Whole
    }
}

/// A frame on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    bytes: Vec<u8>,
    sent: usize,
    descriptor: Option<BorrowedFd<'a>>,
}

impl<'a> Outgoing<'a> {
    /// A frame, with a descriptor if there is one. `None` when it is longer than frames can be.
    pub(crate) fn new(frame: &ToWorker, descriptor: Option<BorrowedFd<'a>>) -> Option<Self> {
        let text = serde_json::to_vec(frame).ok()?;
        let mut bytes = u32::try_from(text.len()).ok()?.to_le_bytes().to_vec();
        bytes.extend_from_slice(&text);
        Some(Self { bytes, sent: 0, descriptor })
    }
}

/// What came of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All of it.
    Whole,
    /// Some of it, in this time.
    Part,
    /// Nobody reads any more.
    Closed,
}

/// Waits until the descriptor is ready or closed. False when time is up.
pub(crate) fn wait(fd: BorrowedFd<'_>, flags: PollFlags, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up, so that the last fraction of a millisecond is not spent spinning.
        let millis = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(fd, flags)], timeout) {
            Ok(0) if left.is_zero() => return false,
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) | Err(_) => return true,
        }
    }
}
