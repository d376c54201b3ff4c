//! What a run folder holds: `cassette.jsonl` with the manifest in its first line, `trajectory.jsonl`, `summary.json`, `result.json`,
//! `measured.json`, and `private/` with what must not travel with a public recording: the mask key, the window and where the dataset lay.

use crate::agent::Agent;
use crate::args::MaskChoice;
use crate::contract::{Chosen, Style};
use crate::fault::{Class, Fault, read_text};
use crate::gate::GateRun;
use crate::plugins::PlugIns;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use traderharness_contract::parse::CallStyle;
use traderharness_harness::run::Prices;
use traderharness_harness::{Card, Contract};
use traderharness_market::{Day, MaskConfig};
use traderharness_serve::config::Profile;

/// Public facts of a run, in the cassette's meta line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Card snapshot.
    pub(crate) card: Card,
    /// Window of the run; in `private/` alone when dates are hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<Window>,
    /// Digest of the window, keyed where anything is hidden: tells that another window is another run.
    #[serde(default)]
    pub(crate) window_id: String,
    /// Dates hidden.
    pub(crate) mask_dates: bool,
    /// Codes and names hidden.
    pub(crate) mask_entities: bool,
    /// How codes are hidden; left out for opaque aliases.
    #[serde(default, skip_serializing_if = "Style::is_opaque")]
    pub(crate) mask_style: Style,
    /// Seed of a map of the Python implementation; left out for masks that follow from a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mask_seed: Option<i64>,
    /// Contract of the run. A recording has its name and flags in the first line, beside this manifest.
    #[serde(skip)]
    pub(crate) contract: Contract,
    /// Digest of the pack file that the contract was read from; left out for the versions of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pack: Option<String>,
    /// Id of the mask key; the key itself is in `private/`.
    pub(crate) entity_mask_seed: String,
    /// Orders went through an order gate; its mandate is in `private/`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) gated: bool,
    /// How the model wrote its calls; left out for native calls. What a recording holds was sent in this style.
    #[serde(default, skip_serializing_if = "is_native")]
    pub(crate) style: CallStyle,
    /// Sampling parameters of every request.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) sampling: Map<String, Value>,
    /// Prices of tokens: what a run costs is part of what it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prices: Option<Prices>,
    /// Plug-in tools that the agent was offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plug_ins: Option<PlugIns>,
    /// The session was played through a door: the recording holds its calls and no model request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hosted: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_native(style: &CallStyle) -> bool {
    matches!(style, CallStyle::Openai)
}

/// First and last day asked for, YYYY-MM-DD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Window {
    /// First day.
    pub(crate) start: String,
    /// Last day.
    pub(crate) end: String,
}

/// Private facts of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Private {
    /// Mask key, hex.
    pub(crate) mask_key: String,
    /// Window of the run.
    pub(crate) window: Window,
    /// Where the dataset lay; none for the bundled pack.
    pub(crate) data: Option<PathBuf>,
    /// The order gate of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gate: Option<GateRun>,
    /// Who plays: a resumed run is played by the same script, rule or kind of model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) player: Option<String>,
}

/// First and last day, checked before anything loads (engine E1.4).
pub(crate) fn window(start: &str, end: &str) -> Result<(Day, Day), Fault> {
    let day = |what: &str, text: &str| {
        Day::parse(text).map_err(|e| Fault::new(Class::Input, e).context(format!("{what} is not a date")))
    };
    let (start, end) = (day("--start", start)?, day("--end", end)?);
    if end < start {
        return Err(Fault::text(Class::Input, format!("--end {end} is before --start {start}")).hint("swap them"));
    }
    let today = host_today();
    // One day of slack for exchanges ahead of UTC.
    if start > today.plus(1) {
        return Err(Fault::text(Class::Input, format!("--start {start} is in the future; today is {today} (UTC)"))
            .hint("a run is over days that have happened"));
    }
    Ok((start, end))
}

/// The host's day in UTC, only to refuse windows that have not happened.
fn host_today() -> Day {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    Day((seconds / 86_400) as i32)
}

impl Manifest {
    /// The manifest of an agent under a card, hiding nothing yet.
    pub(crate) fn of(card: Card, agent: &Agent) -> Self {
        Self { style: agent.style, sampling: agent.sampling.clone(), prices: agent.price(), ..Self::bare(card) }
    }

    /// The manifest of a session that is played through a door, which asks no model.
    pub(crate) fn of_hosted(made: &Profile, window: &Window) -> Self {
        Self {
            window: (!made.mask.dates).then(|| window.clone()),
            mask_dates: made.mask.dates,
            mask_entities: made.mask.entities,
            hosted: true,
            ..Self::bare(made.card.clone())
        }
    }

    fn bare(card: Card) -> Self {
        Self {
            card,
            window: None,
            window_id: String::new(),
            mask_dates: false,
            mask_entities: false,
            mask_style: Style::default(),
            mask_seed: None,
            contract: Contract::default(),
            pack: None,
            entity_mask_seed: String::new(),
            gated: false,
            style: CallStyle::default(),
            sampling: Map::new(),
            prices: None,
            plug_ins: None,
            hosted: false,
        }
    }

    /// The manifest under a contract that was chosen; call it once it is known whether entities are hidden.
    #[must_use]
    pub(crate) fn under(mut self, chosen: Chosen) -> Self {
        self.contract = chosen.contract;
        self.pack = chosen.pack;
        self.mask_style = if self.mask_entities { chosen.style } else { Style::default() };
        self.mask_seed = chosen.seed.filter(|_| self.mask_entities);
        self
    }

    /// The mask of the run, which is over `days` (a map of the Python implementation is over the codes that trade around them).
    pub(crate) fn mask(&self, key: Vec<u8>, days: Option<(Day, Day)>) -> MaskConfig {
        MaskConfig {
            dates: self.mask_dates,
            entities: self.mask_entities,
            style: self.mask_style.of_market(self.mask_seed.unwrap_or_default(), days),
            key,
        }
    }

    /// Whether anything is hidden.
    pub(crate) const fn is_masked(&self) -> bool {
        self.mask_dates || self.mask_entities
    }

    /// What a choice on the command line hides.
    pub(crate) const fn hides(choice: MaskChoice) -> (bool, bool) {
        match choice {
            MaskChoice::All => (true, true),
            MaskChoice::Dates => (true, false),
            MaskChoice::Entities => (false, true),
            MaskChoice::None => (false, false),
        }
    }
}

/// What to pass as a mask key.
const KEY_FILE: &str = "pass the private/run.json of the run, or a file with its key alone: 64 hex digits";

/// What a file of `--mask-key` says.
pub(crate) struct KeyFile {
    /// The secret itself.
    pub(crate) key: Vec<u8>,
    /// The days that were asked for, where the file is the `private/run.json` of a run.
    pub(crate) window: Option<Window>,
}

/// Reads a file of `--mask-key`: 64 hex digits alone, or the `private/run.json` that a run left.
pub(crate) fn read_key_file(path: &Path) -> Result<KeyFile, Fault> {
    #[derive(Deserialize)]
    struct Left {
        mask_key: String,
        window: Option<Window>,
    }
    let named = |fault: Fault| fault.context(format!("mask key file `{}`", path.display()));
    let text = read_text("mask key", path)?;
    if !text.trim_start().starts_with('{') {
        return parse_key(&text).map(|key| KeyFile { key, window: None }).map_err(named);
    }
    let left: Left = serde_json::from_str(&text).map_err(|e| named(Fault::new(Class::Input, e)).hint(KEY_FILE))?;
    Ok(KeyFile { key: parse_key(&left.mask_key).map_err(named)?, window: left.window })
}

/// The key alone of such a file.
pub(crate) fn read_key(path: &Path) -> Result<Vec<u8>, Fault> {
    read_key_file(path).map(|file| file.key)
}

/// Reads 64 hex digits.
pub(crate) fn parse_key(text: &str) -> Result<Vec<u8>, Fault> {
    let text = text.trim();
    let fault = || Fault::text(Class::Input, "the mask key is not 64 hex digits").hint(KEY_FILE);
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(fault());
    }
    (0..32).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| fault())).collect()
}

/// Writes a key.
pub(crate) fn hex(key: &[u8]) -> String {
    key.iter().map(|b| format!("{b:02x}")).collect()
}

/// A new secret.
pub(crate) fn new_key() -> Result<Vec<u8>, Fault> {
    let mut key = [0_u8; 32];
    getrandom::fill(&mut key).map_err(|e| Fault::text(Class::Environment, format!("the system gives no random bytes: {e}")))?;
    Ok(key.to_vec())
}

/// Writes a file under a temporary name and renames it, so that it is whole or absent.
/// `private` files can be read by their owner only.
pub(crate) fn write_whole(path: &Path, bytes: &[u8], private: bool) -> Result<(), Fault> {
    use std::io::Write as _;
    let fault = |e: std::io::Error| Fault::new(Class::Environment, e).context(format!("`{}` cannot be written", path.display()));
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    if !private {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o644));
    }
    let mut file = builder.tempfile_in(folder).map_err(fault)?;
    file.write_all(bytes).map_err(fault)?;
    file.persist(path).map_err(|e| fault(e.error))?;
    Ok(())
}
