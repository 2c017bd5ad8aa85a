//! What the rest of the house hears of the gateway, over MQTT: `voice/transcription`, `voice/ai-response`, `voice/status`.
//!
//! Nothing waits for the broker: one that is away costs the messages of that time, and the status is told once it is back.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use toolgate_journal::VoiceTurn;
use toolgate_mqtt::{Client, Mqtt, Settings, Will};
use tracing::debug;

use crate::{Event, Role, State, Watcher};

/// What was heard.
const TRANSCRIPTION: &str = "voice/transcription";
/// What was answered.
const RESPONSE: &str = "voice/ai-response";
/// What the gateway is doing; retained.
const STATUS: &str = "voice/status";

/// Who says so.
const SOURCE: &str = "toolgate-voice";
/// Messages that wait while the broker is slow; more are dropped.
const WAITING: usize = 64;
/// How long the goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// Tells the house what happens.
pub(crate) struct House {
    messages: mpsc::Sender<(&'static str, Value)>,
    status: watch::Sender<Status>,
    memory: Mutex<Memory>,
    forget_after: Duration,
}

/// What is told as the status.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Status {
    is_ready: bool,
    degraded: Option<String>,
    /// Engines that are away.
    lost: Vec<Role>,
    state: &'static str,
}

/// What a message needs besides the event it tells of.
#[derive(Default)]
struct Memory {
    transcribing: Option<Instant>,
    last_turn: Option<Instant>,
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
            degraded: None,
            lost: Vec::new(),
            state: word(&State::Starting),
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

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self, text: &str) {
        let since = self.memory().transcribing.take();
        let took = since.map(|since| since.elapsed().as_millis());
        let message = json!({
            "text": text,
            "timestamp": now(),
            "source": SOURCE,
            "duration": took,
        });
        self.send(TRANSCRIPTION, message);
    }

    fn answered(&self, turn: &VoiceTurn) {
        let turns = self.memory().count(self.forget_after);
        let (provider, model) = turn.model.split_once(' ').unwrap_or(("", &turn.model));
        let stages = &turn.stages;
        let thinking = stages.ended_ms.zip(stages.transcribed_ms);
        let message = json!({
            "question": turn.heard,
            "answer": turn.answer,
            "timestamp": now(),
            "source": SOURCE,
            "model": model,
            "provider": provider,
            "conversationTurns": turns,
            "duration": thinking.map(|(end, start)| (end - start).round()),
        });
        self.send(RESPONSE, message);
    }
}

impl Memory {
    /// Which turn of a conversation this is.
    fn count(&mut self, forget_after: Duration) -> usize {
        let is_new = self
            .last_turn
            .is_none_or(|last| last.elapsed() > forget_after);
        self.turns = if is_new { 1 } else { self.turns + 1 };
        self.last_turn = Some(Instant::now());
        self.turns
    }
}

impl Watcher for House {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::State(state) => {
                if *state == State::Transcribing {
                    self.memory().transcribing = Some(Instant::now());
                }
                self.status.send_if_modified(|status| {
                    let old = std::mem::replace(&mut status.state, word(state));
                    old != status.state
                });
            }
            Event::Ready { degraded } => self.status.send_modify(|status| {
                status.is_ready = true;
                status.degraded = degraded.map(str::to_owned);
            }),
            Event::Lost { role, .. } => self.status.send_modify(|status| status.lost.push(role)),
            Event::Back(role) => self
                .status
                .send_modify(|status| status.lost.retain(|lost| *lost != role)),
            Event::Heard(text) => self.heard(text),
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
        let lost = self.lost.iter().map(|role| format!("{role} is away"));
        // What was said at the start, and what is away now.
        let reasons: Vec<String> = self.degraded.iter().cloned().chain(lost).collect();
        let status = match (self.is_ready, reasons.is_empty()) {
            (false, _) => "starting",
            (true, true) => "ready",
            (true, false) => "degraded",
        };
        let reason = (!reasons.is_empty()).then(|| reasons.join(" "));
        json!({
            "status": status,
            "state": self.state,
            "reason": reason,
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
mod tests {
    use toolgate_journal::{TurnOutcome, TurnStages};
    use toolgate_mqtt::{Broker, BrokerSettings};

    use super::*;

    fn turn() -> VoiceTurn {
        VoiceTurn {
            id: "0".repeat(32),
            started_at: Timestamp::now(),
            source: "wav".to_owned(),
            room: None,
            wake_word: None,
            heard: "what time is it".to_owned(),
            answer: "It is noon.".to_owned(),
            outcome: TurnOutcome::Answered,
            error: None,
            model: "intents en".to_owned(),
            stages: TurnStages {
                transcribed_ms: Some(900.0),
                ended_ms: Some(1234.4),
                ..TurnStages::default()
            },
            calls: Vec::new(),
        }
    }

    /// The next message that the predicate likes.
    async fn until(
        messages: &mut toolgate_mqtt::Subscription,
        wanted: impl Fn(&str, &Value) -> bool,
    ) -> (bool, Value) {
        let waiting = async {
            loop {
                let message = messages.next().await.unwrap();
                let value: Value = serde_json::from_slice(&message.payload).unwrap();
                if wanted(&message.topic, &value) {
                    return (message.retained, value);
                }
            }
        };
        timeout(Duration::from_secs(20), waiting).await.unwrap()
    }

    #[tokio::test]
    async fn the_house_hears_of_requests_answers_and_the_end() {
        let broker = Broker::start(BrokerSettings::default()).await.unwrap();
        let settings = || Settings::new(&broker.url()).unwrap();
        let other = Client::open(settings());
        let mut messages = other.subscribe("voice/#");
        let stop = CancellationToken::new();
        let (house, _, telling) = House::open(settings(), Duration::from_secs(120), stop.clone());
        until(&mut messages, |_, value| value["status"] == "starting").await;

        let role = Role::Wake;
        house.event(Event::Ready { degraded: None });
        house.event(Event::Lost { role, why: "gone" });
        let (_, status) = until(&mut messages, |_, value| value["status"] == "degraded").await;
        assert_eq!(status["reason"], "wake word is away");
        house.event(Event::Back(role));
        until(&mut messages, |_, value| value["status"] == "ready").await;

        house.event(Event::Ready {
            degraded: Some("no smart home"),
        });
        let (_, status) = until(&mut messages, |_, value| value["status"] == "degraded").await;
        assert_eq!(status["reason"], "no smart home");

        house.event(Event::State(&State::Transcribing));
        house.event(Event::Heard("what time is it"));
        let (_, heard) = until(&mut messages, |topic, _| topic == TRANSCRIPTION).await;
        assert_eq!(
            (&heard["text"], heard["duration"].is_u64()),
            (&json!("what time is it"), true)
        );

        for turns in 1..=2 {
            house.event(Event::Turn(&turn()));
            let (_, answer) = until(&mut messages, |topic, _| topic == RESPONSE).await;
            assert_eq!(answer["conversationTurns"], turns);
            assert_eq!(
                (&answer["provider"], &answer["model"]),
                (&json!("intents"), &json!("en"))
            );
            assert_eq!(answer["duration"], 334.0);
        }

        stop.cancel();
        telling.await.unwrap();
        let another = Client::open(settings());
        let mut later = another.subscribe(STATUS);
        let (retained, status) = until(&mut later, |_, _| true).await;
        assert_eq!((retained, &status["status"]), (true, &json!("offline")));
        broker.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_conversation_is_new_after_a_while() {
        let mut memory = Memory::default();
        let forget = Duration::from_secs(120);
        assert_eq!((memory.count(forget), memory.count(forget)), (1, 2));
        tokio::time::advance(Duration::from_secs(121)).await;
        assert_eq!(memory.count(forget), 1);
    }

    #[tokio::test]
    async fn a_broker_that_is_away_costs_nothing() {
        let settings = Settings::new("mqtt://127.0.0.1:9").unwrap();
        let stop = CancellationToken::new();
        let (house, _, telling) = House::open(settings, Duration::from_secs(1), stop.clone());
        for _ in 0..10_000 {
            house.event(Event::Heard("hello"));
        }
        stop.cancel();
        timeout(Duration::from_secs(20), telling)
            .await
            .unwrap()
            .unwrap();
    }
}
