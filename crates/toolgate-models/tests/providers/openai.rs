//! What only OpenAI and compatible servers do.

use fakellm::{Answer, Api, FakeLlm, FakeModel, Script};
use serde_json::json;
use toolgate_models::ModelError;

use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{MODEL, TestConversation, does_without, golden};

const API: Api = Api::OpenAi;

#[tokio::test]
async fn every_byte_of_a_request_is_known() {
    let answers = [
        Answer::text("Let me see.")
            .and_call("call_1", "get_weather", &json!({ "city": "Oslo" }))
            .and_call("call_2", "broken", &json!({})),
        Answer::text("3 degrees; the sensor is broken."),
    ];
    let mut talk = TestConversation::with(
        API,
        Script::new(answers),
        RecordedTools::new(),
        |settings| {
            settings.system = "Be brief.".to_owned();
        },
    )
    .await;
    talk.says("Oslo, and the sensor?").await;
    let requests = talk.fake.requests();
    golden("openai-1.json", &requests[0].body);
    golden("openai-2.json", &requests[1].body);
    assert_eq!(
        requests[0].header("authorization"),
        Some("Bearer test-key-1234567890")
    );
}

/// Self-hosted servers need no key, and must not get a `Bearer` without one.
#[tokio::test]
async fn without_a_key_none_is_sent() {
    let mut talk = TestConversation::with(
        API,
        Script::new([Answer::text("Hi.")]),
        RecordedTools::new(),
        |settings| settings.key = String::new(),
    )
    .await;
    talk.says("hello").await;
    assert_eq!(talk.fake.requests()[0].header("authorization"), None);
}

/// Alternating pieces of two calls: only the index tells them apart.
#[tokio::test]
async fn pieces_of_calls_are_put_together_by_their_index() {
    let event = |delta: serde_json::Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    };
    let begin = |index: u32, id: &str| {
        event(
            json!({ "tool_calls": [{ "index": index, "id": id, "type": "function",
            "function": { "name": "get_weather", "arguments": "" } }] }),
        )
    };
    let piece = |index: u32, text: &str| {
        event(json!({ "tool_calls": [{ "index": index, "function": { "arguments": text } }] }))
    };
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
    let body = [
        begin(0, "a"),
        begin(1, "b"),
        piece(1, "{\"city\":"),
        piece(0, "{\"city\":"),
        piece(0, "\"Oslo\"}"),
        piece(1, "\"Rome\"}"),
        end.to_owned(),
    ]
    .concat();
    let mut talk = TestConversation::new(API, [Answer::raw(body), Answer::text("Both.")]).await;
    talk.says("Oslo and Rome?").await;
    let cities: Vec<_> = talk
        .recorded
        .calls()
        .into_iter()
        .map(|(_, arguments)| arguments["city"].clone())
        .collect();
    assert_eq!(cities, ["Oslo", "Rome"]);
    assert_eq!(talk.results()[0].0, "a");
}

/// Reasoning models use another name for the same limit. For a self-hosted server the right name is
/// unknown until it refuses one; the next request then has the other.
#[tokio::test]
async fn a_reasoning_model_gets_its_own_limit() {
    let script = Script::always(Answer::text("Hi."));
    let mut talk = TestConversation::with(API, script, RecordedTools::new(), |settings| {
        settings.name = "gpt-5-mini".to_owned();
    })
    .await;
    for _ in 0..2 {
        assert_eq!(talk.tries("hello").await.unwrap().answer, "Hi.");
        assert!(
            talk.last()["max_completion_tokens"].is_u64(),
            "{}",
            talk.last()
        );
    }
    assert_eq!(talk.fake.refusals().len(), 1, "{:?}", talk.fake.refusals());
    assert_eq!(talk.fake.requests().len(), 3);
}

#[tokio::test]
async fn a_reasoning_model_gets_no_temperature_again() {
    let script = Script::always(Answer::text("Hi."));
    let talk = TestConversation::with(API, script, RecordedTools::new(), |settings| {
        settings.name = "gpt-5-mini".to_owned();
        settings.temperature = Some(0.5);
    });
    does_without(talk.await, "temperature", "model.temperature").await;
}

#[tokio::test]
async fn a_self_hosted_server_is_told_whether_to_think() {
    for think in [false, true] {
        let script = Script::new([Answer::text("Hi.")]);
        let fake = FakeLlm::self_hosted(script, FakeModel::new(MODEL)).await;
        let mut talk = TestConversation::at(API, fake, RecordedTools::new(), |settings| {
            settings.think = Some(think);
        });
        talk.says("hello").await;
        let sent = &talk.last()["chat_template_kwargs"];
        assert_eq!(*sent, json!({ "enable_thinking": think }));
    }
}

#[tokio::test]
async fn a_refused_thinking_option_is_not_sent_again() {
    let script = Script::always(Answer::text("Hi."));
    let talk = TestConversation::with(API, script, RecordedTools::new(), |settings| {
        settings.think = Some(false);
    });
    does_without(talk.await, "chat_template_kwargs", "model.think").await;
}

#[tokio::test]
async fn a_spent_quota_is_reported_and_not_retried() {
    let spent = Answer::fails(429, "insufficient_quota", "You exceeded your current quota");
    let mut talk = TestConversation::new(API, [spent]).await;
    let error = talk.tries("hello").await.unwrap_err();
    assert!(
        matches!(
            error,
            ModelError::Limited {
                retryable: false,
                ..
            }
        ),
        "{error:?}"
    );
}
