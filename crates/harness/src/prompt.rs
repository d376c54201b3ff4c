//! The system prompt, the phase protocol message and what the loop says. The words here are those of contract v5, our own and
//! snapshot-tested; under an earlier version they come from its pack, section by section, and this file says only which sections there are.

use crate::card::{Advisor, Committee};
use crate::{Card, Contract, Session};
use std::fmt::Write as _;
use traderharness_contract::version::{Behaviour, Pack, Section};
use traderharness_market::{DecisionPoint, MaskConfig};
use traderharness_tools_exec::decision_card::DecisionCard;

/// The system prompt of a card under v5, codes hidden in the style of v5.
pub fn system(card: &Card, masked_dates: bool, masked_entities: bool) -> String {
    ours(card, &MaskConfig { dates: masked_dates, entities: masked_entities, ..MaskConfig::default() })
}

/// The system prompt of a card under a contract.
pub fn system_under(contract: &Contract, card: &Card, hidden: &MaskConfig) -> String {
    contract.pack().map_or_else(|| ours(card, hidden), |pack| packed(contract, pack, card, hidden))
}

/// The sections of a pack that a card and its masks call for, in the order of [`Section`].
fn packed(contract: &Contract, pack: &Pack, card: &Card, hidden: &MaskConfig) -> String {
    let protocol = contract.protocol(card);
    let cards = contract.cards(card.require_decision_card);
    let morning = cards && !(protocol && contract.has(Behaviour::FiveStepMorningWithoutProtocol));
    let cash = format!("{:.2}", card.initial_cash);
    let (positions, share) = (card.max_positions.to_string(), card.max_position_pct.to_string());
    let fields = card_fields(contract).join(", ");
    let (roles, points) =
        card.committee.as_ref().map_or_else(Default::default, |committee| (roles(committee), meetings(committee)));
    let mut sections = Sections { contract, pack, text: String::new() };
    sections.add(Section::Role, true, &[]);
    sections.add(Section::TradingDay, true, &[]);
    sections.add(Section::ClockTurns, !protocol, &[]);
    sections.add(Section::ClockProtocol, protocol, &[]);
    sections.add(Section::ToolCalls, true, &[]);
    sections.add(Section::Repair, true, &[]);
    sections.masks(hidden);
    sections.add(Section::DecisionRecording, true, &[]);
    sections.add(Section::DecisionCard, cards, &[("fields", &fields)]);
    sections.add(Section::FiveStepMorning, morning, &[]);
    sections.add(Section::Account, true, &[("cash", &cash), ("max_positions", &positions), ("max_position_pct", &share)]);
    sections.add(Section::Committee, card.committee.is_some(), &[("roles", &roles), ("points", &points)]);
    sections.add(Section::Persona, !card.persona.is_empty(), &[("persona", card.persona.trim())]);
    sections.add(Section::RiskProfile, !card.risk_profile.is_empty(), &[("risk_profile", card.risk_profile.trim())]);
    sections.add(Section::HoldingPeriod, !card.holding_period.is_empty(), &[("holding_period", card.holding_period.trim())]);
    sections.text
}

/// Fields of a decision card: those that the pack's order asks for, else those that there are.
fn card_fields(contract: &Contract) -> Vec<&str> {
    let offered = contract.tool("place_order").and_then(|tool| tool.parameters.pointer("/properties/decision_card/properties"));
    match offered.and_then(serde_json::Value::as_object) {
        Some(fields) => fields.keys().map(String::as_str).collect(),
        None => DecisionCard::FIELDS.to_vec(),
    }
}

/// Sections of a system prompt, one blank line between them.
struct Sections<'a> {
    contract: &'a Contract,
    pack: &'a Pack,
    text: String,
}

impl Sections<'_> {
    fn add(&mut self, section: Section, wanted: bool, values: &[(&str, &str)]) {
        if !wanted || !section.belongs_to(self.contract.flags()) {
            return;
        }
        let text = self.pack.text(section, values);
        if !text.is_empty() {
            if !self.text.is_empty() {
                self.text.push_str("\n\n");
            }
            self.text.push_str(&text);
        }
    }

    fn masks(&mut self, hidden: &MaskConfig) {
        let opaque = hidden.style.is_opaque();
        self.add(Section::MaskedCodesOpaque, hidden.entities && opaque, &[]);
        self.add(Section::MaskedCodesPermutation, hidden.entities && !opaque, &[]);
        self.add(Section::MaskedDates, hidden.dates, &[]);
    }
}

/// How a card that buys by decision cards prepares where no phase protocol leads it (spec/versions.md).
const MORNING: &str = "\nBefore the open, in this order\n\
     1. Your account: positions, conditional orders, memories that are about them.\n\
     2. The market: overview, sectors, news up to now.\n\
     3. Themes: which lead, which turn, and on what evidence.\n\
     4. Candidates: for each of them business, valuation, bars and announcements, looked up with the tools.\n\
     5. A plan: what would make you buy, what would keep you out, what to watch after the open.\n";

fn ours(card: &Card, hidden: &MaskConfig) -> String {
    let mut text = String::from(
        "You manage one stock account on a simulated Chinese A-share market. The environment owns the clock, the account and the order path. \
         You see only what was public at the clock; nothing later exists for you.\n\n\
         Trading day\n\
         - Five decision points, in order: pre_market, open_1 (09:50), open_2 (10:00), close_1 (14:50), close_2 (15:00).\n\
         - In pre_market nothing of today is visible and orders are refused. At the other points you see today's 5-minute bars up to the time given.\n\
         - An order fills at once, at the close of the last bar inside the current decision point's own interval, or is refused with the reason.\n\
         - Shares bought today can be sold from the next trading day. Buys are whole lots. At the upper limit buys are refused, at the lower limit sells.\n",
    );
    if card.require_phase_completion {
        text.push_str(
            "- Only complete_phase moves the clock to the next decision point; finish_day ends the day in close_2. Text without a tool call moves nothing.\n",
        );
    } else {
        text.push_str("- The clock moves to the next decision point when your turns for the current one are used up. finish_day ends the day in close_2.\n");
    }
    text.push_str(
        "\nTool calls\n\
         - Arguments are one complete JSON object that fits the tool's schema; unknown fields are refused. Invalid calls reach nothing and change nothing.\n\
         - Every result has `success`. A failure has `error`, `error_code`, `retryable` and `correction`; follow `correction.instruction` and repeat the call in this same phase.\n\
         - A retryable failure stays open until a call of that tool succeeds, or until you list its code in `abandon_error_codes` of the completion call and give the reason in its summary.\n\
         - A number that is null is unknown, and `missing_reasons` says why; 0 means 0 was observed.\n\
         - A result that does not fit is shortened and says so in `_truncation`, or has `next_cursor`: ask for less, or for the next page.\n",
    );
    masks(&mut text, hidden);
    text.push_str(
        "\nRecording decisions\n\
         - Say in `reasoning` of an order what you saw, what you expect and what would prove you wrong. Refer to evidence ids where a tool gave them.\n\
         - Doing nothing is a decision; say why in the summary of the completion call.\n",
    );
    if card.require_structured_plan || card.require_decision_card {
        text.push_str(
            "- A buy that opens a position needs the plan fields, and a decision card where the schema asks for one. The environment checks that they are complete and consistent; the judgement is yours.\n",
        );
    }
    if card.require_decision_card && !card.require_phase_completion {
        text.push_str(MORNING);
    }
    let _ = write!(
        text,
        "\nYour account\n- Starting cash {:.2} CNY, at most {} positions, at most {}% of total assets in one position after a buy.\n",
        card.initial_cash, card.max_positions, card.max_position_pct
    );
    if let Some(committee) = &card.committee {
        let _ = write!(
            text,
            "\nYour advisors\n- {} read for you. Before your first turn at {} a memo tells you what each of them says.\n\
             - They cannot act, they do not hear each other, and nobody checks what they say. What you act on you look up yourself: \
             their tool results are no evidence of yours.\n",
            roles(committee),
            meetings(committee),
        );
    }
    if !card.persona.is_empty() {
        let _ = write!(text, "\nYour role\n{}\n", card.persona.trim());
    }
    for (label, value) in [("Risk profile", &card.risk_profile), ("Holding period", &card.holding_period)] {
        if !value.is_empty() {
            let _ = writeln!(text, "{label}: {}", value.trim());
        }
    }
    text
}

/// How this run names securities and days.
fn masks(text: &mut String, hidden: &MaskConfig) {
    if hidden.entities && hidden.style.is_opaque() {
        text.push_str(
            "\nSecurities are named by neutral codes such as SHM-000360. Always use the complete code, board prefix included.\n",
        );
    } else if hidden.entities {
        text.push_str(
            "\nThe codes of securities are exchanged among each other: a code you may know stands for another company of its board here. \
             Go by what the tools say.\n",
        );
    }
    if hidden.dates {
        text.push_str("Dates are relative: D+0 is today, D-3 is three calendar days ago.\n");
    }
}

fn roles(committee: &Committee) -> String {
    committee.advisors.iter().map(|advisor| advisor.role.as_str()).collect::<Vec<_>>().join(", ")
}

fn meetings(committee: &Committee) -> String {
    committee.memo.at.iter().map(|at| at.point().as_str()).collect::<Vec<_>>().join(", ")
}

/// The system prompt of an advisor of a card under v5, codes hidden in the style of v5.
pub fn advisor(card: &Card, committee: &Committee, advisor: &Advisor, masked_dates: bool, masked_entities: bool) -> String {
    let hidden = MaskConfig { dates: masked_dates, entities: masked_entities, ..MaskConfig::default() };
    our_advisor(card, committee, advisor, &hidden)
}

/// The system prompt of an advisor of a card under a contract.
pub fn advisor_under(contract: &Contract, card: &Card, committee: &Committee, advisor: &Advisor, hidden: &MaskConfig) -> String {
    let Some(pack) = contract.pack() else { return our_advisor(card, committee, advisor, hidden) };
    let (points, turns) = (meetings(committee), turns(advisor));
    let characters = committee.memo.max_characters.to_string();
    let mut sections = Sections { contract, pack, text: String::new() };
    sections.add(Section::Advisor, true, &[("points", &points), ("turns", &turns), ("max_characters", &characters)]);
    sections.masks(hidden);
    sections.add(Section::AdvisorPart, true, &[("role", &advisor.role), ("persona", advisor.persona.trim())]);
    sections.text
}

fn turns(advisor: &Advisor) -> String {
    if advisor.max_iterations == 1 { "one turn".to_owned() } else { format!("{} turns", advisor.max_iterations) }
}

fn our_advisor(card: &Card, committee: &Committee, advisor: &Advisor, hidden: &MaskConfig) -> String {
    let mut text = format!(
        "You advise an agent that manages one stock account on a simulated Chinese A-share market. You read and you say what you think; \
         no tool of yours changes anything, and the agent alone decides and acts. You see only what was public at the clock; nothing \
         later exists for you.\n\n\
         Trading day\n\
         - Five decision points, in order: pre_market, open_1 (09:50), open_2 (10:00), close_1 (14:50), close_2 (15:00).\n\
         - In pre_market nothing of today is visible. At the other points you see today's 5-minute bars up to the time given.\n\
         - You are heard at {}, before the agent's first turn there. You have {} at each; tools can be called in all but the last.\n\n\
         Your statement\n\
         - Your last text without a tool call is your statement. The agent reads its first {} characters, so begin with the conclusion.\n\
         - Separate what you saw from what you conclude, and say what would prove you wrong. To have nothing to say is a statement too.\n",
        meetings(committee),
        turns(advisor),
        committee.memo.max_characters,
    );
    text.push_str(
        "\nTool calls\n\
         - Arguments are one complete JSON object that fits the tool's schema; unknown fields are refused.\n\
         - Every result has `success`. A failure has `error`, `error_code` and `correction`; follow `correction.instruction`.\n\
         - A number that is null is unknown, and `missing_reasons` says why; 0 means 0 was observed.\n\
         - A result that does not fit is shortened and says so in `_truncation`, or has `next_cursor`: ask for less, or for the next page.\n",
    );
    masks(&mut text, hidden);
    for (label, value) in [("Holding period of the account", &card.holding_period), ("Its risk profile", &card.risk_profile)] {
        if !value.is_empty() {
            let _ = write!(text, "\n{label}: {}", value.trim());
        }
    }
    let _ = write!(text, "\n\nYour part: {}\n{}\n", advisor.role, advisor.persona.trim());
    text
}

/// Asks an advisor for its statement, at the beginning of a meeting.
pub fn advice(contract: &Contract, point: DecisionPoint) -> String {
    contract.text(Section::AdviceRequest, &[("point", point.as_str())], || {
        format!("The committee meets at {point}. Look up what you need, then make your statement.")
    })
}

/// Request-only message of an advisor's last turn.
pub const LAST_ADVICE: &str = "This is your last turn, without tools: make your statement now.";

/// Sent when an advisor said nothing.
pub const NO_STATEMENT: &str = "That was empty. Make your statement.";

/// One statement of a memo.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'a> {
    /// Who.
    pub role: &'a str,
    /// What it said, or why there is nothing.
    pub said: Result<&'a str, &'static str>,
}

/// What a committee tells its agent. Each line of a statement is quoted, so that none can pass for the environment's words or another
/// advisor's.
pub fn memo(contract: &Contract, point: DecisionPoint, statements: &[Statement<'_>], max_characters: usize) -> String {
    let mut text = contract.text(Section::Memo, &[("point", point.as_str())], || {
        format!("Memo of your committee, {point}. Words of your advisors, checked by nobody; the decision is yours.")
    });
    for statement in statements {
        let _ = write!(text, "\n\n{}:", statement.role);
        match statement.said {
            Ok(said) => {
                let whole = said.chars().count();
                let shown: String = said.chars().take(max_characters).collect();
                // Every kind of line break that a reader could take for one.
                for line in shown.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']) {
                    let _ = write!(text, "\n> {}", line.trim_end());
                }
                if whole > max_characters {
                    let _ = write!(text, "\n[cut: the first {max_characters} of {whole} characters]");
                }
            }
            Err(why) => {
                let _ = write!(text, "\n[no statement: {why}]");
            }
        }
    }
    text
}

/// The request-only message of the phase protocol: duty of the phase and every tool that can be called this turn (engine E10.1).
pub fn protocol(session: &Session) -> String {
    let (contract, point) = (session.contract(), session.clock().point);
    let (section, ours) = match point {
        DecisionPoint::PreMarket => (
            Section::DutyPreMarket,
            "Prepare: review the account, the market up to yesterday and the news. Orders are refused here. End with complete_phase.",
        ),
        DecisionPoint::Open1 | DecisionPoint::Open2 | DecisionPoint::Close1 => {
            (Section::DutyWindow, "Decide on what is visible now: trade, adjust or wait. End with complete_phase.")
        }
        DecisionPoint::Close2 => (Section::DutyLast, "Last decision of the day: trade or not, then end the day with finish_day."),
    };
    let duty = contract.text(section, &[], || ours.to_owned());
    let tools = session.offered().map(|t| t.bound.spec().name).collect::<Vec<_>>().join(", ");
    let values = [("point", point.as_str()), ("duty", &duty), ("tools", &tools)];
    let mut text = contract.text(Section::Protocol, &values, || {
        format!("Phase protocol, {point}: {duty}\nTools you can call in this turn: {tools}.")
    });
    let open = session.phase().pending();
    if !open.is_empty() {
        let pairs = open.iter().map(|p| format!("{}={}", p.tool, p.code)).collect::<Vec<_>>().join(", ");
        text.push('\n');
        text.push_str(&contract.text(Section::OpenFailures, &[("failures", &pairs)], || {
            format!(
                "Open retryable failures: {pairs}. Make each tool succeed, or list its code in abandon_error_codes with the reason in summary."
            )
        }));
    }
    text
}

/// Sent when the model answered without a tool call while the protocol is on.
pub const NO_CALL: &str =
    "No tool was called, so nothing happened and the clock stands still. Call a tool, or end the phase with its completion tool.";

/// Sent when the model said the same words again, without a tool call, while the protocol is on.
pub const SAME_ANSWER: &str = "That is the same answer as before, and again no tool was called. Only a tool call has an effect: do what is left to do, or \
     end the phase with its completion tool now.";

/// Sent when the model answered without a tool call and the protocol is off.
pub const NO_CALL_TURNS: &str = "No tool was called, so nothing happened. Call a tool if something is left to do at this decision point; otherwise say so again.";

/// Sent when the words of an answer hold a tool call that did not come as one: it was not run, and such words are no answer.
pub const CALL_IN_TEXT: &str = "Your text holds the markup of a tool call. It was not run: make the call as a real tool call, with its name and one JSON object of \
     arguments, and keep markup out of the text.";

/// What the loop says to an answer that moved nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reminder {
    /// [`NO_CALL`].
    NoCall,
    /// [`SAME_ANSWER`].
    SameAnswer,
    /// [`NO_CALL_TURNS`].
    NoCallTurns,
    /// [`CALL_IN_TEXT`].
    CallInText,
    /// [`LAST_ADVICE`].
    LastAdvice,
    /// [`NO_STATEMENT`].
    NoStatement,
}

/// The words of a reminder.
pub fn reminder(contract: &Contract, which: Reminder) -> String {
    let (section, ours) = match which {
        Reminder::NoCall => (Section::NoCall, NO_CALL),
        Reminder::SameAnswer => (Section::SameAnswer, SAME_ANSWER),
        Reminder::NoCallTurns => (Section::NoCallTurns, NO_CALL_TURNS),
        Reminder::CallInText => (Section::CallInText, CALL_IN_TEXT),
        Reminder::LastAdvice => (Section::LastAdvice, LAST_ADVICE),
        Reminder::NoStatement => (Section::NoStatement, NO_STATEMENT),
    };
    contract.text(section, &[], || ours.to_owned())
}

/// Sent once, when most turns of a decision point are used up (spec/seeds.md B12.2).
pub fn wrap_up(contract: &Contract, turn: u32, turns: u32, protocol: bool, point: DecisionPoint) -> String {
    let completion = crate::phase::completion_tool(point);
    let section = match (protocol, point) {
        (true, _) => Section::WrapUpProtocol,
        (false, DecisionPoint::Close2) => Section::WrapUpLast,
        (false, _) => Section::WrapUp,
    };
    let values = [("turn", turn.to_string()), ("turns", turns.to_string()), ("completion_tool", completion.to_owned())];
    contract.text(section, &values.each_ref().map(|(name, value)| (*name, value.as_str())), || {
        our_wrap_up(turn, turns, protocol, point, completion)
    })
}

fn our_wrap_up(turn: u32, turns: u32, protocol: bool, point: DecisionPoint, completion: &str) -> String {
    let end = if protocol {
        format!("Finish what matters and call {completion}; the last turn offers nothing else.")
    } else if point == DecisionPoint::Close2 {
        format!("Finish what matters and call {completion}.")
    } else {
        "Finish what matters; the clock moves on after the last one.".to_owned()
    };
    format!("This is turn {turn} of {turns} at this decision point. {end}")
}

/// Sent with each attempt of the close fallback (engine E10.6).
pub fn finish_request(contract: &Contract, attempt: u32, last_fault: Option<&str>) -> String {
    let (number, all) = (attempt.to_string(), crate::phase::FINISH_ATTEMPTS.to_string());
    let mut text = contract.text(Section::FinishRequest, &[("attempt", &number), ("attempts", &all)], || {
        format!(
            "The day is not finished. Call finish_day now with a summary of what you did and why (attempt {number} of {all})."
        )
    });
    if let Some(fault) = last_fault {
        text.push('\n');
        text.push_str(&contract.text(Section::FinishFault, &[("fault", fault)], || format!("The last attempt failed: {fault}")));
    }
    text
}
