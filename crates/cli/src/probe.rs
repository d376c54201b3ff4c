//! `traderharness probe`: what masking is for, measured. The same agent plays the window masked and unmasked, and the model is asked to name
//! the firms and the month behind the labels. The truth goes into `private/` alone; nothing of it is printed.

use crate::agent::{Agent, AgentOptions, Plan, environment};
use crate::args::CompareOptions;
use crate::compare::pair::{self, Arm, Pair};
use crate::contract::ContractOptions;
use crate::fault::{Class, Fault, Outcome};
use crate::figures;
use crate::interpreter::InterpreterOptions;
use crate::limits::{self, LimitOptions};
use crate::manifest::{Manifest, Window, hex, new_key, read_key, window, write_whole};
use crate::report::{print, tell};
use crate::run::{Market, RunFolder, pretty, read_card};
use crate::source;
use clap::Args as ClapArgs;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use traderharness_connect::progress::unwatched;
use traderharness_harness::model::{ModelClient as _, Turn};
use traderharness_harness::probe::{self, Exhibit, Kind, Part, Tally, Verdict};
use traderharness_harness::run::CONTRACT_VERSION;
use traderharness_harness::{CancelToken, Card, SessionConfig, Toolbox};
use traderharness_market::{Day, DecisionPoint, Mask};
use traderharness_replay::{Message, Meta, Recorder, Request};
use traderharness_serve::private::close_private;

/// Firms that are asked for at each day of questions.
const FIRMS_A_DAY: usize = 5;
/// Scope of the questions in their recording.
const SCOPE: &str = "probe";

#[derive(Debug, ClapArgs)]
pub(crate) struct ProbeOptions {
    /// First day, YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub(crate) start: String,
    /// Last day, YYYY-MM-DD.
    #[arg(long, value_name = "DATE")]
    pub(crate) end: String,
    /// Card of the agent, YAML or JSON. Without it the built-in card is used.
    #[arg(long, visible_alias = "agent", value_name = "FILE")]
    pub(crate) card: Option<PathBuf>,
    /// Dataset: a directory in the documented layout or a cache file. Without it the bundled real pack is used.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// New folder: the runs of both ways, the recording of the questions, probe.json, and private/truth.json.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: PathBuf,
    /// File with the mask key (64 hex digits, or private/run.json of a run); without it a new secret is drawn.
    #[arg(long, value_name = "FILE")]
    pub(crate) mask_key: Option<PathBuf>,
    /// Play each way under so many mask keys [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) seeds: Option<u32>,
    /// Firms that the model is asked for, 0 to 200, each once; a month is asked for on each day of questions.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=200))]
    pub(crate) questions: u32,
    /// Only ask; play nothing.
    #[arg(long)]
    pub(crate) only_questions: bool,
    #[command(flatten)]
    pub(crate) interpreter: InterpreterOptions,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    #[command(flatten)]
    pub(crate) agent: AgentOptions,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What both parts of a probe need.
struct Probe<'a> {
    options: &'a ProbeOptions,
    market: &'a Market,
    days: &'a [Day],
    key: &'a [u8],
    folder: &'a RunFolder,
    cancel: &'a CancelToken,
}

/// What the questions came to.
struct Asked {
    exhibits: Vec<Exhibit>,
    verdicts: Vec<Verdict>,
    answers: Vec<String>,
    /// Why not all were asked.
    stopped: Option<String>,
}

pub(crate) fn run(options: &ProbeOptions) -> Outcome {
    let days = window(&options.start, &options.end)?;
    let card = options.card.as_deref().map_or_else(|| Ok(Card::builtin()), read_card)?;
    let agent = options.agent.read(&card, &environment)?;
    if options.limits.max_cost.is_some() && agent.prices.is_none() {
        return Err(Fault::text(Class::Input, "--max-cost needs prices").hint("pass --price-in and --price-out"));
    }
    // A rule and a script know nothing that a label could hide.
    let asks = matches!(agent.plan, Plan::Server(_) | Plan::Pipe(_)) && options.questions > 0;
    if options.only_questions && !asks {
        return Err(Fault::text(Class::Input, "--only-questions needs a model that can be asked, and a number of --questions")
            .hint("pass --base-url URL with --model NAME, or --pipe 'PROGRAM ARGUMENTS'"));
    }
    let key = match &options.mask_key {
        Some(path) => read_key(path)?,
        None => new_key()?,
    };
    let market = Market::from(source::open(options.data.as_deref(), options.json)?);
    let days = market.days(days)?;
    let folder = RunFolder::create(&options.record)?;
    let cancel = limits::on_signal();
    let probe = Probe { options, market: &market, days: &days, key: &key, folder: &folder, cancel: &cancel };
    let pair = (!options.only_questions).then(|| probe.both_ways()).transpose()?;
    let asked = asks.then(|| probe.ask(&card, &agent)).transpose()?;
    let mut value = machine(&market, pair.as_ref(), asked.as_ref());
    if !asks {
        value["questions"] = json!({ "asked": 0, "reason": "no model that could be asked: a rule and a script have no memory" });
    }
    write_whole(&folder.path.join("probe.json"), pretty(&value).as_bytes(), false)?;
    if options.json {
        print(&pretty(&value));
    } else {
        print(&words(&value, pair.as_ref(), asked.as_ref()));
        print(&format!("\n{}\nRecorded in {}; the truth is in its private/ folder.", market.notes(), folder.path.display()));
    }
    let stopped = |arm: &Arm| arm.cancelled || arm.total_return_pct.is_none();
    let cut = pair.as_ref().is_some_and(|p| stopped(&p.masked) || stopped(&p.unmasked));
    let unanswered = asked.as_ref().is_some_and(|a| a.stopped.is_some());
    Ok(if cut || unanswered { ExitCode::from(Class::Stopped as u8) } else { ExitCode::SUCCESS })
}

impl Probe<'_> {
    fn both_ways(&self) -> Result<Pair, Fault> {
        let Self { options, market, days, key, folder, cancel } = *self;
        let compared = CompareOptions {
            spec: None,
            card: options.card.iter().cloned().collect(),
            start: Some(options.start.clone()),
            end: Some(options.end.clone()),
            data: options.data.clone(),
            record: options.record.clone(),
            mask: None,
            mask_key: options.mask_key.clone(),
            seeds: options.seeds,
            no_baselines: true,
            contract: ContractOptions::default(),
            interpreter: options.interpreter.clone(),
            limits: options.limits.clone(),
            agent: options.agent.clone(),
            json: options.json,
        };
        let (quiet, of) = (options.json, days.len());
        let told = move |arm: &str, day: u32, assets: f64| {
            if !quiet {
                tell(&format!("{arm}  day {day}/{of}  total assets {assets:.2}"));
            }
        };
        pair::play(&compared, market, days, key, &folder.path, cancel, &told)
    }

    /// Asks the model at days spread over the window, each question in a conversation of its own.
    fn ask(&self, card: &Card, agent: &Agent) -> Result<Asked, Fault> {
        let Self { options, market, days, key, folder, cancel } = *self;
        let store = Arc::clone(&market.store);
        let asked_window = Window { start: options.start.clone(), end: options.end.clone() };
        let manifest = Manifest { mask_dates: true, mask_entities: true, ..Manifest::of(card.clone(), agent) };
        let mask = Arc::new(Mask::new(&store, manifest.mask(key.to_vec(), None)));
        // Whatever the agent's card allows, the questions show what reading tools say.
        let reader = Card { allowed_tools: Vec::new(), ..Card::builtin() };
        let toolbox = Arc::new(Toolbox::new(&reader, true).map_err(|e| Fault::new(Class::Environment, e))?);
        let config = SessionConfig {
            store: Arc::clone(&store),
            mask: Arc::clone(&mask),
            card: Arc::new(reader),
            toolbox,
            check_output: false,
        };
        let exhibits = questions(options.questions as usize, days, &config)?;
        let truth =
            Map::from_iter(exhibits.iter().map(|e| (e.id.clone(), json!({ "label": e.label, "truth": e.truth.value() }))));
        let private = json!({ "mask_key": hex(key), "window": asked_window, "truth": truth });
        let secret = folder.path.join("private");
        close_private(&secret).map_err(|e| Fault::new(Class::Environment, e).context("the private/ folder"))?;
        write_whole(&secret.join("truth.json"), pretty(&private).as_bytes(), true)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| Fault::new(Class::Environment, e))?;
        let model = agent.plan.model();
        let meta = Meta { contract_version: CONTRACT_VERSION.to_owned(), model: model.clone(), ..Meta::default() };
        let mut recorder =
            Recorder::create(folder.path.join("questions.jsonl"), meta).map_err(|e| Fault::new(Class::Environment, e))?;
        let mut client = runtime.block_on(agent.plan.client(card, &store, &mask, unwatched(), cancel.clone()))?;
        let mut asked = Asked { verdicts: Vec::new(), answers: Vec::new(), stopped: None, exhibits };
        let budget = options.limits.max_requests.unwrap_or(u64::MAX);
        for (n, exhibit) in asked.exhibits.iter().enumerate() {
            if n as u64 >= budget {
                asked.stopped = Some(format!("--max-requests {budget}"));
                break;
            }
            if !options.json {
                tell(&format!("question {}/{}", n + 1, asked.exhibits.len()));
            }
            let mut request = Request::new(&model, CONTRACT_VERSION);
            request.sampling = agent.sampling.clone();
            request.messages = vec![Message::system(probe::SYSTEM), Message::user(exhibit.question())];
            let turn = Turn { day_index: 0, point: DecisionPoint::PreMarket, iteration: n as u32 };
            match runtime.block_on(client.complete_in(SCOPE, &request, turn)) {
                Ok(response) => {
                    recorder.record(SCOPE, &request, &response).map_err(|e| Fault::new(Class::Environment, e))?;
                    let answer = response.message.content().unwrap_or_default().to_owned();
                    asked.verdicts.push(exhibit.judge(&answer));
                    asked.answers.push(answer);
                }
                Err(error) => {
                    asked.stopped = Some(Fault::new(Class::Stopped, error).sentence());
                    break;
                }
            }
        }
        runtime.block_on(client.end());
        recorder.finish().map_err(|e| Fault::new(Class::Environment, e))?;
        Ok(asked)
    }
}

/// Questions at days spread over the window: about five firms and a month at each, or more where there are few days.
fn questions(firms: usize, days: &[Day], config: &SessionConfig) -> Result<Vec<Exhibit>, Fault> {
    let stops = firms.div_ceil(FIRMS_A_DAY).min(days.len()).max(1);
    let mut all = Vec::new();
    for stop in 0..stops {
        let part = Part { firms, day: stop, days: stops };
        let day = days[stop * days.len() / stops];
        all.extend(probe::exhibits(config.clone(), day, part).map_err(|e| Fault::new(Class::Input, e))?);
    }
    Ok(all)
}

impl Asked {
    fn tally(&self, kind: Kind) -> Tally {
        let of: Vec<&Verdict> =
            self.exhibits.iter().zip(&self.verdicts).filter(|(e, _)| e.kind() == kind).map(|(_, v)| v).collect();
        Tally::of(&of)
    }

    fn machine(&self) -> Value {
        let one = |(exhibit, verdict): (&Exhibit, &Verdict)| json!({ "id": exhibit.id, "kind": exhibit.kind().as_str(), "verdict": verdict.verdict, "confidence": verdict.confidence, "months_off": verdict.months_off });
        json!({
            "asked": self.verdicts.len(),
            "stopped": self.stopped,
            "firms": self.tally(Kind::Firm),
            "period": self.tally(Kind::Period),
            "answers": self.exhibits.iter().zip(&self.verdicts).map(one).collect::<Vec<_>>(),
        })
    }
}

fn machine(market: &Market, pair: Option<&Pair>, asked: Option<&Asked>) -> Value {
    let meta = market.store.meta();
    json!({
        "schema": 1,
        "dataset": { "name": meta.name, "digest": meta.digest, "synthetic": meta.synthetic },
        "pair": pair,
        "questions": asked.map(Asked::machine),
    })
}

fn words(value: &Value, pair: Option<&Pair>, asked: Option<&Asked>) -> String {
    let percent = |v: Option<f64>| v.map_or_else(|| "n/a".to_owned(), |v| format!("{v:.2} %"));
    let mut text = String::new();
    if let Some(pair) = pair {
        let mut lines = vec![["", "return", "stopped"].map(str::to_owned).to_vec()];
        for arm in [&pair.masked, &pair.unmasked] {
            let why = arm.faults.first().cloned().unwrap_or_else(|| "-".to_owned());
            lines.push(vec![arm.name.to_owned(), percent(arm.total_return_pct), why]);
        }
        text.push_str(&format!("\n{}\nGap, unmasked less masked: {}", figures::table(&lines), percent(pair.gap_pct)));
        text.push_str(&match pair.daily.interval_pct {
            Some((low, high)) => format!(" (daily returns differ by {low:.4} to {high:.4} points, 95 % block bootstrap)"),
            None => format!(" ({})", pair.daily.verdict),
        });
    }
    match asked {
        None => text.push_str(&format!("\nNo questions: {}.", value["questions"]["reason"].as_str().unwrap_or_default())),
        Some(asked) => {
            let share = |share: &probe::Share| match (share.percent, share.interval) {
                (Some(p), Some((low, high))) => {
                    format!("{} of {} ({p:.1} %, 95 % {low:.1} to {high:.1})", share.hits, share.asked)
                }
                _ => "none asked".to_owned(),
            };
            let (firms, period) = (asked.tally(Kind::Firm), asked.tally(Kind::Period));
            text.push_str(&format!("\nFirms named right: {}", share(&firms.right)));
            text.push_str(&format!(
                "\nMonth named right: {}; within three months: {}",
                share(&period.right),
                share(&period.close)
            ));
            text.push_str(&format!("\nAnswers that could not be read: {}", firms.unread + period.unread));
            if let Some(why) = &asked.stopped {
                text.push_str(&format!("\nNot all questions were asked: {why}"));
            }
        }
    }
    text
}
