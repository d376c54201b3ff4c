//! What a brief tells when something happened: words come from the pack, and what they are filled with from the code of today.

use crate::corrections::world::{BONUS, FALLING, FULL, PLAIN, Step, World, YESTERDAY, free_card, run, until};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::LazyLock;
use traderharness_contract::version::{Behaviour, Version};
use traderharness_harness::{Contract, brief};
use traderharness_market::DecisionPoint;
use traderharness_market::testing::{SmallMarket, SmallStock};

fn order(code: &str, more: serde_json::Value) -> serde_json::Value {
    let mut order = json!({ "stock_code": code, "quantity": 100, "reasoning": "r" });
    if let (Some(order), serde_json::Value::Object(more)) = (order.as_object_mut(), more) {
        order.extend(more);
    }
    order
}

/// The briefs of eventful days.
pub(super) fn render(contract: &Contract) -> String {
    let card = traderharness_harness::Card { watchlist_ttl_days: 1, ..free_card() };
    let mut session = FULL.open_under(contract, &card, YESTERDAY, DecisionPoint::Open1);
    let condition = |more| ("manage_conditional_order", more);
    let create = json!({ "operation": "create", "comparator": "price_lte" });
    let conditional = |code, action: &str, price: f64, more: serde_json::Value| {
        let mut all = create.clone();
        if let (Some(all), serde_json::Value::Object(more)) = (all.as_object_mut(), more) {
            all.extend([("action".to_owned(), json!(action)), ("trigger_price".to_owned(), json!(price))]);
            all.extend(more);
        }
        condition(order(code, all))
    };
    let calls = [
        ("place_order", order(BONUS, json!({ "action": "buy", "quantity": 100_000 }))),
        ("place_order", order(FALLING, json!({ "action": "buy" }))),
        ("add_watchlist", json!({ "stock_code": PLAIN, "reason": "r" })),
        conditional(FALLING, "sell", 9.5, json!({})),
        // Met on the same bars, when the cash does not reach; and one that ends with its day.
        conditional(FALLING, "buy", 9.45, json!({ "quantity": 1_000_000 })),
        conditional(
            PLAIN,
            "buy",
            1.0,
            if contract.has(Behaviour::EarlyPayloads) {
                json!({ "expires_day_index": 0 })
            } else {
                json!({ "expires_in_trading_days": 1 })
            },
        ),
        conditional(BONUS, "sell", 5.0, json!({ "quantity": 500 })),
    ];
    run(&mut session, &calls.map(|(tool, args)| Step::Call(tool, args)));
    let mut text = String::new();
    let days = FULL.store.calendar().days().to_vec();
    for day in &days[YESTERDAY + 1..YESTERDAY + 4] {
        let actions = session.start_day(*day).expect("a trading day");
        let _ = write!(text, "\n=== morning\n{}", brief::morning_of(&session, &actions, 10));
        for point in [DecisionPoint::Open1, DecisionPoint::Close2] {
            until(&mut session, point);
            if let Some(told) = brief::conditions(&session) {
                let _ = write!(text, "\n=== conditions at {point}\n{told}");
            }
            let _ = write!(text, "\n=== {point}\n{}", brief::window(&session));
        }
    }
    text + &rare(contract)
}

const RARE_DAYS: [&str; 3] = ["2024-03-04", "2024-03-05", "2024-03-06"];

/// A dividend with rights, and more news than a brief shows, on the last day.
static RARE: LazyLock<World> = LazyLock::new(|| {
    let [_, _, last] = RARE_DAYS;
    let stock = SmallStock::new(PLAIN).name("Quanfeng Works").listed("2019-01-02").closes(&[10.0; RARE_DAYS.len()]);
    let stock = RARE_DAYS.into_iter().fold(stock, |stock, day| stock.minutes(day, &[10.0; 48]));
    let market = SmallMarket::new(RARE_DAYS[0], RARE_DAYS.len()).stock(stock.ex_event(last, 0.0, 0.0, 5.0, 3.0, 8.0));
    let told = (10..40).fold(market, |market, k| market.news(&format!("{last} 08:{k}"), &format!("Report {k}"), "Words."));
    World::of(told.parts())
});

/// The morning of the last day there.
fn rare(contract: &Contract) -> String {
    let mut session = RARE.open_under(contract, &free_card(), 1, DecisionPoint::Open1);
    run(&mut session, &[Step::Call("place_order", order(PLAIN, json!({ "action": "buy", "quantity": 1_000 })))]);
    let day = RARE.store.calendar().days()[2];
    let actions = session.start_day(day).expect("a trading day");
    format!("\n=== a dividend, rights, and many texts\n{}", brief::morning_of(&session, &actions, 10))
}

// spec/versions.md, table; engine E10.1
#[test]
fn briefs_of_eventful_days_are_what_they_were() {
    for version in Version::ALL {
        let text = render(&Contract::of(version));
        if version == Version::V5 {
            for event in [
                "dividend ",
                "rights offered",
                "the latest first",
                "new shares",
                "has expired",
                "left the watchlist",
                "sold 100 shares",
                "and refused",
            ] {
                assert!(text.contains(event), "{event}: {text}");
            }
        }
        insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(
                format!("version-{version}-briefs"),
                text,
                &format!("recordings made under {version} would no longer replay")
            );
        });
    }
}
