//! `traderharness replay`: every tool is executed again on the data, and every request must be identical to the recorded one.

mod bundles;
mod foreign;
mod hosted;
mod one;
mod options;
mod strange;
mod watch;

pub(crate) use bundles::tape;
pub(crate) use foreign::Foreign;
pub(crate) use hosted::Hosted;
pub(crate) use one::{Tape, one};
pub(crate) use options::{ReplayOptions, SetUpOptions};
pub(crate) use watch::Watch;

use crate::contract;
use crate::fault::{Class, Fault, Outcome};
use crate::manifest::{Manifest, Window, window};
use crate::report::{Printer, print};
use crate::run::{Market, World, pretty, read_card};
use std::path::Path;
use std::process::ExitCode;
use traderharness_connect::StyledClient;
use traderharness_harness::Sandbox;
use traderharness_harness::run::{Observer, RunSummary, Silent};
use traderharness_harness::session::Journal;
use traderharness_replay::bundle::Bundle;
use traderharness_replay::cassette::Scheme;
use traderharness_replay::reference::ForeignBundle;
use traderharness_replay::{Meta, Replay, ReplayError};
use traderharness_tools_exec::OrderGate;
use watch::{Seen, Watched};

pub(crate) fn replay(options: &ReplayOptions) -> Outcome {
    let path = &options.cassette;
    if path.is_dir() && Bundle::is_bundle(path) {
        options.foreign.not_for_ours()?;
        return bundles::replay(options);
    }
    if path.is_dir() && ForeignBundle::is_bundle(path) {
        let bundle = ForeignBundle::open(path).map_err(|e| crate::bundle::fault(e, path))?;
        let Some(card) = strange::card(&bundle, options)? else {
            return foreign::told(&Foreign::bundle(&bundle), path, options.json);
        };
        let style = bundle.manifest().get("entity_mask_style").and_then(serde_json::Value::as_str);
        let known = strange::Known { version: bundle.contract_version(), style, manifest: bundle.manifest() };
        return strange::play(strange::of_bundle(&bundle, options.agent.as_deref())?, &known, card, options);
    }
    if let Some(agent) = &options.agent {
        return Err(Fault::text(Class::Input, format!("--agent {agent}: `{}` is no bundle", path.display())));
    }
    let tape = Tape::at(path)?;
    if tape.cassette.scheme() == Scheme::Reference {
        let told = Foreign::cassette(&tape.cassette);
        let Some(card) = &options.foreign.card else { return foreign::told(&told, path, options.json) };
        let card = read_card(card)?;
        let (version, style) = told.names();
        let known = strange::Known { version, style, manifest: &serde_json::Map::new() };
        return strange::play(tape.cassette, &known, card, options);
    }
    options.foreign.not_for_ours()?;
    let mut silent = Silent;
    let mut printer = Printer::new();
    let observer: &mut dyn Observer = if options.show && !options.json { &mut printer } else { &mut silent };
    let watch = Watch { until: options.until, explain: options.explain };
    let came = one(tape, None, &options.set_up, watch, options.json, observer)?;
    came.check_result(path)?;
    if options.json {
        print(&pretty(&came.machine()));
    } else {
        came.print();
    }
    Ok(ExitCode::SUCCESS)
}

/// The line everybody looks for.
pub(crate) fn identical(requests: u64) -> String {
    format!("{requests} of {requests} requests identical.")
}

/// What a replay needs beside cassette and dataset.
pub(crate) struct Setup {
    pub(crate) window: Window,
    pub(crate) key: Vec<u8>,
    pub(crate) gate: Option<OrderGate>,
    pub(crate) sandbox: Option<Sandbox>,
    pub(crate) journal: Box<dyn Journal>,
}

/// A replay that went through.
pub(crate) struct Replayed {
    /// Requests that were the recorded ones.
    pub(crate) requests: u64,
    /// Requests in the recording.
    pub(crate) recorded: u64,
    /// Where it was ended on request, before its end.
    pub(crate) until: Option<u64>,
    pub(crate) summary: RunSummary,
    pub(crate) world: World,
    pub(crate) manifest: Manifest,
    pub(crate) model: String,
}

/// Manifest of a cassette.
pub(crate) fn manifest(player: &Replay) -> Result<Manifest, Fault> {
    manifest_under(player, None)
}

/// Manifest of a cassette that may have been made with a pack, with the contract of the recording in it.
pub(crate) fn manifest_under(player: &Replay, pack: Option<&Path>) -> Result<Manifest, Fault> {
    let meta = meta(player);
    let value = meta.extra.get("manifest").cloned().ok_or_else(|| {
        Fault::text(Class::Input, "the cassette has no manifest, so the run cannot be set up again")
            .hint("record with `traderharness run --record DIR`")
    })?;
    let mut manifest: Manifest = serde_json::from_value(value)
        .map_err(|e| Fault::new(Class::Input, e).context("the manifest of the cassette cannot be read"))
        .map_err(|fault| {
            fault.hint("take the cassette as the run wrote it; its first line holds what the run was set up with")
        })?;
    manifest.contract = contract::of_recording(&meta, manifest.pack.as_deref(), pack)?;
    Ok(manifest)
}

/// Replays a cassette over a dataset.
pub(crate) fn play(
    dataset: impl Into<Market>,
    player: Replay,
    manifest: Manifest,
    setup: Setup,
    observer: &mut dyn Observer,
) -> Result<Replayed, Fault> {
    play_watched(dataset.into(), player, manifest, setup, Watch::default(), observer).0
}

/// Replays a cassette over a dataset and tells how far it came.
fn play_watched(
    market: Market,
    player: Replay,
    manifest: Manifest,
    setup: Setup,
    watch: Watch,
    observer: &mut dyn Observer,
) -> (Result<Replayed, Fault>, Seen) {
    let mut seen = Seen::default();
    let played = play_noting(market, player, manifest, setup, watch, observer, &mut seen);
    (played, seen)
}

/// The world of a recording; another dataset, key or window than its own is refused.
fn world_of(market: Market, meta: &Meta, manifest: &mut Manifest, asked: &Window, key: Vec<u8>) -> Result<World, Fault> {
    let recorded = manifest.clone();
    let world = World::build(market, manifest, asked, key, true)?;
    if !manifest.is_masked() {
        // Nothing of such a run depends on the key, so it is played without one; its id is a name of the run all the same.
        manifest.entity_mask_seed.clone_from(&recorded.entity_mask_seed);
    }
    let data = world.store.meta();
    if let Some(recorded) = &meta.dataset
        && let Some(digest) = &recorded.sha256
        && digest.to_string() != data.digest
    {
        return Err(Fault::text(
            Class::Finding,
            format!(
                "the recording was made on dataset {} ({}), this is {} ({})",
                recorded.name,
                head(&digest.to_string()),
                data.name,
                head(&data.digest)
            ),
        )
        .hint("pass the dataset of the run with --data; nothing was replayed"));
    }
    if manifest.is_masked() && recorded.entity_mask_seed != manifest.entity_mask_seed {
        return Err(Fault::text(
            Class::Input,
            format!(
                "the mask key has id {}, the recording was made with {}",
                manifest.entity_mask_seed, recorded.entity_mask_seed
            ),
        )
        .hint("pass the key of that run with --mask-key"));
    }
    if recorded.window_id != manifest.window_id {
        return Err(Fault::text(
            Class::Input,
            format!("the recording is of another window than {} to {}", asked.start, asked.end),
        )
        .hint("pass --start and --end of that run"));
    }
    Ok(world)
}

fn play_noting(
    market: Market,
    player: Replay,
    mut manifest: Manifest,
    setup: Setup,
    watch: Watch,
    observer: &mut dyn Observer,
    seen: &mut Seen,
) -> Result<Replayed, Fault> {
    let meta = meta(&player);
    let days = window(&setup.window.start, &setup.window.end)?;
    let world = world_of(market, &meta, &mut manifest, &setup.window, setup.key)?;
    let days = world.days(days)?;
    world.gate.set(setup.gate);
    world.sandbox.set(setup.sandbox);
    // The recording holds what a model in a style was sent.
    let total = player.total() as u64;
    let mut client = StyledClient::new(Watched::new(player, watch), manifest.style);
    let played = world.play(setup.journal, &mut client, &days, &meta.model, observer);
    let client = client.into_inner();
    *seen = client.seen.clone();
    if seen.reached {
        // What the run came to after the last request that was to be looked at is no matter of this replay.
        let summary = played.ok().or_else(|| world.stopped.take());
        let summary = summary.ok_or_else(|| Fault::text(Class::Stopped, "the replay was ended and left no summary"))?;
        return Ok(Replayed {
            requests: seen.answered,
            recorded: total,
            until: watch.until,
            summary,
            world,
            manifest,
            model: meta.model,
        });
    }
    let summary = played?;
    let player = client.into_player();
    if player.cassette().scheme() == Scheme::Whole {
        // Every request matched its fingerprint; the file itself may still have been edited where no fingerprint looks.
        player.cassette().verify().map_err(|e| crate::bundle::recording(e, Class::Finding))?;
    }
    player.finish().map_err(|e| {
        let unused = matches!(e, ReplayError::Unused { .. });
        let fault = Fault::new(Class::Finding, e);
        if unused {
            fault.hint("the run ends before its recording does: days, card or limits are other than those of the run")
        } else {
            fault
        }
    })?;
    Ok(Replayed { requests: summary.requests, recorded: total, until: None, summary, world, manifest, model: meta.model })
}

fn head(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn meta(player: &Replay) -> Meta {
    player.cassette().meta().cloned().unwrap_or_default()
}
