//! The bridge between the contract's field kinds and the market's mask: codes, days, times, names and texts on their way in and out.

use std::borrow::Cow;
use traderharness_contract::{ErrorCode, FieldKind, Masker, ToolFailure, kinds::KindPlan};
use traderharness_market::{Code, Day, Mask, Minute, SecId, Store, Unresolved, View};

use serde_json::{Value, json};

/// Masks fields of one call; dates are relative to the session's day.
#[derive(Debug, Clone, Copy)]
pub struct FieldMask<'a> {
    /// Universe, to find the alias of a code.
    pub store: &'a Store,
    /// Mask of the run.
    pub mask: &'a Mask,
    /// Day that shows as `D+0`.
    pub today: Day,
}

impl Masker for FieldMask<'_> {
    fn mask<'v>(&self, kind: FieldKind, value: &'v str) -> Cow<'v, str> {
        field(kind, value, self.mask, self.today, |code| self.store.find(code))
    }
}

/// As [`FieldMask`], for who holds a view and no store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViewMask<'a>(pub(crate) View<'a>);

impl Masker for ViewMask<'_> {
    fn mask<'v>(&self, kind: FieldKind, value: &'v str) -> Cow<'v, str> {
        field(kind, value, self.0.mask(), self.0.today(), |code| self.0.find(code))
    }
}

fn field<'v>(kind: FieldKind, value: &'v str, mask: &Mask, today: Day, find: impl Fn(Code) -> Option<SecId>) -> Cow<'v, str> {
    let text = || mask.text(value, today);
    match kind {
        FieldKind::Code => Code::parse(value).and_then(find).map_or_else(text, |sec| Cow::Owned(mask.code(sec).to_owned())),
        FieldKind::Day => Day::parse(value).map_or_else(|_| text(), |day| Cow::Owned(mask.day(day, today))),
        FieldKind::Time => parse_moment(value).map_or_else(text, |(day, minute)| Cow::Owned(mask.moment(day.at(minute), today))),
        FieldKind::Name => mask.name(value),
        FieldKind::Text => text(),
    }
}

impl FieldMask<'_> {
    /// Masks a text from a source.
    pub fn text<'v>(&self, value: &'v str) -> Cow<'v, str> {
        self.mask.text(value, self.today)
    }

    /// Masks what a handler said about a failure: its sentences and every string of its facts. Received arguments are added
    /// later, exactly as the agent sent them, and its own words stay as they are.
    pub fn failure(&self, mut failure: ToolFailure) -> ToolFailure {
        failure.message = self.text(&failure.message).into_owned();
        failure.instruction = self.text(&failure.instruction).into_owned();
        for (key, value) in &mut failure.correction {
            if !failure.own_words.contains(&key.as_str()) {
                self.strings(value);
            }
        }
        failure
    }

    /// Masks every string of an environment record.
    pub fn value(&self, mut value: Value) -> Value {
        self.strings(&mut value);
        value
    }

    fn strings(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(new) = self.text(text) {
                    *text = new;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.strings(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.strings(item)),
            _ => {}
        }
    }
}

fn parse_moment(text: &str) -> Option<(Day, Minute)> {
    let (day, time) = text.split_once(' ')?;
    let (hour, minute) = time.split_once(':')?;
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.get(..2)?.parse().ok()?);
    (hour < 24 && minute < 60).then_some(())?;
    Some((Day::parse(day).ok()?, Minute::at(hour, minute)))
}

/// The security of a visible code among those that are listed at the clock.
fn resolve_listed(view: &View<'_>, visible: &str) -> Result<SecId, Unresolved> {
    match view.mask().resolve(visible) {
        Ok(sec) if view.is_listed(sec) => Ok(sec),
        Err(Unresolved::Ambiguous(mut candidates)) => {
            candidates.retain(|sec| view.is_listed(*sec));
            Err(if candidates.is_empty() { Unresolved::Unknown } else { Unresolved::Ambiguous(candidates) })
        }
        Ok(_) | Err(Unresolved::Unknown) => Err(Unresolved::Unknown),
    }
}

/// Replaces every visible code of `args` by the real one. Free text is never touched (DESIGN, step 4). A security whose first bar lies
/// after the clock is as unknown as a code that does not exist, to the letter: the answer must not tell that it will be listed.
///
/// # Errors
/// `ambiguous_masked_stock_code` with all candidates and complete retry arguments, or `unknown_security` without an echo of any mapping.
pub fn unmask_arguments(plan: &KindPlan, args: &Value, view: &View<'_>) -> Result<Value, ToolFailure> {
    let mask = view.mask();
    let mut real = args.clone();
    let mut fault: Option<(String, Unresolved)> = None;
    plan.rewrite(&mut real, &mut |kind, text| {
        if kind != FieldKind::Code {
            return None;
        }
        match resolve_listed(view, text) {
            Ok(sec) => Some(view.code(sec).to_string()),
            Err(unresolved) => {
                fault.get_or_insert_with(|| (text.to_owned(), unresolved));
                None
            }
        }
    });
    let Some((sent, unresolved)) = fault else { return Ok(real) };
    Err(match unresolved {
        Unresolved::Unknown => ToolFailure::new(
            ErrorCode::UnknownSecurity,
            "The code is not a visible code of this run.",
            if mask.config().entities {
                "Use a complete visible code exactly as a tool returned it, board prefix included, such as SHM-000360."
            } else {
                "Use the six digits of a security that a tool of this run returned."
            },
        ),
        Unresolved::Ambiguous(candidates) => {
            let aliases: Vec<&str> = candidates.iter().map(|sec| mask.code(*sec)).collect();
            let choices: Vec<Value> = aliases
                .iter()
                .map(|alias| {
                    let mut choice = args.clone();
                    plan.rewrite(&mut choice, &mut |kind, text| {
                        (kind == FieldKind::Code && text == sent).then(|| (*alias).to_owned())
                    });
                    choice
                })
                .collect();
            ToolFailure::new(
                ErrorCode::AmbiguousMaskedStockCode,
                "The code is not complete, and an incomplete code is never guessed.",
                "Pick the security you mean from candidate_aliases and repeat the call with one of retry_argument_choices.",
            )
            .with("candidate_aliases", json!(aliases))
            .with("retry_argument_choices", Value::Array(choices))
        }
    })
}
