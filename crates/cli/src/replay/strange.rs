//! A recording of the Python implementation, held against a run of this program: the run is set up from what the person gives and the
//! bundle's manifest tells. Its digests decide; that the texts of a contract are other ones shows at the first request.

use super::options::ReplayOptions;
use super::watch::{Watch, Wrong};
use super::{Setup, identical, play_watched};
use crate::code::{Files, LatePool};
use crate::contract::Style;
use crate::fault::{Class, Fault, Outcome, read_text};
use crate::manifest::{Manifest, Window, window as days_of};
use crate::report::print;
use crate::run::{Market, machine, pretty, read_card};
use crate::source;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr as _;
use traderharness_contract::version::{Pack, Version};
use traderharness_harness::run::Silent;
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, Contract};
use traderharness_market::Mask;
use traderharness_replay::reference::{ForeignAgent, ForeignBundle};
use traderharness_replay::{Cassette, Replay};

/// What is known of the run beside its answers.
pub(crate) struct Known<'a> {
    pub(crate) version: &'a str,
    /// Style of the entity mask, when the recording tells.
    pub(crate) style: Option<&'a str>,
    /// A bundle's manifest; empty for a single file.
    pub(crate) manifest: &'a Map<String, Value>,
}

/// The card of the run: the one that is given, or else the one that the bundle holds of its agent, when it holds it whole.
pub(crate) fn card(bundle: &ForeignBundle, options: &ReplayOptions) -> Result<Option<Card>, Fault> {
    if let Some(path) = &options.foreign.card {
        return read_card(path).map(Some);
    }
    let agent = match (options.agent.as_deref(), bundle.agents()) {
        (Some(asked), agents) => agents.iter().find(|agent| agent.id == asked),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    Ok(agent.and_then(|agent| held(agent, bundle.manifest()).ok()))
}

/// The card that a bundle's manifest holds of an agent.
///
/// # Errors
/// Why a run cannot be set up from it.
pub(crate) fn held(agent: &ForeignAgent, manifest: &Map<String, Value>) -> Result<Card, String> {
    let snapshot = agent.card.as_ref().ok_or("the manifest has no `card_snapshot` of it")?;
    let converted = Card::of_python(snapshot).map_err(|e| format!("its `card_snapshot`: {e}"))?;
    let lacks: Vec<&str> = converted.lacking().map(|told| told.pointer.as_str()).collect();
    if !lacks.is_empty() {
        return Err(format!("its `card_snapshot` does not tell, or this program does not have, {}", lacks.join(", ")));
    }
    match manifest.get("initial_cash").and_then(Value::as_f64) {
        Some(cash) if cash.total_cmp(&converted.card.initial_cash).is_ne() => {
            Err(format!("its `card_snapshot` has {} CNY, and the manifest says {cash}", converted.card.initial_cash))
        }
        _ => Ok(converted.card),
    }
}

/// Plays a recording against the card of its run.
pub(crate) fn play(cassette: Cassette, known: &Known<'_>, card: Card, options: &ReplayOptions) -> Outcome {
    let told = |name: &str| known.manifest.get(name).and_then(Value::as_str).map(str::to_owned);
    let given = options.set_up.start.clone().zip(options.set_up.end.clone());
    let (start, end) = given.or_else(|| told("start_date").zip(told("end_date"))).ok_or_else(|| {
        Fault::text(Class::Input, "a recording of the Python implementation does not hold its days")
            .hint("pass --start and --end")
    })?;
    let window = Window { start, end };
    let contract = contract(known.version, options.set_up.pack.as_deref())?;
    let hid = |name: &str| known.manifest.get(name).and_then(Value::as_bool).unwrap_or(true);
    let (mask_dates, mask_entities) = match options.foreign.mask {
        Some(choice) => Manifest::hides(choice),
        None => (hid("mask_dates"), hid("mask_entities")),
    };
    let seed = options.foreign.mask_seed.or_else(|| known.manifest.get("entity_mask_seed").and_then(Value::as_i64));
    let seed = match seed {
        None if mask_entities => {
            return Err(Fault::text(Class::Input, "codes were hidden, and the seed of the mask is not in the recording")
                .hint("pass --mask-seed N, or --mask none or dates"));
        }
        seed => seed.unwrap_or_default(),
    };
    let market: Market = source::open(options.set_up.data.as_deref(), options.json)?.into();
    let wrong = |e: serde_json::Error| Fault::new(Class::Input, e).context("the run cannot be set up");
    let mut manifest: Manifest = serde_json::from_value(
        json!({ "card": card, "window": window, "mask_dates": mask_dates, "mask_entities": mask_entities, "entity_mask_seed": "" }),
    )
    .map_err(wrong)?;
    manifest.contract = contract;
    manifest.mask_style = if known.style == Some("permutation") { Style::ReferencePermutation } else { Style::ReferenceOpaque };
    manifest.mask_seed = Some(seed);
    let key = vec![0; 32];
    let days = days_of(&window.start, &window.end)?;
    let mask = Mask::new(&market.store, manifest.mask(key.clone(), Some(days)));
    manifest.entity_mask_seed = mask.key_id();
    manifest.window_id = mask.evidence_digest(&["window", &window.start, &window.end]);
    let pool = LatePool::new(&options.set_up.interpreter);
    let files = Files::replayed(&manifest.card, Path::new(""))?;
    let sandbox = Some(files.sandbox(&pool, false));
    let watch = Watch { until: options.until, explain: options.explain };
    let setup = Setup { window, key, gate: None, sandbox, journal: Box::new(NoJournal) };
    let (played, seen) = play_watched(market, Replay::new(cassette), manifest, setup, watch, &mut Silent);
    let replayed = played.map_err(|fault| match &seen.wrong {
        Some(Wrong::Other(_)) => {
            fault.hint("only its digest is recorded; texts (--pack), card, days, data and mask must all be those of the run")
        }
        _ => fault,
    })?;
    if options.json {
        let mut value = json!({ "made_by": "python", "identical": replayed.requests, "requests": replayed.recorded, "digests_cover": ["messages", "tools"], "run": machine(&replayed.summary, &replayed.world) });
        value["until"] = replayed.until.into();
        print(&pretty(&value));
    } else {
        print(&identical(replayed.requests));
        print("Its digests cover messages and tools only.");
    }
    Ok(ExitCode::SUCCESS)
}

fn contract(version: &str, pack: Option<&Path>) -> Result<Contract, Fault> {
    let Some(path) = pack else {
        let version = Version::from_str(version).map_err(|e| Fault::new(Class::Input, e).context("the recording"))?;
        return Ok(Contract::of(version));
    };
    let pack = Pack::read(&read_text("pack", path)?);
    Ok(Contract::foreign(pack.map_err(|e| Fault::new(Class::Input, e).context(format!("pack `{}`", path.display())))?))
}

/// The recording of one agent of a bundle as one cassette.
pub(crate) fn of_bundle(bundle: &ForeignBundle, agent: Option<&str>) -> Result<Cassette, Fault> {
    let ids: Vec<&str> = bundle.agents().iter().map(|agent| agent.id.as_str()).collect();
    let id = match (agent, &ids[..]) {
        (Some(asked), _) if ids.contains(&asked) => asked,
        (None, [only]) => only,
        _ => {
            return Err(Fault::text(Class::Input, "name one agent of the bundle")
                .hint(format!("pass --agent with one of {}", ids.join(", "))));
        }
    };
    bundle.cassette(id).map_err(|e| crate::bundle::fault(e, bundle.path()))
}
