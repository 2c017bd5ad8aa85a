//! Chats over HTTP with a model that uses the gateway's tools.

mod events;
mod registry;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::response::sse;
use futures::stream;
use http::HeaderMap;
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::CallerTrace;
use toolgate_models::{ConnectedModel, Conversation, ModelSettings, Toolbox};
use tracing::{Instrument, error};
use utoipa::ToSchema;

pub(crate) use events::ChatEvent;
use events::{ChatEventSender, sse_event};
pub(crate) use registry::ChatRegistry;
use registry::RegisteredChat;

use super::extract::{JsonBody, UnreadableResponses};
use super::sse::{KEEP_ALIVE, keep_alive, response};
use crate::Gateway;
use crate::guard::Caller;
use crate::problem::Problem;

// How many events wait for the reader. A slower reader is disconnected.
const EVENT_CAPACITY: usize = 4096;

/// A message to the model.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatMessage)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatRequest {
    /// The text of the message.
    #[schema(example = "What time is it?")]
    message: String,
    /// The conversation to continue. Without it a new one begins.
    #[serde(default)]
    conversation: Option<String>,
}

/// Sends a message to the model and streams its answer.
///
/// The events are `conversation`, `text`, `thinking`, `call`, `result`, `notice`, `void`, and
/// finally `done` or `error`. Their data is a `ChatEvent` of that name. Closing the stream stops
/// the turn. A conversation is kept in memory for an hour after its last turn, and only its
/// caller can use it.
#[utoipa::path(post, path = "/api/chat", tag = "chat", request_body = ChatRequest,
    params(("traceparent" = Option<String>, Header, description = "The W3C trace the calls of the turn belong to"),
           ("tracestate" = Option<String>, Header, description = "Vendor data of that trace, which is passed on")),
    responses((status = 200, description = "Server-sent events, each with one line of JSON as its data", body = String, content_type = "text/event-stream"),
              (status = 404, description = "No such conversation, or it has expired", body = Problem),
              (status = 409, description = "The conversation is busy with another turn", body = Problem),
              UnreadableResponses,
              (status = 422, description = "The message is missing or empty", body = Problem),
              (status = 503, description = "No model is available, too many conversations are open, or the gateway is stopping", body = Problem)))]
pub(crate) async fn send_message(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ChatRequest>,
) -> Result<Response, Problem> {
    if request.message.trim().is_empty() {
        return Err(Problem::unprocessable("'message' is empty"));
    }
    let chat = match &request.conversation {
        Some(id) => gateway.chats.find(id, caller.number).ok_or_else(|| {
            Problem::not_found("there is no such conversation; it may have been idle for too long")
        })?,
        None => start_conversation(&gateway, &caller).await?,
    };
    let Ok(mut conversation) = Arc::clone(&chat.conversation).try_lock_owned() else {
        return Err(Problem::conflict(
            "the conversation is busy with another turn; wait for its end, or close its stream",
        ));
    };
    let trace = CallerTrace::from_headers(&headers).map(|trace| (Some(trace.parent), trace.state));
    let (parent, state) = trace.unwrap_or_default();
    conversation.set_trace(parent, state);
    let (sender, events) = mpsc::channel(EVENT_CAPACITY);
    let sender = ChatEventSender::new(sender, gateway.parts.redactor.clone());
    let stopping = gateway.stopping.clone();
    let turn = run_turn(chat, conversation, request.message, sender, stopping);
    Ok(response(stream::unfold(
        ChatEventStream {
            events,
            turn: tokio::spawn(turn.in_current_span()),
            keep_alive_timer: tokio::time::interval(KEEP_ALIVE),
            cancelled: gateway.calls.clone(),
            is_over: false,
        },
        async |mut stream| {
            let event = stream.next().await?;
            Some((Ok::<_, Infallible>(event), stream))
        },
    )))
}

// Uses the configured model, or one that is available.
async fn start_conversation(
    gateway: &Gateway,
    caller: &Caller,
) -> Result<Arc<RegisteredChat>, Problem> {
    let parts = &gateway.parts;
    let toolbox = Toolbox::new(gateway.executor().clone()).with_scope(caller.scope.clone());
    let redactor = parts.redactor.clone();
    let (settings, tools) = (parts.model.clone(), toolbox.clone());
    // The future that resolves a secret isn't `Send`, so it runs on one blocking thread.
    let connecting = tokio::task::spawn_blocking(move || {
        Handle::current().block_on(connect_model(&settings, &tools, &redactor))
    });
    let connected = connecting
        .await
        .map_err(|_| Problem::unavailable("no model could be chosen; see the log of the gateway"))?
        .map_err(|error| Problem::unavailable(parts.redactor.line(&error, 1000)))?;
    let provider = connected.router.source().to_string();
    let model = connected.router.model_name().to_owned();
    let conversation = Conversation::new(connected.router, toolbox, connected.settings);
    let chat = RegisteredChat::new(conversation, provider, model, connected.why, caller.number);
    gateway.chats.add(chat).ok_or_else(|| {
        Problem::unavailable(
            "too many conversations are open; try again when one of them has ended",
        )
        .retry_after(10)
    })
}

async fn connect_model(
    settings: &ModelSettings,
    toolbox: &Toolbox,
    redactor: &toolgate_core::Redactor,
) -> Result<ConnectedModel, String> {
    let environment =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let why = "the configuration says so";
    let choice = toolgate_models::select_model(settings, why, &environment).await;
    let choice = choice.map_err(|error| error.to_string())?;
    redactor.add_secrets(choice.settings.secrets());
    toolgate_models::connect(choice, toolbox).map_err(|error| error.to_string())
}

// When the gateway stops, the turn waits for its running tools but starts no more.
async fn run_turn(
    chat: Arc<RegisteredChat>,
    mut conversation: OwnedMutexGuard<Conversation>,
    message: String,
    mut sender: ChatEventSender,
    stopping: CancellationToken,
) {
    sender.send(ChatEvent::Conversation {
        id: chat.id.clone(),
        provider: chat.provider.clone(),
        model: chat.model.clone(),
        why: chat.why.clone(),
    });
    let too_slow = sender.too_slow.clone();
    let mut running = sender.running.subscribe();
    let stopped = async {
        stopping.cancelled().await;
        // This fails only if the turn is gone.
        drop(running.wait_for(|running| *running == 0).await);
    };
    let last = tokio::select! {
        biased;
        () = stopped => Some(ChatEvent::stopping()),
        answer = conversation.turn(&message, &mut sender) => Some(ChatEvent::from_turn(answer)),
        () = too_slow.cancelled() => None,
    };
    drop(conversation);
    chat.touch();
    if let Some(last) = last {
        sender.send(last);
    }
}

// Dropping it stops the turn.
struct ChatEventStream {
    events: mpsc::Receiver<ChatEvent>,
    turn: JoinHandle<()>,
    keep_alive_timer: Interval,
    // Cancelled when running calls must end.
    cancelled: CancellationToken,
    is_over: bool,
}

impl ChatEventStream {
    /// The last event is `done` or `error`, however the turn ends.
    async fn next(&mut self) -> Option<sse::Event> {
        if self.is_over {
            return None;
        }
        let event = tokio::select! {
            biased;
            event = self.events.recv() => match event {
                Some(event) => event,
                None => self.unexpected_end().await,
            },
            () = self.cancelled.cancelled() => ChatEvent::stopping(),
            _ = self.keep_alive_timer.tick() => return Some(keep_alive()),
        };
        self.is_over = event.is_last();
        Some(sse_event(&event))
    }

    async fn unexpected_end(&mut self) -> ChatEvent {
        let detail = match (&mut self.turn).await {
            Err(panic) if panic.is_panic() => {
                error!("a chat turn panicked; this is a bug, please report it");
                "internal error; see the log of the gateway"
            }
            _ => "the events were read too slowly, so the turn was stopped",
        };
        let detail = detail.to_owned();
        ChatEvent::Error { detail }
    }
}

impl Drop for ChatEventStream {
    fn drop(&mut self) {
        self.turn.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(turn: JoinHandle<()>, events: mpsc::Receiver<ChatEvent>) -> ChatEventStream {
        ChatEventStream {
            events,
            turn,
            keep_alive_timer: tokio::time::interval(KEEP_ALIVE),
            cancelled: CancellationToken::new(),
            is_over: false,
        }
    }

    async fn next(stream: &mut ChatEventStream) -> Option<String> {
        loop {
            let event = stream.next().await.map(|event| format!("{event:?}"));
            if event.as_ref().is_none_or(|event| event.contains("event:")) {
                return event;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_an_error_however_its_turn_ends() {
        let text = || ChatEvent::Text {
            text: "so far".to_owned(),
        };
        for (panics, is_cancelled, expected) in [
            (true, false, "internal error"),
            (false, true, "the gateway is stopping"),
            (false, false, "read too slowly"),
        ] {
            let (sender, events) = mpsc::channel(8);
            let turn = tokio::spawn(async move {
                sender.send(text()).await.unwrap();
                match (panics, is_cancelled) {
                    (true, _) => panic!("a bug"),
                    (false, true) => std::future::pending().await,
                    (false, false) => drop(sender),
                }
            });
            let mut stream = stream(turn, events);
            assert!(next(&mut stream).await.unwrap().contains("so far"));
            if is_cancelled {
                stream.cancelled.cancel();
            }
            let last = next(&mut stream).await.unwrap();
            assert!(
                last.contains("event: error") && last.contains(expected),
                "{last}"
            );
            assert_eq!(next(&mut stream).await, None);
        }
    }
}
