//! A session over a store, with every check switched on.

use std::sync::Arc;
use traderharness_harness::session::NoJournal;
use traderharness_harness::{Card, Session, SessionConfig, Toolbox};
use traderharness_market::{Day, DecisionPoint, Mask, MaskConfig, MaskStyle, Store};

/// What is hidden.
pub fn mask_config(masked: bool) -> MaskConfig {
    MaskConfig { dates: masked, entities: masked, style: MaskStyle::Opaque, key: b"workspace test key".to_vec() }
}

/// A card with every tool, opt-in ones too.
pub fn all_tools_card() -> Card {
    let allowed_tools = traderharness_harness::toolbox::handlers().iter().map(|b| b.spec().name.to_owned()).collect();
    Card { id: "all-tools".into(), allowed_tools, require_phase_completion: true, ..Card::default() }
}

/// Opens a session at a decision point of a day.
///
/// # Panics
/// When the day is not a trading day: a defect of the fixture.
pub fn at(store: &Arc<Store>, card: Card, masked: bool, day: Day, point: DecisionPoint) -> Session {
    let mask = Arc::new(Mask::new(store, mask_config(masked)));
    let toolbox = Arc::new(Toolbox::new(&card, masked).expect("card names known tools"));
    let config = SessionConfig { store: Arc::clone(store), mask, card: Arc::new(card), toolbox, check_output: true };
    let mut session = Session::new(config, day, Box::new(NoJournal)).expect("a trading day");
    session.start_day(day).expect("a trading day");
    while session.clock().point != point {
        session.advance().expect("a later point");
    }
    session
}
