//! `traderharness serve prune`: removes what a folder has kept too long, while no server has it open.

use super::desk;
use super::options::PruneOptions;
use crate::fault::Outcome;
use crate::report::print;
use serde_json::json;
use std::process::ExitCode;
use traderharness_serve::house::prune;

pub(super) fn run(options: &PruneOptions) -> Outcome {
    let forget = desk::forgets(&options.keep);
    let pruned = prune(&options.keep, options.older_than, options.dry_run, &*forget).map_err(|e| {
        let hint = "a server that runs prunes by itself (`keep.days` of its configuration)";
        desk::not_opened(e, Some(&options.keep)).hint(hint)
    })?;
    print(&if options.json {
        json!({ "keep": options.keep, "older_than": options.older_than, "dry_run": options.dry_run, "pruned": pruned })
            .to_string()
    } else {
        format!(
            "{}: {} sessions with {} records, {} answers and {} jobs; {} lines of the audit log",
            if options.dry_run { "would remove" } else { "removed" },
            pruned.sessions,
            pruned.records,
            pruned.answers,
            pruned.jobs,
            pruned.audit_lines
        )
    });
    Ok(ExitCode::SUCCESS)
}
