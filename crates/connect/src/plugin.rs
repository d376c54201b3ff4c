//! Plug-in tools served by other processes: programs that speak JSON lines over a pipe, and MCP servers over stdio.
//!
//! A manifest that the host wrote says what there is ([`Manifest`]); [`Manifest::load`] starts it and gives entries for the registry.
//! A source that fails is skipped with its reason and the others are untouched. What a process sends is only ever an answer: effect
//! classes, limits and names are the host's, a call is never sent twice, and values of environment variables that were handed to a
//! process are taken out of everything it says.

pub mod launch;
pub mod manifest;
pub mod mcp;
pub mod names;
pub mod pipe;

pub use launch::{Launch, LaunchFault};
pub use manifest::{Loaded, Manifest, ManifestError, Warning};
pub use mcp::McpServer;
pub use pipe::Pipe;
