//! Measures the rows of the design page: medians on this machine, in a release build, beside the target and the figure of the
//! Python implementation. Never compares with an earlier run and never fails on a slow machine: it prints, a person decides.
//!
//! To add a row: write a `fn(&mut House) -> anyhow::Result<Outcome>` in a file of [`rows`] and list it in [`rows::ALL`]. To measure
//! what needs a process of its own (a cold load, resident memory) add a probe to [`rows::PROBES`] and call [`House::probe`].

mod house;
mod measure;
mod recordings;
mod rows;
mod sandbox;
mod serve;
mod served;
mod session;
mod tools;

pub(crate) use house::House;

pub(crate) use measure::resident_kib;
use measure::{Outcome, Row, Target};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Measures the rows whose name has `filter` in it, prints them and writes `target/bench.json`.
pub(crate) fn run(root: &Path, json: bool, filter: Option<&str>) -> anyhow::Result<ExitCode> {
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: the figures mean nothing; use `cargo xtask bench`");
    }
    let wanted = |row: &&Row| filter.is_none_or(|filter| row.name.contains(filter));
    let more = more();
    let rows: Vec<&Row> = rows::ALL.iter().chain(&more).filter(wanted).collect();
    anyhow::ensure!(!rows.is_empty(), "no row is named like `{}`", filter.unwrap_or_default());
    let mut house = House::new();
    let mut lines = Vec::new();
    for row in rows {
        if !json {
            eprintln!("measuring {} ...", row.name);
        }
        lines.push(Line {
            row,
            outcome: (row.measure)(&mut house).unwrap_or_else(|fault| Outcome::Missing(format!("{fault:#}"))),
        });
    }
    let report = json!({
        "market": House::describe(),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "rows": lines.iter().map(Line::json).collect::<Vec<Value>>(),
    });
    let report = serde_json::to_string_pretty(&report)? + "\n";
    let path = root.join("target/bench.json");
    std::fs::create_dir_all(root.join("target"))?;
    std::fs::write(&path, &report)?;
    if json {
        print!("{report}");
    } else {
        print!("{}", table(&lines));
        println!(
            "\n{}. Peer: figures of the Python implementation on two cores, same sizes. Written to target/bench.json",
            House::describe()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Rows beside those of the design page.
fn more() -> Vec<Row> {
    let mut rows = tools::all();
    rows.extend(sandbox::all());
    rows.extend(served::all());
    rows.extend(recordings::all());
    rows.extend(serve::all());
    rows
}

/// Prints the number that a probe measured in this process.
pub(crate) fn probe(name: &str, dataset: &Path) -> anyhow::Result<ExitCode> {
    let probe = rows::PROBES.iter().find(|(known, _)| *known == name);
    let (_, measure) = probe.ok_or_else(|| anyhow::anyhow!("no probe is called `{name}`"))?;
    println!("{}", measure(&mut House::over(dataset))?);
    Ok(ExitCode::SUCCESS)
}

/// A measured row.
struct Line<'a> {
    row: &'a Row,
    outcome: Outcome,
}

impl Line<'_> {
    /// How often the peer's figure holds ours, or ours the peer's where more is better.
    fn ratio(&self) -> Option<f64> {
        let (peer, median) = (self.row.peer?, self.outcome.median()?);
        Some(match self.row.target {
            Target::AtLeast(_) => median / peer,
            Target::AtMost(_) | Target::None => peer / median,
        })
    }

    fn json(&self) -> Value {
        let missing = match &self.outcome {
            Outcome::Missing(why) => Some(why),
            Outcome::Samples(_) => None,
        };
        let (least, most) = match self.row.target {
            Target::AtLeast(bound) => (Some(bound), None),
            Target::AtMost(bound) => (None, Some(bound)),
            Target::None => (None, None),
        };
        json!({
            "name": self.row.name,
            "unit": self.row.unit,
            "median": self.outcome.median(),
            "runs": self.outcome.runs(),
            "at_most": most,
            "at_least": least,
            "holds": self.outcome.median().and_then(|median| self.row.target.holds(median)),
            "peer": self.row.peer,
            "times_peer": self.ratio(),
            "not_measured": missing,
        })
    }

    fn cells(&self) -> [String; 6] {
        let target = match self.row.target {
            Target::AtMost(bound) => format!("< {}", shown(bound)),
            Target::AtLeast(bound) => format!(">= {}", shown(bound)),
            Target::None => String::new(),
        };
        let verdict = match &self.outcome {
            Outcome::Missing(why) => format!("not measured: {why}"),
            Outcome::Samples(_) => match self.outcome.median().and_then(|median| self.row.target.holds(median)) {
                Some(true) => "holds".to_owned(),
                Some(false) => "MISSES".to_owned(),
                None => String::new(),
            },
        };
        [
            self.row.name.to_owned(),
            self.outcome.median().map(|median| format!("{} {}", shown(median), self.row.unit)).unwrap_or_default(),
            target,
            self.row.peer.map(shown).unwrap_or_default(),
            self.ratio().map(|ratio| format!("{}x", shown(ratio))).unwrap_or_default(),
            verdict,
        ]
    }
}

/// Rows in columns; the last column is free text and not padded.
fn table(lines: &[Line<'_>]) -> String {
    let head = ["row", "median", "target", "peer", "faster", "verdict"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(lines.iter().map(Line::cells)).collect();
    let mut text = String::new();
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            let pad = if column + 1 == row.len() { 0 } else { width + 2 - cell.chars().count() };
            text.push_str(cell);
            text.push_str(&" ".repeat(pad));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Three significant digits, without an exponent.
fn shown(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 2 - value.abs().log10().floor() as i32 };
    format!("{value:.*}", usize::try_from(digits.clamp(0, 6)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn row(name: &'static str, target: Target, peer: Option<f64>) -> Row {
        Row { name, unit: "ms", target, peer, measure: |_| Ok(Outcome::Missing(String::new())) }
    }

    #[test]
    fn the_table_shows_median_target_and_ratio() {
        let (fast, slow, absent) = (
            row("fast", Target::AtMost(10.0), Some(2525.0)),
            row("slow", Target::AtLeast(50.0), None),
            row("absent", Target::None, None),
        );
        let lines = [
            Line { row: &fast, outcome: Outcome::Samples(vec![3.0, 1.0, 2.0]) },
            Line { row: &slow, outcome: Outcome::Samples(vec![12.0]) },
            Line { row: &absent, outcome: Outcome::Missing("not built yet".into()) },
        ];
        let expected = "\
row     median   target   peer  faster  verdict
fast    2.00 ms  < 10.0   2525  1262x   holds
slow    12.0 ms  >= 50.0                MISSES
absent                                  not measured: not built yet
";
        assert_eq!(table(&lines), expected);
        assert_eq!(lines[0].json()["times_peer"], 1262.5);
        assert_eq!(lines[1].json()["holds"], false);
    }

    #[test]
    fn numbers_keep_three_digits() {
        for (value, expected) in [(0.0, "0"), (0.012345, "0.0123"), (1.5, "1.50"), (1234.5, "1234"), (99.95, "100.0")] {
            assert_eq!(shown(value), expected);
        }
    }

    #[test]
    fn row_names_are_unique() {
        let more = more();
        let names: std::collections::BTreeSet<&str> = rows::ALL.iter().chain(&more).map(|row| row.name).collect();
        assert_eq!(names.len(), rows::ALL.len() + more.len());
    }
}
