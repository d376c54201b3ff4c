//! [`ToolCalls`]: what code in the sandbox gets when it calls `traderharness_api` (spec/tools.md T4).
//!
//! A method stands for a tool of the card and is answered here, on the host, by the very handler of that tool over the view at the clock:
//! arguments are validated and unmasked as a call's are, results masked by the tool's plan. Tables go out as columns with the numbers of
//! the tools. Nothing here knows a way around the view, the mask or the card: what a card does not offer is refused before anything
//! else is looked at, and no method runs a backtest or names a file.
//!
//! The outcome of code may come from a recording, without any of its calls made again. So a call changes nothing that another tool could
//! show: of a tool with a daily budget, code only gets what that tool has answered today, and never spends the budget itself.
//!
//! | module | holds |
//! |---|---|
//! | `methods` | the methods: names, arguments, the tools they stand for |
//! | `handlers` | running a tool's handler for a method |
//! | `columns` | the tables |
//! | `cache` | [`SegmentCache`]: whole-market tables, made once a day for all sessions of a process |
//! | `fault` | what code reads when it gets no answer |

mod cache;
mod columns;
mod fault;
mod handlers;
mod methods;

pub use cache::SegmentCache;

use crate::phase::is_offered;
use crate::toolbox::BoundTool;
use crate::{CancelToken, Toolbox};
use methods::{METHODS, Method};
use serde_json::{Map, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use traderharness_market::View;
use traderharness_sandbox::{HostAnswer, HostCalls, HostFault, HostFaultKind};
use traderharness_tools_exec::{Account, CardLimits};
use traderharness_tools_market::MarketState;

/// Tools whose handlers answer code, each once, sorted: who may run code must be entitled to all of them.
pub fn tools() -> Vec<&'static str> {
    let mut tools: Vec<&str> = METHODS.iter().flat_map(|method| method.tools).copied().collect();
    tools.sort_unstable();
    tools.dedup();
    tools
}

/// Characters of a name that are quoted back.
const QUOTED: usize = 60;

/// Answers the calls of one piece of code.
pub struct ToolCalls<'a> {
    toolbox: &'a Toolbox,
    view: View<'a>,
    state: &'a mut MarketState,
    account: &'a Account,
    limits: &'a CardLimits,
    segments: &'a SegmentCache,
    /// What handlers of account tools are given: they read it, and what they might do to it is dropped with it.
    copy: Option<Account>,
    cancel: Option<&'a CancelToken>,
}

impl std::fmt::Debug for ToolCalls<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCalls").field("clock", &self.view.clock()).finish_non_exhaustive()
    }
}

impl<'a> ToolCalls<'a> {
    /// Answers from the tools of `toolbox` over `view` and `account`. `state` is the session's own, so that code and tools share what
    /// was computed; `segments` is shared by all sessions of a process.
    pub const fn new(
        toolbox: &'a Toolbox,
        view: View<'a>,
        state: &'a mut MarketState,
        account: &'a Account,
        limits: &'a CardLimits,
        segments: &'a SegmentCache,
    ) -> Self {
        Self { toolbox, view, state, account, limits, segments, copy: None, cancel: None }
    }

    /// Has the code ended when `cancel` is set.
    #[must_use]
    pub(crate) const fn heeding(mut self, cancel: &'a CancelToken) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// The first tool of the method that the card offers now; `None` for a method that stands for no tool.
    fn permitted(&self, method: &Method) -> Result<Option<&'a BoundTool>, HostFault> {
        if method.tools.is_empty() {
            return Ok(None);
        }
        let point = self.view.clock().point;
        let offered = |name: &&&str| is_offered(name, point) && self.toolbox.resolve(name).is_ok();
        match method.tools.iter().find(offered).and_then(|name| self.toolbox.resolve(name).ok()) {
            Some(tool) => Ok(Some(tool)),
            None => Err(HostFault {
                kind: HostFaultKind::Permission,
                message: format!(
                    "{} needs the tool {}, which this agent's card does not offer.{}",
                    method.name,
                    method.tools.join(" or "),
                    method.note
                ),
            }),
        }
    }
}

impl HostCalls for ToolCalls<'_> {
    fn call(&mut self, method: &str, args: &Map<String, Value>) -> Result<HostAnswer, HostFault> {
        let Some(known) = METHODS.iter().find(|m| m.name == method) else {
            let all: Vec<&str> = METHODS.iter().map(|m| m.name).collect();
            let asked: String = method.chars().take(QUOTED).collect();
            return Err(fault::value(format!("there is no method `{asked}`; there are {}", all.join(", "))));
        };
        let tool = self.permitted(known)?;
        known.check(tool, args)?;
        // A panic is a defect of ours; it costs this call, and what it may have left half done is dropped.
        catch_unwind(AssertUnwindSafe(|| self.answer(known, tool, args))).unwrap_or_else(|_| {
            *self.state = MarketState::default();
            self.copy = None;
            Err(fault::environment(format!("a defect of the environment stopped {}; go on without it", known.name)))
        })
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(CancelToken::is_cancelled)
    }
}
