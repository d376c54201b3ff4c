//! The memory tools: limits in their order, corrections that lead to success, the search, what is visible when.

use crate::fixture::*;
use serde_json::{Value, json};
use traderharness_contract::{ErrorCode, Policy, ToolFailure};
use traderharness_market::DecisionPoint::PreMarket;
use traderharness_market::testing::day;
use traderharness_tools_exec::memory::text::{CHARACTERS, memory_text};
use traderharness_tools_exec::memory::{Draft, Memory, MemoryKind, Source};
use traderharness_tools_exec::{Account, CardLimits, Control};

struct Desk {
    world: World,
    account: Account,
    limits: CardLimits,
}

impl Desk {
    fn new(active: u32, daily: u32) -> Self {
        let limits = CardLimits { max_active_memories: active, max_daily_memories: daily, ..free() };
        Self { world: World::full(), account: rich(), limits }
    }

    fn call(&mut self, tool: &str, args: Value, date: &str) -> Result<Value, ToolFailure> {
        let before = self.account.memory.clone();
        let view = self.world.view(date, PreMarket);
        let result = call(tool, args, view, &mut self.account, &self.limits, &mut Control::default());
        assert!(result.is_ok() || self.account.memory == before, "a refusal writes nothing");
        result
    }

    fn remember(&mut self, args: Value, date: &str) -> Result<Value, ToolFailure> {
        self.call("remember", args, date).map(|v| v["memory"].clone())
    }

    fn write(&mut self, content: &str, kind: &str, tags: &[&str]) -> String {
        let args = json!({"content": content, "memory_type": kind, "tags": tags});
        self.remember(args, TODAY).unwrap()["memory_id"].as_str().unwrap().to_owned()
    }

    fn search(&mut self, args: Value, date: &str) -> Vec<String> {
        let found = self.call("search_memory", args, date).unwrap();
        let memories = found["memories"].as_array().unwrap();
        assert_eq!(found["count"], memories.len());
        assert_eq!(found["empty_reason"].is_string(), found["total"] == 0, "{found}");
        memories.iter().map(|m| m["memory_id"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_record_is_kept_in_normal_form() {
    let mut desk = Desk::new(0, 0);
    let args =
        json!({"content": "  waits for volume\n", "memory_type": "lesson", "tags": ["b", " a", "a", " "], "importance": 1});
    let output = desk.call("remember", args, TODAY).unwrap();
    assert_eq!(
        output["memory"],
        json!({
            "event": "remember", "date": TODAY, "memory_id": "mem-0001", "memory_type": "lesson", "content": "waits for volume",
            "tags": ["a", "b"], "importance": 1.0, "source": "agent", "status": "active", "supersedes_id": null,
            "superseded_on": null, "superseded_by": null
        })
    );
    assert_eq!(output["budget"], json!({"used": 1, "limit": null}));
    let plain = desk.remember(json!({"content": "x", "memory_type": "risk_rule"}), TODAY).unwrap();
    assert_eq!((&plain["importance"], &plain["tags"], &plain["memory_id"]), (&json!(0.5), &json!([]), &json!("mem-0002")));
}

#[test]
fn arguments_that_are_no_record_are_refused() {
    let contract = definition("remember", &Policy::default());
    let fits = |change: &dyn Fn(&mut Value)| {
        let mut args = json!({"content": "x", "memory_type": "lesson"});
        change(&mut args);
        contract.validate(&args).is_ok()
    };
    assert!(fits(&|a| a["content"] = json!("板".repeat(2_000))));
    assert!(!fits(&|a| a["content"] = json!("板".repeat(2_001))));
    assert!(!fits(&|a| a["content"] = json!("")));
    assert!(!fits(&|a| a["memory_type"] = json!("runtime_state")));
    assert!(!fits(&|a| a["importance"] = json!(1.01)));
    assert!(!fits(&|a| a["importance"] = json!(-0.01)));
    assert!(!fits(&|a| a["importance"] = json!("0.5")));
    assert!(fits(&|a| a["tags"] = json!(vec!["t"; 20])));
    assert!(!fits(&|a| a["tags"] = json!(vec!["t"; 21])));
    // complaint AR-6: an empty optional text is one clear error, not a record that is looked for and not found
    assert!(!fits(&|a| a["supersedes_id"] = json!("")));
    assert!(!fits(&|a| a["date"] = json!("2024-03-08")));
    let mut desk = Desk::new(0, 0);
    let blank = desk.remember(json!({"content": " \n\t", "memory_type": "lesson"}), TODAY).unwrap_err();
    assert_eq!(blank.code, ErrorCode::InvalidToolArguments);
}

#[test]
fn limits_refuse_in_their_order() {
    // engine E12.3: daily, then active, then conflict
    let mut desk = Desk::new(2, 3);
    desk.write("one", "hypothesis", &["x"]);
    desk.write("two", "lesson", &["x"]);
    let clash = json!({"content": "three", "memory_type": "hypothesis", "tags": ["x"]});
    let active = desk.remember(clash.clone(), TODAY).unwrap_err();
    assert_eq!((active.code, active.retryable()), (ErrorCode::ActiveMemoryLimitReached, true));
    assert_eq!(active.correction["candidate_memory_ids"], json!(["mem-0001", "mem-0002"]));
    assert_eq!(
        active.correction["candidate_memories"][1],
        json!({"memory_id": "mem-0002", "memory_type": "lesson", "tags": ["x"], "content_preview": "two"})
    );
    let mut repaired = clash.clone();
    repaired[active.correction["required_argument"].as_str().unwrap()] = active.correction["candidate_memory_ids"][0].clone();
    assert_eq!(desk.remember(repaired, TODAY).unwrap()["supersedes_id"], "mem-0001");
    // Superseding writes a record too, and the day's are used up now, whatever else is wrong with the call.
    let daily = desk.remember(json!({"content": "x", "memory_type": "lesson", "supersedes_id": "mem-0999"}), TODAY).unwrap_err();
    assert_eq!((daily.code, daily.retryable()), (ErrorCode::DailyMemoryLimitReached, false));
    assert_eq!((&daily.correction["writes_today"], &daily.correction["daily_limit"]), (&json!(3), &json!(3)));
    let next = desk.remember(json!({"content": "x", "memory_type": "lesson"}), NEXT).unwrap_err();
    assert_eq!(next.code, ErrorCode::ActiveMemoryLimitReached, "a new day has new writes, not new room");
}

#[test]
fn a_shared_tag_must_supersede_and_the_retry_arguments_do() {
    let mut desk = Desk::new(0, 0);
    for kind in ["hypothesis", "position_plan", "observation"] {
        let old = desk.write("old", kind, &["x", "y"]);
        let args = json!({"content": " new ", "memory_type": kind, "tags": ["z", " y"], "importance": 0.9});
        let failure = desk.remember(args.clone(), TODAY).unwrap_err();
        assert_eq!((failure.code, failure.retryable()), (ErrorCode::MemoryRequiresSupersedes, true));
        assert_eq!(failure.correction["candidate_memory_ids"], json!([old]));
        let mut same = args;
        same["supersedes_id"] = json!(old);
        assert_eq!(failure.correction["retry_arguments"], same, "the same call and nothing else");
        definition("remember", &Policy::default()).validate(&failure.correction["retry_arguments"]).unwrap();
        let written = desk.remember(failure.correction["retry_arguments"].clone(), TODAY).unwrap();
        assert_eq!((&written["supersedes_id"], &written["content"]), (&json!(old), &json!("new")));
        let gone = desk.call("get_memory", json!({"memory_id": old}), TODAY).unwrap()["memory"].clone();
        assert_eq!((&gone["status"], &gone["superseded_on"]), (&json!("superseded"), &json!(TODAY)));
        assert_eq!(gone["superseded_by"], written["memory_id"]);
    }
    // Other types, other tags and no tags share nothing.
    for (kind, tags) in [("lesson", ["y"]), ("risk_rule", ["y"]), ("hypothesis", ["Y"])] {
        desk.write("free", kind, &tags);
        desk.write("free", "lesson", &tags);
    }
    desk.write("free", "hypothesis", &[]);
    desk.write("free", "hypothesis", &[]);
}

#[test]
fn only_an_active_record_of_the_agent_can_be_superseded() {
    let mut desk = Desk::new(0, 0);
    desk.account.memory.write_hard_state(day(TODAY), "{}".to_owned());
    let first = desk.write("first", "lesson", &[]);
    let with = |id: &str| json!({"content": "x", "memory_type": "lesson", "supersedes_id": id});
    for unknown in ["mem-0999", "env-0001", "mem-1", "MEM-0001", "first"] {
        let failure = desk.remember(with(unknown), TODAY).unwrap_err();
        assert_eq!((failure.code, &failure.correction["required_tool"]), (ErrorCode::MemoryNotFound, &json!("search_memory")));
        let read = desk.call("get_memory", json!({"memory_id": unknown}), TODAY).unwrap_err();
        assert_eq!((read.code, read.retryable()), (ErrorCode::MemoryNotFound, true), "spec/tools.md b34: {unknown}");
    }
    desk.remember(with(&first), TODAY).unwrap();
    desk.remember(with("mem-0002"), TODAY).unwrap();
    // The correction names what is active now in the place of the old one, over two steps.
    let failure = desk.remember(with(&first), NEXT).unwrap_err();
    assert_eq!((failure.code, &failure.correction["superseded_by"]), (ErrorCode::MemoryNotFound, &json!("mem-0003")));
    let written = desk.remember(failure.correction["retry_arguments"].clone(), NEXT).unwrap();
    assert_eq!(written["supersedes_id"], "mem-0003");
}

#[test]
fn a_failure_offers_the_last_ten_records_by_short_previews() {
    let mut desk = Desk::new(12, 0);
    for i in 0..12 {
        desk.write(&format!("{i} {}", "词".repeat(500)), "lesson", &[]);
    }
    let failure = desk.remember(json!({"content": "x", "memory_type": "lesson"}), TODAY).unwrap_err();
    let offered = failure.correction["candidate_memories"].as_array().unwrap();
    assert_eq!((offered.len(), &offered[0]["memory_id"]), (10, &json!("mem-0003")));
    let preview = offered[0]["content_preview"].as_str().unwrap();
    assert!(preview.starts_with("2 词") && preview.ends_with("词 ...") && preview.chars().count() == 124, "{preview}");
}

#[test]
fn search_orders_by_score_and_ties_by_id() {
    // engine E12.4
    let mut desk = Desk::new(0, 0);
    let mut write = |content: &str, tags: &[&str], importance: f64| {
        let args = json!({"content": content, "memory_type": "lesson", "tags": tags, "importance": importance});
        desk.remember(args, TODAY).unwrap();
    };
    write("volume breakout", &[], 0.5); // 1: both words, not the phrase
    write("breakout volume confirms", &[], 0.0); // 2: the phrase
    write("breakout only", &[], 1.0); // 3: one word of two
    write("Breakout, Volume", &[], 0.5); // 4: both words
    write("unrelated", &["volume"], 0.9); // 5: one word, in a tag
    write("breakouts volumes", &[], 1.0); // 6: no whole word
    write("breakout only", &[], 1.0); // 7: as 3
    let mut check = |args: Value, expected: &[u32]| {
        let expected: Vec<String> = expected.iter().map(|n| format!("mem-{n:04}")).collect();
        assert_eq!(desk.search(args.clone(), TODAY), expected, "{args}");
    };
    check(json!({"query": "breakout volume", "max_results": 20}), &[2, 1, 4, 3, 7, 5]);
    check(json!({"query": "  BREAKOUT   "}), &[3, 7, 1, 4, 2]);
    check(json!({"query": "breakout volume", "max_results": 2}), &[2, 1]);
    check(json!({"query": "lesson"}), &[3, 6, 7, 5, 1]);
    check(json!({"query": "breakout", "memory_type": "hypothesis"}), &[]);
    check(json!({"query": "nothing here"}), &[]);
    check(json!({"query": "b.*t"}), &[]);
}

#[test]
fn cjk_text_is_found_by_pairs_and_runs() {
    let mut desk = Desk::new(0, 0);
    desk.write("板块扩散，领涨明确", "lesson", &[]);
    desk.write("板块轮动", "lesson", &[]);
    desk.write("alpha", "lesson", &["板块"]);
    assert_eq!(desk.search(json!({"query": "板块扩散"}), TODAY), ["mem-0001", "mem-0002", "mem-0003"]);
    assert_eq!(desk.search(json!({"query": "领涨 alpha"}), TODAY), ["mem-0001", "mem-0003"]);
    assert_eq!(desk.search(json!({"query": "块扩"}), TODAY), ["mem-0001"]);
}

#[test]
fn a_query_without_a_word_is_an_argument_error() {
    // spec/tools.md b41
    let mut desk = Desk::new(0, 0);
    desk.write("alpha", "lesson", &[]);
    for query in ["?!", "...", " ", "—", "。"] {
        let failure = desk.call("search_memory", json!({"query": query}), TODAY).unwrap_err();
        assert_eq!((failure.code, failure.retryable()), (ErrorCode::InvalidToolArguments, true), "{query}");
        assert!(failure.message.contains("`query`"));
    }
    let contract = definition("search_memory", &Policy::default());
    for bad in
        [json!({"query": ""}), json!({"query": "x", "max_results": 21}), json!({"query": "x", "memory_type": "runtime_state"})]
    {
        assert!(contract.validate(&bad).is_err(), "{bad}");
    }
}

#[test]
fn long_records_come_whole_and_the_others_on_the_next_pages() {
    let mut desk = Desk::new(0, 0);
    let long = format!("alpha {}", "\"板\" ".repeat(490));
    for _ in 0..25 {
        desk.write(&long, "lesson", &[]);
    }
    let found = desk.call("search_memory", json!({"query": "alpha", "max_results": 20}), TODAY).unwrap();
    assert!(found.to_string().chars().count() < 9_500, "an answer is never compacted");
    let shown = found["memories"].as_array().unwrap();
    assert!(!shown.is_empty() && shown.iter().all(|m| m["content"] == long.trim()));
    assert_eq!((&found["total"], &found["complete"], &found["returned"]), (&json!(25), &json!(false), &json!(shown.len())));
    // The next pages go on where the answer ended, and end with the last record.
    let mut ids: Vec<Value> = shown.iter().map(|m| m["memory_id"].clone()).collect();
    let first = found["next_cursor"].clone();
    let mut next = first.clone();
    while next.is_string() {
        let page = desk.call("search_memory", json!({"query": "alpha", "max_results": 20, "cursor": next}), TODAY).unwrap();
        assert_eq!(page["complete"], false);
        ids.extend(page["memories"].as_array().unwrap().iter().map(|m| m["memory_id"].clone()));
        next = page["next_cursor"].clone();
    }
    assert_eq!(ids, (1..=25).map(|n| json!(format!("mem-{n:04}"))).collect::<Vec<_>>());
    let one = desk.call("search_memory", json!({"query": "alpha", "max_results": 1}), TODAY).unwrap();
    assert_eq!((&one["count"], &one["complete"], one["next_cursor"].is_string()), (&json!(1), &json!(false), true));
    // A cursor is good for its own words and while the same records are found.
    let follow = |query: &str| json!({"query": query, "max_results": 20, "cursor": first});
    assert_eq!(desk.call("search_memory", follow("板"), TODAY).unwrap_err().code, ErrorCode::InvalidCursor);
    desk.write(&long, "lesson", &[]);
    assert_eq!(desk.call("search_memory", follow("alpha"), TODAY).unwrap_err().code, ErrorCode::InvalidCursor);
}

#[test]
fn an_empty_search_says_why() {
    let mut desk = Desk::new(0, 0);
    let reason = |desk: &mut Desk, args: Value| desk.call("search_memory", args, TODAY).unwrap()["empty_reason"].clone();
    assert_eq!(reason(&mut desk, json!({"query": "x"})), "there is no active record");
    desk.write("alpha", "lesson", &[]);
    assert_eq!(
        reason(&mut desk, json!({"query": "alpha", "memory_type": "risk_rule"})),
        "there is no active record of this type"
    );
    assert_eq!(reason(&mut desk, json!({"query": "beta"})), "no active record shares a word with the query");
}

#[test]
fn later_records_and_later_supersessions_do_not_exist_yet() {
    // engine E12.2: a memory that a run of later days wrote
    let mut memory = Memory::new();
    let draft = |content: &str, supersedes: Option<&str>| Draft {
        kind: MemoryKind::Lesson,
        content: content.to_owned(),
        tags: vec![],
        importance: 0.5,
        source: Source::Agent,
        supersedes: supersedes.map(str::to_owned),
    };
    memory.write(day(TODAY), draft("early alpha", None));
    memory.write(day(NEXT), draft("late alpha", Some("mem-0001")));
    memory.journal(day(NEXT), "late day");
    let mut desk = Desk::new(0, 0);
    desk.account.memory = memory;
    assert_eq!(desk.search(json!({"query": "alpha"}), TODAY), ["mem-0001"]);
    let early = desk.call("get_memory", json!({"memory_id": "mem-0001"}), TODAY).unwrap()["memory"].clone();
    assert_eq!((&early["status"], &early["superseded_by"]), (&json!("active"), &Value::Null));
    assert_eq!(desk.call("get_memory", json!({"memory_id": "mem-0002"}), TODAY).unwrap_err().code, ErrorCode::MemoryNotFound);
    let text = memory_text(&desk.account.memory, day(TODAY), &|d| d.to_string()).unwrap();
    assert!(text.contains("early alpha") && !text.contains("late"), "{text}");
    assert_eq!(desk.search(json!({"query": "alpha"}), NEXT), ["mem-0002"]);
}

#[test]
fn the_hard_state_holds_plans_and_conditions_in_visible_codes() {
    // engine E12.6
    let world = World::full();
    let mut account = rich();
    let limits = CardLimits { require_structured_plan: true, ..free() };
    let mut args = order_args("buy", PLAIN, 1_000);
    for (field, value) in [
        ("behavior_hypothesis", json!("base breaks upward")),
        ("confirmation_level", json!(9.9)),
        ("original_structural_stop", json!(9.5)),
        ("exit_condition", json!("close below 9.50")),
        ("expected_holding_days", json!(5)),
    ] {
        args[field] = value;
    }
    let open = world.view(TODAY, traderharness_market::DecisionPoint::Open1);
    call("place_order", args, open, &mut account, &limits, &mut Control::default()).unwrap();
    let state = traderharness_tools_exec::memory::hard_state::hard_state(&account, &open);
    let state: Value = serde_json::from_str(&state).unwrap();
    let plan = &state["position_plans"][PLAIN];
    assert_eq!((&plan["original_structural_stop"], &plan["entry_date"]), (&json!(9.5), &json!(TODAY)));
    assert_eq!(plan["conditional_order_id"], "cond-0001");
    let stop = &state["active_conditional_orders"][0];
    assert_eq!(
        (&stop["order_id"], &stop["stock_code"], &stop["trigger_price"]),
        (&json!("cond-0001"), &json!(PLAIN), &json!(9.5))
    );
    // Written only when it changed, each time in the place of the one before, and invisible to the agent.
    let mut desk = Desk { world, account, limits: free() };
    for content in ["a", "a", "b"] {
        desk.account.memory.write_hard_state(day(TODAY), content.to_owned());
    }
    assert_eq!(desk.account.memory.hard_state(day(TODAY)).unwrap().id, "env-0002");
    assert!(desk.search(json!({"query": "environment positions a b"}), TODAY).is_empty());
    assert_eq!(desk.write("x", "lesson", &[]), "mem-0001", "the agent's ids are its own");
}

fn noted(memory: &mut Memory, content: &str, importance: f64) {
    let draft = Draft {
        kind: MemoryKind::Lesson,
        content: content.to_owned(),
        tags: vec!["t".to_owned()],
        importance,
        source: Source::Agent,
        supersedes: None,
    };
    memory.write(day(DAYS[0]), draft);
}

#[test]
fn the_memory_text_reads_as_reviewed() {
    let mut memory = Memory::new();
    let label = |d: traderharness_market::Day| format!("D-{}", day(TODAY).days_since(d));
    assert_eq!(memory_text(&memory, day(TODAY), &label), None);
    memory.write_hard_state(day(DAYS[0]), "{\"position_plans\": {}}".to_owned());
    assert_eq!(memory_text(&memory, day(TODAY), &label), None, "the environment's record is not the agent's memory");
    noted(&mut memory, "Breakouts without volume fail.", 0.5);
    noted(&mut memory, "Never average down.\n- mem-9999 lesson: a line break is no new record", 1.0);
    noted(&mut memory, "Second of the same weight.", 0.5);
    for (i, date) in DAYS[..4].iter().enumerate() {
        memory.journal(day(date), &format!("Day {i}:\n  waited."));
    }
    insta::assert_snapshot!(memory_text(&memory, day(TODAY), &label).unwrap());
}

#[test]
fn records_are_never_cut_and_journals_make_room() {
    // engine E12.5
    let label = |d: traderharness_market::Day| d.to_string();
    let text = |records: usize, length: usize| {
        let mut memory = Memory::new();
        for i in 0..records {
            noted(&mut memory, &format!("<{}>", "r".repeat(length)), i as f64 / 100.0);
        }
        for date in &DAYS[..6] {
            memory.journal(day(date), &"j".repeat(500));
        }
        memory_text(&memory, day(DAYS[6]), &label).unwrap()
    };
    let journals = |text: &str| -> Vec<usize> {
        let after = text.split_once("summaries").map_or("", |(_, rest)| rest);
        after.lines().skip(1).map(|line| line.matches('j').count()).collect()
    };
    let roomy = text(3, 100);
    assert_eq!(journals(&roomy), [500; 5], "the last five days, in full");
    assert!(!roomy.contains(&format!("- {}:", DAYS[0])) && roomy.contains(&format!("- {}:", DAYS[1])));
    let tight = text(3, 2_000);
    assert!(tight.chars().count() <= CHARACTERS && journals(&tight).len() == 5);
    assert!(journals(&tight).iter().all(|n| (80..500).contains(n)), "{:?}", journals(&tight));
    let tighter = text(20, 318);
    assert!(tighter.chars().count() <= CHARACTERS);
    assert!((1..5).contains(&journals(&tighter).len()) && tighter.contains(DAYS[5]), "the newest days stay longest");
    let full = text(25, 2_000);
    assert_eq!(full.matches(&format!("<{}>", "r".repeat(2_000))).count(), 20, "whole records, the twenty most important");
    assert!(full.contains("5 more active records") && journals(&full).is_empty());
    assert!(full.contains("importance 0.24") && !full.contains("importance 0.04"));
}
