//! What a series of answers at one decision point says: only errors, nothing at all, the same words again (engine E10.7, spec/seeds.md
//! B12.4). Where engine E10 gives a phase its turns, E10 wins: under the phase protocol words alone never end a phase, they only use
//! up its turns.

use crate::phase::ERROR_ROUNDS;
use crate::prompt::Reminder;
use traderharness_contract::parse::has_call_markup;
use traderharness_replay::Message;

/// Why a phase ended without a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Its turns are used up.
    Turns,
    /// Three rounds in a row had only failed calls.
    ErrorRounds,
    /// Two answers in a row had neither a word nor a call.
    EmptyAnswers,
    /// The same words came twice in a row, without a call.
    RepeatedAnswer,
}

impl Ended {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Turns => "turns_used_up",
            Self::ErrorRounds => "error_rounds",
            Self::EmptyAnswers => "empty_answers",
            Self::RepeatedAnswer => "repeated_answer",
        }
    }
}

/// What follows from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The next turn.
    GoOn,
    /// The next turn, after this was said.
    Say(Reminder),
    /// The phase is over.
    End(Ended),
}

/// The answers so far at one decision point.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    errors: u32,
    /// Words of the last answer, when it had no call.
    words: Option<String>,
}

impl Rounds {
    /// Books an answer that made calls.
    pub(super) fn called(&mut self, all_failed: bool, protocol: bool) -> Verdict {
        self.words = None;
        self.errors = if all_failed { self.errors + 1 } else { 0 };
        if !protocol && self.errors >= ERROR_ROUNDS { Verdict::End(Ended::ErrorRounds) } else { Verdict::GoOn }
    }

    /// Books an answer without a call.
    pub(super) fn said(&mut self, message: &Message, protocol: bool) -> Verdict {
        self.errors = 0;
        let words = message.content().unwrap_or_default().trim().to_owned();
        let again = self.words.as_ref() == Some(&words);
        let empty = words.is_empty();
        let markup = has_call_markup(&words);
        self.words = Some(words);
        match (protocol, again, empty) {
            // Ends the run under the protocol, the phase without it.
            (_, true, true) => Verdict::End(Ended::EmptyAnswers),
            _ if markup => Verdict::Say(Reminder::CallInText),
            (false, true, false) => Verdict::End(Ended::RepeatedAnswer),
            (true, true, false) => Verdict::Say(Reminder::SameAnswer),
            (true, false, _) => Verdict::Say(Reminder::NoCall),
            (false, false, _) => Verdict::Say(Reminder::NoCallTurns),
        }
    }
}
