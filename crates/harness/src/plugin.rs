//! Plug-in tools: what answers a call from outside this process, and how the host declares it.
//!
//! The host is believed, the outside is not. Name, schema, effect class, limits come from the host's declaration and never from
//! whatever serves the tool (spec/seeds.md C1.4). A plug-in gets the arguments exactly as the agent may see them: visible codes, never
//! unmasked ones. What it answers passes the run's text mask before anybody reads or keeps it, gives no evidence ids, and changes
//! nothing of account, clock or phase. No order can go through it: there is one order path.
//!
//! Where a plug-in runs is not known here. Clients for pipes and MCP servers live in `traderharness-connect`.

mod answer;
mod schema;

pub use answer::PlugInAnswer;
pub(crate) use answer::{CutResult, SENT};
pub use schema::{describe_fields, portable_schema};

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use traderharness_contract::audit::{Check, Finding, audit};
use traderharness_contract::json::{characters, prefix, text};
use traderharness_contract::terminal::strip_escapes;
use traderharness_contract::{Definition, Effect, ErrorCode, Group, Policy, Repeat, SchemaFault, ToolSpec};

/// Time a call gets when its declaration says nothing.
pub const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Longest time a declaration may give.
pub const LONGEST_TIME_LIMIT: Duration = Duration::from_secs(1_800);
/// Characters of a result when its declaration says nothing (spec/seeds.md A4.5).
pub const RESULT_CHARACTERS: usize = 65_536;
/// Characters of a description that are sent to a model.
const DESCRIPTION_CHARACTERS: usize = 4_096;
/// Characters an input schema may have.
const SCHEMA_CHARACTERS: usize = 65_536;

/// Serves calls from outside this process. One object may serve many tools; calls may come from several threads.
pub trait PlugIn: Send + Sync + std::fmt::Debug {
    /// Answers one call. Blocks until there is an answer or the time limit is over; by then whatever worked on the call is stopped, or the
    /// answer says that it is not. Never tries a call twice: nobody knows what the first one did.
    fn call(&self, context: &PlugInContext<'_>, arguments: &Value) -> PlugInAnswer;

    /// Stops the calls that are running now; they answer [`PlugInAnswer::Cancelled`]. Later calls are served again.
    fn cancel(&self) {}
}

/// What a plug-in learns about a call beside its arguments. No clock, no account, no code of the market.
#[derive(Clone, Copy)]
pub struct PlugInContext<'a> {
    /// Id of the call.
    pub call_id: &'a str,
    /// Name of the tool where it is served.
    pub tool: &'a str,
    /// Time for the answer.
    pub time_limit: Duration,
    /// True once the run is to end; a plug-in that waits looks at it.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl std::fmt::Debug for PlugInContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlugInContext")
            .field("call_id", &self.call_id)
            .field("tool", &self.tool)
            .field("time_limit", &self.time_limit)
            .finish_non_exhaustive()
    }
}

/// Who wrote the texts and the schema of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// The host, by hand: every finding of the contract audit is an error.
    Host,
    /// A remote server's listing: it is cut and made usable as far as that goes.
    Remote,
}

/// A plug-in tool as the host declares it.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// Name the agent sees.
    pub name: String,
    /// Where the tool comes from, for messages: `pipe greeks`, `mcp server news`.
    pub source: String,
    /// Name where it is served.
    pub remote_name: String,
    /// Description for the model.
    pub description: String,
    /// Further statements, one sentence each.
    pub notes: Vec<String>,
    /// A valid arguments object; one is made from the schema when there is none.
    pub example: Option<Value>,
    /// One sentence: what a success holds.
    pub returns: String,
    /// Effect class. Never [`Effect::Financial`]; a tool that nobody classed is [`Effect::Mutation`].
    pub effect: Effect,
    /// Repeat rule.
    pub repeat: Repeat,
    /// Equal arguments give an equal answer, whenever they are sent.
    pub deterministic: bool,
    /// Time for one call.
    pub time_limit: Duration,
    /// Characters of a result: a longer text is cut, a longer object is an invalid result.
    pub result_limit: usize,
    /// JSON Schema 2020-12 of the arguments.
    pub input_schema: Value,
    /// JSON Schema 2020-12 of a result that is an object; any object when there is none.
    pub output_schema: Option<Value>,
    /// A card must name the tool to get it.
    pub opt_in: bool,
    /// Who wrote texts and schema.
    pub wording: Wording,
}

/// A declaration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeclarationError {
    /// Orders have one path, and it is not outside.
    #[error("{source_name} declares `{name}` as financial; a plug-in tool cannot be: orders go through place_order only")]
    Financial {
        /// Source.
        source_name: String,
        /// Tool.
        name: String,
    },
    /// A number out of range.
    #[error("{source_name} gives `{name}` a {field} of {found}; it must be {accepted}")]
    Limit {
        /// Source.
        source_name: String,
        /// Tool.
        name: String,
        /// Field.
        field: &'static str,
        /// What was given.
        found: String,
        /// What is accepted.
        accepted: &'static str,
    },
    /// A schema that is none.
    #[error("{source_name}: {fault}")]
    Schema {
        /// Source.
        source_name: String,
        /// Fault.
        fault: SchemaFault,
    },
    /// What the contract audit found.
    #[error("{source_name} declares `{name}` faultily: {}", list(.findings))]
    Audit {
        /// Source.
        source_name: String,
        /// Tool.
        name: String,
        /// Findings, sorted.
        findings: Vec<Finding>,
    },
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(|f| format!("{}: {}", f.place, f.detail)).collect::<Vec<_>>().join("; ")
}

/// A plug-in tool, ready to be registered.
#[derive(Debug)]
pub struct ExternalTool {
    spec: &'static ToolSpec,
    source: String,
    remote_name: String,
    input_schema: Value,
    output_schema: Value,
    deterministic: bool,
    time_limit: Duration,
    result_limit: usize,
    plug_in: Arc<dyn PlugIn>,
}

impl ExternalTool {
    /// Checks a declaration and binds it to what serves it.
    ///
    /// # Errors
    /// [`DeclarationError`].
    pub fn new(declaration: Declaration, plug_in: Arc<dyn PlugIn>) -> Result<Self, DeclarationError> {
        let d = declaration;
        let source_name = d.source.clone();
        if d.effect == Effect::Financial {
            return Err(DeclarationError::Financial { source_name, name: d.name });
        }
        if d.time_limit.is_zero() || d.time_limit > LONGEST_TIME_LIMIT {
            let found = format!("{} ms", d.time_limit.as_millis());
            let accepted = "more than 0 and at most 1800000 ms";
            return Err(DeclarationError::Limit { source_name, name: d.name, field: "time limit", found, accepted });
        }
        if !(1_000..=1_000_000).contains(&d.result_limit) {
            let (found, accepted) = (d.result_limit.to_string(), "between 1000 and 1000000 characters");
            return Err(DeclarationError::Limit { source_name, name: d.name, field: "result limit", found, accepted });
        }
        let size = characters(&text(&d.input_schema));
        if size > SCHEMA_CHARACTERS {
            let (found, accepted) = (format!("{size} characters"), "at most 65536 characters");
            return Err(DeclarationError::Limit { source_name, name: d.name, field: "input schema", found, accepted });
        }
        let input_schema = portable_schema(&d.input_schema);
        let output_schema = d.output_schema.as_ref().map_or_else(|| json!({ "type": "object" }), portable_schema);
        let example = d.example.clone().unwrap_or_else(|| schema::example(&input_schema));
        let plain = |text: &str| prefix(strip_escapes(text).trim(), DESCRIPTION_CHARACTERS).to_owned();
        let tool = Self {
            spec: publish(Words {
                name: d.name,
                description: plain(&d.description),
                notes: d.notes.iter().map(|n| plain(n)).collect(),
                example: text(&example),
                result_summary: plain(&d.returns),
                effect: d.effect,
                repeat: d.repeat,
                opt_in: d.opt_in,
            }),
            source: d.source,
            remote_name: d.remote_name,
            input_schema,
            output_schema,
            deterministic: d.deterministic,
            time_limit: d.time_limit,
            result_limit: d.result_limit,
            plug_in,
        };
        let definition = tool
            .define(&Policy::default())
            .map_err(|fault| DeclarationError::Schema { source_name: source_name.clone(), fault })?;
        let findings = audit(&definition).into_iter().filter(|finding| match d.wording {
            Wording::Host => finding.check != Check::Wording,
            Wording::Remote => finding.check == Check::Name,
        });
        let findings: Vec<Finding> = findings.collect();
        if findings.is_empty() {
            Ok(tool)
        } else {
            Err(DeclarationError::Audit { source_name, name: tool.spec.name.to_owned(), findings })
        }
    }

    /// Published data.
    pub const fn spec(&self) -> &'static ToolSpec {
        self.spec
    }

    /// Where the tool comes from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether equal arguments always give an equal answer, as the host says.
    pub const fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    /// Time for one call.
    pub const fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// Characters of a result.
    pub const fn result_limit(&self) -> usize {
        self.result_limit
    }

    /// JSON Schema of the arguments, as it is published.
    pub const fn input_schema(&self) -> &Value {
        &self.input_schema
    }

    /// JSON Schema of a result that is an object.
    pub const fn output_schema(&self) -> &Value {
        &self.output_schema
    }

    /// Stops the calls that are running now.
    pub fn cancel(&self) {
        self.plug_in.cancel();
    }

    /// The contract. It has no field kinds: nothing that goes out is unmasked.
    pub(crate) fn define(&self, policy: &Policy) -> Result<Definition, SchemaFault> {
        Definition::from_schemas(self.spec, policy, self.input_schema.clone(), self.output_schema.clone())
    }

    /// Asks the plug-in. A panic of it is an answer too: it has touched nothing of ours.
    pub(crate) fn ask(&self, call_id: &str, arguments: &Value, cancelled: &(dyn Fn() -> bool + Sync)) -> PlugInAnswer {
        if cancelled() {
            return PlugInAnswer::Cancelled { sent: false };
        }
        let context = PlugInContext { call_id, tool: &self.remote_name, time_limit: self.time_limit, cancelled };
        // An answer that came is kept, also while the run is ended: what was done must not be done again when the run is resumed.
        catch_unwind(AssertUnwindSafe(|| self.plug_in.call(&context, arguments)))
            .unwrap_or_else(|_| PlugInAnswer::Down { fault: "its client broke off".to_owned(), sent: true })
    }

    /// The limit for results and the schema check, for whoever cleans an answer.
    pub(crate) fn cut(&self) -> CutResult<'_> {
        CutResult { limit: self.result_limit, has_schema: self.output_schema.get("properties").is_some(), tool: self.spec.name }
    }
}

/// The texts of a specification, owned.
struct Words {
    name: String,
    description: String,
    notes: Vec<String>,
    example: String,
    result_summary: String,
    effect: Effect,
    repeat: Repeat,
    opt_in: bool,
}

/// Codes of plug-in tools.
const CODES: &[ErrorCode] = &[
    ErrorCode::ExternalToolFailed,
    ErrorCode::ExternalToolInvalidResult,
    ErrorCode::ToolTimeout,
    ErrorCode::EnvironmentUnavailable,
];

/// Makes a specification that lives as long as the process, as those of our own tools do. Equal texts are kept once, so that a host
/// that loads its manifest for every run does not grow.
fn publish(words: Words) -> &'static ToolSpec {
    static KEPT: Mutex<BTreeMap<String, &'static ToolSpec>> = Mutex::new(BTreeMap::new());
    let Words { name, description, notes, example, result_summary, effect, repeat, opt_in } = words;
    let key = format!("{:?}", (&name, &description, &notes, &example, &result_summary, effect, repeat, opt_in));
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.entry(key).or_insert_with(|| {
        let keep = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let notes: Vec<&'static str> = notes.into_iter().map(keep).collect();
        Box::leak(Box::new(ToolSpec {
            name: keep(name),
            group: Group::External,
            effect,
            repeat,
            description: keep(description),
            notes: Box::leak(notes.into_boxed_slice()),
            example: keep(example),
            result_summary: keep(result_summary),
            errors: CODES,
            opt_in,
        }))
    })
}
