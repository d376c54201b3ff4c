//! What an agent needs from other processes: model clients and plug-in tools, over HTTP, pipes and MCP.
//!
//! Nothing here decides what an agent may see or do: requests come from the loop, results go back through `Session::call`. Keys are
//! handed in by the host, used in one header, and never reach a record, an error text or a log.

pub mod plugin;
