//! Names and placeholders of the texts that a pack holds beside its tools: the system prompt's sections, the brief's lines and the
//! loop's messages.
//!
//! This module must never hold a text: a version's words are in its pack. Which section applies is asked by flag and card, by whoever
//! builds the request; `{name}` in a text is a placeholder and is replaced by [`super::Pack::text`].

use super::{Behaviour, Behaviours};

macro_rules! sections {
    ($($variant:ident $name:literal [$($placeholder:literal),*] $flag:expr, $doc:literal;)*) => {
        /// A text of a pack. The declaration order is the order inside its message.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Section { $(#[doc = $doc] $variant),* }

        impl Section {
            /// All sections.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Key in a pack's `prompt`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Placeholders that the text may hold.
            pub const fn placeholders(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($placeholder),*]),* }
            }

            /// The flag without which no request holds the text; `None` when every version has it.
            pub const fn flag(self) -> Option<Behaviour> {
                match self { $(Self::$variant => $flag),* }
            }
        }
    };
}

use Behaviour as B;

sections! {
    // System prompt, in this order.
    Role "role" [] None, "System: who the agent is and what it sees. Always.";
    TradingDay "trading_day" [] None, "System: decision points, fills, lots and limits. Always.";
    ClockTurns "clock_turns" [] None, "System: what moves the clock, for cards without the phase protocol.";
    ClockProtocol "clock_protocol" [] Some(B::CompletePhaseTool), "System: what moves the clock, for cards with the phase protocol.";
    ToolCalls "tool_calls" [] None, "System: how tools are called and what results are. Always.";
    Repair "repair" [] Some(B::RepairSection), "System: how failures are repaired.";
    MaskedCodesOpaque "masked_codes_opaque" [] None, "System: securities have neutral codes. Entity mask of style opaque.";
    MaskedCodesPermutation "masked_codes_permutation" [] None, "System: codes are exchanged. Entity mask of style permutation.";
    MaskedDates "masked_dates" [] None, "System: days are relative. Date mask.";
    DecisionRecording "decision_recording" [] Some(B::DecisionRecordingSection), "System: what to write down of a decision.";
    DecisionCard "decision_card" ["fields"] Some(B::DecisionCardSection),
        "System: the decision card and its fields. Cards that ask for decision cards.";
    FiveStepMorning "five_step_morning" [] Some(B::FiveStepMorning),
        "System: the five steps before the open. Cards that ask for decision cards; not with the phase protocol where \
         `FiveStepMorningWithoutProtocol` is set.";
    Account "account" ["cash", "max_positions", "max_position_pct"] None, "System: starting cash (CNY) and position limits. Always.";
    Committee "committee" ["roles", "points"] None, "System: who advises and when. Cards with a committee.";
    Persona "persona" ["persona"] None, "System: the card's persona. Where it has one.";
    RiskProfile "risk_profile" ["risk_profile"] None, "System: one line. Where the card has one.";
    HoldingPeriod "holding_period" ["holding_period"] None, "System: one line. Where the card has one.";

    // User message a day starts with, line by line.
    Morning "morning" ["day"] None, "Brief: first line of the day.";
    Horizon "horizon" ["day_number", "days"] Some(B::HorizonLine), "Brief: which day of how many this is; right after the first line.";
    AccountNow "account_now" ["total", "cash"] None, "Brief: total assets and usable cash, CNY; also in window messages.";
    NoPositions "no_positions" [] None, "Brief: instead of positions.";
    Positions "positions" [] None, "Brief: head of the positions.";
    Position "position" ["code", "shares", "sellable", "average_cost", "price", "price_time"] None, "Brief: one line for each position.";
    IndexChange "index_change" ["change_pct"] None, "Brief: the benchmark index yesterday, percent with sign.";
    OrderExpired "order_expired" ["order_id", "code"] None, "Brief: one line for each conditional order that expired.";
    Unwatched "unwatched" ["code"] None, "Brief: one line for each security that left the watchlist.";
    CorporateActions "corporate_actions" [] None, "Brief: head of the corporate actions.";
    CorporateAction "corporate_action" ["code", "what"] None, "Brief: one line for each holding; `what` is the parts below, joined by blanks.";
    Dividend "dividend" ["cash"] None, "Part of a corporate action: cash received, CNY.";
    NewShares "new_shares" ["shares"] None, "Part of a corporate action: shares received.";
    RightsOffered "rights_offered" [] None, "Part of a corporate action: rights not exercised.";
    LevelMoved "level_moved" ["what", "from", "to"] None, "Part of a corporate action: a level of a plan or order moved.";
    Headlines "headlines" ["count"] None, "Brief: head of the texts since the previous decision point; also in window messages.";
    HeadlinesCut "headlines_cut" ["count"] None, "The same, where more appeared than are shown.";
    Headline "headline" ["time", "title"] None, "Brief: one line for each text.";

    // Messages at a decision point.
    Window "window" ["point", "until"] None, "First line of a window message; account and headlines follow.";
    ConditionFilled "condition_filled" ["order_id", "did", "shares", "code", "price", "time"] None,
        "One line for each conditional order that was filled; `did` is bought or sold.";
    ConditionRefused "condition_refused" ["order_id", "code", "price", "time", "error_code"] None,
        "One line for each conditional order that was met and refused.";
    Protocol "protocol" ["point", "duty", "tools"] Some(B::CompletePhaseTool), "Request-only protocol message.";
    DutyPreMarket "duty_pre_market" [] Some(B::CompletePhaseTool), "`duty` in pre_market.";
    DutyWindow "duty_window" [] Some(B::CompletePhaseTool), "`duty` at open_1, open_2 and close_1.";
    DutyLast "duty_last" [] Some(B::CompletePhaseTool), "`duty` at close_2.";
    OpenFailures "open_failures" ["failures"] Some(B::CompletePhaseTool), "Line of the protocol message: open retryable failures.";
    NoCall "no_call" [] Some(B::CompletePhaseTool), "No tool was called, protocol on.";
    SameAnswer "same_answer" [] Some(B::CompletePhaseTool), "The same words again without a call, protocol on.";
    NoCallTurns "no_call_turns" [] None, "No tool was called, protocol off.";
    CallInText "call_in_text" [] None, "The words of an answer hold a tool call.";
    WrapUp "wrap_up" ["turn", "turns"] None, "Most turns of a decision point are used up, protocol off.";
    WrapUpLast "wrap_up_last" ["turn", "turns"] None, "The same at close_2, protocol off.";
    WrapUpProtocol "wrap_up_protocol" ["turn", "turns", "completion_tool"] Some(B::CompletePhaseTool), "The same, protocol on.";
    FinishRequest "finish_request" ["attempt", "attempts"] None, "The close fallback asks for finish_day.";
    FinishFault "finish_fault" ["fault"] None, "Line after it: what the last attempt failed of.";

    // Committee.
    Advisor "advisor" ["points", "turns", "max_characters"] None, "System prompt of an advisor; mask sections follow, then its part.";
    AdvisorPart "advisor_part" ["role", "persona"] None, "Last section of an advisor's system prompt.";
    AdviceRequest "advice_request" ["point"] None, "Asks an advisor for its statement.";
    LastAdvice "last_advice" [] None, "An advisor's last turn.";
    NoStatement "no_statement" [] None, "An advisor said nothing.";
    Memo "memo" ["point"] None, "First line of the committee's memo.";
}

impl Section {
    /// The section with this key.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|section| section.name() == name)
    }

    /// Whether a pack with these flags has the text.
    pub fn belongs_to(self, flags: &Behaviours) -> bool {
        self.flag().is_none_or(|flag| flags.has(flag))
    }
}
