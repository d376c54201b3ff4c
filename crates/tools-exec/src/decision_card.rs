//! The decision card of an opening buy (engine E11.2-E11.4): its fields, what its own statements must say, and the evidence it cites.
//!
//! The environment checks that the card is complete, consistent and grounded. It never computes the verdict for the model (E11.5).

use crate::evidence::Evidence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use traderharness_market::Code;

/// Read tools that must have answered for the security in this run (engine E11.4), in the order in which they are named.
pub const REQUIRED_TOOLS: [&str; 5] =
    ["get_stock_info", "get_business_segments", "get_valuation", "get_kline", "get_stock_price"];

/// Fields a correction may not change (engine E10.8).
pub const LOCKED_FIELDS: [&str; 11] = [
    "decision",
    "mode",
    "entry_setup",
    "theme",
    "sector_state",
    "candidate_role",
    "candidate_rank",
    "stronger_candidate_status",
    "execution_compromise",
    "market_stage",
    "extension_assessment",
];

/// Fields of a plan, which stand beside the card and not in it.
pub const PLAN_FIELDS: [&str; 5] =
    ["behavior_hypothesis", "confirmation_level", "original_structural_stop", "exit_condition", "expected_holding_days"];

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $wire:literal $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum $name { $(#[doc = $text] #[serde(rename = $wire)] $variant),* }
        impl $name {
            /// Wire name.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $wire),* } }
        }
    };
}

words!(
    /// What the analysis came to.
    Decision { Trade "trade" "Trade now.", Abstain "abstain" "Do not trade." }
);
words!(
    /// Style of the entry.
    Mode {
        LeaderAttack "leader_attack" "Join the leader of a leading theme.",
        HighLowRotation "high_low_rotation" "Rotate from extended names into repriced laggards."
    }
);
words!(
    /// Chart situation of the entry.
    EntrySetup {
        LowBaseIgnition "low_base_ignition" "First expansion out of a low base.",
        TrendContinuation "trend_continuation" "Continuation of an established trend.",
        LeaderPullback "leader_pullback" "Orderly pullback of a leader."
    }
);
words!(
    /// What the business fit rests on.
    FitBasis {
        DirectSegments "direct_segments" "A named business segment of the company.",
        IndustryProxy "industry_proxy" "Its industry only.",
        Announcement "announcement" "An announcement of the company."
    }
);
words!(
    /// State of the sector.
    SectorState {
        EmergingLeading "emerging_leading" "Starting to lead.",
        ConfirmedLeading "confirmed_leading" "Leading, confirmed by breadth.",
        EmergingRepricing "emerging_repricing" "Starting to be repriced.",
        ConfirmedRepricing "confirmed_repricing" "Repriced, confirmed by breadth.",
        SingleStockOnly "single_stock_only" "Only this stock moves.",
        Unclear "unclear" "Not clear."
    }
);
words!(
    /// Role of the stock in its theme.
    CandidateRole {
        EmergingLeader "emerging_leader" "Becoming the leader.",
        TrueLeader "true_leader" "The leader.",
        RotationCore "rotation_core" "Core of a rotation.",
        Follower "follower" "A follower.",
        Unclear "unclear" "Not clear."
    }
);
words!(
    /// Rank of the stock among the ways to express the theme.
    CandidateRank {
        BestExpression "best_expression" "The best one.",
        WeakerAlternative "weaker_alternative" "A weaker one.",
        Unclear "unclear" "Not clear."
    }
);
words!(
    /// Whether a stronger candidate exists.
    StrongerCandidate {
        NoneIdentified "none_identified" "None was found.",
        Available "available" "One exists and could be bought.",
        Unavailable "unavailable" "One exists and cannot be bought."
    }
);
words!(
    /// Whether the order is a compromise.
    Compromise {
        None "none" "It is not.",
        WeakerSubstitute "weaker_substitute" "A weaker stock stands in for the wanted one.",
        Unclear "unclear" "Not clear."
    }
);
words!(
    /// Stage of the move.
    MarketStage {
        Startup "startup" "Start.",
        Confirmation "confirmation" "Confirmation.",
        HealthyPullback "healthy_pullback" "Healthy pullback.",
        Acceleration "acceleration" "Acceleration.",
        Climax "climax" "Climax.",
        Distribution "distribution" "Distribution.",
        Repricing "repricing" "Repricing."
    }
);
words!(
    /// How far the price has run.
    Extension {
        Acceptable "acceptable" "Acceptable.",
        ManagedExtension "managed_extension" "Extended, with the risk managed.",
        Overextended "overextended" "Overextended.",
        Unclear "unclear" "Not clear."
    }
);

/// A decision card. Every field is required and no text may be blank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionCard {
    /// What the analysis came to; only `trade` can open a position.
    pub decision: Decision,
    /// Style of the entry.
    pub mode: Mode,
    /// Chart situation; `leader_pullback` fits `leader_attack` only.
    pub entry_setup: EntrySetup,
    /// Theme the trade belongs to; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub theme: String,
    /// Why the theme should move prices now; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub theme_logic: String,
    /// Evidence ids, each copied exactly from a text tool's result of this run; at least one.
    #[schemars(length(min = 1))]
    pub text_evidence_ids: Vec<String>,
    /// How the company's business fits the theme; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub business_fit: String,
    /// What that fit rests on; `direct_segments` and `announcement` must be backed by a fetched result.
    pub business_fit_basis: FitBasis,
    /// State of the sector; it must suit the mode and the setup.
    pub sector_state: SectorState,
    /// What confirms the sector's state; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub sector_confirmation: String,
    /// Role of the stock; it must suit the mode.
    pub candidate_role: CandidateRole,
    /// Comparison with the other candidates; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub leadership_comparison: String,
    /// Why this stock is the best expression of the theme; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub best_expression_reason: String,
    /// Rank of the stock; only `best_expression` can be bought.
    pub candidate_rank: CandidateRank,
    /// Whether a stronger candidate exists; only `none_identified` can be bought.
    pub stronger_candidate_status: StrongerCandidate,
    /// Whether the order is a compromise; only `none` can be bought.
    pub execution_compromise: Compromise,
    /// Whether the stock trades enough for the size; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub capacity_liquidity: String,
    /// What price and volume confirm; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub price_volume_confirmation: String,
    /// Stage of the move.
    pub market_stage: MarketStage,
    /// How far the price has run; only `acceptable` or `managed_extension` can be bought.
    pub extension_assessment: Extension,
    /// The strongest evidence against the trade; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub counter_evidence: String,
    /// Why now and not later; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub why_now: String,
    /// The case for not trading; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub abstention_case: String,
    /// What would prove the idea wrong; at most 1000 characters.
    #[schemars(length(min = 1, max = 1000))]
    pub invalidation: String,
}

/// Why a decision card does not open a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
#[non_exhaustive]
pub enum CardRefusal {
    #[error("The decision card lacks or leaves blank: {}.", .fields.join(", "))]
    MissingFields { fields: Vec<&'static str> },
    #[error(
        "The decision card's own statements do not support the trade: {field} is `{got}`, and it would have to be {accepted}."
    )]
    Semantic { field: &'static str, got: String, accepted: String },
    #[error("The decision card cites evidence that no text tool returned in this run ({} of its ids).", .invalid.len())]
    UnseenEvidence { invalid: Vec<String>, available: Vec<String> },
    #[error("The decision card needs results on this security that were not fetched in this run: {}.", .tools.join(", "))]
    MissingTools { tools: Vec<&'static str> },
    #[error("The business fit claims direct segments, but the fetched segments name none.")]
    Ungrounded,
    #[error("The business fit claims an announcement, but no announcement evidence on this security was fetched.")]
    MissingAnnouncement,
}

impl DecisionCard {
    /// The field that cards of the first contract versions do not have.
    pub const SETUP: &'static str = "entry_setup";

    /// The setup that such a card counts as: it goes with every mode, and with every state of the sector that its mode goes with.
    pub const ANY_SETUP: EntrySetup = EntrySetup::LowBaseIgnition;

    /// All field names, in order.
    pub const FIELDS: [&'static str; 24] = [
        "decision",
        "mode",
        "entry_setup",
        "theme",
        "theme_logic",
        "text_evidence_ids",
        "business_fit",
        "business_fit_basis",
        "sector_state",
        "sector_confirmation",
        "candidate_role",
        "leadership_comparison",
        "best_expression_reason",
        "candidate_rank",
        "stronger_candidate_status",
        "execution_compromise",
        "capacity_liquidity",
        "price_volume_confirmation",
        "market_stage",
        "extension_assessment",
        "counter_evidence",
        "why_now",
        "abstention_case",
        "invalidation",
    ];

    /// Checks the card: blank texts, then its own statements (E11.3), then the evidence (E11.4).
    ///
    /// # Errors
    /// The first [`CardRefusal`].
    pub fn check(&self, security: Code, evidence: &Evidence) -> Result<(), CardRefusal> {
        self.check_texts()?;
        self.check_statements()?;
        self.check_evidence(security, evidence)
    }

    fn check_texts(&self) -> Result<(), CardRefusal> {
        let texts = [
            ("theme", &self.theme),
            ("theme_logic", &self.theme_logic),
            ("business_fit", &self.business_fit),
            ("sector_confirmation", &self.sector_confirmation),
            ("leadership_comparison", &self.leadership_comparison),
            ("best_expression_reason", &self.best_expression_reason),
            ("capacity_liquidity", &self.capacity_liquidity),
            ("price_volume_confirmation", &self.price_volume_confirmation),
            ("counter_evidence", &self.counter_evidence),
            ("why_now", &self.why_now),
            ("abstention_case", &self.abstention_case),
            ("invalidation", &self.invalidation),
        ];
        let mut fields: Vec<_> = texts.into_iter().filter(|(_, text)| text.trim().is_empty()).map(|(name, _)| name).collect();
        if self.text_evidence_ids.iter().all(|id| id.trim().is_empty()) {
            fields.push("text_evidence_ids");
        }
        if fields.is_empty() { Ok(()) } else { Err(CardRefusal::MissingFields { fields }) }
    }

    fn check_statements(&self) -> Result<(), CardRefusal> {
        use {CandidateRole as Role, EntrySetup as Setup, SectorState as Sector};
        fn one_of<T: PartialEq + Copy>(
            field: &'static str,
            got: T,
            accepted: &[T],
            name: fn(T) -> &'static str,
        ) -> Result<(), CardRefusal> {
            if accepted.contains(&got) {
                return Ok(());
            }
            let accepted: Vec<_> = accepted.iter().map(|a| format!("`{}`", name(*a))).collect();
            Err(CardRefusal::Semantic { field, got: name(got).to_owned(), accepted: accepted.join(" or ") })
        }
        one_of("decision", self.decision, &[Decision::Trade], Decision::as_str)?;
        let (roles, setups): (&[Role], &[Setup]) = match self.mode {
            Mode::LeaderAttack => (
                &[Role::EmergingLeader, Role::TrueLeader],
                &[Setup::LowBaseIgnition, Setup::TrendContinuation, Setup::LeaderPullback],
            ),
            Mode::HighLowRotation => (&[Role::RotationCore], &[Setup::LowBaseIgnition, Setup::TrendContinuation]),
        };
        one_of("candidate_role", self.candidate_role, roles, Role::as_str)?;
        one_of("entry_setup", self.entry_setup, setups, Setup::as_str)?;
        let sectors: &[Sector] = match (self.mode, self.entry_setup) {
            (Mode::LeaderAttack, Setup::LowBaseIgnition) => &[Sector::EmergingLeading, Sector::ConfirmedLeading],
            (Mode::LeaderAttack, Setup::TrendContinuation | Setup::LeaderPullback) => &[Sector::ConfirmedLeading],
            (Mode::HighLowRotation, Setup::LowBaseIgnition) => &[Sector::EmergingRepricing, Sector::ConfirmedRepricing],
            (Mode::HighLowRotation, _) => &[Sector::ConfirmedRepricing],
        };
        one_of("sector_state", self.sector_state, sectors, Sector::as_str)?;
        one_of(
            "extension_assessment",
            self.extension_assessment,
            &[Extension::Acceptable, Extension::ManagedExtension],
            Extension::as_str,
        )?;
        one_of("candidate_rank", self.candidate_rank, &[CandidateRank::BestExpression], CandidateRank::as_str)?;
        one_of(
            "stronger_candidate_status",
            self.stronger_candidate_status,
            &[StrongerCandidate::NoneIdentified],
            StrongerCandidate::as_str,
        )?;
        one_of("execution_compromise", self.execution_compromise, &[Compromise::None], Compromise::as_str)
    }

    fn check_evidence(&self, security: Code, evidence: &Evidence) -> Result<(), CardRefusal> {
        let invalid: Vec<String> = self.text_evidence_ids.iter().filter(|id| !evidence.has_text(id)).cloned().collect();
        if !invalid.is_empty() {
            return Err(CardRefusal::UnseenEvidence { invalid, available: evidence.newest_texts(60) });
        }
        let tools: Vec<_> = REQUIRED_TOOLS.into_iter().filter(|tool| !evidence.has_result(tool, security)).collect();
        if !tools.is_empty() {
            return Err(CardRefusal::MissingTools { tools });
        }
        match self.business_fit_basis {
            FitBasis::DirectSegments if !evidence.names_a_segment(security) => Err(CardRefusal::Ungrounded),
            FitBasis::Announcement if !evidence.has_result("get_announcement_evidence", security) => {
                Err(CardRefusal::MissingAnnouncement)
            }
            _ => Ok(()),
        }
    }
}
