//! The entries, out of the program's own tables: rules, fee schedules, decision points, baselines, the schemas of tools. A value that is
//! written here and nowhere else would be a second truth, so there is none but words.

use super::{Kind, REVISION, RegistryEntry};
use crate::manifest::Catalog;
use serde_json::{Map, Value, json};
use traderharness_harness::Card;
use traderharness_harness::baseline::Rule;
use traderharness_market::rules::{RuleKind, RuleRow, table};
use traderharness_market::{Board, DecisionPoint};

pub(super) fn all(catalog: &Catalog) -> Vec<RegistryEntry> {
    let mut all = Vec::new();
    all.extend(indicators(catalog));
    all.extend(features(catalog));
    all.extend(rules());
    all.extend(splits(catalog));
    all.extend(scenarios());
    all.push(benchmark());
    all.extend(strategies());
    all
}

/// The schema of one field of a capability's input.
fn field<'c>(catalog: &'c Catalog, capability: &str, name: &str) -> Option<&'c Value> {
    catalog.find(capability)?.input_schema.get("properties")?.get(name)
}

/// The indicators of technical.compute, each with the parameters that it alone takes.
fn indicators(catalog: &Catalog) -> Vec<RegistryEntry> {
    let Some(capability) = catalog.find("technical.compute") else { return Vec::new() };
    let names = field(catalog, "technical.compute", "indicator").and_then(|f| f.get("enum")).and_then(Value::as_array);
    let parameters = field(catalog, "technical.compute", "parameters").cloned().unwrap_or_default();
    let rules = capability.input_schema.get("allOf").and_then(Value::as_array);
    let foreign = |name: &str| -> Vec<String> {
        let of = |rule: &&Value| rule.pointer("/if/properties/indicator/const").and_then(Value::as_str) == Some(name);
        let rule = rules.into_iter().flatten().find(of);
        let fields = rule.and_then(|rule| rule.pointer("/then/properties/parameters/properties")).and_then(Value::as_object);
        fields.map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
    };
    let entry = |name: &str| {
        let mut schema = parameters.clone();
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            let not_its_own = foreign(name);
            fields.retain(|field, _| !not_its_own.contains(field));
        }
        let description = format!("The indicator {name} of technical.compute.");
        RegistryEntry::new(Kind::Feature, &format!("technical.{name}"), &description, json!({ "indicator": name }))
            .takes(schema)
            .on([("technical.compute", capability.revision.as_str()), ("market.bars", REVISION)])
    };
    names.into_iter().flatten().filter_map(Value::as_str).map(entry).collect()
}

/// What the screens compute for each stock: the filters they take name it.
fn features(catalog: &Catalog) -> Vec<RegistryEntry> {
    let of = |capability: &str, name: &str, description: &str| {
        let capability = catalog.find(capability)?;
        let schema = capability.input_schema.clone();
        let shown = capability.output_schema.pointer("/properties/stocks/items/properties").and_then(Value::as_object);
        let fields: Map<String, Value> = shown
            .into_iter()
            .flatten()
            .map(|(field, schema)| (field.clone(), schema.get("description").cloned().unwrap_or_default()))
            .collect();
        let entry = RegistryEntry::new(Kind::Feature, name, description, json!({ "computed": fields }));
        Some(entry.takes(schema).on([(capability.name.as_str(), capability.revision.as_str())]))
    };
    let screens = [
        ("screening.screen_behavioral_cycle", "behavioral_cycle", "What screen_behavioral_cycle computes for each stock."),
        ("screening.screen_stocks", "cross_section", "What screen_stocks computes for each stock."),
    ];
    screens.into_iter().filter_map(|(capability, name, description)| of(capability, name, description)).collect()
}

const fn is_fee(kind: RuleKind) -> bool {
    matches!(kind, RuleKind::StampDuty { .. } | RuleKind::TransferFee { .. } | RuleKind::Commission { .. })
}

/// A number of a rule, in the unit its name says.
fn amounts(kind: RuleKind) -> Value {
    match kind {
        RuleKind::Band { basis_points } | RuleKind::StBand { basis_points } => json!({ "basis_points": basis_points }),
        RuleKind::FreeSessions { sessions } => json!({ "sessions": sessions }),
        RuleKind::FirstDay { up, down } => json!({ "up_basis_points": up, "down_basis_points": down }),
        RuleKind::BuyLot { min, step } => json!({ "min_shares": min, "step_shares": step }),
        RuleKind::MaxOrder { shares } => json!({ "shares": shares }),
        RuleKind::Tick { units } => json!({ "ten_thousandths_cny": units }),
        RuleKind::StampDuty { per_million } | RuleKind::TransferFee { per_million } => json!({ "per_million": per_million }),
        RuleKind::Commission { per_million, min_fen } => json!({ "per_million": per_million, "min_fen": min_fen }),
    }
}

fn row(row: &RuleRow) -> Value {
    json!({
        "rule": row.kind.name(),
        "value": amounts(row.kind),
        "boards": row.boards.iter().map(|b| format!("{b:?}")).collect::<Vec<_>>(),
        "from": row.from.map(|d| d.to_string()),
        "until": row.until.map(|d| d.to_string()),
        "source": row.source,
    })
}

fn rules() -> Vec<RegistryEntry> {
    let rows = |fees: bool| -> Vec<Value> { table().iter().filter(|r| is_fee(r.kind) == fees).map(row).collect() };
    let flat = traderharness_market::rules::fee_rates(
        traderharness_market::FeeSchedule::Reference,
        Board::ShMain,
        traderharness_market::Day(0),
    );
    let points: Vec<Value> = DecisionPoint::ALL
        .iter()
        .map(|point| {
            let (from, until) = point.interval().map_or((None, None), |(a, b)| (Some(a.to_string()), Some(b.to_string())));
            json!({
                "point": point.as_str(),
                "time": point.now_minute().to_string(),
                "bars_visible_until": point.visible_until().map(|m| m.to_string()),
                "fills_after": from,
                "fills_until": until,
            })
        })
        .collect();
    let card = Card::builtin();
    let limits = json!({
        "participation_pct": card.participation_pct,
        "one_fill_per_day": card.one_fill_per_day,
        "forbid_st": card.forbid_st,
        "settlement": "T+1",
        "order": "one order fills in the first bar of its interval that can take it, or is refused",
    });
    vec![
        RegistryEntry::new(
            Kind::CostModel,
            "dated",
            "Commission, stamp duty and transfer fee by the date they held.",
            json!({ "currency": "CNY", "rounding": "each fee half up to fen", "rows": rows(true) }),
        ),
        RegistryEntry::new(
            Kind::CostModel,
            "reference",
            "The flat schedule of the Python implementation, for comparisons.",
            json!({
                "currency": "CNY",
                "rounding": "each fee half up to fen",
                "commission_per_million": flat.commission,
                "min_commission_fen": flat.min_commission.0,
                "stamp_duty_per_million": flat.stamp_duty,
                "transfer_per_million": flat.transfer,
            }),
        ),
        RegistryEntry::new(
            Kind::ExecutionModel,
            "five_minute_bars",
            "Orders against 5-minute bars after the decision point, within the dated bands, lots and ticks of each board.",
            json!({ "points": points, "rules": rows(false), "defaults": limits }),
        ),
    ]
}

/// The adjustments of market.bars.
fn splits(catalog: &Catalog) -> Vec<RegistryEntry> {
    let schema = field(catalog, "market.bars", "adjustment");
    let names = schema.and_then(|s| s.get("enum")).and_then(Value::as_array);
    let words = schema.and_then(|s| s.get("description")).and_then(Value::as_str).unwrap_or_default();
    let entry = |name: &str| {
        let parameters =
            json!({ "adjustment": name, "default": name == "split_only", "as_of": "ex-dates up to the last finished session" });
        RegistryEntry::new(Kind::SplitPolicy, name, words, parameters).on([("market.bars", REVISION)])
    };
    names.into_iter().flatten().filter_map(Value::as_str).map(entry).collect()
}

/// Windows over the data that comes with the program.
fn scenarios() -> Vec<RegistryEntry> {
    let scenario = |name: &str, description: &str, start: &str, end: &str| {
        let parameters = json!({
            "dataset": "bundled/real-zvt",
            "stocks": 8,
            "prices": "forward_adjusted",
            "start": start,
            "end": end,
            "minute_bars": "000338 only",
        });
        RegistryEntry::new(Kind::ScenarioSet, name, description, parameters).on([("execution_model/five_minute_bars", REVISION)])
    };
    vec![
        scenario("bundled_minutes", "Every day of the bundled data that may have 5-minute bars.", "2019-10-25", "2020-06-16"),
        scenario("bundled_daily", "The whole of the bundled data.", "2018-06-01", "2020-06-16"),
    ]
}

fn benchmark() -> RegistryEntry {
    let parameters = json!({
        "source": "index",
        "change": "close over the close of the previous session",
        "missing": "no benchmark figure is given; none is made up",
    });
    RegistryEntry::new(Kind::Benchmark, "dataset_index", "The index of the dataset, where it has one.", parameters)
}

/// The rules of the baselines, and the baselines with everything they run under.
fn strategies() -> Vec<RegistryEntry> {
    let named = [
        (Rule::BuyAndHold, "buy_and_hold", "Buys the largest stocks once and holds them."),
        (Rule::MovingAverage, "moving_average", "Holds large stocks whose short mean is above the long one."),
        (Rule::Random(1), "random", "Buys and sells by chance, from a seed."),
    ];
    let card = serde_json::to_value(Card::builtin()).unwrap_or_default();
    let mut all = Vec::new();
    for (rule, name, description) in named {
        let mut strategy = RegistryEntry::new(Kind::Strategy, name, description, rule.parameters());
        if let Rule::Random(_) = rule {
            let seed = json!({
                "type": "object",
                "properties": { "seed": { "type": "integer", "minimum": 0, "default": 1, "description": "Where chance starts." } },
                "additionalProperties": false,
            });
            strategy = strategy.takes(seed);
        }
        all.push(strategy);
        let under = format!("strategy/{name}");
        let baseline = RegistryEntry::new(
            Kind::Baseline,
            name,
            &format!("{description} Played with the built-in card."),
            json!({ "run_as": rule.to_string(), "card": card }),
        );
        all.push(baseline.on([
            (under.as_str(), REVISION),
            ("execution_model/five_minute_bars", REVISION),
            ("cost_model/dated", REVISION),
            ("benchmark/dataset_index", REVISION),
        ]));
    }
    all
}
