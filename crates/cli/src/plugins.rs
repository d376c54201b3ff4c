//! Plug-in tools of a run: loaded from the host's manifest for a run, and made again from the recording for a replay, which needs neither
//! the programs nor the manifest. What a tool answered stands in the trajectory; here is only what the agent was offered.

use crate::agent::environment;
use crate::fault::{Class, Fault, read_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use traderharness_connect::plugin::Manifest as PlugInManifest;
use traderharness_contract::{Effect, Repeat};
use traderharness_harness::plugin::{Declaration, ExternalTool, PlugIn, PlugInAnswer, PlugInContext, Wording};
use traderharness_harness::registry::{Entry, HostFacts, Registry, SourceFailure};
use traderharness_harness::toolbox::Bound;
use traderharness_harness::written::Format;
use traderharness_harness::{Card, Contract, Toolbox};

/// What a recording keeps of the plug-in tools of its run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlugIns {
    /// Tools that were there, in order.
    tools: Vec<Declared>,
    /// Tools that the host did not allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hidden: Vec<String>,
    /// Sources that did not load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Failure>,
    /// Whether the host allowed effects outside of the session.
    host_effects: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Declared {
    name: String,
    source: String,
    description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    example: Value,
    returns: String,
    effect: String,
    repeat: String,
    deterministic: bool,
    time_limit_ms: u64,
    result_limit: usize,
    input_schema: Value,
    output_schema: Value,
    opt_in: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Failure {
    source: String,
    reason: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    prefix: String,
}

/// The tools of a run and what the host allows them.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    registry: Registry,
    host: HostFacts,
    /// Whether the host named plug-in tools at all.
    plugged: bool,
}

impl Default for Offer {
    fn default() -> Self {
        Self { registry: Registry::standard(), host: HostFacts::default(), plugged: false }
    }
}

impl Offer {
    /// Starts what a manifest file names. The second value is what the operator should see.
    pub(crate) fn load(path: &Path, host_effects: bool) -> Result<(Self, Vec<String>), Fault> {
        let named = |e: traderharness_connect::plugin::ManifestError| {
            Fault::new(Class::Input, e).context(format!("plug-in manifest `{}`", path.display()))
        };
        let text = read_text("plug-in manifest", path)?;
        let format = Format::of_name(&path.to_string_lossy()).unwrap_or(Format::Yaml);
        let manifest = PlugInManifest::read(&text, format).map_err(named)?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let loaded = manifest.load(folder, &environment).map_err(named)?;
        let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
        let mut offer = Self { host: HostFacts { host_effects, ..HostFacts::default() }, plugged: true, ..Self::default() };
        loaded.register(&mut offer.registry).map_err(|e| Fault::new(Class::Input, e))?;
        Ok((offer, warnings))
    }

    /// The tools that a recording names; nothing is started, and a call that the recording does not answer is told so.
    pub(crate) fn recorded(kept: Option<&PlugIns>) -> Result<Self, Fault> {
        let Some(kept) = kept else { return Ok(Self::default()) };
        let broken =
            |what: String| Fault::text(Class::Input, format!("the recording's plug-in tools cannot be made again: {what}"));
        let host = HostFacts { host_effects: kept.host_effects, ..HostFacts::default() };
        let mut offer = Self { host, plugged: true, ..Self::default() };
        let hidden = kept.hidden.iter().map(|name| Declared::hidden(name));
        for tool in kept.tools.iter().cloned().chain(hidden) {
            let tool =
                ExternalTool::new(tool.declaration().map_err(&broken)?, Arc::new(Gone)).map_err(|e| broken(e.to_string()))?;
            offer.registry.add(Entry::external(tool)).map_err(|e| broken(e.to_string()))?;
        }
        for f in &kept.failures {
            let Failure { source, reason, names, prefix } = f.clone();
            offer.registry.source_failed(SourceFailure { source, reason, names, prefix });
        }
        Ok(offer)
    }

    /// The tools under a contract and a card.
    pub(crate) fn build(&self, contract: &Contract, card: &Card, masked_codes: bool) -> Result<Toolbox, Fault> {
        self.registry.build_under(contract, card, masked_codes, &self.host).map_err(|e| Fault::new(Class::Input, e))
    }

    /// What a recording keeps of the tools.
    pub(crate) fn kept(&self, toolbox: &Toolbox) -> Option<PlugIns> {
        self.plugged.then(|| PlugIns {
            tools: toolbox
                .all()
                .iter()
                .filter_map(|tool| match &tool.bound {
                    Bound::External(tool) => Some(Declared::of(tool)),
                    _ => None,
                })
                .collect(),
            hidden: toolbox.hidden().iter().map(|hidden| hidden.name.to_owned()).collect(),
            failures: toolbox
                .failures()
                .iter()
                .cloned()
                .map(|SourceFailure { source, reason, names, prefix }| Failure { source, reason, names, prefix })
                .collect(),
            host_effects: self.host.host_effects,
        })
    }
}

const EFFECTS: [(&str, Effect); 3] = [("read", Effect::Read), ("compute", Effect::Compute), ("mutation", Effect::Mutation)];
const REPEATS: [(&str, Repeat); 3] =
    [("free", Repeat::Free), ("once_per_message", Repeat::OncePerMessage), ("once_per_run", Repeat::OncePerRun)];

impl Declared {
    fn of(tool: &ExternalTool) -> Self {
        let spec = tool.spec();
        let effect = EFFECTS.iter().find(|(_, effect)| *effect == spec.effect).map_or("mutation", |(name, _)| name);
        let repeat = REPEATS.iter().find(|(_, repeat)| *repeat == spec.repeat).map_or("once_per_run", |(name, _)| name);
        Self {
            name: spec.name.to_owned(),
            source: tool.source().to_owned(),
            description: spec.description.to_owned(),
            notes: spec.notes.iter().map(|note| (*note).to_owned()).collect(),
            example: serde_json::from_str(spec.example).unwrap_or_default(),
            returns: spec.result_summary.to_owned(),
            effect: effect.to_owned(),
            repeat: repeat.to_owned(),
            deterministic: tool.is_deterministic(),
            time_limit_ms: u64::try_from(tool.time_limit().as_millis()).unwrap_or(u64::MAX),
            result_limit: tool.result_limit(),
            input_schema: tool.input_schema().clone(),
            output_schema: tool.output_schema().clone(),
            opt_in: spec.opt_in,
        }
    }

    /// A tool of which only the name is known: the host does not allow it, so nobody sees more of it.
    fn hidden(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            source: "the recording".to_owned(),
            description: "A tool that the host did not allow.".to_owned(),
            notes: Vec::new(),
            example: serde_json::json!({}),
            returns: "Nothing".to_owned(),
            effect: "mutation".to_owned(),
            repeat: "free".to_owned(),
            deterministic: false,
            time_limit_ms: 1_000,
            result_limit: 1_000,
            input_schema: serde_json::json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            output_schema: serde_json::json!({ "type": "object" }),
            opt_in: false,
        }
    }

    fn declaration(self) -> Result<Declaration, String> {
        let effect = EFFECTS.iter().find(|(name, _)| *name == self.effect).map(|(_, effect)| *effect);
        let repeat = REPEATS.iter().find(|(name, _)| *name == self.repeat).map(|(_, repeat)| *repeat);
        let (Some(effect), Some(repeat)) = (effect, repeat) else {
            return Err(format!("`{}` has the effect `{}` and the repeat rule `{}`", self.name, self.effect, self.repeat));
        };
        Ok(Declaration {
            remote_name: self.name.clone(),
            name: self.name,
            source: self.source,
            description: self.description,
            notes: self.notes,
            example: Some(self.example),
            returns: self.returns,
            effect,
            repeat,
            deterministic: self.deterministic,
            time_limit: Duration::from_millis(self.time_limit_ms),
            result_limit: self.result_limit,
            input_schema: self.input_schema,
            output_schema: Some(self.output_schema),
            opt_in: self.opt_in,
            // The texts were checked when the run loaded them.
            wording: Wording::Remote,
        })
    }
}

/// Stands in for what served a tool.
#[derive(Debug)]
struct Gone;

impl PlugIn for Gone {
    fn call(&self, _: &PlugInContext<'_>, _: &Value) -> PlugInAnswer {
        PlugInAnswer::Down { fault: "a replay asks no plug-in, and the recording has no answer here".into(), sent: false }
    }
}
