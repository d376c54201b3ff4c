//! Companies and their ex-events.

use super::{Brought, Opened, by_numbers};
use crate::civil;
use crate::error::IngestError;
use crate::load::LoadOptions;
use crate::report::FaultKind;
use crate::source::Source;
use traderharness_market::Code;
use traderharness_market::store::{ExEvent, Security};

/// `securities.parquet`.
pub(crate) fn securities(source: &Source, options: &LoadOptions) -> Result<Brought<Vec<Security>>, IngestError> {
    let mut open = Opened::new(source, "securities.parquet", options)?;
    let codes = open.codes()?;
    if !open.file.has(&["name"]) {
        open.file.texts(&["name"])?; // the error names the column
    }
    let names = open.clean_texts(&["name"], false)?;
    let industries = open.clean_texts(&["industry"], false)?;
    let aliases = open.clean_texts(&["aliases"], false)?;
    let listed = open.dates_or_null(&["list_date", "listed", "ipo_date"])?;
    let mut rows = Vec::with_capacity(codes.len());
    for (row, code) in codes.into_iter().enumerate() {
        let Some(code) = code else { continue };
        if names[row].is_empty() {
            open.faults.text(FaultKind::NoName, 1, code.as_str());
        }
        rows.push(Security {
            code,
            name: names[row].clone(),
            aliases: aliases[row].split('|').map(str::trim).filter(|a| !a.is_empty()).map(ToOwned::to_owned).collect(),
            industry: industries[row].clone(),
            listed: civil::day(listed[row]),
        });
    }
    let order = |a: &Security, b: &Security| {
        (a.code, &a.name, &a.industry, &a.aliases, a.listed).cmp(&(b.code, &b.name, &b.industry, &b.aliases, b.listed))
    };
    Ok(open.close(rows, order, |a, b| a.code == b.code, |r| Some(r.code), |r| r.listed))
}

/// `dividends.parquet`. Null ratios are zero: the sources leave out what an event does not have.
pub(crate) fn dividends(source: &Source, universe: &[Code], options: &LoadOptions) -> Result<Brought<Vec<ExEvent>>, IngestError> {
    let mut open = Opened::new(source, "dividends.parquet", options)?;
    let codes = open.codes()?;
    let ex_dates = open.dates(&["ex_date"])?;
    let announced = open.dates_or_null(&["ann_date"])?;
    let numbers: Vec<Vec<f64>> = [
        open.file.floats(&["bonus_shares"])?,
        open.file.floats(&["transfer_shares"])?,
        open.file.floats(&["cash_dividend"])?,
        open.file.floats_or_nan(&["rights_shares"])?,
        open.file.floats_or_nan(&["rights_price"])?,
    ]
    .into_iter()
    .map(|column| column.into_iter().map(|v| if v.is_nan() { 0.0 } else { v + 0.0 }).collect())
    .collect();
    let mut rows = Vec::with_capacity(codes.len());
    for (row, code) in codes.into_iter().enumerate() {
        let Some(code) = code else { continue };
        let [bonus, transfer, cash, rights, rights_price] = [0, 1, 2, 3, 4].map(|i| numbers[i][row]);
        if [bonus, transfer, cash, rights, rights_price].iter().any(|v| !v.is_finite() || *v < 0.0) {
            open.faults.text(FaultKind::ImplausibleRatio, 1, code.as_str());
            continue;
        }
        let ex_date = civil::day(ex_dates[row]);
        if ex_date.is_none() {
            open.faults.many(FaultKind::NoExDate, 1);
        }
        let announced = civil::day(announced[row]);
        rows.push(ExEvent { code, announced, ex_date, bonus, transfer, cash, rights, rights_price });
    }
    open.outside(rows.iter().map(|r| r.code), universe);
    let order = |a: &ExEvent, b: &ExEvent| {
        let numbers = |e: &ExEvent| [e.bonus, e.transfer, e.cash, e.rights, e.rights_price].map(Some);
        (a.code, a.ex_date, a.announced).cmp(&(b.code, b.ex_date, b.announced)).then_with(|| by_numbers(numbers(a), numbers(b)))
    };
    // One security can have several events on one day, so only equal rows are repeats.
    Ok(open.close(rows, order, |_, _| false, |r| Some(r.code), |r| r.ex_date))
}
