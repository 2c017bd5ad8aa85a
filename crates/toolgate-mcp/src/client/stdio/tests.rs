//! Tests of the stdio transport with real processes, none of which may survive.

mod ends;
mod limits;
mod pipes;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use toolgate_core::Redactor;

use super::*;
use crate::ServerConnection;
use crate::client::message::RpcMessage;
use crate::client::transport::{SessionEnd, UnreadableAnswer};

/// Longer than a slow machine needs, so that only a hang is reported.
const HANG: Duration = Duration::from_secs(20);

#[derive(Debug, PartialEq)]
pub(super) enum TransportEvent {
    Message(RpcMessage),
    Unreadable(Option<u64>, UnreadableAnswer),
    Closed(SessionEnd),
}

pub(super) struct ChannelInbox(pub(super) mpsc::UnboundedSender<TransportEvent>);

impl TransportInbox for ChannelInbox {
    fn on_message(&self, message: RpcMessage, _request: Option<u64>) {
        self.0.send(TransportEvent::Message(message)).ok();
    }
    fn on_unreadable(&self, id: Option<u64>, problem: UnreadableAnswer) {
        self.0.send(TransportEvent::Unreadable(id, problem)).ok();
    }
    fn on_request_failed(&self, id: u64, error: TransportError) {
        panic!("{id}: {error}");
    }
    fn on_closed(&self, end: SessionEnd) {
        self.0.send(TransportEvent::Closed(end)).ok();
    }
}

struct TestStdioServer {
    stdio: Arc<StdioTransport>,
    events: mpsc::UnboundedReceiver<TransportEvent>,
    diagnostics: Arc<ServerDiagnostics>,
}

impl TestStdioServer {
    fn sh(script: &str) -> Self {
        Self::start(&sh(script), |_| {})
    }

    fn start(program: &ServerProgram, adjust: impl FnOnce(&mut ServerSettings)) -> Self {
        let shared = StdioOptions {
            launcher: sandbox::SandboxLauncher::none(),
            chain: String::new(),
            watcher: ServerWatcher::none(),
            max_message: 1024 * 1024,
        };
        let mut settings = ServerSettings::new("test", ServerConnection::Stdio(program.clone()));
        adjust(&mut settings);
        let (sender, events) = mpsc::unbounded_channel();
        let diagnostics = ServerDiagnostics::new("test", Redactor::new(["hunter2".to_owned()]));
        let stdio = StdioTransport::start(
            &settings,
            program,
            &shared,
            Arc::clone(&diagnostics),
            Arc::new(ChannelInbox(sender)),
            settings.is_package_runner(),
        );
        Self {
            stdio: stdio.unwrap(),
            events,
            diagnostics,
        }
    }

    async fn next(&mut self) -> TransportEvent {
        let event = timeout(HANG, self.events.recv()).await;
        event.expect("no event").expect("no end")
    }

    /// Returns the method of the next notification.
    async fn next_method(&mut self) -> String {
        match self.next().await {
            TransportEvent::Message(RpcMessage::Notification { method, .. }) => method,
            other => panic!("{other:?}"),
        }
    }

    async fn end(&mut self) -> SessionEnd {
        match self.next().await {
            TransportEvent::Closed(end) => end,
            other => panic!("{other:?}"),
        }
    }

    async fn send(&self, text: &str) -> Result<(), TransportError> {
        let message = OutgoingMessage {
            id: None,
            method: None,
            name: None,
            headers: Vec::new(),
            body: format!("{text}\n").into_bytes(),
        };
        self.stdio.send(message).await
    }

    /// Closes the transport, and asserts that no process is left.
    async fn close(self) {
        timeout(HANG, self.stdio.close()).await.unwrap();
        assert!(!self.stdio.group.is_alive(), "processes are left");
    }
}

fn sh(script: &str) -> ServerProgram {
    ServerProgram {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        ..ServerProgram::default()
    }
}

fn note(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// A shell script that sends a notification, then runs `then`.
fn says(method: &str, then: &str) -> String {
    format!("echo '{}'; {then}", note(method))
}
