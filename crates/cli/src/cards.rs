//! `traderharness cards`: checks card files before a run, and prints the schema they follow.

use crate::args::{CardsCommand, CardsOptions};
use crate::fault::{Class, Fault, Outcome, read_text};
use crate::report::print;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use traderharness_harness::written::Format;
use traderharness_harness::{Card, Toolbox};

pub(crate) fn cards(options: &CardsOptions) -> Outcome {
    match &options.command {
        CardsCommand::Schema => {
            let document = Card::document().map_err(|e| Fault::new(Class::Environment, e))?;
            print(&serde_json::to_string_pretty(&document.published()).unwrap_or_default());
            Ok(ExitCode::SUCCESS)
        }
        CardsCommand::Check(check) => {
            let mut found = 0;
            let mut rows = Vec::new();
            for path in &check.files {
                let fault = checked(path)?.err();
                found += usize::from(fault.is_some());
                if check.json {
                    rows.push(json!({ "card": path, "valid": fault.is_none(), "fault": fault }));
                } else {
                    print(&match fault {
                        None => format!("{}: good", path.display()),
                        Some(fault) => format!("{}: {fault}", path.display()),
                    });
                }
            }
            if check.json {
                print(&serde_json::to_string_pretty(&rows).unwrap_or_default());
            }
            Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::from(Class::Finding as u8) })
        }
    }
}

/// What is wrong with a card, tool names included.
fn checked(path: &Path) -> Result<Result<(), String>, Fault> {
    let text = read_text("card", path)?;
    let name = path.to_string_lossy();
    // YAML holds JSON too, but only the strict reader of JSON finds everything that is wrong with it.
    let format = Format::of_name(&name).unwrap_or(Format::Yaml);
    Ok(Card::read(&text, format)
        .map_err(|e| e.to_string())
        .and_then(|card| Toolbox::new(&card, true).map(|_| ()).map_err(|e| e.to_string())))
}
