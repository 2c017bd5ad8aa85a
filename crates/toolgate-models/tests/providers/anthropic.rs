//! What only Anthropic does.

use fakellm::{Answer, Api, Script};
use serde_json::json;
use toolgate_models::{ModelError, TurnEnd};

use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{TestConversation, asks_for_oslo, does_without, golden};

const API: Api = Api::Anthropic;

#[tokio::test]
async fn ai1_a_tool_use_is_executed_and_its_result_goes_back() {
    let mut talk = TestConversation::new(API, [asks_for_oslo(), Answer::text("3 degrees.")]).await;
    let turn = talk.says("How warm is it in Oslo?").await;
    assert_eq!(turn.answer, "3 degrees.");
    assert_eq!(
        talk.recorded.calls(),
        [("get_weather".to_owned(), json!({ "city": "Oslo" }))]
    );
    let envelope = serde_json::to_value(&turn.rounds[0].calls[0])
        .unwrap()
        .to_string();
    assert!(envelope.contains("get_weather"), "{envelope}");
    let tool = talk
        .offered()
        .into_iter()
        .find(|(name, _)| name == "get_weather")
        .unwrap();
    assert_eq!(tool.1["properties"]["city"]["type"], "string");
}

#[tokio::test]
async fn every_byte_of_a_request_is_known() {
    let answers = [
        Answer::text("Let me see.")
            .and_call("toolu_1", "get_weather", &json!({ "city": "Oslo" }))
            .and_call("toolu_2", "broken", &json!({})),
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
    golden("anthropic-1.json", &requests[0].body);
    golden("anthropic-2.json", &requests[1].body);
    assert_eq!(requests[0].header("x-api-key"), Some("test-key-1234567890"));
    assert_eq!(requests[0].header("authorization"), None);
}

#[tokio::test]
async fn thinking_goes_back_with_its_signature() {
    let thinks = Answer::empty()
        .and_thinking("The person wants Oslo.", "c2lnbmF0dXJl")
        .and_call("toolu_1", "get_weather", &json!({ "city": "Oslo" }));
    // The provider wants it back, whether or not it's kept for the person. The double checks that.
    for keep in [false, true] {
        let script = Script::new([
            thinks.clone(),
            Answer::text("3 degrees."),
            Answer::text("Yes."),
        ]);
        let mut talk = TestConversation::with(API, script, RecordedTools::new(), |settings| {
            settings.name = "claude-sonnet-5".to_owned();
            settings.think = Some(true);
            settings.keep_thinking = keep;
        })
        .await;
        talk.says("Oslo?").await;
        assert_eq!(talk.last()["thinking"], json!({ "type": "adaptive" }));
        let sent = talk.last()["messages"].to_string();
        assert!(sent.contains("c2lnbmF0dXJl"), "{sent}");
        talk.says("Sure?").await;
    }
}

#[tokio::test]
async fn a_refused_temperature_is_not_sent_again() {
    let script = Script::always(Answer::text("Hi."));
    let talk = TestConversation::with(API, script, RecordedTools::new(), |settings| {
        settings.name = "claude-sonnet-5".to_owned();
        settings.temperature = Some(0.5);
    });
    does_without(talk.await, "temperature", "model.temperature").await;
}

#[tokio::test]
async fn refused_adaptive_thinking_is_not_sent_again() {
    let script = Script::always(Answer::text("Hi."));
    let talk = TestConversation::with(API, script, RecordedTools::new(), |settings| {
        settings.name = "claude-haiku-4-5".to_owned();
        settings.think = Some(true);
    });
    does_without(talk.await, "thinking", "model.think").await;
}

/// Other errors in a request are reported, and nothing is dropped because of them.
#[tokio::test]
async fn a_temperature_out_of_range_is_reported() {
    let wrong = Answer::fails(
        400,
        "invalid_request_error",
        "temperature: Input should be less than or equal to 1",
    );
    let mut talk = TestConversation::with(
        API,
        Script::always(wrong),
        RecordedTools::new(),
        |settings| {
            settings.temperature = Some(1.5);
        },
    )
    .await;
    let error = talk.tries("hello").await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { .. }), "{error:?}");
    assert_eq!(talk.fake.requests().len(), 1);
}

#[tokio::test]
async fn other_stop_reasons_are_reported() {
    let cases = [
        ("max_tokens", TurnEnd::Length),
        ("refusal", TurnEnd::Refusal),
        ("stop_sequence", TurnEnd::Answered),
    ];
    for (reason, end) in cases {
        let mut talk = TestConversation::new(API, [Answer::text("Well").stop(reason)]).await;
        let turn = talk.says("hello").await;
        assert_eq!(turn.end, end, "{reason}");
    }
}

#[tokio::test]
async fn a_call_cut_by_the_token_limit_does_not_run() {
    let cut = Answer::text("Let me see")
        .and_broken_call("toolu_1", "get_weather", r#"{"city": "Os"#)
        .stop("max_tokens");
    let mut talk = TestConversation::with(
        API,
        Script::new([cut]).then_always(Answer::text("Too long.")),
        RecordedTools::new(),
        |_| {},
    )
    .await;
    talk.says("Oslo?").await;
    assert!(talk.recorded.calls().is_empty());
}

#[tokio::test]
async fn a_paused_reply_is_continued() {
    let paused = Answer::text("Searching").stop("pause_turn");
    let mut talk = TestConversation::with(
        API,
        Script::new([paused, Answer::text("Found.")]),
        RecordedTools::new(),
        |settings| {
            settings.name = "claude-opus-4-1".to_owned();
        },
    )
    .await;
    let turn = talk.says("find it").await;
    assert!(turn.answer.ends_with("Found."), "{}", turn.answer);
    assert_eq!(talk.fake.requests().len(), 2);
}

#[tokio::test]
async fn unknown_events_are_ignored() {
    let body = Answer::text("Hello.").body_for(API);
    let news = "event: content_block_news\ndata: {\"type\":\"content_block_news\",\"index\":0}\n\n: a comment\n\n";
    let mut talk =
        TestConversation::new(API, [Answer::raw([news.as_bytes(), &body].concat())]).await;
    assert_eq!(talk.says("hello").await.answer, "Hello.");
}

#[tokio::test]
async fn a_refused_key_is_reported() {
    let mut talk = TestConversation::new(
        API,
        [Answer::fails(
            401,
            "authentication_error",
            "invalid x-api-key",
        )],
    )
    .await;
    let error = talk.tries("hello").await.unwrap_err();
    assert!(matches!(error, ModelError::Key { .. }), "{error:?}");
}
