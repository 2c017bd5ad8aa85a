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
use crate::client::transport::{SessionEnd, Transport, TransportError, TransportInbox};

pub(crate) enum ScriptedReply {
    Answers(Value),
    Refuses(i64, &'static str),
    Fails(TransportError),
    Nothing,
}

type ReplyScript = dyn Fn(&str, &Value) -> ScriptedReply + Send + Sync;

pub(crate) struct ScriptedServer {
    script: Box<ReplyScript>,
    inbox: Arc<dyn TransportInbox>,
    sent: Mutex<Vec<Value>>,
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
            agreed: Mutex::default(),
        });
        session.set_transport(Arc::clone(&scripted) as Arc<dyn Transport>);
        (session, scripted)
    }

    pub(crate) fn sent(&self) -> Vec<Value> {
        self.sent.lock().clone()
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
                ScriptedReply::Refuses(code, text) => {
                    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } });
                    self.inbox.on_message(
                        RpcMessage::parse(error.to_string().as_bytes()).unwrap(),
                        None,
                    );
                }
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
