//! Prompts: the day protocol, one for the morning, one for a decision point, one for the close. Each brings the session's own texts with
//! it, so that a client that reads no resources can hand them to its model.

use super::resources::{markdown, point_only};
use super::seat::Seat;
use super::{Door, desk};
use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;
use std::sync::Arc;

/// The longest focus that is taken over.
const LONGEST_FOCUS: usize = 1000;

struct Form {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// Whether the texts that are said once a day come with it.
    whole: bool,
    steps: &'static str,
}

const FORMS: [Form; 3] = [
    Form {
        name: "morning",
        title: "Morning",
        description: "Begins a trading day: the task, the memory, the morning's brief, and what to do before the open.",
        whole: true,
        steps: "Before the open: read the market and what you remember, decide what to watch, and set conditional orders if you want any. \
                Then call complete_phase; the clock moves and the first bars of the day become visible.",
    },
    Form {
        name: "decision_point",
        title: "Decision point",
        description: "The brief of the current decision point, and how to work through it.",
        whole: false,
        steps: "At this decision point: look at what changed, check your positions and orders, and trade only with a reason that you \
                could defend. A failed call says how to repair it; repair it or give it up in the completion. End with complete_phase.",
    },
    Form {
        name: "close",
        title: "Close",
        description: "The last decision point of the day: final orders, what to remember, and the end of the day.",
        whole: false,
        steps: "Before the day ends: make the last orders, write down with remember what tomorrow needs to know, and call finish_day. \
                The next day begins at once unless this was the last one.",
    },
];

/// All prompts.
pub(super) fn all() -> Vec<Prompt> {
    let words = format!("What to look at first; at most {LONGEST_FOCUS} characters.");
    let focus = || PromptArgument::new("focus").with_description(words.as_str()).with_required(false);
    FORMS.iter().map(|form| Prompt::new(form.name, Some(form.description), Some(vec![focus()])).with_title(form.title)).collect()
}

/// A prompt with the session's texts.
///
/// # Errors
/// Invalid parameters for an unknown prompt or argument; what the house refuses otherwise.
pub(super) async fn get(
    door: &Door,
    seat: &Seat,
    name: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    let Some(form) = FORMS.iter().find(|form| form.name == name) else {
        let shown: String = name.chars().take(100).collect();
        let names = FORMS.map(|form| form.name).join(", ");
        return Err(ErrorData::invalid_params(format!("There is no prompt {shown}. Prompts: {names}."), None));
    };
    let focus = read_focus(arguments)?;
    let (caller, session) = (Arc::clone(&seat.caller), seat.session.clone());
    let (texts, state) = door
        .run(&seat.caller, move |house| Ok((house.brief(&caller, &session)?, house.session(&caller, &session)?)))
        .await
        .map_err(|refusal| desk::refused(&refusal))?;
    let brief = if form.whole { markdown(&texts) } else { point_only(&texts) };
    let mut text = format!("{brief}\n\n---\n\n{}", form.steps);
    let fits = match form.name {
        "morning" => state.point == "pre_market",
        "close" => state.point == "close_2",
        _ => true,
    };
    if state.finished {
        text = format!("{brief}\n\n---\n\nThe session has ended: nothing can be traded any more.");
    } else if !fits {
        text.push_str(&format!(
            "\n\nThe clock stands at {} of {}: what is said above is the brief of that point.",
            state.point, state.day
        ));
    }
    if let Some(focus) = focus {
        text.push_str(&format!("\n\nLook at this first: {focus}"));
    }
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).with_description(form.description))
}

fn read_focus(arguments: Option<&JsonObject>) -> Result<Option<String>, ErrorData> {
    let mut focus = None;
    for (name, value) in arguments.into_iter().flatten() {
        match (name.as_str(), value) {
            ("focus", Value::String(text)) if text.chars().count() <= LONGEST_FOCUS => focus = Some(text.trim().to_owned()),
            ("focus", _) => {
                return Err(ErrorData::invalid_params(format!("focus is a text of at most {LONGEST_FOCUS} characters."), None));
            }
            _ => return Err(ErrorData::invalid_params("The only argument is focus.", None)),
        }
    }
    Ok(focus.filter(|text| !text.is_empty()))
}
