//! The HTTP door over a real socket.

mod bounds;
mod client;
mod described;
mod faults;
mod hostile;
mod left;
mod memory;
mod played;
mod smuggled;
