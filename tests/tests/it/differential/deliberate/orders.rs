//! Orders, plans and decision cards.

use super::{Case, Entry, Kind, gap, near, outcome};
use crate::differential::oracle::rounds_to;
use serde_json::{Value, json};

const ORDER: &[&str] = &["place_order"];

/// The text of a decision card in the arguments.
fn cited<'c>(case: &'c Case<'_>) -> Vec<&'c str> {
    let ids = case.played.args["decision_card"]["text_evidence_ids"].as_array();
    ids.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A cited id that no tool of this scenario had returned today.
fn unseen(case: &Case<'_>) -> bool {
    let texts: String = case.played.earlier.iter().filter(|e| e.0 != "place_order").map(|e| e.2.to_string()).collect();
    cited(case).iter().any(|id| !texts.contains(&format!("\"{id}\"")))
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "b22",
        tools: ORDER,
        fields: &["outcome"],
        reason: "A sell above the sellable amount is refused with that amount, and an odd lot is sold only as the whole remainder (engine E3.6).",
        covers: |case, diff| {
            let sellable = case.ours("correction")["sellable"].as_i64();
            let asked = case.played.args["quantity"].as_i64().unwrap_or(0);
            case.played.args["action"] == "sell"
                && diff.theirs == "success"
                && match diff.ours.as_str() {
                    Some("insufficient_sellable") => {
                        sellable.is_some_and(|s| s < asked && case.theirs("quantity").as_i64() == Some(s))
                    }
                    Some("invalid_lot") => sellable.is_some_and(|s| s != asked) && asked % 100 != 0,
                    _ => false,
                }
        },
    },
    Entry {
        id: "E4-lot-sale",
        tools: ORDER,
        fields: &["outcome"],
        reason: "Follows from E4-lot: what could not be bought cannot be sold.",
        covers: |case, diff| {
            let missing = case.played.parted.cash; // the sale has evened the shares out; what is left is its gain
            outcome(diff, "success", "position_not_held") && case.code().starts_with("688") && missing != 0.0
        },
    },
    Entry {
        id: "b12",
        tools: ORDER,
        fields: &["outcome"],
        reason: "ST blocks opening buys only; a holding can always be sold (engine E3.10).",
        covers: |case, diff| {
            outcome(diff, "security_ineligible", "success")
                && case.played.args["action"] == "sell"
                && case.oracle.is_st(case.code(), case.played.clock.day)
        },
    },
    Entry {
        id: "b13-band",
        tools: ORDER,
        fields: &["outcome"],
        reason: "The band of an ex-date starts from the reference price, so the ex-right price is no limit-down (engine E3.3).",
        covers: |case, diff| {
            let (oracle, clock, code) = (case.oracle, case.played.clock, case.code());
            let (Some(price), Some(reference)) = (oracle.fill_price(code, clock), oracle.reference(code, clock.day)) else {
                return false;
            };
            let raw = oracle.closes(code, clock.day).last().copied().unwrap_or(f64::NAN);
            outcome(diff, "market_execution_blocked", "success")
                && price <= raw * 0.8 + 0.005
                && price > reference * 0.8
                && rounds_to(case.ours("price"), price, 2)
        },
    },
    Entry {
        id: "b29-unknown",
        tools: ORDER,
        fields: &["outcome"],
        reason: "A security that is not in the run is unknown_security; theirs says that the market blocked it.",
        covers: |case, diff| outcome(diff, "market_execution_blocked", "unknown_security") && !case.oracle.knows(case.code()),
    },
    Entry {
        id: "b33",
        tools: ORDER,
        fields: &["pnl"],
        reason: "pnl is after the fees of both sides; theirs leaves the buy commission out. pnl_gross stands beside it.",
        covers: |case, diff| {
            let ours = |k: &str| case.ours(k).as_f64().unwrap_or(f64::NAN);
            // Our own fills tell what the shares had cost; theirs uses an average rounded to the cent and leaves the fee out.
            let rounding = 0.005 * ours("quantity") + 0.011;
            let after = |pnl: f64| case.played.paid.is_some_and(|paid| (ours("net_income") - paid - pnl).abs() < 0.011);
            let fees = case.played.paid.map_or(f64::NAN, |paid| paid - (ours("amount") - ours("pnl_gross")));
            *case.theirs("quantity") == *case.ours("quantity")
                && diff.ours.as_f64().is_some_and(after)
                && fees > 0.0
                && gap(diff).is_some_and(|g| (g + fees).abs() <= rounding)
        },
    },
    Entry {
        id: "b22-order",
        tools: ORDER,
        fields: &[
            "remaining_cash",
            "portfolio_after.cash",
            "portfolio_after.position_count",
            "portfolio_after.positions[]",
            "portfolio_after.positions[].qty",
            "quantity",
            "net_income",
            "pnl",
        ],
        reason: "Follows from an earlier order that only one side filled (b12, b22, E4-lot): the accounts differ by exactly that trade.",
        covers: |case, diff| {
            let parted = &case.played.parted;
            let shares = |code: &str| parted.shares.get(code).copied().unwrap_or(0);
            // A sale of all sells what only ours held before.
            let sold_more = || {
                let (a, b) = (case.ours("quantity").as_i64(), case.theirs("quantity").as_i64());
                let extra = case.played.before.shares.get(case.code()).copied().unwrap_or(0);
                case.played.args["action"] == "sell" && extra != 0 && a.zip(b).is_some_and(|(a, b)| a - b == extra)
            };
            match (diff.field.as_str(), diff.kind) {
                ("remaining_cash" | "portfolio_after.cash", _) => gap(diff).is_some_and(|g| near(g, parted.cash)),
                ("portfolio_after.position_count", _) => {
                    let missing = parted.shares.values().filter(|n| **n < 0).count();
                    gap(diff).is_some_and(|g| near(g, -(missing as f64)))
                }
                ("portfolio_after.positions[]", Kind::Absent) => {
                    let code = diff.theirs["code"].as_str().unwrap_or_default();
                    diff.theirs["qty"].as_i64() == Some(-shares(code))
                }
                ("portfolio_after.positions[].qty", _) => gap(diff)
                    .is_some_and(|g| g != 0.0 && near(g, shares(diff.their_row["code"].as_str().unwrap_or_default()) as f64)),
                ("quantity", _) => sold_more() && *case.ours("price") == *case.theirs("price"),
                // The reference schedule: 0.025 % at least 5 CNY, stamp duty 0.1 %.
                ("net_income", _) => {
                    let amount = case.ours("price").as_f64().unwrap_or(0.0) * case.ours("quantity").as_f64().unwrap_or(0.0);
                    sold_more()
                        && diff
                            .ours
                            .as_f64()
                            .is_some_and(|n| (n - (amount - (amount * 0.00025).max(5.0) - amount * 0.001)).abs() < 0.011)
                }
                ("pnl", _) => {
                    let exact = case.ours("net_income").as_f64().zip(case.played.paid).map(|(net, paid)| net - paid);
                    sold_more() && exact.is_some_and(|e| rounds_to(&diff.ours, e, 2))
                }
                _ => false,
            }
        },
    },
    Entry {
        id: "E11-missing-plan",
        tools: ORDER,
        fields: &["outcome"],
        reason: "A buy that opens a position without plan and card is structured_plan_missing_fields with the list; an add-on buy needs neither, \
                 so the schema cannot demand them (b38).",
        covers: |case, diff| {
            let fields = |v: &Value, key: &str| v["correction"][key].as_array().map_or(0, Vec::len);
            // Theirs asks for the five of the plan and the card at once.
            outcome(diff, "invalid_tool_arguments", "structured_plan_missing_fields")
                && fields(&case.played.ours, "place_at_order_top_level") == 5
                && fields(&case.played.theirs, "missing_fields") == 6
                && *case.ours("retryable") == json!(true)
        },
    },
    Entry {
        id: "E11.2-evidence",
        tools: ORDER,
        fields: &["outcome"],
        reason: "Each cited text must have been returned by a tool of this run, whether or not a text tool ran; that is checked before the tools \
                 and levels, in the documented order.",
        covers: |case, diff| diff.ours == "decision_card_unseen_evidence" && unseen(case),
    },
    Entry {
        id: "E11-locked-fields",
        tools: ORDER,
        fields: &["correction.semantic_fields_must_not_change*"],
        reason: "Theme and market stage are locked in a correction too (engine E10.8).",
        covers: |case, _| {
            let list = |v: &Value| -> Vec<String> {
                let all = v["correction"]["semantic_fields_must_not_change"].as_array();
                all.into_iter().flatten().filter_map(|c| c.as_str().map(str::to_owned)).collect()
            };
            let (ours, theirs) = (list(&case.played.ours), list(&case.played.theirs));
            theirs.iter().all(|f| ours.contains(f)) && ours.len() <= theirs.len() + 2
        },
    },
    Entry {
        id: "T1-missing-name",
        tools: ORDER,
        fields: &["correction.missing_fields[]", "correction.allowed_decision_card_fields*"],
        reason: "A missing field inside an object has its whole name.",
        covers: |_, diff| {
            let (Some(a), Some(b)) = (diff.ours.as_str(), diff.theirs.as_str()) else { return false };
            a == format!("decision_card.{b}")
        },
    },
    Entry {
        id: "T1-field-order",
        tools: ORDER,
        fields: &["correction.allowed_decision_card_fields[]"],
        reason: "The fields of a card are listed in the order of the card.",
        covers: |case, _| {
            let sorted = |v: &Value| -> Vec<String> {
                let all = v["correction"]["allowed_decision_card_fields"].as_array().into_iter().flatten();
                let mut names: Vec<String> = all.filter_map(|c| c.as_str().map(str::to_owned)).collect();
                names.sort();
                names
            };
            sorted(&case.played.ours) == sorted(&case.played.theirs)
        },
    },
    Entry {
        id: "E11-confirmation",
        tools: ORDER,
        fields: &["correction.scope", "correction.semantic_fields_must_not_change"],
        reason: "A price below the confirmation level is no fault of the card's form, so no correction of the card is offered.",
        covers: |case, diff| {
            let level = case.played.args["confirmation_level"].as_f64().unwrap_or(0.0);
            let price = case.oracle.fill_price(case.code(), case.played.clock).unwrap_or(f64::MAX);
            diff.kind == Kind::Absent && *case.ours("error_code") == json!("decision_card_semantic_rejection") && price < level
        },
    },
];
