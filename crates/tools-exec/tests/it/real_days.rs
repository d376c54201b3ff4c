//! Real limit days of 2025: at close_2 the order path takes and refuses what the exchange would (issue 4, real acceptance).

use crate::fixture::*;
use std::fmt::Write as _;
use std::path::Path;
use traderharness_ingest::{LoadOptions, load, quiet};
use traderharness_market::DecisionPoint::{Close2, Open1, PreMarket};
use traderharness_market::{Band, Clock, Mask, MaskConfig, Store, View};
use traderharness_tools_exec::{CardLimits, Refusal};

fn real() -> Option<Store> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/real-2025");
    if !path.exists() {
        println!("skipped: the real 2025 set is not here");
        return None;
    }
    Some(load(&path, &LoadOptions::default(), &quiet).unwrap().store)
}

#[test]
fn real_limit_days_are_locked_on_the_right_side() {
    let Some(store) = real() else { return };
    let mask = Mask::new(&store, MaskConfig::default());
    let days = store.calendar().days().to_vec();
    let limits = CardLimits { participation_basis_points: None, ..free() };
    let mut table = String::from("day        code   close  down   up     buy               sell\n");
    let (mut up_days, mut down_days, mut one_price) = (0, 0, 0);
    for pair in days.windows(2) {
        let view = View::new(&store, Clock { day: pair[1], point: Close2 }, &mask);
        let before = View::new(&store, Clock { day: pair[0], point: Open1 }, &mask);
        for sec in view.securities() {
            let Some(bar) = view.window_bar(sec) else { continue };
            let Ok(Band::Limits { up, down, .. }) = view.band(sec) else { continue };
            let price = view.mark(sec).unwrap().price;
            if price > down && price < up {
                continue;
            }
            let code = view.code(sec);
            let mut account = rich();
            let held = place(buy(code.as_str(), 200), &before, &mut account, &limits).is_ok();
            account.start_day(&View::new(&store, Clock { day: pair[1], point: PreMarket }, &mask)).unwrap();
            let answer = |result: Result<_, Refusal>| {
                result.map_or_else(
                    |r| r.code().as_str().to_owned(),
                    |f: traderharness_tools_exec::Fill| format!("filled {}", f.price),
                )
            };
            let bought = answer(place(buy(code.as_str(), 200), &view, &mut account.clone(), &limits));
            let sold = if held { answer(place(sell(code.as_str(), 0), &view, &mut account, &limits)) } else { "-".to_owned() };
            if price >= up {
                up_days += 1;
                assert_eq!(bought, "limit_up_locked");
                assert!(sold == "-" || sold.starts_with("filled"), "{sold}");
            } else {
                down_days += 1;
                assert!(bought.starts_with("filled"), "{bought}");
                assert!(sold == "-" || sold == "limit_down_locked", "{sold}");
            }
            let today = view.minutes_today(sec);
            one_price += usize::from(today.iter().all(|b| b.high == b.low && b.close == bar.close));
            writeln!(table, "{} {code} {price:<6} {down:<6} {up:<6} {bought:<17} {sold}", pair[1]).unwrap();
        }
    }
    writeln!(table, "closes at the upper limit {up_days}, at the lower limit {down_days}, days of one price {one_price}")
        .unwrap();
    insta::assert_snapshot!(table);
}

#[test]
fn a_position_held_over_the_real_window_reconciles_every_day() {
    let Some(store) = real() else { return };
    let mask = Mask::new(&store, MaskConfig::default());
    let mut account = rich();
    let limits = CardLimits::default();
    let days: Vec<_> = store.calendar().days().iter().copied().filter(|d| d.to_string().as_str() >= "2025-07-11").collect();
    let mut filled = 0;
    for (i, day) in days.iter().enumerate() {
        let view = |point| View::new(&store, Clock { day: *day, point }, &mask);
        account.start_day(&view(PreMarket)).unwrap();
        let sec = view(Open1).securities().nth(i * 5 % 150).unwrap();
        let code = view(Open1).code(sec);
        filled += usize::from(place(buy(code.as_str(), 200), &view(Open1), &mut account, &limits).is_ok());
        let oldest = account.ledger().positions().first().map(|p| p.code);
        if let Some(code) = oldest.filter(|_| account.ledger().positions().len() == 4) {
            filled += usize::from(place(sell(code.as_str(), 0), &view(Close2), &mut account, &limits).is_ok());
        }
        account.check_invariants().unwrap();
    }
    assert!(filled > 20, "{filled}");
    let last = View::new(&store, Clock { day: days[days.len() - 1], point: Close2 }, &mask);
    let open: i64 = account.valuation(&last).positions.iter().map(|p| p.value.0).sum();
    let cost: i64 = account.ledger().positions().iter().map(|p| p.cost.0 + p.buy_fees.0).sum();
    let change = account.equity(&last).0 - account.initial_cash.0;
    assert_eq!(change, account.ledger().realised().0 + open - cost, "realised and open profit are the change of equity");
}
