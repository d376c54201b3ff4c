//! [`Channel`]: the host's end of a job's socket. The other end belongs to a process that is not trusted: frames are bounded before they
//! are read, reads never block past the caller's patience, and descriptors that come along are dropped by the kernel.

use crate::protocol::{MAX_FRAME, ToWorker};
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
}

impl Channel {
    /// Over a socket that does not block.
    pub(crate) const fn new(socket: OwnedFd) -> Self {
        Self { socket, buffer: Vec::new(), start: 0 }
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
        if length > MAX_FRAME {
            return Some(Received::TooLong(length));
        }
        let frame = body.get(..length)?.to_vec();
        self.start += 4 + length;
        Some(Received::Frame(frame))
    }

    /// Sends a frame, with a descriptor if there is one. False when it could not be sent in time or nobody reads any more.
    pub(crate) fn send(&self, frame: &ToWorker, descriptor: Option<BorrowedFd<'_>>, patience: Duration) -> bool {
        let Ok(text) = serde_json::to_vec(frame) else { return false };
        let Ok(length) = u32::try_from(text.len()) else { return false };
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend_from_slice(&text);
        let until = Instant::now() + patience;
        let mut sent = 0;
        let mut descriptor = descriptor;
        while sent < bytes.len() {
            let rest = bytes.get(sent..).unwrap_or_default();
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            let outcome = match descriptor {
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
            match outcome {
                Ok(count) => {
                    sent += count;
                    descriptor = None;
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() || !wait(self.socket.as_fd(), PollFlags::POLLOUT, left) {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
        true
    }
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
