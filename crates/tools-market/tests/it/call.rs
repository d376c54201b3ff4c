//! One tool call as the dispatcher makes it: validated arguments, handler, checked output, mask.

use serde_json::Value;
use std::borrow::Cow;
use std::sync::LazyLock;
use traderharness_contract::{Definition, FieldKind, Handler, Masker, Policy, ToolFailure};
use traderharness_market::testing::{day, moment};
use traderharness_market::{Clock, Code, DecisionPoint, Mask, MaskConfig, Moment, Store, View};
use traderharness_tools_market::research::{MarketBars, TechnicalCompute};
use traderharness_tools_market::{MarketCtx, MarketState, MarketTools, tools};

/// A clock of a fixture: `2024-03-05 open_1`.
pub(crate) fn at(text: &str) -> Clock {
    let (date, point) = text.split_once(' ').unwrap();
    Clock { day: day(date), point: DecisionPoint::parse(point).unwrap() }
}

pub(crate) fn bright(store: &Store) -> Mask {
    Mask::new(store, MaskConfig::default())
}

pub(crate) fn hidden(store: &Store) -> Mask {
    Mask::new(store, MaskConfig { dates: true, entities: true, key: b"a secret of this run".to_vec(), ..MaskConfig::default() })
}

/// Real arguments in, unmasked payload out, as a handler works.
pub(crate) fn real(store: &Store, mask: &Mask, clock: Clock, tool: &str, args: &Value) -> Result<Value, ToolFailure> {
    let (definition, handler) = find(tool);
    let faults = definition.validate(args);
    assert!(faults.is_ok(), "{tool} {args}: {faults:?}");
    let mut ctx = MarketCtx { view: View::new(store, clock, mask), state: &mut MarketState::default() };
    let payload = handler.invoke(&mut ctx, args.clone())?;
    let faults = definition.validate_output(&payload);
    assert!(faults.is_ok(), "{tool} {args}: {faults:?}\n{payload:#}");
    // A NaN or an infinity would have become null without a reason, or an unreadable token: the text must read back equal.
    assert_eq!(serde_json::from_str::<Value>(&payload.to_string()).unwrap(), payload);
    Ok(payload)
}

/// A call of an unmasked run that succeeds.
pub(crate) fn call(store: &Store, clock: &str, tool: &str, args: Value) -> Value {
    real(store, &bright(store), at(clock), tool, &args).unwrap_or_else(|f| panic!("{tool} {args}: {f:?}"))
}

/// Code of the failure of a call in an unmasked run.
pub(crate) fn refused(store: &Store, clock: &str, tool: &str, args: Value) -> ToolFailure {
    match real(store, &bright(store), at(clock), tool, &args) {
        Err(failure) => failure,
        Ok(payload) => panic!("{tool} {args} answered {payload:#}"),
    }
}

/// A call of a masked run: visible arguments in, visible payload out.
pub(crate) fn masked(store: &Store, mask: &Mask, clock: &str, tool: &str, args: &Value) -> Result<Value, ToolFailure> {
    let (definition, _) = find(tool);
    let clock = at(clock);
    let mut args = args.clone();
    definition.input_plan.rewrite(&mut args, &mut |kind, text| match kind {
        FieldKind::Code => mask.resolve(text).ok().map(|sec| View::new(store, clock, mask).code(sec).to_string()),
        _ => None,
    });
    let mut payload = real(store, mask, clock, tool, &args)?;
    definition.output_plan.mask(&mut payload, &Hide { store, mask, clock });
    Ok(payload)
}

/// What the schema says of the arguments.
pub(crate) fn issues(tool: &str, args: &Value) -> Vec<String> {
    find(tool).0.validate(args).err().into_iter().flatten().map(|issue| issue.message).collect()
}

/// True when the schema refuses the arguments.
pub(crate) fn schema_refuses(tool: &str, args: &Value) -> bool {
    find(tool).0.validate(args).is_err()
}

type Found = (Definition, Handler<MarketTools>);

fn find(tool: &str) -> &'static Found {
    static TOOLS: LazyLock<Vec<Found>> = LazyLock::new(|| {
        let research = [Handler::of::<MarketBars>(), Handler::of::<TechnicalCompute>()];
        tools().into_iter().chain(research).map(|h| ((h.define)(&Policy::default()), h)).collect()
    });
    TOOLS.iter().find(|(_, h)| h.spec.name == tool).unwrap_or_else(|| panic!("no tool {tool}"))
}

struct Hide<'a> {
    store: &'a Store,
    mask: &'a Mask,
    clock: Clock,
}

impl Masker for Hide<'_> {
    fn mask<'a>(&self, kind: FieldKind, value: &'a str) -> Cow<'a, str> {
        let today = self.clock.day;
        match kind {
            FieldKind::Code => {
                let sec = Code::parse(value).and_then(|code| self.store.find(code)).unwrap();
                Cow::Owned(self.mask.code(sec).to_owned())
            }
            FieldKind::Day => Cow::Owned(self.mask.day(day(value), today)),
            FieldKind::Time => Cow::Owned(self.mask.moment(moment(value), today)),
            FieldKind::Name => self.mask.name(value),
            FieldKind::Text => self.mask.text(value, today),
        }
    }
}

/// Strings of a list of rows.
pub(crate) fn column(payload: &Value, list: &str, field: &str) -> Vec<String> {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    payload[list].as_array().unwrap().iter().map(|row| text(&row[field])).collect()
}

/// `field: reason` of every missing number.
pub(crate) fn missing(payload: &Value) -> Vec<String> {
    let rows = payload["missing_reasons"].as_array().unwrap();
    rows.iter().map(|m| format!("{}: {}", m["field"].as_str().unwrap(), m["reason"].as_str().unwrap())).collect()
}

/// The latest time of a list, to be compared with a clock.
pub(crate) fn latest(payload: &Value, list: &str) -> Option<Moment> {
    column(payload, list, "time").iter().map(|t| moment(t)).max()
}
