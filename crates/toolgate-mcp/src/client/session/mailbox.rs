//! What arrives: answers for those who wait, news, and the server's own questions.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use toolgate_core::{CallContext, Progress};
use tracing::debug;

use super::encode::line;
use super::{COURTESY, Failure, Session};
use crate::client::diagnostics::Noise;
use crate::client::message::{Message, Outgoing, RpcError};
use crate::client::transport::{End, Inbox, Lost, TransportError};

/// The session's letter box, as the transport knows it.
pub(super) struct Mailbox(pub(super) Weak<Session>);

impl Inbox for Mailbox {
    fn message(&self, message: Message) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        session.heard.fetch_add(1, Ordering::Relaxed);
        session.strikes.store(0, Ordering::Relaxed);
        match message {
            Message::Response { id, answer } => match id.as_u64() {
                Some(id) => session.settle(id, answer.map_err(Failure::Rpc)),
                None => session.unexpected(&id),
            },
            Message::Request { id, method, params } => session.asked(id, method, params),
            Message::Notification { method, params } => session.told(&method, &params),
        }
    }

    fn lost(&self, id: Option<u64>, problem: Lost) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        let only = || {
            let waiting = session.waiting();
            let mut ids = waiting.requests.keys();
            ids.next().copied().filter(|_| ids.next().is_none())
        };
        // So much can only be the answer to the one request that is open. A broken line may be anything: the answer still comes.
        let meant = match problem {
            Lost::TooLarge { .. } => id.or_else(only),
            Lost::Broken(_) => id,
        };
        if let Some(id) = meant {
            session.settle(id, Err(Failure::Lost(problem)));
        }
    }

    fn failed(&self, id: u64, error: TransportError) {
        if let Some(session) = self.0.upgrade() {
            session.settle(id, Err(error.into()));
        }
    }

    fn closed(&self, end: End) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        let open = {
            let mut waiting = session.waiting();
            session.end.send_replace(Some(end.clone()));
            std::mem::take(&mut waiting.requests)
        };
        for asked in open.into_values() {
            drop(asked.answer.send(Err(Failure::Stopped(end.clone()))));
        }
    }
}

impl Session {
    fn settle(&self, id: u64, answer: Result<Value, Failure>) {
        let asked = self.waiting().requests.remove(&id);
        match asked {
            Some(asked) => drop(asked.answer.send(answer)),
            None => self.unexpected(&Value::from(id)),
        }
    }

    fn unexpected(&self, id: &Value) {
        let late = id
            .as_u64()
            .is_some_and(|id| self.waiting().abandoned.contains(&id));
        let noise = match late {
            true => Noise::LateAnswer,
            false => Noise::UnknownAnswer,
        };
        self.diagnostics.ignored(noise, &id.to_string());
    }

    fn told(&self, method: &str, params: &Value) {
        match method {
            "notifications/progress" => self.progressed(params),
            // With the acknowledgement of a subscription begins what is heard: what changed before it was not.
            "notifications/tools/list_changed" | "notifications/subscriptions/acknowledged" => {
                self.tools_changed.notify_one();
            }
            _ => self.diagnostics.ignored(Noise::Notification, method),
        }
    }

    fn progressed(&self, params: &Value) {
        let call = params["progressToken"]
            .as_u64()
            .and_then(|id| self.waiting().requests.get(&id)?.call.clone());
        // Outside the lock: what listens may take its time.
        match call {
            None => self
                .diagnostics
                .ignored(Noise::Progress, &params["progressToken"].to_string()),
            Some(call) => call.report(&Progress {
                done: params["progress"].as_f64().unwrap_or_default(),
                total: params["total"].as_f64(),
                message: params["message"].as_str().map(str::to_owned),
            }),
        }
    }

    fn asked(self: &Arc<Self>, id: Value, method: String, params: Value) {
        // Held until the answer is out: a server that asks without end and reads nothing waits for itself alone.
        let Ok(place) = Arc::clone(&self.open_questions).try_acquire_owned() else {
            return self.diagnostics.ignored(Noise::Request, &method);
        };
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let answer = tokio::select! {
                answer = session.answer(&method, &params, None) => answer,
                _ = session.ended() => return,
            };
            let body = match answer {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                Err(error) => {
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": error.code, "message": error.message } })
                }
            };
            let Ok(body) = line(&body) else { return };
            let message = Outgoing {
                id: None,
                method: None,
                name: None,
                headers: Vec::new(),
                body,
            };
            if let Ok(transport) = session.transport()
                && let Err(error) = transport.send(message).await
            {
                debug!(server = %session.server, %error, "an answer could not be sent");
            }
            drop(place);
        });
    }

    /// A person may need longer than a call's limit: while a question is open, the calls of this server are not idle, nor is
    /// the one that it belongs to.
    pub(crate) async fn answer(
        &self,
        method: &str,
        params: &Value,
        call: Option<&CallContext>,
    ) -> Result<Value, RpcError> {
        match method {
            "sampling/createMessage" => self.diagnostics.ignored(Noise::Sampling, method),
            "elicitation/create" if self.questions.elicitor.is_none() => {
                self.diagnostics.ignored(Noise::Elicitation, method);
            }
            _ => {}
        }
        let mut answer = std::pin::pin!(self.questions.answer(&self.server, method, params));
        loop {
            match tokio::time::timeout(COURTESY, &mut answer).await {
                Ok(answer) => return answer,
                Err(_) => self.keep_calls_alive(call),
            }
        }
    }

    fn keep_calls_alive(&self, one: Option<&CallContext>) {
        let mut calls: Vec<CallContext> = {
            let waiting = self.waiting();
            waiting
                .requests
                .values()
                .filter_map(|asked| asked.call.clone())
                .collect()
        };
        calls.extend(one.cloned());
        for call in calls {
            call.report(&Progress {
                done: 0.0,
                total: None,
                message: Some("waiting for a person's answer".to_owned()),
            });
        }
    }
}
