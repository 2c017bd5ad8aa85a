//! What only Ollama does.

use fakellm::{Answer, Api, FakeLlm, FakeModel, Script};
use serde_json::{Value, json};
use toolgate_models::ModelError;

use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{MODEL, TestConversation, asks_for_oslo, golden};

const API: Api = Api::Ollama;

fn lines(lines: &[Value]) -> Answer {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Answer::raw(text)
}

fn last() -> Value {
    json!({ "message": { "role": "assistant", "content": "" }, "done": true, "done_reason": "stop" })
}

#[tokio::test]
async fn ai2_calls_run_with_unchanged_arguments_and_results_go_back() {
    let arguments = json!({ "city": "Oslo", "days": 2 });
    let call = Answer::call("call_1", "get_weather", &arguments);
    let mut talk = TestConversation::new(API, [call, Answer::text("3 degrees.")]).await;
    let turn = talk.says("How warm is it in Oslo?").await;
    assert_eq!(turn.answer, "3 degrees.");
    assert_eq!(
        talk.recorded.calls(),
        [("get_weather".to_owned(), arguments)]
    );
    let messages = talk.last()["messages"].clone();
    let result = messages.as_array().unwrap().last().unwrap();
    assert_eq!(result["role"], "tool");
    assert_eq!(result["tool_name"], "get_weather");
    assert_eq!(result["content"], r#"{"city":"Oslo","degrees":3}"#);
}

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
    golden("ollama-1.json", &requests[0].body);
    golden("ollama-2.json", &requests[1].body);
}

#[tokio::test]
async fn calls_are_taken_from_any_line() {
    let call = |city: &str| json!([{ "function": { "name": "get_weather", "arguments": { "city": city } } }]);
    let with = |mut line: Value, calls: Value| {
        line["message"]["tool_calls"] = calls;
        line
    };
    let line = json!({ "message": { "role": "assistant", "content": "" }, "done": false });
    let on_the_last = lines(&[line.clone(), with(last(), call("Oslo"))]);
    let on_several = lines(&[
        with(line.clone(), call("Oslo")),
        with(line.clone(), call("Rome")),
        last(),
    ]);
    for (answer, cities) in [
        (on_the_last, vec!["Oslo"]),
        (on_several, vec!["Oslo", "Rome"]),
    ] {
        let mut talk = TestConversation::new(API, [answer, Answer::text("Done.")]).await;
        talk.says("go").await;
        let ran: Vec<_> = talk
            .recorded
            .calls()
            .into_iter()
            .map(|(_, arguments)| arguments["city"].clone())
            .collect();
        assert_eq!(ran, cities);
    }
}

/// As many tools as asked for, each with a parameter that has this description.
fn many(tools: usize, description: &str) -> RecordedTools {
    let schema = json!({ "type": "object", "properties": { "where": { "type": "string", "description": description } } });
    (0..tools).fold(RecordedTools::empty(), |recorded, index| {
        recorded.with(&format!("tool_{index}"), schema.clone(), |_| unreachable!())
    })
}

#[tokio::test]
async fn a_prompt_that_the_server_cut_is_noticed() {
    let script = Script::new([Answer::text("What tools?").prompt_tokens(500)]);
    let mut talk = TestConversation::with(API, script, many(60, &"x".repeat(200)), |_| {}).await;
    talk.says("use a tool").await;
    let context = talk.last()["options"]["num_ctx"].as_u64().unwrap();
    assert!(context > 8192, "{context}");
    let noticed = talk
        .reported
        .iter()
        .any(|event| event.contains("500") && event.contains("OLLAMA_CONTEXT_LENGTH"));
    assert!(noticed, "{:?}", talk.reported);
}

#[tokio::test]
async fn a_server_that_does_not_report_its_window_is_asked_once() {
    let script = Script::always(Answer::text("Yes."));
    let mut talk = TestConversation::with(API, script, many(60, &"x".repeat(200)), |_| {}).await;
    for question in ["one", "two", "three"] {
        talk.says(question).await;
    }
    let requests = talk.fake.all_requests();
    let asked = |path: &str| {
        requests
            .iter()
            .filter(|request| request.path == path)
            .count()
    };
    assert_eq!((asked("/api/chat"), asked("/api/ps")), (3, 1));
}

#[tokio::test]
async fn the_first_question_already_fits_the_window_of_a_small_model() {
    let mut model = FakeModel::new(MODEL);
    model.context_length = 8192;
    let fake = FakeLlm::with_model(Script::new([Answer::text("Hi.")]), model).await;
    let mut talk = TestConversation::at(API, fake, many(120, &"in which room ".repeat(20)), |_| {});
    assert_eq!(talk.says("hello").await.answer, "Hi.");
    assert_eq!(talk.last()["options"]["num_ctx"], 8192);
    let offered = talk.offered().len();
    assert!((10..120).contains(&offered), "{offered}");
    // Half of the window. English takes more than three bytes per token.
    let bytes = talk.last()["tools"].to_string().len();
    assert!(bytes < 8192 / 2 * 5, "{bytes}");
}

#[tokio::test]
async fn thinking_is_not_part_of_the_answer() {
    let inline = Answer::text("<think>hm, noon I think</think>It is noon.");
    let apart = Answer::empty()
        .and_thinking("hm, noon I think", "")
        .and_text("It is noon.");
    for answer in [inline, apart] {
        let mut talk = TestConversation::new(API, [answer.in_pieces(5)]).await;
        let turn = talk.says("What time is it?").await;
        assert_eq!(turn.answer, "It is noon.");
        assert!(
            !talk.reported.concat().contains("hm"),
            "{:?}",
            talk.reported
        );
    }
}

#[tokio::test]
async fn a_model_without_thinking_is_not_asked_to_think() {
    let fake = FakeLlm::with_model(Script::new([Answer::text("Hi.")]), FakeModel::new(MODEL)).await;
    let mut talk = TestConversation::at(API, fake, RecordedTools::new(), |settings| {
        settings.think = Some(true);
    });
    assert_eq!(talk.says("hello").await.answer, "Hi.");
}

#[tokio::test]
async fn an_unusable_or_missing_model_is_reported_with_advice() {
    let mut model = FakeModel::new(MODEL);
    model
        .capabilities
        .retain(|capability| capability != "tools");
    let fake = FakeLlm::with_model(Script::new([Answer::text("Hi.")]), model).await;
    let mut talk = TestConversation::at(API, fake, RecordedTools::new(), |_| {});
    let error = talk.tries("hello").await.unwrap_err();
    assert!(matches!(error, ModelError::Model { .. }), "{error:?}");
    assert!(error.to_string().contains("tools"), "{error}");

    let fake = FakeLlm::with_model(Script::new([]), FakeModel::new("other")).await;
    let mut talk = TestConversation::at(API, fake, RecordedTools::new(), |_| {});
    let error = talk.tries("hello").await.unwrap_err();
    assert!(
        error.to_string().contains(&format!("ollama pull {MODEL}")),
        "{error}"
    );
}

#[tokio::test]
async fn a_crashed_runner_is_retried() {
    let crash = Answer::fails(
        500,
        "",
        "llama runner process has terminated: exit status 2",
    )
    .header("retry-after", "0");
    let mut talk = TestConversation::new(API, [crash, asks_for_oslo(), Answer::text("3.")]).await;
    assert_eq!(talk.says("Oslo?").await.answer, "3.");
}

#[tokio::test]
async fn the_window_and_the_time_in_memory_go_with_every_request() {
    let mut talk = TestConversation::with(
        API,
        Script::always(Answer::text("Hi.")),
        RecordedTools::new(),
        |settings| {
            settings.context_tokens = Some(12_000);
            settings.keep_alive = 600;
        },
    )
    .await;
    talk.says("hello").await;
    talk.says("again").await;
    for request in talk.fake.requests() {
        assert_eq!(request.json()["options"]["num_ctx"], 12_000);
        assert_eq!(request.json()["keep_alive"], 600);
    }
}
