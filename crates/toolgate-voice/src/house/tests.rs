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

    for (missing, expected) in [
        (Some("the smart home"), "the smart home can not be reached"),
        (None, ""),
    ] {
        house.event(Event::Tools { missing });
        let status = if missing.is_some() {
            "degraded"
        } else {
            "ready"
        };
        let (_, told) = until(&mut messages, |_, value| value["status"] == status).await;
        assert_eq!(told["reason"].as_str().unwrap_or_default(), expected);
    }

    house.event(Event::State(&State::Transcribing));
    let text = "what time is it";
    house.event(Event::Heard {
        source: HANDLE,
        text: "beside it",
    });
    house.event(Event::Heard {
        source: "microphone",
        text,
    });
    let (_, written) = until(&mut messages, |topic, _| topic == TRANSCRIPTION).await;
    assert_eq!(written["duration"], Value::Null);
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
        assert_eq!(answer["duration"], 334);
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
        house.event(Event::Heard {
            source: "microphone",
            text: "hello",
        });
    }
    stop.cancel();
    timeout(Duration::from_secs(20), telling)
        .await
        .unwrap()
        .unwrap();
}
