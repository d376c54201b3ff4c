//! Agents compared under an early version: each writes what it writes alone, and the baselines beside them play under v5.

use super::{DAY, below_the_first_line, calls, identical, record};
use crate::command::{lines, repo, run, text};
use serde_json::Value;
use std::path::Path;

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What the first line of a recording says of its contract.
fn meta(folder: &Path) -> Value {
    lines(&folder.join("cassette.jsonl")).swap_remove(0)
}

#[test]
fn agents_are_compared_under_an_early_version_beside_baselines() {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("spec.yaml");
    let own = |name: &str| repo(&format!("crates/cli/recordings/{name}"));
    let body = format!(
        "start: {DAY}\nend: {DAY}\nmask_key: {}\ncontract: v2\nentrants:\n  - {{name: one, card: {}, script: {}}}\n  - {{name: two, card: {}, script: {}}}\n",
        text(&repo("crates/cli/demo/mask.key")),
        text(&own("card.yaml")),
        text(&own("v2.yaml")),
        text(&own("card.yaml")),
        text(&own("v1.yaml")),
    );
    std::fs::write(&spec, body).unwrap();
    let into = folder.path().join("all");
    let made = run(&["compare", text(&spec), "--record", text(&into)]);
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(made.out.contains("Played under v2: one, two; v5: buy-and-hold"), "{}", made.out);
    let compared = json(&into.join("compare.json"));
    for entrant in compared["entrants"].as_array().unwrap() {
        let place = into.join(entrant["name"].as_str().unwrap());
        let expected = if entrant["baseline"] == true { "v5" } else { "v2" };
        assert_eq!(entrant["contract"], expected, "{entrant}");
        assert_eq!(meta(&place)["contract_version"], expected);
        // All hide codes in one way, whatever they play under.
        assert_eq!(meta(&place)["mask"]["entities"], "permutation");
        identical(&run(&["replay", text(&place)]), calls(&place.join("cassette.jsonl")), text(&place));
    }
    assert_eq!(compared["entrants"].as_array().unwrap().len(), 7);
    // In company as alone.
    let alone = folder.path().join("alone");
    assert_eq!(record("v2", &alone, &["--contract", "v2"]).code, 0);
    let same = below_the_first_line(&alone.join("cassette.jsonl")) == below_the_first_line(&into.join("one/cassette.jsonl"));
    assert!(same, "an agent in company writes what it writes alone");
    // What the command says wins over the file.
    let other = folder.path().join("other");
    let made =
        run(&["compare", text(&spec), "--record", text(&other), "--no-baselines", "--contract", "v1", "--mask-style", "opaque"]);
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(!made.out.contains("Played under"), "{}", made.out);
    assert_eq!(meta(&other.join("two"))["contract_version"], "v1");
    assert_eq!(meta(&other.join("two"))["mask"]["entities"], "opaque");
}

#[test]
fn agents_are_compared_under_a_pack_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let pack = folder.path().join("pack.json");
    let ours = std::fs::read_to_string(repo("crates/contract/packs/v3.json")).unwrap();
    std::fs::write(&pack, ours.replacen("\"v3\"", "\"elsewhere-3\"", 1)).unwrap();
    let (script, card) = (repo("crates/cli/recordings/v3.yaml"), repo("crates/cli/recordings/card-plan.yaml"));
    let key = repo("crates/cli/demo/mask.key");
    let spec = |more: &str| {
        let path = folder.path().join("spec.yaml");
        let entrant = format!("{{name: a, card: {}, script: {}}}", text(&card), text(&script));
        std::fs::write(&path, format!("start: {DAY}\nend: {DAY}\nbaselines: false\n{more}entrants: [{entrant}]\n")).unwrap();
        path
    };
    // Beside the file.
    let into = folder.path().join("all");
    let made = run(&["compare", text(&spec("pack: pack.json\n")), "--mask-key", text(&key), "--record", text(&into)]);
    assert_eq!(made.code, 0, "{}", made.err);
    assert_eq!(json(&into.join("compare.json"))["entrants"][0]["contract"], "elsewhere-3");
    let place = into.join("a");
    identical(&run(&["replay", text(&place), "--pack", text(&pack)]), calls(&place.join("cassette.jsonl")), "a");
    let check = |more: &str, says: &str| {
        let ran = run(&["compare", text(&spec(more)), "--record", text(&folder.path().join("never"))]);
        assert_eq!((ran.code, folder.path().join("never").exists()), (2, false), "{}", ran.err);
        assert!(ran.err.contains(says), "`{says}` is not in {}", ran.err);
    };
    check("pack: pack.json\ncontract: v3\n", "stand in each other's place");
    check("contract: v9\n", "v9");
    std::fs::write(&pack, "{}").unwrap();
    check("pack: pack.json\n", "the pack cannot be read");
}
