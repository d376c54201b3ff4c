//! The fuzz targets of `fuzz/` on stable: over their seed corpus, each seed cut at every byte, and seeds with bytes changed.

#[path = "../../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, missing_docs, reason = "the file is the library of another crate")]
mod targets;

use proptest::prelude::*;
use std::path::{Path, PathBuf};

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 4] = [
    ("parse_styles", targets::parse_styles),
    ("arguments", targets::arguments),
    ("cursor", targets::cursor),
    ("cassette", targets::cassette),
];

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a seed")).collect()
}

#[test]
fn every_target_holds_over_its_corpus_cut_at_every_byte() {
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        assert!(seeds.len() >= 3, "{name}");
        for seed in seeds {
            // A long seed is cut at every so many bytes, so that the test stays short.
            let step = seed.len() / 400 + 1;
            (0..=seed.len()).step_by(step).for_each(|cut| target(&seed[..cut]));
            target(&seed);
        }
    }
}

#[test]
fn every_corpus_belongs_to_a_target_that_cargo_fuzz_knows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        let source = std::fs::read_to_string(root.join(format!("fuzz_targets/{name}.rs"))).expect("the target");
        assert!(source.contains(&format!("traderharness_fuzz::{name}(")), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_target_holds_over_changed_seeds(
        target in 0..TARGETS.len(),
        seed in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..6),
    ) {
        let (name, target) = TARGETS[target];
        let seeds = seeds(name);
        let mut bytes = seeds[seed.index(seeds.len())].clone();
        for (place, byte, what) in changes {
            let at = place.index(bytes.len() + 1);
            match what {
                0 => bytes.insert(at, byte),
                _ if at == bytes.len() => {}
                1 => bytes[at] = byte,
                _ => drop(bytes.remove(at)),
            }
        }
        target(&bytes);
    }
}
