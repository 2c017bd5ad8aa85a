//! The list of pitfalls: several calls, results and rounds.

use std::time::Duration;

use fakellm::{Answer, Api, Recorded, Script};
use serde_json::json;
use toolgate_core::ToolOutput;
use toolgate_models::TurnEnd;

use crate::checklist::with_arguments;
use crate::house::House;
use crate::talk::{APIS, Talk, asks_for_oslo};

#[tokio::test]
async fn words_before_a_call_are_told_and_kept() {
    for api in APIS {
        let both = Answer::text("Let me look.").and_call("call_1", "clock", &json!({}));
        let mut talk = Talk::new(api, [both, Answer::text("Noon.")]).await;
        let turn = talk.says("What time is it?").await;
        assert_eq!(turn.answer, "Noon.");
        assert!(
            talk.heard.concat().contains("Let me look."),
            "{api:?}: {:?}",
            talk.heard
        );
        let sent = talk.last()["messages"].to_string();
        assert!(sent.contains("Let me look."), "{api:?}: {sent}");
    }
}

#[tokio::test]
async fn one_of_several_calls_fails_and_the_others_are_answered_in_order() {
    for api in APIS {
        let calls = Answer::call("call_1", "get_weather", &json!({ "city": "Oslo" }))
            .and_call("call_2", "broken", &json!({}))
            .and_call("call_3", "clock", &json!({}));
        let mut talk = Talk::new(api, [calls, Answer::text("Two of three.")]).await;
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

#[tokio::test]
async fn calls_of_one_reply_run_side_by_side_and_are_answered_in_their_order() {
    for api in APIS {
        let schema = json!({ "type": "object" });
        let slow = Duration::from_millis(300);
        let house = House::empty()
            .with_slow("slow", schema.clone(), slow, |_| {
                Ok(ToolOutput::text("slow"))
            })
            .with("fast", schema, |_| Ok(ToolOutput::text("fast")));
        let calls = (0..8).fold(Answer::empty(), |answer, index| {
            let name = if index % 2 == 0 { "slow" } else { "fast" };
            answer.and_call(&format!("call_{index}"), name, &json!({}))
        });
        let mut talk = Talk::with(
            api,
            Script::new([calls, Answer::text("Done.")]),
            house,
            |settings| {
                settings.max_same_calls = 100;
            },
        )
        .await;
        talk.says("go").await;
        let names = ["slow", "fast"].repeat(4);
        assert_eq!(talk.texts(), names, "{api:?}");
    }
}

#[tokio::test]
async fn a_result_too_large_is_cut_with_a_mark() {
    for api in APIS {
        let call = Answer::call("call_1", "large", &json!({}));
        let script = Script::new([call, Answer::text("Much.")]);
        let mut talk = Talk::with(api, script, House::new(), |settings| {
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
async fn a_picture_reaches_who_can_look_and_is_named_to_who_can_not() {
    for api in APIS {
        let call = Answer::call("call_1", "camera", &json!({}));
        let mut talk = Talk::new(api, [call, Answer::text("Nice.")]).await;
        talk.says("look").await;
        let text = talk.texts().remove(0);
        assert!(text.contains("The garden"), "{api:?}: {text}");
        let sent = talk.last()["messages"].to_string();
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
async fn nothing_as_a_result_is_said_so() {
    for api in APIS {
        let (_, told) = with_arguments(api, "silent", "{}").await;
        assert_eq!(told, "(no output)", "{api:?}");
    }
}

/// True if the model may not use tools in this round, by whichever way a provider knows to say so.
fn must_answer(request: &Recorded) -> bool {
    let body = request.json();
    let none = body["tools"].as_array().is_none_or(Vec::is_empty);
    none || body["tool_choice"] == "none" || body["tool_choice"]["type"] == "none"
}

#[tokio::test]
async fn the_same_call_for_ever_is_stopped_with_an_answer() {
    for api in APIS {
        let mut count = 0;
        let script = Script::by(move |request| {
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
        let mut talk = Talk::with(api, script, House::new(), |settings| {
            settings.max_same_calls = 2;
        })
        .await;
        let turn = talk.says("Oslo?").await;
        assert_eq!(turn.end, TurnEnd::Repetition, "{api:?}");
        assert_eq!(turn.answer, "It is 3 degrees.", "{api:?}");
        assert_eq!(talk.house.calls().len(), 2, "{api:?}");
    }
}

#[tokio::test]
async fn after_the_last_round_there_is_an_answer_without_tools() {
    for api in APIS {
        let mut count = 0;
        let script = Script::by(move |request| {
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
        let mut talk = Talk::with(api, script, House::new(), |settings| {
            settings.max_tool_rounds = 3;
        })
        .await;
        let turn = talk.says("go").await;
        assert_eq!(
            (turn.end, turn.answer.as_str()),
            (TurnEnd::RoundLimit, "As far as I got."),
            "{api:?}"
        );
        assert_eq!(talk.house.calls().len(), 3, "{api:?}");
        assert_eq!(turn.rounds.len(), 4, "{api:?}");
    }
}

#[tokio::test]
async fn a_stream_cut_in_its_arguments_runs_nothing_and_is_asked_again() {
    for api in APIS {
        let cut =
            Answer::text("Wait.").and_call("call_1", "get_weather", &json!({ "city": "Oslo" }));
        let cut = cut.cut_in(api, "Oslo");
        let mut talk = Talk::new(api, [cut, asks_for_oslo(), Answer::text("3.")]).await;
        let turn = talk.says("Oslo?").await;
        assert_eq!(turn.answer, "3.", "{api:?}");
        assert_eq!(talk.house.names(), ["get_weather"], "{api:?}");
        assert!(
            talk.heard.contains(&"<void>".to_owned()),
            "{api:?}: {:?}",
            talk.heard
        );
    }
}
