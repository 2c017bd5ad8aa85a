use serde_json::json;

use super::*;

fn summary(line: &str) -> String {
    match parse(line.as_bytes(), 1_000_000) {
        ClientMessage::Ignored(why) => format!("ignored: {why}"),
        ClientMessage::Response { id, answer } => format!("response {id}: {answer:?}"),
        ClientMessage::Invalid { id, error } => {
            let id = id.map_or("-".to_owned(), |id| id.to_string());
            format!("{id} {} {}", error.code, error.message)
        }
        ClientMessage::Request(request) => {
            let mut message =
                json!({ "jsonrpc": "2.0", "id": request.id, "method": request.method() });
            match request.params {
                RequestParams::CallTool(call) => match call.arguments {
                    Err(unusable) => return format!("call: {}", unusable.error),
                    Ok(arguments) => {
                        message["params"] = json!({ "name": call.name, "arguments": arguments });
                    }
                },
                RequestParams::Json {
                    params: Value::Null,
                    ..
                } => {}
                params => panic!("{params:?}"),
            }
            message.to_string()
        }
        ClientMessage::Notification(notification) => {
            assert!(notification.params.is_null());
            json!({ "jsonrpc": "2.0", "method": notification.method }).to_string()
        }
    }
}

#[test]
fn every_line_is_a_message_or_has_a_reason() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":{}"#,
        "[".repeat(100_000)
    );
    for (line, expected) in [
        ("", "ignored: a blank line"),
        (" \t\r", "ignored: a blank line"),
        ("hello", "- -32700 expected value at line 1 column 1"),
        (
            &deep,
            "- -32700 recursion limit exceeded at line 1 column 160",
        ),
        ("5", "- -32600 a message must be a JSON object"),
        (
            "[]",
            "- -32600 batches are not supported; send one message at a time",
        ),
        ("{}", r#"- -32600 a message needs "jsonrpc": "2.0""#),
        (
            r#"{"jsonrpc":"2.0","id":1}"#,
            "1 -32600 a request needs a method",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            "- -32600 an id must be a string or an integer",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "response 1: Ok(Object {})",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":null}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#,
            "1 -32600 'method' given twice",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"x","a":1,"a":2}"#,
            "ignored: a notification with a duplicate key",
        ),
    ] {
        assert_eq!(summary(line), expected, "{line:.200}");
    }
}

#[test]
fn f7_a_message_of_too_many_values_is_refused_under_its_id() {
    let line = |values: usize| {
        let list = vec!["0"; values].join(",");
        format!(
            r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"echo","arguments":{{"a":[{list}]}}}},"id":7}}"#
        )
    };
    // The message, its four members, the two of `params`, and the list: eight beside the zeros.
    assert!(matches!(
        parse(line(22).as_bytes(), 30),
        ClientMessage::Request(_)
    ));
    let ClientMessage::Invalid { id, error } = parse(line(23).as_bytes(), 30) else {
        panic!("it was taken");
    };
    assert_eq!(id, Some(RequestId::Number(7)));
    assert_eq!(
        error.message,
        "the message has more than 30 values, which is the limit"
    );
}

#[test]
fn pn7_a_call_with_a_key_given_twice_carries_its_error() {
    for (params, expected) in [
        (
            r#"{"name":"echo","arguments":{"a":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}"#,
        ),
        (
            r#"{"name":"echo","arguments":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#,
        ),
        (
            r#"{"name":"echo","arguments":{"a":1,"a":2}}"#,
            "call: Invalid parameters: 'a' given twice",
        ),
        (
            r#"{"name":"echo","arguments":{"o":[{"\u0061":1,"a":2}]}}"#,
            "call: Invalid parameters: 'a' given twice",
        ),
        (
            r#"{"name":"echo","name":"reset"}"#,
            "call: Invalid parameters: 'name' given twice",
        ),
        (
            r#"{"name":"echo","arguments":[1]}"#,
            "call: Invalid parameters: 'arguments' must be object",
        ),
        (
            r#"{"arguments":{}}"#,
            "1 -32602 tools/call needs the name of a tool",
        ),
        (
            "7",
            "1 -32602 tools/call needs params with the name of a tool",
        ),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        assert_eq!(summary(&line), expected, "{params}");
    }
}
