//! Conversations over HTTP, with a fake model.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fakellm::{Answer, FakeLlm, Script};
use http::Method;
use serde_json::{Value, json};
use toolgate_core::{Annotations, FunctionTool, ToolDefinition, ToolError};
use toolgate_models::{ModelSettings, Provider};
use toolgate_server::ServeSettings;

use crate::client::{ApiEvents, HANG, send};
use crate::test_gateway::{ApiTestGateway, SECRET, TestGatewayOptions, long, token, until};

async fn with(script: Script, settings: ServeSettings) -> (ApiTestGateway, FakeLlm) {
    let fake = FakeLlm::start(script).await;
    let mut model = ModelSettings::default();
    model.provider = Some(Provider::OpenAi.into());
    model.url = format!("{}/v1", fake.url());
    model.name = "small".to_owned();
    let plan = TestGatewayOptions {
        settings,
        model,
        ..TestGatewayOptions::default()
    };
    (ApiTestGateway::start_with(plan).await, fake)
}

async fn say(gateway: &ApiTestGateway, body: &Value) -> ApiEvents {
    ApiEvents::of(
        gateway
            .open(Method::POST, "/api/chat", &body.to_string())
            .await,
    )
}

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn the_calls_of_a_turn_share_a_trace_which_may_be_the_callers() {
    let answers = || {
        [
            Answer::call("c1", "echo", &json!({ "n": 1 })),
            Answer::call("c2", "echo", &json!({ "n": 2 })),
            Answer::text("Done."),
        ]
    };
    let script = Script::new(answers().into_iter().chain(answers()));
    let (gateway, _fake) = with(script, ServeSettings::default()).await;
    let callers = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{callers}-b7ad6b7169203331-01");
    let mut traces = Vec::new();
    let traced = vec![("traceparent", parent.as_str()), ("tracestate", "a=1")];
    for headers in [vec![], traced] {
        let body = json!({ "message": "echo twice" }).to_string();
        let path = "/api/chat";
        let answer = send(gateway.address, &Method::POST, path, &headers, body).await;
        ApiEvents::of(answer).rest().await;
        for call in gateway
            .get("/api/calls?limit=2")
            .await
            .json()
            .as_array()
            .unwrap()
        {
            let path = format!("/api/calls/{}", call["id"].as_str().unwrap());
            let mut call = gateway.get(&path).await.json();
            let trace = call["trace_id"].take();
            traces.push(trace.as_str().unwrap().to_owned());
            let has_state = call["result"].to_string().contains("tracestate");
            assert_eq!(has_state, !headers.is_empty(), "{call}");
        }
    }
    assert_eq!(traces[0], traces[1]);
    assert_ne!(traces[0], callers);
    assert_eq!(traces[2..], [callers, callers]);
}

#[tokio::test]
async fn only_a_models_destructive_call_asks_at_the_dashboard() {
    let call = || Answer::call("c1", "wipe", &json!({ "disk": "a" }));
    let script = Script::new([call(), Answer::text("I may not."), call()]);
    let (gateway, _fake) = with(script, ServeSettings::default()).await;
    let mut destructive = Annotations::default();
    destructive.destructive = Some(true);
    let definition = ToolDefinition::builder("wipe", "Wipes", json!({ "type": "object" }));
    let wipe = FunctionTool::with_definition(
        definition.annotations(destructive),
        async |arguments: Value, _| Ok::<_, ToolError>(arguments),
    );
    gateway.executor.manager().add(wipe.unwrap());

    let mut told = say(&gateway, &json!({ "message": "wipe it" })).await;
    let told = told.rest().await;
    let result = &told.iter().find(|(name, _)| name == "result").unwrap().1;
    assert_eq!(result["error"], "Tool 'wipe' needs approval");

    let mut events = gateway.events("/api/events?kinds=approval").await;
    let _chat = say(&gateway, &json!({ "message": "wipe it" })).await;
    let question = events.expect("approval").await;
    assert_eq!(
        (
            &question["tool"],
            &question["origin"],
            &question["arguments"]
        ),
        (&json!("wipe"), &json!("chat"), &json!({ "disk": "a" }))
    );
    let envelope = gateway.call("wipe", &json!({})).await.json();
    assert_eq!(envelope["success"], true, "{envelope}");
}

#[tokio::test]
async fn a_turn_is_streamed_and_the_next_one_continues_it() {
    let script = Script::new([
        Answer::call("c1", "tell", &json!({ "q": SECRET })),
        Answer::text("It is told."),
        Answer::text("As I said."),
    ]);
    let (gateway, fake) = with(script, ServeSettings::default()).await;
    let told = say(&gateway, &json!({ "message": "tell me" }))
        .await
        .rest()
        .await;
    let first = &told[0].1;
    assert_eq!(
        (&first["provider"], &first["model"], &first["why"]),
        (
            &json!("openai"),
            &json!("small"),
            &json!("the configuration says so")
        )
    );
    let call = &told.iter().find(|(name, _)| name == "call").unwrap().1;
    assert_eq!(
        (&call["tool"], &call["arguments"]),
        (&json!("tell"), &json!({ "q": "[REDACTED]" }))
    );
    let result = &told.iter().find(|(name, _)| name == "result").unwrap().1;
    assert_eq!(
        (&result["id"], &result["call_id"], &result["success"]),
        (&call["id"], &call["call_id"], &json!(true))
    );
    assert_eq!(
        result["preview"],
        r#"{"password":"[REDACTED]","note":"[REDACTED] is it"}"#
    );
    let (last, done) = told.last().unwrap();
    assert_eq!(
        (
            last.as_str(),
            &done["answer"],
            &done["end"],
            &done["rounds"]
        ),
        ("done", &json!("It is told."), &json!("answered"), &json!(2))
    );
    let id = result["call_id"].as_str().unwrap();
    assert_eq!(
        gateway.get(&format!("/api/calls/{id}")).await.json()["origin"],
        "chat"
    );
    let again = say(
        &gateway,
        &json!({ "message": "again", "conversation": first["id"] }),
    )
    .await
    .rest()
    .await;
    assert_eq!(again[0].1["id"], first["id"]);
    assert_eq!(again.last().unwrap().1["answer"], "As I said.");
    let asked = fake.requests().last().unwrap().json();
    assert!(
        asked["messages"].to_string().contains("It is told."),
        "{asked}"
    );
    assert_eq!(
        gateway.get("/api/status").await.json()["model"],
        json!({ "provider": "openai", "name": "small" })
    );
}

#[tokio::test]
async fn invalid_messages_are_rejected() {
    let (gateway, _fake) = with(Script::new([]), ServeSettings::default()).await;
    for (body, status) in [
        (json!({ "message": "hi", "conversation": "nope" }), 404),
        (json!({ "message": " \n" }), 422),
        (json!({}), 422),
        (json!({ "message": 5 }), 422),
        (json!({ "message": "hi", "model": "x" }), 422),
        (json!({ "message": "x".repeat(70_000) }), 413),
    ] {
        let refused = gateway.post("/api/chat", &body).await;
        assert_eq!(refused.status, status);
        refused.problem();
    }
    let mut model = ModelSettings::default();
    model.provider = Some(Provider::OpenAi.into());
    model.url = "not an address".to_owned();
    let gateway = ApiTestGateway::start_with(TestGatewayOptions {
        model,
        ..TestGatewayOptions::default()
    })
    .await;
    let refused = gateway.post("/api/chat", &json!({ "message": "hi" })).await;
    assert_eq!(refused.status, 503);
    assert!(refused.problem().contains("model.url"), "{}", refused.text);
}

#[tokio::test]
async fn a_model_that_fails_ends_in_an_error_event() {
    let script = Script::always(Answer::fails(400, "invalid_request_error", "no such model"));
    let (gateway, _fake) = with(script, ServeSettings::default()).await;
    let told = say(&gateway, &json!({ "message": "hi" }))
        .await
        .rest()
        .await;
    assert_eq!(names(&told), ["conversation", "error"]);
    assert!(
        told[1].1["detail"]
            .as_str()
            .unwrap()
            .contains("no such model")
    );
}

#[tokio::test]
async fn one_turn_at_a_time_and_closing_the_stream_ends_it() {
    let script =
        Script::new([Answer::call("c1", "wait", &json!({}))]).then_always(Answer::text("Here."));
    let (gateway, _fake) = with(script, ServeSettings::default()).await;
    let mut turn = say(&gateway, &json!({ "message": "wait" })).await;
    let id = turn.expect("conversation").await["id"].clone();
    turn.expect("call").await;
    until(|| gateway.waiting.load(Ordering::SeqCst) == 1).await;
    let next = json!({ "message": "and?", "conversation": id });
    let busy = gateway.post("/api/chat", &next).await;
    assert_eq!(busy.status, 409);
    busy.problem();
    drop(turn);
    let waiting = Arc::clone(&gateway.waiting);
    until(|| waiting.load(Ordering::SeqCst) == 0).await;
    let told = say(&gateway, &next).await.rest().await;
    assert_eq!(told.last().unwrap().1["answer"], "Here.");
    assert_eq!(
        gateway.get("/api/calls?tool=wait").await.json()[0]["outcome"],
        "cancelled"
    );
}

#[tokio::test]
async fn closing_the_stream_closes_the_request_to_the_model() {
    let speaks = Answer::text(&"word ".repeat(400)).stall_after(4000);
    let script = Script::new([Answer::black_hole(), speaks]).then_always(Answer::text("Here."));
    let (gateway, fake) = with(script, ServeSettings::default()).await;
    let mut next = json!({ "message": "hello?" });
    for (count, speaks) in [(1, false), (2, true)] {
        let mut turn = say(&gateway, &next).await;
        let id = turn.expect("conversation").await["id"].clone();
        if speaks {
            turn.expect("text").await;
        }
        fake.wait_for_requests(count).await;
        drop(turn);
        let left = tokio::time::timeout(HANG, fake.wait_for_disconnects(count)).await;
        assert!(left.is_ok(), "the model goes on, {count}");
        next = json!({ "message": "and?", "conversation": id });
    }
    let told = say(&gateway, &next).await.rest().await;
    assert_eq!(told.last().unwrap().1["answer"], "Here.");
}

#[tokio::test]
async fn a_conversation_belongs_to_its_caller_and_uses_its_tools() {
    let script =
        Script::new([Answer::call("c1", "count", &json!({}))]).then_always(Answer::text("Done."));
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![token("some", &["echo"]), token("none", &[])];
    let (mut gateway, fake) = with(script, settings).await;
    gateway.sign_in("some");
    let told = say(&gateway, &json!({ "message": "count" }))
        .await
        .rest()
        .await;
    let result = &told.iter().find(|(name, _)| name == "result").unwrap().1;
    assert_eq!(
        (&result["success"], gateway.counted.load(Ordering::SeqCst)),
        (&json!(false), 0)
    );
    let offered = fake.requests()[0].json()["tools"].to_string();
    assert!(
        offered.contains("echo") && !offered.contains("count"),
        "{offered}"
    );
    let calls = gateway.get_as("full", "/api/calls").await.json();
    assert_eq!(calls[0]["caller"], "some", "{calls}");
    let id = told[0].1["id"].clone();
    for token in ["full", "none"] {
        gateway.sign_in(token);
        let other = gateway
            .post("/api/chat", &json!({ "message": "hi", "conversation": id }))
            .await;
        assert_eq!(other.status, 404, "{token}");
    }
    say(&gateway, &json!({ "message": "hi" }))
        .await
        .rest()
        .await;
    let asked = fake.requests().last().unwrap().json();
    assert!(
        asked["tools"].as_array().is_none_or(Vec::is_empty),
        "{asked}"
    );
}

#[tokio::test]
async fn many_conversations_of_a_caller_evict_only_its_own() {
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![token("some", &["echo"])];
    let (mut gateway, _fake) = with(Script::always(Answer::text("Hi.")), settings).await;
    let mut begun = Vec::new();
    for token in std::iter::once("some").chain(std::iter::repeat_n("full", 65)) {
        gateway.sign_in(token);
        let told = say(&gateway, &json!({ "message": "hi" }))
            .await
            .rest()
            .await;
        begun.push(told[0].1["id"].clone());
    }
    for (token, id, status) in [
        ("some", &begun[0], 200),
        ("full", &begun[1], 404),
        ("full", &begun[65], 200),
    ] {
        gateway.sign_in(token);
        let again = json!({ "message": "hi", "conversation": id }).to_string();
        let answer = gateway.open(Method::POST, "/api/chat", &again).await;
        assert_eq!(answer.status(), status, "{token}");
    }
}

#[tokio::test]
async fn j1_a_turn_starts_no_tool_once_the_gateway_stops() {
    let script = Script::new([Answer::call("c1", "hold", &json!({}))]).then_always(Answer::call(
        "c2",
        "count",
        &json!({}),
    ));
    let (gateway, _fake) = with(script, ServeSettings::default()).await;
    let mut turn = say(&gateway, &json!({ "message": "hold, then count" })).await;
    turn.expect("call").await;
    until(|| gateway.waiting.load(Ordering::SeqCst) == 1).await;
    gateway.stop.cancel();
    gateway.held.add_permits(1);
    let told = turn.rest().await;
    assert_eq!(names(&told), ["result", "error"], "{told:?}");
    assert_eq!(told[0].1["success"], true);
    let detail = told[1].1["detail"].as_str().unwrap();
    assert!(detail.contains("stopping"), "{detail}");
    assert_eq!(gateway.counted.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_turn_that_waits_for_its_model_ends_with_the_gateway() {
    let (gateway, _fake) = with(
        Script::always(Answer::black_hole()),
        ServeSettings::default(),
    )
    .await;
    let mut turn = say(&gateway, &json!({ "message": "hi" })).await;
    turn.expect("conversation").await;
    gateway.stop.cancel();
    assert_eq!(names(&turn.rest().await), ["error"]);
}
