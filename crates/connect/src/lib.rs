//! What an agent needs from other processes: model clients and plug-in tools, over HTTP, pipes and MCP.
//!
//! Nothing here decides what an agent may see or do: requests come from the loop, results go back through `Session::call`. Keys are
//! handed in by the host, used in one header, and never reach a record, an error text or a log.
//!
//! | module | holds |
//! |---|---|
//! | [`endpoint`] | where a model server is, its key, its limits |
//! | [`http`] | the client over HTTP: sending, waiting, retrying |
//! | [`openai`] | the chat completions format |
//! | [`pipe`] | the client for people's own agents, over a pipe |
//! | [`styled`] | models that write their calls as text |
//! | [`wire`] | the seam for further formats |
//! | [`plugin`] | plug-in tools: programs over pipes, MCP servers |
//! | [`price`] | what tokens cost, exactly |
//! | [`retry`] | which failures are worth another attempt |
//! | [`progress`] | what a waiting person is told |
//! | [`secret`] | keys, and taking them out of texts |
//! | [`testing`] | servers for tests, which misbehave on purpose |

pub mod endpoint;
pub mod http;
pub mod openai;
pub mod pipe;
pub mod plugin;
pub mod price;
pub mod progress;
pub mod retry;
pub mod secret;
mod sse;
pub mod styled;
pub mod testing;
pub mod wire;

pub use endpoint::{Endpoint, Limits, SetupError};
pub use http::HttpClient;
pub use openai::ChatCompletions;
pub use pipe::{PipeClient, PipeLimits};
pub use plugin::launch::end_started_programs;
pub use progress::{Progress, Watcher};
pub use retry::RetryPolicy;
pub use secret::{Redactor, Secret};
pub use styled::StyledClient;

/// Asks servers that speak chat completions.
pub type OpenAiClient = HttpClient<ChatCompletions>;
