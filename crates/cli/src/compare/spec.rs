//! What is compared: read from a file or from options, and checked before anything is loaded.

use crate::agent::{Agent, AgentOptions, Plan, Style, beside, environment};
use crate::args::{CompareOptions, MaskChoice};
use crate::contract::Chosen;
use crate::fault::{Class, Fault, read_value};
use crate::manifest::Window;
use crate::run::read_card;
use clap::ValueEnum as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use traderharness_contract::version::Version;
use traderharness_harness::Card;

/// Seeds of the random baseline.
const RANDOM: [u64; 3] = [1, 2, 3];

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    start: Option<String>,
    end: Option<String>,
    data: Option<PathBuf>,
    mask: Option<String>,
    mask_key: Option<PathBuf>,
    contract: Option<Version>,
    pack: Option<PathBuf>,
    seeds: Option<u32>,
    baselines: Option<bool>,
    /// Each is read alone, so that a fault names it.
    entrants: Vec<Value>,
}

/// One agent in the file; the fields are the options of `run`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entry {
    name: Option<String>,
    card: Option<PathBuf>,
    script: Option<PathBuf>,
    baseline: Option<String>,
    base_url: Option<String>,
    model: Option<String>,
    key_env: Option<String>,
    key_file: Option<PathBuf>,
    header: Vec<String>,
    no_stream: bool,
    no_stream_usage: bool,
    keep_reasoning: bool,
    style: Option<String>,
    sampling: Option<Map<String, Value>>,
    timeout: Option<u64>,
    attempts: Option<u32>,
    price_in: Option<String>,
    price_out: Option<String>,
    price_cached: Option<String>,
    currency: Option<String>,
    pipe: Option<String>,
    pipe_env: Vec<String>,
}

/// One agent that takes part.
pub(super) struct Entrant {
    /// Also the name of its folder.
    pub(super) name: String,
    pub(super) card: Card,
    pub(super) agent: Agent,
    /// One of ours, to have something to beat.
    pub(super) is_baseline: bool,
}

/// Everything that is compared.
pub(super) struct Spec {
    pub(super) window: Window,
    pub(super) data: Option<PathBuf>,
    pub(super) mask: MaskChoice,
    pub(super) mask_key: Option<PathBuf>,
    pub(super) seeds: u32,
    /// Under what the agents play.
    pub(super) chosen: Chosen,
    pub(super) entrants: Vec<Entrant>,
}

fn input(message: impl Into<String>) -> Fault {
    Fault::text(Class::Input, message)
}

impl Spec {
    pub(super) fn read(options: &CompareOptions) -> Result<Self, Fault> {
        let place = options.spec.as_deref().unwrap_or(Path::new(""));
        let file: File = match &options.spec {
            None => File::default(),
            Some(path) => serde_json::from_value(read_value("comparison", path)?)
                .map_err(|e| Fault::new(Class::Input, e).context(format!("comparison `{}`", path.display())))?,
        };
        let day = |option: &Option<String>, file: Option<String>, name: &str| {
            option
                .clone()
                .or(file)
                .ok_or_else(|| input(format!("no {name} day is given")).hint(format!("pass --{name} YYYY-MM-DD")))
        };
        let window = Window { start: day(&options.start, file.start, "start")?, end: day(&options.end, file.end, "end")? };
        let mask = match (options.mask, file.mask.as_deref()) {
            (Some(mask), _) => mask,
            (None, Some(text)) => MaskChoice::from_str(text, false)
                .map_err(|_| input(format!("`mask: {text}` is none of all, dates, entities, none")))?,
            (None, None) => MaskChoice::All,
        };
        let mut entrants = Vec::new();
        for (n, value) in file.entrants.into_iter().enumerate() {
            let named = |fault: Fault| fault.context(format!("entrants[{n}]"));
            entrants.push(Entrant::of_file(value, place).map_err(named)?);
        }
        entrants.extend(Entrant::of_options(options)?);
        if options.no_baselines || file.baselines == Some(false) {
            if entrants.is_empty() {
                return Err(input("nobody takes part").hint("name agents with --card, in a file, or leave the baselines in"));
            }
        } else {
            entrants.extend(Entrant::baselines()?);
        }
        let mut names = BTreeSet::new();
        for entrant in &entrants {
            let name = &entrant.name;
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
                return Err(input(format!("`{name}` is no name: letters, digits, `-` and `_` only")));
            }
            if !names.insert(name.to_ascii_lowercase()) {
                return Err(input(format!("two agents are called {name}")).hint("give each a `name` of its own in a file"));
            }
        }
        let pack = file.pack.map(|path| beside(place, &path));
        if file.contract.is_some() && pack.is_some() {
            return Err(input("`contract` and `pack` stand in each other's place").hint("leave one of them out of the file"));
        }
        let chosen = options.contract.or(file.contract, pack).chosen()?;
        let seeds = options.seeds.or(file.seeds).unwrap_or(1);
        if !(1..=100).contains(&seeds) {
            return Err(input(format!("`seeds` is {seeds}; it must be 1 to 100")));
        }
        Ok(Self {
            window,
            data: options.data.clone().or_else(|| file.data.map(|path| beside(place, &path))),
            mask,
            mask_key: options.mask_key.clone().or_else(|| file.mask_key.map(|path| beside(place, &path))),
            seeds,
            chosen,
            entrants,
        })
    }

    /// Under what one of the agents plays.
    pub(super) fn chosen(&self, entrant: &Entrant) -> Chosen {
        let is_rule = matches!(entrant.agent.plan, Plan::Baseline(_));
        if is_rule && !self.chosen.serves_baselines() { self.chosen.of_baselines() } else { self.chosen.clone() }
    }
}

impl Entrant {
    fn of_file(value: Value, place: &Path) -> Result<Self, Fault> {
        let entry: Entry = serde_json::from_value(value).map_err(|e| Fault::new(Class::Input, e))?;
        let near = |path: &PathBuf| beside(place, path);
        let card = entry.card.as_ref().map_or_else(|| Ok(Card::builtin()), |path| read_card(&near(path)))?;
        let style = entry
            .style
            .as_deref()
            .map(|text| Style::from_str(text, false).map_err(|_| input(format!("`style: {text}` is none of openai, json, text"))))
            .transpose()?;
        let options = AgentOptions {
            script: entry.script.as_ref().map(near),
            baseline: entry.baseline,
            base_url: entry.base_url,
            model: entry.model,
            key_env: entry.key_env,
            key_file: entry.key_file.as_ref().map(near),
            header: entry.header,
            no_stream: entry.no_stream,
            no_stream_usage: entry.no_stream_usage,
            keep_reasoning: entry.keep_reasoning,
            style,
            sampling: entry.sampling.map(|map| Value::Object(map).to_string()),
            timeout: entry.timeout,
            attempts: entry.attempts,
            price_in: entry.price_in,
            price_out: entry.price_out,
            price_cached: entry.price_cached,
            currency: entry.currency,
            pipe: entry.pipe,
            pipe_env: entry.pipe_env,
        };
        let agent = options.read(&card, &environment)?;
        Ok(Self { name: entry.name.unwrap_or_else(|| card.id.clone()), card, agent, is_baseline: false })
    }

    fn of_options(options: &CompareOptions) -> Result<Vec<Self>, Fault> {
        if options.card.is_empty() {
            return if options.agent.is_given() {
                let card = Card::builtin();
                let agent = options.agent.read(&card, &environment)?;
                Ok(vec![Self { name: card.id.clone(), card, agent, is_baseline: false }])
            } else {
                Ok(Vec::new())
            };
        }
        let of_card = |path: &PathBuf| {
            let card = read_card(path)?;
            let agent = options.agent.read(&card, &environment)?;
            Ok(Self { name: card.id.clone(), card, agent, is_baseline: false })
        };
        options.card.iter().map(of_card).collect()
    }

    fn baselines() -> Result<Vec<Self>, Fault> {
        let rules = ["buy-and-hold", "moving-average"].map(|rule| (rule.to_owned(), rule.to_owned()));
        let random = RANDOM.map(|seed| (format!("random-{seed}"), format!("random:{seed}")));
        let entrant = |(name, rule): (String, String)| {
            let card = Card::builtin();
            let agent = AgentOptions { baseline: Some(rule), ..AgentOptions::default() }.read(&card, &environment)?;
            Ok(Self { name, card, agent, is_baseline: true })
        };
        rules.into_iter().chain(random).map(entrant).collect()
    }
}
