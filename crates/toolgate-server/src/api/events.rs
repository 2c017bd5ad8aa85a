//! What happens, as it happens: server-sent events.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use axum::response::sse::Event;
use futures::stream;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use utoipa::{IntoParams, ToSchema};

use super::extract::Asked;
use super::servers::Server;
use super::sse;
use super::status::status;
use crate::Gateway;
use crate::approvals::{ApprovalEvent, Listening};
use crate::feed;
use crate::guard::Caller;
use crate::problem::Problem;
use crate::sight::Sight;

const STATUS: Duration = Duration::from_secs(2);
/// Servers that are busy changing are told of no more often.
const SERVERS: Duration = Duration::from_millis(200);

/// What to hear of.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Kinds of events, with commas between: `call`, `started`, `server`, `tools`, `approval`, `status`.
    #[param(example = "call,server,tools")]
    kinds: Option<String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    call: bool,
    started: bool,
    server: bool,
    tools: bool,
    approval: bool,
    status: bool,
}

impl Kinds {
    fn read(text: Option<&str>) -> Result<Self, Problem> {
        let mut kinds = Self::default();
        for kind in text.unwrap_or("call,server,tools").split(',') {
            match kind.trim() {
                "call" => kinds.call = true,
                "started" => kinds.started = true,
                "server" => kinds.server = true,
                "tools" => kinds.tools = true,
                "approval" => kinds.approval = true,
                "status" => kinds.status = true,
                other => {
                    let other = toolgate_core::escape(&other.chars().take(50).collect::<String>());
                    return Err(Problem::new(
                        StatusCode::BAD_REQUEST,
                        format!(
                            "'{other}' is no kind of event; there are call, started, server, tools, approval and status"
                        ),
                    ));
                }
            }
        }
        Ok(kinds)
    }
}

/// `tools`: the set of tools has changed.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolsEvent {
    /// How many there are now.
    #[schema(example = 12)]
    tools: usize,
}

/// `approval`: a question does not wait any more.
#[derive(Serialize, ToSchema)]
pub(crate) struct GoneEvent {
    /// The id of the call.
    id: String,
    /// Always true.
    gone: bool,
}

/// `lagged`: the reader was too slow for this many events.
#[derive(Serialize, ToSchema)]
pub(crate) struct LaggedEvent {
    /// How many were left out.
    #[schema(example = 17)]
    missed: u64,
}

/// Tells what happens, until the reader goes.
///
/// `call` (a call has ended) and `started` have a `Call` as their data, `server` a `Server`, `tools` a `ToolsEvent`,
/// `approval` a `Question` or, when it is settled, a `GoneEvent`, `status` a `Status` every two seconds, and `lagged` a
/// `LaggedEvent`. `id` counts the events. At the beginning `server`, `tools`, `approval` and `status` tell how it is now. A
/// comment every 15 seconds shows that the connection lives.
#[utoipa::path(get, path = "/api/events", tag = "events", params(EventsQuery),
    responses((status = 200, description = "Server-sent events, each with one line of JSON as its data", body = String, content_type = "text/event-stream"),
              (status = 400, description = "There is no such kind of event", body = Problem)))]
pub(crate) async fn watch(
    State(gateway): State<Gateway>,
    caller: Caller,
    Asked(query): Asked<EventsQuery>,
) -> Result<Response, Problem> {
    let kinds = Kinds::read(query.kinds.as_deref())?;
    let watcher = Watcher::new(gateway, caller, kinds);
    Ok(sse::response(stream::unfold(
        watcher,
        async |mut watcher| {
            let event = watcher.next().await?;
            Some((Ok::<_, Infallible>(event), watcher))
        },
    )))
}

struct Watcher {
    gateway: Gateway,
    caller: Caller,
    sight: Sight,
    kinds: Kinds,
    calls: Option<broadcast::Receiver<feed::Event>>,
    approvals: Option<Listening>,
    servers: Option<watch::Receiver<u64>>,
    known_servers: HashMap<String, Server>,
    servers_not_before: Instant,
    tools: Option<watch::Receiver<u64>>,
    status: Option<Interval>,
    beat: Interval,
    ready: VecDeque<Event>,
    count: u64,
}

impl Watcher {
    fn new(gateway: Gateway, caller: Caller, kinds: Kinds) -> Self {
        let parts = gateway.parts();
        let sight = Sight::new(&gateway, &caller);
        // Whoever may not decide must not make calls wait either.
        let decides = kinds.approval && caller.rights.approve;
        let mut watcher = Self {
            calls: (kinds.call || kinds.started).then(|| parts.feed.watch()),
            approvals: decides.then(|| parts.approvals.listen()),
            servers: kinds.server.then(|| parts.servers.changed()),
            tools: kinds
                .tools
                .then(|| gateway.executor().manager().subscribe()),
            status: kinds.status.then(|| every(STATUS)),
            known_servers: HashMap::new(),
            servers_not_before: Instant::now(),
            beat: every(sse::BEAT),
            ready: VecDeque::new(),
            count: 0,
            sight,
            kinds,
            caller,
            gateway,
        };
        watcher.tell_how_it_is();
        watcher
    }

    fn tell_how_it_is(&mut self) {
        // At once, so that whoever watches knows that it does.
        self.ready.push_back(sse::beat());
        if self.status.is_some() {
            self.tell_status();
        }
        if self.tools.is_some() {
            self.tell_tools();
        }
        if self.servers.is_some() {
            self.tell_servers();
        }
        if self.approvals.is_some() {
            for question in self.gateway.parts().approvals.open() {
                self.tell("approval", &question);
            }
        }
    }

    /// The next event; none when the gateway ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let stopping = self.gateway.stopping().clone();
            tokio::select! {
                () = stopping.cancelled() => return None,
                event = heard(&mut self.calls) => self.tell_call(event)?,
                event = asked(&mut self.approvals) => self.tell_approval(event)?,
                () = changed(&mut self.servers, self.servers_not_before) => {
                    self.servers_not_before = Instant::now() + SERVERS;
                    self.tell_servers();
                }
                () = changed(&mut self.tools, Instant::now()) => self.tell_tools(),
                () = tick(&mut self.status) => self.tell_status(),
                _ = self.beat.tick() => self.ready.push_back(sse::beat()),
            }
        }
    }

    fn tell(&mut self, kind: &str, data: &impl Serialize) {
        self.count += 1;
        let event = sse::event(kind, data).id(self.count.to_string());
        self.ready.push_back(event);
    }

    /// None if there will be no more.
    fn tell_call(&mut self, event: Result<feed::Event, RecvError>) -> Option<()> {
        let (kind, wanted, shown) = match event {
            Ok(feed::Event::Started(shown)) => ("started", self.kinds.started, shown),
            Ok(feed::Event::Finished(shown)) => ("call", self.kinds.call, shown),
            Err(RecvError::Lagged(missed)) => {
                self.tell("lagged", &LaggedEvent { missed });
                return Some(());
            }
            Err(RecvError::Closed) => return None,
        };
        let is_shown = || match &shown.tool {
            Some(tool) => self.sight.has(tool.definition()),
            None => self.sight.has_tool_of_call(&shown.call.tool, None),
        };
        let is_its_own = || self.sight.is_of_whom_it_sees(shown.call.caller.as_deref());
        if wanted && is_its_own() && is_shown() {
            self.tell(kind, &shown.call);
        }
        Some(())
    }

    fn tell_approval(&mut self, event: Result<ApprovalEvent, RecvError>) -> Option<()> {
        match event {
            Ok(ApprovalEvent::Asked(question)) => self.tell("approval", &*question),
            Ok(ApprovalEvent::Gone(id)) => self.tell("approval", &GoneEvent { id, gone: true }),
            Err(RecvError::Lagged(missed)) => self.tell("lagged", &LaggedEvent { missed }),
            Err(RecvError::Closed) => return None,
        }
        Some(())
    }

    /// Those that have changed since they were last told of.
    fn tell_servers(&mut self) {
        for status in self.sight.servers() {
            let server = Server::from(status);
            let settled = server.settled();
            if self.known_servers.get(&server.name) != Some(&settled) {
                self.tell("server", &server);
                self.known_servers.insert(server.name, settled);
            }
        }
    }

    fn tell_tools(&mut self) {
        let tools = self.sight.tools();
        self.tell("tools", &ToolsEvent { tools });
    }

    fn tell_status(&mut self) {
        let status = status(&self.gateway, &self.caller);
        self.tell("status", &status);
    }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

async fn heard(
    calls: &mut Option<broadcast::Receiver<feed::Event>>,
) -> Result<feed::Event, RecvError> {
    match calls {
        Some(calls) => calls.recv().await,
        None => std::future::pending().await,
    }
}

async fn asked(approvals: &mut Option<Listening>) -> Result<ApprovalEvent, RecvError> {
    match approvals {
        Some(approvals) => approvals.events.recv().await,
        None => std::future::pending().await,
    }
}

/// Returns after a change, and not before that time. Waits first: a change that was seen must not be forgotten.
async fn changed(version: &mut Option<watch::Receiver<u64>>, not_before: Instant) {
    if let Some(version) = version {
        tokio::time::sleep_until(not_before).await;
        if version.changed().await.is_ok() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

async fn tick(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}
