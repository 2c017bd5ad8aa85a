//! A conversation with a model that uses the tools here.

mod events;
mod registry;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::response::sse;
use futures::stream;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::CallerTrace;
use toolgate_models::{Chosen, Conversation, ModelSettings, Toolbox};
use tracing::{Instrument, error};
use utoipa::ToSchema;

pub(crate) use events::ChatEvent;
use events::{Teller, events_of};
use registry::Chat;
pub(crate) use registry::Chats;

use super::extract::{Sent, Unreadable};
use super::sse::{BEAT, beat, response};
use crate::Gateway;
use crate::guard::Caller;
use crate::problem::Problem;

/// Events that wait for a reader; one that is slower is cut off.
const WAITING: usize = 4096;

/// What a person says.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    /// The words.
    #[schema(example = "What time is it?")]
    message: String,
    /// The conversation that goes on; none begins one.
    #[serde(default)]
    conversation: Option<String>,
}

/// Says something to the model and tells how it answers.
///
/// The events are `conversation`, `text`, `thinking`, `call`, `result`, `notice`, `void`, and one of `done` and `error` at the
/// end; their data is a `ChatEvent` of that name. Closing the stream stops the turn. A conversation lives in memory for an hour
/// after its last turn, and is its caller's alone.
#[utoipa::path(post, path = "/api/chat", tag = "chat", request_body = Said,
    params(("traceparent" = Option<String>, Header, description = "The W3C trace the calls of the turn belong to"),
           ("tracestate" = Option<String>, Header, description = "What others keep beside that trace; it is handed on")),
    responses((status = 200, description = "Server-sent events, each with one line of JSON as its data", body = String, content_type = "text/event-stream"),
              (status = 404, description = "No such conversation, or not any more", body = Problem),
              (status = 409, description = "The conversation is busy with another turn", body = Problem),
              Unreadable,
              (status = 422, description = "There is no message", body = Problem),
              (status = 503, description = "No model can be asked, too many conversations go on, or the gateway is stopping", body = Problem)))]
pub(crate) async fn say(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    Sent(said): Sent<Said>,
) -> Result<Response, Problem> {
    if said.message.trim().is_empty() {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "'message' says nothing",
        ));
    }
    let chat = match &said.conversation {
        Some(id) => gateway.chats().find(id, caller.number).ok_or_else(|| {
            Problem::not_found("there is no such conversation; it may have been idle for too long")
        })?,
        None => begin(&gateway, &caller).await?,
    };
    let Ok(mut conversation) = Arc::clone(&chat.conversation).try_lock_owned() else {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "the conversation is busy with another turn; wait for its end, or close its stream",
        ));
    };
    let trace = CallerTrace::of(&headers).map(|trace| (Some(trace.parent), trace.state));
    let (parent, state) = trace.unwrap_or_default();
    conversation.set_trace(parent, state);
    let (sender, events) = mpsc::channel(WAITING);
    let teller = Teller::new(sender, gateway.parts().redactor.clone());
    let stopping = gateway.stopping().clone();
    let turn = turn(chat, conversation, said.message, teller, stopping);
    Ok(response(stream::unfold(
        Answering {
            events,
            turn: tokio::spawn(turn.in_current_span()),
            beat: tokio::time::interval(BEAT),
            cut: gateway.calls().clone(),
            is_over: false,
        },
        async |mut answering| {
            let event = answering.next().await?;
            Some((Ok::<_, Infallible>(event), answering))
        },
    )))
}

fn unavailable(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

/// A new conversation with the model that the configuration, or what is there, means.
async fn begin(gateway: &Gateway, caller: &Caller) -> Result<Arc<Chat>, Problem> {
    let parts = gateway.parts();
    let toolbox = Toolbox::new(gateway.executor().clone()).within(caller.scope.clone());
    let redactor = parts.redactor.clone();
    let (settings, tools) = (parts.model.clone(), toolbox.clone());
    // Looking up a variable is not for other threads, so the search stays on one.
    let choosing = tokio::task::spawn_blocking(move || {
        Handle::current().block_on(choose(&settings, &tools, &redactor))
    });
    let chosen = choosing
        .await
        .map_err(|_| unavailable("the model could not be chosen; the gateway's log says why"))?
        .map_err(|error| unavailable(parts.redactor.line(&error, 1000)))?;
    let (provider, model) = (
        chosen.router.source(),
        chosen.router.model_name().to_owned(),
    );
    let conversation = Conversation::new(chosen.router, toolbox, chosen.settings);
    let chat = Chat::new(
        conversation,
        provider.to_string(),
        model,
        chosen.why,
        caller.number,
    );
    gateway.chats().add(chat).ok_or_else(|| {
        unavailable("too many conversations go on at once; come back when one of them has ended")
            .retry_after(10)
    })
}

async fn choose(
    settings: &ModelSettings,
    toolbox: &Toolbox,
    redactor: &toolgate_core::Redactor,
) -> Result<Chosen, String> {
    let environment =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let said_by = "the configuration says so";
    let choice = toolgate_models::choice(settings, said_by, &environment).await;
    let choice = choice.map_err(|error| error.to_string())?;
    redactor.learn(choice.settings.secrets());
    toolgate_models::connect(choice, toolbox).map_err(|error| error.to_string())
}

/// One turn, told as it goes. When the gateway stops it goes on until its tools are done, and begins no more of them.
async fn turn(
    chat: Arc<Chat>,
    mut conversation: OwnedMutexGuard<Conversation>,
    message: String,
    mut teller: Teller,
    stopping: CancellationToken,
) {
    teller.tell(ChatEvent::Conversation {
        id: chat.id.clone(),
        provider: chat.provider.clone(),
        model: chat.model.clone(),
        why: chat.why.clone(),
    });
    let too_slow = teller.too_slow();
    let mut running = teller.running();
    let stopped = async {
        stopping.cancelled().await;
        // It fails only if the turn is gone.
        drop(running.wait_for(|running| *running == 0).await);
    };
    let last = tokio::select! {
        biased;
        () = stopped => Some(ChatEvent::stopping()),
        answer = conversation.turn(&message, &mut teller) => Some(ChatEvent::of_end(answer)),
        () = too_slow.cancelled() => None,
    };
    drop(conversation);
    chat.touch();
    if let Some(last) = last {
        teller.tell(last);
    }
}

/// A turn as its reader sees it; without a reader it stops.
struct Answering {
    events: mpsc::Receiver<ChatEvent>,
    turn: JoinHandle<()>,
    beat: Interval,
    /// Cancelled when calls that still run must end.
    cut: CancellationToken,
    is_over: bool,
}

impl Answering {
    /// The last event is `done` or `error`, however the turn ends.
    async fn next(&mut self) -> Option<sse::Event> {
        if self.is_over {
            return None;
        }
        let event = tokio::select! {
            biased;
            event = self.events.recv() => match event {
                Some(event) => event,
                None => self.broke_off().await,
            },
            () = self.cut.cancelled() => ChatEvent::stopping(),
            _ = self.beat.tick() => return Some(beat()),
        };
        self.is_over = event.is_last();
        Some(events_of(&event))
    }

    async fn broke_off(&mut self) -> ChatEvent {
        let detail = match (&mut self.turn).await {
            Err(panic) if panic.is_panic() => {
                error!("a turn of a chat panicked: a bug of this program");
                "something is wrong inside of the gateway; its log says what"
            }
            _ => "the events were read too slowly, and the turn was stopped",
        };
        let detail = detail.to_owned();
        ChatEvent::Error { detail }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.turn.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answering(turn: JoinHandle<()>, events: mpsc::Receiver<ChatEvent>) -> Answering {
        Answering {
            events,
            turn,
            beat: tokio::time::interval(BEAT),
            cut: CancellationToken::new(),
            is_over: false,
        }
    }

    /// What an event says, without the beats before it.
    async fn next(answering: &mut Answering) -> Option<String> {
        loop {
            let event = answering.next().await.map(|event| format!("{event:?}"));
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
        for (panics, is_cut, said) in [
            (true, false, "its log says what"),
            (false, true, "the gateway is stopping"),
            (false, false, "read too slowly"),
        ] {
            let (sender, events) = mpsc::channel(8);
            let turn = tokio::spawn(async move {
                sender.send(text()).await.unwrap();
                match (panics, is_cut) {
                    (true, _) => panic!("a bug"),
                    (false, true) => std::future::pending().await,
                    (false, false) => drop(sender),
                }
            });
            let mut answering = answering(turn, events);
            assert!(next(&mut answering).await.unwrap().contains("so far"));
            if is_cut {
                answering.cut.cancel();
            }
            let last = next(&mut answering).await.unwrap();
            assert!(
                last.contains("event: error") && last.contains(said),
                "{last}"
            );
            assert_eq!(next(&mut answering).await, None);
        }
    }
}
