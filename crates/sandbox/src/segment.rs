//! [`Segment`]: a table as columns in a sealed memory file. The worker gets the descriptor, maps it read-only and makes numpy arrays
//! of it without copying. Whoever builds one puts in only masked rows up to the clock.

use crate::protocol::Layout;
use std::os::fd::OwnedFd;

/// A sealed table. Nobody can write to it any more, the host included.
#[derive(Debug)]
pub struct Segment {
    /// The memory file.
    pub fd: OwnedFd,
    /// What is where in it.
    pub layout: Layout,
}
