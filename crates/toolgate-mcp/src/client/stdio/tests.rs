//! Real processes: what is started is spoken to, and nothing of it is left.

mod ends;
mod limits;
mod pipes;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use toolgate_core::Redactor;

use super::*;
use crate::Connection;
use crate::client::message::Message;
use crate::client::transport::{End, Lost};

/// A hang, not a slow machine.
const HANG: Duration = Duration::from_secs(20);

/// What came out of a transport.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    Message(Message),
    Lost(Option<u64>, Lost),
    Closed(End),
}

pub(super) struct Channel(pub(super) mpsc::UnboundedSender<Event>);

impl Inbox for Channel {
    fn message(&self, message: Message) {
        self.0.send(Event::Message(message)).ok();
    }
    fn lost(&self, id: Option<u64>, problem: Lost) {
        self.0.send(Event::Lost(id, problem)).ok();
    }
    fn failed(&self, id: u64, error: TransportError) {
        panic!("{id}: {error}");
    }
    fn closed(&self, end: End) {
        self.0.send(Event::Closed(end)).ok();
    }
}

struct Server {
    stdio: Arc<Stdio>,
    events: mpsc::UnboundedReceiver<Event>,
    diagnostics: Arc<Diagnostics>,
}

impl Server {
    fn sh(script: &str) -> Self {
        Self::start(&sh(script), |_| {})
    }

    fn start(program: &Program, adjust: impl FnOnce(&mut ServerSettings)) -> Self {
        let shared = Shared {
            launcher: sandbox::Launcher::none(),
            chain: String::new(),
            guard: Guard::none(),
            max_message: 1024 * 1024,
        };
        let mut settings = ServerSettings::new("test", Connection::Stdio(program.clone()));
        adjust(&mut settings);
        let (sender, events) = mpsc::unbounded_channel();
        let diagnostics = Diagnostics::new("test", Redactor::new(["hunter2".to_owned()]));
        let stdio = Stdio::start(
            &settings,
            program,
            &shared,
            Arc::clone(&diagnostics),
            Arc::new(Channel(sender)),
            settings.is_package_runner(),
        );
        Self {
            stdio: stdio.unwrap(),
            events,
            diagnostics,
        }
    }

    async fn next(&mut self) -> Event {
        let event = timeout(HANG, self.events.recv()).await;
        event.expect("no event").expect("no end")
    }

    /// The method of the next notification.
    async fn told(&mut self) -> String {
        match self.next().await {
            Event::Message(Message::Notification { method, .. }) => method,
            other => panic!("{other:?}"),
        }
    }

    async fn end(&mut self) -> End {
        match self.next().await {
            Event::Closed(end) => end,
            other => panic!("{other:?}"),
        }
    }

    async fn send(&self, text: &str) -> Result<(), TransportError> {
        let message = Outgoing {
            id: None,
            method: None,
            name: None,
            headers: Vec::new(),
            body: format!("{text}\n").into_bytes(),
        };
        self.stdio.send(message).await
    }

    /// Closes it; after that nothing is left.
    async fn close(self) {
        timeout(HANG, self.stdio.close()).await.unwrap();
        assert!(!self.stdio.group.lives(), "processes are left");
    }
}

fn sh(script: &str) -> Program {
    Program {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        ..Program::default()
    }
}

fn note(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// A script that says a method, then does something.
fn says(method: &str, then: &str) -> String {
    format!("echo '{}'; {then}", note(method))
}
