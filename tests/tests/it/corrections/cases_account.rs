//! Failures of the account tools.

use super::cases::{Case, Way, case};
use super::world::*;
use serde_json::{Value, json};
use traderharness_contract::ErrorCode::*;
use traderharness_harness::Card;
use traderharness_market::DecisionPoint::{Close2, Open1, Open2, PreMarket};

fn order(action: &str, code: &str, quantity: i64) -> Value {
    json!({ "action": action, "stock_code": code, "quantity": quantity, "reasoning": "r" })
}

fn buy(code: &str, quantity: i64) -> Value {
    order("buy", code, quantity)
}

fn sell(code: &str, quantity: i64) -> Value {
    order("sell", code, quantity)
}

fn merged(mut base: Value, more: Value) -> Value {
    if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
        base.extend(more);
    }
    base
}

/// Bought yesterday, and today it is `Open1`.
fn held(code: &str, quantity: i64) -> Vec<Step> {
    vec![Step::Call("place_order", buy(code, quantity)), Step::Next(Open1)]
}

fn planned(card: &mut Card) {
    card.require_structured_plan = true;
    card.minimum_holding_days = 2;
}

fn carded(card: &mut Card) {
    planned(card);
    card.require_decision_card = true;
}

fn plan(code: &str) -> Value {
    let plan = json!({
        "behavior_hypothesis": "h", "confirmation_level": 9.9, "original_structural_stop": 9.5, "exit_condition": "e",
        "expected_holding_days": 5
    });
    merged(buy(code, 300), plan)
}

fn decision(basis: &str) -> Value {
    json!({
        "decision": "trade", "mode": "leader_attack", "entry_setup": "trend_continuation", "theme": "t", "theme_logic": "l",
        "text_evidence_ids": ["$EVIDENCE"], "business_fit": "b", "business_fit_basis": basis,
        "sector_state": "confirmed_leading", "sector_confirmation": "s", "candidate_role": "true_leader",
        "leadership_comparison": "c", "best_expression_reason": "r", "candidate_rank": "best_expression",
        "stronger_candidate_status": "none_identified", "execution_compromise": "none", "capacity_liquidity": "q",
        "price_volume_confirmation": "p", "market_stage": "confirmation", "extension_assessment": "acceptable",
        "counter_evidence": "x", "why_now": "w", "abstention_case": "a", "invalidation": "i"
    })
}

fn with_card(code: &str, change: Value) -> Value {
    merged(plan(code), json!({ "decision_card": merged(decision("industry_proxy"), change) }))
}

/// The results a decision card needs, news last.
fn fetched(code: &str) -> Vec<Step> {
    let tools = ["get_stock_info", "get_business_segments", "get_valuation", "get_kline", "get_stock_price"];
    let about = tools.map(|tool| Step::Call(tool, json!({ "stock_code": code })));
    about.into_iter().chain([Step::Call("get_news", json!({}))]).collect()
}

/// Refusals of plain orders.
pub(crate) fn orders() -> Vec<Case> {
    use Way::{Final, Named};
    let place = |code, args, way| case("place_order", code, args, way);
    let yesterday =
        |code, args, way, held: (&str, i64)| place(code, args, way).at(YESTERDAY, Open1).after(self::held(held.0, held.1));
    vec![
        place(OrderUnavailableInPhase, buy(PLAIN, 100), Final).at(TODAY, PreMarket),
        place(InvalidLot, buy(PLAIN, 130), Named),
        place(InvalidLot, buy(STAR, 199), Named),
        place(InvalidLot, buy(BSE, 99), Named),
        yesterday(InvalidLot, sell(BONUS, 50), Named, (BONUS, 100)),
        yesterday(InvalidLot, sell(STAR, 150), Named, (STAR, 350)),
        place(Suspended, buy(HALTED_ALL_DAY, 100), Final),
        place(NoBarInWindow, buy(HALTED_AT_TEN, 100), Final).at(TODAY, Open2),
        place(NoLiquidity, buy(DRY, 100), Final),
        place(NoLiquidity, buy(PLAIN, 500), Named).card(|c| c.participation_pct = 1.0),
        place(PriceReferenceMissing, buy(NO_DAILY_BAR, 100), Final),
        place(LimitUpLocked, buy(LOCKED_UP, 100), Final),
        yesterday(LimitDownLocked, sell(LOCKED_DOWN, 0), Final, (LOCKED_DOWN, 100)),
        place(AlreadyTradedToday, buy(PLAIN, 100), Final)
            .card(|c| c.one_fill_per_day = true)
            .after(vec![Step::Call("place_order", buy(PLAIN, 100))]),
        place(StForbidden, buy(ST, 100), Final),
        yesterday(PositionCountLimit, buy(PLAIN, 100), Way::After(vec![("place_order", sell(CHEAP, 0))]), (CHEAP, 100))
            .card(|c| c.max_positions = 1),
        place(PositionNotHeld, sell(PLAIN, 0), Final),
        place(TPlusOneLocked, sell(PLAIN, 100), Final).after(vec![Step::Call("place_order", buy(PLAIN, 100))]),
        yesterday(InsufficientSellable, sell(PLAIN, 500), Named, (PLAIN, 300)),
        place(InsufficientCash, buy(PLAIN, 1_000), Named).card(|c| c.initial_cash = 10_000.0),
        place(InsufficientCash, buy(PLAIN, 1_000), Final).card(|c| c.initial_cash = 500.0),
        place(PositionWeightLimit, buy(PLAIN, 300_000), Named).card(|c| c.max_position_pct = 25.0),
        place(PositionWeightLimit, buy(STAR, 200), Final).card(|c| {
            c.initial_cash = 100_000.0;
            c.max_position_pct = 5.0;
        }),
        place(IdempotencyConflict, merged(buy(PLAIN, 200), json!({ "idempotency_key": "k" })), Final)
            .after(vec![Step::Call("place_order", merged(buy(PLAIN, 100), json!({ "idempotency_key": "k" })))]),
        place(
            InvalidToolArguments,
            merged(buy(PLAIN, 100), json!({ "reasoning": "  " })),
            Way::Changed(json!({ "reasoning": "why" })),
        ),
    ]
}

/// Refusals of plans and decision cards.
pub(crate) fn plans() -> Vec<Case> {
    use Way::{Changed, Final, Named};
    let place = |code, args, way| case("place_order", code, args, way).card(planned);
    let carded = |code, args, way, about| case("place_order", code, args, way).card(carded).after(fetched(about));
    let unseen = with_card(PLAIN, json!({ "text_evidence_ids": ["news-1"] }));
    let whole = plan(PLAIN);
    let all_but_card =
        ["behavior_hypothesis", "confirmation_level", "original_structural_stop", "exit_condition", "expected_holding_days"]
            .into_iter()
            .map(|field| (field.to_owned(), whole[field].clone()))
            .collect::<serde_json::Map<_, _>>();
    vec![
        place(StructuredPlanMissingFields, buy(PLAIN, 100), Changed(all_but_card.into())),
        place(
            PlanLevelInvalid,
            merged(plan(PLAIN), json!({ "original_structural_stop": 10.5 })),
            Changed(json!({ "original_structural_stop": 9.5 })),
        ),
        place(
            PlanLevelInvalid,
            merged(plan(PLAIN), json!({ "confirmation_level": 9.905 })),
            Changed(json!({ "confirmation_level": 9.9 })),
        ),
        place(DecisionCardSemanticRejection, merged(plan(PLAIN), json!({ "confirmation_level": 10.5 })), Final),
        place(MinimumHolding, sell(PLAIN, 100), Final)
            .at(YESTERDAY, Open1)
            .after(vec![Step::Call("place_order", plan(PLAIN)), Step::Next(Open1)]),
        // With its protective stop cancelled, a position below the original stop may go, but only as a whole.
        place(MinimumHolding, sell(FALLING, 100), Named).after(vec![
            Step::Call("place_order", plan(FALLING)),
            Step::Call("manage_conditional_order", json!({ "operation": "cancel", "order_id": "cond-0001", "reasoning": "r" })),
            Step::Next(Open1),
        ]),
        carded(DecisionCardMissingFields, plan(PLAIN), Changed(json!({ "decision_card": decision("industry_proxy") })), PLAIN),
        carded(
            DecisionCardMissingFields,
            with_card(PLAIN, json!({ "theme": " " })),
            Changed(json!({ "decision_card": decision("industry_proxy") })),
            PLAIN,
        ),
        carded(DecisionCardSemanticRejection, with_card(PLAIN, json!({ "decision": "abstain" })), Final, PLAIN),
        carded(DecisionCardUnseenEvidence, with_card(PLAIN, json!({ "text_evidence_ids": ["news-1"] })), Named, PLAIN),
        carded(DecisionCardMissingToolEvidence, with_card(PLAIN, json!({})), Named, OTHER),
        carded(
            DecisionCardUngroundedBusinessFit,
            with_card(NAMELESS, json!({ "business_fit_basis": "direct_segments" })),
            Changed(json!({ "decision_card": decision("industry_proxy") })),
            NAMELESS,
        ),
        carded(
            DecisionCardMissingAnnouncementEvidence,
            with_card(PLAIN, json!({ "business_fit_basis": "announcement" })),
            Named,
            PLAIN,
        ),
        // A correction says the same as the first order, and there are six of them a day.
        carded(DecisionCardCorrectionChangedSemantics, with_card(PLAIN, json!({ "theme": "another" })), Final, PLAIN)
            .then(vec![Step::Try("place_order", unseen.clone())]),
        carded(DecisionCardCorrectionRetryLimit, unseen.clone(), Final, PLAIN)
            .then((0..6).map(|_| Step::Try("place_order", unseen.clone())).collect()),
    ]
}

/// Refusals of conditional orders.
pub(crate) fn conditions() -> Vec<Case> {
    use Way::{Changed, Final, Named};
    let manage = |code, args, way| case("manage_conditional_order", code, args, way);
    let create = |action: &str, code: &str, quantity: i64| {
        let more = json!({ "operation": "create", "comparator": "price_gte", "trigger_price": 12.0 });
        merged(order(action, code, quantity), more)
    };
    let made = || vec![Step::Call("manage_conditional_order", create("buy", PLAIN, 100))];
    let update = |more: Value| merged(json!({ "operation": "update", "order_id": "cond-0001", "reasoning": "r" }), more);
    let stop = merged(create("sell", PLAIN, 0), json!({ "comparator": "price_lte", "trigger_price": 9.0, "protective": true }));
    let stopped = || {
        let mut steps = held(PLAIN, 100);
        steps.push(Step::Call("manage_conditional_order", stop.clone()));
        steps
    };
    let full: Vec<Step> = (0..64).map(|_| Step::Call("manage_conditional_order", create("buy", PLAIN, 100))).collect();
    let cancel = json!({ "operation": "cancel", "order_id": "cond-0001", "reasoning": "r" });
    vec![
        manage(InvalidLot, create("buy", PLAIN, 130), Named),
        manage(StForbidden, create("buy", ST, 100), Final),
        manage(PositionNotHeld, create("sell", PLAIN, 0), Final),
        manage(InsufficientSellable, create("sell", PLAIN, 500), Named).at(YESTERDAY, Open1).after(held(PLAIN, 300)),
        manage(ConditionalOrderCannotOpenPosition, create("buy", PLAIN, 100), Final).card(planned),
        manage(ConditionalOrderStateConflict, update(json!({ "order_id": "cond-0099", "trigger_price": 13.0 })), Named)
            .after(made()),
        manage(ConditionalOrderStateConflict, cancel.clone(), Final),
        manage(
            ConditionalOrderStateConflict,
            update(json!({ "trigger_price": 12.0 })),
            Changed(json!({ "trigger_price": 13.0 })),
        )
        .after(made()),
        manage(ConditionalOrderStateConflict, create("buy", OTHER, 100), Way::After(vec![("manage_conditional_order", cancel)]))
            .after(full),
        manage(PlanLevelInvalid, update(json!({ "trigger_price": 8.5 })), Named).at(YESTERDAY, Open1).after(stopped()),
        manage(InvalidToolArguments, update(json!({ "quantity": 100 })), Changed(json!({ "quantity": 0, "trigger_price": 9.2 })))
            .at(YESTERDAY, Open1)
            .after(stopped()),
        manage(InvalidToolArguments, merged(create("buy", PLAIN, 100), json!({ "trigger_price": 12.005 })), Named),
        manage(InvalidToolArguments, merged(create("buy", PLAIN, 100), json!({ "expires_in_trading_days": 1 })), Named)
            .at(TODAY, Close2),
        manage(InvalidToolArguments, update(json!({ "trigger_price": 13.0, "comparator": "price_lte" })), Named).after(made()),
        manage(
            InvalidToolArguments,
            merged(create("buy", PLAIN, 100), json!({ "reasoning": " " })),
            Changed(json!({ "reasoning": "why" })),
        ),
    ]
}

/// Failures of memory, watchlist, position, sandbox and control.
pub(crate) fn others() -> Vec<Case> {
    use Way::{Changed, Final, Named};
    let note = |content: &str| json!({ "content": content, "memory_type": "hypothesis", "tags": ["tea"] });
    let noted = |content: &str| Step::Call("remember", note(content));
    let lesson = json!({ "content": "Wait for volume.", "memory_type": "lesson" });
    let broken = || vec![Step::Try("get_kline", json!({ "stock_code": PLAIN, "days": 0 }))];
    let summary = json!({ "summary": "s" });
    let phase = json!({ "decision": "ready", "summary": "s" });
    let mut out = vec![
        case("get_position", PositionNotHeld, json!({ "stock_code": PLAIN }), Final),
        case("remove_watchlist", WatchlistEntryNotFound, json!({ "stock_code": PLAIN }), Final)
            .after(vec![Step::Call("add_watchlist", json!({ "stock_code": OTHER, "reason": "r" }))]),
        case("get_memory", MemoryNotFound, json!({ "memory_id": "mem-0099" }), Changed(json!({ "memory_id": "mem-0001" })))
            .after(vec![noted("a")]),
        case("remember", DailyMemoryLimitReached, lesson.clone(), Final)
            .card(|c| c.max_daily_memories = 1)
            .after(vec![noted("a")]),
        case(
            "remember",
            MemoryNotFound,
            merged(lesson.clone(), json!({ "supersedes_id": "mem-0099" })),
            Changed(json!({ "supersedes_id": null })),
        ),
        case("remember", MemoryNotFound, merged(note("c"), json!({ "supersedes_id": "mem-0001" })), Named)
            .after(vec![noted("a"), Step::Call("remember", merged(note("b"), json!({ "supersedes_id": "mem-0001" })))]),
        case("remember", MemoryRequiresSupersedes, note("b"), Named).after(vec![noted("a")]),
        case("remember", ActiveMemoryLimitReached, lesson.clone(), Named)
            .card(|c| c.max_active_memories = 1)
            .after(vec![noted("a")]),
        case("remember", InvalidToolArguments, merged(lesson, json!({ "content": " " })), Changed(json!({ "content": "c" }))),
        case("search_memory", InvalidToolArguments, json!({ "query": "?!" }), Changed(json!({ "query": "tea" }))),
        case("execute_code", EnvironmentUnavailable, json!({ "code": "result = 1" }), Final),
        case("execute_code", InvalidToolArguments, json!({ "code": " " }), Way::NothingHere),
    ];
    for (tool, point, args) in [("complete_phase", Open1, phase), ("finish_day", Close2, summary)] {
        let control = |code, args: Value, way| case(tool, code, args, way).at(TODAY, point);
        out.push(control(CompletionBlocked, args.clone(), Named).after(broken()));
        let repair = ("get_kline", json!({ "stock_code": PLAIN }));
        out.push(control(CompletionBlocked, args.clone(), Way::After(vec![repair])).after(broken()));
        out.push(
            control(InvalidToolArguments, merged(args.clone(), json!({ "abandon_error_codes": ["oops"] })), Named)
                .after(broken()),
        );
        out.push(control(InvalidToolArguments, merged(args, json!({ "summary": " " })), Changed(json!({ "summary": "s" }))));
    }
    out
}

/// Code that ends in each way, over a real sandbox.
pub(crate) fn code() -> Vec<Case> {
    let run = |code, source: &str, way| case("execute_code", code, json!({ "code": source }), way);
    let other = || Way::Changed(json!({ "code": "result = 1" }));
    let many = "for n in range(300):\n    with open(f'{n}', 'w') as file:\n        file.write('x')";
    let fewer = "for n in range(10):\n    with open(f'{n}', 'w') as file:\n        file.write('x')";
    vec![
        run(SandboxDisallowedCode, "import subprocess", other()),
        run(SandboxExecutionFailed, "raise ValueError('no bars')", other()),
        run(SandboxExecutionFailed, "result = (", other()),
        run(SandboxExecutionFailed, "result = object()", other()),
        case(
            "execute_code",
            SandboxTimeout,
            json!({ "code": "while True: pass", "timeout_seconds": 1 }),
            Way::Changed(json!({ "code": "result = 1" })),
        ),
        run(SandboxMemoryExceeded, "x = bytearray(1 << 33)", other()),
        run(SandboxWorkspaceExceeded, many, Way::Changed(json!({ "code": fewer }))),
        run(SandboxDailyLimitReached, "result = 1", Way::Final)
            .card(|c| c.sandbox_max_calls_per_day = 1)
            .after(vec![Step::Call("execute_code", json!({ "code": "result = 1" }))]),
    ]
}
