//! Running a tool's handler for a method, and putting its result into the form of the method.

use super::methods::{Method, What};
use super::{ToolCalls, columns, fault};
use crate::masking::{ViewMask, unmask_arguments};
use crate::toolbox::{Bound, BoundTool};
use serde_json::{Map, Value, json};
use traderharness_contract::ToolFailure;
use traderharness_market::{Code, SecId, View};
use traderharness_sandbox::{HostAnswer, HostFault};
use traderharness_tools_exec::{Control, ExecCtx};
use traderharness_tools_market::{MarketCtx, MarketState, tables};

/// Days of `get_policy_news`.
const POLICY_DAYS: std::ops::RangeInclusive<i64> = 1..=30;
/// Reports and characters: the most that the tools give.
const REPORTS: u32 = 8;
const CONTENT: u32 = 3_000;
/// Pages of one list; far more than any has.
const PAGES: usize = 10_000;

/// A call that is permitted.
#[derive(Clone, Copy)]
struct Call<'c> {
    method: &'c Method,
    tool: &'c BoundTool,
    view: View<'c>,
}

impl Call<'_> {
    /// Validated and unmasked arguments of the tool.
    fn prepare(&self, args: Value) -> Result<Value, HostFault> {
        let definition = &self.tool.definition;
        let args = definition.normalise(args).args;
        definition.validate(&args).map_err(|issues| fault::arguments(self.method, &issues))?;
        unmask_arguments(&definition.input_plan, &args, &self.view).map_err(|f| fault::failure(self.method, &f, None))
    }

    fn said(&self, failure: &ToolFailure) -> HostFault {
        fault::failure(self.method, failure, Some(&self.view))
    }

    /// Runs a read tool and masks what it returns.
    fn read(&self, state: &mut MarketState, args: Value) -> Result<Value, HostFault> {
        let args = self.prepare(args)?;
        let Bound::Market(handler) = &self.tool.bound else { return Err(self.elsewhere()) };
        let mut ctx = MarketCtx { view: self.view, state };
        let mut payload = handler.invoke(&mut ctx, args).map_err(|failure| self.said(&failure))?;
        self.tool.definition.output_plan.mask(&mut payload, &ViewMask(self.view));
        Ok(payload)
    }

    /// As [`Call::read`], page after page until the list `key` is whole. The answer is the first page's, with all records.
    fn whole(&self, state: &mut MarketState, mut args: Value, key: &str) -> Result<Value, HostFault> {
        let mut answer = self.read(state, args.clone())?;
        for _ in 0..PAGES {
            let Some(cursor) = answer["next_cursor"].as_str() else { break };
            args["cursor"] = json!(cursor);
            let mut page = self.read(state, args.clone())?;
            if let (Some(records), Some(more)) = (answer[key].as_array_mut(), page[key].as_array_mut()) {
                records.append(more);
            }
            answer["next_cursor"] = page["next_cursor"].take();
        }
        answer["returned"] = json!(answer[key].as_array().map_or(0, Vec::len));
        answer["complete"] = json!(answer["next_cursor"].is_null());
        Ok(answer)
    }

    /// The card offers a tool of this name that is not the house's own; code gets nothing from outside.
    fn elsewhere(&self) -> HostFault {
        let name = self.tool.bound.spec().name;
        fault::environment(format!("{}: {name} is answered outside of the environment; call it as a tool", self.method.name))
    }

    /// The security of the argument `code`, checked with the rules of the tool.
    fn security(&self, args: &Map<String, Value>, more: &[&str]) -> Result<(SecId, Value), HostFault> {
        let args = self.prepare(tool_args(args, more))?;
        let code = args["stock_code"].as_str().and_then(Code::parse);
        // Unmasking gave a code of the universe that is listed.
        let found = code.and_then(|code| self.view.find(code));
        found.map(|sec| (sec, args)).ok_or_else(|| fault::environment(format!("{}: the code was lost", self.method.name)))
    }

    /// True when the tool counts different questions of a day.
    fn is_budgeted(&self) -> bool {
        matches!(self.tool.bound.spec().name, "get_narrative_sector_summary" | "get_narrative_news")
    }

    /// Runs `read` so that a budgeted tool answers only what it has answered today.
    fn unspent<T>(&self, state: &mut MarketState, read: impl FnOnce(&mut MarketState) -> T) -> T {
        if self.is_budgeted() { state.without_new_questions(&self.view, read) } else { read(state) }
    }
}

/// The method's arguments by the tool's names, those in `more` included; a null is an argument that was not given.
fn tool_args(args: &Map<String, Value>, more: &[&str]) -> Value {
    let mut out = Map::new();
    if let Some(code) = args.get("code") {
        out.insert("stock_code".to_owned(), code.clone());
    }
    for name in more {
        if let Some(value) = args.get(*name).filter(|value| !value.is_null()) {
            out.insert((*name).to_owned(), value.clone());
        }
    }
    Value::Object(out)
}

/// A whole number among the arguments, or what stands when it is not given.
fn whole_number(method: &Method, args: &Map<String, Value>, name: &str, default: i64) -> Result<i64, HostFault> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value.as_i64().ok_or_else(|| fault::value(format!("{}: `{name}` must be a whole number", method.name))),
    }
}

fn plain(value: Value) -> HostAnswer {
    HostAnswer { value, segment: None }
}

impl ToolCalls<'_> {
    /// Answers a method that is permitted.
    pub(super) fn answer(
        &mut self,
        method: &Method,
        tool: Option<&BoundTool>,
        args: &Map<String, Value>,
    ) -> Result<HostAnswer, HostFault> {
        let view = self.view;
        let Some(tool) = tool else {
            // Every card may know which codes there are: every tool shows some, and orders take any.
            let listed = view.mask().in_visible_order().iter().filter(|sec| view.is_listed(**sec));
            return Ok(plain(listed.map(|sec| view.mask().code(*sec)).collect()));
        };
        let call = Call { method, tool, view };
        match method.what {
            What::StockList => Ok(plain(Value::Null)),
            What::Kline => {
                let (sec, args) = call.security(args, &["days"])?;
                columns::kline(&view, sec, args["days"].as_u64().unwrap_or(60) as usize)
            }
            What::Kline5Min => columns::five_minutes(&view, call.security(args, &[])?.0),
            What::AllDaily => self.all_daily(whole_number(method, args, "days", 20)?),
            What::Behavioral => self.behavioral(),
            What::StockPrice => call.read(self.state, tool_args(args, &[])).map(plain),
            What::Fundamentals => {
                let mut args = tool_args(args, &[]);
                args["periods"] = json!(REPORTS);
                call.read(self.state, args).map(plain)
            }
            What::Overview => call.read(self.state, json!({})).map(plain),
            What::SectorSummary => {
                let args = tool_args(args, &["sector"]);
                call.unspent(self.state, |state| call.read(state, args)).map(plain)
            }
            What::SectorStocks => {
                let args = tool_args(args, &["sector"]);
                // A budgeted tool has told of this sector today, or the members are not told either.
                if call.is_budgeted() {
                    call.unspent(self.state, |state| call.read(state, args.clone()))?;
                }
                let args = call.prepare(args)?;
                let asked = args["sector"].as_str().unwrap_or_default();
                let table = tables::sector(&view, self.state, asked).map_err(|failure| call.said(&failure))?;
                columns::sector(&view, table)
            }
            What::Screen => self.screen(call, args),
            What::Positions | What::Cash | What::TotalValue | What::Exposure => {
                let mut portfolio = self.portfolio(call)?;
                let field = match method.what {
                    What::Positions => "positions",
                    What::Cash => "usable_cash",
                    What::TotalValue => "total_value",
                    _ => "exposure_pct",
                };
                Ok(plain(portfolio[field].take()))
            }
            What::Announcements => {
                let mut args = tool_args(args, &["days"]);
                args["max_results"] = json!(50);
                call.whole(self.state, args, "announcements").map(|mut answer| plain(answer["announcements"].take()))
            }
            What::PolicyNews => {
                let days = whole_number(method, args, "days", 7)?;
                if !POLICY_DAYS.contains(&days) {
                    let (least, most) = POLICY_DAYS.into_inner();
                    return Err(fault::value(format!("{}: `days` must be between {least} and {most}", method.name)));
                }
                let mut found = tables::policy_news(&view, days as u8).map_err(|failure| call.said(&failure))?;
                tool.definition.output_plan.mask(&mut found, &ViewMask(view));
                Ok(plain(found["news"].take()))
            }
            What::News => {
                let mut args = tool_args(args, &["days", "keyword"]);
                args["content_limit"] = json!(CONTENT);
                args["max_results"] = json!(30);
                let found = call.unspent(self.state, |state| call.whole(state, args, "news"));
                found.map(|mut answer| plain(answer["news"].take()))
            }
        }
    }

    /// Without `max_results` all that pass; with it one page, as the tool.
    fn screen(&mut self, call: Call<'_>, args: &Map<String, Value>) -> Result<HostAnswer, HostFault> {
        let mut filters = Value::Object(args.clone());
        if args.get("max_results").is_none_or(Value::is_null) {
            filters["max_results"] = json!(30);
            return call.whole(self.state, filters, "stocks").map(plain);
        }
        let mut answer = call.read(self.state, filters)?;
        // Code has no way to send a cursor.
        answer["next_cursor"] = Value::Null;
        Ok(plain(answer))
    }

    /// What `get_portfolio` gives. Its handler gets a copy of the account, made on the first question.
    fn portfolio(&mut self, call: Call<'_>) -> Result<Value, HostFault> {
        let args = call.prepare(json!({}))?;
        let Bound::Exec(handler) = &call.tool.bound else { return Err(call.elsewhere()) };
        let mut control = Control::default();
        let mut ctx = ExecCtx {
            view: self.view,
            account: self.copy.get_or_insert_with(|| self.account.clone()),
            limits: self.limits,
            gate: None,
            control: &mut control,
            code: None,
        };
        let mut payload = handler.invoke(&mut ctx, args).map_err(|failure| call.said(&failure))?;
        call.tool.definition.output_plan.mask(&mut payload, &ViewMask(self.view));
        Ok(payload)
    }
}
