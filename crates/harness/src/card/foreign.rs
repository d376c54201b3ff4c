//! Cards of the Python implementation as cards of this program: each field is told for what became of it, and what cannot be
//! understood is refused with its place. Nothing is dropped without a word.

use super::{Advisor, Card, CardError, CardFees, Committee, Memo};
use crate::toolbox::{Toolbox, ToolboxError};
use serde::Serialize;
use serde_json::{Map, Value};
use traderharness_contract::document::closest;
use traderharness_contract::json::pointer_segment;

/// What a file may hold beside the fields of a card of the Python implementation.
const BESIDE: [&str; 3] = ["persona_replacements", "advisors", "mask_dates"];
/// Fields that neither a limit nor a message depends on, and the fees, which are always the same there. So it is with every model.
const SHAPES_NO_RUN: [&str; 2] = ["/description", "/fees"];

/// What became of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Became {
    /// It stands in the card as it stood in the file.
    Mapped,
    /// The file left it out.
    Defaulted,
    /// The file had a value of another kind, taken as the Python implementation takes it.
    Coerced,
    /// A card here has no such field, or none that would do the same.
    NotMapped,
}

/// What is told of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// JSON Pointer into the file, e.g. `/advisors/0/prompt`.
    pub pointer: String,
    /// What became of it.
    pub became: Became,
    /// What the card has now, or what to do; empty for a value that was taken as it stood.
    pub what: String,
}

/// A card that was converted.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The card, checked, tool names included.
    pub card: Card,
    /// One entry for each field, in the order of the card.
    pub told: Vec<Told>,
}

impl Converted {
    /// Fields that shape a run and that the file left out or a card here does not have: with none, a run of it can be set up again.
    pub fn lacking(&self) -> impl Iterator<Item = &Told> {
        self.told.iter().filter(|told| match told.became {
            Became::Mapped | Became::Coerced => false,
            Became::Defaulted => !SHAPES_NO_RUN.contains(&told.pointer.as_str()) && !told.pointer.ends_with("/model"),
            Became::NotMapped => told.pointer != "/mask_dates",
        })
    }
}

/// A value that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// JSON Pointer into the file; empty for the file as a whole.
    pub pointer: String,
    /// Why.
    pub reason: String,
}

/// A file that cannot be converted, with everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the card cannot be converted: {}", .refused.iter().map(|r| format!("`{}`: {}", r.pointer, r.reason)).collect::<Vec<_>>().join("; "))]
pub struct ConvertError {
    /// At least one.
    pub refused: Vec<Refused>,
}

/// A value taken, with what was done to it.
type Taken<T> = Result<(T, Option<String>), String>;

impl Card {
    /// Takes a card of the Python implementation, or the file of a committee of it (`advisors`, `mask_dates`).
    ///
    /// A field that is left out gets the default it has there, but for the persona: the sentence there is not ours, and the card stays
    /// without one. Fees are the flat schedule, as every run there has.
    ///
    /// # Errors
    /// [`ConvertError`] with every value that is not understood or that a card here cannot have.
    pub fn of_python(file: &Value) -> Result<Converted, ConvertError> {
        let refuse = |pointer: &str, reason: &str| Refused { pointer: pointer.to_owned(), reason: reason.to_owned() };
        let Value::Object(fields) = file else {
            return Err(ConvertError { refused: vec![refuse("", "is not an object")] });
        };
        let mut from = Reading { fields, known: Vec::new(), told: Vec::new(), refused: Vec::new() };
        let mut card = from.card();
        from.unknown();
        from.replace(&mut card.persona);
        card.committee = from.committee();
        if fields.contains_key("mask_dates") {
            from.tell("/mask_dates", Became::NotMapped, "what is hidden is said to `run`: --mask all, dates, entities or none");
        }
        from.tell("/fees", Became::Defaulted, "`reference`: the flat schedule, which the Python implementation charges");
        if from.refused.is_empty()
            && let Err(fault) = Toolbox::new(&card, true).map_err(card_error).and(card.check())
        {
            from.refused = refused(&fault, &card);
        }
        let Reading { told, refused, .. } = from;
        if refused.is_empty() { Ok(Converted { card, told }) } else { Err(ConvertError { refused }) }
    }
}

struct Reading<'a> {
    fields: &'a Map<String, Value>,
    /// Fields of a card of the Python implementation.
    known: Vec<&'static str>,
    told: Vec<Told>,
    refused: Vec<Refused>,
}

impl Reading<'_> {
    fn tell(&mut self, pointer: &str, became: Became, what: &str) {
        self.told.push(Told { pointer: pointer.to_owned(), became, what: what.to_owned() });
    }

    fn refuse(&mut self, pointer: String, reason: impl Into<String>) {
        self.refused.push(Refused { pointer, reason: reason.into() });
    }

    /// Refuses what neither a card nor the file of a committee has there, before what is wrong with a field.
    fn unknown(&mut self) {
        let known = [&self.known[..], &BESIDE[..]].concat();
        let refused = self.fields.keys().filter(|name| !known.contains(&name.as_str())).map(|name| {
            let near = closest(name, &known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            Refused { pointer: pointer(name), reason: format!("is no field of a card of the Python implementation{near}") }
        });
        self.refused.splice(..0, refused);
    }

    /// One field: told, and taken or left at its default.
    fn take<T: Serialize>(&mut self, name: &'static str, default: T, read: impl Fn(&Value) -> Taken<T>) -> T {
        self.known.push(name);
        let place = pointer(name);
        let Some(value) = self.fields.get(name) else {
            let shown = serde_json::to_string(&default).unwrap_or_default();
            let what = match name {
                "persona" => "empty: the sentence that the Python implementation puts there is its own; write yours".to_owned(),
                "allowed_tools" => "all tools that are not opt-in".to_owned(),
                _ => shown,
            };
            self.tell(&place, Became::Defaulted, &what);
            return default;
        };
        match read(value) {
            Ok((taken, None)) => {
                self.tell(&place, Became::Mapped, "");
                taken
            }
            Ok((taken, Some(what))) => {
                self.tell(&place, Became::Coerced, &what);
                taken
            }
            Err(reason) => {
                self.refuse(place, reason);
                default
            }
        }
    }

    /// The card, of fields that have the same names here (engine E9).
    fn card(&mut self) -> Card {
        let base = Card::default();
        let mut card = Card {
            id: self.take("id", base.id, text),
            name: self.take("name", base.name, text),
            description: self.take("description", base.description, text),
            persona: self.take("persona", base.persona, text),
            strategy_tags: self.take("strategy_tags", base.strategy_tags, texts),
            risk_profile: self.take("risk_profile", "balanced".to_owned(), text),
            holding_period: self.take("holding_period", "3-10 trading days".to_owned(), text),
            allowed_tools: self.take("allowed_tools", base.allowed_tools, texts),
            model: self.take("model", "deepseek-v4-pro".to_owned(), text),
            initial_cash: self.take("initial_cash", base.initial_cash, double),
            max_positions: self.take("max_positions", base.max_positions, whole),
            max_position_pct: self.take("max_position_pct", base.max_position_pct, double),
            max_pre_iterations: self.take("max_pre_iterations", base.max_pre_iterations, whole),
            max_window_iterations: self.take("max_window_iterations", base.max_window_iterations, whole),
            require_structured_plan: self.take("require_structured_plan", base.require_structured_plan, truth),
            require_decision_card: self.take("require_decision_card", base.require_decision_card, truth),
            require_phase_completion: self.take("require_phase_completion", base.require_phase_completion, truth),
            minimum_holding_days: self.take("minimum_holding_days", base.minimum_holding_days, whole),
            research_interval_days: self.take("research_interval_days", base.research_interval_days, whole),
            sandbox_pre_market_only: self.take("sandbox_pre_market_only", base.sandbox_pre_market_only, truth),
            sandbox_max_calls_per_day: self.take("sandbox_max_calls_per_day", base.sandbox_max_calls_per_day, whole),
            watchlist_ttl_days: self.take("watchlist_ttl_days", base.watchlist_ttl_days, whole),
            max_active_memories: self.take("max_active_memories", base.max_active_memories, whole),
            max_daily_memories: self.take("max_daily_memories", base.max_daily_memories, whole),
            fees: CardFees::Reference,
            ..Card::default()
        };
        if card.research_interval_days > 0 {
            // It was understood, and nothing here would obey it.
            card.research_interval_days = 0;
            for told in self.told.iter_mut().filter(|told| told.pointer == "/research_interval_days") {
                told.became = Became::NotMapped;
                "there are no research days here: the card has 0, research on every day".clone_into(&mut told.what);
            }
        }
        card
    }

    /// Substitutions in the persona, one after the other as the file lists them.
    fn replace(&mut self, persona: &mut String) {
        let Some(value) = self.fields.get("persona_replacements") else { return };
        let place = "/persona_replacements";
        match value {
            Value::Null => self.tell(place, Became::Mapped, "null: nothing to replace"),
            Value::Object(pairs) => {
                let (mut found, faults) = (0, self.refused.len());
                for (old, new) in pairs {
                    match new {
                        _ if old.is_empty() => {
                            self.refuse(format!("{place}/"), "replaces the empty text, which stands everywhere");
                        }
                        Value::String(new) => {
                            found += usize::from(persona.contains(old.as_str()));
                            *persona = persona.replace(old.as_str(), new);
                        }
                        other => self.refuse(format!("{place}{}", pointer(old)), format!("is {}, not a text", kind(other))),
                    }
                }
                if self.refused.len() > faults {
                    return;
                }
                let what = format!("put into the persona: {found} of {} texts were found there", pairs.len());
                let became = if self.fields.contains_key("persona") { Became::Mapped } else { Became::NotMapped };
                self.tell(place, became, if became == Became::Mapped { &what } else { "there is no persona to put them into" });
            }
            other => self.refuse(place.to_owned(), format!("is {}, not an object of texts", kind(other))),
        }
    }

    fn committee(&mut self) -> Option<Committee> {
        let listed = match self.fields.get("advisors")? {
            Value::Array(listed) => listed,
            other => {
                self.refuse("/advisors".to_owned(), format!("is {}, not a list", kind(other)));
                return None;
            }
        };
        if listed.is_empty() {
            self.tell("/advisors", Became::Mapped, "no advisors: the agent decides alone");
            return None;
        }
        let advisors = listed.iter().enumerate().filter_map(|(n, advisor)| self.advisor(n, advisor)).collect();
        Some(Committee { advisors, memo: Memo::default() })
    }

    fn advisor(&mut self, n: usize, value: &Value) -> Option<Advisor> {
        let place = format!("/advisors/{n}");
        let Value::Object(fields) = value else {
            self.refuse(place, format!("is {}, not an object", kind(value)));
            return None;
        };
        for name in fields.keys().filter(|name| !["role", "model", "prompt"].contains(&name.as_str())) {
            self.refuse(format!("{place}{}", pointer(name)), "is no field of an advisor, which has `role`, `model` and `prompt`");
        }
        let [mut role, mut persona] = [None, None];
        for (name, slot) in [("role", &mut role), ("prompt", &mut persona)] {
            match fields.get(name) {
                Some(Value::String(text)) if !text.trim().is_empty() => *slot = Some(text.clone()),
                Some(Value::String(_)) => self.refuse(format!("{place}/{name}"), "is empty, and an advisor here needs one"),
                Some(other) => self.refuse(format!("{place}/{name}"), format!("is {}, not a text", kind(other))),
                None => self.refuse(format!("{place}/{name}"), "is left out, and an advisor here needs one"),
            }
        }
        let model = match fields.get("model") {
            None | Some(Value::Null) => None,
            Some(Value::String(model)) => Some(model.clone()).filter(|model| !model.is_empty()),
            Some(other) => {
                self.refuse(format!("{place}/model"), format!("is {}, not a text", kind(other)));
                None
            }
        };
        let (role, persona) = (role?, persona?);
        self.tell(&format!("{place}/role"), Became::Mapped, "");
        self.tell(&format!("{place}/prompt"), Became::Mapped, &format!("`committee.advisors[{n}].persona`"));
        match model {
            Some(_) => self.tell(&format!("{place}/model"), Became::Mapped, ""),
            None => self.tell(&format!("{place}/model"), Became::Defaulted, "the model of the card"),
        }
        let base = serde_json::json!({ "role": role, "persona": persona, "model": model });
        // The defaults of the other fields are those of a card that leaves them out.
        match serde_json::from_value(base) {
            Ok(advisor) => Some(advisor),
            Err(fault) => {
                self.refuse(place, fault.to_string());
                None
            }
        }
    }
}

/// JSON Pointer of a key at the top.
fn pointer(name: &str) -> String {
    format!("/{}", pointer_segment(name))
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn text(value: &Value) -> Taken<String> {
    match value {
        Value::String(text) => Ok((text.clone(), None)),
        other => Err(format!("is {}, not a text", kind(other))),
    }
}

fn texts(value: &Value) -> Taken<Vec<String>> {
    let Value::Array(items) = value else { return Err(format!("is {}, not a list of texts", kind(value))) };
    let texts = items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>();
    texts.map(|texts| (texts, None)).ok_or_else(|| "holds something that is not a text".to_owned())
}

/// As `bool()` of Python takes a value.
fn truth(value: &Value) -> Taken<bool> {
    let taken = match value {
        Value::Bool(flag) => return Ok((*flag, None)),
        Value::Null => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    };
    let why = if matches!(value, Value::String(_)) { ", as any text but the empty one is true there" } else { "" };
    let why = if taken { why } else { "" };
    Ok((taken, Some(format!("{} was taken for {taken}{why}", kind(value)))))
}

/// As `int()` of Python takes a value; below zero is zero.
fn whole(value: &Value) -> Taken<u32> {
    let (taken, exact) = match value {
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(taken), _) => (taken, true),
            // Beyond 64 bits it becomes the nearest end, which is out of range below.
            (None, Some(double)) => (double as i64, false),
            (None, None) => return Err("is a number that is too large".to_owned()),
        },
        Value::Bool(flag) => (i64::from(*flag), false),
        Value::String(text) => match text.trim().parse() {
            Ok(taken) => (taken, false),
            Err(_) => return Err("is a text that is no whole number".to_owned()),
        },
        other => return Err(format!("is {}, not a whole number", kind(other))),
    };
    let kept = u32::try_from(taken.max(0)).map_err(|_| "is a number that is too large".to_owned())?;
    let what =
        (!exact || taken < 0).then(|| format!("{} was taken for {kept}", if exact { "a number below 0" } else { kind(value) }));
    Ok((kept, what))
}

/// As `float()` of Python takes a value.
fn double(value: &Value) -> Taken<f64> {
    let taken: f64 = match value {
        Value::Number(number) => return number.as_f64().map(|double| (double, None)).ok_or_else(|| "is too large".to_owned()),
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(taken) if taken.is_finite() => taken,
            _ => return Err("is a text that is no number".to_owned()),
        },
        other => return Err(format!("is {}, not a number", kind(other))),
    };
    Ok((taken, Some(format!("{} was taken for {taken}", kind(value)))))
}

fn card_error(fault: ToolboxError) -> CardError {
    match fault {
        ToolboxError::Card(fault) => fault,
        other => CardError::Defect { fault: other.to_string() },
    }
}

/// What a card that was taken cannot have, at its place in the file.
fn refused(fault: &CardError, card: &Card) -> Vec<Refused> {
    match fault {
        CardError::UnknownTools { names } => {
            let place = |name: &String| card.allowed_tools.iter().position(|listed| listed == name).unwrap_or_default();
            let refused = names.iter().map(|name| Refused {
                pointer: format!("/allowed_tools/{}", place(name)),
                reason: format!("names the unknown tool {name}"),
            });
            refused.collect()
        }
        CardError::Field { field, found, accepted } => {
            let reason = format!("{field} is {found}; here it must be {accepted}");
            vec![Refused { pointer: pointer(if field.starts_with("committee.") { "advisors" } else { field }), reason }]
        }
        other => vec![Refused { pointer: String::new(), reason: other.to_string() }],
    }
}
