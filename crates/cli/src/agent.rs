//! Who plays a run: a script, a rule-based baseline, a model behind a server, or a program over a pipe. What is wrong with the choice is
//! said before anything is loaded. Keys are read here, handed to the client, and stand in no option, record or message.

use crate::fault::{Class, Fault, read_text, read_value};
use async_trait::async_trait;
use clap::{Args as ClapArgs, ValueEnum};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;
use traderharness_connect::plugin::Launch;
use traderharness_connect::price::{PriceList, PriceTable, PriceText};
use traderharness_connect::{
    ChatCompletions, Endpoint, Limits, OpenAiClient, PipeClient, PipeLimits, RetryPolicy, Secret, SetupError, Watcher,
};
use traderharness_contract::parse::CallStyle;
use traderharness_harness::baseline::{BaselineClient, Rule};
use traderharness_harness::model::{Asked, ClientFault, ModelClient, ModelError, ScriptedClient, Turn};
use traderharness_harness::run::Prices;
use traderharness_harness::script::Script;
use traderharness_harness::{CancelToken, Card};
use traderharness_market::{Mask, Store};
use traderharness_replay::cassette::DEFAULT_SCOPE;
use traderharness_replay::{Fingerprint, Request, Response};

/// How a model writes its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// The server's own tool calls.
    Openai,
    /// A JSON object in a fence.
    Json,
    /// `Action: name(...)` lines.
    Text,
}

impl Style {
    const fn calls(self) -> CallStyle {
        match self {
            Self::Openai => CallStyle::Openai,
            Self::Json => CallStyle::Json,
            Self::Text => CallStyle::Text,
        }
    }
}

/// Who plays. Exactly one of --script, --baseline, --base-url and --pipe.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Who plays (one of --script, --baseline, --base-url, --pipe)")]
pub(crate) struct AgentOptions {
    /// Script of the model's turns, YAML or JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// A rule: buy-and-hold, moving-average, random or random:SEED.
    #[arg(long, value_name = "RULE")]
    pub(crate) baseline: Option<String>,
    /// Base URL of a server that speaks chat completions; most end with /v1.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Model name as the server spells it; without it the `model` of the card.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Environment variable that holds the key of the server. Without a key none is sent.
    #[arg(long, value_name = "NAME", conflicts_with = "key_file")]
    pub(crate) key_env: Option<String>,
    /// File that holds the key of the server.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Further header of each request, NAME=VALUE; VALUE may be env:VARIABLE, so that it stands in no command line.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,
    /// Ask for whole answers and not for pieces.
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// Do not ask a streaming server for token counts; a few refuse the field.
    #[arg(long)]
    pub(crate) no_stream_usage: bool,
    /// Send the model's thoughts back with its messages, which some servers demand.
    #[arg(long)]
    pub(crate) keep_reasoning: bool,
    /// How the model writes its calls [default: openai].
    #[arg(long, value_enum)]
    pub(crate) style: Option<Style>,
    /// Sampling parameters of each request, a JSON object: '{"temperature": 0}'.
    #[arg(long, value_name = "JSON")]
    pub(crate) sampling: Option<String>,
    /// Seconds that one answer may take [default: 600 for a server, 300 for a program].
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: Option<u64>,
    /// How often a request is sent at most when the server fails [default: 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) attempts: Option<u32>,
    /// Price of a million tokens of requests, decimal.
    #[arg(long, value_name = "X", requires = "price_out")]
    pub(crate) price_in: Option<String>,
    /// Price of a million tokens of answers, decimal.
    #[arg(long, value_name = "Y", requires = "price_in")]
    pub(crate) price_out: Option<String>,
    /// Price of a million tokens of requests that the server had in its cache [default: as --price-in].
    #[arg(long, value_name = "Z", requires = "price_in")]
    pub(crate) price_cached: Option<String>,
    /// Currency of the prices [default: USD].
    #[arg(long, value_name = "C", requires = "price_in")]
    pub(crate) currency: Option<String>,
    /// Your own agent: a program and its arguments in one text, split like a shell does but run without one. It speaks JSON lines
    /// (examples/agents).
    #[arg(long, value_name = "CMD")]
    pub(crate) pipe: Option<String>,
    /// Environment variable that the program gets beside PATH; may come several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) pipe_env: Vec<String>,
}

/// Who plays, read and checked.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    /// A script with the path it came from.
    Script(Box<Script>),
    /// A rule.
    Baseline(Rule),
    /// A model behind a server.
    Server(Box<Server>),
    /// A program.
    Pipe(Program),
}

/// A model server and how it is asked.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    model: String,
    endpoint: Endpoint,
    wire: ChatCompletions,
    retry: RetryPolicy,
}

/// An agent's program.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    model: String,
    launch: Launch,
    limits: PipeLimits,
}

/// Who plays, with what the requests are made of.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) plan: Plan,
    pub(crate) style: CallStyle,
    pub(crate) sampling: Map<String, Value>,
    pub(crate) prices: Option<PriceTable>,
}

impl Agent {
    /// Prices of the model's tokens.
    pub(crate) fn price(&self) -> Option<Prices> {
        self.prices.as_ref().and_then(|table| table.price(&self.plan.model()))
    }
}

fn input(message: impl Into<String>) -> Fault {
    Fault::text(Class::Input, message)
}

impl AgentOptions {
    /// Whether anything of who plays is said.
    pub(crate) fn is_given(&self) -> bool {
        self.script.is_some() || self.baseline.is_some() || self.base_url.is_some() || self.pipe.is_some()
    }

    /// Reads the choice. `environment` gives values of variables.
    pub(crate) fn read(&self, card: &Card, environment: &dyn Fn(&str) -> Option<String>) -> Result<Agent, Fault> {
        self.check_choice()?;
        let sampling = self.sampling.as_deref().map_or_else(|| Ok(Map::new()), sampling)?;
        let style = self.style.unwrap_or(Style::Openai).calls();
        let plan = if let Some(path) = &self.script {
            let script = Script::from_value(read_value("script", path)?)
                .and_then(|script| script.check_advisors(card).map(|()| script))
                .map_err(|e| Fault::new(Class::Input, e).context(format!("script `{}`", path.display())))?;
            Plan::Script(Box::new(script))
        } else if let Some(rule) = &self.baseline {
            Plan::Baseline(rule.parse::<Rule>().map_err(|e| Fault::new(Class::Input, e).context("--baseline"))?)
        } else if let Some(url) = &self.base_url {
            Plan::Server(Box::new(self.server(url, card, environment)?))
        } else {
            Plan::Pipe(self.program(environment)?)
        };
        let prices = self.prices(&plan.model())?;
        Ok(Agent { plan, style, sampling, prices })
    }

    fn check_choice(&self) -> Result<(), Fault> {
        let given: Vec<&str> = [
            ("--script", self.script.is_some()),
            ("--baseline", self.baseline.is_some()),
            ("--base-url", self.base_url.is_some()),
            ("--pipe", self.pipe.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
        .collect();
        let chosen = match given[..] {
            [one] => one,
            [] if self.model.is_some() => {
                return Err(input("--model names a model, and no server is given").hint("pass --base-url URL of the server"));
            }
            [] => {
                return Err(input("nobody is named who plays").hint(
                    "pass --script FILE, --baseline RULE, --base-url URL with --model NAME, or --pipe 'PROGRAM ARGUMENTS'",
                ));
            }
            _ => return Err(input(format!("{} exclude each other: one agent plays a run", given.join(" and ")))),
        };
        let of_a_server = [
            ("--key-env", self.key_env.is_some()),
            ("--key-file", self.key_file.is_some()),
            ("--header", !self.header.is_empty()),
            ("--no-stream", self.no_stream),
            ("--no-stream-usage", self.no_stream_usage),
            ("--keep-reasoning", self.keep_reasoning),
            ("--style", self.style.is_some()),
            ("--attempts", self.attempts.is_some()),
        ];
        let of_a_model = [
            ("--model", self.model.is_some()),
            ("--sampling", self.sampling.is_some()),
            ("--timeout", self.timeout.is_some()),
            ("--price-in", self.price_in.is_some()),
        ];
        let asks = matches!(chosen, "--base-url" | "--pipe");
        let idle = of_a_server
            .into_iter()
            .filter(|_| chosen != "--base-url")
            .chain(of_a_model.into_iter().filter(|_| !asks))
            .chain([("--pipe-env", !self.pipe_env.is_empty())].into_iter().filter(|_| chosen != "--pipe"))
            .find(|(_, given)| *given);
        match idle {
            Some((name, _)) => Err(input(format!("{name} means nothing with {chosen}")).hint(format!("leave {name} out"))),
            None => Ok(()),
        }
    }

    fn server(&self, url: &str, card: &Card, environment: &dyn Fn(&str) -> Option<String>) -> Result<Server, Fault> {
        let of_card = Some(&card.model).filter(|name| !matches!(name.as_str(), "" | "scripted"));
        let model = self.model.as_ref().or(of_card).filter(|name| !name.trim().is_empty()).cloned();
        let model = model.ok_or_else(|| input("no model is named").hint("pass --model NAME, or put `model` into the card"))?;
        let mut headers = Vec::new();
        for header in &self.header {
            let (name, value) = header.split_once('=').filter(|(name, _)| !name.trim().is_empty()).ok_or_else(|| {
                // The text may be a key in the wrong place, so it is not shown.
                input("a --header has no `=` after its name").hint("write NAME=VALUE, or NAME=env:VARIABLE")
            })?;
            let value = match value.strip_prefix("env:") {
                Some(variable) => variable_of(&format!("--header {name}"), variable, environment)?,
                None => value.to_owned(),
            };
            headers.push((name.trim().to_owned(), Secret::new(value)));
        }
        let mut limits = Limits::default();
        if let Some(seconds) = self.timeout {
            limits.whole = Duration::from_secs(seconds);
            limits.first_byte = limits.whole;
            limits.next_byte = limits.next_byte.min(limits.whole);
            limits.connect = limits.connect.min(limits.whole);
        }
        let endpoint = Endpoint { headers, limits, ..Endpoint::new(url, self.key(environment)?) };
        let wire =
            ChatCompletions { stream: !self.no_stream, stream_usage: !self.no_stream_usage, keep_reasoning: self.keep_reasoning };
        let mut retry = RetryPolicy::default();
        retry.attempts = self.attempts.unwrap_or(retry.attempts);
        // Faults of the set-up are said before a dataset is loaded.
        OpenAiClient::new(wire.clone(), endpoint.clone(), retry.clone()).map_err(setup)?;
        Ok(Server { model, endpoint, wire, retry })
    }

    fn key(&self, environment: &dyn Fn(&str) -> Option<String>) -> Result<Option<Secret>, Fault> {
        let (key, place) = match (&self.key_env, &self.key_file) {
            (Some(name), _) => (Secret::new(variable_of("--key-env", name, environment)?), format!("the variable {name}")),
            (None, Some(path)) => (Secret::new(read_text("key file", path)?), format!("the file `{}`", path.display())),
            (None, None) => return Ok(None),
        };
        if key.is_empty() {
            return Err(input(format!("the key in {place} is empty")));
        }
        Ok(Some(key))
    }

    fn program(&self, environment: &dyn Fn(&str) -> Option<String>) -> Result<Program, Fault> {
        let command = self.pipe.as_deref().unwrap_or_default();
        let argv = shlex::split(command)
            .ok_or_else(|| input("--pipe ends inside a quoted part").hint("close the quotes; no shell reads the text"))?;
        let launch = Launch::new(argv, &self.pipe_env, None, environment)
            .map_err(|e| Fault::new(Class::Input, e).context("the program of --pipe"))?;
        let mut limits = PipeLimits::default();
        if let Some(seconds) = self.timeout {
            limits.answer = Duration::from_secs(seconds);
            limits.greeting = limits.greeting.min(limits.answer);
        }
        Ok(Program { model: self.model.clone().unwrap_or_else(|| "pipe".to_owned()), launch, limits })
    }

    fn prices(&self, model: &str) -> Result<Option<PriceTable>, Fault> {
        let Some((input, output)) = self.price_in.clone().zip(self.price_out.clone()) else { return Ok(None) };
        let currency = self.currency.clone().unwrap_or_else(|| "USD".to_owned());
        let text = PriceText { input, output, cached_input: self.price_cached.clone() };
        let list = PriceList { currency, models: [(model.to_owned(), text)].into_iter().collect() };
        PriceTable::new(&list).map(Some).map_err(setup)
    }
}

fn variable_of(option: &str, name: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, Fault> {
    environment(name).ok_or_else(|| {
        input(format!("{option}: the environment variable {name} is not set"))
            .hint(format!("export {name}=..., or pass --key-file FILE"))
    })
}

fn sampling(text: &str) -> Result<Map<String, Value>, Fault> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(input("--sampling is no JSON object").hint("write for example '{\"temperature\": 0}'")),
        Err(e) => Err(Fault::new(Class::Input, e).context("--sampling is no JSON")),
    }
}

/// Value of an environment variable, when it is text.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A client that cannot be made, with its class.
pub(crate) fn setup(error: SetupError) -> Fault {
    match error {
        SetupError::Start(_) | SetupError::Greeting(_) | SetupError::Http(_) => Fault::new(Class::Environment, error)
            .hint("the program must print one `hello` line first; examples/agents/README.md has the protocol"),
        _ => Fault::new(Class::Input, error),
    }
}

impl Plan {
    /// Model name that requests carry.
    pub(crate) fn model(&self) -> String {
        match self {
            Self::Script(script) => script.model.clone(),
            Self::Baseline(rule) => rule.to_string(),
            Self::Server(server) => server.model.clone(),
            Self::Pipe(program) => program.model.clone(),
        }
    }

    /// Name for people and results: `script`, `baseline random:1`, `model`, `program`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Script(_) => "script".to_owned(),
            Self::Baseline(rule) => format!("baseline {rule}"),
            Self::Server(_) => "model".to_owned(),
            Self::Pipe(_) => "program".to_owned(),
        }
    }

    /// Who plays, for a run that goes on: a script with its digest, a rule, a model by its name, a program. Addresses and keys may change.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Script(script) => format!("script {}", Fingerprint::of(&serde_json::to_value(script).unwrap_or_default())),
            Self::Server(_) => format!("model {}", self.model()),
            Self::Baseline(_) | Self::Pipe(_) => self.describe(),
        }
    }

    /// Makes the client. Programs start here; nothing is sent to a server.
    pub(crate) async fn client(
        &self,
        card: &Card,
        store: &Store,
        mask: &Mask,
        watcher: Watcher,
        cancel: CancelToken,
    ) -> Result<Live, Fault> {
        let client = match self {
            Self::Script(script) => {
                let script = script.clone().resolve(store, mask).map_err(|e| Fault::new(Class::Input, e))?;
                Client::Script(Box::new(ScriptedClient::new(script)))
            }
            Self::Baseline(rule) => Client::Baseline(BaselineClient::new(*rule, card).map_err(|e| Fault::new(Class::Input, e))?),
            Self::Server(server) => {
                let server = server.as_ref().clone();
                let client = OpenAiClient::new(server.wire, server.endpoint, server.retry).map_err(setup)?;
                Client::Server(Box::new(client.watched(watcher)))
            }
            Self::Pipe(program) => {
                let client = PipeClient::start(program.launch.clone(), program.limits.clone()).await.map_err(setup)?;
                Client::Pipe(Box::new(client.watched(watcher)))
            }
        };
        Ok(Live { client, cancel })
    }
}

/// How often it is looked whether a run is to end while a model is waited for.
const LOOK: Duration = Duration::from_millis(50);

/// A client that is not waited for any longer when the run is to end.
#[derive(Debug)]
pub(crate) struct Live {
    client: Client,
    cancel: CancelToken,
}

/// A client of any kind.
#[derive(Debug)]
enum Client {
    /// Plays a script.
    Script(Box<ScriptedClient>),
    /// Plays a rule.
    Baseline(BaselineClient),
    /// Asks a server.
    Server(Box<OpenAiClient>),
    /// Asks a program.
    Pipe(Box<PipeClient>),
}

impl Live {
    /// Ends what was started.
    pub(crate) async fn end(self) {
        if let Client::Pipe(client) = self.client {
            client.end().await;
        }
    }
}

/// Waits until the run is to end.
async fn ended(cancel: &CancelToken) {
    while !cancel.is_cancelled() {
        tokio::time::sleep(LOOK).await;
    }
}

#[async_trait]
impl ModelClient for Live {
    async fn complete(&mut self, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        self.complete_in(DEFAULT_SCOPE, request, turn).await
    }

    async fn complete_in(&mut self, scope: &str, request: &Request, turn: Turn) -> Result<Response, ModelError> {
        let answer = async {
            match &mut self.client {
                Client::Script(client) => client.complete_in(scope, request, turn).await,
                Client::Baseline(client) => client.complete_in(scope, request, turn).await,
                Client::Server(client) => client.complete_in(scope, request, turn).await,
                Client::Pipe(client) => client.complete_in(scope, request, turn).await,
            }
        };
        tokio::select! {
            // An answer that is there counts, whatever else happened.
            biased;
            answer = answer => answer,
            () = ended(&self.cancel) => Err(ClientFault::Interrupted.into()),
        }
    }

    /// Advisors are waited for: one that is silent would be missing from the memo, and the record would say so.
    async fn complete_all(&mut self, asked: &[Asked<'_>]) -> Vec<Result<Response, ModelError>> {
        match &mut self.client {
            Client::Script(client) => client.complete_all(asked).await,
            Client::Baseline(client) => client.complete_all(asked).await,
            Client::Server(client) => client.complete_all(asked).await,
            Client::Pipe(client) => client.complete_all(asked).await,
        }
    }
}

/// A path of a file that names others: those are looked for beside it.
pub(crate) fn beside(file: &Path, path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { file.parent().unwrap_or(Path::new("")).join(path) }
}
