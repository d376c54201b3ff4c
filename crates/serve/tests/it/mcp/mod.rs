//! The MCP door: what a client sees, over streams in this process and over HTTP requests.

mod calls;
mod client;
mod day;
mod hostile;
mod http;
mod lists;
mod long;
mod reads;
mod streams;
