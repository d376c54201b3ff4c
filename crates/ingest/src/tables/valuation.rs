//! Valuation: as many rows as daily bars, so it is read and ordered as columns.

use super::{Brought, CODE, Opened};
use crate::bars::{LEFT_OUT, canonical_order, key, span};
use crate::civil;
use crate::column::{BAD_CODE, NULL_CODE};
use crate::error::IngestError;
use crate::load::LoadOptions;
use crate::report::FaultKind;
use crate::source::Source;
use rayon::prelude::*;
use traderharness_market::Day;
use traderharness_market::store::ValuationColumns;

/// `valuation.parquet`; `universe` are the code numbers of the store.
pub(crate) fn valuation(
    source: &Source,
    universe: &[u32],
    options: &LoadOptions,
) -> Result<Brought<ValuationColumns>, IngestError> {
    const NUMBERS: [&[&str]; 4] = [&["pe_ttm"], &["pb_mrq"], &["ps_ttm"], &["turn", "turnover"]];
    let Opened { file, mut report, mut faults } = Opened::new(source, "valuation.parquet", options)?;
    let (codes, (times, (flags, numbers))) = rayon::join(
        || file.codes(CODE),
        || {
            rayon::join(
                || file.times(&["date"]),
                || {
                    rayon::join(
                        || if file.has(&["is_st"]) { file.flags(&["is_st"]) } else { Ok(vec![2; file.rows()]) },
                        || NUMBERS.par_iter().map(|names| file.floats_or_nan(names)).collect::<Vec<_>>(),
                    )
                },
            )
        },
    );
    let (codes, times, flags) = (codes?, times?, flags?);
    let mut values = Vec::with_capacity(5);
    for column in numbers {
        values.push(column?);
    }
    // As numbers, so that the flag takes part in the canonical order.
    values.push(flags.iter().map(|f| f64::from(*f)).collect::<Vec<f64>>());
    for (text, count) in &codes.bad {
        faults.text(FaultKind::MalformedCode, 0, &format!("`{text}` in {count} rows"));
    }
    // An empty universe means that the daily bars could not be read, which is its own fault.
    let mut in_universe = vec![universe.is_empty(); 1_000_000];
    for code in universe {
        in_universe[*code as usize] = true;
    }
    let mut keys: Vec<u64> = codes
        .rows
        .iter()
        .zip(&times)
        .map(|(code, time)| {
            let kind = match *code {
                NULL_CODE => FaultKind::NullKey,
                BAD_CODE => FaultKind::MalformedCode,
                _ if *time == civil::NULL => FaultKind::NullKey,
                _ if *time == civil::BAD => FaultKind::UnreadableDate,
                code if !in_universe[code as usize] => FaultKind::OutsideUniverse,
                code => return key(code, time.div_euclid(civil::DAY) as i32, 0),
            };
            faults.many(kind, 1);
            LEFT_OUT
        })
        .collect();
    if let Some(order) = canonical_order(&keys, &values, &mut faults) {
        values.par_iter_mut().for_each(|column| *column = order.iter().map(|i| column[*i as usize]).collect());
        keys = order.iter().map(|i| keys[*i as usize]).collect();
    }
    for (index, column) in values.iter_mut().enumerate() {
        for (row, value) in column.iter_mut().enumerate() {
            if value.is_infinite() {
                let (code, day, _) = crate::bars::place(keys[row]);
                faults.at(FaultKind::NonFiniteValue, (code, day, 0));
            }
            *value = if value.is_finite() { *value + 0.0 } else { f64::NAN };
        }
        let nulls = column.iter().filter(|v| v.is_nan() || (index == 4 && **v > 1.0)).count() as u64;
        if nulls > 0 {
            let name = NUMBERS.get(index).map_or("is_st", |names| names[0]);
            report.nulls.insert(name.to_owned(), nulls);
        }
    }
    let place = |k: &u64| crate::bars::place(*k);
    let day: Vec<Day> = keys.iter().map(|k| Day(place(k).1)).collect();
    span(&mut report, &day);
    report.kept = keys.len() as u64;
    let mut offsets: Vec<u32> = universe.iter().map(|c| keys.partition_point(|k| place(k).0 < *c) as u32).collect();
    offsets.push(keys.len() as u32);
    report.securities = offsets.windows(2).filter(|w| w[0] < w[1]).count() as u64;
    if keys.is_empty() {
        faults.many(FaultKind::EmptyTable, 1);
    }
    let mut values = values.into_iter();
    let mut next = || values.next().unwrap_or_default();
    let (pe_ttm, pb_mrq, ps_ttm, turnover) = (next(), next(), next(), next());
    let is_st = next().into_iter().map(|v| v as u8).collect();
    Ok(Brought { rows: ValuationColumns { offsets, day, pe_ttm, pb_mrq, ps_ttm, turnover, is_st }, report, faults })
}
