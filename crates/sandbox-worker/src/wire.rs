//! The worker's end of the job's socket: frames out, frames and descriptors in. When the host does not listen any more the process ends.

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use std::io::IoSliceMut;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use traderharness_sandbox::protocol::{FromWorker, ToWorker};

/// Descriptor of the job's socket, the only one a worker keeps beside 0 to 2.
pub(crate) const SOCKET: RawFd = 3;
/// Exit code of a worker whose host is gone.
const HOST_GONE: i32 = 71;

/// Ends the process at once: no code of the agent's runs any more.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: no return, and nothing to clean up: all this process has is its own memory.
    unsafe { libc::_exit(code) }
}

/// Sends a frame.
pub(crate) fn send(frame: &FromWorker) {
    let Ok(text) = serde_json::to_vec(frame) else { leave(HOST_GONE) };
    let Ok(length) = u32::try_from(text.len()) else { leave(HOST_GONE) };
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend_from_slice(&text);
    if !write(&bytes) {
        leave(HOST_GONE);
    }
}

/// Sends a frame that needs no memory, and ends the process. A frame that was on its way then is broken, which the host takes for a crash.
pub(crate) fn last_word(text: &[u8]) -> ! {
    let length = u32::try_from(text.len()).unwrap_or(0);
    leave(if write(&length.to_le_bytes()) && write(text) { 0 } else { HOST_GONE })
}

/// Writes all of it. False when nobody listens.
fn write(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        // SAFETY: borrowed for this call only; should the agent have closed it, the call fails and the process ends.
        let socket = unsafe { BorrowedFd::borrow_raw(SOCKET) };
        match nix::unistd::write(socket, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
    true
}

/// Waits for a frame and the descriptor that comes with it.
pub(crate) fn receive() -> (ToWorker, Option<OwnedFd>) {
    let mut descriptor = None;
    let mut head = [0; 4];
    fill(&mut head, &mut descriptor);
    let mut body = vec![0; u32::from_le_bytes(head) as usize];
    fill(&mut body, &mut descriptor);
    let Ok(frame) = serde_json::from_slice(&body) else { leave(HOST_GONE) };
    (frame, descriptor)
}

fn fill(buffer: &mut [u8], descriptor: &mut Option<OwnedFd>) {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let mut control = nix::cmsg_space!(RawFd);
        let mut slices = [IoSliceMut::new(rest)];
        let received = recvmsg::<()>(SOCKET, &mut slices, Some(&mut control), MsgFlags::MSG_CMSG_CLOEXEC);
        match received {
            Ok(message) if message.bytes == 0 => leave(HOST_GONE),
            Ok(message) => {
                filled += message.bytes;
                for part in message.cmsgs().into_iter().flatten() {
                    if let ControlMessageOwned::ScmRights(rights) = part {
                        for fd in rights {
                            // SAFETY: the kernel just made this descriptor for us; nobody else owns it.
                            *descriptor = Some(unsafe { OwnedFd::from_raw_fd(fd) });
                        }
                    }
                }
            }
            Err(Errno::EINTR) => {}
            Err(_) => leave(HOST_GONE),
        }
    }
}
