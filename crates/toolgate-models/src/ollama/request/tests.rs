use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::ollama::tests::samples::{offer, offer_of};
use crate::{CallArguments, ImageData, ModelCall, Provider};

const WANTED: ChatRequestOptions = ChatRequestOptions {
    window: 8192,
    think: None,
    images: false,
};

fn request<'a>(messages: &'a [Message], tools: &'a OfferedTools) -> ModelRequest<'a> {
    ModelRequest::new(
        "",
        messages,
        tools,
        Instant::now() + Duration::from_secs(60),
    )
}

fn body(
    request: &ModelRequest<'_>,
    settings: &ModelSettings,
    wanted: ChatRequestOptions,
) -> String {
    String::from_utf8(super::body(request, "qwen3", settings, wanted).unwrap()).unwrap()
}

fn user(text: &str) -> Message {
    Message::User {
        text: text.to_owned(),
    }
}

fn call(id: &str, name: &str, arguments: &str) -> MessagePart {
    MessagePart::Call(ModelCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: CallArguments::parse(arguments),
    })
}

fn result(id: &str, name: &str, text: &str) -> ToolResult {
    ToolResult {
        id: id.to_owned(),
        name: name.to_owned(),
        text: text.to_owned(),
        images: Vec::new(),
        is_error: false,
        call_id: None,
    }
}

/// The messages of a body.
fn messages(messages: &[Message]) -> Value {
    let offer = offer();
    let body = body(
        &request(messages, &offer),
        &ModelSettings::default(),
        WANTED,
    );
    serde_json::from_str::<Value>(&body).unwrap()["messages"].take()
}

#[test]
fn a_first_question_byte_by_byte() {
    let offer = offer();
    let messages = [user("Is it \"cold\" in Tromsø?")];
    let request = ModelRequest {
        system: "Be brief.",
        ..request(&messages, &offer)
    };
    let expected = concat!(
        r#"{"model":"qwen3","messages":[{"role":"system","content":"Be brief."},"#,
        r#"{"role":"user","content":"Is it \"cold\" in Tromsø?"}],"#,
        r#""tools":[{"type":"function","function":{"name":"lamp","description":"What lamp does","#,
        r#""parameters":{"type":"object","properties":{"on":{"type":"boolean"}}}}},"#,
        r#"{"type":"function","function":{"name":"weather","description":"What weather does","#,
        r#""parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}],"#,
        r#""stream":true,"options":{"num_ctx":8192,"num_predict":4096},"keep_alive":-1}"#,
    );
    assert_eq!(body(&request, &ModelSettings::default(), WANTED), expected);
}

#[test]
fn a_round_of_calls_byte_by_byte() {
    let offer = offer_of(&[]);
    let said = AssistantMessage {
        parts: vec![
            MessagePart::Thinking {
                text: "Two at once.".to_owned(),
                signature: None,
            },
            MessagePart::Text {
                text: "Let me look.".to_owned(),
            },
            call("a", "weather", r#"{"city":"Oslo","days":1.0}"#),
            call("b", "weather", r#"{"city":"Bergen"}"#),
        ],
    };
    let results = vec![
        result("a", "weather", "-3 °C"),
        result("b", "weather", "{\"temperature\":4}"),
    ];
    let messages = [
        user("Cold?"),
        Message::Assistant(said),
        Message::Tool { results },
    ];
    let settings = ModelSettings {
        temperature: Some(0.0),
        seed: Some(7),
        keep_alive: 300,
        max_tokens: 64,
        ..ModelSettings::default()
    };
    let wanted = ChatRequestOptions {
        window: 16_384,
        think: Some(false),
        images: false,
    };
    let expected = concat!(
        r#"{"model":"qwen3","messages":[{"role":"user","content":"Cold?"},"#,
        r#"{"role":"assistant","content":"Let me look.","thinking":"Two at once.","tool_calls":["#,
        r#"{"id":"a","function":{"index":0,"name":"weather","arguments":{"city":"Oslo","days":1.0}}},"#,
        r#"{"id":"b","function":{"index":1,"name":"weather","arguments":{"city":"Bergen"}}}]},"#,
        r#"{"role":"tool","content":"-3 °C","tool_name":"weather","tool_call_id":"a"},"#,
        r#"{"role":"tool","content":"{\"temperature\":4}","tool_name":"weather","tool_call_id":"b"}],"#,
        r#""stream":true,"think":false,"#,
        r#""options":{"num_ctx":16384,"num_predict":64,"temperature":0.0,"seed":7},"keep_alive":300}"#,
    );
    assert_eq!(
        body(&request(&messages, &offer), &settings, wanted),
        expected
    );
}

#[test]
fn thinking_of_any_provider_is_sent_back() {
    let thought = MessagePart::Thinking {
        text: "Hm.".to_owned(),
        signature: Some("another provider's".to_owned()),
    };
    let said = AssistantMessage {
        parts: vec![thought],
    };
    let expected = json!([{ "role": "assistant", "content": "", "thinking": "Hm." }]);
    assert_eq!(messages(&[Message::Assistant(said)]), expected);
}

#[test]
fn parts_of_other_providers_are_not_sent() {
    let opaque = MessagePart::Opaque {
        provider: Provider::Anthropic,
        value: json!({ "type": "redacted_thinking" }),
    };
    let said = Message::Assistant(AssistantMessage {
        parts: vec![opaque],
    });
    assert_eq!(messages(&[said]), json!([]));
}

#[test]
fn history_has_wire_names_and_object_arguments() {
    let said = AssistantMessage {
        parts: vec![
            call("a", "house__lamp", "{\"on\": tru"),
            call("b", "gone_since", "{}"),
        ],
    };
    let results = vec![
        result("a", "house__lamp", "Invalid parameters"),
        result("b", "gone_since", "ok"),
    ];
    let sent = messages(&[Message::Assistant(said), Message::Tool { results }]);
    let calls = &sent[0]["tool_calls"];
    assert_eq!(
        calls[0]["function"],
        json!({ "index": 0, "name": "lamp", "arguments": {} })
    );
    assert_eq!(calls[1]["function"]["name"], "gone_since");
    assert_eq!(
        [&sent[1]["tool_name"], &sent[2]["tool_name"]],
        ["lamp", "gone_since"]
    );
}

#[test]
fn images_are_sent_to_vision_models_and_described_to_others() {
    let mut seen = result("a", "camera", "The door.");
    seen.images = vec![ImageData {
        mime_type: "image/png".to_owned(),
        data: "A".repeat(16 * 1024),
    }];
    let offer = offer();
    let only_picture = ToolResult {
        text: String::new(),
        ..seen.clone()
    };
    let messages = [Message::Tool {
        results: vec![seen, only_picture],
    }];
    let sent = |images| -> Value {
        let wanted = ChatRequestOptions { images, ..WANTED };
        let request = request(&messages, &offer);
        let body = body(&request, &ModelSettings::default(), wanted);
        serde_json::from_str::<Value>(&body).unwrap()["messages"].take()
    };
    let words = sent(false);
    assert_eq!(
        words[0]["content"],
        "The door.\n[image image/png, 12 KB, not shown]"
    );
    assert_eq!(words[1]["content"], "[image image/png, 12 KB, not shown]");
    assert_eq!(words[0].get("images"), None);
    let images = sent(true);
    assert_eq!(images[0]["content"], "The door.");
    assert_eq!(images[0]["images"].as_array().unwrap().len(), 1);
}

#[test]
fn a_model_that_must_answer_in_words_is_offered_no_tools() {
    let (offer, messages) = (offer(), [user("Well?")]);
    let request = ModelRequest {
        forbid_tools: true,
        ..request(&messages, &offer)
    };
    let body = body(&request, &ModelSettings::default(), WANTED);
    assert!(!body.contains("\"tools\""), "{body}");
}

#[test]
fn an_answer_never_fills_the_window() {
    let offer = offer_of(&[]);
    for (window, expected) in [(2048, 1024), (8192, 4096), (65_536, 4096), (1, 1), (0, 1)] {
        let wanted = ChatRequestOptions { window, ..WANTED };
        let body = body(&request(&[], &offer), &ModelSettings::default(), wanted);
        assert!(
            body.contains(&format!("\"num_predict\":{expected}")),
            "{body}"
        );
    }
}

#[test]
fn tools_and_history_count_towards_the_prompt_size() {
    let (none, some) = (offer_of(&[]), offer());
    let size =
        |messages: &[Message], tools: &OfferedTools| prompt_tokens(&request(messages, tools));
    let question = [user(&"word ".repeat(300))];
    assert!(size(&question, &none) > 300, "{}", size(&question, &none));
    assert_eq!(
        size(&question, &some),
        size(&question, &none) + some.tokens()
    );
    let said = AssistantMessage {
        parts: vec![call(
            "a",
            "weather",
            &json!({ "city": "word ".repeat(1500) }).to_string(),
        )],
    };
    assert!(size(&[Message::Assistant(said)], &none) > 1000);
}
