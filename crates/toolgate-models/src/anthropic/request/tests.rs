use serde_json::json;

use super::super::tests::offer;
use super::*;
use crate::tests::samples::{ask, assistant, call, result, results, said, tool, user};
use crate::{
    AssistantMessage, CallArguments, ImageData, Message, MessagePart, Provider, ToolResult,
};

fn options() -> RequestOptions {
    RequestOptions {
        model: "claude-x".to_owned(),
        max_tokens: 100,
        window: 10_000,
        temperature: None,
        seed: None,
        think: None,
    }
}

const ALL: SentOptions = SentOptions {
    temperature: true,
    seed: false,
    think: true,
};

fn sent(options: &RequestOptions, request: &ModelRequest<'_>) -> String {
    let no_thinking = SentOptions {
        think: false,
        ..ALL
    };
    sent_with(options, no_thinking, request)
}

fn sent_with(options: &RequestOptions, sent: SentOptions, request: &ModelRequest<'_>) -> String {
    String::from_utf8(body(options, sent, request).unwrap()).unwrap()
}

fn messages(history: &[Message], tools: &OfferedTools) -> String {
    let body = sent(&options(), &ask("", history, tools));
    let start = body.find(r#""messages":"#).unwrap() + r#""messages":"#.len();
    body[start..body.len() - 1].to_owned()
}

#[test]
fn the_smallest_request_has_no_optional_fields() {
    assert_eq!(
        sent(&options(), &ask(" ", &[user("Hello")], &offer(&[]))),
        concat!(
            r#"{"model":"claude-x","max_tokens":100,"stream":true,"messages":["#,
            r#"{"role":"user","content":[{"type":"text","text":"Hello","cache_control":{"type":"ephemeral"}}]}]}"#,
        )
    );
}

#[test]
fn refused_settings_are_omitted() {
    let options = RequestOptions {
        temperature: Some(0.5),
        ..options()
    };
    let (history, tools) = ([user("Hello")], offer(&[]));
    let none = SentOptions {
        temperature: false,
        seed: false,
        think: false,
    };
    for (given, temperature, thinking) in [
        (ALL, true, true),
        (
            SentOptions {
                temperature: true,
                ..none
            },
            true,
            false,
        ),
        (
            SentOptions {
                think: true,
                ..none
            },
            false,
            true,
        ),
        (none, false, false),
    ] {
        let body = sent_with(&options, given, &ask("", &history, &tools));
        let has = |key: &str| body.contains(key);
        assert_eq!(
            (has("temperature"), has("thinking")),
            (temperature, thinking),
            "{body}"
        );
    }
}

#[test]
fn ai1_a_round_of_tools_is_sent_in_messages_api_form() {
    let parameters = json!({ "type": "object", "properties": { "zone": { "type": "string" } } });
    let time = tool("home.time", "What time it is", parameters);
    let dice = tool("dice", "Rolls dice", json!({ "type": "object" }));
    let options = RequestOptions {
        temperature: Some(0.5),
        ..options()
    };
    let history = [
        user("What time is it?"),
        assistant(vec![
            MessagePart::Thinking {
                text: "Hm.".to_owned(),
                signature: Some("c2ln".to_owned()),
            },
            said("Let me see."),
            call("toolu_1", "home.time", r#"{"zone":"Europe/Oslo"}"#),
            call("toolu_2", "dice", ""),
        ]),
        results(vec![
            result("toolu_1", "10:00"),
            ToolResult {
                is_error: true,
                ..result("toolu_2", "No dice")
            },
        ]),
    ];
    let tools = offer(&[time, dice]);
    let request = ask("Be brief.", &history, &tools);
    assert_eq!(
        sent_with(&options, ALL, &request),
        concat!(
            r#"{"model":"claude-x","max_tokens":100,"stream":true,"temperature":0.5,"thinking":{"type":"adaptive"},"#,
            r#""system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"#,
            r#""tools":["#,
            r#"{"name":"dice","description":"Rolls dice","input_schema":{"type":"object","properties":{}}},"#,
            r#"{"name":"home_time","description":"What time it is","input_schema":{"type":"object","properties":{"zone":{"type":"string"}}},"cache_control":{"type":"ephemeral"}}"#,
            r#"],"messages":["#,
            r#"{"role":"user","content":[{"type":"text","text":"What time is it?"}]},"#,
            r#"{"role":"assistant","content":["#,
            r#"{"type":"thinking","thinking":"Hm.","signature":"c2ln"},"#,
            r#"{"type":"text","text":"Let me see."},"#,
            r#"{"type":"tool_use","id":"toolu_1","name":"home_time","input":{"zone":"Europe/Oslo"}},"#,
            r#"{"type":"tool_use","id":"toolu_2","name":"dice","input":{}}]},"#,
            r#"{"role":"user","content":["#,
            r#"{"type":"tool_result","tool_use_id":"toolu_1","content":"10:00"},"#,
            r#"{"type":"tool_result","tool_use_id":"toolu_2","content":"No dice","is_error":true,"cache_control":{"type":"ephemeral"}}"#,
            r#"]}]}"#,
        )
    );
}

#[test]
fn tools_are_listed_even_if_forbidden() {
    let tools = offer(&[tool("dice", "Rolls dice", json!({ "type": "object" }))]);
    let history = [user("Roll!")];
    let with = ask("", &history, &tools);
    let forbid_tools = ModelRequest {
        forbid_tools: true,
        ..with
    };
    let (with, forbid_tools) = (sent(&options(), &with), sent(&options(), &forbid_tools));
    assert!(!with.contains("tool_choice"), "{with}");
    assert_eq!(
        forbid_tools,
        with.replace(
            r#","messages""#,
            r#","tool_choice":{"type":"none"},"messages""#
        )
    );
    let none = offer(&[]);
    let forbid_tools = ModelRequest {
        forbid_tools: true,
        ..ask("", &history, &none)
    };
    assert!(!sent(&options(), &forbid_tools).contains("tool"));
}

#[test]
fn removed_tools_in_history_get_placeholders() {
    let history = [
        user("Roll!"),
        assistant(vec![call("a", "dice", "{}"), call("b", "dice", "{}")]),
        results(vec![result("a", "1"), result("b", "2")]),
    ];
    let body = sent(&options(), &ask("", &history, &offer(&[])));
    let listed = concat!(
        r#""tools":[{"name":"dice","description":"No longer available","input_schema":{"type":"object","properties":{}}}],"#,
        r#""tool_choice":{"type":"none"},"messages""#,
    );
    assert!(body.contains(listed), "{body}");
}

#[test]
fn results_come_before_the_next_user_text() {
    let history = [
        user("One"),
        user("and two"),
        assistant(vec![call("a", "x", "{}"), call("b", "y", "{}")]),
        results(vec![result("a", "1")]),
        results(vec![result("b", " \n")]),
        // None of this can be sent.
        assistant(vec![
            said(" \n"),
            MessagePart::Thinking {
                text: "unsigned".to_owned(),
                signature: None,
            },
        ]),
        user("Three"),
        user("  "),
    ];
    assert_eq!(
        messages(&history, &offer(&[])),
        concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"One"},{"type":"text","text":"and two"}]},"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}},{"type":"tool_use","id":"b","name":"y","input":{}}]},"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},"#,
            r#"{"type":"tool_result","tool_use_id":"b","content":"(no output)"},"#,
            r#"{"type":"text","text":"Three","cache_control":{"type":"ephemeral"}}]}]"#,
        )
    );
}

#[test]
fn every_call_has_one_result_and_every_result_its_call() {
    let history = [
        user("Go"),
        assistant(vec![call("a", "x", "{}"), call("b", "y", "{}")]),
        results(vec![
            result("b", "2"),
            result("b", "again"),
            result("stranger", "?"),
        ]),
        user("And?"),
        assistant(vec![call("c", "x", "{}")]),
    ];
    assert_eq!(
        messages(&history, &offer(&[])),
        concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"Go"}]},"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}},{"type":"tool_use","id":"b","name":"y","input":{}}]},"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"2"},"#,
            r#"{"type":"tool_result","tool_use_id":"a","content":"(no result: the call was stopped)","is_error":true},"#,
            r#"{"type":"text","text":"And?"}]},"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"x","input":{}}]},"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"(no result: the call was stopped)","is_error":true,"cache_control":{"type":"ephemeral"}}]}]"#,
        )
    );
}

#[test]
fn ids_of_other_providers_are_made_legal_and_still_match() {
    let history = [
        user("Go"),
        assistant(vec![
            call("functions.x:0", "a/b", "{}"),
            call("", "dice", r#"{"half":"#),
        ]),
        results(vec![result("functions.x:0", "1"), result("", "2")]),
        assistant(vec![
            call("functions.x:0", "", "{}"),
            MessagePart::Opaque {
                provider: Provider::OpenAi,
                value: json!({ "type": "secret" }),
            },
            MessagePart::Opaque {
                provider: Provider::Anthropic,
                value: json!({ "type": "redacted_thinking", "data": "xyz" }),
            },
        ]),
        results(vec![result("functions.x:0", "3")]),
    ];
    assert_eq!(
        messages(&history, &offer(&[])),
        concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"Go"}]},"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"functions_x_0","name":"a_b","input":{}},"#,
            r#"{"type":"tool_use","id":"call","name":"dice","input":{}}]},"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions_x_0","content":"1"},"#,
            r#"{"type":"tool_result","tool_use_id":"call","content":"2"}]},"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"functions_x_0_2","name":"_","input":{}},"#,
            r#"{"type":"redacted_thinking","data":"xyz"}]},"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions_x_0_2","content":"3","cache_control":{"type":"ephemeral"}}]}]"#,
        )
    );
}

#[test]
fn images_are_sent_and_unknown_types_described() {
    let image = |kind: &str| ImageData {
        mime_type: kind.to_owned(),
        data: "AAAA".to_owned(),
    };
    let shown = ToolResult {
        images: vec![image("image/png"), image("image/x-icon")],
        ..result("a", "Look")
    };
    let only = ToolResult {
        images: vec![image("image/webp")],
        ..result("b", "")
    };
    let history = [
        user("Go"),
        assistant(vec![call("a", "x", "{}"), call("b", "x", "{}")]),
        results(vec![shown, only]),
    ];
    let sent = messages(&history, &offer(&[]));
    let (_, results) = sent.rsplit_once(r#"{"role":"user","content":"#).unwrap();
    assert_eq!(
        results,
        concat!(
            r#"[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"Look"},"#,
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},"#,
            r#"{"type":"text","text":"(an image of type image/x-icon, which can't be shown)"}]},"#,
            r#"{"type":"tool_result","tool_use_id":"b","content":[{"type":"image","source":{"type":"base64","media_type":"image/webp","data":"AAAA"}}],"cache_control":{"type":"ephemeral"}}]}]"#,
        )
    );
}

#[test]
fn a_paused_reply_is_sent_back_unchanged() {
    let block =
        json!({ "type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {} });
    let history = [
        user("Search"),
        assistant(vec![
            said("Searching "),
            MessagePart::Opaque {
                provider: Provider::Anthropic,
                value: block,
            },
        ]),
        assistant(vec![said("found")]),
    ];
    assert_eq!(
        messages(&history, &offer(&[])),
        concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"Search"}]},"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"Searching "},"#,
            r#"{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}},{"type":"text","text":"found","cache_control":{"type":"ephemeral"}}]}]"#,
        )
    );
}

#[test]
fn the_order_of_tools_does_not_change_the_request() {
    let names = ["b", "a", "c"];
    let make = |name: &&str| tool(name, "Does it", json!({ "type": "object" }));
    let one = offer(&names.iter().map(make).collect::<Vec<_>>());
    let other = offer(&names.iter().rev().map(make).collect::<Vec<_>>());
    let history = [user("Go")];
    let (one, other) = (ask("", &history, &one), ask("", &history, &other));
    assert_eq!(sent(&options(), &one), sent(&options(), &other));
}

#[test]
fn a_combinator_at_the_root_is_lowered() {
    let either = json!({
        "anyOf": [
            { "properties": { "a": { "type": "string" } }, "required": ["a"] },
            { "properties": { "b": { "type": "string" } }, "required": ["b"] },
        ],
        "type": "object",
    });
    let tools = offer(&[tool("either", "One or the other", either)]);
    let body: serde_json::Value =
        serde_json::from_str(&sent(&options(), &ask("", &[user("Go")], &tools))).unwrap();
    let schema = &body["tools"][0]["input_schema"];
    assert_eq!(schema["type"], "object");
    for combinator in ["anyOf", "oneOf", "allOf"] {
        assert!(schema.get(combinator).is_none(), "{schema}");
    }
    let properties = schema["properties"].as_object().unwrap();
    assert!(
        properties.contains_key("a") && properties.contains_key("b"),
        "{schema}"
    );
}

#[test]
fn arguments_keep_their_order() {
    let arguments = CallArguments::parse(r#"{"z":1,"a":{"y":2,"b":3}}"#);
    let part = MessagePart::Call(crate::ModelCall {
        id: "a".to_owned(),
        name: "x".to_owned(),
        arguments,
    });
    let tools = offer(&[]);
    let sent = messages(&[user("Go"), assistant(vec![part])], &tools);
    assert!(
        sent.contains(r#""input":{"z":1,"a":{"y":2,"b":3}}"#),
        "{sent}"
    );
}

#[test]
fn the_answer_limit_fits_the_rest_of_the_window() {
    let tools = offer(&[]);
    let history = [user(&"word ".repeat(300))];
    for (window, most, expected) in [
        (10_000, 4096, 4096),
        // The prompt is 308 tokens.
        (1000, 4096, 692),
        (1000, 500, 500),
        // As much as a conversation keeps free.
        (400, 4096, 100),
    ] {
        let options = RequestOptions {
            window,
            max_tokens: most,
            ..options()
        };
        let body = sent(&options, &ask("", &history, &tools));
        assert!(
            body.contains(&format!("max_tokens\":{expected},")),
            "{body}"
        );
    }
}

#[test]
fn a_conversation_always_begins_with_the_user() {
    let tools = offer(&[]);
    let hello = || Message::Assistant(AssistantMessage::text("Hello."));
    for (history, expected) in [
        (
            vec![user(" "), hello(), user("Well?")],
            r#"[{"role":"user","content":[{"type":"text","text":"(no words)"}]},{"role":"assistant""#,
        ),
        (
            vec![hello(), user("Well?")],
            r#"[{"role":"user","content":[{"type":"text","text":"(no words)"}]},{"role":"assistant""#,
        ),
        (
            vec![user("")],
            r#"[{"role":"user","content":[{"type":"text","text":"(no words)","#,
        ),
        (
            vec![user("Hi"), hello(), user("Well?")],
            r#"[{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"assistant""#,
        ),
    ] {
        let sent = messages(&history, &tools);
        assert!(sent.starts_with(expected), "{sent}");
    }
}
