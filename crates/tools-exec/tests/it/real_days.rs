//! Real limit days of 2025: at close_2 the order path takes and refuses what the exchange would (issue 4, real acceptance).

use crate::fixture::*;
use std::fmt::Write as _;
use std::path::Path;
use traderharness_ingest::{LoadOptions, load, quiet};
use traderharness_market::DecisionPoint::{Close2, Open1, PreMarket};
use traderharness_market::{Band, Clock, Mask, MaskConfig, Store, View};
use traderharness_tools_exec::{CardLimits, Control, Refusal};

fn real() -> Option<Store> {
    real_set("real-2025")
}

fn real_set(name: &str) -> Option<Store> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !path.exists() {
        println!("skipped: the set {name} is not here");
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

#[test]
fn a_real_dividend_leaves_the_value_where_it_was() {
    // 600036, ex-date 2017-06-14, 7.40 CNY per 10 shares; engine E6.1, E6.3. By hand, dated fees of 2017:
    // 06-13 open_1: 1,000 at 22.56 = 22,560.00; commission 5.64; transfer fee 0.002 % = 0.45; cash 977,433.91
    // 06-13 close 22.49: equity 977,433.91 + 22,490.00 = 999,923.91
    // 06-14 before the open: dividend 740.00, cash 978,173.91; ex-right price 22.49 - 0.74 = 21.75; equity 999,923.91
    // 06-14 open_1: sold at 21.77 = 21,770.00; commission 5.44, stamp duty 21.77, transfer fee 0.44; gross -790.00,
    //   net -790.00 - 6.09 - 27.65 = -823.74; with the dividend -83.74, which is the change of the cash
    let Some(store) = real_set("real-tdx") else { return };
    let mask = Mask::new(&store, MaskConfig::default());
    let at = |date: &str, point| View::new(&store, Clock { day: traderharness_market::testing::day(date), point }, &mask);
    let limits = CardLimits { fees: traderharness_market::FeeSchedule::Dated, ..free() };
    let mut account = rich();
    let bought = place(buy("600036", 1_000), &at("2017-06-13", Open1), &mut account, &limits).unwrap();
    assert_eq!((bought.price.to_string().as_str(), account.cash().to_string().as_str()), ("22.56", "977433.91"));
    let stop = serde_json::json!({"operation": "create", "reasoning": "r", "action": "sell", "stock_code": "600036", "quantity": 0,
                                  "comparator": "price_lte", "trigger_price": 22.0});
    let view = at("2017-06-13", Close2);
    call("manage_conditional_order", stop, view, &mut account, &limits, &mut Control::default()).unwrap();
    assert_eq!(account.equity(&view).to_string(), "999923.91");
    let view = at("2017-06-14", PreMarket);
    let actions = account.start_day(&view).unwrap();
    assert_eq!((actions[0].cash.to_string().as_str(), account.cash().to_string().as_str()), ("740.00", "978173.91"));
    assert_eq!(account.equity(&view).to_string(), "999923.91");
    // The stop at 22.00, 2.2 % below the price, would fire at the open of 21.7; moved by 21.75 / 22.49 it stands at 21.28.
    assert_eq!(actions[0].rescaled[0].to.to_string(), "21.28");
    let view = at("2017-06-14", Open1);
    assert_eq!(traderharness_tools_exec::evaluate(&view, &mut account, &limits), []);
    let sold = place(sell("600036", 0), &view, &mut account, &limits).unwrap();
    assert_eq!((sold.price.to_string().as_str(), sold.realised.gross.to_string().as_str()), ("21.77", "-790.00"));
    assert_eq!(
        (sold.realised.net.to_string().as_str(), account.ledger().dividends().to_string().as_str()),
        ("-823.74", "740.00")
    );
    assert_eq!(account.cash().to_string(), "999916.26");
}
