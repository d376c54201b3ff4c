//! [`Capability`]: the manifest of one thing that can be called (spec/seeds.md C1), and the [`Catalog`] of all of them with what each
//! needs (C2). Declared by the host; no text of a tool or a remote server can add or change one.

use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use traderharness_contract::algebra::{data_schema, envelope_schema};
use traderharness_contract::{Effect, SchemaFault};
use traderharness_harness::registry::Entry;
use traderharness_harness::toolbox::ToolboxError;
use traderharness_harness::{Card, Registry};
use traderharness_tools_market::research::{self, MarketBars, TechnicalCompute};

/// Schema revision of every capability that is served.
pub const REVISION: &str = "1.0";

/// Reading which instruments there are: nothing to call, but what market.bars and code in the sandbox stand on.
pub const INSTRUMENTS: &str = "reference.instruments";

/// The manifest of a capability.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capability {
    /// Dotted domain name, `market.get_kline`.
    pub name: String,
    /// Plain tool name, `get_kline`; absent for a capability that is a dependency only.
    pub tool: Option<String>,
    /// Schema revision that is served.
    pub revision: String,
    /// Scopes a caller needs for it, sorted. Those of what it depends on come on top.
    pub scopes: Vec<String>,
    /// Effect class.
    pub effect: Effect,
    /// First paragraph of its description.
    pub description: String,
    /// Schema of `input`, under the default card.
    #[serde(rename = "inputSchema")]
    pub input_schema: Value,
    /// Schema of the result's `data`.
    #[serde(rename = "outputSchema")]
    pub output_schema: Value,
    /// Schema of the whole result envelope.
    #[serde(rename = "envelopeSchema")]
    pub envelope_schema: Value,
    /// Capabilities it needs directly, sorted.
    pub depends_on: Vec<String>,
    /// Everything it needs, directly or through another: D*, sorted.
    pub closure: Vec<String>,
    /// Source tables its answers are made from, sorted.
    pub sources: Vec<String>,
    /// A valid `input`.
    pub example: Value,
    /// False when the configuration switched it off: it is never admitted.
    pub enabled: bool,
}

/// Why there is no catalog.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// Capabilities that need each other.
    #[error("capabilities depend on each other in a circle: {}", .cycle.join(" -> "))]
    Cycle {
        /// The circle; its first name is its last.
        cycle: Vec<String>,
    },
    /// A dependency that is no capability.
    #[error("capability `{name}` depends on `{dependency}`, which is no capability")]
    UnknownDependency {
        /// Capability.
        name: String,
        /// What it names.
        dependency: String,
    },
    /// Two capabilities of one name.
    #[error("two capabilities are named `{name}`")]
    Duplicate {
        /// Name.
        name: String,
    },
    /// A schema that is none.
    #[error(transparent)]
    Schema(#[from] SchemaFault),
    /// Tools that cannot stand beside each other.
    #[error(transparent)]
    Tools(#[from] ToolboxError),
}

/// Every capability, sorted by name, with its D*.
#[derive(Debug, Clone)]
pub struct Catalog {
    all: Vec<Capability>,
    /// Dotted and plain names.
    places: BTreeMap<String, usize>,
}

/// The tools of hosted sessions: those of the contract and the research capabilities.
pub(crate) fn registry() -> Result<Registry, ToolboxError> {
    const SOURCE: &str = "the research capabilities";
    Registry::standard().with(Entry::of::<MarketBars>(SOURCE))?.with(Entry::of::<TechnicalCompute>(SOURCE))
}

/// The dotted name of a tool.
fn dotted(group: &str, tool: &str) -> String {
    match tool {
        "market_bars" => "market.bars".to_owned(),
        "technical_compute" => "technical.compute".to_owned(),
        _ => format!("{group}.{tool}"),
    }
}

impl Catalog {
    /// The catalog of this program.
    ///
    /// # Errors
    /// [`CatalogError`], a defect of the program.
    pub fn standard() -> Result<Self, CatalogError> {
        let policy = Card::builtin().policy(true);
        let mut all = vec![instruments()];
        let registry = registry()?;
        let mut names = BTreeMap::new();
        let mut definitions = Vec::new();
        for entry in registry.entries() {
            let definition = entry.define(&policy)?;
            let group = serde_json::to_value(definition.spec.group).unwrap_or_default();
            let name = dotted(group.as_str().unwrap_or_default(), definition.spec.name);
            names.insert(definition.spec.name, name.clone());
            definitions.push((name, definition));
        }
        for (name, definition) in definitions {
            let tool = definition.spec.name;
            let mut needs: BTreeSet<String> = research::requires(tool).iter().filter_map(|t| names.get(t).cloned()).collect();
            if tool == "market_bars" {
                needs.insert(INSTRUMENTS.to_owned());
            }
            // Code reads through the handlers of these tools, so whoever may run it must be entitled to each of them.
            if tool == "execute_code" {
                needs.extend(traderharness_harness::host_calls::tools().iter().filter_map(|t| names.get(t).cloned()));
                needs.insert(INSTRUMENTS.to_owned());
            }
            let mut sources: Vec<String> = research::sources(tool).iter().map(|s| (*s).to_owned()).collect();
            sources.sort();
            let output_schema = data_schema(&definition.output_schema);
            all.push(Capability {
                scopes: vec![name.clone()],
                tool: Some(tool.to_owned()),
                revision: REVISION.to_owned(),
                effect: definition.spec.effect,
                description: definition.spec.description.to_owned(),
                input_schema: definition.input_schema.clone(),
                envelope_schema: envelope_schema(&output_schema),
                output_schema,
                depends_on: needs.into_iter().collect(),
                closure: Vec::new(),
                sources,
                example: definition.example().clone(),
                enabled: true,
                name,
            });
        }
        Self::of(all)
    }

    /// A catalog of these capabilities; computes D* of each.
    ///
    /// # Errors
    /// [`CatalogError::Cycle`], [`CatalogError::UnknownDependency`], [`CatalogError::Duplicate`].
    pub fn of(mut all: Vec<Capability>) -> Result<Self, CatalogError> {
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let mut places = BTreeMap::new();
        for (place, capability) in all.iter().enumerate() {
            for name in std::iter::once(&capability.name).chain(&capability.tool) {
                if places.insert(name.clone(), place).is_some() {
                    return Err(CatalogError::Duplicate { name: name.clone() });
                }
            }
        }
        let depends: BTreeMap<&str, &[String]> = all.iter().map(|c| (c.name.as_str(), c.depends_on.as_slice())).collect();
        for (name, needs) in &depends {
            if let Some(dependency) = needs.iter().find(|need| !depends.contains_key(need.as_str())) {
                return Err(CatalogError::UnknownDependency { name: (*name).to_owned(), dependency: dependency.clone() });
            }
        }
        let mut closures: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for name in depends.keys() {
            close(name, &depends, &mut Vec::new(), &mut closures)?;
        }
        for capability in &mut all {
            capability.closure = closures.remove(&capability.name).into_iter().flatten().collect();
        }
        Ok(Self { all, places })
    }

    /// Switches capabilities off.
    pub(crate) fn disable(&mut self, names: &[String]) {
        for capability in &mut self.all {
            capability.enabled &= !names.contains(&capability.name);
        }
    }

    /// Every capability, sorted by name.
    pub fn all(&self) -> &[Capability] {
        &self.all
    }

    /// By dotted or plain name.
    pub fn find(&self, name: &str) -> Option<&Capability> {
        self.places.get(name).map(|place| &self.all[*place])
    }

    /// D* of a capability: itself and everything it needs.
    pub fn star<'c>(&'c self, capability: &'c Capability) -> impl Iterator<Item = &'c Capability> {
        std::iter::once(capability).chain(capability.closure.iter().filter_map(|name| self.find(name)))
    }
}

/// Depth first; `path` is the way here, for the words of a cycle.
fn close(
    name: &str,
    depends: &BTreeMap<&str, &[String]>,
    path: &mut Vec<String>,
    closures: &mut BTreeMap<String, BTreeSet<String>>,
) -> Result<(), CatalogError> {
    if closures.contains_key(name) {
        return Ok(());
    }
    if let Some(first) = path.iter().position(|seen| seen == name) {
        let cycle = path[first..].iter().cloned().chain([name.to_owned()]).collect();
        return Err(CatalogError::Cycle { cycle });
    }
    path.push(name.to_owned());
    let mut all = BTreeSet::new();
    for need in depends.get(name).copied().unwrap_or_default() {
        close(need, depends, path, closures)?;
        all.extend(closures.get(need).into_iter().flatten().cloned());
        all.insert(need.clone());
    }
    path.pop();
    closures.insert(name.to_owned(), all);
    Ok(())
}

fn instruments() -> Capability {
    let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    Capability {
        name: INSTRUMENTS.to_owned(),
        tool: None,
        revision: REVISION.to_owned(),
        scopes: vec![INSTRUMENTS.to_owned()],
        effect: Effect::Read,
        description: "Which instruments there are. Nothing to call: other capabilities stand on it.".to_owned(),
        envelope_schema: envelope_schema(&nothing),
        input_schema: nothing.clone(),
        output_schema: nothing,
        depends_on: Vec::new(),
        closure: Vec::new(),
        sources: vec!["securities".to_owned()],
        example: json!({}),
        enabled: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capability(name: &str, depends_on: &[&str]) -> Capability {
        Capability {
            name: name.to_owned(),
            scopes: vec![name.to_owned()],
            depends_on: depends_on.iter().map(|d| (*d).to_owned()).collect(),
            ..instruments()
        }
    }

    // spec/seeds.md C2.3
    #[test]
    fn a_circle_and_an_unknown_dependency_stop_the_start() {
        let check = |all: Vec<Capability>, expected: &str| {
            assert_eq!(Catalog::of(all).unwrap_err().to_string(), expected);
        };
        check(
            vec![capability("a", &["b"]), capability("b", &["a"])],
            "capabilities depend on each other in a circle: a -> b -> a",
        );
        check(vec![capability("a", &["a"])], "capabilities depend on each other in a circle: a -> a");
        check(
            vec![capability("z", &["c"]), capability("c", &["d"]), capability("d", &["e"]), capability("e", &["c"])],
            "capabilities depend on each other in a circle: c -> d -> e -> c",
        );
        check(vec![capability("a", &["b"])], "capability `a` depends on `b`, which is no capability");
        check(vec![capability("a", &[]), capability("a", &[])], "two capabilities are named `a`");
    }

    // spec/seeds.md C2.1
    #[test]
    fn what_a_capability_needs_is_closed_over_its_needs() {
        let catalog = Catalog::of(vec![
            capability("d", &["b", "c"]),
            capability("b", &["a"]),
            capability("c", &["a"]),
            capability("a", &[]),
        ])
        .unwrap();
        assert_eq!(catalog.find("d").unwrap().closure, ["a", "b", "c"]);
        assert_eq!(catalog.find("a").unwrap().closure, [""; 0]);

        let catalog = Catalog::standard().unwrap();
        assert_eq!(catalog.find("technical_compute").unwrap().closure, ["market.bars", INSTRUMENTS]);
        let code = catalog.find("sandbox.execute_code").unwrap();
        assert!(code.closure.contains(&"market.get_kline".to_owned()), "{:?}", code.closure);
        assert_eq!(catalog.all().len(), 33);
    }
}
