//! The future is unreachable from a real process of the sandbox: whatever stands after the clock, what code prints, returns and fails
//! with is the same to the byte.

use serde_json::json;
use std::sync::{Arc, LazyLock};
use traderharness_harness::RawArguments;
use traderharness_market::{Clock, DecisionPoint, Store, StoreParts};
use traderharness_sandbox::Pool;
use traderharness_tests::market;
use traderharness_tests::poison::{Future, shows_poison};
use traderharness_tests::sandbox::{Files, pool};
use traderharness_tests::session::{all_tools_card, at};

static PARTS: LazyLock<StoreParts> = LazyLock::new(market::parts);

/// Reads all that can be read, and prints a digest of the bytes of each table.
const READ: &str = "\
import datetime, hashlib, random
from traderharness_api import market, news, portfolio
print(datetime.datetime.now(), random.random(), {'x', 'y', 'z'})
result = {'codes': market.get_stock_list(), 'cash': portfolio.get_cash(), 'positions': portfolio.get_positions(),
          'overview': market.get_market_overview(), 'screen': market.screen_stocks(max_results=30),
          'daily': market.get_all_daily(120), 'features': market.get_behavioral_features(), 'stocks': market.get_all_stocks(),
          'policy': news.get_policy_news(), 'news': news.get_news(3)}
print(hashlib.sha256(result['daily'].to_csv().encode()).hexdigest())
for code in result['codes'][:4]:
    result[code] = [market.get_kline(code, 250), market.get_kline_5min(code), market.get_stock_price(code),
                    market.get_fundamentals(code), news.get_announcements(code, 90)]
";

/// Fails with what it saw.
const FAIL: &str = "\
from traderharness_api import market
frame = market.get_all_daily(120)
raise ValueError(frame.tail(3).to_string())
";

fn told(pool: &Arc<Pool>, clock: Clock, masked: bool, future: Future) -> Vec<String> {
    let mut parts = PARTS.clone();
    future.put(&mut parts, clock);
    let store = Arc::new(Store::new(parts).expect("a store"));
    let files = Files::new();
    let mut session = files.give(at(&store, all_tools_card(), masked, clock.day, clock.point), pool);
    let mut seen = Vec::new();
    for (code, succeeds) in [(READ, true), (FAIL, false)] {
        session.begin_message();
        let report = session.call("execute_code", RawArguments::Value(json!({ "code": code }))).expect("a session that goes on");
        assert_eq!(report.envelope.is_success(), succeeds, "{}", report.text);
        let text = report.envelope.0.to_string();
        // Names without a date: what a later day knows is hidden, and told of nobody.
        let names = market::LATER_NAMES.iter().chain([&market::LATER_NAME]).filter(|_| masked);
        seen.push(names.fold(text, |text, name| text.replace(name, "another company")));
    }
    seen
}

/// Where two texts part, and what stands there.
fn parting(one: &str, two: &str) -> String {
    let at = one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count();
    let around =
        |text: &str| String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(80)..text.len().min(at + 80)]).into_owned();
    format!("at {at}:\n{}\n{}", around(one), around(two))
}

// complaints LA-1, LA-3, SB-10; engine E2
#[test]
fn nothing_after_the_clock_reaches_code() {
    let Some(pool) = pool() else {
        println!("skipped: no sandbox here; `cargo xtask setup` makes one");
        return;
    };
    let days = market::days();
    for point in [DecisionPoint::PreMarket, DecisionPoint::Open1, DecisionPoint::Close2] {
        let clock = Clock { day: days[market::SESSIONS - 2], point };
        for masked in [false, true] {
            // How many securities a dataset has numbers the aliases; so these futures keep them all.
            let [first, others @ ..] = [Future::Cut, Future::Poisoned(0), Future::Poisoned(1), Future::AsIs];
            let one = told(&pool, clock, masked, first);
            for future in others {
                for (one, two) in one.iter().zip(told(&pool, clock, masked, future)) {
                    let what = format!("{point} masked {masked} {future:?}");
                    assert!(!shows_poison(&two), "{what}: code shows a row after the clock");
                    assert!(*one == two, "{what}: code depends on what is after the clock {}", parting(one, &two));
                }
            }
        }
    }
}
