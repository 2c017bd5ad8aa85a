//! For tests: a server that is a function from what it gets to what it answers.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_core::Redactor;

use super::diagnostics::Diagnostics;
use super::message::{Message, Outgoing};
use super::session::Session;
use super::transport::{End, Inbox, Transport, TransportError};
use crate::Era;

pub(crate) enum Does {
    Answers(Value),
    Refuses(i64, &'static str),
    Fails(TransportError),
    Nothing,
}

type Script = dyn Fn(&str, &Value) -> Does + Send + Sync;

pub(crate) struct Scripted {
    script: Box<Script>,
    inbox: Arc<dyn Inbox>,
    sent: Mutex<Vec<Value>>,
    agreed: Mutex<Option<Era>>,
}

impl Scripted {
    /// A session with a server that acts by `script`: method and params in, deed out.
    pub(crate) fn session(
        script: impl Fn(&str, &Value) -> Does + Send + Sync + 'static,
    ) -> (Arc<Session>, Arc<Self>) {
        let session = Session::new(
            Diagnostics::new("house", Redactor::default()),
            Arc::default(),
        );
        let scripted = Arc::new(Self {
            script: Box::new(script),
            inbox: session.inbox(),
            sent: Mutex::default(),
            agreed: Mutex::default(),
        });
        session.connect(Arc::clone(&scripted) as Arc<dyn Transport>);
        (session, scripted)
    }

    pub(crate) fn sent(&self) -> Vec<Value> {
        self.sent.lock().clone()
    }

    pub(crate) fn die(&self) {
        self.inbox.closed(End {
            status: "exit status 3".into(),
            stderr: vec!["boom".to_owned()],
        });
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        let name = |message: &Value| message["method"].as_str().unwrap_or("-").to_owned();
        self.sent().iter().map(name).collect()
    }

    pub(crate) fn agreed(&self) -> Option<Era> {
        *self.agreed.lock()
    }
}

impl Transport for Scripted {
    fn send(&self, message: Outgoing) -> BoxFuture<'_, Result<(), TransportError>> {
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        self.sent.lock().push(body.clone());
        let deed = (self.script)(message.method.unwrap_or_default(), &body["params"]);
        if let Some(id) = message.id {
            match deed {
                Does::Answers(result) => {
                    let text = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
                    self.inbox.message(Message::parse(text.as_bytes()).unwrap());
                }
                Does::Refuses(code, text) => {
                    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } });
                    self.inbox
                        .message(Message::parse(error.to_string().as_bytes()).unwrap());
                }
                Does::Fails(error) => self.inbox.failed(id, error),
                Does::Nothing => {}
            }
        }
        Box::pin(async { Ok(()) })
    }

    fn agreed(&self, era: Era, _revision: &str) {
        *self.agreed.lock() = Some(era);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
