//! `traderharness serve record`: the run folder of a session that a keep folder holds, for every command that reads a run. It changes
//! nothing of the session.

use super::desk::{self, Desk};
use super::folder::{SessionFolder, caller_of, refused};
use super::options::RecordOptions;
use crate::fault::{Class, Fault, Outcome};
use crate::run::RunFolder;
use std::process::ExitCode;
use traderharness_serve::House;

/// Who played, as reports name it: what asked over a door, nobody here knows.
const AGENT: &str = "client of a door";

pub(super) fn run(options: &RecordOptions) -> Outcome {
    if options.desk.keep.is_none() {
        return Err(Fault::text(Class::Input, "a session is recorded out of a keep folder").hint("pass --keep DIR"));
    }
    let Desk { config, sources, .. } = Desk::open(&options.desk, true)?;
    let house = House::open(config).map_err(|e| desk::not_opened(e, options.desk.keep.as_deref()))?;
    let caller = caller_of(&house, options.caller.as_deref(), options.desk.config.is_some())?;
    let unknown = |refusal| refused(refusal).hint("sessions that ended are kept for so many days (`keep.days`)");
    let state = house.session(&caller, &options.session).map_err(unknown)?;
    if state.state == "open" {
        return Err(Fault::text(
            Class::Input,
            format!("the session is open: it stands on day {} at {}", state.day_index, state.point),
        )
        .hint("a session is recorded when it has ended: play it to its end, or close it"));
    }
    // Before the folder is made: options that are not those of the server leave nothing behind.
    house.made_of(&caller, &options.session).map_err(|refusal| {
        Fault::new(Class::Input, refusal)
            .context(format!("session `{}` cannot be recorded", options.session))
            .hint("pass the options of its server: --start, --end, --mask, --card, --data or --config")
    })?;
    let folder = RunFolder::create(&options.record)?;
    let mut run = SessionFolder::open(folder, &house, &caller, &options.session, AGENT, &sources)?;
    run.catch_up()?;
    if run.has_end() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Fault::text(
        Class::Stopped,
        "the session was stopped by a defect and has no end; what was recorded of it is in the folder",
    ))
}
