//! [`probe`]: what the sandbox finds on this machine, without running a job.

use crate::pool::{Interpreter, PoolError};
use crate::protocol::Found;
use crate::template::Template;

/// Landlock ABI from which every layer is there (truncation of files is covered).
const LANDLOCK: u32 = 3;

/// What is there and what is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probe {
    /// What the interpreter found.
    pub found: Found,
    /// What is missing, one sentence each; empty when every layer is there.
    pub missing: Vec<String>,
}

/// Starts the interpreter, asks it what it found, and ends it.
///
/// # Errors
/// [`PoolError::NotStarted`] with what the interpreter said.
pub fn probe(interpreter: &Interpreter) -> Result<Probe, PoolError> {
    let template = Template::start(interpreter).map_err(|what| PoolError::NotStarted { what })?;
    let found = template.found().clone();
    let missing = missing(&found);
    Ok(Probe { found, missing })
}

/// Layers that are missing.
fn missing(found: &Found) -> Vec<String> {
    let mut missing = Vec::new();
    let mut need = |there: bool, what: &str| {
        if !there {
            missing.push(what.to_owned());
        }
    };
    need(found.landlock > 0, "Landlock: the kernel has none, so files outside the workspace are not closed off");
    need(
        found.landlock == 0 || found.landlock >= LANDLOCK,
        "Landlock: the kernel's ABI is older than 3, so files outside the workspace may be truncated",
    );
    need(found.seccomp, "seccomp: the kernel takes no filters, so system calls are not restricted");
    need(found.memfd_sealing, "memory files cannot be sealed, so tables cannot be handed over");
    need(found.frozen_clock, "the interpreter's clock cannot be frozen, so code that reads it is not repeatable");
    need(found.deadline_trace, "the interpreter has no trace for the deadline, so only the kill ends endless code");
    need(!found.tzdata.is_empty(), "the package `tzdata` is not installed, so time zones are the machine's or missing");
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_layer_is_named() {
        assert_eq!(missing(&Found::default()).len(), 6);
        let all = Found {
            landlock: 3,
            seccomp: true,
            memfd_sealing: true,
            frozen_clock: true,
            deadline_trace: true,
            tzdata: "2025.2".to_owned(),
            ..Found::default()
        };
        assert!(missing(&all).is_empty());
        assert_eq!(missing(&Found { landlock: 2, ..all }).len(), 1);
    }
}
