//! Market, screening and narrative tools against recorded answers of the Python implementation: equal in value, or a deliberate
//! difference that the spec names and this file checks.

use crate::call::{at, bright, hidden, masked, real, schema_refuses};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use traderharness_contract::ToolFailure;
use traderharness_ingest::{LoadOptions, load_parts, quiet};
use traderharness_market::store::Security;
use traderharness_market::testing::code;
use traderharness_market::{Clock, Mask, Store, StoreParts, View};

const TOOLS: [&str; 9] = [
    "get_kline",
    "get_stock_price",
    "get_stock_info",
    "get_market_overview",
    "get_narrative_market_overview",
    "screen_stocks",
    "screen_behavioral_cycle",
    "get_sector_summary",
    "get_narrative_sector_summary",
];

enum Verdict {
    Equal,
    /// An item of spec/tools.md or spec/engine.md.
    Deliberate(&'static str),
    Unexplained(String),
}
use Verdict::{Deliberate, Equal, Unexplained};

fn shared(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: the recorded answers of the Python implementation are not here");
    None
}

fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn close(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9,
        _ => a == b,
    }
}

/// Equal, or one unit of the last shown place apart because theirs rounds a binary float or a mean of rounded values.
fn nearly(a: &Value, b: &Value, unit: f64) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= unit * 1.001,
        _ => a == b,
    }
}

/// A recorded dataset in the two forms that tell why a number differs.
struct Market {
    store: Store,
    /// The same market without ex-events: what theirs computes.
    plain: Store,
    /// Its daily bars alone.
    daily: StoreParts,
    has_companies: bool,
    masks: std::cell::RefCell<BTreeMap<(bool, bool), std::rc::Rc<Mask>>>,
    codes: BTreeMap<String, String>,
}

impl Market {
    fn load(path: &Path, codes: BTreeMap<String, String>) -> Self {
        let parts = load_parts(path, &LoadOptions::default(), &quiet).unwrap().0;
        let plain = StoreParts { ex_events: None, ..parts.clone() };
        let has_companies = parts.securities.is_some();
        let store = Store::new(parts).unwrap();
        let daily = StoreParts {
            codes: plain.codes.clone(),
            daily_offsets: plain.daily_offsets.clone(),
            daily: plain.daily.clone(),
            minute_offsets: vec![0; plain.codes.len() + 1],
            calendar: plain.calendar.clone(),
            meta: plain.meta.clone(),
            ..StoreParts::default()
        };
        Self { store, plain: Store::new(plain).unwrap(), daily, has_companies, codes, masks: Default::default() }
    }

    /// The market without ex-events in which exactly these codes form the sector `name`.
    fn with_sector(&self, name: &str, members: &[String]) -> Store {
        let mut table: Vec<Security> = members
            .iter()
            .map(|m| Security { code: code(m), name: m.clone(), aliases: vec![], industry: format!("{name}-sub"), listed: None })
            .collect();
        table.sort_by_key(|s| s.code);
        table.dedup_by_key(|s| s.code);
        Store::new(StoreParts { securities: Some(table), ..self.daily.clone() }).unwrap()
    }
}

struct Record<'a> {
    market: &'a Market,
    masked: bool,
    clock: String,
    tool: &'a str,
    args: Value,
    theirs: Value,
    /// What this scenario asked on this day so far, with the names it was answered under.
    asked: Vec<String>,
    repeated_info: bool,
}

impl Record<'_> {
    /// The mask of a store; made once for the stores that stay.
    fn mask(&self, store: &Store) -> std::rc::Rc<Mask> {
        let mut masks = self.market.masks.borrow_mut();
        let stays = std::ptr::eq(store, &self.market.store) || std::ptr::eq(store, &self.market.plain);
        let make = || std::rc::Rc::new(if self.masked { hidden(store) } else { bright(store) });
        if !stays {
            return make();
        }
        masks.entry((std::ptr::eq(store, &self.market.store), self.masked)).or_insert_with(make).clone()
    }

    fn real_code(&self, theirs: &str) -> String {
        if self.masked { self.market.codes.get(theirs).cloned().unwrap_or_default() } else { theirs.to_owned() }
    }

    fn call_on(&self, store: &Store, args: &Value) -> Result<Value, ToolFailure> {
        let mask = self.mask(store);
        let mut args = args.clone();
        if self.masked {
            if let Some(theirs) = args["stock_code"].as_str()
                && let Some(real) = self.market.codes.get(theirs)
            {
                args["stock_code"] = json!(mask.code(store.find(code(real)).unwrap()));
            }
            masked(store, &mask, &self.clock, self.tool, &args)
        } else {
            real(store, &mask, at(&self.clock), self.tool, &args)
        }
    }

    /// Real code of a visible one of ours.
    fn unmask(&self, store: &Store, visible: &str) -> String {
        let mask = self.mask(store);
        let clock: Clock = at(&self.clock);
        mask.resolve(visible).map(|sec| View::new(store, clock, &mask).code(sec).to_string()).unwrap_or_default()
    }

    fn compare(&self) -> Verdict {
        let code = self.theirs["error_code"].as_str().unwrap_or("");
        if code == "invalid_tool_arguments" {
            let refused = schema_refuses(self.tool, &self.args)
                || matches!(self.call_on(&self.market.store, &self.args), Err(f) if f.code.as_str() == "invalid_tool_arguments");
            return match refused {
                true => Equal,
                false if self.args["days"] == json!(121) => Deliberate("get_kline takes up to 250 days (tools.md T3)"),
                false if self.args["sort_by"] == json!("amount") => Deliberate("screen_stocks sorts by amount too (tools.md T3)"),
                false => Unexplained("our schema accepts".into()),
            };
        }
        if self.args["industry"] == json!("") {
            return Deliberate("an empty sector name is an argument error, no filter is no argument (issue 2, bad input)");
        }
        if code == "ambiguous_masked_stock_code" {
            return Deliberate("a bare suffix is stopped in front of the handler (tools.md b08); tested with the dispatcher");
        }
        if schema_refuses(self.tool, &self.args) {
            return Unexplained("our schema refuses".into());
        }
        match self.tool {
            "get_kline" => self.with_ex(Self::kline),
            "get_stock_price" => self.with_ex(Self::price),
            "get_stock_info" => self.info(),
            "get_market_overview" => self.with_ex(Self::overview),
            "get_narrative_market_overview" => self.with_ex(Self::overview),
            "screen_stocks" => self.with_ex(Self::screen),
            "screen_behavioral_cycle" => self.with_ex(Self::cycle),
            _ => self.sector(),
        }
    }

    /// Compares with the ex-events, and where that differs, without them.
    fn with_ex(&self, compare: fn(&Self, &Store) -> Verdict) -> Verdict {
        match compare(self, &self.market.store) {
            Unexplained(why) => match compare(self, &self.market.plain) {
                Unexplained(_) => Unexplained(why),
                _ => Deliberate("changes over an ex-date use the exchange's reference price (engine E2.8, tools.md b13)"),
            },
            verdict => verdict,
        }
    }

    fn failure(&self, failure: &ToolFailure) -> Verdict {
        let theirs = self.theirs["error_code"].as_str().unwrap_or("success");
        match (failure.code.as_str(), theirs) {
            (ours, theirs) if ours == theirs && self.theirs["retryable"] == json!(failure.retryable()) => Equal,
            ("unknown_security", "security_data_unavailable") => Deliberate("unknown_security is precise (tools.md b29)"),
            ("unknown_security", "success") if self.masked => Deliberate("masked runs know no real codes (tools.md b07, b08)"),
            (ours, theirs) => Unexplained(format!("{ours} against {theirs}")),
        }
    }

    fn kline(&self, store: &Store) -> Verdict {
        let ours = match self.call_on(store, &self.args) {
            Ok(ours) => ours,
            Err(failure) => return self.failure(&failure),
        };
        let theirs = &self.theirs;
        if theirs["success"] != json!(true) {
            return Unexplained("ours succeeds".into());
        }
        if ours["count"] != theirs["count"] {
            return Unexplained(format!("count {} against {}", ours["count"], theirs["count"]));
        }
        let (mine, other) = (rows(&ours, "recent_20"), rows(theirs, "recent_20"));
        if mine.len() != other.len() {
            return Unexplained("number of rows".into());
        }
        for (a, b) in mine.iter().zip(other) {
            for field in ["day", "open", "high", "low", "close", "volume"] {
                if !close(&a[field], &b[field]) {
                    return Unexplained(format!("{field} {} against {} on {}", a[field], b[field], b["day"]));
                }
            }
        }
        let (a, b) = (&ours["older_summary"], &theirs["older_summary"]);
        let mut short = false;
        for field in b.as_object().into_iter().flat_map(|o| o.keys()) {
            if (field == "ma5_end" || field == "ma10_end") && a[field].is_null() {
                let needed = if field == "ma5_end" { 5 } else { 10 };
                short |= b["period_days"].as_u64().unwrap() < needed;
                if !short {
                    return Unexplained(format!("{field} is null"));
                }
            } else if !nearly(&a[field], &b[field], if field.starts_with("ma") { 0.01 } else { 0.0 }) {
                return Unexplained(format!("older_summary.{field} {} against {}", a[field], b[field]));
            }
        }
        if short {
            return Deliberate("a mean over fewer sessions than its name says is null (tools.md T1, complaint NU-4)");
        }
        Equal
    }

    fn price(&self, store: &Store) -> Verdict {
        let ours = match self.call_on(store, &self.args) {
            Ok(ours) => ours,
            Err(failure) => return self.failure(&failure),
        };
        let theirs = &self.theirs;
        let intraday = "current_visible_5min_close";
        if ours["price_source"] == intraday && theirs["price_source"] != intraday {
            return match ours["tradable_now"].as_bool() {
                Some(false) => Deliberate("the quote is the last visible bar of today from any window (tools.md b30)"),
                _ => Unexplained("ours is intraday and tradable".into()),
            };
        }
        if ours["tradable_now"] != theirs["tradable_execution_price"] {
            return Unexplained("tradable_now".into());
        }
        let today = theirs["price_source"] == intraday;
        let mut fields = vec!["price", "close", "price_source"];
        fields.extend(if today { &["previous_close"][..] } else { &["day", "open", "high", "low", "volume"] });
        if let Some(field) = fields.into_iter().find(|f| !close(&ours[*f], &theirs[*f])) {
            return Unexplained(format!("{field} {} against {}", ours[field], theirs[field]));
        }
        if close(&ours["change_pct"], &theirs["change_pct"]) {
            return Equal;
        }
        let reason =
            |word: &str| ours["missing_reasons"].as_array().unwrap().contains(&json!({"field": "change_pct", "reason": word}));
        if ours["change_pct"].is_null() && (reason("suspended") || reason("source_missing")) {
            return Deliberate("a security that does not trade on the newest session has no change (engine E2.7, tools.md b27)");
        }
        if ours["change_pct"].is_null() && reason("insufficient_history") && theirs["change_pct"] == json!(0.0) {
            return Deliberate("zero is never invented (tools.md T1)");
        }
        Unexplained(format!("change_pct {} against {}", ours["change_pct"], theirs["change_pct"]))
    }

    fn info(&self) -> Verdict {
        let ours = match self.call_on(&self.market.store, &self.args) {
            Ok(ours) => ours,
            Err(failure) => return self.failure(&failure),
        };
        if self.theirs["_dedup"] == json!(true) {
            return match self.repeated_info && ours["board"].is_string() {
                true => Deliberate("a repeated call returns the full result (tools.md b17)"),
                false => Unexplained("theirs says repeated".into()),
            };
        }
        let market = match self.theirs["market"].as_str().unwrap_or_default() {
            "主板" => "main",
            "创业板" => "ChiNext",
            "科创板" => "STAR",
            other => other,
        };
        if ours["market"] != market {
            return Unexplained(format!("market {} against {market}", ours["market"]));
        }
        if !self.market.has_companies {
            return match (&ours["name"], &ours["industry"]) {
                (Value::Null, Value::Null) => {
                    Deliberate("the dataset has no table of companies, and none is packaged with ours (tools.md b19)")
                }
                _ => Unexplained("a name from nowhere".into()),
            };
        }
        if ours["name"] == self.theirs["name"] && ours["industry"] == self.theirs["industry"] {
            return Equal;
        }
        Unexplained(format!("{} {} against {} {}", ours["name"], ours["industry"], self.theirs["name"], self.theirs["industry"]))
    }

    fn overview(&self, store: &Store) -> Verdict {
        let ours = match self.call_on(store, &self.args) {
            Ok(ours) => ours,
            Err(failure) => return self.failure(&failure),
        };
        let theirs = &self.theirs;
        let count = |v: &Value, f: &str| v[f].as_i64().unwrap_or(-1000);
        let suspended = count(&ours, "suspended_count");
        let mut off = 0;
        for field in ["up_count", "down_count", "total_stocks"] {
            off = off.max((count(&ours, field) - count(theirs, field)).abs());
        }
        let narrative = self.tool != "get_market_overview";
        // Theirs counts a change that rounds to zero as flat in the narrative variant.
        let slack = suspended + if narrative { 3 } else { 0 };
        if off > slack {
            return Unexplained(format!("counts are {off} off with {suspended} suspended"));
        }
        let sectors = self.market.has_companies;
        let mut tiny = false;
        if sectors {
            if ours["total_sectors"] != theirs["total_sectors"] {
                return Unexplained(format!("total_sectors {} against {}", ours["total_sectors"], theirs["total_sectors"]));
            }
            for list in ["top_sectors", "bottom_sectors", "rotation_candidates"] {
                let (mine, other) = (rows(&ours, list), rows(theirs, list));
                if mine.len() != other.len() {
                    return Unexplained(format!("{list} has {} against {}", mine.len(), other.len()));
                }
                for (a, b) in mine.iter().zip(other) {
                    for (field, theirs) in b.as_object().unwrap() {
                        // One member whose change rounds to zero has a vote in ours.
                        let vote = 100.0 / b["stock_count"].as_f64().unwrap_or(f64::NAN) + 0.01;
                        if field.starts_with("up_ratio") && !nearly(&a[field], theirs, 0.011) && nearly(&a[field], theirs, vote) {
                            tiny = true;
                            continue;
                        }
                        if !nearly(&a[field], theirs, 0.011) && suspended == 0 {
                            return Unexplained(format!("{list} {} {field} {} against {theirs}", b["sector"], a[field]));
                        }
                    }
                }
            }
        }
        match (off, suspended) {
            (0, _) if sectors && !tiny => Equal,
            (0, _) if tiny => {
                Deliberate("a change that only rounds to zero is a change (tools.md T1: computed from unrounded values)")
            }
            (0, _) => Deliberate("the dataset has no table of companies, so there are no sectors (tools.md b19)"),
            (_, 0) => Deliberate("a change that only rounds to zero is a change (tools.md T1: computed from unrounded values)"),
            _ => Deliberate("suspended stocks are counted apart (tools.md b27)"),
        }
    }

    fn screen(&self, store: &Store) -> Verdict {
        let theirs = &self.theirs;
        if self.args["price_min"] == json!(100_000) {
            let ours = self.call_on(store, &self.args).unwrap();
            assert_eq!((ours["total_matched"].clone(), ours["empty_reason"].clone()), (json!(0), json!("removed_by_price_min")));
            return Deliberate("there is no hidden upper price bound (tools.md T1)");
        }
        let ours = match self.call_on(store, &self.args) {
            Ok(ours) => ours,
            Err(f) if !self.args["industry"].is_null() && !self.market.has_companies => {
                assert_eq!(f.code.as_str(), "data_unavailable");
                return Deliberate("the dataset has no table of companies, so there are no sectors (tools.md b19)");
            }
            Err(failure) => return self.failure(&failure),
        };
        let removed = |name: &str| {
            let found = rows(&ours, "removed").iter().find(|r| r["filter"] == name).map(|r| r["count"].as_i64().unwrap());
            found.unwrap_or(0)
        };
        let suspended = removed("suspended");
        let off = theirs["total_matched"].as_i64().unwrap() - ours["total_matched"].as_i64().unwrap();
        // Ours needs 6 closes for a change over 5 sessions, theirs 5 for its 4.
        let young = removed("no_sort_value");
        if off < 0 || off > suspended + young {
            return Unexplained(format!("{off} fewer match with {suspended} suspended and {young} young"));
        }
        // Every stock of theirs is looked up in all of ours.
        let mut all: BTreeMap<String, Value> = BTreeMap::new();
        let mut args = self.args.clone();
        args["max_results"] = json!(30);
        loop {
            let page = self.call_on(store, &args).unwrap();
            for row in rows(&page, "stocks") {
                all.insert(self.unmask(store, row["code"].as_str().unwrap()), row.clone());
            }
            match page["next_cursor"].as_str() {
                Some(cursor) => args["cursor"] = json!(cursor),
                None => break,
            }
        }
        assert_eq!(all.len() as i64, ours["total_matched"].as_i64().unwrap(), "pages lose or repeat a stock");
        let mut absent = 0;
        for b in rows(theirs, "stocks") {
            let Some(a) = all.get(&self.real_code(b["code"].as_str().unwrap())) else {
                absent += 1;
                continue;
            };
            for field in ["close", "change_1d_pct", "volume"] {
                if !close(&a[field], &b[field]) {
                    return Unexplained(format!("{field} {} against {}", a[field], b[field]));
                }
            }
        }
        if absent > suspended + young {
            return Unexplained(format!("{absent} stocks of theirs are not in ours"));
        }
        if self.args["sort_by"].is_null() || self.args["sort_by"] == json!("change_5d") {
            return Deliberate(
                "change_5d spans five sessions (tools.md b14); close, change_1d and volume of each stock are equal",
            );
        }
        let key = if self.args["sort_by"] == json!("volume") { "volume" } else { "change_1d_pct" };
        let keys = |v: &Value| rows(v, "stocks").iter().map(|r| r[key].clone()).collect::<Vec<_>>();
        match keys(&ours).iter().zip(&keys(theirs)).all(|(a, b)| close(a, b)) {
            true => Equal,
            false if suspended > 0 => Deliberate("suspended stocks are not screened (tools.md b27)"),
            false => Unexplained("order".into()),
        }
    }

    fn cycle(&self, store: &Store) -> Verdict {
        let theirs = &self.theirs;
        let mut args = self.args.clone();
        args["max_results"] = json!(20);
        let mut ours = match self.call_on(store, &args) {
            Ok(ours) => ours,
            Err(failure) => return self.failure(&failure),
        };
        if let Some(cursor) = ours["next_cursor"].as_str() {
            args["cursor"] = json!(cursor);
            let more = self.call_on(store, &args).unwrap();
            ours["candidates"].as_array_mut().unwrap().extend(rows(&more, "candidates").iter().cloned());
        }
        let suspended = ours["suspended_count"].as_i64().unwrap();
        for field in ["sample_size", "eligible_size", "matched_size"] {
            let off = theirs[field].as_i64().unwrap() - ours[field].as_i64().unwrap();
            if off < 0 || off > suspended {
                return Unexplained(format!("{field} {} against {}", ours[field], theirs[field]));
            }
        }
        let mine: BTreeMap<String, &Value> =
            rows(&ours, "candidates").iter().map(|r| (self.unmask(store, r["code"].as_str().unwrap()), r)).collect();
        let lowest = rows(&ours, "candidates").last().and_then(|r| r["score"].as_f64()).unwrap_or(0.0);
        let mut moved = false;
        for b in rows(theirs, "candidates") {
            let Some(a) = mine.get(&self.real_code(b["code"].as_str().unwrap())) else {
                // Out of the first twenty by its twentieth session, or suspended.
                if suspended == 0 && b["score"].as_f64().unwrap() > lowest + 1.5 {
                    return Unexplained(format!("{} is not in ours", b["code"]));
                }
                moved = true;
                continue;
            };
            let extended = |v: &Value| v["risk_flags"].as_array().unwrap().contains(&json!("extended_20d"));
            let same_risk = extended(a) == extended(b);
            for (field, theirs) in b.as_object().unwrap() {
                let skip = matches!(field.as_str(), "code" | "change_20_pct")
                    || (!same_risk && matches!(field.as_str(), "score" | "risk_flags"));
                if !skip && !close(&a[field], theirs) {
                    return Unexplained(format!("{} {field} {} against {theirs}", b["code"], a[field]));
                }
            }
            moved |= !same_risk || a["change_20_pct"] != b["change_20_pct"];
        }
        if moved { Deliberate("change_20 spans twenty sessions (tools.md b14); all other features are equal") } else { Equal }
    }

    /// Their industries are not in the dataset, so ours gets a sector of exactly the stocks that the recorded answer shows.
    fn sector(&self) -> Verdict {
        let name = self.args["sector"].as_str().unwrap().trim().to_owned();
        let lists = ["top_gainers", "top_losers", "leaders"];
        let members: Vec<String> =
            lists.iter().flat_map(|l| rows(&self.theirs, l)).map(|r| self.real_code(r["code"].as_str().unwrap())).collect();
        if members.is_empty() {
            return self.sector_failure(&name);
        }
        let store = self.market.with_sector(&name, &members);
        let ours = match self.call_on(&store, &self.args) {
            Ok(ours) => ours,
            Err(failure) => return self.failure(&failure),
        };
        let suspended = ours["suspended_count"].as_i64().unwrap();
        let mut off = false;
        for list in lists {
            for (a, b) in rows(&ours, list).iter().zip(rows(&self.theirs, list)) {
                for (field, theirs) in b.as_object().unwrap() {
                    let ours =
                        if field == "code" { json!(self.unmask(&store, a["code"].as_str().unwrap())) } else { a[field].clone() };
                    let theirs = if field == "code" { json!(self.real_code(theirs.as_str().unwrap())) } else { theirs.clone() };
                    let unit = if field == "code" { 0.0 } else { 0.01 };
                    if !nearly(&ours, &theirs, unit) {
                        off = true;
                        if suspended == 0 {
                            return Unexplained(format!("{list} {} {field} {ours} against {theirs}", b["code"]));
                        }
                    }
                }
            }
        }
        match off {
            true => Deliberate("suspended members are left out (tools.md b27)"),
            false => {
                Deliberate("industries come from the dataset given (tools.md b19); the stocks shown are equal in every number")
            }
        }
    }

    fn sector_failure(&self, name: &str) -> Verdict {
        let any = |i: usize| self.market.daily.codes[i].to_string();
        if self.theirs["error_code"] == json!("sector_not_found") {
            let store = self.market.with_sector("Some sector", &[any(0)]);
            return match self.call_on(&store, &self.args) {
                Err(failure) => self.failure(&failure),
                Ok(_) => Unexplained("ours finds it".into()),
            };
        }
        // Theirs burned its budget on the failures before; ours must only refuse a third answered sector.
        let answered = self.asked.iter().filter(|n| *n != name).count();
        match answered >= 2 {
            true => Equal, // the unit of the budget is tested in `narrative`
            false => Deliberate("a failed look-up uses no budget (tools.md b16)"),
        }
    }
}

fn rows<'v>(value: &'v Value, list: &str) -> &'v [Value] {
    value[list].as_array().map_or(&[], Vec::as_slice)
}

#[derive(Default)]
struct Counts {
    equal: usize,
    deliberate: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

impl Counts {
    fn add(&mut self, name: &str, verdict: Verdict) {
        match verdict {
            Equal => self.equal += 1,
            Deliberate(why) => *self.deliberate.entry(why).or_default() += 1,
            Unexplained(why) => self.unexplained.push(format!("{name}: {why}")),
        }
    }

    fn report(self, what: &str) {
        let deliberate: usize = self.deliberate.values().sum();
        println!("{what}: {} equal, {deliberate} deliberate, {} unexplained", self.equal, self.unexplained.len());
        for (why, count) in &self.deliberate {
            println!("  {count:4} {why}");
        }
        assert!(self.unexplained.is_empty(), "{} unexplained:\n{}", self.unexplained.len(), self.unexplained.join("\n"));
        assert!(self.equal > 0);
    }
}

#[test]
fn differential_on_the_synthetic_set() {
    let Some(peer) = shared("peer") else { return };
    let maps: Value = serde_json::from_str(&std::fs::read_to_string(peer.join("vectors/entity_maps.json")).unwrap()).unwrap();
    let codes = maps["opaque_seed42"].as_object().unwrap().iter();
    let codes: BTreeMap<String, String> = codes.map(|(real, alias)| (alias.as_str().unwrap().to_owned(), real.clone())).collect();
    let market = Market::load(&peer.join("dataset"), codes);
    let mut counts = Counts::default();
    let mut asked: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut described: Vec<String> = vec![];
    for line in lines(&peer.join("vectors/market.jsonl")) {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let Some(tool) = TOOLS.iter().find(|t| line["tool"] == **t) else { continue };
        let key = (text("scenario"), text("date"));
        let args = line["args"].clone();
        let info = format!("{key:?} {args}");
        let record = Record {
            market: &market,
            masked: line["masked"] == json!(true),
            clock: format!("{} {}", text("date"), line["sub_window"].as_str().unwrap_or("pre_market")),
            tool,
            theirs: line["result"].clone(),
            asked: asked.get(&key).cloned().unwrap_or_default(),
            repeated_info: described.contains(&info),
            args,
        };
        if *tool == "get_narrative_sector_summary" && record.theirs["success"] == json!(true) {
            let name = record.args["sector"].as_str().unwrap().trim().to_owned();
            let list = asked.entry(key).or_default();
            if !list.contains(&name) {
                list.push(name);
            }
        }
        if *tool == "get_stock_info" {
            described.push(info);
        }
        counts.add(&format!("{} {} {} {}", text("id"), record.clock, record.tool, record.args), record.compare());
    }
    counts.report("market tools, synthetic set");
}

#[test]
fn differential_on_the_real_set() {
    let (Some(records), Some(data)) = (shared("peer/real-2025.jsonl"), shared("real-2025")) else { return };
    let market = Market::load(&data, BTreeMap::new());
    let mut counts = Counts::default();
    let mut described: Vec<String> = vec![];
    for line in lines(&records) {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let Some(tool) = TOOLS.iter().find(|t| line["tool"] == **t) else { continue };
        let info = format!("{} {}", text("date"), line["args"]);
        let record = Record {
            market: &market,
            masked: false,
            clock: format!("{} {}", text("date"), text("point")),
            tool,
            args: line["args"].clone(),
            theirs: line["result"].clone(),
            asked: vec![],
            repeated_info: described.contains(&info),
        };
        if *tool == "get_stock_info" {
            described.push(info);
        }
        counts.add(&format!("{} {} {}", record.clock, record.tool, record.args), record.compare());
    }
    counts.report("market tools, real set");
}
