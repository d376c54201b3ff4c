//! [`House`]: what all doors share. Every function is synchronous and may block; doors call it from threads that may.
//!
//! | file | holds |
//! |---|---|
//! | `house` | opening, who calls, what is served, counts |
//! | `sessions` | sessions: made, looked at |
//! | `moves` | sessions: moved, closed |
//! | `made` | what a session is made of, for whoever runs the house |
//! | `admission` | the checks before a call, in their order |
//! | `invoke` | calls and jobs: run, kept, answered |
//! | `counts` | counts for operators |
//! | `tally` | lines of the audit log that stand for many |
//! | `upkeep` | removing what is kept too long |

mod counts;
mod invoke;
mod made;
mod moves;
mod sessions;
mod tally;
mod upkeep;

pub use crate::keep::Pruned;
pub use made::MadeOf;
pub use upkeep::{ForgetsSession, prune};

use crate::budget::{Account, Accounts};
use crate::caller::{Caller, Callers, TokenFault};
use crate::config::{ServerConfig, places};
use crate::faults::{Allowance, is_fault};
use crate::hosted::{Hosted, World, WorldFault};
use crate::jobs::Jobs;
use crate::keep::{Keep, KeepError, Retention};
use crate::keys::Running;
use crate::manifest::{Capability, Catalog, CatalogError};
use crate::refusal::Refusal;
use crate::registry;
use crate::reply::Metrics;
use counts::Counts;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tally::Tally;
use traderharness_contract::{FailureClass, Issue};
use traderharness_harness::{Card, Sandbox};
use traderharness_market::Store;
use upkeep::Upkeep;

/// Requests with a token that is nobody's: how many are answered at once, and how many more in a minute. Beyond them such a request is
/// told to come later; whoever has a token is not held up by those who have none.
const STRANGERS: (u32, u32) = (600, 300);

/// What looking at sessions and jobs counts as.
const LOOK: &str = "look";

/// Makes the place where the code of one session runs. Gets the session's id and its card; the error is for the operator.
pub type OpensSandbox = Arc<dyn Fn(&str, &Card) -> Result<Sandbox, String> + Send + Sync>;

/// What a house is made of.
#[derive(Clone)]
pub struct HouseConfig {
    /// Callers, profiles, limits.
    pub server: ServerConfig,
    /// Datasets by the name that profiles give.
    pub datasets: BTreeMap<String, Arc<Store>>,
    /// Folder of everything that must survive the process; `None` keeps it in memory.
    pub keep: Option<PathBuf>,
    /// Where code runs; without it `execute_code` answers `environment_unavailable`.
    pub sandbox: Option<OpensSandbox>,
    /// Removes what `sandbox` made for a session that is kept no longer.
    pub forget: Option<ForgetsSession>,
    /// Checks every payload of a tool against its output schema.
    pub check_output: bool,
    /// How long a request waits for a session that is busy with another, before it is told to come again. Jobs wait as long as it takes.
    pub session_wait: Duration,
}

/// What [`HouseConfig::session_wait`] is where nothing else is said.
pub const SESSION_WAIT: Duration = Duration::from_secs(30);

impl HouseConfig {
    /// A house over datasets, kept in memory.
    pub const fn new(server: ServerConfig, datasets: BTreeMap<String, Arc<Store>>) -> Self {
        Self { server, datasets, keep: None, sandbox: None, forget: None, check_output: false, session_wait: SESSION_WAIT }
    }
}

impl std::fmt::Debug for HouseConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HouseConfig").field("datasets", &self.datasets.keys()).finish_non_exhaustive()
    }
}

/// Why a house does not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HouseError {
    /// The configuration contradicts itself or names what is not there.
    #[error("the configuration is faulty: {}", places(.issues))]
    Config {
        /// Every fault, sorted by path.
        issues: Vec<Issue>,
    },
    /// A token that cannot be looked for.
    #[error(transparent)]
    Token(#[from] TokenFault),
    /// A profile that no session can be made of.
    #[error("profile `{profile}` cannot be used")]
    Profile {
        /// Profile.
        profile: String,
        /// Why.
        #[source]
        fault: WorldFault,
    },
    /// The capabilities.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// What was kept.
    #[error(transparent)]
    Keep(#[from] KeepError),
    /// The threads.
    #[error("the threads of the house cannot be started")]
    Workers(#[source] std::io::Error),
}

/// What all doors share.
#[derive(Debug)]
pub struct House {
    catalog: Catalog,
    callers: Callers,
    worlds: BTreeMap<String, Arc<World>>,
    keep: Arc<Keep>,
    tally: Arc<Tally>,
    _upkeep: Upkeep,
    accounts: Accounts,
    strangers: Allowance,
    /// Open sessions that were asked for since the house opened.
    hosted: Mutex<BTreeMap<String, Arc<Hosted>>>,
    /// Held while a session is made, so that two requests do not share one free place.
    making: Mutex<()>,
    running: Running,
    jobs: Arc<Jobs>,
    patience: Duration,
    session_wait: Duration,
    counts: Counts,
    registry: Value,
    sandbox: Sandboxes,
}

/// Where code runs, if anywhere.
struct Sandboxes(Option<OpensSandbox>);

impl std::fmt::Debug for Sandboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sandboxes").field(&self.0.is_some()).finish()
    }
}

impl House {
    /// Opens the house: compiles manifests, restores budgets and answers from what was kept, and marks jobs that a killed process left.
    /// Sessions are made again when they are asked for.
    ///
    /// # Errors
    /// [`HouseError`].
    pub fn open(config: HouseConfig) -> Result<Arc<Self>, HouseError> {
        let HouseConfig { server, datasets, keep, sandbox, forget, check_output, session_wait } = config;
        let issues = server.faults();
        if !issues.is_empty() {
            return Err(HouseError::Config { issues });
        }
        let mut catalog = Catalog::standard()?;
        catalog.disable(&server.disabled);
        let callers = Callers::of(&server)?;
        let mut worlds = BTreeMap::new();
        for profile in &server.profiles {
            let world = dataset(&datasets, profile.dataset.as_deref())
                .and_then(|store| World::of(profile, store, check_output))
                .map_err(|fault| HouseError::Profile { profile: profile.name.clone(), fault })?;
            worlds.insert(profile.name.clone(), Arc::new(world));
        }
        let keep = Arc::new(Keep::open(keep.as_deref())?);
        keep.interrupt_jobs()?;
        let accounts = Accounts::of(&server.callers, &keep.budgets()?);
        let tally = Arc::new(Tally::default());
        let retention =
            Retention { days: server.keep.days, most_bytes: u64::from(server.keep.max_megabytes).saturating_mul(1 << 20) };
        let upkeep = Upkeep::start(Arc::clone(&keep), Arc::clone(&tally), retention, forget).map_err(HouseError::Workers)?;
        let jobs = Jobs::new(server.jobs.waiting);
        let house = Arc::new(Self {
            registry: registry::listing(&catalog),
            catalog,
            callers,
            worlds,
            accounts,
            hosted: Mutex::default(),
            making: Mutex::default(),
            running: Running::default(),
            jobs: Arc::clone(&jobs),
            patience: Duration::from_millis(server.jobs.patience_ms.into()),
            session_wait,
            counts: Counts::default(),
            sandbox: Sandboxes(sandbox),
            strangers: Allowance::new(STRANGERS.0, STRANGERS.1),
            keep,
            tally,
            _upkeep: upkeep,
        });
        jobs.work_for(&Arc::downgrade(&house), server.jobs.workers).map_err(HouseError::Workers)?;
        Ok(house)
    }

    /// The caller of a bearer token (the token alone, without `Bearer`). Never blocks.
    ///
    /// # Errors
    /// 401 when it is missing or nobody's; 429 when the caller's requests came to nothing too often, or too many came with nobody's token.
    pub fn authenticate(&self, bearer: Option<&str>) -> Result<Arc<Caller>, Refusal> {
        let refused = |caller: &str, refusal: Refusal| {
            self.counts.refused(refusal.class);
            self.tally.count(caller, "authenticate", None, refusal.class.as_str());
            refusal
        };
        if let Some(caller) = bearer.and_then(|token| self.callers.of_token(token)) {
            self.account_of(&caller)?.faults.check().map_err(|refusal| refused(&caller.id, refusal))?;
            return Ok(caller);
        }
        self.strangers.check().map_err(|refusal| refused("", refusal))?;
        self.strangers.fault();
        let (code, message) = match bearer {
            None => ("token_missing", "A bearer token is needed."),
            Some(_) => ("token_unknown", "The bearer token is nobody's."),
        };
        Err(refused("", Refusal::new(FailureClass::Forbidden, 401, code, message, false)))
    }

    /// Counts a request of a caller that a door refused before it came here. Never blocks.
    pub(crate) fn refused_at_the_door(&self, caller: &str, refusal: &Refusal) {
        self.blame(refusal, caller);
        self.tally.count(caller, "request", None, refusal.class.as_str());
    }

    /// A caller by id, for doors whose other side is the owner of the process (stdio). Never reachable by what a client sends.
    pub fn local_caller(&self, id: &str) -> Option<Arc<Caller>> {
        self.callers.named(id).cloned()
    }

    /// How many callers there are.
    pub(crate) fn caller_count(&self) -> usize {
        self.callers.count()
    }

    /// What this caller is served: capabilities that are switched on and whose D* it is entitled to, sorted by name.
    pub fn capabilities(&self, caller: &Caller) -> Vec<&Capability> {
        self.catalog.all().iter().filter(|c| c.tool.is_some() && self.is_served(caller, c)).collect()
    }

    /// A capability by dotted name or tool name.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.catalog.find(name)
    }

    /// Frozen research configurations, sorted by kind, name and revision: `{"schema_version", "entries": [...]}`.
    pub const fn research_registry(&self) -> &Value {
        &self.registry
    }

    /// Counts for operators.
    pub fn metrics(&self) -> Metrics {
        let (jobs_running, jobs_waiting) = self.jobs.counts();
        let hosted: Vec<Arc<Hosted>> = self.hosted().values().cloned().collect();
        let mut metrics = self.counts.metrics();
        metrics.sessions = self.keep.open_sessions().unwrap_or_default();
        metrics.sessions_loaded = hosted.iter().filter(|h| h.is_loaded()).count() as u64;
        metrics.jobs_running = jobs_running;
        metrics.jobs_waiting = jobs_waiting;
        metrics.audit_rows = self.keep.audit_rows().unwrap_or_default();
        metrics.keep_bytes = self.keep.used_bytes().unwrap_or_default();
        metrics
    }

    /// Lines of the audit log after a number, at most `limit`: `{seq, at, caller, capability, session, key_digest, class, units, count}`,
    /// those that still were to be counted included. Holds no argument, no token and no key; for the operator, no door shows it.
    ///
    /// # Errors
    /// 503 when the log cannot be read.
    pub fn audit(&self, after: u64, limit: usize) -> Result<Vec<Value>, Refusal> {
        self.tally.flush(&self.keep)?;
        Ok(self.keep.audit_after(i64::try_from(after).unwrap_or(i64::MAX), limit)?)
    }

    pub(crate) const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(crate) fn keep(&self) -> &Keep {
        &self.keep
    }

    pub(crate) const fn running(&self) -> &Running {
        &self.running
    }

    fn hosted(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Hosted>>> {
        self.hosted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn world(&self, profile: &str) -> Result<&Arc<World>, Refusal> {
        self.worlds.get(profile).ok_or_else(|| {
            let message = "The session was made of a profile that this server does not have any more.";
            Refusal::new(FailureClass::DependencyUnavailable, 503, "profile_gone", message, false)
        })
    }

    pub(crate) fn account_of(&self, caller: &Caller) -> Result<&Arc<Account>, Refusal> {
        self.accounts.get(&caller.id).ok_or_else(|| {
            Refusal::new(FailureClass::Forbidden, 401, "token_unknown", "The caller is nobody of this server.", false)
        })
    }

    /// Whether the caller could be admitted to a capability, its budget and session aside.
    pub(crate) fn is_served(&self, caller: &Caller, capability: &Capability) -> bool {
        let trades =
            capability.effect != traderharness_contract::Effect::Financial || caller.has_scope(crate::caller::SCOPE_TRADE);
        trades
            && self.catalog.star(capability).all(|needed| {
                needed.enabled
                    && needed.scopes.iter().all(|scope| caller.has_scope(scope))
                    && needed.sources.iter().all(|source| caller.has_right(source))
            })
    }

    /// Counts a refusal for operators, and against its caller where it is a fault of the request.
    fn blame(&self, refusal: &Refusal, caller: &str) {
        self.counts.refused(refusal.class);
        if let Some(account) = self.accounts.get(caller).filter(|_| is_fault(refusal)) {
            account.faults.fault();
        }
    }

    /// Counts a request that was refused before it did anything.
    fn refused(&self, refusal: &Refusal, caller: &Caller, capability: &str, session: Option<&str>) {
        // Names out of a request that are nobody's are not kept: a log is no place for what anybody may write.
        let capability = self.catalog.find(capability).map_or(capability_word(capability), |c| c.name.as_str());
        self.blame(refusal, &caller.id);
        self.tally.count(&caller.id, capability, session, refusal.class.as_str());
    }

    /// Counts an answer that was given again.
    fn replayed(&self, caller: &Caller, capability: &str, session: Option<&str>) {
        self.counts.replayed();
        self.tally.count(&caller.id, capability, session, "REPLAYED");
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.jobs.close();
    }
}

/// Our own words for what is no capability; anything else is unknown.
fn capability_word(name: &str) -> &'static str {
    match name {
        sessions::CREATE => sessions::CREATE,
        moves::STEP => moves::STEP,
        moves::CLOSE => moves::CLOSE,
        LOOK => LOOK,
        _ => "unknown",
    }
}

impl From<KeepError> for Refusal {
    /// What it was is for the operator; a caller learns that nothing was done.
    fn from(fault: KeepError) -> Self {
        if let KeepError::Broken { what, .. } = fault {
            let message =
                "Something that the server kept cannot be read, so nothing was done; who runs the server has to see to it.";
            return Self::new(FailureClass::DependencyUnavailable, 503, "keep_unreadable", message, false).with("what", what);
        }
        let message =
            "The server cannot keep what it does at the moment, so nothing was done; send the request again under the same key.";
        Self::new(FailureClass::DependencyUnavailable, 503, "keep_unavailable", message, true).after(1)
    }
}

fn dataset(datasets: &BTreeMap<String, Arc<Store>>, name: Option<&str>) -> Result<Arc<Store>, WorldFault> {
    let known = || datasets.keys().cloned().collect();
    match name {
        Some(name) => datasets.get(name).cloned().ok_or_else(|| WorldFault::Dataset { name: name.to_owned(), known: known() }),
        None if datasets.len() == 1 => datasets.values().next().cloned().ok_or_else(|| WorldFault::NoDataset { known: known() }),
        None => Err(WorldFault::NoDataset { known: known() }),
    }
}
