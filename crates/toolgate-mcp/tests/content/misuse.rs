//! Servers that hang or talk nonsense around content: when somebody subscribes, in what they ask,
//! and in what they log.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_mcp::ProtocolEra;

use crate::client::TestClient;
use crate::gateway::{ERAS, Gateway, pairs};

async fn start(era: ProtocolEra, raw: Value) -> Gateway {
    let content = json!({
        "resources": [{ "uri": "x:1" }], "prompts": [{ "name": "p" }], "raw": raw,
    });
    let neighbour = json!({ "resources": [{ "uri": "y:1" }] });
    let servers = [("s", content), ("neighbour", neighbour)];
    let gateway = Gateway::prepare(era, &servers, |options| options.relays_questions = true);
    gateway.start_all().await;
    gateway
}

/// Calls the tool that writes these lines and then answers.
async fn write(client: &mut TestClient, lines: &str) -> Value {
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"resultType":"complete"}}"#;
    let arguments = json!({ "text": format!("{lines}{answer}\n") });
    let params = json!({ "name": "s__raw", "arguments": arguments });
    client.result("tools/call", params).await
}

async fn assert_well(gateway: &Gateway, client: &mut TestClient) {
    assert_eq!(client.read("x:1").await, "x:1 of s");
    assert_eq!(client.read("y:1").await, "y:1 of neighbour");
    let pid = gateway.call("s", "pid", json!({})).await;
    assert!(pid.is_number(), "{pid}");
}

#[tokio::test]
async fn a_list_that_never_comes_costs_only_itself() {
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
            let content = json!({
                "resources": [{ "uri": "x:1" }], "prompts": [{ "name": "p" }], "skills": [skill],
                "extensions": { "io.modelcontextprotocol/skills": {} }, "raw": { method: "" },
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
async fn subscriptions_may_hang_or_be_answered_with_nonsense() {
    let answers = [
        "",
        r#"{"jsonrpc":"2.0","id":$ID,"result":7}\n"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":"no"}\n"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"a","message":[]}}\n"#,
        r#"{"jsonrpc":"2.0","id":$ID\n"#,
        r#"{"jsonrpc":"2.0","id":"$ID","result":{}}\n"#,
    ];
    for (client_era, server_era) in pairs() {
        for answer in answers {
            let raw = json!({ "resources/subscribe": answer, "subscriptions/listen": answer });
            let gateway = start(server_era, raw).await;
            let mut client = gateway.client(client_era).await;
            let started = Instant::now();
            client.subscribe(&["x:1", "y:1"]).await;
            gateway.until_subscribed("neighbour", &["y:1"]).await;
            assert!(gateway.update("neighbour", "y:1").await);
            assert_eq!(client.updated().await, "y:1");
            assert_well(&gateway, &mut client).await;
            assert!(started.elapsed() < Duration::from_secs(10), "{answer}");
            gateway.stop().await;
        }
    }
}

#[tokio::test]
async fn log_messages_that_are_nonsense_or_too_many_hold_up_nothing() {
    let message = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}\n"#)
    };
    let nonsense = [
        "null",
        "[]",
        r#"{"level":"loud","data":1}"#,
        r#"{"level":7,"data":1}"#,
        r#"{"data":"no level"}"#,
    ];
    let nonsense: String = nonsense.map(message).concat();
    let giant = message(&format!(
        r#"{{"level":"info","data":"{}"}}"#,
        "g".repeat(500_000)
    ));
    let flood = message(r#"{"level":"info","logger":"flood","data":"f"}"#).repeat(4_000);
    for (client_era, server_era) in pairs() {
        let gateway = start(server_era, json!({})).await;
        let form = json!({ "who": "Ada" });
        let mut client = gateway
            .client_answering(client_era, &["*"], &[], form)
            .await;
        write(&mut client, &nonsense).await;
        assert!(client.drain().await.is_empty());
        write(&mut client, &giant).await;
        let heard = client.drain().await;
        let text = heard[0]["params"]["data"].as_str().unwrap();
        assert!(
            text.contains("ggg") && text.len() < 70_000,
            "{}",
            text.len()
        );
        write(&mut client, &flood).await;
        let heard = client.drain().await;
        let is_notice = |next: &&Value| next["params"]["logger"] == "toolgate";
        assert!(heard.len() < 4_000, "{}", heard.len());
        assert!(
            heard.iter().any(|next| is_notice(&next)),
            "nobody says that some are missing"
        );
        assert_well(&gateway, &mut client).await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn questions_that_are_nonsense_or_too_many_hold_up_nothing() {
    let question = |id: &str, method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}\n"#)
    };
    let nonsense: String = [
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
    let flood: String = (0..2_000)
        .map(|id| question(&id.to_string(), "elicitation/create", r#"{"message":"f"}"#))
        .collect();
    let giant = format!(r#"{{"message":"{}"}}"#, "g".repeat(500_000));
    let giant = question("5", "elicitation/create", &giant);
    for era in ERAS {
        let gateway = start(ProtocolEra::Legacy, json!({})).await;
        let form = json!({ "who": "Ada" });
        let mut client = gateway.client_answering(era, &["*"], &[], form).await;
        for lines in [&nonsense, &flood, &giant] {
            let started = Instant::now();
            write(&mut client, lines).await;
            assert!(started.elapsed() < Duration::from_secs(10));
        }
        // What it asked too late was for nobody, and it can ask again.
        client.asked.lock().clear();
        let ask = json!({ "name": "s__elicit", "arguments": { "message": "still?" } });
        let answer = client.result("tools/call", ask).await.to_string();
        assert!(answer.contains("Ada"), "{answer}");
        assert_eq!(*client.asked.lock(), ["still?"]);
        assert_well(&gateway, &mut client).await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn input_requests_that_are_nonsense_end_their_call() {
    let nonsense = [
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"input_required","inputRequests":"none"}"#,
        r#"{"resultType":"input_required","inputRequests":[]}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":7}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"tools/list"}}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}"#,
        r#"{"resultType":"input_required","inputRequests":{},"requestState":[1]}"#,
    ];
    for result in nonsense {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}\n"#);
        let methods = ["tools/call", "resources/read", "prompts/get"];
        let raw = methods.map(|method| (method.to_owned(), json!(answer)));
        let raw = Value::from_iter(raw);
        let gateway = start(ProtocolEra::Modern, raw).await;
        for era in ERAS {
            let form = json!({ "who": "Ada" });
            let mut client = gateway.client_answering(era, &["*"], &[], form).await;
            let call = json!({ "name": "s__echo", "arguments": { "text": "t" } });
            let called = client.result("tools/call", call).await;
            assert_eq!(called["isError"], true, "{result}: {called}");
            client
                .error("resources/read", json!({ "uri": "x:1" }))
                .await;
            client.error("prompts/get", json!({ "name": "p" })).await;
            assert_eq!(client.read("y:1").await, "y:1 of neighbour");
        }
        gateway.stop().await;
    }
}
