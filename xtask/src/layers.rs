//! The rules of the house that a machine can check on manifests and sources. Reads only; returns every finding.
//!
//! | module | checks |
//! |---|---|
//! | [`table`] | nothing itself: it is the dependency table of the design page, as data |
//! | [`edges`] | internal edges against the table, cycles, names |
//! | [`reach`] | external crates that a crate must not be able to reach |
//! | [`manifests`] | inheritance from the workspace, the lock file |
//! | [`sources`] | what a crate's root file must say |

mod edges;
mod manifests;
mod reach;
mod sources;
mod table;
mod workspace;

use crate::finding::Finding;
use std::path::Path;
use workspace::{Package, Workspace};

/// Checks the workspace, house rules included.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let workspace = Workspace::read(root)?;
    let mut findings = edges::check(&workspace, table::ROWS);
    let alone = |package: &Package| workspace.built_with(package).ok();
    findings.extend(reach::check(&workspace, table::FORBIDDEN, table::ONLY_THROUGH, &alone));
    findings.extend(manifests::check(&workspace)?);
    findings.extend(sources::check(&workspace)?);
    findings.extend(crate::tidy::check(root)?);
    Ok(findings)
}
