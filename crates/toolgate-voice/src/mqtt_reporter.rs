//! Publishes what the gateway does over MQTT, as
//! `voice/transcription`, `voice/ai-response` and `voice/status`.
//!
//! Nothing waits for the broker. While it is away, messages are lost; the status is published again
//! once it is back.

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
use toolgate_mqtt::{LastWill, Mqtt, MqttClient, MqttClientSettings};
use tracing::debug;

use crate::{EngineRole, VoiceEvent, VoiceObserver, VoiceState};

const TRANSCRIPTION: &str = "voice/transcription";
const RESPONSE: &str = "voice/ai-response";
/// Retained, so that new subscribers get it at once.
const STATUS: &str = "voice/status";

const SOURCE: &str = "toolgate-voice";
/// Messages that wait for a slow broker. More are dropped.
const MESSAGE_CAPACITY: usize = 64;
// No home has more rooms. A client that names more is making them up.
const MAX_ROOMS: usize = 64;
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) struct MqttReporter {
    messages: mpsc::Sender<(&'static str, Value)>,
    status: watch::Sender<MqttVoiceStatus>,
    turn_counts: Mutex<TurnCounts>,
    forget_after: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct MqttVoiceStatus {
    is_ready: bool,
    missing: Option<String>,
    lost: Vec<EngineRole>,
    state: &'static str,
    dropped: u64,
}

#[derive(Default)]
struct TurnCounts(HashMap<(String, Option<String>), TurnCount>);

struct TurnCount {
    last_turn: Instant,
    turns: usize,
}

impl MqttReporter {
    /// Starts to connect. When `stop` is cancelled, the task says goodbye and ends.
    pub(crate) fn open(
        mut settings: MqttClientSettings,
        forget_after: Duration,
        stop: CancellationToken,
    ) -> (Self, MqttClient, tokio::task::JoinHandle<()>) {
        settings.will = Some(LastWill {
            topic: STATUS.to_owned(),
            payload: to_payload(&offline_status()),
            retain: true,
        });
        let client = MqttClient::open(settings);
        let (messages, waiting) = mpsc::channel(MESSAGE_CAPACITY);
        let (status, statuses) = watch::channel(MqttVoiceStatus {
            is_ready: false,
            missing: None,
            lost: Vec::new(),
            state: state_word(&VoiceState::Starting),
            dropped: 0,
        });
        let publisher = tokio::spawn(publish_all(client.clone(), waiting, statuses, stop));
        let reporter = Self {
            messages,
            status,
            turn_counts: Mutex::default(),
            forget_after,
        };
        (reporter, client, publisher)
    }

    fn update(&self, change: impl FnOnce(&mut MqttVoiceStatus)) {
        self.status.send_if_modified(|status| {
            let old = status.clone();
            change(status);
            *status != old
        });
    }

    fn send(&self, topic: &'static str, message: Value) {
        if self.messages.try_send((topic, message)).is_err() {
            debug!(topic, "dropped an MQTT message: the broker is slow");
        }
    }

    fn send_transcription(&self, input: &str, text: &str, took: Duration) {
        let message = json!({
            "text": text,
            "timestamp": timestamp_now(),
            "source": SOURCE,
            "input": input,
            "duration": took.as_millis() as u64,
        });
        self.send(TRANSCRIPTION, message);
    }

    fn send_response(&self, turn: &VoiceTurn) {
        let turns = self.turn_counts.lock().count(turn, self.forget_after);
        // The sentence matcher has no model name.
        let (provider, model) = turn.model.split_once(' ').unwrap_or((&turn.model, ""));
        let stages = &turn.stages;
        // A written request has no transcription stage.
        let thinking = stages
            .ended_ms
            .map(|ended| ended - stages.transcribed_ms.unwrap_or(0.0));
        let message = json!({
            "question": turn.heard,
            "answer": turn.answer,
            "timestamp": timestamp_now(),
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

impl TurnCounts {
    fn count(&mut self, turn: &VoiceTurn, forget_after: Duration) -> usize {
        self.0
            .retain(|_, room| room.last_turn.elapsed() <= forget_after);
        // Losing counts is harmless, and an attacker can't grow the map.
        if self.0.len() >= MAX_ROOMS {
            self.0.clear();
        }
        let key = (turn.source.clone(), turn.room.clone());
        let last_turn = Instant::now();
        let first = TurnCount {
            last_turn,
            turns: 0,
        };
        let room = self.0.entry(key).or_insert(first);
        room.last_turn = last_turn;
        room.turns += 1;
        room.turns
    }
}

impl VoiceObserver for MqttReporter {
    fn event(&self, event: VoiceEvent<'_>) {
        match event {
            VoiceEvent::State(state) => {
                self.update(|status| status.state = state_word(state));
            }
            VoiceEvent::Ready { .. } => self.update(|status| status.is_ready = true),
            VoiceEvent::Tools { missing } => {
                self.update(|status| status.missing = missing.map(str::to_owned));
            }
            VoiceEvent::Lost { role, .. } => self.update(|status| status.lost.push(role)),
            VoiceEvent::Back(role) => {
                self.update(|status| status.lost.retain(|lost| *lost != role));
            }
            // A written request was not transcribed. It is published with its answer.
            VoiceEvent::Heard {
                source,
                text,
                took: Some(took),
            } => self.send_transcription(source, text, took),
            VoiceEvent::Dropped { .. } => self.update(|status| status.dropped += 1),
            VoiceEvent::Turn(turn) => self.send_response(turn),
            _ => {}
        }
    }
}

async fn publish_all(
    client: MqttClient,
    mut messages: mpsc::Receiver<(&'static str, Value)>,
    mut statuses: watch::Receiver<MqttVoiceStatus>,
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
            .publish(topic, to_payload(&message), topic == STATUS)
            .await
        {
            debug!(topic, %error, "publishing failed");
        }
    }
    let goodbye = client.publish(STATUS, to_payload(&offline_status()), true);
    if timeout(GOODBYE_TIMEOUT, goodbye).await.is_err() {
        debug!("the broker did not accept the goodbye");
    }
}

impl MqttVoiceStatus {
    fn to_json(&self) -> Value {
        let missing = self.missing.as_ref();
        let missing = missing.map(|what| format!("{what} is unreachable"));
        let lost = self
            .lost
            .iter()
            .map(|role| format!("{role} is unavailable"));
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
            "timestamp": timestamp_now(),
            "source": SOURCE,
        })
    }
}

fn offline_status() -> Value {
    json!({ "status": "offline", "source": SOURCE })
}

fn to_payload(message: &Value) -> Bytes {
    Bytes::from(message.to_string())
}

fn timestamp_now() -> String {
    format!("{:.3}", Timestamp::now())
}

// Automations compare this word, so it has no tool name in it.
fn state_word(state: &VoiceState) -> &'static str {
    match state {
        VoiceState::Starting => "starting",
        VoiceState::Waiting => "waiting",
        VoiceState::Listening => "listening",
        VoiceState::Hearing => "hearing",
        VoiceState::Transcribing => "transcribing",
        VoiceState::Thinking => "thinking",
        VoiceState::Calling(_) => "calling",
        VoiceState::Speaking => "speaking",
    }
}

#[cfg(test)]
mod tests;
