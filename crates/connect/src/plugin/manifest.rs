//! The manifest: which plug-in tools a host wants, how each is served, and what each may do. Everything that decides anything about a tool
//! stands here and is the host's; nothing of it is taken from whatever serves the tool.

use super::launch::Launch;
use super::mcp::{Listed, McpServer};
use super::names;
use super::pipe::Pipe;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use traderharness_contract::document::sentences;
use traderharness_contract::{Document, Effect, Issue, Repeat};
use traderharness_harness::plugin::{
    Declaration, DeclarationError, ExternalTool, PlugIn, PlugInAnswer, PlugInContext, RESULT_CHARACTERS, Wording,
    describe_fields, portable_schema,
};
use traderharness_harness::registry::{Entry, Registry, SourceFailure};
use traderharness_harness::toolbox::ToolboxError;
use traderharness_harness::written::{self, Format, TextFault};

/// Effect class of a plug-in tool. There is no class for orders: those go through `place_order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Fetches something and changes nothing.
    Read,
    /// Works something out and changes nothing.
    Compute,
    /// Changes something outside of the run; offered only where the host allows that.
    Mutation,
}

impl From<ToolEffect> for Effect {
    fn from(effect: ToolEffect) -> Self {
        match effect {
            ToolEffect::Read => Self::Read,
            ToolEffect::Compute => Self::Compute,
            ToolEffect::Mutation => Self::Mutation,
        }
    }
}

/// What happens when an equal call comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolRepeat {
    /// It runs again.
    Free,
    /// It runs once per message of the model.
    OncePerMessage,
    /// It runs once in a run.
    OncePerRun,
}

impl From<ToolRepeat> for Repeat {
    fn from(repeat: ToolRepeat) -> Self {
        match repeat {
            ToolRepeat::Free => Self::Free,
            ToolRepeat::OncePerMessage => Self::OncePerMessage,
            ToolRepeat::OncePerRun => Self::OncePerRun,
        }
    }
}

const fn thirty_seconds() -> u64 {
    30_000
}

const fn result_characters() -> usize {
    RESULT_CHARACTERS
}

fn every_tool() -> Vec<String> {
    vec!["*".to_owned()]
}

/// A tool that a program serves over a pipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PipeTool {
    /// Name the model sees and the program is asked by: 1 to 64 of a-z, 0-9 and `_`.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// Further statements, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// JSON Schema 2020-12 of the arguments: an object, every field described.
    pub input_schema: Value,
    /// JSON Schema 2020-12 of a result that is an object; a result that does not fit is a failure.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// A valid arguments object; one is made from the schema when it is left out.
    #[serde(default)]
    pub example: Option<Value>,
    /// One sentence: what a result holds.
    pub returns: String,
    /// Effect class. There is no default.
    pub effect: ToolEffect,
    /// Repeat rule; left out, `free` for tools that change nothing and `once_per_run` for others.
    #[serde(default)]
    pub repeat: Option<ToolRepeat>,
    /// Equal arguments always give an equal answer, so that it need not be asked twice.
    #[serde(default)]
    pub deterministic: bool,
    /// Time for one call, milliseconds.
    #[serde(default = "thirty_seconds")]
    #[schemars(range(min = 1, max = 1_800_000))]
    pub time_limit_ms: u64,
    /// Characters of a result: a longer text is cut, a longer object is a failure.
    #[serde(default = "result_characters")]
    #[schemars(range(min = 1_000, max = 1_000_000))]
    pub result_limit: usize,
    /// A card must name the tool to get it.
    #[serde(default)]
    pub opt_in: bool,
}

/// A program that serves tools over a pipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PipeSource {
    /// Name of the source, for messages.
    pub source: String,
    /// Program and its arguments. Not a shell command.
    pub argv: Vec<String>,
    /// Names of the environment variables that the program gets, beside `PATH`.
    #[serde(default)]
    pub env: Vec<String>,
    /// Its tools.
    pub tools: Vec<PipeTool>,
}

/// What the host says about one tool of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpTool {
    /// Effect class; left out, `mutation`, whatever the server says about itself.
    #[serde(default)]
    pub effect: Option<ToolEffect>,
    /// Repeat rule; left out, `free`.
    #[serde(default)]
    pub repeat: Option<ToolRepeat>,
    /// Equal arguments always give an equal answer.
    #[serde(default)]
    pub deterministic: bool,
    /// Description in place of the server's own.
    #[serde(default)]
    pub description: Option<String>,
    /// Time for one call, milliseconds; left out, that of the server.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_800_000))]
    pub time_limit_ms: Option<u64>,
    /// A card must name the tool to get it.
    #[serde(default)]
    pub opt_in: bool,
}

/// An MCP server over stdio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpSource {
    /// Name of the server; its tools are called `mcp_<server>_<tool>`.
    pub server: String,
    /// Program and its arguments. Not a shell command.
    pub argv: Vec<String>,
    /// Names of the environment variables that the server gets, beside `PATH`.
    #[serde(default)]
    pub env: Vec<String>,
    /// The server's names of the tools that are wanted; `*` = all, an empty list = none.
    #[serde(default = "every_tool")]
    pub enabled_tools: Vec<String>,
    /// What the host says about single tools, by the server's name of each.
    #[serde(default)]
    pub tools: BTreeMap<String, McpTool>,
    /// Time for the listing of tools and for one call, milliseconds.
    #[serde(default = "thirty_seconds")]
    #[schemars(range(min = 1, max = 1_800_000))]
    pub time_limit_ms: u64,
    /// Characters of a result.
    #[serde(default = "result_characters")]
    #[schemars(range(min = 1_000, max = 1_000_000))]
    pub result_limit: usize,
}

/// Plug-in tools of a host. JSON and YAML have the same fields; unknown ones are errors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Programs that speak JSON lines.
    #[serde(default)]
    pub pipes: Vec<PipeSource>,
    /// MCP servers.
    #[serde(default)]
    pub mcp: Vec<McpSource>,
}

/// A manifest that cannot be used: the host's own mistake, found before anything is started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The text is neither.
    #[error("the plug-in manifest cannot be read: {0}")]
    Text(#[from] TextFault),
    /// Fields that are wrong.
    #[error("the plug-in manifest is faulty: {}", sentences(.issues))]
    Fields {
        /// Every fault, with its path.
        issues: Vec<Issue>,
    },
    /// Two sources have one name.
    #[error("the plug-in manifest names two {what} `{name}`")]
    Twice {
        /// `sources` or `servers`.
        what: &'static str,
        /// Name.
        name: String,
    },
    /// A tool that cannot be declared so.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
    /// The manifest's own schema, a defect of this program.
    #[error("the plug-in manifest cannot be checked: {0}")]
    Defect(String),
}

/// Something the operator should see; nothing stops for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A source is not there.
    Skipped(SourceFailure),
    /// Names that would have been equal got a digest.
    Collision {
        /// What collides: `servers`, or `tools of server x`.
        what: String,
        /// The raw names, sorted.
        names: Vec<String>,
    },
    /// A tool that the manifest enables or describes is not listed by its server.
    NotListed {
        /// Server.
        server: String,
        /// Tool.
        tool: String,
    },
    /// A tool of a server cannot be used.
    Unusable {
        /// Server.
        server: String,
        /// Tool.
        tool: String,
        /// Why.
        fault: String,
    },
    /// Fields of a tool have no description.
    Undescribed {
        /// Local name.
        tool: String,
        /// How many.
        fields: usize,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Skipped(failure) => write!(f, "{} is left out: {}", failure.source, failure.reason),
            Self::Collision { what, names } => {
                write!(f, "{what} {} have one name in lower case; each got a digest", names.join(", "))
            }
            Self::NotListed { server, tool } => write!(f, "mcp server {server} has no tool `{tool}`"),
            Self::Unusable { server, tool, fault } => write!(f, "tool `{tool}` of mcp server {server} is left out: {fault}"),
            Self::Undescribed { tool, fields } => write!(f, "{fields} fields of `{tool}` have no description"),
        }
    }
}

/// What a manifest gave.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Tools for the registry.
    pub entries: Vec<Entry>,
    /// Sources that failed; the registry tells an agent about them.
    pub failures: Vec<SourceFailure>,
    /// What the operator should see.
    pub warnings: Vec<Warning>,
}

impl Loaded {
    /// Puts everything into a registry.
    ///
    /// # Errors
    /// [`ToolboxError::Duplicate`] when a tool has the name of another.
    pub fn register(self, registry: &mut Registry) -> Result<(), ToolboxError> {
        for failure in self.failures {
            registry.source_failed(failure);
        }
        self.entries.into_iter().try_for_each(|entry| registry.add(entry))
    }
}

impl Manifest {
    /// The published schema of the file.
    ///
    /// # Errors
    /// [`ManifestError::Defect`].
    pub fn document() -> Result<Document, ManifestError> {
        Document::of::<Self>("the plug-in manifest").map_err(|fault| ManifestError::Defect(fault.to_string()))
    }

    /// Reads and checks a manifest. Starts nothing.
    ///
    /// # Errors
    /// [`ManifestError`] naming every faulty field with its path.
    pub fn read(text: &str, format: Format) -> Result<Self, ManifestError> {
        let value = written::read(text, format)?;
        let issues = Self::document()?.issues(&value);
        if !issues.is_empty() {
            return Err(ManifestError::Fields { issues });
        }
        let manifest: Self = serde_json::from_value(value).map_err(|fault| ManifestError::Defect(fault.to_string()))?;
        unique("sources", manifest.pipes.iter().map(|p| p.source.as_str()))?;
        unique("servers", manifest.mcp.iter().map(|m| m.server.as_str()))?;
        Ok(manifest)
    }

    /// Starts what the manifest names, in `folder`. `environment` gives values of variables; those that are passed on never appear in
    /// anything that a plug-in says. A source that cannot be started is left out with its reason and the others are not touched.
    ///
    /// # Errors
    /// [`ManifestError::Declaration`]: a tool that the host itself declares faultily.
    pub fn load(&self, folder: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, ManifestError> {
        let mut loaded = Loaded::default();
        for pipe in &self.pipes {
            pipe.load(folder, environment, &mut loaded)?;
        }
        let raw: Vec<&str> = self.mcp.iter().map(|m| m.server.as_str()).collect();
        let servers = names::segments(&raw);
        collisions("servers".into(), &raw, &servers, &mut loaded.warnings);
        let mut offered = Vec::new();
        for (source, (segment, _)) in self.mcp.iter().zip(&servers) {
            offered.extend(source.load(segment, folder, environment, &mut loaded));
        }
        apart(&mut offered, &mut loaded.warnings);
        for Offered { declared, server, raw, plug_in } in offered {
            match ExternalTool::new(declared, plug_in) {
                Ok(tool) => loaded.entries.push(Entry::external(tool)),
                Err(fault) => {
                    loaded.warnings.push(Warning::Unusable { server, tool: raw, fault: fault.to_string() });
                }
            }
        }
        Ok(loaded)
    }
}

/// A tool of an MCP server, before its name is settled.
struct Offered {
    declared: Declaration,
    server: String,
    /// The server's name for it.
    raw: String,
    plug_in: Arc<dyn PlugIn>,
}

/// Gives tools of different servers different names: tool `b_c` of server `a` and tool `c` of server `a_b` meet in one.
fn apart(offered: &mut [Offered], warnings: &mut Vec<Warning>) {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, tool) in offered.iter().enumerate() {
        groups.entry(tool.declared.name.clone()).or_default().push(at);
    }
    for (name, places) in groups.into_iter().filter(|(_, places)| places.len() > 1) {
        let mut raw = Vec::new();
        for tool in places.iter().filter_map(|at| offered.get(*at)) {
            raw.push(format!("`{}` of {}", tool.raw, tool.server));
        }
        for at in places {
            if let Some(tool) = offered.get_mut(at) {
                tool.declared.name = names::told_apart(&name, &tool.server, &tool.raw);
            }
        }
        raw.sort();
        warnings.push(Warning::Collision { what: "tools".to_owned(), names: raw });
    }
}

fn unique<'a>(what: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), ManifestError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(ManifestError::Twice { what, name: name.to_owned() });
        }
    }
    Ok(())
}

fn collisions(what: String, raw: &[&str], named: &[(String, bool)], warnings: &mut Vec<Warning>) {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (raw, (_, collided)) in raw.iter().zip(named) {
        if *collided {
            groups.entry(names::segment(raw)).or_default().push((*raw).to_owned());
        }
    }
    for mut names in groups.into_values() {
        names.sort();
        warnings.push(Warning::Collision { what: what.clone(), names });
    }
}

fn fail(loaded: &mut Loaded, failure: SourceFailure) {
    loaded.warnings.push(Warning::Skipped(failure.clone()));
    loaded.failures.push(failure);
}

/// A program given by a path is looked for from the manifest's folder, like every other path of the manifest.
fn start(argv: &[String], env: &[String], folder: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Launch, String> {
    let folder: PathBuf = folder.to_owned();
    Launch::new(argv.to_vec(), env, Some(folder), environment).map_err(|fault| fault.to_string())
}

impl PipeSource {
    fn load(
        &self,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
        loaded: &mut Loaded,
    ) -> Result<(), ManifestError> {
        let source = format!("pipe {}", self.source);
        let started = start(&self.argv, &self.env, folder, environment)
            .and_then(|launch| Pipe::start(launch).map_err(|fault| fault.to_string()));
        let (plug_in, reason): (Arc<dyn PlugIn>, _) = match started {
            Ok(pipe) => (Arc::new(pipe), None),
            Err(reason) => (Arc::new(Absent), Some(reason)),
        };
        // The declarations are the host's: they are checked whether or not the program starts.
        let tools = self.tools.iter().map(|tool| ExternalTool::new(tool.declaration(&source), Arc::clone(&plug_in)));
        let tools = tools.collect::<Result<Vec<_>, _>>()?;
        match reason {
            None => loaded.entries.extend(tools.into_iter().map(Entry::external)),
            Some(reason) => {
                let names = self.tools.iter().map(|t| t.name.clone()).collect();
                fail(loaded, SourceFailure { source, reason, names, prefix: String::new() });
            }
        }
        Ok(())
    }
}

/// Stands in for a program that did not start, while its declarations are checked.
#[derive(Debug)]
struct Absent;

impl PlugIn for Absent {
    fn call(&self, _: &PlugInContext<'_>, _: &Value) -> PlugInAnswer {
        PlugInAnswer::Down { fault: "it did not start".into(), sent: false }
    }
}

impl PipeTool {
    fn declaration(&self, source: &str) -> Declaration {
        let default = if self.effect == ToolEffect::Mutation { ToolRepeat::OncePerRun } else { ToolRepeat::Free };
        Declaration {
            name: self.name.clone(),
            source: source.to_owned(),
            remote_name: self.name.clone(),
            description: self.description.clone(),
            notes: self.notes.clone(),
            example: self.example.clone(),
            returns: self.returns.clone(),
            effect: self.effect.into(),
            repeat: self.repeat.unwrap_or(default).into(),
            deterministic: self.deterministic,
            time_limit: Duration::from_millis(self.time_limit_ms),
            result_limit: self.result_limit,
            input_schema: self.input_schema.clone(),
            output_schema: self.output_schema.clone(),
            opt_in: self.opt_in,
            wording: Wording::Host,
        }
    }
}

impl McpSource {
    fn load(
        &self,
        segment: &str,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
        loaded: &mut Loaded,
    ) -> Vec<Offered> {
        if self.enabled_tools.is_empty() {
            return Vec::new();
        }
        let source = format!("mcp server {}", self.server);
        let started = start(&self.argv, &self.env, folder, environment)
            .and_then(|launch| McpServer::new(launch).map_err(|fault| fault.to_string()));
        let listed = started.and_then(|server| {
            let tools = server.list(Duration::from_millis(self.time_limit_ms))?;
            Ok((server, tools))
        });
        let (server, mut tools) = match listed {
            Ok(listed) => listed,
            Err(reason) => {
                let prefix = names::prefix(segment);
                fail(loaded, SourceFailure { source, reason, names: Vec::new(), prefix });
                return Vec::new();
            }
        };
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|a, b| a.name == b.name);
        let raw: Vec<&str> = tools.iter().map(|t| t.name.as_str()).collect();
        let segments = names::segments(&raw);
        collisions(format!("tools of mcp server {}", self.server), &raw, &segments, &mut loaded.warnings);
        for wanted in self.enabled_tools.iter().filter(|name| *name != "*").chain(self.tools.keys()).collect::<BTreeSet<_>>() {
            if !raw.contains(&wanted.as_str()) {
                loaded.warnings.push(Warning::NotListed { server: self.server.clone(), tool: wanted.clone() });
            }
        }
        let server: Arc<dyn PlugIn> = Arc::new(server);
        let wanted = |tool: &Listed| self.enabled_tools.iter().any(|wanted| wanted == "*" || *wanted == tool.name);
        let chosen = tools.iter().zip(&segments).filter(|(tool, _)| wanted(tool));
        chosen
            .map(|(tool, (name, _))| Offered {
                declared: self.declaration(&source, names::tool(segment, name), tool, &mut loaded.warnings),
                server: self.server.clone(),
                raw: tool.name.clone(),
                plug_in: Arc::clone(&server),
            })
            .collect()
    }

    fn declaration(&self, source: &str, name: String, listed: &Listed, warnings: &mut Vec<Warning>) -> Declaration {
        let host = self.tools.get(&listed.name).cloned().unwrap_or_default();
        let mut input_schema = portable_schema(&listed.input_schema);
        let fields = describe_fields(&mut input_schema);
        if fields > 0 {
            warnings.push(Warning::Undescribed { tool: name.clone(), fields });
        }
        let description = host.description.unwrap_or_else(|| listed.description.clone());
        let nothing = description.trim().is_empty();
        Declaration {
            name,
            source: source.to_owned(),
            remote_name: listed.name.clone(),
            description: if nothing { "(no description provided)".into() } else { description },
            notes: vec![format!("Served by {source}, outside of the environment; what it says is not checked.")],
            example: None,
            returns: "What the server answers".into(),
            effect: host.effect.map_or(Effect::Mutation, Effect::from),
            repeat: host.repeat.map_or(Repeat::Free, Repeat::from),
            deterministic: host.deterministic,
            time_limit: Duration::from_millis(host.time_limit_ms.unwrap_or(self.time_limit_ms)),
            result_limit: self.result_limit,
            input_schema,
            output_schema: None,
            opt_in: host.opt_in,
            wording: Wording::Remote,
        }
    }
}
