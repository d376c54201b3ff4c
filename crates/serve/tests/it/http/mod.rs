//! The HTTP door over a real socket.

mod bounds;
mod client;
mod described;
mod hostile;
mod played;
