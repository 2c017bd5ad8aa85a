//! Questions of servers, answered at the dashboard.

use serde_json::{Value, json};
use toolgate_mcp::{ServerConnection, ServerProgram, ServerSettings};
use toolgate_server::ServeSettings;

use crate::client::ApiEvents;
use crate::test_gateway::{ApiTestGateway, SECRET, TestGatewayOptions, long, token, token_with};

/// A server that asks when its tool `elicit` is called, and whose tools need no approval.
pub(crate) fn asking_server(name: &str) -> ServerSettings {
    let program = ServerProgram {
        command: fakemcp::program().to_string_lossy().into_owned(),
        ..ServerProgram::default()
    };
    ServerSettings::new(name, ServerConnection::Stdio(program))
}

async fn gateway() -> ApiTestGateway {
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![
        token("kitchen", &["elicit"]),
        token("garage", &["elicit"]),
        token_with("warden", &["*"], &["approve"]),
    ];
    let gateway = ApiTestGateway::start_with(TestGatewayOptions {
        settings,
        mcp_servers: vec![asking_server("house")],
        ..TestGatewayOptions::default()
    })
    .await;
    gateway.servers.start_all().await;
    gateway
}

fn form() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "room": { "type": "string", "minLength": 2 },
            "mail": { "type": "string", "format": "email" },
            "level": { "type": "integer", "minimum": 1, "maximum": 9 },
        },
        "required": ["room"],
    });
    let message = format!("Which <b>room</b>, {SECRET}?");
    json!({ "question": { "mode": "form", "message": message, "requestedSchema": schema } })
}

/// What the server was answered.
fn told(reply: &Value) -> Value {
    let text = reply["result"].as_str().unwrap_or_default();
    let told: Value = serde_json::from_str(text).unwrap_or_default();
    told["result"].clone()
}

async fn asked(events: &mut ApiEvents) -> (String, Value) {
    let question = events.expect("question").await;
    let path = format!("/api/questions/{}", question["id"].as_str().unwrap());
    (path, question)
}

#[tokio::test]
async fn a_form_is_checked_by_the_gateway_and_passed_on() {
    let gateway = gateway().await;
    let mut events = gateway
        .events_as("warden", "/api/events?kinds=question")
        .await;
    let answered = async {
        let (path, question) = asked(&mut events).await;
        assert_eq!(
            (&question["server"], &question["tool"], &question["caller"]),
            (&json!("house"), &json!("elicit"), &json!("kitchen"))
        );
        assert_eq!(question["message"], "Which <b>room</b>, [REDACTED]?");
        assert_eq!(question["schema"], form()["question"]["requestedSchema"]);
        let list = gateway.get_as("warden", "/api/questions").await.json();
        assert_eq!(list, json!([question]));
        for (content, field) in [
            (json!({}), "room"),
            (json!({ "room": "x" }), "room"),
            (json!({ "room": "hall", "level": 10 }), "level"),
            (json!({ "room": "hall", "mail": "nobody" }), "mail"),
        ] {
            let body = json!({ "action": "accept", "content": content });
            let refused = gateway.post_as("warden", &path, &body).await;
            assert_eq!(refused.status, 422, "{}", refused.text);
            assert_eq!(refused.json()["violations"][0]["parameter"], field);
        }
        for (body, status) in [(json!({}), 422), (json!({ "action": "perhaps" }), 422)] {
            assert_eq!(gateway.post_as("warden", &path, &body).await.status, status);
        }
        let content = json!({ "room": "hall", "level": 3, "mail": null });
        let body = json!({ "action": "accept", "content": content });
        assert_eq!(gateway.post_as("warden", &path, &body).await.status, 204);
        let gone = json!({ "id": question["id"], "gone": true });
        assert_eq!(events.expect("question").await, gone);
        assert_eq!(gateway.post_as("warden", &path, &body).await.status, 404);
    };
    let form = form();
    let call = gateway.post_as("kitchen", "/api/tools/elicit/call", &form);
    let (reply, ()) = tokio::join!(call, answered);
    let expected = json!({ "action": "accept", "content": { "room": "hall", "level": 3 } });
    assert_eq!(told(&reply.json()), expected);
}

#[tokio::test]
async fn a_page_is_opened_or_declined_and_a_question_can_be_dismissed() {
    let gateway = gateway().await;
    let mut events = gateway
        .events_as("warden", "/api/events?kinds=question")
        .await;
    let page = json!({ "url": true });
    let form = form();
    for (arguments, action) in [
        (&page, "accept"),
        (&page, "decline"),
        (&form, "decline"),
        (&form, "cancel"),
    ] {
        let answered = async {
            let (path, question) = asked(&mut events).await;
            let is_page = arguments["url"] == true;
            let url = if is_page {
                json!("https://example.org/who")
            } else {
                Value::Null
            };
            assert_eq!(question["url"], url);
            assert_eq!(question["schema"].is_null(), is_page);
            let body = json!({ "action": action });
            assert_eq!(gateway.post_as("warden", &path, &body).await.status, 204);
            assert_eq!(events.expect("question").await["gone"], true);
        };
        let call = gateway.post_as("kitchen", "/api/tools/elicit/call", arguments);
        let (reply, ()) = tokio::join!(call, answered);
        assert_eq!(told(&reply.json()), json!({ "action": action }));
    }
}

/// Whoever made a call may answer its server, as an MCP client does; another token may not.
#[tokio::test]
async fn a_question_is_shown_to_its_caller_and_to_nobody_without_the_right() {
    let gateway = gateway().await;
    let mut stranger = gateway
        .events_as("garage", "/api/events?kinds=question")
        .await;
    // Nobody who could answer listens.
    let reply = gateway
        .post_as("kitchen", "/api/tools/elicit/call", &form())
        .await;
    assert_eq!(told(&reply.json()), json!({ "action": "decline" }));

    let mut own = gateway
        .events_as("kitchen", "/api/events?kinds=question")
        .await;
    let answered = async {
        let (path, question) = asked(&mut own).await;
        let accept = json!({ "action": "accept", "content": { "room": "hall" } });
        for other in ["garage", "full"] {
            assert_eq!(
                gateway.get_as(other, "/api/questions").await.json(),
                json!([])
            );
            assert_eq!(gateway.post_as(other, &path, &accept).await.status, 404);
        }
        let list = gateway.get_as("kitchen", "/api/questions").await.json();
        assert_eq!(list, json!([question]));
        assert_eq!(gateway.post_as("kitchen", &path, &accept).await.status, 204);
    };
    let form = form();
    let call = gateway.post_as("kitchen", "/api/tools/elicit/call", &form);
    let (reply, ()) = tokio::join!(call, answered);
    assert_eq!(told(&reply.json())["content"], json!({ "room": "hall" }));
    // The stranger's stream has had nothing so far, so the next event is its own.
    let answered = async {
        let (path, question) = asked(&mut stranger).await;
        assert_eq!(question["caller"], "garage");
        let cancel = json!({ "action": "cancel" });
        assert_eq!(gateway.post_as("garage", &path, &cancel).await.status, 204);
    };
    let call = gateway.post_as("garage", "/api/tools/elicit/call", &form);
    let (reply, ()) = tokio::join!(call, answered);
    assert_eq!(told(&reply.json()), json!({ "action": "cancel" }));
}

/// Over `/mcp`, a client that can't show forms gets its answer from the dashboard.
#[tokio::test]
async fn a_client_that_cannot_be_asked_is_answered_at_the_dashboard() {
    let gateway = gateway().await;
    let mut events = gateway
        .events_as("warden", "/api/events?kinds=question")
        .await;
    let answered = async {
        let (path, question) = asked(&mut events).await;
        assert_eq!(question["origin"], "mcp");
        let accept = json!({ "action": "accept", "content": { "who": "Ada" } });
        assert_eq!(gateway.post_as("warden", &path, &accept).await.status, 204);
    };
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "elicit", "arguments": {}, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let bearer = format!("Bearer {}", long("kitchen"));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "elicit"),
    ];
    let post = http::Method::POST;
    let call = crate::client::send(gateway.address, &post, "/mcp", &headers, call.to_string());
    let (reply, ()) = tokio::join!(call, answered);
    let text = crate::client::whole(reply).await.text;
    assert!(text.contains("Ada"), "{text}");
}

#[tokio::test]
async fn a_question_goes_with_its_call_and_with_the_last_dashboard() {
    let gateway = gateway().await;
    let mut events = gateway
        .events_as("warden", "/api/events?kinds=question")
        .await;
    let form = form();
    let question: Value;
    tokio::select! {
        _ = gateway.post_as("kitchen", "/api/tools/elicit/call", &form) => panic!("nobody answered"),
        asked = events.expect("question") => question = asked,
    }
    let gone = json!({ "id": question["id"], "gone": true });
    assert_eq!(events.expect("question").await, gone);
    let left = async {
        events.expect("question").await;
        drop(events);
    };
    let call = gateway.post_as("kitchen", "/api/tools/elicit/call", &form);
    let (reply, ()) = tokio::join!(call, left);
    assert_eq!(told(&reply.json()), json!({ "action": "cancel" }));
}

/// The form of the reference server, which has every kind of field.
#[tokio::test]
async fn the_form_of_the_reference_server_is_answered() {
    let Some(folder) = fakemcp::real_servers() else {
        return;
    };
    let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let program = ServerProgram {
        command: fakemcp::node(&folder).to_string_lossy().into_owned(),
        args: vec![
            folder.join(script).to_string_lossy().into_owned(),
            "stdio".to_owned(),
        ],
        ..ServerProgram::default()
    };
    let mut server = ServerSettings::new("everything", ServerConnection::Stdio(program));
    server.start_timeout = Some(std::time::Duration::from_secs(100));
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    let gateway = ApiTestGateway::start_with(TestGatewayOptions {
        settings,
        mcp_servers: vec![server],
        ..TestGatewayOptions::default()
    })
    .await;
    gateway.servers.start_all().await;
    let mut events = gateway
        .events_as("full", "/api/events?kinds=question")
        .await;
    let answered = async {
        let (path, question) = asked(&mut events).await;
        let properties = question["schema"]["properties"].as_object().unwrap();
        let defaults = properties.iter();
        let defaults =
            defaults.filter_map(|(name, field)| Some((name, field.get("default")?.clone())));
        let mut content: Value = defaults.collect();
        content["name"] = json!("Ada Lovelace");
        content["birthdate"] = json!("10 December 1815");
        let wrong = json!({ "action": "accept", "content": content });
        let refused = gateway.post_as("full", &path, &wrong).await;
        assert_eq!(refused.status, 422);
        assert_eq!(refused.json()["violations"][0]["parameter"], "birthdate");
        content["birthdate"] = json!("1815-12-10");
        let right = json!({ "action": "accept", "content": content });
        assert_eq!(gateway.post_as("full", &path, &right).await.status, 204);
    };
    let nothing = json!({});
    let path = "/api/tools/trigger-elicitation-request/call";
    let (reply, ()) = tokio::join!(gateway.post_as("full", path, &nothing), answered);
    assert!(reply.text.contains("Ada Lovelace"), "{}", reply.text);
    gateway.servers.stop().await;
}
