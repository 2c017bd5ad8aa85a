//! llama.cpp's server with SmolLM2, a real model of 135 million parameters, behind Qwen
//! templates. No one knows what such a model answers, so the tests only check that it ends in an
//! answer or in envelopes.

use std::process::Command;

use fakellm::{Answer, Api, Script};
use serde_json::{Value, json};
use toolgate_core::ToolOutput;
use toolgate_models::{Conversation, Message, ModelEvent};

use super::{ThirdPartyProgram, script};
use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{HANG, TestConversation};

fn start(template: &str) -> Option<ThirdPartyProgram> {
    let folder = fakellm::third_parties()?;
    let mut command = Command::new(folder.join("python/bin/python"));
    command
        .arg(script("llama.py"))
        .arg(folder.join("model.gguf"))
        .arg(folder.join("templates").join(template));
    Some(ThirdPartyProgram::start(&mut command))
}

fn with_lamp(recorded: RecordedTools) -> RecordedTools {
    let lamp = json!({ "type": "object", "required": ["deviceName", "action"], "properties": {
        "deviceName": { "type": "string", "description": "The device as people call it" },
        "action": { "type": "string", "enum": ["on", "off"], "description": "What it should do" },
        "level": { "type": "integer", "minimum": 0, "maximum": 99, "description": "How bright" } } });
    recorded.with("control_device", lamp, |_| Ok(ToolOutput::text("done")))
}

/// The prompt that the engine renders from a request.
async fn prompt(url: &str, body: &Value) -> String {
    let answer = reqwest::Client::new()
        .post(format!("{url}/apply-template"))
        .body(body.to_string());
    let answer = answer
        .header("content-type", "application/json")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["prompt"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

#[tokio::test]
async fn qw7_a_real_engine_renders_every_tool_into_a_qwen_prompt() {
    for template in [
        "Qwen-Qwen3-0.6B.jinja",
        "Qwen3-Coder.jinja",
        "Qwen-Qwen2.5-7B-Instruct.jinja",
    ] {
        let Some(llama) = start(template) else {
            return;
        };
        // The same request as for Ollama, which renders it with the same templates.
        let mut talk = TestConversation::with(
            Api::Ollama,
            Script::new([Answer::text("Yes.")]),
            with_lamp(RecordedTools::new()),
            |_| {},
        )
        .await;
        talk.says("Turn on Switch One").await;
        let sent = talk.last();
        let prompt = prompt(
            &llama.url,
            &json!({ "tools": sent["tools"], "messages": sent["messages"] }),
        )
        .await;
        let recorded = talk.recorded;
        assert!(
            prompt.contains("<tools>") && prompt.contains("Turn on Switch One"),
            "{prompt}"
        );
        for tool in recorded.manager.tools().iter() {
            let definition = tool.definition();
            assert!(
                prompt.contains(definition.name()),
                "{template}: {}",
                definition.name()
            );
            assert!(
                prompt.contains(definition.description()),
                "{template}: {}",
                definition.description()
            );
            let properties = definition.parameters()["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            for (name, schema) in properties {
                assert!(prompt.contains(&name), "{template}: {name}");
                let description = schema["description"].as_str().unwrap_or_default();
                assert!(prompt.contains(description), "{template}: {description}");
            }
        }
    }
}

#[tokio::test]
async fn qw7_any_reply_of_a_real_model_ends_in_an_answer_or_envelopes() {
    let Some(llama) = start("Qwen3-Coder.jinja") else {
        return;
    };
    for api in [Api::OpenAi, Api::Anthropic] {
        let (recorded, mut conversation) = few_words(&llama, api);
        let turn = conversation
            .turn("Turn on Switch One", &mut |_: ModelEvent<'_>| {})
            .await;
        let turn = turn.unwrap_or_else(|error| panic!("{api:?}: {error}"));
        let calls: Vec<_> = turn.rounds.iter().flat_map(|round| &round.calls).collect();
        assert!(
            !calls.is_empty() || !turn.answer.trim().is_empty(),
            "{api:?}: {turn:?}"
        );
        assert!((1..=2).contains(&turn.rounds.len()), "{api:?}: {turn:?}");
        let usage = turn.usage;
        assert!(
            usage.input > 0 && (1..=96).contains(&usage.output),
            "{api:?}: {usage:?}"
        );
        // Each call has an envelope, and nothing else ran.
        let mut successes = 0;
        for call in &calls {
            let envelope = serde_json::to_value(call).unwrap();
            let has = |field: &str| envelope.get(field).is_some();
            assert_eq!(
                envelope["success"] == true,
                has("result"),
                "{api:?}: {envelope}"
            );
            assert_ne!(has("result"), has("error"), "{api:?}: {envelope}");
            assert!(
                envelope["execution_time_ms"].is_number(),
                "{api:?}: {envelope}"
            );
            successes += usize::from(envelope["success"] == true);
        }
        assert_eq!(recorded.calls().len(), successes, "{api:?}: {calls:?}");
        // History has a result for each call, in order, so the next question could be asked.
        for pair in conversation.history().windows(2) {
            if let Message::Assistant(message) = &pair[0]
                && message.calls().next().is_some()
            {
                let Message::Tool { results } = &pair[1] else {
                    panic!("{api:?}: {pair:?}");
                };
                let asked = message.calls().map(|call| &call.id);
                assert!(
                    asked.eq(results.iter().map(|result| &result.id)),
                    "{api:?}: {pair:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn qw7_an_incompatible_engine_ends_in_an_answer_or_an_error() {
    // llama.cpp accepts `/api/chat`, but answers it like OpenAI.
    let Some(llama) = start("Qwen3-Coder.jinja") else {
        return;
    };
    let (recorded, mut conversation) = few_words(&llama, Api::Ollama);
    let mut nobody = |_: ModelEvent<'_>| {};
    let turn = conversation.turn("Turn on Switch One", &mut nobody);
    let turn = tokio::time::timeout(HANG, turn).await.unwrap();
    match turn {
        Ok(turn) => assert!(!turn.answer.trim().is_empty(), "{turn:?}"),
        Err(error) => assert!(error.to_string().contains("ollama"), "{error}"),
    }
    assert_eq!(
        recorded.calls(),
        [],
        "nothing is made of what is not understood"
    );
}

/// Two tools and short answers, because a busy machine reads only a few tokens a second.
fn few_words(llama: &ThirdPartyProgram, api: Api) -> (RecordedTools, Conversation) {
    let recorded =
        with_lamp(RecordedTools::empty()).with("clock", json!({ "type": "object" }), |_| {
            Ok(ToolOutput::text("12:00"))
        });
    let conversation = llama.conversation(api, &recorded, |settings| {
        settings.system = "Use the tools.".to_owned();
        settings.temperature = Some(0.0);
        settings.seed = Some(7);
        settings.max_tokens = 48;
        settings.max_tool_rounds = 1;
        settings.context_tokens = Some(4096);
    });
    (recorded, conversation)
}
