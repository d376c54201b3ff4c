//! Names and codes that must not be told, and the rules that they make together with what is private of a run and of this machine.

use super::runs::Runs;
use crate::fault::Fault;
use crate::source;
use std::path::{Path, PathBuf};
use traderharness_ingest::rows::{RowLimits, Rows};
use traderharness_market::{Mask, MaskConfig, MaskStyle, Store};
use traderharness_replay::audit::{DatePolicy, NameKind, Rules};

/// Columns of `securities.parquet` that runs do not use and that name a company all the same, and what each holds.
const MORE_NAMES: [(&str, NameKind); 7] = [
    ("pinyin", NameKind::Pinyin),
    ("name_pinyin", NameKind::Pinyin),
    ("english_name", NameKind::English),
    ("name_en", NameKind::English),
    ("enname", NameKind::English),
    ("full_name", NameKind::Company),
    ("fullname", NameKind::Company),
];

/// Names and codes of a dataset.
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) names: Vec<(String, NameKind)>,
    pub(crate) codes: Vec<String>,
}

/// The datasets that were asked for, each read once.
#[derive(Default)]
pub(crate) struct Datasets(Vec<(Option<PathBuf>, Known)>);

impl Datasets {
    /// The dataset of a folder, or the bundled pack.
    pub(crate) fn of(&mut self, data: Option<&Path>, quiet: bool) -> Result<&Known, Fault> {
        let at = match self.0.iter().position(|(path, _)| path.as_deref() == data) {
            Some(at) => at,
            None => {
                let mut known = Known::of(&source::open(data, quiet)?.store);
                if let Some(folder) = data {
                    known.names.extend(more_names(&folder.join("securities.parquet")));
                }
                self.0.push((data.map(Path::to_path_buf), known));
                self.0.len() - 1
            }
        };
        self.0.get(at).map(|(_, known)| known).ok_or_else(|| Fault::text(crate::fault::Class::Environment, "no dataset"))
    }

    /// All that were read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Known> {
        self.0.iter().map(|(_, known)| known)
    }
}

/// Further names in the table of companies. What is wrong with it, loading the dataset has told already.
fn more_names(table: &Path) -> Vec<(String, NameKind)> {
    let mut names = vec![];
    let Ok(rows) = Rows::open(table, RowLimits::default()) else { return names };
    if !rows.columns().iter().any(|column| MORE_NAMES.iter().any(|(name, _)| name == column)) {
        return names;
    }
    for row in rows.map_while(Result::ok) {
        for (column, kind) in MORE_NAMES {
            let name = row.get(column).and_then(serde_json::Value::as_str).unwrap_or_default().trim_matches(['\0', ' ']);
            if !name.is_empty() {
                names.push((name.to_owned(), kind));
            }
        }
    }
    names
}

impl Known {
    fn of(store: &Store) -> Self {
        let config = MaskConfig { dates: false, entities: true, style: MaskStyle::Opaque, key: vec![0; 32] };
        let mask = Mask::new(store, config);
        let today = store.calendar().days().last().copied();
        // The mask leaves a name that is an everyday word alone in running text, and so must the audit.
        let kind = |name: &str, kind| {
            let everyday = today.is_some_and(|day| {
                let sentence = format!("的{name}的");
                name.chars().all(|c| !c.is_ascii()) && mask.text(&sentence, day.plus(1)) == sentence
            });
            if everyday { NameKind::Everyday } else { kind }
        };
        let mut names = vec![];
        for security in store.securities().unwrap_or_default() {
            names.push((security.name.clone(), kind(&security.name, NameKind::Company)));
            names.extend(security.aliases.iter().map(|alias| {
                let latin = alias.is_ascii();
                (alias.clone(), if latin { NameKind::English } else { kind(alias, NameKind::Alias) })
            }));
        }
        let meta = store.meta();
        let codes = store.codes().iter().map(ToString::to_string).collect();
        Self { name: meta.name.clone(), digest: meta.digest.clone(), names, codes }
    }

    /// Rules for artifacts of `runs`, without those for what they may hold.
    pub(crate) fn rules(&self, runs: &Runs, allowed: Allowed, folders: impl IntoIterator<Item = PathBuf>) -> Rules {
        let mut rules =
            Rules { dates: if allowed.dates { DatePolicy::Allowed } else { DatePolicy::Forbidden }, ..Rules::default() };
        if !allowed.entities {
            rules.names.clone_from(&self.names);
            rules.codes = self.codes.iter().map(|code| (code.clone(), None)).collect();
        }
        // What the mask writes itself; the day stands in every moment that code in the sandbox gets.
        rules.allowed.extend(["another company", "another code", "2000-01-01"].map(str::to_owned));
        rules.allowed.extend(runs.models.iter().cloned());
        rules.secrets.extend(runs.keys.iter().cloned());
        rules.secrets.extend(secrets_here());
        let homes = ["HOME", "USERPROFILE"].iter().filter_map(std::env::var_os).map(PathBuf::from);
        let folders = homes.chain(std::env::current_dir().ok()).chain(folders.into_iter().filter_map(absolute));
        rules.paths = folders.filter_map(|path| path.to_str().map(str::to_owned)).collect();
        rules
    }
}

/// What is no finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Allowed {
    pub(crate) dates: bool,
    pub(crate) entities: bool,
}

/// Keys of this environment are the ones that could have got into an artifact of it.
pub(crate) fn secrets_here() -> Vec<String> {
    let key = |name: &str| ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"].iter().any(|end| name.ends_with(end));
    std::env::vars().filter(|(name, value)| key(name) && value.len() >= 12).map(|(_, value)| value).collect()
}

fn absolute(path: PathBuf) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}
