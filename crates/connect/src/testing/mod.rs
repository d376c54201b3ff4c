//! Servers for tests: [`Server`] speaks raw HTTP on a port of its own and can break every rule of it on purpose, [`ScriptedModel`]
//! is a well-behaved model server that plays a list of turns, a whole trading day for example. They only listen on the loopback
//! interface and are never part of a run.

mod model;
mod reply;
mod server;

pub use model::ScriptedModel;
pub use reply::{Act, Reply};
pub use server::{Received, Server};
