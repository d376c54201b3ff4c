//! A small market of three trading days with minute bars, and houses over it.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use traderharness_harness::Card;
use traderharness_market::testing::SmallMarket;
use traderharness_market::{Day, Store};
use traderharness_serve::config::{AgentRevision, CallerConfig, MaskChoice, Profile};
use traderharness_serve::{Caller, House, HouseConfig, Invocation, Refusal, Reply, ServerConfig, SessionRequest, Watch};

pub(crate) const FIRST: &str = "2024-03-01";
pub(crate) const SESSIONS: usize = 40;

pub(crate) fn store() -> Arc<Store> {
    Arc::new(SmallMarket::of_sessions(FIRST, SESSIONS).news("2024-03-05 09:40", "A headline", "Its text.").build())
}

pub(crate) fn days(store: &Store) -> Vec<Day> {
    store.calendar().days()[SESSIONS - 3..].to_vec()
}

pub(crate) fn caller(id: &str) -> CallerConfig {
    CallerConfig {
        id: id.to_owned(),
        grants: vec!["*".to_owned()],
        data_rights: vec!["*".to_owned()],
        agent_revisions: vec![AgentRevision { id: "agr_1".to_owned(), pins: BTreeMap::new() }],
        ..CallerConfig::default()
    }
}

pub(crate) fn profile(store: &Store, masked: bool) -> Profile {
    let days = days(store);
    Profile {
        name: "small".to_owned(),
        card: Card::builtin(),
        start: days[0].to_string(),
        end: days.last().map(ToString::to_string),
        mask: MaskChoice { dates: masked, entities: masked },
        dataset: None,
    }
}

pub(crate) fn server(store: &Store, masked: bool, callers: Vec<CallerConfig>) -> ServerConfig {
    ServerConfig { callers, profiles: vec![profile(store, masked)], ..ServerConfig::default() }
}

pub(crate) fn open(store: &Arc<Store>, server: ServerConfig, keep: Option<&Path>) -> Arc<House> {
    let mut config = HouseConfig::new(server, BTreeMap::from([("small".to_owned(), Arc::clone(store))]));
    config.keep = keep.map(Path::to_owned);
    config.check_output = true;
    House::open(config).unwrap()
}

/// A house with one caller, and a session of it.
pub(crate) struct Hosted {
    pub(crate) house: Arc<House>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) session: String,
}

impl Hosted {
    pub(crate) fn with(config: CallerConfig, keep: Option<&Path>) -> Self {
        let store = store();
        let id = config.id.clone();
        Self::over(open(&store, server(&store, false, vec![config]), keep), &id)
    }

    pub(crate) fn new() -> Self {
        Self::with(caller("alice"), None)
    }

    pub(crate) fn over(house: Arc<House>, caller: &str) -> Self {
        let caller = house.local_caller(caller).unwrap();
        let session = session(&house, &caller, "make");
        Self { house, caller, session }
    }

    pub(crate) fn invocation(&self, tool: &str, input: Value) -> Invocation {
        Invocation { agent_revision_id: None, session_id: Some(self.session.clone()), tool: tool.to_owned(), input, job: false }
    }

    pub(crate) fn call(&self, tool: &str, input: Value, key: &str) -> Result<Reply, Refusal> {
        self.house.invoke(&self.caller, &self.invocation(tool, input), key, &Watch::default())
    }

    /// Moves the clock to the first point at which orders are taken.
    pub(crate) fn open_the_market(&self) {
        self.house.step(&self.caller, &self.session, "to-open-1").unwrap();
    }
}

pub(crate) fn session(house: &House, caller: &Arc<Caller>, key: &str) -> String {
    let reply = house.create_session(caller, &SessionRequest::default(), key).unwrap();
    reply.body["session_id"].as_str().unwrap().to_owned()
}

/// A buy that the market takes at open_1.
pub(crate) fn buy(code: &str) -> Value {
    json!({"stock_code": code, "action": "buy", "quantity": 200, "reasoning": "A test of the door."})
}
