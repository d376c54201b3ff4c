//! Records the bundled demo anew, or says whether it is current. The recording holds every tool's contract, so a changed word in one
//! makes it stale.

use crate::steps;
use anyhow::Context as _;
use std::path::Path;
use std::process::ExitCode;

/// Folder of the demo, below the workspace root.
const DEMO: &str = "crates/cli/demo";
/// The demo's day.
const DAY: &str = "2020-02-04";

/// Writes `cassette.jsonl` of the demo; with `check` only compares.
pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<ExitCode> {
    let folder = root.join("target/demo-recording");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    let record = folder.to_string_lossy().into_owned();
    let (script, key) = (format!("{DEMO}/script.yaml"), format!("{DEMO}/mask.key"));
    steps::cargo(root)
        .args(["run", "--quiet", "--locked", "--package", "traderharness-cli", "--", "run", "--json", "--check-output"])
        .args(["--script", &script, "--mask-key", &key, "--start", DAY, "--end", DAY, "--record", &record])
        .read()?;
    let (made, kept) = (folder.join("cassette.jsonl"), root.join(DEMO).join("cassette.jsonl"));
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let same = kept.exists() && read(&made)? == read(&kept)?;
    if same {
        println!("{DEMO}/cassette.jsonl is current");
        return Ok(ExitCode::SUCCESS);
    }
    if check {
        println!("{DEMO}/cassette.jsonl is stale; renew it with `cargo xtask cassettes` and read the diff");
        return Ok(ExitCode::from(1));
    }
    std::fs::copy(&made, &kept).with_context(|| format!("cannot write {}", kept.display()))?;
    println!("wrote {DEMO}/cassette.jsonl");
    Ok(ExitCode::SUCCESS)
}
