//! Dispatches what the server sends: responses, notifications and requests.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use toolgate_core::Progress;
use tracing::debug;

use super::encode::to_json_line;
use super::{ClientSession, SessionError};
use crate::client::diagnostics::NoiseKind;
use crate::client::message::{OutgoingMessage, RpcError, RpcMessage, notification_meta};
use crate::client::transport::{SessionEnd, TransportError, TransportInbox, UnreadableAnswer};

pub(super) struct SessionMailbox(pub(super) Weak<ClientSession>);

impl TransportInbox for SessionMailbox {
    fn on_message(&self, message: RpcMessage, request: Option<u64>) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        session.messages_received.fetch_add(1, Ordering::Relaxed);
        session.unanswered_in_a_row.store(0, Ordering::Relaxed);
        match message {
            RpcMessage::Response { id, answer } => match id.as_u64() {
                Some(id) => session.resolve_request(id, answer.map_err(SessionError::Rpc)),
                None => {
                    session.log_unexpected_answer(&id);
                }
            },
            RpcMessage::Request { id, method, params } => {
                session.handle_request(id, method, params, request);
            }
            RpcMessage::Notification { method, params } => {
                session.handle_notification(&method, &params, request);
            }
        }
    }

    fn on_unreadable(&self, id: Option<u64>, problem: UnreadableAnswer) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        let only_open = || {
            let pending = session.pending.lock();
            let mut ids = pending.requests.keys();
            ids.next().copied().filter(|_| ids.next().is_none())
        };
        // If a single request is open, a message that large must be its response. A broken line may
        // be anything, and the response may still arrive.
        let id = match problem {
            UnreadableAnswer::TooLarge { .. } => id.or_else(only_open),
            UnreadableAnswer::Broken(_) => id,
        };
        if let Some(id) = id {
            session.resolve_request(id, Err(SessionError::Unreadable(problem)));
        }
    }

    fn on_request_failed(&self, id: u64, error: TransportError) {
        if let Some(session) = self.0.upgrade() {
            session.resolve_request(id, Err(error.into()));
        }
    }

    fn on_closed(&self, end: SessionEnd) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        let open = {
            let mut pending = session.pending.lock();
            session.end.send_replace(Some(end.clone()));
            std::mem::take(&mut pending.requests)
        };
        for request in open.into_values() {
            drop(request.reply.send(Err(SessionError::Stopped(end.clone()))));
        }
    }
}

impl ClientSession {
    fn resolve_request(self: &Arc<Self>, id: u64, answer: Result<Value, SessionError>) {
        let request = self.pending.lock().requests.remove(&id);
        match request {
            Some(request) => {
                if let (Err(SessionError::Rpc(error)), Some(call)) = (&answer, &request.call) {
                    // At once, because the next message may say that a page is done.
                    self.note_required_pages(error, call);
                }
                drop(request.reply.send(answer));
            }
            None => {
                let may_be_task = self.log_unexpected_answer(&Value::from(id));
                if let (true, Ok(answer)) = (may_be_task, answer) {
                    self.cancel_unwanted_task(&answer);
                }
            }
        }
    }

    /// Returns true if it is the first answer to a cancelled request that may have become a task.
    fn log_unexpected_answer(&self, id: &Value) -> bool {
        let late = id.as_u64().and_then(|id| {
            let mut pending = self.pending.lock();
            let mut abandoned = pending.abandoned.iter_mut();
            let abandoned = abandoned.find(|request| request.id == id)?;
            // The server is done with this call, and asks no more on its behalf.
            abandoned.call = None;
            Some(std::mem::take(&mut abandoned.may_become_task))
        });
        let noise = match late {
            Some(_) => NoiseKind::LateAnswer,
            None => NoiseKind::UnknownAnswer,
        };
        self.diagnostics.log_ignored(noise, &id.to_string());
        late == Some(true)
    }

    fn handle_notification(&self, method: &str, params: &Value, request: Option<u64>) {
        match method {
            "notifications/progress" => self.handle_progress(params),
            "notifications/message" => self.handle_log(params, request),
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => self.mark_lists_changed(),
            // Changes before a subscription is acknowledged aren't announced, so the
            // acknowledgement counts as a change.
            "notifications/subscriptions/acknowledged" => {
                let filter = params["notifications"].as_object();
                let mut kinds = filter.into_iter().flat_map(|filter| filter.values());
                if filter.is_none() || kinds.any(|kind| *kind == true) {
                    self.mark_lists_changed();
                }
            }
            "notifications/resources/updated" => {
                if let Some(uri) = params["uri"].as_str() {
                    self.subscriptions
                        .announce(uri, notification_meta(params).as_ref());
                }
            }
            "notifications/tasks" | "notifications/tasks/status" => {
                self.mark_task_changed(params["taskId"].as_str().unwrap_or_default());
            }
            "notifications/elicitation/complete" if self.complete_elicitation(params) => {}
            _ => self.handle_other_notification(method, params, request),
        }
    }

    fn handle_progress(&self, params: &Value) {
        let call = params["progressToken"].as_u64().and_then(|id| {
            let task = || self.task_with_progress(id);
            self.pending_call(id).or_else(task)
        });
        // Report outside the lock, because a listener may be slow.
        match call {
            None => self
                .diagnostics
                .log_ignored(NoiseKind::Progress, &params["progressToken"].to_string()),
            Some(call) => call.context.report(&Progress {
                done: params["progress"].as_f64().unwrap_or_default(),
                total: params["total"].as_f64(),
                message: params["message"].as_str().map(str::to_owned),
                meta: notification_meta(params),
            }),
        }
    }

    fn handle_request(
        self: &Arc<Self>,
        id: Value,
        method: String,
        params: Value,
        on_stream_of: Option<u64>,
    ) {
        // Held until the response is written. A server that sends many requests and doesn't read
        // the responses blocks only itself.
        let is_about_task = self.is_about_own_task(&method, &params);
        let permits = match is_about_task {
            true => &self.own_tasks.requests,
            false => &self.open_questions,
        };
        let Ok(permit) = Arc::clone(permits).try_acquire_owned() else {
            return self.diagnostics.log_ignored(NoiseKind::Request, &method);
        };
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let answering = async {
                match is_about_task {
                    true => {
                        session
                            .answer_about_own_task(method, params, on_stream_of)
                            .await
                    }
                    false => session.answer_request(method, params, on_stream_of).await,
                }
            };
            let answer = tokio::select! {
                answer = answering => answer,
                _ = session.ended() => return,
            };
            session.send_answer(&id, answer).await;
            drop(permit);
        });
    }

    async fn send_answer(&self, id: &Value, answer: Result<Value, RpcError>) {
        let body = match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(RpcError {
                code,
                message,
                data,
            }) => {
                let mut error = json!({ "code": code, "message": message });
                if !data.is_null() {
                    error["data"] = data;
                }
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        };
        let Ok(body) = to_json_line(&body) else {
            return;
        };
        let message = OutgoingMessage {
            body,
            ..OutgoingMessage::default()
        };
        if let Ok(transport) = self.transport()
            && let Err(error) = transport.send(message).await
        {
            debug!(server = %self.server, %error, "a response could not be sent");
        }
    }
}
