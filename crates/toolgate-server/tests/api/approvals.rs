//! Calls that wait for approval.

use futures::future::Either;
use serde_json::{Value, json};
use toolgate_server::ServeSettings;

use crate::client::{send, whole};
use crate::test_gateway::{ApiTestGateway, SECRET, TestGatewayOptions, long, token, token_with};

#[tokio::test]
async fn a_call_waits_for_whoever_listens() {
    let gateway = ApiTestGateway::start().await;
    let denied = gateway.call("lock", &json!({})).await.json();
    assert_eq!(
        (&denied["error_kind"], &denied["error"]),
        (&json!("denied"), &json!("Tool 'lock' needs approval"))
    );
    let mut events = gateway.events("/api/events?kinds=approval").await;
    for (approve, success) in [(true, true), (false, false)] {
        let arguments = json!({ "door": "front", "why": SECRET });
        let decided = async {
            let question = events.expect("approval").await;
            assert_eq!(
                question["arguments"],
                json!({ "door": "front", "why": "[REDACTED]" })
            );
            assert_eq!(
                gateway.get("/api/approvals").await.json(),
                json!([question])
            );
            let id = question["id"].as_str().unwrap();
            let path = format!("/api/approvals/{id}");
            for (body, status) in [("{", 400), ("{}", 422), (r#"{"approve":"yes"}"#, 422)] {
                assert_eq!(
                    gateway.ask(http::Method::POST, &path, body).await.status,
                    status,
                    "{body}"
                );
            }
            assert_eq!(
                gateway
                    .post(&path, &json!({ "approve": approve }))
                    .await
                    .status,
                204
            );
            assert_eq!(
                events.expect("approval").await,
                json!({ "id": id, "gone": true })
            );
            assert_eq!(
                gateway
                    .post(&path, &json!({ "approve": true }))
                    .await
                    .status,
                404
            );
        };
        let (reply, ()) = tokio::join!(gateway.call("lock", &arguments), decided);
        assert_eq!(reply.json()["success"], success);
        assert_eq!(gateway.get("/api/approvals").await.json(), json!([]));
    }
}

#[tokio::test]
async fn a_question_goes_with_its_call() {
    let gateway = ApiTestGateway::start().await;
    let mut events = gateway.events("/api/events?kinds=approval").await;
    let nothing = json!({});
    let question: Value;
    tokio::select! {
        _ = gateway.call("lock", &nothing) => panic!("nobody agreed"),
        asked = events.expect("approval") => question = asked,
    }
    // The caller is gone now.
    assert_eq!(
        events.expect("approval").await,
        json!({ "id": question["id"], "gone": true })
    );
    assert_eq!(gateway.get("/api/approvals").await.json(), json!([]));
}

#[tokio::test]
async fn late_listeners_see_open_questions_and_leaving_denies_them() {
    let gateway = ApiTestGateway::start().await;
    let mut first = gateway.events("/api/events?kinds=approval").await;
    let told = async {
        let question = first.expect("approval").await;
        let mut second = gateway.events("/api/events?kinds=approval").await;
        assert_eq!(second.expect("approval").await, question);
        // A page that is reloaded is only disconnected for a moment.
        drop((first, second));
        let mut third = gateway.events("/api/events?kinds=approval").await;
        assert_eq!(third.expect("approval").await, question);
    };
    let nothing = json!({});
    let (reply, ()) = tokio::join!(gateway.call("lock", &nothing), told);
    assert_eq!(reply.json()["error"], "Tool 'lock' needs approval");
}

#[tokio::test]
async fn arguments_are_shown_whole_or_not_asked_about() {
    let gateway = ApiTestGateway::start().await;
    let mut events = gateway.events("/api/events?kinds=approval").await;
    let arguments = json!({ "hidden": "\u{e0041}\u{ad}", "text": "x".repeat(60_000) });
    let decided = async {
        let question = events.expect("approval").await;
        assert_eq!(question["arguments"], arguments);
        let path = format!("/api/approvals/{}", question["id"].as_str().unwrap());
        gateway.post(&path, &json!({ "approve": true })).await;
    };
    let (reply, ()) = tokio::join!(gateway.call("lock", &arguments), decided);
    assert_eq!(reply.json()["result"]["echo"], arguments);
    let longer = json!({ "text": "x".repeat(70_000) });
    let reply = gateway.call("lock", &longer).await.json();
    assert_eq!(reply["error_kind"], "denied");
    let error = reply["error"].as_str().unwrap();
    assert!(error.contains("a person is shown at most 65536"), "{error}");
}

/// Two tokens that may use the lock, and the operator, who listens.
async fn with_tokens() -> ApiTestGateway {
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![
        token("kitchen", &["lock"]),
        token("garage", &["lock"]),
        token("agent", &["*"]),
        token_with("warden", &["*"], &["approve"]),
    ];
    let mut gateway = ApiTestGateway::start_with(TestGatewayOptions {
        settings,
        has_journal: true,
        ..TestGatewayOptions::default()
    })
    .await;
    gateway.sign_in("warden");
    gateway
}

#[tokio::test]
async fn one_token_cannot_fill_the_approval_queue_of_another() {
    let mut gateway = with_tokens().await;
    let _operator = gateway.events("/api/events?kinds=approval").await;
    gateway.sign_in("kitchen");
    let nothing = json!({});
    let calls = (0..51).map(|_| Box::pin(gateway.call("lock", &nothing)));
    let (refused, _, waiting) = futures::future::select_all(calls).await;
    assert_eq!(refused.json()["error_kind"], "denied");
    assert_eq!(waiting.len(), 50);
    let garage = async {
        let bearer = format!("Bearer {}", long("garage"));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let path = "/api/tools/lock/call";
        whole(send(gateway.address, &http::Method::POST, path, &headers, "{}").await).await
    };
    let asked = async {
        loop {
            let open = gateway.get_as("warden", "/api/approvals").await.json();
            let mut open = open.as_array().unwrap().iter();
            if let Some(asked) = open.find(|asked| asked["caller"] == "garage") {
                return asked["id"].as_str().unwrap().to_owned();
            }
        }
    };
    tokio::select! {
        answer = garage => panic!("nobody agreed: {}", answer.text),
        id = asked => assert_eq!(id.len(), 32),
    }
}

#[tokio::test]
async fn a_question_names_the_token_that_asks() {
    let mut gateway = with_tokens().await;
    let mut events = gateway.events("/api/events?kinds=approval").await;
    for (who, caller) in [("kitchen", "kitchen"), ("full", "serve.token")] {
        gateway.sign_in(who);
        let nothing = json!({});
        tokio::select! {
            _ = gateway.call("lock", &nothing) => panic!("nobody agreed"),
            asked = events.expect("approval") => {
                assert_eq!((&asked["origin"], &asked["caller"]), (&json!("http"), &json!(caller)));
            }
        }
        assert_eq!(events.expect("approval").await["gone"], true);
    }
}

/// The response to a token that approves the call of another; an approved call succeeds.
async fn answered_as(gateway: &ApiTestGateway, asker: &str, answerer: &str) -> (u16, String) {
    let mut events = gateway.events("/api/events?kinds=approval").await;
    let answer = async {
        let id = events.expect("approval").await["id"].clone();
        let path = format!("/api/approvals/{}", id.as_str().unwrap());
        gateway
            .post_as(answerer, &path, &json!({ "approve": true }))
            .await
    };
    let nothing = json!({});
    let mut call = Box::pin(gateway.post_as(asker, "/api/tools/lock/call", &nothing));
    let mut answer = Box::pin(answer);
    // An approved call may be answered before the approval is.
    let (called, reply) = match futures::future::select(&mut call, &mut answer).await {
        Either::Left((called, answer)) => (Some(called), answer.await),
        Either::Right((reply, _)) => (None, reply),
    };
    match (reply.status.as_u16(), called) {
        (204, Some(called)) => assert_eq!(called.json()["success"], true),
        (204, None) => assert_eq!(call.await.json()["success"], true),
        (status, None) => return (status, reply.problem()),
        (_, Some(called)) => panic!("nobody agreed: {}", called.text),
    }
    (204, String::new())
}

#[tokio::test]
async fn a_token_never_approves_a_call_made_with_it() {
    let gateway = with_tokens().await;
    let (status, detail) = answered_as(&gateway, "warden", "warden").await;
    assert_eq!(status, 403);
    assert!(
        detail.contains("can't approve a call that was made with it"),
        "{detail}"
    );
    assert_eq!(answered_as(&gateway, "agent", "warden").await.0, 204);
}

#[tokio::test]
async fn access_to_all_tools_does_not_permit_approvals() {
    let mut gateway = with_tokens().await;
    for (answerer, part) in [
        (
            "agent",
            "the token 'agent' does not have the right 'approve'",
        ),
        ("full", "in a browser that is signed in"),
    ] {
        let (status, detail) = answered_as(&gateway, "kitchen", answerer).await;
        assert_eq!(status, 403);
        assert!(detail.contains(part), "{detail}");
        // It must not see waiting calls either, or make calls wait by listening.
        assert_eq!(
            gateway.get_as(answerer, "/api/approvals").await.json(),
            json!([])
        );
    }
    gateway.sign_in("full");
    let _no_approver = gateway.events("/api/events?kinds=approval").await;
    let denied = gateway.call("lock", &json!({})).await.json();
    assert_eq!(denied["error"], "Tool 'lock' needs approval");
}

#[tokio::test]
async fn a_call_shows_who_approved_it_when_and_how() {
    let mut gateway = with_tokens().await;
    answered_as(&gateway, "agent", "warden").await;
    gateway.sign_in("full");
    let calls = gateway.get("/api/calls?caller=agent").await.json();
    let id = calls[0]["id"].as_str().unwrap();
    let approval = gateway.get(&format!("/api/calls/{id}")).await.json()["approval"].clone();
    let expected =
        json!({ "granted": true, "means": "token", "by": "warden", "at": approval["at"] });
    assert_eq!(approval, expected);
    assert!(approval["at"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn a_person_in_a_browser_approves_what_they_ask_for_there() {
    let mut gateway = with_tokens().await;
    gateway.open_link().await;
    let mut events = gateway.events("/api/events?kinds=approval").await;
    let nothing = json!({});
    let decided = async {
        let question = events.expect("approval").await;
        assert_eq!(question["caller"], "local operator");
        let path = format!("/api/approvals/{}", question["id"].as_str().unwrap());
        gateway.post(&path, &json!({ "approve": true })).await
    };
    let call = gateway.post("/api/tools/lock/call", &nothing);
    let (reply, settled) = tokio::join!(call, decided);
    assert_eq!(
        (settled.status.as_u16(), &reply.json()["success"]),
        (204, &json!(true))
    );
    let id = reply.json()["call_id"].clone();
    let path = format!("/api/calls/{}", id.as_str().unwrap());
    let approval = gateway.get(&path).await.json()["approval"].clone();
    assert_eq!(
        (&approval["means"], &approval["by"]),
        (&json!("browser"), &json!("local operator"))
    );
}
