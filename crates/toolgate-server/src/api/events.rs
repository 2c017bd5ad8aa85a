//! Streams calls and changes of the gateway's state as server-sent events.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use axum::response::sse::Event;
use futures::stream;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use toolgate_mcp::ServerStatus;
use utoipa::{IntoParams, ToSchema};

use super::extract::QueryParams;
use super::sse;
use super::status::status;
use crate::Gateway;
use crate::approvals::{ApprovalEvent, ApprovalSubscription};
use crate::caller_view::CallerView;
use crate::feed::FeedEvent;
use crate::guard::Caller;
use crate::problem::Problem;
use crate::questions::{QuestionEvent, QuestionSubscription, ServerQuestion};

const STATUS_INTERVAL: Duration = Duration::from_secs(2);
// Servers that change rapidly are reported no more often than this.
const MIN_SERVER_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Kinds of events, separated by commas: `call`, `started`,
    /// `server`, `tools`, `approval`, `question`, `status`.
    #[param(example = "call,server,tools")]
    kinds: Option<String>,
}

const KINDS: [&str; 7] = [
    "call", "started", "server", "tools", "approval", "question", "status",
];

fn parse_kinds(text: Option<&str>) -> Result<Vec<&'static str>, Problem> {
    let named = text
        .unwrap_or("call,server,tools")
        .split(',')
        .map(str::trim);
    let kinds = named.map(|kind| {
        KINDS
            .into_iter()
            .find(|known| *known == kind)
            .ok_or_else(|| {
                let kind = toolgate_core::text::escape(&kind.chars().take(50).collect::<String>());
                Problem::bad_request(format!(
                    "'{kind}' is not a kind of event; the kinds are {}",
                    KINDS.join(", ")
                ))
            })
    });
    kinds.collect()
}

/// `tools`: the tools have changed.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolsEvent {
    /// How many tools there are now.
    #[schema(example = 12)]
    tools: usize,
}

/// `approval`, `question`: a call no longer waits for approval, or a question for an answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct GoneEvent {
    /// The id of the call, or of the question.
    id: String,
    /// Always true; marks the event as the end of a question.
    gone: bool,
}

/// `lagged`: the reader was too slow and missed events.
#[derive(Serialize, ToSchema)]
pub(crate) struct LaggedEvent {
    /// How many events were missed.
    #[schema(example = 17)]
    missed: u64,
}

/// Streams events until the client disconnects.
///
/// `call` (a call has ended) and `started` carry a `Call`, `server` a `Server`, `tools` a
/// `ToolsEvent`, `approval` a `Question` and `question` a `ServerQuestion`, or a `GoneEvent` once
/// they are settled, `status` a `Status` every two seconds, and `lagged` a `LaggedEvent`. `id`
/// counts the events. At the start, `server`, `tools`, `approval`, `question` and `status` report
/// the current state. A comment every 15 seconds shows that the connection is alive.
#[utoipa::path(get, path = "/api/events", tag = "events", params(EventsQuery),
    responses((status = 200, description = "Server-sent events, each with one line of JSON as its data", body = String, content_type = "text/event-stream"),
              (status = 400, description = "Unknown kind of event", body = Problem)))]
pub(crate) async fn subscribe(
    State(gateway): State<Gateway>,
    caller: Caller,
    QueryParams(query): QueryParams<EventsQuery>,
) -> Result<Response, Problem> {
    let kinds = parse_kinds(query.kinds.as_deref())?;
    let events = ApiEventStream::new(gateway, caller, kinds);
    Ok(sse::response(stream::unfold(events, async |mut events| {
        let event = events.next().await?;
        Some((Ok::<_, Infallible>(event), events))
    })))
}

struct ApiEventStream {
    gateway: Gateway,
    caller: Caller,
    view: CallerView,
    kinds: Vec<&'static str>,
    calls: Option<broadcast::Receiver<Arc<FeedEvent>>>,
    approvals: Option<ApprovalSubscription>,
    questions: Option<QuestionSubscription>,
    servers: Option<watch::Receiver<u64>>,
    known_servers: HashMap<String, ServerStatus>,
    servers_not_before: Instant,
    tools: Option<watch::Receiver<u64>>,
    status: Option<Interval>,
    keep_alive: Interval,
    pending: VecDeque<Event>,
    count: u64,
}

impl ApiEventStream {
    fn new(gateway: Gateway, caller: Caller, kinds: Vec<&'static str>) -> Self {
        let parts = &gateway.parts;
        let view = CallerView::new(&gateway, &caller);
        // A listener makes calls wait for approval, so callers who can't approve don't listen.
        let wants = |kind| kinds.contains(&kind);
        let can_approve = wants("approval") && caller.rights.approve;
        let mut stream = Self {
            calls: (wants("call") || wants("started")).then(|| parts.feed.subscribe()),
            approvals: can_approve.then(|| parts.approvals.subscribe()),
            questions: wants("question").then(|| parts.questions.subscribe(&caller)),
            servers: wants("server").then(|| parts.servers.subscribe()),
            tools: wants("tools").then(|| gateway.executor().manager().subscribe()),
            status: wants("status").then(|| every(STATUS_INTERVAL)),
            known_servers: HashMap::new(),
            servers_not_before: Instant::now(),
            keep_alive: every(sse::KEEP_ALIVE),
            pending: VecDeque::new(),
            count: 0,
            view,
            kinds,
            caller,
            gateway,
        };
        stream.send_initial_state();
        stream
    }

    fn send_initial_state(&mut self) {
        // Sent at once, so that the client knows that the stream is open.
        self.pending.push_back(sse::keep_alive());
        if self.status.is_some() {
            self.send_status();
        }
        if self.tools.is_some() {
            self.send_tools();
        }
        if self.servers.is_some() {
            self.send_servers();
        }
        if self.approvals.is_some() {
            for question in self.gateway.parts.approvals.open() {
                self.send("approval", &question);
            }
        }
        if let Some(questions) = &self.questions {
            for question in self.gateway.parts.questions.open(&questions.viewer) {
                self.send("question", &question);
            }
        }
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let stopping = self.gateway.stopping.clone();
            let approvals = self
                .approvals
                .as_mut()
                .map(|approvals| &mut approvals.events);
            let questions = self
                .questions
                .as_mut()
                .map(|questions| &mut questions.events);
            tokio::select! {
                () = stopping.cancelled() => return None,
                event = receive(self.calls.as_mut()) => self.send_call(event)?,
                event = receive(approvals) => self.send_approval(event)?,
                event = receive(questions) => self.send_question(event)?,
                () = wait_for_change(&mut self.servers, self.servers_not_before) => {
                    self.servers_not_before = Instant::now() + MIN_SERVER_INTERVAL;
                    self.send_servers();
                }
                () = wait_for_change(&mut self.tools, Instant::now()) => self.send_tools(),
                () = tick(&mut self.status) => self.send_status(),
                _ = self.keep_alive.tick() => self.pending.push_back(sse::keep_alive()),
            }
        }
    }

    fn send(&mut self, kind: &str, data: &impl Serialize) {
        self.count += 1;
        let event = sse::event(kind, data).id(self.count.to_string());
        self.pending.push_back(event);
    }

    fn send_call(&mut self, event: Result<Arc<FeedEvent>, RecvError>) -> Option<()> {
        let shown = match event {
            Ok(shown) => shown,
            Err(RecvError::Lagged(missed)) => {
                self.send("lagged", &LaggedEvent { missed });
                return Some(());
            }
            Err(RecvError::Closed) => return None,
        };
        let is_shown = || match &shown.tool {
            Some(tool) => self.view.has_tool(tool.definition()),
            None => self.view.has_tool_of_call(&shown.call.tool, None),
        };
        let is_its_own = || self.view.sees_calls_of(shown.call.caller.as_deref());
        if self.kinds.contains(&shown.kind) && is_its_own() && is_shown() {
            self.send(shown.kind, &shown.call);
        }
        Some(())
    }

    fn send_approval(&mut self, event: Result<ApprovalEvent, RecvError>) -> Option<()> {
        match event {
            Ok(ApprovalEvent::Asked(question)) => self.send("approval", &*question),
            Ok(ApprovalEvent::Gone(id)) => self.send("approval", &GoneEvent { id, gone: true }),
            Err(RecvError::Lagged(missed)) => self.send("lagged", &LaggedEvent { missed }),
            Err(RecvError::Closed) => return None,
        }
        Some(())
    }

    fn send_question(&mut self, event: Result<QuestionEvent, RecvError>) -> Option<()> {
        let sees = |question: &ServerQuestion| {
            let questions = self.questions.as_ref();
            questions.is_some_and(|questions| questions.viewer.sees(question))
        };
        match event {
            Ok(QuestionEvent::Asked(question)) if sees(&question) => {
                self.send("question", &*question);
            }
            Ok(QuestionEvent::Gone(question)) if sees(&question) => {
                let id = question.id.clone();
                self.send("question", &GoneEvent { id, gone: true });
            }
            Ok(_) => {}
            Err(RecvError::Lagged(missed)) => self.send("lagged", &LaggedEvent { missed }),
            Err(RecvError::Closed) => return None,
        }
        Some(())
    }

    fn send_servers(&mut self) {
        for server in self.view.servers() {
            // Without the fields that differ in every snapshot.
            let mut settled = server.clone();
            settled.next_try = None;
            settled.listed_at = None;
            if self.known_servers.get(&server.name) != Some(&settled) {
                self.send("server", &server);
                self.known_servers.insert(server.name, settled);
            }
        }
    }

    fn send_tools(&mut self) {
        let tools = self.view.tool_count();
        self.send("tools", &ToolsEvent { tools });
    }

    fn send_status(&mut self) {
        let status = status(&self.gateway, &self.caller);
        self.send("status", &status);
    }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

async fn receive<T: Clone>(receiver: Option<&mut broadcast::Receiver<T>>) -> Result<T, RecvError> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

// Sleeps before it checks for a change: `select!` may drop this future at any await, and `changed`
// marks a change as seen.
async fn wait_for_change(version: &mut Option<watch::Receiver<u64>>, not_before: Instant) {
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
