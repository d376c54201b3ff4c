//! `remember`: writes a record that later days can find (engine E12.1, E12.3).

use super::event::{AgentKind, MemoryKind, Source};
use super::shown::MemoryShown;
use super::store::{Draft, Memory, MemoryRecord};
use crate::{CardLimits, ExecCtx, ExecTools, control};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use traderharness_contract::{Effect, ErrorCode, Group, Repeat, Tool, ToolFailure, ToolSpec};
use traderharness_market::Day;

/// Importance when none is given.
const IMPORTANCE: f64 = 0.5;
/// Records a failure offers to supersede at most.
const CANDIDATES: usize = 10;
/// Characters of a record a failure shows.
const PREVIEW: usize = 120;

/// The tool.
#[derive(Debug)]
pub struct Remember;

/// What to remember.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What to remember, 1 to 2000 characters, in your own words. It is given back as written: name securities by their visible codes,
    /// and remember that a relative date counts from the day you write it.
    #[schemars(length(min = 1, max = 2000))]
    pub content: String,
    /// What the record is about.
    pub memory_type: AgentKind,
    /// Words to find it by, at most 20 of at most 100 characters; none by default. Blanks around them and doubles are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 100)))]
    pub tags: Option<Vec<String>>,
    /// Importance, 0 to 1; 0.5 by default. The most important active records are shown to you every morning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub importance: Option<f64>,
    /// Id of an active record that this one takes the place of, e.g. mem-0001. Leave it out for a new thought. Needed where a
    /// hypothesis, position_plan or observation shares a tag with an active record of its type, or when the card's number of active
    /// records is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub supersedes_id: Option<String>,
}

/// Use of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Budget {
    /// Records that count, this one included.
    pub used: usize,
    /// Records allowed by the card; null when it sets no limit.
    pub limit: Option<u32>,
}

/// The record as written.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The record.
    pub memory: MemoryShown,
    /// Records written today.
    pub budget: Budget,
    /// Active records.
    pub active: Budget,
}

impl Tool for Remember {
    type Family = ExecTools;
    type Args = Args;
    type Output = Output;
    const SPEC: ToolSpec = ToolSpec {
        name: "remember",
        group: Group::Memory,
        effect: Effect::Mutation,
        repeat: Repeat::OncePerMessage,
        description: "Writes a record into your memory, which stays over trading days.",
        notes: &[
            "Records are never changed: write a new one with supersedes_id instead. A superseded record stays readable by get_memory.",
            "Checked in this order: records per day, the record to supersede, active records, a tag shared with an active record of the \
             same type (hypothesis, position_plan, observation).",
        ],
        example: r#"{"content": "Breakouts without volume failed three times; wait for volume.", "memory_type": "lesson", "tags": ["breakout"], "importance": 0.7}"#,
        result_summary: "The record with its id, and the use of the card's limits.",
        errors: &[
            ErrorCode::DailyMemoryLimitReached,
            ErrorCode::MemoryNotFound,
            ErrorCode::ActiveMemoryLimitReached,
            ErrorCode::MemoryRequiresSupersedes,
        ],
        opt_in: false,
    };

    fn call(ctx: &mut ExecCtx<'_>, args: Args) -> Result<Output, ToolFailure> {
        control::words("content", &args.content)?;
        let today = ctx.view.today();
        let memory = &mut ctx.account.memory;
        let tags = tags(&args);
        check(memory, today, &args, &tags, ctx.limits)?;
        let draft = Draft {
            kind: args.memory_type.into(),
            content: args.content,
            tags,
            importance: args.importance.unwrap_or(IMPORTANCE),
            source: Source::Agent,
            supersedes: args.supersedes_id,
        };
        let shown = MemoryShown::of(memory.write(today, draft), today);
        let limit = |n: u32| (n > 0).then_some(n);
        Ok(Output {
            memory: shown,
            budget: Budget { used: written_on(memory, today), limit: limit(ctx.limits.max_daily_memories) },
            active: Budget { used: memory.active(today).count(), limit: limit(ctx.limits.max_active_memories) },
        })
    }
}

fn tags(args: &Args) -> Vec<String> {
    args.tags.iter().flatten().map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()).collect()
}

fn written_on(memory: &Memory, today: Day) -> usize {
    memory.records(today).filter(|r| r.day == today).count()
}

/// The limits of engine E12.3, in its order; nothing is written when one of them refuses.
fn check(memory: &Memory, today: Day, args: &Args, tags: &[String], limits: &CardLimits) -> Result<(), ToolFailure> {
    let written = written_on(memory, today);
    let daily = limits.max_daily_memories;
    if daily > 0 && written >= daily as usize {
        return Err(ToolFailure::new(
            ErrorCode::DailyMemoryLimitReached,
            format!("This card writes at most {daily} records a day, and {written} were written today; nothing was written."),
            "Keep the thought for the summary of finish_day, or write it on the next trading day.",
        )
        .with("writes_today", written)
        .with("daily_limit", daily));
    }
    if let Some(id) = &args.supersedes_id {
        return superseded(memory, today, id, args);
    }
    let active: Vec<&MemoryRecord> = memory.active(today).collect();
    let most = limits.max_active_memories;
    if most > 0 && active.len() >= most as usize {
        let offered = &active[active.len().saturating_sub(CANDIDATES)..];
        return Err(needs_supersedes(
            ErrorCode::ActiveMemoryLimitReached,
            format!("This card keeps at most {most} active records, and {} are active; nothing was written.", active.len()),
            "Send the same call with supersedes_id set to the record that this one may take the place of.",
            offered,
        )
        .with("required_tool_if_uncertain", "search_memory")
        .with("active_memories", active.len())
        .with("active_limit", most));
    }
    let kind = MemoryKind::from(args.memory_type);
    let alike: Vec<&MemoryRecord> =
        active.into_iter().filter(|r| r.kind == kind && r.tags.iter().any(|t| tags.contains(t))).collect();
    let Some(newest) = alike.last().filter(|_| kind.is_exclusive()) else { return Ok(()) };
    let retry = Args { supersedes_id: Some(newest.id.clone()), ..args.clone() };
    let offered = &alike[alike.len().saturating_sub(CANDIDATES)..];
    Err(needs_supersedes(
        ErrorCode::MemoryRequiresSupersedes,
        format!("An active {} shares a tag with this one; nothing was written.", kind.as_str()),
        "Send retry_arguments, which supersede the newest of the candidates, or set supersedes_id to another candidate. For a different \
         subject use other tags.",
        offered,
    )
    .with("required_tool_if_uncertain", "get_memory")
    .with_own_words("retry_arguments", serde_json::to_value(retry).unwrap_or_default()))
}

/// The record to supersede must be active.
fn superseded(memory: &Memory, today: Day, id: &str, args: &Args) -> Result<(), ToolFailure> {
    let failure = |message: &str, instruction: &str| {
        ToolFailure::new(ErrorCode::MemoryNotFound, message, instruction).with("required_tool", "search_memory")
    };
    let Some(record) = memory.find(id, today) else {
        return Err(failure(
            "supersedes_id names no record of yours; nothing was written.",
            "Use the id of an active record as search_memory shows it, or leave supersedes_id out.",
        ));
    };
    let mut newest = record;
    while let Some(next) = newest.superseded_by(today).and_then(|s| memory.find(&s.by, today)) {
        newest = next;
    }
    if newest.id == record.id {
        return Ok(());
    }
    let retry = Args { supersedes_id: Some(newest.id.clone()), ..args.clone() };
    Err(failure(
        "The record that supersedes_id names was superseded before; nothing was written.",
        "Send retry_arguments, which supersede the record that is active in its place, or leave supersedes_id out.",
    )
    .with("superseded_by", newest.id.clone())
    .with_own_words("retry_arguments", serde_json::to_value(retry).unwrap_or_default()))
}

fn needs_supersedes(code: ErrorCode, message: String, instruction: &str, offered: &[&MemoryRecord]) -> ToolFailure {
    let ids: Vec<&str> = offered.iter().map(|r| r.id.as_str()).collect();
    let previews: Vec<Value> = offered
        .iter()
        .map(|r| json!({ "memory_id": r.id, "memory_type": r.kind.as_str(), "tags": r.tags, "content_preview": preview(&r.content) }))
        .collect();
    ToolFailure::new(code, message, instruction)
        .with("required_argument", "supersedes_id")
        .with("candidate_memory_ids", ids)
        .with_own_words("candidate_memories", previews)
}

fn preview(content: &str) -> String {
    match content.char_indices().nth(PREVIEW) {
        Some((end, _)) => format!("{} ...", &content[..end]),
        None => content.to_owned(),
    }
}
