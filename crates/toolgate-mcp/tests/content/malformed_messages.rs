//! Servers that hang, or send malformed or excessive messages: subscriptions, questions to
//! the client, and logs.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_mcp::ProtocolEra;

use crate::client::TestClient;
use crate::gateway::{ERAS, Gateway, era_pairs};

/// A gateway for the server `s` and a healthy neighbour. `raw` has the bytes by which `s` replaces
/// its responses, by method.
async fn start_gateway(era: ProtocolEra, raw: Value) -> Gateway {
    let content = json!({
        "resources": [{ "uri": "x:1" }], "prompts": [{ "name": "p" }], "raw": raw,
    });
    let neighbour = json!({ "resources": [{ "uri": "y:1" }] });
    let servers = [("s", content), ("neighbour", neighbour)];
    let gateway = Gateway::prepare(era, &servers, |options| options.relays_questions = true);
    gateway.start_all().await;
    gateway
}

/// Calls the tool that writes these lines and then a response.
async fn call_raw_tool(client: &mut TestClient, lines: &str) -> Value {
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"resultType":"complete"}}"#;
    let arguments = json!({ "text": format!("{lines}{answer}\n") });
    let params = json!({ "name": "s__raw", "arguments": arguments });
    client.result("tools/call", params).await
}

async fn assert_still_working(gateway: &Gateway, client: &mut TestClient) {
    assert_eq!(client.read("x:1").await, "x:1 of s");
    assert_eq!(client.read("y:1").await, "y:1 of neighbour");
    let pid = gateway.call("s", "pid", json!({})).await;
    assert!(pid.is_number(), "{pid}");
}

#[tokio::test]
async fn a_hanging_list_does_not_affect_other_lists() {
    for era in ERAS {
        for method in [
            "resources/list",
            "resources/templates/list",
            "prompts/list",
            "skills/list",
        ] {
            let frontmatter = json!({ "name": "s", "description": "d" });
            let skill = json!({
                "uri": "skill://s/SKILL.md", "frontmatter": frontmatter, "resources": "dynamic",
            });
            // An empty reply: the server never answers.
            let raw = json!({ method: "" });
            let content = json!({
                "resources": [{ "uri": "x:1" }], "prompts": [{ "name": "p" }], "skills": [skill],
                "extensions": { "io.modelcontextprotocol/skills": {} }, "raw": raw,
            });
            let neighbour = json!({ "resources": [{ "uri": "y:1" }] });
            let servers = [("s", content), ("neighbour", neighbour)];
            let mut gateway = Gateway::prepare(era, &servers, |_| {});
            gateway.settings[0].start_timeout = Some(Duration::from_secs(2));
            gateway.apply().await;
            let mut client = gateway.client(era).await;
            assert_eq!(client.read("y:1").await, "y:1 of neighbour");
            let tools = client.list("tools/list").await;
            assert!(tools.contains(&"echo".to_owned()), "{method}: {tools:?}");
            assert!(
                tools.contains(&"neighbour__echo".to_owned()),
                "{method}: {tools:?}"
            );
            let resources = client.list("resources/list").await;
            assert_eq!(
                resources.contains(&"x:1".to_owned()),
                method != "resources/list"
            );
            let prompts = client.list("prompts/list").await;
            assert_eq!(prompts.contains(&"p".to_owned()), method != "prompts/list");
            let skills = client.result("skills/list", json!({})).await;
            let count = skills["skills"].as_array().unwrap().len();
            assert_eq!(count, usize::from(method != "skills/list"), "{method}");
            gateway.stop().await;
        }
    }
}

#[tokio::test]
async fn hanging_or_malformed_subscribe_responses_affect_no_other_server() {
    let answers = [
        "",
        r#"{"jsonrpc":"2.0","id":$ID,"result":7}\n"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":"no"}\n"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"a","message":[]}}\n"#,
        r#"{"jsonrpc":"2.0","id":$ID\n"#,
        r#"{"jsonrpc":"2.0","id":"$ID","result":{}}\n"#,
    ];
    for (client_era, server_era) in era_pairs() {
        for answer in answers {
            let raw = json!({ "resources/subscribe": answer, "subscriptions/listen": answer });
            let gateway = start_gateway(server_era, raw).await;
            let mut client = gateway.client(client_era).await;
            let started = Instant::now();
            client.subscribe(&["x:1", "y:1"]).await;
            gateway.wait_until_subscribed("neighbour", &["y:1"]).await;
            assert!(gateway.update("neighbour", "y:1").await);
            assert_eq!(client.next_updated_uri().await, "y:1");
            assert_still_working(&gateway, &mut client).await;
            assert!(started.elapsed() < Duration::from_secs(10), "{answer}");
            gateway.stop().await;
        }
    }
}

#[tokio::test]
async fn malformed_or_excessive_log_messages_block_nothing() {
    let message = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}\n"#)
    };
    let malformed = [
        "null",
        "[]",
        r#"{"level":"loud","data":1}"#,
        r#"{"level":7,"data":1}"#,
        r#"{"data":"no level"}"#,
    ];
    let malformed: String = malformed.map(message).concat();
    let giant = message(&format!(
        r#"{{"level":"info","data":"{}"}}"#,
        "g".repeat(500_000)
    ));
    let many = message(r#"{"level":"info","logger":"flood","data":"f"}"#).repeat(4_000);
    for (client_era, server_era) in era_pairs() {
        let gateway = start_gateway(server_era, json!({})).await;
        let form = json!({ "who": "Ada" });
        let mut client = gateway
            .client_answering(client_era, &["*"], &[], form)
            .await;
        call_raw_tool(&mut client, &malformed).await;
        assert!(client.drain().await.is_empty());
        call_raw_tool(&mut client, &giant).await;
        let logged = client.drain().await;
        let text = logged[0]["params"]["data"].as_str().unwrap();
        assert!(
            text.contains("ggg") && text.len() < 70_000,
            "{}",
            text.len()
        );
        call_raw_tool(&mut client, &many).await;
        let logged = client.drain().await;
        let is_notice = |next: &&Value| next["params"]["logger"] == "toolgate";
        assert!(logged.len() < 4_000, "{}", logged.len());
        assert!(
            logged.iter().any(|next| is_notice(&next)),
            "no notice about dropped log messages"
        );
        assert_still_working(&gateway, &mut client).await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn malformed_or_excessive_requests_block_nothing() {
    let question = |id: &str, method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}\n"#)
    };
    let malformed: String = [
        ("1", "elicitation/create", "null"),
        ("1", "elicitation/create", "[]"),
        (r#""same""#, "elicitation/create", r#"{"message":7}"#),
        (
            r#""same""#,
            "elicitation/create",
            r#"{"message":"m","requestedSchema":"none"}"#,
        ),
        (
            "-5",
            "elicitation/create",
            r#"{"message":"m","mode":"riddle"}"#,
        ),
        ("2.5", "sampling/createMessage", r#"{"messages":"none"}"#),
        ("{}", "roots/list", "{}"),
        ("3", "tools/list", "{}"),
        ("4", "initialize", "{}"),
    ]
    .map(|(id, method, params)| question(id, method, params))
    .concat();
    let many: String = (0..2_000)
        .map(|id| question(&id.to_string(), "elicitation/create", r#"{"message":"f"}"#))
        .collect();
    let giant = format!(r#"{{"message":"{}"}}"#, "g".repeat(500_000));
    let giant = question("5", "elicitation/create", &giant);
    for era in ERAS {
        let gateway = start_gateway(ProtocolEra::Legacy, json!({})).await;
        let form = json!({ "who": "Ada" });
        let mut client = gateway.client_answering(era, &["*"], &[], form).await;
        for lines in [&malformed, &many, &giant] {
            let started = Instant::now();
            call_raw_tool(&mut client, lines).await;
            assert!(started.elapsed() < Duration::from_secs(10));
        }
        // Questions that arrived after their call had ended are dropped; a new call can still ask.
        client.received_questions.lock().clear();
        let ask = json!({ "name": "s__elicit", "arguments": { "message": "still?" } });
        let answer = client.result("tools/call", ask).await.to_string();
        assert!(answer.contains("Ada"), "{answer}");
        assert_eq!(*client.received_questions.lock(), ["still?"]);
        assert_still_working(&gateway, &mut client).await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn malformed_input_requests_fail_their_call() {
    let malformed = [
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"input_required","inputRequests":"none"}"#,
        r#"{"resultType":"input_required","inputRequests":[]}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":7}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"tools/list"}}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}"#,
        r#"{"resultType":"input_required","inputRequests":{},"requestState":[1]}"#,
    ];
    for result in malformed {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}\n"#);
        let methods = ["tools/call", "resources/read", "prompts/get"];
        let raw = methods.map(|method| (method.to_owned(), json!(answer)));
        let raw = Value::from_iter(raw);
        let gateway = start_gateway(ProtocolEra::Modern, raw).await;
        for era in ERAS {
            let form = json!({ "who": "Ada" });
            let mut client = gateway.client_answering(era, &["*"], &[], form).await;
            let call = json!({ "name": "s__echo", "arguments": { "text": "t" } });
            let called = client.result("tools/call", call).await;
            assert_eq!(called["isError"], true, "{result}: {called}");
            client
                .expect_error("resources/read", json!({ "uri": "x:1" }))
                .await;
            client
                .expect_error("prompts/get", json!({ "name": "p" }))
                .await;
            assert_eq!(client.read("y:1").await, "y:1 of neighbour");
        }
        gateway.stop().await;
    }
}
