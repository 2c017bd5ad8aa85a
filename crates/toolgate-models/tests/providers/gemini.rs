//! What only Gemini does.

use fakellm::{Answer, Api, Script};
use serde_json::{Value, json};
use toolgate_models::{ModelError, TurnEnd};

use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{TestConversation, golden};

const API: Api = Api::Gemini;

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
    golden("gemini-1.json", &requests[0].body);
    golden("gemini-2.json", &requests[1].body);
    assert_eq!(
        requests[0].path,
        "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"
    );
    assert_eq!(
        requests[0].header("x-goog-api-key"),
        Some("test-key-1234567890")
    );
}

/// The double refuses a call without the signature it came with, and a call with another one.
#[tokio::test]
async fn signatures_go_back_unchanged_over_all_rounds_of_a_turn() {
    let asks = |id: &str, signature: &str| {
        Answer::empty()
            .and_thinking("Where?", signature)
            .and_call(id, "get_weather", &json!({ "city": "Oslo" }))
            .and_call(&format!("{id}b"), "clock", &json!({}))
    };
    let answers = [
        asks("a", "sig+1/=="),
        asks("c", "sig+2/=="),
        Answer::text("3 degrees.").and_thinking("Done.", "sig+3/=="),
        Answer::text("Bye."),
    ];
    let mut talk = TestConversation::with(
        API,
        Script::new(answers),
        RecordedTools::new(),
        |settings| {
            settings.max_same_calls = 9;
            settings.think = Some(true);
        },
    )
    .await;
    talk.says("Oslo?").await;
    talk.says("Thanks.").await;
    let last = talk.last().to_string();
    for signature in ["sig+1/==", "sig+2/==", "sig+3/=="] {
        let times = last.matches(signature).count();
        assert_eq!(times, 1, "{signature}: {last}");
    }
    assert!(
        !last.contains("Where?"),
        "thoughts are not sent back: {last}"
    );
}

#[tokio::test]
async fn a_call_that_could_not_be_read_is_asked_for_again() {
    let broken = Answer::empty().stop("MALFORMED_FUNCTION_CALL");
    let mut talk = TestConversation::new(API, [broken, Answer::text("Here.")]).await;
    assert_eq!(talk.says("go").await.answer, "Here.");
    assert!(
        talk.reported
            .iter()
            .any(|it| it.contains("MALFORMED_FUNCTION_CALL"))
    );
}

#[tokio::test]
async fn a_blocked_answer_is_a_refusal_not_an_error() {
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"}}\n\n";
    for answer in [Answer::raw(blocked), Answer::empty().stop("SAFETY")] {
        let mut talk = TestConversation::new(API, [answer]).await;
        let turn = talk.says("go").await;
        assert_eq!(turn.end, TurnEnd::Refusal);
        assert_eq!(turn.answer, "The model declined to answer.");
    }
}

#[tokio::test]
async fn schemas_use_only_documented_keywords() {
    let hard = json!({
        "type": "object",
        "$defs": { "city": { "type": "string", "pattern": "^[A-Z]", "minLength": 2 } },
        "properties": {
            "city": { "$ref": "#/$defs/city" },
            "days": { "type": ["integer", "null"], "exclusiveMinimum": 0, "multipleOf": 2 },
            "unit": { "const": "C" },
            "tags": { "type": "array", "uniqueItems": true, "maxItems": 3 },
        },
        "required": ["city"],
        "additionalProperties": false,
    });
    let recorded =
        RecordedTools::empty().with("hard", hard, |_| Ok(toolgate_core::ToolOutput::text("ok")));
    let script = Script::new([Answer::text("Hi.")]);
    let mut talk = TestConversation::with(API, script, recorded, |_| {}).await;
    talk.says("go").await;
    let (_, schema) = talk.offered().remove(0);
    assert_eq!(schema["properties"]["tags"]["maxItems"], 3);
    let told = schema.to_string();
    for lost in [
        "pattern\"",
        "exclusiveMinimum\"",
        "const\"",
        "$ref",
        "$defs",
        "uniqueItems\"",
    ] {
        assert!(!told.contains(lost), "{lost}: {told}");
    }
}

#[tokio::test]
async fn a_wrong_key_is_reported() {
    let wrong = Answer::fails(
        400,
        "invalid_argument",
        "API key not valid. Please pass a valid API key.",
    );
    let mut talk = TestConversation::new(API, [wrong]).await;
    let error = talk.tries("go").await.unwrap_err();
    assert!(matches!(error, ModelError::Key { .. }), "{error:?}");
    assert_ne!(talk.last(), Value::Null);
}
