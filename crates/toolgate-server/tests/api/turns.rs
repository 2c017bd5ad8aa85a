//! Voice turns that another process wrote to the shared journal.

use serde_json::{Value, json};
use toolgate_core::Redactor;
use toolgate_journal::{Journal, JournalSettings, TurnOutcome, TurnStages, VoiceTurn};

use crate::test_gateway::{ApiTestGateway, TestGatewayOptions};

async fn gateway() -> ApiTestGateway {
    let plan = TestGatewayOptions {
        has_journal: true,
        ..TestGatewayOptions::default()
    };
    ApiTestGateway::start_with(plan).await
}

/// The journal of the voice gateway.
fn voice(gateway: &ApiTestGateway) -> Journal {
    let settings = JournalSettings::default();
    Journal::open(&gateway.journal, &settings, Redactor::default(), "voice").unwrap()
}

fn id(n: usize) -> String {
    format!("{n:032x}")
}

fn turn(n: usize) -> VoiceTurn {
    VoiceTurn {
        id: id(n),
        started_at: "2026-11-16T08:00:00.25Z".parse().unwrap(),
        source: "satellite".to_owned(),
        room: Some("kitchen".to_owned()),
        wake_word: None,
        heard: "turn on switch one".to_owned(),
        answer: "Switch one is on.".to_owned(),
        outcome: TurnOutcome::Answered,
        error: None,
        model: "intents en".to_owned(),
        stages: TurnStages::default(),
        calls: Vec::new(),
    }
}

fn ids(list: &Value) -> Vec<&str> {
    let turns = list.as_array().unwrap().iter();
    turns.map(|turn| turn["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn turns_of_another_process_are_listed_with_their_calls() {
    let gateway = gateway().await;
    let envelope = gateway.call("echo", &json!({})).await.json();
    let called = envelope["call_id"].as_str().unwrap();
    let mut asked = turn(1);
    asked.stages.transcribed_ms = Some(1650.5);
    asked.calls = vec![called.to_owned(), id(99)];
    let mut failed = turn(2);
    failed.outcome = TurnOutcome::Failed;
    failed.error = Some("no speech service answers".to_owned());
    let mut interrupted = turn(3);
    interrupted.outcome = TurnOutcome::Interrupted;
    let journal = voice(&gateway);
    for turn in [&asked, &failed, &interrupted] {
        journal.record_turn(turn);
    }
    journal.close().await;

    let list = gateway.get("/api/turns").await.json();
    assert_eq!(ids(&list), [id(3), id(2), id(1)]);
    let outcomes: Vec<&Value> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| &turn["outcome"])
        .collect();
    assert_eq!(outcomes, ["interrupted", "failed", "answered"]);
    assert_eq!(list[1]["error"], "no speech service answers");
    let mut first = gateway.get(&format!("/api/turns/{}", id(1))).await.json();
    assert_eq!(first, list[2]);
    assert!(first["calls"][0]["duration_ms"].take().is_number());
    let nothing = Value::Null;
    let expected = json!({
        "id": id(1), "started_at": "2026-11-16T08:00:00.250Z", "source": "satellite", "room": "kitchen", "wake_word": nothing,
        "heard": "turn on switch one", "answer": "Switch one is on.", "outcome": "answered", "model": "intents en",
        "stages": { "speech_ended_ms": nothing, "transcribed_ms": 1650.5, "first_token_ms": nothing,
            "first_audio_ms": nothing, "ended_ms": nothing },
        "calls": [
            { "id": called, "tool": "echo", "outcome": "success", "duration_ms": nothing },
            { "id": id(99), "tool": nothing, "outcome": nothing, "duration_ms": nothing },
        ],
    });
    assert_eq!(first, expected);
}

#[tokio::test]
async fn turns_are_paged_back_and_new_ones_fetched() {
    let gateway = gateway().await;
    let journal = voice(&gateway);
    for n in 1..=5 {
        journal.record_turn(&turn(n));
    }
    journal.flush().await;
    for (query, expected) in [
        ("limit=2".to_owned(), vec![5, 4]),
        (format!("limit=2&before={}", id(4)), vec![3, 2]),
        (format!("before={}", id(2)), vec![1]),
        (format!("before={}", id(1)), vec![]),
        (format!("after={}", id(3)), vec![5, 4]),
        (format!("after={}", id(5)), vec![]),
        (format!("after={}", id(9)), vec![5, 4, 3, 2, 1]),
    ] {
        let list = gateway.get(&format!("/api/turns?{query}")).await.json();
        let expected: Vec<String> = expected.into_iter().map(id).collect();
        assert_eq!(ids(&list), expected, "{query}");
    }
    journal.record_turn(&turn(6));
    journal.flush().await;
    let new = gateway.get(&format!("/api/turns?after={}", id(5))).await;
    assert_eq!(ids(&new.json()), [id(6)]);
}

#[tokio::test]
async fn invalid_turn_queries_are_rejected() {
    for gateway in [gateway().await, ApiTestGateway::start().await] {
        assert_eq!(gateway.get("/api/turns").await.json(), json!([]));
        for query in [
            "limit=0",
            "limit=201",
            "limit=x",
            "before=7",
            "after=%27",
            &format!("before={0}&after={0}", id(1)),
        ] {
            let refused = gateway.get(&format!("/api/turns?{query}")).await;
            assert_eq!(refused.status, 400, "{query}");
            refused.problem();
        }
        for unknown in [&id(1), "x", "%00"] {
            let missing = gateway.get(&format!("/api/turns/{unknown}")).await;
            assert_eq!(missing.status, 404, "{unknown}");
            assert!(missing.problem().contains("/api/turns lists"), "{unknown}");
        }
    }
}
