//! Calls that wait for a person.

use serde_json::{Value, json};
use toolgate_server::ServeSettings;

use crate::client::{send, whole};
use crate::home::{Home, Plan, SECRET, long, token};

#[tokio::test]
async fn a_call_waits_for_whoever_listens() {
    let home = Home::usual().await;
    let denied = home.call("lock", &json!({})).await.json();
    assert_eq!(
        (&denied["error_kind"], &denied["error"]),
        (&json!("denied"), &json!("Tool 'lock' needs approval"))
    );
    let mut events = home.events("/api/events?kinds=approval").await;
    for (approve, success) in [(true, true), (false, false)] {
        let arguments = json!({ "door": "front", "why": SECRET });
        let decided = async {
            let question = events.expect("approval").await;
            assert_eq!(
                question["arguments"],
                json!({ "door": "front", "why": "[REDACTED]" })
            );
            assert_eq!(home.get("/api/approvals").await.json(), json!([question]));
            let id = question["id"].as_str().unwrap();
            let path = format!("/api/approvals/{id}");
            for (body, status) in [("{", 400), ("{}", 422), (r#"{"approve":"yes"}"#, 422)] {
                assert_eq!(
                    home.ask(http::Method::POST, &path, body).await.status,
                    status,
                    "{body}"
                );
            }
            assert_eq!(
                home.post(&path, &json!({ "approve": approve }))
                    .await
                    .status,
                204
            );
            assert_eq!(
                events.expect("approval").await,
                json!({ "id": id, "gone": true })
            );
            assert_eq!(
                home.post(&path, &json!({ "approve": true })).await.status,
                404
            );
        };
        let (reply, ()) = tokio::join!(home.call("lock", &arguments), decided);
        assert_eq!(reply.json()["success"], success);
        assert_eq!(home.get("/api/approvals").await.json(), json!([]));
    }
}

#[tokio::test]
async fn a_question_goes_with_its_call() {
    let home = Home::usual().await;
    let mut events = home.events("/api/events?kinds=approval").await;
    let nothing = json!({});
    let question: Value;
    tokio::select! {
        _ = home.call("lock", &nothing) => panic!("nobody agreed"),
        asked = events.expect("approval") => question = asked,
    }
    // The caller is gone now.
    assert_eq!(
        events.expect("approval").await,
        json!({ "id": question["id"], "gone": true })
    );
    assert_eq!(home.get("/api/approvals").await.json(), json!([]));
}

#[tokio::test]
async fn who_comes_later_is_told_what_waits_and_who_leaves_for_good_denies() {
    let home = Home::usual().await;
    let mut first = home.events("/api/events?kinds=approval").await;
    let told = async {
        let question = first.expect("approval").await;
        let mut second = home.events("/api/events?kinds=approval").await;
        assert_eq!(second.expect("approval").await, question);
        // A page that is loaded again is away for a moment only.
        drop((first, second));
        let mut third = home.events("/api/events?kinds=approval").await;
        assert_eq!(third.expect("approval").await, question);
    };
    let nothing = json!({});
    let (reply, ()) = tokio::join!(home.call("lock", &nothing), told);
    assert_eq!(reply.json()["error"], "Tool 'lock' needs approval");
}

#[tokio::test]
async fn long_arguments_are_cut_in_a_question_and_not_in_its_call() {
    let home = Home::usual().await;
    let mut events = home.events("/api/events?kinds=approval").await;
    let arguments = json!({ "text": "x".repeat(500_000) });
    let decided = async {
        let question = events.expect("approval").await;
        let shown = question["arguments"].as_str().unwrap();
        assert!(
            shown.len() < 20_000 && shown.ends_with(" more bytes)"),
            "{}",
            shown.len()
        );
        let path = format!("/api/approvals/{}", question["id"].as_str().unwrap());
        home.post(&path, &json!({ "approve": true })).await;
    };
    let (reply, ()) = tokio::join!(home.call("lock", &arguments), decided);
    assert_eq!(reply.json()["result"]["echo"], arguments);
}

/// Two who may ask for the lock, and the operator, who listens.
async fn with_tokens() -> Home {
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![token("kitchen", &["lock"]), token("garage", &["lock"])];
    let mut home = Home::of(Plan {
        settings,
        ..Plan::default()
    })
    .await;
    home.sign_in("full");
    home
}

#[tokio::test]
async fn one_token_does_not_fill_the_desk_for_another() {
    let mut home = with_tokens().await;
    let _operator = home.events("/api/events?kinds=approval").await;
    home.sign_in("kitchen");
    let nothing = json!({});
    let calls = (0..51).map(|_| Box::pin(home.call("lock", &nothing)));
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
        whole(send(home.address, &http::Method::POST, path, &headers, "{}").await).await
    };
    let asked = async {
        loop {
            let open = home.get_as("full", "/api/approvals").await.json();
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
    let mut home = with_tokens().await;
    let mut events = home.events("/api/events?kinds=approval").await;
    for (who, caller) in [("kitchen", "kitchen"), ("full", "serve.token")] {
        home.sign_in(who);
        let nothing = json!({});
        tokio::select! {
            _ = home.call("lock", &nothing) => panic!("nobody agreed"),
            asked = events.expect("approval") => {
                assert_eq!((&asked["origin"], &asked["caller"]), (&json!("http"), &json!(caller)));
            }
        }
        assert_eq!(events.expect("approval").await["gone"], true);
    }
}
