//! Resources and prompts: listed, read and filled in, each as a call.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_core::{
    ContentMethod, FunctionTool, SourceContent, Tool, ToolDefinition, ToolError, ToolOutput,
    ToolRank, ToolSource,
};
use toolgate_mcp::{SecretHeaders, ServerConnection, ServerSettings};
use toolgate_server::ServeSettings;

use crate::test_gateway::{ApiTestGateway, TestGatewayOptions, long, token, token_with};

fn source(server: &str) -> ToolSource {
    ToolSource::Mcp(server.to_owned())
}

/// Answers with what it received: resources with their URI, prompts with a link to a resource.
fn content_tool(server: &str, method: ContentMethod) -> Arc<dyn Tool> {
    let definition = method.definition(source(server));
    let answer = async |given: Map<String, Value>, _| {
        if given.get("uri") == Some(&json!("x:broken")) {
            let error = ToolError::failed("the disk is gone");
            return Err(error.with_details("stderr: a line of another's call"));
        }
        let link = json!({ "type": "resource_link", "uri": "x:2", "name": "Two" });
        let message = json!({ "role": "user", "content": link });
        Ok(match given.get("uri") {
            Some(uri) => json!({
                "resultType": "complete",
                "contents": [{ "uri": uri, "text": "one" }, { "uri": "x:2", "blob": "AAAA" }],
                "_meta": { "received": given },
            }),
            None => json!({ "messages": [message], "_meta": { "received": given } }),
        })
    };
    Arc::new(FunctionTool::with_definition(definition, answer).unwrap())
}

/// Two servers that list the same resource and the same prompt.
fn offer(gateway: &ApiTestGateway) {
    for (rank, server) in ["a", "b"].into_iter().enumerate() {
        let mut content = SourceContent::default();
        content.instructions = Some("Read\u{200b} first.".to_owned());
        let entry = json!({ "uri": "x:1", "name": "one", "title": "O\u{200b}ne", "server": "c" });
        content.resources = vec![entry];
        content.templates = vec![json!({ "uriTemplate": "x:{id}", "name": "any" })];
        let prompt = json!({ "name": "review", "arguments": [{ "name": "style" }] });
        content.prompts = vec![prompt];
        content.access.read_resource = Some(content_tool(server, ContentMethod::ReadResource));
        content.access.get_prompt = Some(content_tool(server, ContentMethod::GetPrompt));
        let manager = gateway.executor.manager();
        let rank = ToolRank::Server(rank);
        manager.replace_content(&source(server), rank, Some(Arc::new(content)));
    }
}

async fn gateway(plan: TestGatewayOptions) -> ApiTestGateway {
    let gateway = ApiTestGateway::start_with(plan).await;
    offer(&gateway);
    gateway
}

async fn read(gateway: &ApiTestGateway, uri: &str) -> Value {
    let body = json!({ "uri": uri });
    let reply = gateway.post("/api/resources/read", &body).await;
    reply.json()
}

#[tokio::test]
async fn content_is_listed_with_its_server_and_the_address_to_use() {
    let gateway = gateway(TestGatewayOptions::default()).await;
    let entry = |uri: &str, server: &str| json!({ "uri": uri, "name": "one", "title": "One", "server": server });
    let template =
        |uri: &str, server: &str| json!({ "uriTemplate": uri, "name": "any", "server": server });
    assert_eq!(
        gateway.get("/api/resources").await.json(),
        json!({
            "resources": [entry("x:1", "a"), entry("toolgate://b/x:1", "b")],
            "templates": [template("x:{id}", "a"), template("toolgate://b/x:{id}", "b")],
        })
    );
    let prompt = |name: &str, server: &str| json!({ "name": name, "arguments": [{ "name": "style" }], "server": server });
    assert_eq!(
        gateway.get("/api/prompts").await.json(),
        json!({ "prompts": [prompt("review", "a"), prompt("b__review", "b")] })
    );
}

#[tokio::test]
async fn a_server_is_shown_with_its_instructions() {
    let gateway = gateway(TestGatewayOptions::default()).await;
    let connection = ServerConnection::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: SecretHeaders::default(),
    };
    let settings = ["a", "c"].map(|name| ServerSettings::new(name, connection.clone()));
    gateway.servers.apply(settings.into());
    gateway.servers.start_all().await;
    offer(&gateway);
    let list = gateway.get("/api/servers").await.json();
    for (at, (name, instructions)) in [("a", json!("Read first.")), ("c", Value::Null)]
        .into_iter()
        .enumerate()
    {
        let server = gateway.get(&format!("/api/servers/{name}")).await.json();
        assert_eq!(server["instructions"], instructions);
        assert_eq!(server["state"], list[at]["state"]);
    }
    let unknown = gateway.get("/api/servers/b").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.problem().contains("there is no MCP server 'b'"));
}

#[tokio::test]
async fn a_read_asks_the_owner_and_links_lead_back_to_it() {
    let gateway = gateway(TestGatewayOptions::default()).await;
    for (asked, own, other) in [
        ("x:1", "x:1", "x:2"),
        ("toolgate://a/x:1", "x:1", "x:2"),
        ("toolgate://b/x:7", "x:7", "toolgate://b/x:2"),
    ] {
        let envelope = read(&gateway, asked).await;
        assert_eq!(envelope["success"], true, "{envelope}");
        assert_eq!(envelope["tool_name"], "resources/read");
        let contents = json!([{ "uri": asked, "text": "one" }, { "uri": other, "blob": "AAAA" }]);
        let received = json!({ "received": { "uri": own } });
        let result = json!({ "contents": contents, "_meta": received });
        assert_eq!(envelope["result"], result);
    }
}

#[tokio::test]
async fn a_prompt_is_filled_in_with_its_arguments() {
    let gateway = gateway(TestGatewayOptions::default()).await;
    for (asked, link) in [("review", "x:2"), ("b__review", "toolgate://b/x:2")] {
        let body = json!({ "name": asked, "arguments": { "style": "short" } });
        let envelope = gateway.post("/api/prompts/get", &body).await.json();
        let result = &envelope["result"];
        assert_eq!(result["messages"][0]["content"]["uri"], link, "{envelope}");
        let received = json!({ "name": "review", "arguments": { "style": "short" } });
        assert_eq!(result["_meta"]["received"], received);
    }
    let body = json!({ "name": "review" });
    let envelope = gateway.post("/api/prompts/get", &body).await.json();
    let received = &envelope["result"]["_meta"]["received"];
    assert_eq!(*received, json!({ "name": "review" }));
    let body = json!({ "name": "review", "arguments": { "style": 7 } });
    let envelope = gateway.post("/api/prompts/get", &body).await.json();
    assert_eq!(envelope["error_kind"], "invalid_arguments", "{envelope}");
}

#[tokio::test]
async fn requests_for_unknown_content_say_so() {
    let gateway = gateway(TestGatewayOptions::default()).await;
    for (path, body) in [
        ("/api/resources/read", json!({ "uri": "y:1" })),
        ("/api/resources/read", json!({ "uri": "toolgate://c/x:1" })),
        ("/api/resources/read", json!({ "uri": "<b>\u{202e}" })),
        ("/api/prompts/get", json!({ "name": "a__other" })),
    ] {
        let reply = gateway.post(path, &body).await;
        assert_eq!(reply.status, 404, "{body}");
        let envelope = reply.json();
        assert_eq!(envelope["success"], false, "{envelope}");
        let error = envelope["error"].as_str().unwrap();
        assert!(error.starts_with("No server offers the "), "{error}");
        assert!(!error.contains('\u{202e}'), "{error}");
    }
    for (path, body, status) in [
        ("/api/resources/read", "{}", 422),
        ("/api/resources/read", r#"{"uri":7}"#, 422),
        ("/api/resources/read", r#"{"uri":"x:1","also":1}"#, 422),
        ("/api/resources/read", r#"{"uri":"x:1","uri":"x:2"}"#, 400),
        ("/api/resources/read", "[]", 400),
        ("/api/prompts/get", r#"{"arguments":{}}"#, 422),
        (
            "/api/prompts/get",
            r#"{"name":"review","arguments":[]}"#,
            422,
        ),
    ] {
        let reply = gateway.ask(http::Method::POST, path, body).await;
        assert_eq!(reply.status, status, "{body}");
        reply.problem();
    }
    let body = json!({ "uri": "x:1" });
    let late = gateway
        .post("/api/resources/read?timeout=soon", &body)
        .await;
    assert_eq!(late.status, 400);
    assert_eq!(late.json()["error_kind"], "invalid_arguments");
}

#[tokio::test]
async fn long_arguments_are_accepted_up_to_the_limit_of_calls() {
    let gateway = gateway(TestGatewayOptions::default()).await;
    let with =
        |length: usize| json!({ "name": "review", "arguments": { "style": "x".repeat(length) } });
    let reply = gateway.post("/api/prompts/get", &with(200 << 10)).await;
    assert_eq!(reply.json()["success"], true, "{}", reply.status);
    let limit = gateway.executor.rules().limits.max_arguments;
    for length in [limit, limit + (1 << 20)] {
        let reply = gateway.post("/api/prompts/get", &with(length)).await;
        assert_eq!(reply.status, 413, "{length}");
    }
}

#[tokio::test]
async fn a_read_is_recorded_announced_and_counted_like_a_call() {
    for has_journal in [false, true] {
        let plan = TestGatewayOptions {
            has_journal,
            ..TestGatewayOptions::default()
        };
        let gateway = gateway(plan).await;
        let mut events = gateway.events("/api/events?kinds=call").await;
        let envelope = read(&gateway, "toolgate://b/x:1").await;
        let event = events.expect("call").await;
        assert_eq!(event["id"], envelope["call_id"]);
        let of = (&event["tool"], &event["server"], &event["origin"]);
        assert_eq!(of, (&json!("resources/read"), &json!("b"), &json!("http")));
        assert_eq!(event["arguments"], json!({ "uri": "x:1" }));
        let id = envelope["call_id"].as_str().unwrap();
        let call = gateway.get(&format!("/api/calls/{id}")).await.json();
        assert_eq!(call["success"], true);
        assert_eq!(call["tool_definition"]["name"], "resources/read");
        assert_eq!(call["tool_definition"]["server"], "b");
        let metrics = gateway.get("/metrics").await.text;
        let counted = metrics.lines().find(|line| {
            line.starts_with("toolgate_calls_total") && line.contains("\"resources/read\"")
        });
        assert!(
            counted.is_some_and(|line| line.ends_with(" 1")),
            "{metrics}"
        );
        let missing = read(&gateway, "y:1").await;
        let id = missing["call_id"].as_str().unwrap();
        let call = gateway.get(&format!("/api/calls/{id}")).await.json();
        assert_eq!(call["success"], false, "{call}");
    }
}

#[tokio::test]
async fn a_recorded_read_is_replayed_on_the_same_server() {
    let plan = TestGatewayOptions {
        has_journal: true,
        ..TestGatewayOptions::default()
    };
    let gateway = gateway(plan).await;
    let body = json!({ "name": "b__review", "arguments": { "style": "short" } });
    let prompt = gateway.post("/api/prompts/get", &body).await.json();
    let resource = read(&gateway, "toolgate://b/x:1").await;
    for envelope in [&prompt, &resource] {
        let id = envelope["call_id"].as_str().unwrap();
        let path = format!("/api/calls/{id}/replay");
        let again = gateway.post(&path, &json!({})).await.json();
        assert_eq!(again["result"]["_meta"], envelope["result"]["_meta"]);
        let id = again["call_id"].as_str().unwrap();
        let call = gateway.get(&format!("/api/calls/{id}")).await.json();
        assert_eq!(call["server"], "b", "{call}");
    }
    let manager = gateway.executor.manager();
    manager.replace_content(&source("b"), ToolRank::Server(1), None);
    let id = resource["call_id"].as_str().unwrap();
    let path = format!("/api/calls/{id}/replay");
    assert_eq!(gateway.post(&path, &json!({})).await.status, 404);
}

#[tokio::test]
async fn links_in_results_of_tools_lead_to_their_server() {
    let gateway = gateway(TestGatewayOptions::default()).await;
    let definition = ToolDefinition::builder("look", "Looks", json!({ "type": "object" }));
    let answer = async |_: Map<String, Value>, _| {
        let link = json!({ "type": "resource_link", "uri": "x:1", "name": "One" });
        let content = vec![link.into()];
        let mut output = ToolOutput::default();
        output.content = content;
        Ok::<_, ToolError>(output)
    };
    let tool = FunctionTool::with_definition(definition.source(source("b")), answer).unwrap();
    gateway.executor.manager().add(tool);
    let envelope = gateway.call("look", &json!({})).await.json();
    assert_eq!(
        envelope["result"][0]["uri"], "toolgate://b/x:1",
        "{envelope}"
    );
}

#[tokio::test]
async fn a_token_sees_and_reads_only_what_its_list_allows() {
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![
        token("all-of-a", &["a/*"]),
        token("reader", &["a/resources/read"]),
        token("nobody", &["echo"]),
        token_with("see", &["b/prompts/get"], &["see_all"]),
    ];
    let plan = TestGatewayOptions {
        settings,
        has_journal: true,
        ..TestGatewayOptions::default()
    };
    let mut gateway = gateway(plan).await;
    let count = |list: &Value| list.as_array().unwrap().len();
    for (token, resources, prompts) in [
        ("full", 2, 2),
        ("all-of-a", 1, 1),
        ("reader", 1, 0),
        ("see", 0, 1),
        ("nobody", 0, 0),
    ] {
        gateway.sign_in(token);
        let listed = gateway.get("/api/resources").await.json();
        assert_eq!(count(&listed["resources"]), resources, "{token}");
        assert_eq!(count(&listed["templates"]), resources, "{token}");
        let listed = gateway.get("/api/prompts").await.json();
        assert_eq!(count(&listed["prompts"]), prompts, "{token}");
        let own = read(&gateway, "x:1").await;
        assert_eq!(own["success"], resources > 0, "{token}: {own}");
        let foreign = gateway
            .post("/api/resources/read", &json!({ "uri": "toolgate://b/x:1" }))
            .await;
        let status = if token == "full" { 200 } else { 404 };
        assert_eq!(foreign.status, status, "{token}");
        let broken = read(&gateway, "x:broken").await;
        let is_operators = token == "full";
        assert_eq!(broken["details"].is_string(), is_operators, "{broken}");
        let calls = gateway.get("/api/calls?tool=resources/read").await.json();
        let is_visible = resources > 0;
        assert_eq!(count(&calls) > 0, is_visible, "{token}: {calls}");
    }
    gateway.sign_out();
    for path in ["/api/resources", "/api/prompts"] {
        assert_eq!(gateway.get(path).await.status, 401, "{path}");
    }
}
