//! The row of the HTTP door: a served process, 64 sessions over one store, requests at a fixed rate. The generator is that of
//! `cargo xtask load`, which shows the whole distribution.

use super::House;
use super::measure::{Outcome, Row, Target};
use crate::load::{self, Plan};

pub(crate) fn all() -> Vec<Row> {
    vec![Row { name: "serve_http_p99", unit: "ms", target: Target::AtMost(5.0), peer: None, measure: p99 }]
}

/// What 99 of 100 requests for a point tool stay within, from the time each was due.
fn p99(_: &mut House) -> anyhow::Result<Outcome> {
    let command = match load::command() {
        Ok(command) => command,
        Err(fault) => return Ok(Outcome::Missing(fault.to_string())),
    };
    let figures = load::measure(&command, &Plan::default())?;
    anyhow::ensure!(figures.errors() == 0, "{} requests were not answered with 200", figures.errors());
    Ok(Outcome::Samples(vec![figures.quantile(0.99)]))
}
