//! `traderharness demo`: replays the bundled one-day recording over the bundled real pack. No argument, no network, no key.

use crate::args::DemoOptions;
use crate::fault::{Class, Fault, Outcome};
use crate::manifest::{Window, parse_key};
use crate::replay::{Setup, identical, manifest, play};
use crate::report::{Printer, print, summary_text};
use crate::run::{machine, pretty};
use crate::source;
use serde_json::json;
use std::process::ExitCode;
use traderharness_harness::run::{Observer, Silent};
use traderharness_harness::session::NoJournal;
use traderharness_replay::{Cassette, Replay};

/// The recording, made under contract v2; by `cargo xtask cassettes`, and checked by a test.
const CASSETTE: &str = include_str!("../recordings/v2.jsonl");
/// Its mask key. Public on purpose: the demo has nothing to hide.
const MASK_KEY: &str = include_str!("../demo/mask.key");

/// Its day. The recording itself hides it, as every recording with hidden dates does.
const DAY: &str = "2020-02-04";

pub(crate) fn demo(options: &DemoOptions) -> Outcome {
    let cassette = Cassette::from_bytes("bundled demo", CASSETTE.as_bytes()).map_err(|e| Fault::new(Class::Environment, e))?;
    let player = Replay::new(cassette);
    let manifest = manifest(&player)?;
    let dataset = source::open(None, options.json)?;
    let mut silent = Silent;
    let mut printer = Printer::new();
    if !options.json {
        print(
            "One recorded trading day, replayed over real bars. Codes are exchanged and dates are masked, as the agent saw them.",
        );
    }
    let observer: &mut dyn Observer = if options.json { &mut silent } else { &mut printer };
    let window = Window { start: DAY.to_owned(), end: DAY.to_owned() };
    let setup = Setup { window, key: parse_key(MASK_KEY)?, gate: None, sandbox: None, journal: Box::new(NoJournal) };
    let replayed = play(dataset, player, manifest, setup, observer)?;
    if options.json {
        print(&pretty(
            &json!({ "identical": replayed.requests, "requests": replayed.requests, "run": machine(&replayed.summary, &replayed.world) }),
        ));
        return Ok(ExitCode::SUCCESS);
    }
    print(&summary_text(&replayed.summary, &replayed.world.data_notes()));
    if printer.repairs > 0 {
        print(&format!("{} failed call(s) were repaired inside their phase.", printer.repairs));
    }
    print(&identical(replayed.requests));
    print(NEXT);
    Ok(ExitCode::SUCCESS)
}

const NEXT: &str = "\nTry next:
  traderharness tools place_order        the contract of one tool
  traderharness data info                what the bundled real pack holds
  traderharness data generate --out m    a whole synthetic market to run on
  traderharness run --help               your own script over your own window";
