//! The five context layers (spec/seeds.md B11).

use async_trait::async_trait;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use traderharness_harness::context::{
    CLEARED, CompactError, Compaction, Context, ContextPolicy, NO_RESULT, Summariser, SummaryFault, TranscriptSink, estimate,
    estimate_text, repair,
};
use traderharness_replay::{Message, ToolCall};

/// Remembers what it was asked and answers with numbered notes, or as it is told.
#[derive(Default)]
struct Recording {
    asked: Vec<String>,
    /// Requests above this many tokens are too large.
    limit: Option<u64>,
    /// Faults of the first requests.
    faults: Vec<SummaryFault<&'static str>>,
}

#[async_trait]
impl Summariser for Recording {
    type Stop = &'static str;

    async fn summarise(&mut self, messages: Vec<Message>) -> Result<String, SummaryFault<&'static str>> {
        if self.limit.is_some_and(|limit| estimate(&messages) > limit) {
            return Err(SummaryFault::TooLarge);
        }
        if !self.faults.is_empty() {
            return Err(self.faults.remove(0));
        }
        assert_eq!(messages.iter().map(Message::role).collect::<Vec<_>>(), ["system", "user"]);
        self.asked.push(messages[1].content().unwrap().to_owned());
        Ok(format!("## Goal\nnotes {}", self.asked.len()))
    }
}

type Made = Result<Option<Compaction>, CompactError<&'static str>>;

fn compact(context: &mut Context, messages: &[Message], summariser: &mut Recording, focus: Option<&str>) -> Made {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(context.compact(messages, summariser, "PLAN-7 is open", focus))
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall::new(id, "execute_code", arguments)
}

fn contents(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|m| m.content().unwrap_or_default()).collect()
}

/// A policy under which only the layer in question works.
fn only(change: impl FnOnce(&mut ContextPolicy)) -> Context {
    let mut policy = ContextPolicy { threshold: 10, micro_percent: 0, collapse_percent: 0, ..ContextPolicy::default() };
    change(&mut policy);
    Context::new(policy)
}

// spec/seeds.md B11.1
#[test]
fn old_results_are_cleared() {
    let lengths = [5000, 80, 4000, 3000, 2000];
    let mut messages = vec![Message::system("s")];
    for (at, length) in lengths.iter().enumerate() {
        messages.push(Message::assistant("", &[call(&at.to_string(), "{}")]));
        messages.push(Message::tool(at.to_string(), "x".repeat(*length)));
    }
    let view = only(|policy| policy.micro_percent = 50).view(&messages);
    let results: Vec<&str> = view.iter().filter(|m| m.role() == "tool").map(|m| m.content().unwrap()).collect();
    assert_eq!(results[0], CLEARED);
    assert_eq!(results[1..].iter().map(|text| text.len()).collect::<Vec<_>>(), [80, 4000, 3000, 2000]);
    // Below its share, or switched off, nothing is cleared.
    let large =
        Context::new(ContextPolicy { threshold: 2 * estimate(&messages), collapse_percent: 0, ..ContextPolicy::default() });
    assert_eq!(large.view(&messages), messages);
    assert_eq!(Context::new(ContextPolicy { threshold: 0, ..ContextPolicy::default() }).view(&messages), messages);
}

// spec/seeds.md B11.2
#[test]
fn long_texts_are_folded() {
    let text: String = (0..6000).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    let mut messages = vec![
        Message::system(text.clone()),
        Message::user(text.clone()),
        Message::user("公".repeat(2401)),
        Message::user("short"),
    ];
    messages.extend((0..6).map(|_| Message::user(text.clone())));
    let view = only(|policy| policy.collapse_percent = 70).view(&messages);
    let folded = view[1].content().unwrap();
    assert_eq!(folded, format!("{}\n[... 4600 characters collapsed ...]\n{}", &text[..900], &text[5500..]));
    assert_eq!(view[2].content().unwrap().chars().filter(|c| *c == '公').count(), 1400);
    for spared in [0, 3, 4, 5, 6, 7, 8, 9] {
        assert_eq!(view[spared], messages[spared], "{spared}");
    }
}

// spec/seeds.md B11.4, complaint CX-2
#[test]
fn pairs_are_repaired() {
    let both = Message::assistant("x", &[call("a", "{}"), call("b", "{}")]);
    let a = Message::tool("a", "one");
    let check = |messages: &[Message], expected: &[Message]| assert_eq!(repair(messages.to_vec()), expected);
    check(&[both.clone(), a.clone()], &[both.clone(), Message::tool("b", NO_RESULT), a.clone()]);
    check(&[a.clone(), Message::user("u"), a.clone()], &[Message::user("u")]);
    check(std::slice::from_ref(&both), &[both.clone(), Message::tool("a", NO_RESULT), Message::tool("b", NO_RESULT)]);
    let b = Message::tool("b", "two");
    check(&[both.clone(), b.clone(), a.clone(), a.clone()], &[both.clone(), b.clone(), a.clone()]);
    // Ids that a provider uses again belong to the last message that has them.
    let again = [both.clone(), a.clone(), b.clone(), both.clone(), a.clone(), b.clone()];
    check(&again, &again);
}

// spec/seeds.md B11.3: the third message of 8,000 tokens would exceed the budget of the tail
#[test]
fn the_tail_is_what_fits_and_the_head_is_summarised() {
    let mut messages = vec![Message::system("You trade.")];
    messages.extend((0..5).map(|n| Message::user(format!("{n}{}", "x".repeat(31_999)))));
    let mut context = Context::new(ContextPolicy::default());
    context.start(1);
    assert!(!context.is_due(&messages[..5]));
    messages.push(Message::user("y".repeat(31_000)));
    assert!(context.is_due(&messages));
    let mut summariser = Recording::default();
    let made = compact(&mut context, &messages, &mut summariser, Some("the plan for tomorrow")).unwrap().unwrap();
    assert_eq!((made.covered.clone(), made.summaries, made.truncated, made.faults.len()), (1..5, 2, None, 0));
    assert!(made.tokens_after < made.tokens_before && !context.is_due(&messages));
    let view = context.view(&messages);
    assert_eq!((view.len(), &view[0], &view[2..]), (4, &messages[0], &messages[5..]));
    let handoff = view[1].content().unwrap();
    assert_eq!(view[1].role(), "user");
    assert!(
        handoff.contains("## Goal\nnotes 2") && handoff.ends_with("## State kept by the environment\n\nPLAN-7 is open"),
        "{handoff}"
    );
    assert!(
        summariser
            .asked
            .iter()
            .all(|asked| asked.contains("two thirds of the notes to this topic") && asked.contains("the plan for tomorrow"))
    );
    // The second chunk updates the notes of the first.
    assert!(!summariser.asked[0].contains("<notes>") && summariser.asked[1].contains("<notes>\n## Goal\nnotes 1\n</notes>"));

    // Layer 5: a later compaction updates the notes with the new turns alone.
    messages.extend((0..4).map(|n| Message::user(format!("new {n} {}", "z".repeat(31_000)))));
    let mut later = Recording::default();
    let made = compact(&mut context, &messages, &mut later, None).unwrap().unwrap();
    assert_eq!(made.covered, 5..9);
    assert!(later.asked[0].contains("<notes>\n## Goal\nnotes 2\n</notes>") && later.asked[0].contains("[message 5]"));
    assert!(!later.asked.concat().contains("[message 4]"));
}

#[test]
fn too_little_to_leave_out_is_left_alone() {
    let mut context = Context::new(ContextPolicy::default());
    for messages in [
        vec![],
        vec![Message::system("s")],
        vec![Message::system("s"), Message::user("a")],
        vec![Message::system("s"), Message::user("a"), Message::user("b")],
    ] {
        assert_eq!(compact(&mut context, &messages, &mut Recording::default(), None), Ok(None));
        assert_eq!(context.view(&messages), messages);
    }
    // Three small ones: the older half goes, as was asked.
    let three = [Message::system("s"), Message::user("a"), Message::user("b"), Message::user("c")];
    assert_eq!(compact(&mut context, &three, &mut Recording::default(), None).unwrap().unwrap().covered, 1..2);
    context.start(1);
    assert_eq!(context.view(&three), three, "a new conversation has no hand-off");
}

// complaint CX-2: no cut inside a parallel batch, wherever the budget would put it
#[test]
fn no_cut_parts_a_batch() {
    let mut messages = vec![Message::system("s"), Message::user("brief")];
    for turn in 0..4 {
        let ids: Vec<String> = (0..3).map(|n| format!("{turn}-{n}")).collect();
        messages.push(Message::assistant("look", &ids.iter().map(|id| call(id, "{}")).collect::<Vec<_>>()));
        messages.extend(ids.iter().map(|id| Message::tool(id, "r".repeat(100))));
    }
    for tail_tokens in 0..700 {
        let mut context = Context::new(ContextPolicy { tail_tokens, threshold: 100_000, ..ContextPolicy::default() });
        let made = compact(&mut context, &messages, &mut Recording::default(), None).unwrap().unwrap();
        assert!(made.covered.end == messages.len() || messages[made.covered.end].role() != "tool", "{tail_tokens}");
        let view = context.view(&messages);
        assert_eq!(view[2..], messages[made.covered.end..], "nothing had to be repaired");
    }
}

// complaint CX-4
#[test]
fn a_summary_request_that_is_too_large_is_made_smaller() {
    let mut messages = vec![Message::system("s")];
    messages.extend((0..60).map(|n| Message::user(format!("#{n}# {}", "股票".repeat(3_000)))));
    assert!(estimate(&messages) > 9 * 40_000);
    let mut context = Context::new(ContextPolicy::default());
    let mut summariser = Recording { limit: Some(3_000), ..Recording::default() };
    let made = compact(&mut context, &messages, &mut summariser, None).unwrap().unwrap();
    assert_eq!((made.truncated, made.faults.len()), (None, 3), "20,000, 10,000 and 5,000 were too large");
    for n in 0..made.covered.end - 1 {
        let seen = summariser.asked.iter().filter(|asked| asked.contains(&format!("#{n}# "))).count();
        assert_eq!(seen, 1, "message {n}");
    }
    assert!(summariser.asked[0].contains("[message 1, part 1, more follows]"));
    assert!(summariser.asked.concat().contains("its last]"));
    assert!(!context.is_due(&messages));

    // Nothing fits: the run goes on, and the view says what is missing, also after the next compaction.
    let mut hopeless = Recording { limit: Some(10), ..Recording::default() };
    let mut context = Context::new(ContextPolicy::default());
    let made = compact(&mut context, &messages, &mut hopeless, None).unwrap().unwrap();
    assert_eq!((made.truncated.clone(), made.summaries), (Some(made.covered.clone()), 0));
    let last = made.covered.end - 1;
    assert!(context.view(&messages)[1].content().unwrap().contains(&format!("messages 1 to {last} could not be summarised")));
    messages.extend((0..60).map(|_| Message::user("more ".repeat(400))));
    let mut later = Recording::default();
    compact(&mut context, &messages, &mut later, None).unwrap().unwrap();
    assert!(later.asked[0].contains(&format!("[Messages 1 to {last} could not be summarised")));
}

#[test]
fn a_failed_summary_costs_its_part_and_a_stop_costs_nothing() {
    let mut messages = vec![Message::system("s")];
    messages.extend((0..12).map(|n| Message::user(format!("#{n}# {}", "x".repeat(40_000)))));
    let mut context = Context::new(ContextPolicy::default());
    let mut stopped = Recording { faults: vec![SummaryFault::Stop("cancelled")], ..Recording::default() };
    assert_eq!(compact(&mut context, &messages, &mut stopped, None), Err(CompactError::Stop("cancelled")));
    let without = Context::new(ContextPolicy::default()).view(&messages);
    assert_eq!(context.view(&messages), without);

    let mut failing = Recording { faults: vec![SummaryFault::Failed("no answer in 300 s".into())], ..Recording::default() };
    let made = compact(&mut context, &messages, &mut failing, None).unwrap().unwrap();
    assert_eq!((made.faults.as_slice(), made.truncated.is_some()), (["no answer in 300 s".to_owned()].as_slice(), true));
    let handoff = context.view(&messages)[1].content().unwrap().to_owned();
    assert!(handoff.contains("Truncated") && handoff.contains("PLAN-7 is open"));
    assert!(!handoff.contains("300 s"), "how it failed is no text of the model's view");
}

/// Keeps transcripts in memory; full after `room`.
struct Kept(Arc<Mutex<Vec<(String, usize)>>>, usize);

impl TranscriptSink for Kept {
    fn keep(&mut self, name: &str, messages: &[Message]) -> Result<bool, String> {
        let mut kept = self.0.lock().unwrap();
        if kept.len() == self.1 {
            return Err("no space left".into());
        }
        kept.push((name.to_owned(), messages.len()));
        Ok(true)
    }
}

// spec/seeds.md B11.7: names by a counter that never repeats
#[test]
fn transcripts_are_kept_first_and_named_once() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let mut context = Context::new(ContextPolicy::default()).with_transcripts(Box::new(Kept(Arc::clone(&kept), 2)));
    let messages: Vec<Message> = (0..6).map(|n| Message::user(format!("m{n}"))).collect();
    compact(&mut context, &messages[..5], &mut Recording::default(), None).unwrap().unwrap();
    assert!(context.view(&messages)[1].content().unwrap().contains("as transcript-0001."));
    context.start(1);
    let made = compact(&mut context, &messages, &mut Recording::default(), None).unwrap().unwrap();
    assert_eq!(made.transcript.as_deref(), Some("transcript-0002"));
    assert_eq!(*kept.lock().unwrap(), [("transcript-0001".to_owned(), 5), ("transcript-0002".to_owned(), 6)]);
    let before = context.view(&messages);
    let mut asked = Recording::default();
    let full = compact(&mut context, &messages, &mut asked, None);
    assert_eq!(full, Err(CompactError::Transcript("no space left".into())));
    assert_eq!((asked.asked.len(), context.view(&messages)), (0, before));
}

// spec/seeds.md B11.7, complaint CX-6
#[test]
fn verified_results_come_along() {
    let mut messages = vec![Message::system("s")];
    let mut run = |id: usize, code: &str, result: String| {
        messages.push(Message::assistant("", &[call(&id.to_string(), code)]));
        messages.push(Message::tool(id.to_string(), result));
    };
    run(0, "{\"code\": \"result = 1 + 1\"}", "{\"success\": true,\n \"result\": 2}".into());
    run(1, "{\"code\": \"1/0\"}", "{\"success\": false, \"error\": \"x\"}".into());
    (2..70).for_each(|n| run(n, &format!("{{\"code\": \"{n}\"}}"), format!("{{\"result\": {n}}}")));
    run(70, "{\"code\": \"result = 1 + 1\"}", "{\"success\": true, \"result\": 2}".into());
    run(71, "{\"code\": \"long\"}", "r".repeat(5_000));
    messages.push(Message::user("last"));
    let mut context = Context::new(ContextPolicy { tail_tokens: 30, ..ContextPolicy::default() });
    compact(&mut context, &messages, &mut Recording::default(), None).unwrap().unwrap();
    let handoff = context.view(&messages)[1].content().unwrap().to_owned();
    let lines: Vec<&str> = handoff.lines().filter(|line| line.starts_with("- execute_code")).collect();
    assert_eq!(lines.len(), 60);
    assert_eq!(
        lines[58], "- execute_code({\"code\": \"result = 1 + 1\"}) = {\"success\": true, \"result\": 2}",
        "once, at its last place"
    );
    assert!(lines[59].len() < 300 && lines[59].ends_with("..."));
    assert!(!handoff.contains("1/0"), "a failed call proves nothing");
}

#[test]
fn pinned_messages_stay_whole_and_a_policy_reads_strictly() {
    let messages: Vec<Message> = (0..20).map(|n| Message::user(format!("{n} {}", "x".repeat(5_000)))).collect();
    let mut context = Context::new(ContextPolicy { threshold: 2_000, ..ContextPolicy::default() });
    context.start(3);
    compact(&mut context, &messages, &mut Recording::default(), None).unwrap().unwrap();
    assert_eq!(context.view(&messages)[..3], messages[..3]);
    let policy: ContextPolicy = serde_json::from_str("{\"threshold\": 9}").unwrap();
    assert_eq!(policy, ContextPolicy { threshold: 9, ..ContextPolicy::default() });
    assert!(serde_json::from_str::<ContextPolicy>("{\"treshold\": 9}").is_err());
}

/// One step of a made-up conversation: what a user says, or calls with their results, some missing, some of nobody.
#[derive(Debug, Clone)]
enum Step {
    Says(usize),
    Calls(usize, Vec<Option<usize>>),
    Orphan,
}

fn conversation(steps: &[Step], start: usize) -> Vec<Message> {
    let mut out = Vec::new();
    let mut tag = start;
    let mut say = |length: usize| {
        tag += 1;
        format!("#{tag}# {}", "word 词 ".repeat(length))
    };
    for (turn, step) in steps.iter().enumerate() {
        match step {
            Step::Says(length) => out.push(Message::user(say(*length))),
            Step::Orphan => out.push(Message::tool("nobody", say(3))),
            Step::Calls(length, results) => {
                // Ids come again in every turn, as some providers send them.
                let calls: Vec<ToolCall> = (0..results.len()).map(|n| call(&format!("call-{n}-{}", turn % 2), "{}")).collect();
                out.push(Message::assistant(say(*length), &calls));
                for (call, result) in calls.iter().zip(results) {
                    out.extend(result.map(|length| Message::tool(&call.id, say(length))));
                }
            }
        }
    }
    out
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = || prop_oneof![4 => 0..40_usize, 1 => 300..700_usize];
    let step = prop_oneof![
        3 => length().prop_map(Step::Says),
        5 => (length(), proptest::collection::vec(proptest::option::weighted(0.9, length()), 1..5)).prop_map(|(l, r)| Step::Calls(l, r)),
        1 => Just(Step::Orphan),
    ];
    proptest::collection::vec(step, 0..14)
}

fn policy() -> impl Strategy<Value = ContextPolicy> {
    (200..6_000_u64, 0..3_000_u64, 0..2_000_u64, 0..4_usize, 0..8_usize).prop_map(
        |(threshold, tail_tokens, chunk_tokens, keep_results, spare_last)| ContextPolicy {
            threshold,
            tail_tokens,
            chunk_tokens,
            keep_results,
            spare_last,
            collapse_over: 300,
            collapse_head: 100,
            collapse_tail: 50,
            ..ContextPolicy::default()
        },
    )
}

/// Every result directly behind the message of its call, every call with exactly one result.
fn paired(view: &[Message]) -> bool {
    let mut at = 0;
    while at < view.len() {
        let mut open: Vec<String> = view[at].tool_calls().into_iter().map(|call| call.id).collect();
        if view[at].role() == "tool" {
            return false;
        }
        at += 1;
        while at < view.len() && view[at].role() == "tool" {
            let Some(place) = open.iter().position(|id| Some(id.as_str()) == view[at].tool_call_id()) else { return false };
            open.remove(place);
            at += 1;
        }
        if !open.is_empty() {
            return false;
        }
    }
    true
}

fn tags(text: &str) -> Vec<&str> {
    text.split('#').filter(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    // complaint CX-2, two and three compactions in a row
    #[test]
    fn every_view_is_paired_ordered_and_never_longer(policy in policy(), parts in proptest::collection::vec(steps(), 1..4), due in any::<bool>()) {
        let mut context = Context::new(policy.clone());
        let mut messages = vec![Message::system("#0# s")];
        for part in &parts {
            messages.extend(conversation(part, messages.len()));
            for _ in 0..2 {
                let view = context.view(&messages);
                prop_assert!(paired(&view), "{:?}", contents(&view));
                // What is shown of the conversation stands there in the same order, each text the same or shorter.
                let mut from = 0;
                for shown in view.iter().filter(|m| m.content() != Some(NO_RESULT) && !m.content().unwrap_or_default().starts_with("# Earlier")) {
                    let length = |m: &Message| m.content().map_or(0, |text| text.chars().count());
                    let same = |m: &Message| m.role() == shown.role() && m.tool_call_id() == shown.tool_call_id()
                        && m.tool_calls() == shown.tool_calls()
                        && (m == shown || (length(shown) < length(m)
                            && (shown.content() == Some(CLEARED) || tags(shown.content().unwrap())[0] == tags(m.content().unwrap())[0])));
                    let found = messages[from..].iter().position(same);
                    prop_assert!(found.is_some(), "{:?}", shown);
                    from += found.unwrap() + 1;
                }
                // A view of a view is the view.
                let again = Context::new(policy.clone());
                let twice = again.view(&again.view(&messages));
                prop_assert_eq!(twice, again.view(&messages));
                if !due || context.is_due(&messages) {
                    compact(&mut context, &messages, &mut Recording::default(), None).unwrap();
                }
            }
        }
    }

    // complaint CX-1
    #[test]
    fn every_message_is_summarised_once_or_shown(policy in policy(), parts in proptest::collection::vec(steps(), 1..4)) {
        let mut context = Context::new(policy);
        let mut messages = vec![Message::system("#0# s")];
        let mut asked = Vec::new();
        let mut shown_from = 1;
        for part in &parts {
            messages.extend(conversation(part, messages.len()));
            let mut summariser = Recording::default();
            if let Some(made) = compact(&mut context, &messages, &mut summariser, None).unwrap() {
                prop_assert_eq!(made.covered.start, shown_from);
                shown_from = made.covered.end;
            }
            asked.append(&mut summariser.asked);
        }
        for (place, message) in messages.iter().enumerate() {
            let tag = format!("#{}#", tags(message.content().unwrap())[0]);
            let seen = asked.iter().map(|text| text.matches(&tag).count()).sum::<usize>();
            prop_assert_eq!(seen, usize::from(place > 0 && place < shown_from), "message {}", place);
        }
        for text in &asked {
            // Notes and labels aside, a chunk keeps to its size.
            let chunk = text.split("<conversation>").nth(1).unwrap();
            prop_assert!(estimate_text(chunk) <= 2_200);
        }
    }

    #[test]
    fn the_estimate_grows_with_the_conversation(steps in steps(), more in ".{0,20}") {
        let messages = conversation(&steps, 0);
        for cut in 0..messages.len() {
            prop_assert!(estimate(&messages[..cut]) <= estimate(&messages[..=cut]));
        }
        let longer = format!("股 a{more}");
        prop_assert!(estimate_text("股 a") <= estimate_text(&longer));
    }
}
