//! Contract versions on the command line: under which a run is played, and under which a recording was made. What a version means is
//! the harness's and the contract's; here names, files and flags become a [`Contract`], or a refusal before anything is asked.

use crate::fault::{Class, Fault, read_text};
use clap::{Args as ClapArgs, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use traderharness_contract::version::{Behaviour, Behaviours, Pack, Version};
use traderharness_harness::Contract;
use traderharness_market::MaskStyle;
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
}

impl Style {
    /// As the market has it.
    pub(crate) const fn of_market(self) -> MaskStyle {
        match self {
            Self::Opaque => MaskStyle::Opaque,
            Self::Permutation => MaskStyle::Permutation,
        }
    }

    /// As recordings name it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Opaque => "opaque",
            Self::Permutation => "permutation",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub(crate) const fn is_opaque(&self) -> bool {
        matches!(self, Self::Opaque)
    }
}

/// Under which contract a run is played.
#[derive(Debug, Clone, ClapArgs)]
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
}

/// A contract and where it comes from.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// The contract.
    pub(crate) contract: Contract,
    /// Digest of the pack file, of a contract that is none of ours.
    pub(crate) pack: Option<String>,
    /// How codes are hidden.
    pub(crate) style: Style,
}

impl ContractOptions {
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
        Ok(Chosen { contract, pack, style: self.mask_style.unwrap_or(usual) })
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
