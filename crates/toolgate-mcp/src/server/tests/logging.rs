//! Log messages of running tools reach the client that wants them.

use toolgate_core::{LogLevel, LogMessage};

use super::*;

fn talking() -> Arc<ToolManager> {
    let manager = ToolManager::new();
    manager.add(tool("talk", |_, context| {
        Box::pin(async move {
            context.log(LogLevel::Info, json!({ "step": 1 }));
            tokio::time::sleep(Duration::from_millis(5)).await;
            context.log(LogLevel::Error, "broken");
            Ok(ToolOutput::text("done"))
        })
    }));
    manager.add(tool("flood", |_, context| {
        Box::pin(async move {
            // What is left running must not delay the answer.
            let flooding = context.clone();
            std::thread::spawn(move || {
                for number in 0..200_000 {
                    flooding.log(LogLevel::Info, number);
                }
            });
            for number in 0..10_000 {
                context.log(LogLevel::Info, number);
            }
            Ok(ToolOutput::text("done"))
        })
    }));
    Arc::new(manager)
}

fn message(level: &str, data: impl Into<Value>) -> Value {
    let data: Value = data.into();
    let params = json!({ "level": level, "data": data });
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
}

#[tokio::test]
async fn a_session_gets_messages_from_the_level_that_it_sets() {
    let mut client = LineClient::legacy(&talking()).await;
    let silent = client.call("talk", json!({})).await;
    assert_eq!(silent["content"][0]["text"], "done");
    for wrong in [json!({ "level": "loud" }), json!({}), json!([])] {
        let refused = client.ask("logging/setLevel", wrong).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let set = client
        .ask("logging/setLevel", json!({ "level": "debug" }))
        .await;
    assert_eq!(set["result"], json!({}));
    let first = client.ask("tools/call", json!({ "name": "talk" })).await;
    assert_eq!(first, message("info", json!({ "step": 1 })));
    assert_eq!(client.next().await, message("error", json!("broken")));
    assert_eq!(client.next().await["id"], 1);
    client
        .ask("logging/setLevel", json!({ "level": "error" }))
        .await;
    let first = client.ask("tools/call", json!({ "name": "talk" })).await;
    assert_eq!(first, message("error", json!("broken")));
    assert_eq!(client.next().await["id"], 1);
}

#[tokio::test]
async fn a_modern_request_gets_only_what_it_asks_for() {
    let mut client = LineClient::new(server(&talking()));
    let call = |level: Value| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/logLevel": level,
        });
        json!({ "name": "talk", "_meta": meta })
    };
    let silent = client
        .ask_modern("tools/call", json!({ "name": "talk" }))
        .await;
    assert_eq!(silent["result"]["isError"], false);
    let refused = client.ask("tools/call", call(json!("loud"))).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let first = client.ask("tools/call", call(json!("warning"))).await;
    assert_eq!(first, message("error", json!("broken")));
    assert_eq!(client.next().await["result"]["isError"], false);
    let unknown = client
        .ask_modern("logging/setLevel", json!({ "level": "info" }))
        .await;
    assert_eq!(unknown["error"]["code"], -32601);
}

#[tokio::test]
async fn a_flood_of_messages_does_not_hold_up_the_call() {
    let mut client = LineClient::legacy(&talking()).await;
    client
        .ask("logging/setLevel", json!({ "level": "debug" }))
        .await;
    let mut next = client.ask("tools/call", json!({ "name": "flood" })).await;
    let (mut messages, mut notices) = (0, 0);
    while next["method"] == "notifications/message" {
        messages += 1;
        notices += usize::from(next["params"]["logger"] == "toolgate");
        next = client.next().await;
    }
    assert_eq!(next["result"]["content"][0]["text"], "done");
    assert!(messages < 10_000 && notices > 0, "{messages} {notices}");
}

#[tokio::test]
async fn only_a_single_client_gets_what_is_about_no_call() {
    let server = server(&talking());
    let log = server.sole_client_log();
    let say = |level: LogLevel, data: &str| {
        let is_wanted = log.handler.level().is_some_and(|wanted| level >= wanted);
        if is_wanted {
            let (logger, data) = (None, json!(data));
            log.handler.log(LogMessage {
                level,
                logger,
                data,
                meta: None,
            });
        }
        is_wanted
    };
    assert!(!say(LogLevel::Error, "nobody is there"));
    let mut client = LineClient::new(server.clone());
    client.initialize("2025-11-25").await;
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    assert!(!say(LogLevel::Error, "it has not set a level"));
    let mut levels = log.levels.clone();
    client
        .ask("logging/setLevel", json!({ "level": "notice" }))
        .await;
    assert_eq!(*levels.borrow_and_update(), Some(LogLevel::Notice));
    assert!(!say(LogLevel::Info, "too quiet") && say(LogLevel::Notice, "heard"));
    assert_eq!(client.next().await, message("notice", json!("heard")));

    let mut other = LineClient::new(server.clone());
    other.initialize("2025-11-25").await;
    assert!(!say(LogLevel::Error, "whose is it?"));
    drop((client, other));
    assert!(!say(LogLevel::Error, "still unclear"));
}

#[tokio::test]
async fn clients_over_http_get_nothing_that_is_about_no_call() {
    let server = server(&talking());
    let log = server.sole_client_log();
    let _http = server.http(crate::HttpOptions::default());
    let mut client = LineClient::new(server.clone());
    client.initialize("2025-11-25").await;
    client
        .ask("logging/setLevel", json!({ "level": "debug" }))
        .await;
    assert_eq!(log.handler.level(), None);
}
