//! A session over a small market: one call that fails, and one that follows its correction.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use std::sync::Arc;
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, RawArguments, Session, SessionConfig, Toolbox};
use traderharness_market::{Mask, MaskConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Any dataset will do; this one is bundled.
    let store = Arc::new(traderharness_ingest::bundled()?.store);
    let mask = Arc::new(Mask::new(
        &store,
        MaskConfig { dates: true, entities: true, key: b"any secret".to_vec(), ..MaskConfig::default() },
    ));
    let card = Arc::new(Card::builtin());
    let toolbox = Arc::new(Toolbox::new(&card, true)?);
    let day = store.calendar().days().last().copied().ok_or("an empty calendar")?;
    let config = SessionConfig { store, mask, card, toolbox, check_output: true };
    let mut session = Session::new(config, day, Box::new(NoJournal))?;
    session.start_day(day)?;

    // A bare suffix is never guessed; the failure holds complete arguments to choose from.
    let failed = session.call("get_kline", RawArguments::Text(r#"{"stock_code": "000001", "days": 5}"#))?;
    println!("{}\n", failed.text);
    let correction = failed.envelope.0["correction"].clone();
    let retry =
        correction["retry_argument_choices"].get(0).cloned().unwrap_or_else(|| json!({ "stock_code": "SHM-000001", "days": 5 }));
    let answered = session.call("get_kline", RawArguments::Value(retry))?;
    println!("{}", answered.text);
    if answered.envelope.is_success() { Ok(()) } else { Err("the correction did not work".into()) }
}
