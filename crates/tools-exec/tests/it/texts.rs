//! What a model reads when an order or a conditional order is refused, all of it, reviewed as one snapshot.

use std::fmt::Write as _;
use traderharness_contract::ToolFailure;
use traderharness_market::rules::BandFault;
use traderharness_market::{Cash, Minute, Price, Shares};
use traderharness_tools_exec::Refusal as R;
use traderharness_tools_exec::conditional::ConditionRefusal as C;
use traderharness_tools_exec::decision_card::{CardRefusal, DecisionCard};

#[test]
fn every_refusal_reads_as_reviewed() {
    let (price, up, down) = (Price(110_000), Price(110_000), Price(90_000));
    let (end, volume) = (Minute::at(9, 50), Shares(10_000));
    let card = |refusal| R::Card(refusal);
    let orders = vec![
        R::OrderUnavailableInPhase,
        R::UnknownSecurity,
        R::BuyLot { asked: 150, min: 100, step: 100, max: 1_000_000 },
        R::SellSize { asked: -1, max: 1_000_000 },
        R::SellLot {
            asked: 50,
            sellable: 130,
            rule: "only whole lots may be sold, and an odd remainder only as a whole",
            accepted: vec![30, 100, 130],
        },
        R::Suspended,
        R::NoBarInWindow { after: end, until: Minute::at(10, 0) },
        R::NoLiquidity { bar_end: end, volume, left: Shares(0), max_quantity: Shares(0) },
        R::NoLiquidity { bar_end: end, volume, left: Shares(350), max_quantity: Shares(300) },
        R::PriceReferenceMissing { fault: BandFault::NoPreviousClose },
        R::LimitUpLocked { price, up, down },
        R::LimitDownLocked { price: down, up, down },
        R::AlreadyTradedToday { sellable: Shares(200) },
        R::PositionNotHeld,
        R::TPlusOneLocked { total: Shares(500) },
        R::InsufficientSellable { asked: Shares(500), sellable: Shares(300), total: Shares(500), frozen: Shares(200) },
        R::InsufficientCash { needs: Cash(1_000_500), has: Cash(1_000_000), max_quantity: Shares(900) },
        R::InsufficientCash { needs: Cash(100_500), has: Cash(100_499), max_quantity: Shares(0) },
        R::StForbidden,
        R::PositionCountLimit { held: 4, max: 4 },
        R::PositionWeightLimit { weight: 2_601, cap: 2_500, max_quantity: Shares(24_900) },
        R::PlanMissing { fields: vec!["exit_condition"] },
        R::PlanLevelInvalid {
            field: "original_structural_stop",
            accepted: "above 0 and below the fill price 11.00".into(),
            price,
        },
        R::NotConfirmed { level: Price(111_000), price },
        R::MinimumHolding { minimum: 3, held: 1, stop: Price(95_000), price },
        R::MinimumHoldingPartial { sellable: Shares(300) },
        card(CardRefusal::MissingFields { fields: vec!["theme"] }),
        card(CardRefusal::Semantic { field: "decision", got: "abstain".into(), accepted: "`trade`".into() }),
        card(CardRefusal::UnseenEvidence { invalid: vec!["news-9".into()], available: vec!["news-1".into()] }),
        card(CardRefusal::MissingTools { tools: vec!["get_kline"] }),
        card(CardRefusal::Ungrounded),
        card(CardRefusal::MissingAnnouncement),
        R::ConditionCannotOpen,
        R::IdempotencyConflict,
        R::ClockBehindAccount,
    ];
    let conditions = vec![
        C::Trigger { nearest: vec![Price(100_000), Price(100_100)] },
        C::ProtectiveShape,
        C::ProtectiveFall { stands: Price(98_000) },
        C::CannotOpen,
        C::NothingLeftToday,
        C::Sessions,
        C::TooMany,
        C::NotActive { active: vec!["cond-0001".into()] },
        C::NoChange,
    ];
    let mut text = String::new();
    for failure in orders.into_iter().map(ToolFailure::from).chain(conditions.into_iter().map(ToolFailure::from)) {
        let retry = if failure.retryable() { "retryable" } else { "final" };
        writeln!(text, "## {} ({retry})\n{}\n{}", failure.code, failure.message, failure.instruction).unwrap();
        for (key, value) in &failure.correction {
            let mut value = value.to_string();
            if key == "allowed_decision_card_fields" {
                value = format!("{} names", DecisionCard::FIELDS.len());
            }
            writeln!(text, "  {key}: {value}").unwrap();
        }
        text.push('\n');
    }
    insta::assert_snapshot!(text);
}
