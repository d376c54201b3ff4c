//! Makes the bundled recordings, one for each contract version, or says which are not what would be recorded now. v1 to v4 are frozen:
//! their files are what recordings made elsewhere look like, so they are written once and never replaced without being asked to.

use crate::steps;
use anyhow::Context as _;
use std::path::Path;
use std::process::ExitCode;

/// Folder of the recordings, below the workspace root.
const RECORDINGS: &str = "crates/cli/recordings";
/// Mask key of all of them. Public on purpose: they have nothing to hide.
const MASK_KEY: &str = "crates/cli/demo/mask.key";
/// Their day.
const DAY: &str = "2020-02-04";

/// One recording.
struct Recording {
    version: &'static str,
    script: &'static str,
    card: Option<&'static str>,
    /// Further options of `run`.
    options: &'static [&'static str],
    frozen: bool,
}

/// All recordings; the demo replays v2.
const ALL: [Recording; 5] = [
    Recording { version: "v1", script: "v1.yaml", card: Some("card.yaml"), options: &[], frozen: true },
    Recording { version: "v2", script: "v2.yaml", card: Some("card.yaml"), options: &[], frozen: true },
    Recording {
        version: "v3",
        script: "v3.yaml",
        card: Some("card-plan.yaml"),
        options: &["--mask-style", "opaque"],
        frozen: true,
    },
    Recording { version: "v4", script: "v4.yaml", card: None, options: &[], frozen: true },
    Recording { version: "v5", script: "../demo/script.yaml", card: None, options: &[], frozen: false },
];

/// Writes the recordings that are missing, and v5 where it is stale; with `check` only compares. `refreeze` replaces v1 to v4, too.
pub(crate) fn run(root: &Path, check: bool, refreeze: bool) -> anyhow::Result<ExitCode> {
    let made = root.join("target/recordings");
    if made.exists() {
        std::fs::remove_dir_all(&made).with_context(|| format!("cannot empty {}", made.display()))?;
    }
    std::fs::create_dir_all(&made).with_context(|| format!("cannot make {}", made.display()))?;
    let mut found = false;
    for recording in &ALL {
        found |= !one(root, &made, recording, check, refreeze)?;
    }
    Ok(ExitCode::from(u8::from(found)))
}

/// Makes one; `false` when there is something to say about it.
fn one(root: &Path, made: &Path, recording: &Recording, check: bool, refreeze: bool) -> anyhow::Result<bool> {
    let version = recording.version;
    let folder = made.join(version);
    let record = folder.to_string_lossy().into_owned();
    let file = |name: &str| format!("{RECORDINGS}/{name}");
    let script = file(recording.script);
    let card = recording.card.map(file);
    steps::cargo(root)
        .args(["run", "--quiet", "--locked", "--package", "traderharness-cli", "--", "run", "--json", "--check-output"])
        .args(["--contract", version, "--script", &script, "--mask-key", MASK_KEY, "--start", DAY, "--end", DAY])
        .args(["--record", &record])
        .args(recording.options)
        .args(card.iter().flat_map(|card| ["--card", card]))
        .read()?;
    let shown = file(&format!("{version}.jsonl"));
    let kept = root.join(&shown);
    let read = |path: &Path| std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let new = read(&folder.join("cassette.jsonl"))?;
    let old = if kept.exists() { Some(read(&kept)?) } else { None };
    let same = match &old {
        None => false,
        // The first line of a frozen file says what its program knew of a run; what was asked and answered is below it.
        Some(old) if recording.frozen => calls(old).eq(calls(&new)),
        Some(old) => *old == new,
    };
    if same {
        println!("{shown} is current");
        return Ok(true);
    }
    if recording.frozen && old.is_some() && !refreeze {
        println!(
            "{shown} is frozen, and its day comes out otherwise now: recordings made under {version} would no longer replay. Undo what \
             changed it, or give it a behaviour flag; `--refreeze` replaces the file and gives those recordings up"
        );
        return Ok(false);
    }
    if check {
        let how = if old.is_some() { "stale" } else { "missing" };
        println!("{shown} is {how}; `cargo xtask cassettes` writes it, read the diff");
        return Ok(false);
    }
    std::fs::write(&kept, new).with_context(|| format!("cannot write {}", kept.display()))?;
    println!("wrote {shown}");
    Ok(true)
}

/// Lines of a recording without its first and its last one.
fn calls(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.contains("\"type\":\"meta\"") && !line.contains("\"type\":\"end\""))
}
