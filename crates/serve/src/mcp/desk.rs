//! The requests of the protocol, each handed to the file that answers it. A desk serves one connection, or one request where the protocol
//! has no connections (2026-07-28 over HTTP).

#![expect(deprecated, reason = "clients of the revisions before 2026-07-28 have no other log")]

use super::news::Change;
use super::seat::{self, Origin, SESSION, Said, Seat, Unnamed};
use super::{Door, calls, drawn_key, prompts, resources};
use crate::Refusal;
use crate::answer::WORDS;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo, CustomRequest, CustomResult,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam, MetaObject,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, Reference, ResourceUpdatedNotificationParam,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OnceCell, broadcast};
use tokio::task::AbortHandle;
use traderharness_contract::FailureClass;

/// Time for which a client may be busy before a notification to it is given up.
pub(super) const TELLING: Duration = Duration::from_secs(2);

/// How a model finds its way. Clients cut long instructions, so what matters stands first.
fn instructions() -> String {
    format!(
        "You trade a simulated account on a market that is bound to a clock: nothing after the clock can be seen.\n\
        1. Call read_brief (or read the resource traderharness://brief): it holds your task and what is known now.\n\
        2. Work with the tools. {WORDS} A failed call says in `correction` how to repair it; repair it in the same phase.\n\
        3. End each decision point with complete_phase, and the last one of the day, close_2, with finish_day. Each moves the clock. \
           Then read the new brief.\n\
        Orders are final. What you need to know tomorrow, write down with remember."
    )
}

/// One connection.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) door: Door,
    /// Number of the connection, for news of its own making.
    pub(super) connection: u64,
    origin: Origin,
    seat: OnceCell<Arc<Seat>>,
    /// Resources that the client asked to hear of (before 2026-07-28).
    subscribed: Arc<Mutex<BTreeSet<String>>>,
    /// Lowest level of log messages that the client wants, as [`weight`] counts.
    level: AtomicU8,
    /// Tells the client of changes that others make; ends with the desk.
    listener: Mutex<Option<AbortHandle>>,
}

impl Desk {
    pub(super) fn new(door: Door, origin: Origin) -> Self {
        let connection = door.next_connection();
        Self {
            door,
            connection,
            origin,
            seat: OnceCell::new(),
            subscribed: Arc::default(),
            level: AtomicU8::new(weight(LoggingLevel::Warning)),
            listener: Mutex::new(None),
        }
    }

    /// The seat of a request. A request may name another session of the caller's than the connection's own.
    pub(super) async fn seat(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Seat>, Refusal> {
        let said = Said::of(&context.meta, &context.extensions);
        if let Some(seat) = self.seat.get() {
            // Behind the router a request of another caller never gets here.
            if said.caller.as_ref().is_some_and(|caller| caller.id != seat.caller.id) {
                return Err(Refusal::new(
                    FailureClass::Forbidden,
                    403,
                    "not_your_connection",
                    "This connection is not yours.",
                    false,
                ));
            }
            let named = context.meta.get(SESSION).and_then(|value| value.as_str());
            return match named.filter(|named| *named != seat.session) {
                Some(_) => seat::take(&self.door, &self.origin, said, Unnamed::Finds).await.map(Arc::new),
                None => Ok(Arc::clone(seat)),
            };
        }
        self.seat
            .get_or_try_init(|| async { seat::take(&self.door, &self.origin, said, Unnamed::Finds).await.map(Arc::new) })
            .await
            .cloned()
    }

    /// Tells the own client and everyone who listens that something changed.
    pub(super) async fn tell(&self, seat: &Seat, change: Change, peer: &Peer<RoleServer>) {
        // A client without a handshake hears by `subscriptions/listen`.
        if self.listener.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            if change.clock && self.level.load(Ordering::Relaxed) <= weight(LoggingLevel::Info) {
                let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!({ "event": "clock_moved" }));
                let _ = tokio::time::timeout(TELLING, peer.notify_logging_message(message.with_logger("session"))).await;
            }
            tell_peer(peer, &self.subscribed, change).await;
        }
        self.door.0.news.tell(&seat.session, change);
    }

    fn listen_for(&self, seat: &Seat, peer: Peer<RoleServer>) {
        let mut news = self.door.0.news.listen(&seat.session);
        let (subscribed, own) = (Arc::clone(&self.subscribed), self.connection);
        let task = tokio::spawn(async move {
            while let Some(change) = next(&mut news).await {
                if change.from != own {
                    tell_peer(&peer, &subscribed, change).await;
                }
            }
        });
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
    }

    async fn seated(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Seat>, ErrorData> {
        self.seat(context).await.map_err(|refusal| refused(&refusal))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(task) = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
        // A session that was made for this connection and never used would only fill the caller's places.
        if let Some(seat) = self.seat.get().filter(|seat| seat.is_left_over())
            && let (Ok(key), Ok(runtime)) = (drawn_key(), tokio::runtime::Handle::try_current())
        {
            let (house, seat) = (Arc::clone(self.door.house()), Arc::clone(seat));
            runtime.spawn_blocking(move || house.close_session(&seat.caller, &seat.session, &key));
        }
    }
}

async fn tell_peer(peer: &Peer<RoleServer>, subscribed: &Mutex<BTreeSet<String>>, change: Change) {
    if change.clock {
        let _ = tokio::time::timeout(TELLING, peer.notify_tool_list_changed()).await;
    }
    for uri in change.uris() {
        let wanted = subscribed.lock().unwrap_or_else(PoisonError::into_inner).contains(uri);
        if wanted {
            let told = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri));
            let _ = tokio::time::timeout(TELLING, told).await;
        }
    }
}

/// The next news; everything when some were missed. `None` when there will be none.
async fn next(news: &mut broadcast::Receiver<Change>) -> Option<Change> {
    match news.recv().await {
        Ok(change) => Some(change),
        Err(broadcast::error::RecvError::Lagged(_)) => Some(Change::EVERYTHING),
        Err(broadcast::error::RecvError::Closed) => None,
    }
}

/// A refusal as an error of the protocol; its data is the record.
pub(super) fn refused(refusal: &Refusal) -> ErrorData {
    let record = Some(refusal.record());
    match (refusal.status, refusal.class) {
        (404, _) => ErrorData::resource_not_found(refusal.message.clone(), record),
        (_, FailureClass::DependencyUnavailable) => ErrorData::internal_error(refusal.message.clone(), record),
        _ => ErrorData::invalid_params(refusal.message.clone(), record),
    }
}

/// Lists have one page, so no cursor is one of ours.
fn only_page(request: Option<&PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor.as_ref()) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("The list has one page: there is no such cursor.", None)),
    }
}

const fn weight(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_subscribe()
        .enable_prompts()
        .enable_completions()
        .enable_logging()
        .build()
}

impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("traderharness", env!("CARGO_PKG_VERSION")).with_title("TraderHarness");
        ServerConfig::new(capabilities()).with_server_info(name).with_instructions(instructions())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut answer = self.negotiate_initialize(&request)?;
        let said = Said::of(&context.meta, &context.extensions);
        let taken = self
            .seat
            .get_or_try_init(|| async { seat::take(&self.door, &self.origin, said, Unnamed::Makes).await.map(Arc::new) });
        let seat = taken.await.map_err(|refusal| refused(&refusal))?;
        self.listen_for(seat, context.peer.clone());
        let mut meta = MetaObject::new();
        meta.insert(SESSION.into(), seat.session.as_str().into());
        answer.meta = Some(meta);
        Ok(answer)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(request.as_ref())?;
        let seat = self.seated(&context).await?;
        calls::list(&self.door, &seat).await.map(ListToolsResult::with_all_items).map_err(|refusal| refused(&refusal))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        calls::call(self, request, &context).await.map(CallToolResponse::from)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        only_page(request.as_ref())?;
        Ok(ListResourcesResult::with_all_items(resources::all()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        only_page(request.as_ref())?;
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let seat = self.seated(&context).await?;
        resources::read(&self.door, &seat, &request.uri).await.map(ReadResourceResponse::from)
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if !resources::changes(&request.uri) {
            return Err(resources::unknown(&request.uri));
        }
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let wanted = requested.resource_subscriptions.iter().flatten().filter(|uri| resources::changes(uri));
        Some(SubscriptionFilter::builder().tools_list_changed().resource_subscriptions(wanted).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let seat = self.seated(context.request_context()).await?;
        let mut news = self.door.0.news.listen(&seat.session);
        let wanted =
            |uri: &str| context.accepted().resource_subscriptions.as_ref().is_some_and(|uris| uris.iter().any(|u| u == uri));
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = next(&mut news) => match change {
                    Some(change) => change,
                    None => return Ok(()),
                },
            };
            // A listener that went away is noticed by the cancellation.
            if change.clock && context.accepted().tools_list_changed == Some(true) {
                let _ = context.sink().notify_tool_list_changed().await;
            }
            for uri in change.uris().filter(|uri| wanted(uri)) {
                let _ = context.sink().notify_resource_updated(uri).await;
            }
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        only_page(request.as_ref())?;
        Ok(ListPromptsResult::with_all_items(prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let seat = self.seated(&context).await?;
        prompts::get(&self.door, &seat, &request.name, request.arguments.as_ref()).await.map(GetPromptResponse::from)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = match &request.r#ref {
            Reference::Resource(resource) => {
                let seat = self.seated(&context).await?;
                let found =
                    resources::complete(&self.door, &seat, &resource.uri, &request.argument.name, &request.argument.value).await;
                found.map_err(|refusal| refused(&refusal))?
            }
            _ => Vec::new(),
        };
        let completion = CompletionInfo::with_all_values(values).map_err(|fault| ErrorData::internal_error(fault, None))?;
        Ok(CompleteResult::new(completion))
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.level.store(weight(request.level), Ordering::Relaxed);
        Ok(())
    }

    async fn on_custom_request(&self, request: CustomRequest, _: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        const KNOWN: [&str; 12] = [
            "tools/call",
            "tools/list",
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "resources/subscribe",
            "resources/unsubscribe",
            "prompts/list",
            "prompts/get",
            "completion/complete",
            "logging/setLevel",
            "initialize",
        ];
        let method: String = request.method.chars().take(100).collect();
        if KNOWN.contains(&method.as_str()) {
            return Err(ErrorData::invalid_params(format!("The parameters of {method} do not fit the protocol."), None));
        }
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, format!("There is no method {method}."), None))
    }
}
