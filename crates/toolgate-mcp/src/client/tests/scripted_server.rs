//! A test server that answers each request by calling a function.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_core::Redactor;

use crate::ProtocolEra;
use crate::client::diagnostics::ServerDiagnostics;
use crate::client::message::{OutgoingMessage, RpcMessage};
use crate::client::session::ClientSession;
use crate::client::subscriptions::ResourceSubscriptions;
use crate::client::transport::{
    SessionEnd, Transport, TransportError, TransportInbox, UnreadableAnswer,
};

pub(crate) enum ScriptedReply {
    Answers(Value),
    Refuses(i64, &'static str),
    RefusesWith(i64, Value),
    Fails(TransportError),
    Unreadable(UnreadableAnswer),
    Nothing,
}

type ReplyScript = dyn Fn(&str, &Value) -> ScriptedReply + Send + Sync;

pub(crate) struct ScriptedServer {
    script: Box<ReplyScript>,
    inbox: Arc<dyn TransportInbox>,
    sent: Mutex<Vec<Value>>,
    // What each message names in its header over HTTP.
    names: Mutex<Vec<Option<String>>>,
    agreed: Mutex<Option<ProtocolEra>>,
}

impl ScriptedServer {
    /// Starts a session with a server that answers by `script`, a function of method and params.
    pub(crate) fn session(
        script: impl Fn(&str, &Value) -> ScriptedReply + Send + Sync + 'static,
    ) -> (Arc<ClientSession>, Arc<Self>) {
        let session = ClientSession::new(
            ServerDiagnostics::new("house", Redactor::default()),
            Arc::default(),
            ResourceSubscriptions::new(),
        );
        let scripted = Arc::new(Self {
            script: Box::new(script),
            inbox: session.inbox(),
            sent: Mutex::default(),
            names: Mutex::default(),
            agreed: Mutex::default(),
        });
        session.set_transport(Arc::clone(&scripted) as Arc<dyn Transport>);
        (session, scripted)
    }

    fn refuse(&self, id: u64, code: i64, text: &str, data: &Value) {
        let error = json!({ "code": code, "message": text, "data": data });
        let message = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
        let message = RpcMessage::parse(message.as_bytes()).unwrap();
        self.inbox.on_message(message, None);
    }

    pub(crate) fn sent(&self) -> Vec<Value> {
        self.sent.lock().clone()
    }

    pub(crate) fn names(&self) -> Vec<Option<String>> {
        self.names.lock().clone()
    }

    /// Sends a message by itself.
    pub(crate) fn deliver(&self, message: &Value) {
        let message = RpcMessage::parse(message.to_string().as_bytes());
        self.inbox.on_message(message.unwrap(), None);
    }

    pub(crate) fn die(&self) {
        self.inbox.on_closed(SessionEnd {
            status: "exit status 3".into(),
            stderr: vec!["boom".to_owned()],
        });
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        let name = |message: &Value| message["method"].as_str().unwrap_or("-").to_owned();
        self.sent().iter().map(name).collect()
    }

    pub(crate) fn agreed_era(&self) -> Option<ProtocolEra> {
        *self.agreed.lock()
    }
}

impl Transport for ScriptedServer {
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<(), TransportError>> {
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        self.sent.lock().push(body.clone());
        self.names.lock().push(message.name.clone());
        let deed = (self.script)(
            message.method.as_deref().unwrap_or_default(),
            &body["params"],
        );
        if let Some(id) = message.id {
            match deed {
                ScriptedReply::Answers(result) => {
                    let text = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
                    self.inbox
                        .on_message(RpcMessage::parse(text.as_bytes()).unwrap(), None);
                }
                ScriptedReply::Refuses(code, text) => self.refuse(id, code, text, &Value::Null),
                ScriptedReply::RefusesWith(code, data) => self.refuse(id, code, "refused", &data),
                ScriptedReply::Unreadable(problem) => self.inbox.on_unreadable(Some(id), problem),
                ScriptedReply::Fails(error) => self.inbox.on_request_failed(id, error),
                ScriptedReply::Nothing => {}
            }
        }
        Box::pin(async { Ok(()) })
    }

    fn set_protocol(&self, era: ProtocolEra, _revision: &str) {
        *self.agreed.lock() = Some(era);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
