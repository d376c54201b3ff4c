//! `traderharness cards`: checks card files before a run, makes them of those of the Python implementation, and prints the schema they follow.

use crate::args::{CardsCommand, CardsOptions};
use crate::fault::{Class, Fault, Outcome, read_text};
use crate::migrate::write_new;
use crate::report::{print, tell};
use crate::run::pretty;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use traderharness_harness::card::Became;
use traderharness_harness::written::{self, Format};
use traderharness_harness::{Card, Toolbox};

#[derive(Debug, Args)]
pub(crate) struct ConvertOptions {
    /// Card of the Python implementation, or the file of a committee of it; JSON.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// New file for the card; without it the card goes to stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print card and fields as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn cards(options: &CardsOptions) -> Outcome {
    match &options.command {
        CardsCommand::Schema => {
            let document = Card::document().map_err(|e| Fault::new(Class::Environment, e))?;
            print(&serde_json::to_string_pretty(&document.published()).unwrap_or_default());
            Ok(ExitCode::SUCCESS)
        }
        CardsCommand::Convert(asked) => convert(asked),
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

/// Writes the card that a file of the Python implementation comes to; what became of each field goes to stderr.
fn convert(options: &ConvertOptions) -> Outcome {
    let path = &options.file;
    let named = |error: anyhow::Error| Fault::new(Class::Input, error).context(format!("card `{}`", path.display()));
    let text = read_text("card", path)?;
    let file =
        written::read(&text, Format::Json).map_err(|e| named(e.into()).hint("cards of the Python implementation are JSON"))?;
    let converted = Card::of_python(&file).map_err(|e| {
        named(e.into()).hint("nothing was written; a card of this program needs no conversion: `traderharness cards check`")
    })?;
    let card = json!(converted.card);
    if let Some(out) = &options.out {
        write_new(out, (pretty(&card) + "\n").as_bytes())?;
    }
    if options.json {
        print(&pretty(&json!({ "card": card, "fields": converted.told, "out": options.out })));
        return Ok(ExitCode::SUCCESS);
    }
    for told in &converted.told {
        let became = match told.became {
            Became::Mapped => "mapped",
            Became::Defaulted => "defaulted",
            Became::Coerced => "coerced",
            Became::NotMapped => "not mapped",
        };
        let what = if told.what.is_empty() { String::new() } else { format!(": {}", told.what) };
        tell(&format!("{}: {became}{what}", told.pointer));
    }
    match &options.out {
        Some(out) => print(&format!("{}: written", out.display())),
        None => print(&pretty(&card)),
    }
    Ok(ExitCode::SUCCESS)
}
