//! The research registry is frozen: what was published under a revision keeps its digest.

use traderharness_serve::manifest::Catalog;
use traderharness_serve::registry::entries;

// spec/seeds.md C8: an edit makes a new revision; this list only grows
#[test]
fn published_entries_keep_their_digests() {
    let catalog = Catalog::standard().unwrap();
    let lines: Vec<String> =
        entries(&catalog).iter().map(|e| format!("{} {} {} {}", e.kind.as_str(), e.name, e.revision, e.digest)).collect();
    insta::assert_snapshot!("research_registry", lines.join("\n"));
}

// spec/seeds.md C1, C2: manifests change only as a reviewed diff
#[test]
fn manifests_are_reviewed() {
    let catalog = Catalog::standard().unwrap();
    let lines: Vec<String> = catalog
        .all()
        .iter()
        .map(|c| {
            format!(
                "{} {} {:?}\n  tool {}\n  needs {}\n  sources {}",
                c.name,
                c.revision,
                c.effect,
                c.tool.as_deref().unwrap_or("none"),
                c.closure.join(", "),
                c.sources.join(", ")
            )
        })
        .collect();
    insta::assert_snapshot!("capabilities", lines.join("\n"));
}
