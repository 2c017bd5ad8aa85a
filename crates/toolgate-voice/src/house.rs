//! What the rest of the house hears of the gateway, over MQTT: `voice/transcription`, `voice/ai-response`, `voice/status`.
//!
//! Nothing waits for the broker: one that is away costs the messages of that time, and the status is told once it is back.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use toolgate_journal::VoiceTurn;
use toolgate_mqtt::{Client, Mqtt, Settings, Will};
use tracing::debug;

use crate::{Event, Role, State, Watcher};

const TRANSCRIPTION: &str = "voice/transcription";
const RESPONSE: &str = "voice/ai-response";
/// What the gateway is doing; retained.
const STATUS: &str = "voice/status";

const SOURCE: &str = "toolgate-voice";
/// Messages that wait while the broker is slow; more are dropped.
const WAITING: usize = 64;
/// Places whose turns are counted. No house has more rooms: who names so many makes them up.
const MOST_TALKS: usize = 64;
const GOODBYE: Duration = Duration::from_secs(1);

pub(crate) struct House {
    messages: mpsc::Sender<(&'static str, Value)>,
    status: watch::Sender<Status>,
    memory: Mutex<Memory>,
    forget_after: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Status {
    is_ready: bool,
    missing: Option<String>,
    lost: Vec<Role>,
    state: &'static str,
    dropped: u64,
}

#[derive(Default)]
struct Memory {
    /// By where somebody talks: the source, and the room if that is known.
    talks: HashMap<(String, Option<String>), Talk>,
}

struct Talk {
    last_turn: Instant,
    turns: usize,
}

impl House {
    /// Begins to connect; `stop` ends it with a goodbye. The task is over once that is said.
    pub(crate) fn open(
        mut settings: Settings,
        forget_after: Duration,
        stop: CancellationToken,
    ) -> (Self, Client, tokio::task::JoinHandle<()>) {
        settings.will = Some(Will {
            topic: STATUS.to_owned(),
            payload: payload(&offline()),
            retain: true,
        });
        let client = Client::open(settings);
        let (messages, waiting) = mpsc::channel(WAITING);
        let (status, statuses) = watch::channel(Status {
            is_ready: false,
            missing: None,
            lost: Vec::new(),
            state: word(&State::Starting),
            dropped: 0,
        });
        let telling = tokio::spawn(tell(client.clone(), waiting, statuses, stop));
        let house = Self {
            messages,
            status,
            memory: Mutex::default(),
            forget_after,
        };
        (house, client, telling)
    }

    fn send(&self, topic: &'static str, message: Value) {
        if self.messages.try_send((topic, message)).is_err() {
            debug!(
                topic,
                "the broker is slow, and a message for the house is dropped"
            );
        }
    }

    fn heard(&self, input: &str, text: &str, took: Duration) {
        let message = json!({
            "text": text,
            "timestamp": now(),
            "source": SOURCE,
            "input": input,
            "duration": took.as_millis() as u64,
        });
        self.send(TRANSCRIPTION, message);
    }

    fn answered(&self, turn: &VoiceTurn) {
        let turns = self.memory.lock().count(turn, self.forget_after);
        // The sentences in front of a model have no name of their own.
        let (provider, model) = turn.model.split_once(' ').unwrap_or((&turn.model, ""));
        let stages = &turn.stages;
        // What is written begins with its words.
        let thinking = stages
            .ended_ms
            .map(|ended| ended - stages.transcribed_ms.unwrap_or(0.0));
        let message = json!({
            "question": turn.heard,
            "answer": turn.answer,
            "timestamp": now(),
            "source": SOURCE,
            "input": turn.source,
            "model": model,
            "provider": provider,
            "conversationTurns": turns,
            "duration": thinking.map(|took| took.round() as u64),
        });
        self.send(RESPONSE, message);
    }
}

impl Memory {
    /// Which turn of its conversation this is.
    fn count(&mut self, turn: &VoiceTurn, forget_after: Duration) -> usize {
        self.talks
            .retain(|_, talk| talk.last_turn.elapsed() <= forget_after);
        if self.talks.len() >= MOST_TALKS {
            self.talks.clear();
        }
        let place = (turn.source.clone(), turn.room.clone());
        let last_turn = Instant::now();
        let talk = self.talks.entry(place).or_insert(Talk {
            last_turn,
            turns: 0,
        });
        talk.last_turn = last_turn;
        talk.turns += 1;
        talk.turns
    }
}

impl Watcher for House {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::State(state) => {
                self.status.send_if_modified(|status| {
                    let old = std::mem::replace(&mut status.state, word(state));
                    old != status.state
                });
            }
            Event::Ready { .. } => self.status.send_modify(|status| status.is_ready = true),
            Event::Tools { missing } => {
                let missing = missing.map(str::to_owned);
                self.status.send_if_modified(|status| {
                    let old = std::mem::replace(&mut status.missing, missing);
                    old != status.missing
                });
            }
            Event::Lost { role, .. } => self.status.send_modify(|status| status.lost.push(role)),
            Event::Back(role) => self
                .status
                .send_modify(|status| status.lost.retain(|lost| *lost != role)),
            // What came in writing was not transcribed: it is told with its answer.
            Event::Heard {
                source,
                text,
                took: Some(took),
            } => self.heard(source, text, took),
            Event::Dropped { .. } => self.status.send_modify(|status| status.dropped += 1),
            Event::Turn(turn) => self.answered(turn),
            _ => {}
        }
    }
}

/// Publishes what is to be told, and the status anew whenever the broker is back.
async fn tell(
    client: Client,
    mut messages: mpsc::Receiver<(&'static str, Value)>,
    mut statuses: watch::Receiver<Status>,
    stop: CancellationToken,
) {
    let mut connection = client.state();
    loop {
        let (topic, message) = tokio::select! {
            () = stop.cancelled() => break,
            Some(message) = messages.recv() => message,
            Ok(()) = statuses.changed() => (STATUS, statuses.borrow_and_update().to_json()),
            Ok(()) = connection.changed() => (STATUS, statuses.borrow_and_update().to_json()),
            else => break,
        };
        if let Err(error) = client
            .publish(topic, payload(&message), topic == STATUS)
            .await
        {
            debug!(topic, %error, "the house is not told");
        }
    }
    let goodbye = client.publish(STATUS, payload(&offline()), true);
    if timeout(GOODBYE, goodbye).await.is_err() {
        debug!("the broker does not take the goodbye");
    }
}

impl Status {
    fn to_json(&self) -> Value {
        let missing = self.missing.as_ref();
        let missing = missing.map(|what| format!("{what} can not be reached"));
        let lost = self.lost.iter().map(|role| format!("{role} is away"));
        let reasons: Vec<String> = missing.into_iter().chain(lost).collect();
        let status = match (self.is_ready, reasons.is_empty()) {
            (false, _) => "starting",
            (true, true) => "ready",
            (true, false) => "degraded",
        };
        let reason = (!reasons.is_empty()).then(|| reasons.join(", "));
        json!({
            "status": status,
            "state": self.state,
            "reason": reason,
            "dropped": self.dropped,
            "timestamp": now(),
            "source": SOURCE,
        })
    }
}

fn offline() -> Value {
    json!({ "status": "offline", "source": SOURCE })
}

fn payload(message: &Value) -> Bytes {
    Bytes::from(message.to_string())
}

fn now() -> String {
    format!("{:.3}", Timestamp::now())
}

/// One word for automations; the name of a tool is not one.
fn word(state: &State) -> &'static str {
    match state {
        State::Starting => "starting",
        State::Waiting => "waiting",
        State::Listening => "listening",
        State::Hearing => "hearing",
        State::Transcribing => "transcribing",
        State::Thinking => "thinking",
        State::Calling(_) => "calling",
        State::Speaking => "speaking",
    }
}

#[cfg(test)]
mod tests;
