//! Contract versions on the command line: under which a run is played, and under which a recording was made. What a version means is
//! the harness's and the contract's; here names, files and flags become a [`Contract`], or a refusal before anything is asked.

use crate::fault::{Class, Fault, read_text};
use clap::{Args as ClapArgs, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use traderharness_contract::version::{Behaviour, Behaviours, Pack, Version};
use traderharness_harness::Contract;
use traderharness_market::{Day, MaskStyle};
use traderharness_replay::Meta;

/// How codes are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Style {
    /// Aliases such as SHM-000360.
    #[default]
    Opaque,
    /// Real codes of the same board, exchanged among each other.
    Permutation,
    /// The aliases of the Python implementation, from --mask-seed; to hold runs against its recordings.
    ReferenceOpaque,
    /// The exchanged codes of the Python implementation, from --mask-seed.
    ReferencePermutation,
}

/// Calendar days before a run from which on the Python implementation loads daily rows: its alias maps are over the codes with a row in
/// the loaded days (spec/peer.md 0.4; its engine module).
const LOADED_BEFORE: i32 = 180;

/// What a person is told of a run behind a map of the Python implementation.
const GUESSABLE: &str = "note: codes are hidden by a map of the Python implementation. Whoever knows the codes finds it by trying seeds; \
                         a run that has to hide its market takes --mask-style opaque or permutation";

impl Style {
    /// As the market has it. Seed and window matter to the maps of the Python implementation alone; without a window those are over all
    /// codes of the dataset.
    pub(crate) fn of_market(self, seed: i64, window: Option<(Day, Day)>) -> MaskStyle {
        let loaded = window.map(|(start, end)| (start.plus(-LOADED_BEFORE), end));
        match self {
            Self::Opaque => MaskStyle::Opaque,
            Self::Permutation => MaskStyle::Permutation,
            Self::ReferenceOpaque => MaskStyle::Reference { opaque: true, seed, loaded },
            Self::ReferencePermutation => MaskStyle::Reference { opaque: false, seed, loaded },
        }
    }

    /// Whether it is a map of the Python implementation, which follows from a seed.
    pub(crate) const fn is_reference(self) -> bool {
        matches!(self, Self::ReferenceOpaque | Self::ReferencePermutation)
    }

    /// What codes look like, as recordings name it: readers of a recording ask whether a code in it may be a real one.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Opaque | Self::ReferenceOpaque => "opaque",
            Self::Permutation | Self::ReferencePermutation => "permutation",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub(crate) const fn is_opaque(&self) -> bool {
        matches!(self, Self::Opaque)
    }
}

/// Under which contract a run is played.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct ContractOptions {
    /// Contract version: v5, or one of v1 to v4 as they were [default: v5].
    #[arg(long, value_name = "VERSION")]
    contract: Option<Version>,
    /// Pack of tools, texts and behaviour flags that stands in a version's place, JSON (docs/running.md).
    #[arg(long, value_name = "FILE", conflicts_with = "contract")]
    pack: Option<PathBuf>,
    /// How codes are hidden [default: opaque; permutation under v1 to v4].
    #[arg(long, value_enum)]
    mask_style: Option<Style>,
    /// Seed of the styles reference-opaque and reference-permutation; it is in the recording.
    #[arg(long, value_name = "N", requires = "mask_style", allow_negative_numbers = true)]
    mask_seed: Option<i64>,
}

/// A contract and where it comes from.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// The contract.
    pub(crate) contract: Contract,
    /// Digest of the pack file, of a contract that is none of ours.
    pub(crate) pack: Option<String>,
    /// How codes are hidden.
    pub(crate) style: Style,
    /// Seed of a map of the Python implementation; with those styles and with no other.
    pub(crate) seed: Option<i64>,
}

impl Chosen {
    /// What a person should know before the run begins.
    pub(crate) fn note(&self) -> Option<&'static str> {
        self.style.is_reference().then_some(GUESSABLE)
    }

    /// What a rule-based baseline is played under beside agents under this contract: v5, whose results it reads, behind the same mask.
    pub(crate) fn of_baselines(&self) -> Self {
        Self { contract: Contract::default(), pack: None, ..self.clone() }
    }

    /// Whether a rule-based baseline can be played under it: rules read results in the shape that v5 gives them.
    pub(crate) fn serves_baselines(&self) -> bool {
        self.contract.has(Behaviour::SuccessField) && !self.contract.has(Behaviour::EarlyPayloads)
    }
}

impl ContractOptions {
    /// These options, with what a file says where they say nothing. A contract and a pack stand in each other's place.
    pub(crate) fn or(&self, contract: Option<Version>, pack: Option<PathBuf>) -> Self {
        let named = self.contract.is_some() || self.pack.is_some();
        let (contract, pack) = if named { (self.contract, self.pack.clone()) } else { (contract, pack) };
        Self { contract, pack, ..self.clone() }
    }

    /// The contract of a new run.
    pub(crate) fn chosen(&self) -> Result<Chosen, Fault> {
        let (contract, pack) = match &self.pack {
            Some(path) => {
                let pack = read_pack(path)?;
                let digest = pack.digest().to_owned();
                (Contract::foreign(pack), Some(digest))
            }
            None => (Contract::of(self.contract.unwrap_or_default()), None),
        };
        let usual = if contract.has(Behaviour::PermutationByDefault) { Style::Permutation } else { Style::Opaque };
        let style = self.mask_style.unwrap_or(usual);
        match (style.is_reference(), self.mask_seed) {
            (true, None) => {
                let missing = "the maps of the Python implementation follow from a seed, and none is given";
                Err(Fault::text(Class::Input, missing).hint("pass --mask-seed N, the entity_mask_seed of its run"))
            }
            (false, Some(_)) => Err(Fault::text(Class::Input, "--mask-seed is for reference-opaque and reference-permutation")
                .hint("other masks follow from a key: --mask-key FILE")),
            (_, seed) => Ok(Chosen { contract, pack, style, seed }),
        }
    }
}

fn read_pack(path: &Path) -> Result<Pack, Fault> {
    let text = read_text("pack", path)?;
    Pack::read(&text).map_err(|e| Fault::new(Class::Input, e).context(format!("pack `{}`", path.display())))
}

/// The contract a recording was made under; `digest` is that of its pack, `pack` the file that was named for it.
pub(crate) fn of_recording(meta: &Meta, digest: Option<&str>, pack: Option<&Path>) -> Result<Contract, Fault> {
    let contract = match (digest, pack) {
        (Some(digest), Some(path)) => {
            let pack = read_pack(path)?;
            if pack.digest() != digest {
                let what = format!("`{}` is another pack than that of the recording", path.display());
                return Err(Fault::text(Class::Input, format!("{what} (sha256 {} and {digest})", pack.digest())));
            }
            Contract::foreign(pack)
        }
        (Some(digest), None) => {
            return Err(Fault::text(
                Class::Input,
                format!("the recording was made with a pack that is not part of this program (sha256 {digest})"),
            )
            .hint("pass that file with --pack"));
        }
        (None, Some(_)) => {
            return Err(Fault::text(
                Class::Input,
                format!("the recording was made under contract {} of this program, without a pack", meta.contract_version),
            )
            .hint("leave --pack out"));
        }
        (None, None) => {
            let version = meta.contract_version.parse::<Version>().map_err(|e| {
                Fault::new(Class::Input, e)
                    .context("the recording")
                    .hint("a newer traderharness may know it; nothing was replayed")
            })?;
            Contract::of(version)
        }
    };
    // No flags are those of the version, as recordings under v5 have it.
    if meta.behaviour_flags.is_empty() && contract.name() == Version::V5.as_str() {
        return Ok(contract);
    }
    let flags = Behaviours::try_from(meta.behaviour_flags.clone()).map_err(|e| {
        Fault::new(Class::Input, e)
            .context("the recording")
            .hint("use the version that made it, or a newer one; nothing was replayed")
    })?;
    Ok(contract.with_flags(flags))
}
