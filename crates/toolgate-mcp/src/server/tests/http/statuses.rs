use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::Frame;
use proptest::prelude::*;

use super::*;

/// The status of a response, and the code of its error.
async fn summary(response: Response<HttpBody>) -> (u16, i64) {
    let status = response.status().as_u16();
    let message = json_of(response).await;
    assert_eq!(message["jsonrpc"], "2.0");
    (status, message["error"]["code"].as_i64().unwrap_or(0))
}

#[tokio::test]
async fn an_invalid_message_is_rejected_with_the_reason() {
    let mcp = http(&manager());
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}"#,
        "[".repeat(5_000)
    );
    for (body, expected) in [
        ("", (400, -32700)),
        (" \r\n", (400, -32700)),
        ("hello", (400, -32700)),
        (r#"{"jsonrpc":"2.0","#, (400, -32700)),
        (&deep, (400, -32700)),
        ("7", (400, -32600)),
        ("[]", (400, -32600)),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            (400, -32600),
        ),
        ("{}", (400, -32600)),
        (r#"{"jsonrpc":"2.0","id":1}"#, (400, -32600)),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            (400, -32600),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","id":2}"#,
            (400, -32600),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            (400, -32602),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
            (400, -32602),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#,
            (200, -32602),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/destroy"}"#,
            (200, -32601),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}"#,
            (200, -32601),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, (200, 0)),
    ] {
        let answer = caller.send("POST", body.to_owned()).await;
        assert_eq!(summary(answer).await, expected, "{body:.80}");
    }
    let answer = caller.send("POST", &b"\xff\xfe"[..]).await;
    assert_eq!(summary(answer).await, (400, -32700));
}

#[tokio::test]
async fn headers_that_do_not_fit_are_refused() {
    let mcp = http(&manager());
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let other_owner = HttpCaller {
        owner: 2,
        ..caller.clone()
    };
    let strange = caller.with("mcp-session-id", "00000000000000000000000000000000");
    let ping = request_message("ping", json!({}));
    for (caller, method, expected) in [
        (caller.clone(), "POST", (200, 0)),
        (caller.with("accept", ""), "POST", (200, 0)),
        (caller.with("accept", "*/*"), "POST", (200, 0)),
        (caller.with("accept", "application/json"), "POST", (200, 0)),
        (caller.with("accept", "text/html"), "POST", (406, -32000)),
        (
            caller.with("accept", "application/json;q=0"),
            "POST",
            (406, -32000),
        ),
        (
            caller.with("content-type", "Application/JSON; charset=utf-8"),
            "POST",
            (200, 0),
        ),
        (caller.with("content-type", ""), "POST", (415, -32000)),
        (
            caller.with("content-type", "text/plain"),
            "POST",
            (415, -32000),
        ),
        (
            caller.with("content-type", "application/jsonp"),
            "POST",
            (415, -32000),
        ),
        (caller.with("mcp-session-id", ""), "POST", (400, -32600)),
        (
            caller.with("mcp-session-id", "nonsense"),
            "POST",
            (404, -32001),
        ),
        (strange.clone(), "POST", (404, -32001)),
        (other_owner.clone(), "POST", (404, -32001)),
        (
            caller.with("mcp-protocol-version", "2025-03-26"),
            "POST",
            (200, 0),
        ),
        (
            caller.with("mcp-protocol-version", "1999-01-01"),
            "POST",
            (400, -32022),
        ),
        (
            caller.with("mcp-method", "tools/list"),
            "POST",
            (400, -32020),
        ),
        (caller.with("accept", "*/*"), "GET", (406, -32000)),
        (caller.with("mcp-session-id", ""), "GET", (400, -32600)),
        (strange.clone(), "GET", (404, -32001)),
        (other_owner.clone(), "GET", (404, -32001)),
        (
            caller.with("mcp-protocol-version", "1999-01-01"),
            "GET",
            (400, -32022),
        ),
        (
            caller.with("mcp-protocol-version", "2026-07-28"),
            "GET",
            (405, -32000),
        ),
        (caller.with("last-event-id", "what"), "GET", (400, -32600)),
        (caller.with("last-event-id", "99-1"), "GET", (400, -32600)),
        (caller.with("mcp-session-id", ""), "DELETE", (400, -32600)),
        (strange, "DELETE", (404, -32001)),
        (other_owner, "DELETE", (404, -32001)),
        (
            caller.with("mcp-protocol-version", "2026-07-28"),
            "DELETE",
            (405, -32000),
        ),
        (caller.clone(), "PUT", (405, -32000)),
        (caller.clone(), "OPTIONS", (405, -32000)),
    ] {
        let headers = caller.headers.clone();
        let answer = caller.send(method, ping.to_string()).await;
        assert_eq!(summary(answer).await, expected, "{method} {headers:?}");
    }
    // A repeated header: a proxy may have read the other value.
    let mut twice = caller.clone();
    twice.headers.push(twice.headers[2].clone());
    assert_eq!(summary(twice.post(ping).await).await, (400, -32600));
    let refused = caller.send("PUT", "").await;
    assert_eq!(refused.headers()["allow"], "GET, POST, DELETE");
}

#[tokio::test]
async fn in_the_newer_era_headers_and_body_agree() {
    let mcp = http(&manager());
    let list = modern_request_message("tools/list", json!({}));
    let call = modern_request_message("tools/call", json!({ "name": "number" }));
    let lister = HttpCaller::modern(&mcp, "tools/list", "");
    let caller = HttpCaller::modern(&mcp, "tools/call", "number");
    let other = |key: &str, value: Value| {
        let mut other = list.clone();
        other["params"]["_meta"][key] = value;
        other
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let unheard = lister.with("mcp-protocol-version", "2027-01-01");
    for (caller, message, expected) in [
        (lister.clone(), list.clone(), (200, 0)),
        (caller.clone(), call.clone(), (200, 0)),
        (
            caller.with("mcp-name", "=?base64?bnVtYmVy?="),
            call.clone(),
            (200, 0),
        ),
        (
            caller.with("mcp-name", "=?base64?!?="),
            call.clone(),
            (400, -32020),
        ),
        (caller.with("mcp-name", "echo"), call.clone(), (400, -32020)),
        (caller.with("mcp-name", ""), call.clone(), (400, -32020)),
        (
            caller.with("mcp-method", "tools/list"),
            call.clone(),
            (400, -32020),
        ),
        (caller.with("mcp-method", ""), call.clone(), (400, -32020)),
        (
            lister.with("mcp-protocol-version", ""),
            list.clone(),
            (400, -32020),
        ),
        (
            lister.with("mcp-protocol-version", "2025-11-25"),
            list.clone(),
            (400, -32020),
        ),
        (unheard, other(version, json!("2027-01-01")), (400, -32022)),
        (
            lister.clone(),
            request_message("tools/list", json!({})),
            (400, -32602),
        ),
        (lister.clone(), other(capabilities, json!(7)), (400, -32602)),
        (
            lister.with("mcp-method", "ping"),
            modern_request_message("ping", json!({})),
            (404, -32601),
        ),
        (
            lister.with("mcp-method", "prompts/list"),
            modern_request_message("prompts/list", json!({})),
            (404, -32601),
        ),
        (
            lister.with("mcp-method", "initialize"),
            modern_request_message("initialize", json!({})),
            (404, -32601),
        ),
        (
            lister.with("mcp-method", "x"),
            modern_request_message("x", json!({})),
            (404, -32601),
        ),
    ] {
        let headers = caller.headers.clone();
        let answer = summary(caller.post(message.clone()).await).await;
        assert_eq!(answer, expected, "{headers:?} {message}");
    }
    let unheard = lister.with("mcp-protocol-version", "2027-01-01");
    let refused = json_of(unheard.post(other(version, json!("2027-01-01"))).await).await;
    assert_eq!(refused["error"]["data"]["requested"], "2027-01-01");
    assert_eq!(refused["error"]["data"]["supported"][4], "2026-07-28");
    assert_eq!(refused["id"], 1);
    // It can't be about anything, but is not an error either.
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(lister.post(cancelled).await.status(), 202);
    assert_eq!(mcp.session_count(), 0);
}

#[tokio::test]
async fn arguments_that_a_schema_wants_in_headers_are_compared_too() {
    let manager = manager();
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "at": { "type": "object", "properties": { "floor": { "type": "integer", "x-mcp-header": "Floor" } } },
    } });
    manager.add(WorkerTool {
        definition: ToolDefinition::builder("lamp", "…", schema)
            .build()
            .unwrap(),
        work: |_, _| Box::pin(async { Ok(ToolOutput::text("lit")) }),
    });
    let mcp = http(&manager);
    let caller = HttpCaller::modern(&mcp, "tools/call", "lamp");
    for (arguments, region, floor, status) in [
        (json!({}), "", "", 200),
        (json!({ "region": "west" }), "west", "", 200),
        (json!({ "region": "west" }), "=?base64?d2VzdA==?=", "", 200),
        (json!({ "region": "west" }), "east", "", 400),
        (json!({ "region": "west" }), "", "", 400),
        (json!({}), "west", "", 400),
        (json!({ "at": { "floor": 2 } }), "", "2", 200),
        (json!({ "at": { "floor": 2 } }), "", "2.0", 200),
        (json!({ "at": { "floor": 2 } }), "", "3", 400),
        (json!({ "at": { "floor": null } }), "", "2", 400),
    ] {
        let caller = caller.with("mcp-param-region", region);
        let caller = caller.with("mcp-param-floor", floor);
        let params = json!({ "name": "lamp", "arguments": arguments });
        let (answer, code) = summary(
            caller
                .post(modern_request_message("tools/call", params))
                .await,
        )
        .await;
        let expected = if status == 400 { -32020 } else { 0 };
        assert_eq!(
            (answer, code),
            (status, expected),
            "{arguments} {region} {floor}"
        );
    }
}

/// A body of unknown length.
struct EndlessBody(usize);

impl http_body::Body for EndlessBody {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0 == 0 {
            return Poll::Ready(None);
        }
        self.0 -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 65_536])))))
    }
}

#[tokio::test]
async fn a_message_that_is_too_large_is_not_read() {
    let mcp = http(&manager());
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    // The executor takes 1 MiB of arguments; a message has some room around them.
    let answer = caller.send("POST", vec![b' '; 1 << 21]).await;
    assert_eq!(summary(answer).await, (413, -32000));
    for (pieces, expected) in [(17, (400, -32700)), (18, (413, -32000))] {
        let (parts, _) = caller.request("POST", "").into_parts();
        let request = Request::from_parts(parts, EndlessBody(pieces));
        assert_eq!(summary(mcp.respond(request, 1).await).await, expected);
    }
    let params = json!({ "name": "echo", "arguments": { "a": "x".repeat(1 << 20) } });
    let answer = caller.ask("tools/call", params).await;
    assert_eq!(answer["result"]["isError"], true);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z/]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "2.0",
            "tools/call",
            "tools/list",
            "ping",
            "echo",
            "initialize"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let keys = prop::sample::select(vec![
            "jsonrpc",
            "id",
            "method",
            "params",
            "name",
            "arguments",
            "_meta",
            "progressToken",
            "result",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((keys, inner), 0..6).prop_map(|entries| {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value));
                Value::Object(entries.collect())
            }),
        ]
    })
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let methods = prop::sample::select(vec![
        "tools/call",
        "tools/list",
        "ping",
        "initialize",
        "server/discover",
        "notifications/cancelled",
        "subscriptions/listen",
        "completion/complete",
        "x",
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        json_value().prop_map(|value| value.to_string().into_bytes()),
        (methods, json_value(), json_value()).prop_map(|(method, id, params)| {
            let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            message.to_string().into_bytes()
        }),
    ]
}

proptest! {
    #[test]
    fn every_request_is_answered(body in message(), modern: bool, cut in 0_usize..400) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mcp = http(&manager());
            let caller = if modern {
                HttpCaller::new(&mcp).with("mcp-protocol-version", "2026-07-28")
            } else {
                HttpCaller::with_session(&mcp, "2025-11-25").await
            };
            let body = &body[..body.len().min(cut)];
            let answer = caller.send("POST", body.to_vec()).await;
            let status = answer.status().as_u16();
            prop_assert!([200, 202, 400, 404].contains(&status), "{status}");
            if answer.headers().get("content-type").is_some_and(|kind| kind == "application/json") {
                let message = json_of(answer).await;
                prop_assert!(message.get("result").is_some() != message.get("error").is_some(), "{message}");
                prop_assert!(status == 200 || message.get("error").is_some(), "{message}");
            }
            Ok(())
        })?;
    }
}
