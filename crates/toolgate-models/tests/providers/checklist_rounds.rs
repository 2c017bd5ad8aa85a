//! The list of pitfalls: several calls, results and rounds.

use std::sync::Arc;

use fakellm::{Answer, Api, RecordedRequest, Script};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_core::{ToolContent, ToolOutput};
use toolgate_models::TurnEnd;

use crate::checklist::with_arguments;
use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{APIS, TestConversation, asks_for_oslo, golden, history};

#[tokio::test]
async fn text_before_a_call_is_forwarded_and_kept() {
    for api in APIS {
        let both = Answer::text("Let me look.").and_call("call_1", "clock", &json!({}));
        let mut talk = TestConversation::new(api, [both, Answer::text("Noon.")]).await;
        let turn = talk.says("What time is it?").await;
        assert_eq!(turn.answer, "Noon.");
        assert!(
            talk.reported.concat().contains("Let me look."),
            "{api:?}: {:?}",
            talk.reported
        );
        let sent = history(&talk.last()).to_string();
        assert!(sent.contains("Let me look."), "{api:?}: {sent}");
    }
}

#[tokio::test]
async fn one_of_several_calls_fails_and_the_others_are_answered_in_order() {
    for api in APIS {
        let calls = Answer::call("call_1", "get_weather", &json!({ "city": "Oslo" }))
            .and_call("call_2", "broken", &json!({}))
            .and_call("call_3", "clock", &json!({}));
        let mut talk = TestConversation::new(api, [calls, Answer::text("Two of three.")]).await;
        talk.says("all of it").await;
        let texts = talk.texts();
        assert_eq!(texts.len(), 3, "{api:?}");
        assert!(texts[0].contains("degrees"), "{api:?}: {texts:?}");
        assert!(
            texts[1].contains("The sensor is broken"),
            "{api:?}: {texts:?}"
        );
        assert_eq!(texts[2], "12:00", "{api:?}");
        if api == Api::Anthropic {
            let blocks = &talk.last()["messages"][2]["content"];
            let failed: Vec<_> = (0..3)
                .map(|index| blocks[index]["is_error"] == true)
                .collect();
            assert_eq!(failed, [false, true, false]);
        }
    }
}

/// Each call waits for all later ones, so running them one by one would never end.
#[tokio::test]
async fn calls_of_one_reply_run_in_parallel_and_are_answered_in_order() {
    const CALLS: usize = 8;
    for api in APIS {
        let answered = Arc::new(watch::Sender::new(0));
        let others = Arc::clone(&answered);
        let place = |arguments: &Value| arguments["place"].as_u64().unwrap() as usize;
        let wait = move |arguments: &Value| -> BoxFuture<'static, ()> {
            let (behind, mut others) = (CALLS - 1 - place(arguments), others.subscribe());
            Box::pin(async move {
                others
                    .wait_for(|answered| *answered == behind)
                    .await
                    .unwrap();
            })
        };
        let recorded = RecordedTools::empty().with_waiting(
            "queue",
            json!({ "type": "object" }),
            wait,
            move |arguments| {
                answered.send_modify(|answered| *answered += 1);
                Ok(ToolOutput::text(place(arguments).to_string()))
            },
        );
        let calls = (0..CALLS).fold(Answer::empty(), |answer, place| {
            answer.and_call(
                &format!("call_{place}"),
                "queue",
                &json!({ "place": place }),
            )
        });
        let script = Script::new([calls, Answer::text("Done.")]);
        let mut talk = TestConversation::with(api, script, recorded, |_| {}).await;
        talk.says("go").await;
        let places: Vec<String> = (0..CALLS).map(|place| place.to_string()).collect();
        assert_eq!(talk.texts(), places, "{api:?}");
    }
}

#[tokio::test]
async fn a_result_too_large_is_cut_with_a_mark() {
    for api in APIS {
        let call = Answer::call("call_1", "large", &json!({}));
        let script = Script::new([call, Answer::text("Much.")]);
        let mut talk = TestConversation::with(api, script, RecordedTools::new(), |settings| {
            settings.max_result = 1000;
        })
        .await;
        talk.says("go").await;
        let text = talk.texts().remove(0);
        assert!(text.len() < 1500, "{api:?}: {}", text.len());
        assert!(
            text.starts_with("ää") && text.contains("cut"),
            "{api:?}: {text}"
        );
    }
}

#[tokio::test]
async fn images_reach_vision_models_and_are_described_to_others() {
    for api in APIS {
        let call = Answer::call("call_1", "camera", &json!({}));
        let mut talk = TestConversation::new(api, [call, Answer::text("Nice.")]).await;
        talk.says("look").await;
        let text = talk.texts().remove(0);
        assert!(text.contains("The garden"), "{api:?}: {text}");
        let sent = history(&talk.last()).to_string();
        if api == Api::Anthropic {
            assert!(sent.contains("aGVsbG8="), "{sent}");
        } else {
            assert!(
                !text.contains("aGVsbG8="),
                "{api:?}: no base64 as words: {text}"
            );
            assert!(text.to_lowercase().contains("image"), "{api:?}: {text}");
        }
    }
}

#[tokio::test]
async fn every_byte_of_a_last_request_is_known_with_all_settings_and_a_picture() {
    for api in APIS {
        let call = Answer::call("call_1", "camera", &json!({}));
        let script = Script::new([call, Answer::text("Nice.")]);
        let mut talk = TestConversation::with(api, script, RecordedTools::new(), |settings| {
            settings.system = "Be brief.".to_owned();
            settings.max_tool_rounds = 1;
            settings.max_tokens = 100;
            settings.temperature = Some(0.5);
            settings.seed = Some(7);
            // Only servers other than OpenAI's know of thinking.
            settings.think = (api != Api::OpenAi).then_some(false);
        })
        .await;
        let turn = talk.says("look").await;
        assert_eq!(turn.end, TurnEnd::RoundLimit, "{api:?}");
        let name = format!("{api:?}-last.json").to_lowercase();
        golden(&name, &talk.fake.requests()[1].body);
    }
}

#[tokio::test]
async fn sounds_and_links_are_named_in_words() {
    let blocks = [
        json!({ "type": "text", "text": "The doorbell" }),
        json!({ "type": "audio", "data": "aGVsbG8h", "mimeType": "audio/wav" }),
        json!({ "type": "resource_link", "uri": "file:///bell.pdf", "name": "bell", "description": "The manual" }),
    ];
    for api in APIS {
        let blocks = blocks.clone().map(ToolContent::from);
        let recorded =
            RecordedTools::empty().with("doorbell", json!({ "type": "object" }), move |_| {
                Ok(ToolOutput::blocks(blocks.to_vec()))
            });
        let call = Answer::call("call_1", "doorbell", &json!({}));
        let script = Script::new([call, Answer::text("It rang.")]);
        let mut talk = TestConversation::with(api, script, recorded, |_| {}).await;
        talk.says("who is there?").await;
        let told = "The doorbell\n[audio: audio/wav, 6 bytes, can't be played]\n[resource file:///bell.pdf: The manual]";
        assert_eq!(talk.texts(), [told], "{api:?}");
        let sent = history(&talk.last()).to_string();
        assert!(!sent.contains("aGVsbG8h"), "{api:?}: no base64: {sent}");
    }
}

#[tokio::test]
async fn an_empty_result_is_described() {
    for api in APIS {
        let (_, told) = with_arguments(api, "silent", "{}").await;
        assert_eq!(told, "(no output)", "{api:?}");
    }
}

/// True if the model may not use tools in this round, in whichever way the provider expresses that.
fn must_answer(request: &RecordedRequest) -> bool {
    let body = request.json();
    let none = body["tools"].as_array().is_none_or(Vec::is_empty);
    none || body["tool_choice"] == "none"
        || body["tool_choice"]["type"] == "none"
        || body["toolConfig"]["functionCallingConfig"]["mode"] == "NONE"
}

#[tokio::test]
async fn an_endlessly_repeated_call_is_stopped_with_an_answer() {
    for api in APIS {
        let mut count = 0;
        let script = Script::from_fn(move |request| {
            count += 1;
            if must_answer(request) {
                return Answer::text("It is 3 degrees.");
            }
            Answer::call(
                &format!("call_{count}"),
                "get_weather",
                &json!({ "city": "Oslo" }),
            )
        });
        let mut talk = TestConversation::with(api, script, RecordedTools::new(), |settings| {
            settings.max_same_calls = 2;
        })
        .await;
        let turn = talk.says("Oslo?").await;
        assert_eq!(turn.end, TurnEnd::Repetition, "{api:?}");
        assert_eq!(turn.answer, "It is 3 degrees.", "{api:?}");
        assert_eq!(talk.recorded.calls().len(), 2, "{api:?}");
    }
}

#[tokio::test]
async fn after_the_last_round_there_is_an_answer_without_tools() {
    for api in APIS {
        let mut count = 0;
        let script = Script::from_fn(move |request| {
            if must_answer(request) {
                return Answer::text("As far as I got.");
            }
            count += 1;
            Answer::call(
                &format!("call_{count}"),
                "set_level",
                &json!({ "level": count }),
            )
        });
        let mut talk = TestConversation::with(api, script, RecordedTools::new(), |settings| {
            settings.max_tool_rounds = 3;
        })
        .await;
        let turn = talk.says("go").await;
        assert_eq!(
            (turn.end, turn.answer.as_str()),
            (TurnEnd::RoundLimit, "As far as I got."),
            "{api:?}"
        );
        assert_eq!(talk.recorded.calls().len(), 3, "{api:?}");
        assert_eq!(turn.rounds.len(), 4, "{api:?}");
    }
}

#[tokio::test]
async fn a_stream_cut_in_its_arguments_runs_nothing_and_is_retried() {
    for api in APIS {
        let cut =
            Answer::text("Wait.").and_call("call_1", "get_weather", &json!({ "city": "Oslo" }));
        let cut = cut.cut_in(api, "Oslo");
        let mut talk = TestConversation::new(api, [cut, asks_for_oslo(), Answer::text("3.")]).await;
        let turn = talk.says("Oslo?").await;
        assert_eq!(turn.answer, "3.", "{api:?}");
        assert_eq!(talk.recorded.names(), ["get_weather"], "{api:?}");
        assert!(
            talk.reported.contains(&"<void>".to_owned()),
            "{api:?}: {:?}",
            talk.reported
        );
    }
}
