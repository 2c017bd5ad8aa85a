//! On loopback without tokens anybody may call tools, and only the operator may do the rest.

use serde_json::json;

use crate::test_gateway::ApiTestGateway;

#[tokio::test]
async fn without_a_token_anybody_can_call_but_not_operate() {
    let mut gateway = ApiTestGateway::start().await;
    let id = gateway.call("echo", &json!({})).await.json()["call_id"].clone();
    let id = id.as_str().unwrap();
    gateway.sign_out();
    assert_eq!(
        gateway.call("echo", &json!({})).await.json()["success"],
        true
    );
    for (path, body) in [
        (
            format!("/api/calls/{id}/replay"),
            json!({ "confirm": true }),
        ),
        (format!("/api/calls/{id}/mock"), json!({ "name": "m" })),
        (format!("/api/approvals/{id}"), json!({ "approve": true })),
        (
            "/api/servers".to_owned(),
            json!({ "name": "a", "url": "http://127.0.0.1:1/" }),
        ),
    ] {
        let refused = gateway.post(&path, &body).await;
        assert_eq!(refused.status, 403, "{path}");
        assert!(
            refused.problem().contains("sign in with the link"),
            "{path}"
        );
    }
    for path in [
        "/api/calls".to_owned(),
        format!("/api/calls/{id}"),
        "/api/turns".to_owned(),
    ] {
        assert_eq!(gateway.get(&path).await.status, 403, "{path}");
    }
    let status = gateway.get("/api/status").await.json();
    assert_eq!(
        (&status["calls_total"], &status["signed_in"]),
        (&json!(0), &json!(false))
    );
    let rights = status["rights"].as_object().unwrap();
    assert!(rights.values().all(|right| right == false), "{rights:?}");
    assert_eq!(gateway.get("/api/stats").await.json()["tools"], json!([]));
    gateway.open_link().await;
    let status = gateway.get("/api/status").await.json();
    assert_eq!(
        (&status["caller"], &status["calls_total"]),
        (&json!("local operator"), &json!(2))
    );
    assert_eq!(
        gateway
            .get("/api/calls")
            .await
            .json()
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

/// A server could attack the gateway that started it this way.
#[tokio::test]
async fn callers_without_a_name_cannot_approve_their_own_calls() {
    let mut gateway = ApiTestGateway::start().await;
    gateway.sign_out();
    let mut listening = gateway.events("/api/events?kinds=approval,tools").await;
    listening.expect("tools").await;
    let denied = gateway.call("lock", &json!({})).await.json();
    assert_eq!(denied["error"], "Tool 'lock' needs approval");
    let hint = denied["hint"].as_str().unwrap();
    let port = gateway.address.port();
    assert!(
        hint.contains(&format!("open the dashboard at http://localhost:{port}/")),
        "{hint}"
    );
    assert_eq!(gateway.get("/api/approvals").await.json(), json!([]));
}

#[tokio::test]
async fn a_link_signs_in_once_and_its_key_is_no_token() {
    let mut gateway = ApiTestGateway::start().await;
    gateway.sign_out();
    let key = gateway.new_link();
    assert_eq!(gateway.follow_link("wrong").await, None);
    assert_eq!(gateway.get_with(&key, "/api/calls").await.status, 403);
    assert!(gateway.follow_link(&key).await.is_some());
    assert_eq!(gateway.follow_link(&key).await, None);
}

#[tokio::test]
async fn the_key_for_commands_sees_and_operates_and_never_approves() {
    let mut gateway = ApiTestGateway::start().await;
    gateway.sign_out();
    let key = gateway.new_command_key();
    assert_eq!(gateway.get_with(&key, "/api/calls").await.status, 200);
    let rights = gateway.get_with(&key, "/api/status").await.json()["rights"].clone();
    assert_eq!(
        (&rights["manage_servers"], &rights["see_all"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(rights["approve_calls"], false);
    assert_eq!(gateway.get_with("wrong", "/api/calls").await.status, 403);
}
