//! Numbered behaviour flags: what recordings depend on beside descriptions and schemas. Code asks the flag, never the version's name.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

macro_rules! behaviours {
    ($($number:literal $variant:ident $doc:literal),* $(,)?) => {
        /// One behaviour of a contract version (spec/versions.md). Numbers are explicit, never reused and never renumbered: they stand in
        /// recordings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum Behaviour { $(#[doc = $doc] $variant = $number),* }

        impl Behaviour {
            /// All flags, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The flag's number.
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// What the flag does, one sentence.
            pub const fn describes(self) -> &'static str {
                match self { $(Self::$variant => $doc),* }
            }
        }
    };
}

behaviours! {
    1 DecisionRecordingSection "The system prompt has a section on recording decisions.",
    2 DecisionCardSection "The system prompt has a section on decision cards.",
    3 DecisionCardEntrySetup "Decision cards have the field `entry_setup`.",
    4 RepairSection "The system prompt says how failures are repaired: examples, envelope, retryable.",
    5 OptInTools "A card can enable opt-in tools by naming them.",
    6 CompletePhaseTool "`complete_phase` is offered, and the phase protocol with its request-only message exists.",
    7 FiveStepMorning "Cards with decision cards get the five-step pre-market workflow.",
    8 FiveStepMorningWithoutProtocol "The five-step pre-market workflow is left out for cards with the phase protocol.",
    9 FinishDayAtEveryPoint "`finish_day` is offered at every decision point.",
    10 HorizonLine "The brief says which day of how many it is.",
    11 StrictArguments "Arguments are validated before a handler sees them; without it they are coerced and clamped, and a decision card that does not fit fails with the codes of decision cards.",
    12 SuccessField "Results begin with `success`; without it a success is the bare payload.",
    13 OrderErrorCodes "Failed orders carry `error_code`.",
    14 FailureEnvelope "Every failure is the full envelope with code, retryable and correction.",
    15 ValidJsonBudget "Results over the size limit are compacted and stay JSON; without it texts of read tools are cut after 3,000 characters.",
    16 EarlyPayloads "Payloads have the fields and spellings of the first versions.",
    17 ReadsFirst "Calls of one message that only read run before those that change something.",
    18 PermutationByDefault "Entity masks are permutations of real codes unless the manifest says otherwise.",
    19 PlainCode "`execute_code` gives what the code printed and its `result`; a failure is what was printed and the traceback or reason.",
}

/// A set of flags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeSet<u32>", into = "BTreeSet<u32>")]
pub struct Behaviours(BTreeSet<Behaviour>);

/// A recording or pack asks for flags that this program does not know: it is newer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "behaviour flag{} {} {} not known here (the newest is {}); a newer version of traderharness made this",
    if .0.len() == 1 { "" } else { "s" },
    .0.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    if .0.len() == 1 { "is" } else { "are" },
    Behaviour::ALL.last().map_or(0, |newest| newest.number())
)]
pub struct UnknownBehaviour(pub Vec<u32>);

impl Behaviours {
    /// A set of these flags.
    pub fn of(flags: &[Behaviour]) -> Self {
        Self(flags.iter().copied().collect())
    }

    /// Whether the flag is set.
    pub fn has(&self, flag: Behaviour) -> bool {
        self.0.contains(&flag)
    }

    /// The flags, by number.
    pub fn iter(&self) -> impl Iterator<Item = Behaviour> + '_ {
        self.0.iter().copied()
    }

    /// Their numbers, as recordings hold them.
    pub fn numbers(&self) -> BTreeSet<u32> {
        self.iter().map(Behaviour::number).collect()
    }
}

impl TryFrom<BTreeSet<u32>> for Behaviours {
    type Error = UnknownBehaviour;

    fn try_from(numbers: BTreeSet<u32>) -> Result<Self, Self::Error> {
        let known = |number: &u32| Behaviour::ALL.iter().copied().find(|flag| flag.number() == *number);
        let unknown: Vec<u32> = numbers.iter().copied().filter(|number| known(number).is_none()).collect();
        if unknown.is_empty() { Ok(Self(numbers.iter().filter_map(known).collect())) } else { Err(UnknownBehaviour(unknown)) }
    }
}

impl From<Behaviours> for BTreeSet<u32> {
    fn from(flags: Behaviours) -> Self {
        flags.numbers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec/versions.md: explicit numbers, never reused, newer than known is an error that names the flag
    #[test]
    fn numbers_are_distinct_and_unknown_ones_are_named() {
        let numbers: Vec<u32> = Behaviour::ALL.iter().map(|flag| flag.number()).collect();
        let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
        assert_eq!(numbers, distinct.into_iter().collect::<Vec<_>>());
        let fault = Behaviours::try_from(BTreeSet::from([1, 400])).unwrap_err();
        assert_eq!(fault, UnknownBehaviour(vec![400]));
        assert!(fault.to_string().contains("flag 400 is not known"), "{fault}");
    }
}
