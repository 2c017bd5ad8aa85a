//! A restricted token sees only its own tools and calls, on every route.

use serde_json::{Value, json};
use toolgate_mcp::{SecretHeaders, ServerConnection, ServerProgram, ServerSettings};
use toolgate_server::ServeSettings;

use crate::test_gateway::{ApiTestGateway, TestGatewayOptions, long, token, token_with, until};

async fn gateway(has_journal: bool) -> ApiTestGateway {
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![
        token("some", &["echo", "house/*"]),
        token("none", &[]),
        token("broken", &["fail", "panic"]),
        token("agent", &["*"]),
        token_with("auditor", &["echo"], &["see_all"]),
        token_with("mender", &["*"], &["operate"]),
    ];
    settings.add_servers = true;
    let plan = TestGatewayOptions {
        settings,
        has_journal,
        ..TestGatewayOptions::default()
    };
    let mut gateway = ApiTestGateway::start_with(plan).await;
    gateway.sign_in("full");
    gateway
}

fn count(list: &Value) -> usize {
    list.as_array().unwrap().len()
}

#[tokio::test]
async fn tools_and_calls_outside_the_scope_are_hidden() {
    for has_journal in [false, true] {
        let mut gateway = gateway(has_journal).await;
        let mut ids = Vec::new();
        for tool in ["echo", "count", "nope"] {
            let envelope = gateway.call(tool, &json!({})).await.json();
            ids.push(envelope["call_id"].as_str().unwrap().to_owned());
        }
        // F17: what the operator asked of a shared tool is not this token's business.
        gateway.sign_in("some");
        let own = gateway.call("echo", &json!({ "mine": 1 })).await.json();
        ids.push(own["call_id"].as_str().unwrap().to_owned());
        let own = ids[3].clone();
        for (token, tools, calls) in [("some", 1, vec![&own]), ("none", 0, vec![])] {
            gateway.sign_in(token);
            assert_eq!(count(&gateway.get("/api/tools").await.json()), tools);
            let status = gateway.get("/api/status").await.json();
            assert_eq!(status["tools"], tools);
            assert_eq!(status["calls_total"], calls.len(), "{status}");
            assert_eq!(status["calls_per_minute"], calls.len());
            assert_eq!(status["error_rate"].is_number(), !calls.is_empty());
            assert_eq!(status["p95_ms"].is_number(), !calls.is_empty());
            assert_eq!(status["caller"], token);
            let rights = status["rights"].as_object().unwrap();
            assert!(rights.values().all(|may| may == false), "{status}");
            assert_eq!(gateway.get("/api/tools/count").await.status, 404);
            assert_eq!(
                gateway
                    .post("/api/tools/count/check", &json!({}))
                    .await
                    .status,
                404
            );
            let refused = gateway.call("count", &json!({})).await;
            assert_eq!(refused.status, 404);
            assert!(!refused.text.contains("dim"), "{}", refused.text);
            let list = gateway.get("/api/calls").await.json();
            let found: Vec<&str> = list
                .as_array()
                .unwrap()
                .iter()
                .map(|call| call["id"].as_str().unwrap())
                .collect();
            assert_eq!(found, calls, "{token}");
            let callers = list.as_array().unwrap().iter().map(|call| &call["caller"]);
            assert!(callers.into_iter().all(|caller| caller == "some"));
            let path = "/api/calls?caller=serve.token";
            assert_eq!(count(&gateway.get(path).await.json()), 0);
            let beginning = gateway.get(&format!("/api/calls/{}", &ids[0][..4])).await;
            assert_eq!(beginning.status, 404, "nor is their number told");
            assert!(beginning.problem().contains("there is no such call"));
            for id in &ids {
                let expected = if calls.contains(&id) { 200 } else { 404 };
                assert_eq!(
                    gateway.get(&format!("/api/calls/{id}")).await.status,
                    expected
                );
                let replay = gateway
                    .post(
                        &format!("/api/calls/{id}/replay"),
                        &json!({ "confirm": true }),
                    )
                    .await;
                assert_eq!(replay.status, 403);
                assert_eq!(
                    gateway
                        .post(&format!("/api/calls/{id}/mock"), &json!({ "name": "m" }))
                        .await
                        .status,
                    403
                );
            }
            let stats = gateway.get("/api/stats").await.json();
            assert_eq!(count(&stats["tools"]), tools, "{token}");
            for path in ["/metrics", "/api/turns", "/api/turns/x"] {
                assert_eq!(gateway.get(path).await.status, 403, "{path}");
            }
        }
        assert_eq!(gateway.counted.load(std::sync::atomic::Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn access_to_all_tools_is_not_operator_access() {
    let mut gateway = gateway(true).await;
    let id = gateway.call("echo", &json!({})).await.json()["call_id"].clone();
    let id = id.as_str().unwrap();
    for (token, seen, replayed, status) in [
        ("agent", 0, 403, 403),
        ("auditor", 1, 403, 403),
        ("mender", 0, 404, 404),
        ("full", 1, 200, 404),
    ] {
        gateway.sign_in(token);
        let calls = gateway.get("/api/calls").await.json();
        assert_eq!(count(&calls), seen, "{token}");
        let confirm = json!({ "confirm": true });
        let path = format!("/api/calls/{id}/replay");
        let replay = gateway.post(&path, &confirm);
        assert_eq!(replay.await.status, replayed, "{token}");
        let reconnect = gateway
            .post("/api/servers/house/reconnect", &json!({}))
            .await;
        // An unknown server gets the same answer.
        assert_eq!(reconnect.status, 404, "{token}");
        let server = json!({ "name": "a/b", "url": "http://127.0.0.1:1/" });
        let added = gateway.post("/api/servers", &server).await.status;
        assert_eq!(added == 403, status == 403, "{token}");
    }
}

/// Lines of a server's stderr are among them, and may be about the calls of others.
#[tokio::test]
async fn operator_details_are_hidden_from_restricted_tokens() {
    for has_journal in [false, true] {
        let mut gateway = gateway(has_journal).await;
        for (tool, details) in [
            ("fail", "stderr: a line of another's call"),
            ("panic", "a bug"),
        ] {
            for (token, seen) in [("full", json!(details)), ("broken", Value::Null)] {
                gateway.sign_in(token);
                let envelope = gateway.call(tool, &json!({})).await.json();
                assert!(envelope["error"].is_string(), "{envelope}");
                assert_eq!(envelope["details"], seen, "{token}: {tool}");
                let call = format!("/api/calls/{}", envelope["call_id"].as_str().unwrap());
                assert_eq!(gateway.get(&call).await.json()["details"], seen, "{token}");
                let confirmed = json!({ "confirm": true });
                let again = gateway
                    .post(&format!("{call}/replay"), &confirmed)
                    .await
                    .json();
                assert_eq!(again["details"], seen, "{token}: {tool} again");
                let operators = gateway.get_as("full", &call).await.json();
                assert_eq!(operators["details"], details, "it is still kept");
            }
        }
    }
}

#[tokio::test]
async fn a_token_without_tools_causes_no_journal_query() {
    let mut gateway = gateway(true).await;
    gateway.call("echo", &json!({})).await;
    assert_eq!(count(&gateway.get("/api/calls").await.json()), 1);
    std::fs::remove_file(&gateway.journal).unwrap();
    std::fs::create_dir(&gateway.journal).unwrap();
    for (token, status) in [("some", 503), ("none", 200)] {
        gateway.sign_in(token);
        assert_eq!(gateway.get("/api/calls").await.status, status, "{token}");
    }
}

#[tokio::test]
async fn events_and_approvals_outside_the_scope_are_hidden() {
    let mut gateway = gateway(false).await;
    gateway.sign_in("some");
    let mut events = gateway
        .events("/api/events?kinds=call,approval,tools")
        .await;
    assert_eq!(events.next().await.unwrap().2, json!({ "tools": 1 }));
    gateway.sign_in("full");
    // A listener who can't approve doesn't make calls wait: this is denied at once.
    assert_eq!(
        gateway.call("lock", &json!({})).await.json()["error_kind"],
        "denied"
    );
    gateway.call("count", &json!({})).await;
    // F17: nor the calls that others make of a tool that it may use.
    gateway.call("echo", &json!({ "n": "LIVE-OPERATOR" })).await;
    post_as("some", &gateway, "/api/tools/echo/call", &json!({ "n": 1 })).await;
    let (name, _, call) = events.next().await.unwrap();
    assert_eq!((name.as_str(), &call["tool"]), ("call", &json!("echo")));
    assert_eq!(call["caller"], "some", "{call}");
    gateway.open_link().await;
    let mut operator = gateway.events("/api/events?kinds=approval").await;
    let nothing = json!({});
    let call = gateway.post("/api/tools/lock/call", &nothing);
    let (reply, ()) = tokio::join!(call, async {
        let question = operator.expect("approval").await;
        let path = format!("/api/approvals/{}", question["id"].as_str().unwrap());
        assert_eq!(
            post_as("some", &gateway, &path, &json!({ "approve": true })).await,
            403
        );
        assert_eq!(
            gateway
                .post(&path, &json!({ "approve": false }))
                .await
                .status,
            204
        );
    });
    assert_eq!(reply.json()["error_kind"], "denied");
}

/// The status that another token gets.
async fn post_as(token: &str, gateway: &ApiTestGateway, path: &str, body: &Value) -> u16 {
    let bearer = format!("Bearer {}", long(token));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let method = http::Method::POST;
    let reply =
        crate::client::send(gateway.address, &method, path, &headers, body.to_string()).await;
    reply.status().as_u16()
}

#[tokio::test]
async fn server_output_is_shown_only_to_the_operator() {
    let mut gateway = gateway(false).await;
    let says = "echo 'noise of others'; echo 'words of others' >&2; exec sleep 600";
    let program = ServerProgram {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), says.to_owned()],
        ..ServerProgram::default()
    };
    let server = ServerSettings::new("house", ServerConnection::Stdio(program));
    gateway.servers.apply(vec![server]);
    let servers = gateway.servers.clone();
    until(|| {
        let server = &servers.status()[0];
        !server.stderr.is_empty() && !server.stray_lines.is_empty()
    })
    .await;
    for (token, expected) in [("full", 2), ("some", 0)] {
        gateway.sign_in(token);
        let list = gateway.get("/api/servers").await;
        let told = list.text.matches("of others").count();
        assert_eq!((count(&list.json()), told), (1, expected), "{}", list.text);
        let mut events = gateway.events("/api/events?kinds=server").await;
        let told = events.expect("server").await.to_string();
        assert_eq!(told.matches("of others").count(), expected, "{told}");
    }
    gateway.servers.stop().await;
}

#[tokio::test]
async fn servers_outside_the_scope_are_hidden() {
    let mut gateway = gateway(false).await;
    let away = |name: &str| {
        let nowhere = ServerConnection::Http {
            url: "http://127.0.0.1:1/mcp".to_owned(),
            headers: SecretHeaders::default(),
        };
        ServerSettings::new(name, nowhere)
    };
    gateway.servers.apply(vec![away("house"), away("office")]);
    for (token, servers, reconnect) in [("some", 1, 404), ("none", 0, 404)] {
        gateway.sign_in(token);
        let list = gateway.get("/api/servers").await;
        assert_eq!(count(&list.json()), servers, "{token}");
        assert!(!list.text.contains("office"));
        assert_eq!(
            gateway
                .post("/api/servers/office/reconnect", &json!({}))
                .await
                .status,
            reconnect
        );
        for (server, expected) in [
            ("office", 404),
            ("house", if servers == 0 { 404 } else { 403 }),
        ] {
            let path = format!("/api/servers/{server}/trust");
            let agreed = gateway.post(&path, &json!({ "hash": "x" })).await;
            assert_eq!(agreed.status, expected, "{token} {server}");
        }
        let status = gateway.get("/api/status").await;
        assert!(!status.text.contains("office"), "{}", status.text);
        assert_eq!(status.json()["status"], "degraded");
        let added = gateway
            .post(
                "/api/servers",
                &json!({ "name": "x", "url": "http://127.0.0.1:1/mcp" }),
            )
            .await;
        assert_eq!(added.status, 403);
    }
    gateway.sign_in("full");
    for (body, expected) in [(json!({ "hash": "x" }), 409), (json!({}), 422)] {
        let agreed = gateway.post("/api/servers/house/trust", &body).await;
        assert_eq!(agreed.status, expected, "{}", agreed.text);
    }
    // No token is needed here, so nobody learns names.
    let ready = crate::client::send(gateway.address, &http::Method::GET, "/readyz", &[], "").await;
    let ready = crate::client::whole(ready).await;
    assert!(!ready.text.contains("office"), "{}", ready.text);
    for (servers, reason) in [
        (vec!["house"], "1 of 1 MCP server is not connected"),
        (
            vec!["house", "office"],
            "2 of 2 MCP servers are not connected",
        ),
    ] {
        gateway
            .servers
            .apply(servers.into_iter().map(away).collect());
        gateway.sign_in("none");
        assert_eq!(
            gateway.get("/api/status").await.json()["reasons"],
            json!([reason])
        );
        if reason.starts_with('2') {
            gateway.sign_in("some");
            let reasons = gateway.get("/api/status").await.json()["reasons"].to_string();
            assert!(
                reasons.contains("1 of 2 MCP servers is not connected"),
                "{reasons}"
            );
        }
    }
}
