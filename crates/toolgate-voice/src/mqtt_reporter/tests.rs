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

/// A spoken or written turn.
fn heard(took: Option<Duration>) -> VoiceEvent<'static> {
    VoiceEvent::Heard {
        source: if took.is_some() { "wav" } else { "handle" },
        text: "what time is it",
        took,
    }
}

/// The next message that matches.
async fn until(
    messages: &mut toolgate_mqtt::TopicSubscription,
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
async fn requests_answers_and_the_end_are_published() {
    let broker = Broker::start(BrokerSettings::default()).await.unwrap();
    let settings = || MqttClientSettings::new(&broker.url()).unwrap();
    let other = MqttClient::open(settings());
    let mut messages = other.subscribe("voice/#");
    let stop = CancellationToken::new();
    let (house, _, telling) =
        MqttReporter::open(settings(), Duration::from_secs(120), stop.clone());
    until(&mut messages, |_, value| value["status"] == "starting").await;

    let role = EngineRole::Wake;
    house.event(VoiceEvent::Ready { degraded: None });
    house.event(VoiceEvent::Lost { role, why: "gone" });
    let (_, status) = until(&mut messages, |_, value| value["status"] == "degraded").await;
    assert_eq!(status["reason"], "wake word is unavailable");
    house.event(VoiceEvent::Back(role));
    until(&mut messages, |_, value| value["status"] == "ready").await;

    for (missing, expected) in [
        (Some("the smart home"), "the smart home is unreachable"),
        (None, ""),
    ] {
        house.event(VoiceEvent::Tools { missing });
        let status = if missing.is_some() {
            "degraded"
        } else {
            "ready"
        };
        let (_, told) = until(&mut messages, |_, value| value["status"] == status).await;
        assert_eq!(told["reason"].as_str().unwrap_or_default(), expected);
    }

    let (source, heard_text, why) = ("wav", "", "too quiet");
    for _ in 0..2 {
        house.event(VoiceEvent::Dropped {
            source,
            heard: heard_text,
            why,
        });
    }
    until(&mut messages, |_, value| value["dropped"] == 2).await;

    // A written request meanwhile is not speech and must not change its state.
    house.event(heard(None));
    house.event(heard(Some(Duration::from_micros(900_400))));
    let (_, told) = until(&mut messages, |topic, _| topic == TRANSCRIPTION).await;
    assert_eq!(
        [&told["text"], &told["input"], &told["duration"]],
        [&json!("what time is it"), &json!("wav"), &json!(900)]
    );

    for turns in 1..=2 {
        house.event(VoiceEvent::Turn(&turn()));
        let (_, answer) = until(&mut messages, |topic, _| topic == RESPONSE).await;
        assert_eq!(answer["conversationTurns"], turns);
        assert_eq!(
            (&answer["provider"], &answer["model"]),
            (&json!("intents"), &json!("en"))
        );
        assert_eq!(
            (&answer["input"], &answer["duration"]),
            (&json!("wav"), &json!(334))
        );
    }
    let mut written = turn();
    written.source = "handle".to_owned();
    written.model = "intents".to_owned();
    written.stages.transcribed_ms = None;
    house.event(VoiceEvent::Turn(&written));
    let (_, answer) = until(&mut messages, |topic, _| topic == RESPONSE).await;
    for (key, expected) in [
        ("input", json!("handle")),
        ("duration", json!(1234)),
        ("conversationTurns", json!(1)),
        ("provider", json!("intents")),
        ("model", json!("")),
    ] {
        assert_eq!(answer[key], expected, "{key}");
    }

    stop.cancel();
    telling.await.unwrap();
    let another = MqttClient::open(settings());
    let mut later = another.subscribe(STATUS);
    let (retained, status) = until(&mut later, |_, _| true).await;
    assert_eq!((retained, &status["status"]), (true, &json!("offline")));
    broker.stop().await;
}

#[tokio::test(start_paused = true)]
async fn turns_are_counted_per_room_until_forgotten() {
    let mut turn_counts = TurnCounts::default();
    let mut count = |source: &str, room: Option<&str>| {
        let turn = VoiceTurn {
            source: source.to_owned(),
            room: room.map(str::to_owned),
            ..turn()
        };
        turn_counts.count(&turn, Duration::from_secs(120))
    };
    for (source, room, expected) in [
        ("satellite", Some("Kitchen"), 1),
        ("satellite", Some("Kitchen"), 2),
        ("handle", None, 1),
        ("handle", Some("Kitchen"), 1),
        ("satellite", Some("Kitchen"), 3),
    ] {
        assert_eq!(count(source, room), expected, "{source} {room:?}");
    }
    tokio::time::advance(Duration::from_secs(121)).await;
    assert_eq!(count("satellite", Some("Kitchen")), 1);
    assert_eq!(turn_counts.0.len(), 1, "what is forgotten is not kept");
}

#[tokio::test]
async fn a_broker_that_is_away_costs_nothing() {
    let settings = MqttClientSettings::new("mqtt://127.0.0.1:9").unwrap();
    let stop = CancellationToken::new();
    let (house, _, telling) = MqttReporter::open(settings, Duration::from_secs(1), stop.clone());
    for _ in 0..10_000 {
        house.event(heard(Some(Duration::ZERO)));
    }
    stop.cancel();
    timeout(Duration::from_secs(20), telling)
        .await
        .unwrap()
        .unwrap();
}
