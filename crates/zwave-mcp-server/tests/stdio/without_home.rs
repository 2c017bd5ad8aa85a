//! The server starts and answers whatever is missing.

use serde_json::{Value, json};

use crate::client::StdioClient;

/// An address where nothing accepts: the port is bound but not served.
fn silent_address() -> (std::net::UdpSocket, String) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("mqtt://127.0.0.1:{}", socket.local_addr().unwrap().port());
    (socket, url)
}

fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("list_zwave_devices", json!({})),
        (
            "control_zwave_device",
            json!({ "deviceName": "Lamp", "action": "on" }),
        ),
        ("get_device_sensor_data", json!({ "deviceName": "Lamp" })),
        ("set_thermostat", json!({ "temperature": 21 })),
        ("activate_scene", json!({ "sceneName": "Dinner" })),
        (
            "control_lock",
            json!({ "deviceName": "Front Door", "action": "unlock" }),
        ),
    ]
}

#[tokio::test]
async fn ms1_stdout_is_json_rpc_alone_at_every_log_level() {
    let (_taken, url) = silent_address();
    for level in ["error", "info", "debug", "trace"] {
        let mut client = StdioClient::start(&[
            ("MQTT_BROKER_URL", &url),
            ("LOG_LEVEL", level),
            ("ZWAVE_ALLOW_LOCKS", "1"),
        ])
        .await;
        client.ask("tools/list", json!({})).await;
        for (tool, arguments) in calls() {
            client.call(tool, arguments).await;
            client.call(tool, json!({ "wrong": ["\u{7}\n"] })).await;
        }
        client.call("no_such_tool", json!({})).await;
        client.ask("no/such/method", json!({})).await;
        let (status, log) = client.leave().await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert_eq!(
            log.contains("DEBUG"),
            ["debug", "trace"].contains(&level),
            "{level}: {log}"
        );
    }
}

#[tokio::test]
async fn ms1_an_unreadable_line_is_answered_without_an_id() {
    let (_taken, url) = silent_address();
    let mut client = StdioClient::start(&[("MQTT_BROKER_URL", &url)]).await;
    for (line, code) in [
        (&b"garbage"[..], -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":", -32700),
        (b"\xff\xfe{}", -32700),
        (b"{\"level\":\"info\"}", -32600),
        (b"7", -32600),
    ] {
        client.send_line(line).await;
        let answer = client.next().await.unwrap();
        let line = String::from_utf8_lossy(line);
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        assert_eq!(answer.get("id"), None, "{line}: {answer}");
        let list = client.ask("tools/list", json!({})).await;
        assert!(list["tools"].is_array(), "{line}: {list}");
    }
    assert_eq!(client.leave().await.0.code(), Some(0));
}

#[tokio::test]
async fn without_a_broker_every_tool_says_what_is_missing() {
    let (_taken, url) = silent_address();
    let mut client =
        StdioClient::start(&[("MQTT_BROKER_URL", &url), ("ZWAVE_ALLOW_LOCKS", "1")]).await;
    for (tool, arguments) in calls() {
        let (failed, text, _) = client.call(tool, arguments).await;
        assert!(failed && text.contains("MQTT broker"), "{tool}: {text}");
    }
    let (failed, text, fields) = client.call("check_zwave_health", json!({})).await;
    assert!(!failed && text.contains("MQTT broker"), "{text}");
    assert_eq!(
        (&fields["healthy"], &fields["brokerConnected"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(client.leave().await.0.code(), Some(0));
}

#[tokio::test]
async fn an_invalid_address_is_reported_without_its_password() {
    let url = "http://house:sesame-1@broker";
    let mut client = StdioClient::start(&[("MQTT_BROKER_URL", url), ("LOG_LEVEL", "trace")]).await;
    let (failed, text, _) = client.call("list_zwave_devices", json!({})).await;
    assert!(failed && text.contains("mqtt://host:1883"), "{text}");
    let (_, health, fields) = client.call("check_zwave_health", json!({})).await;
    let (_, log) = client.leave().await;
    for told in [text, health, fields.to_string(), log] {
        assert!(!told.contains("sesame"), "{told}");
    }
}

#[tokio::test]
async fn locks_are_listed_only_where_they_are_allowed() {
    for (value, expected) in [(None, false), (Some("0"), false), (Some("1"), true)] {
        let variables = value.map(|value| ("ZWAVE_ALLOW_LOCKS", value));
        let mut client = StdioClient::start(variables.as_slice()).await;
        let list = client.ask("tools/list", json!({})).await;
        let tools = list["tools"].as_array().unwrap();
        let lock = tools.iter().find(|tool| tool["name"] == "control_lock");
        assert_eq!(lock.is_some(), expected, "{value:?}");
        if let Some(lock) = lock {
            assert_eq!(lock["annotations"]["destructiveHint"], true);
        }
        let (_, text, fields) = client.call("check_zwave_health", json!({})).await;
        assert_eq!(text.contains("ZWAVE_ALLOW_LOCKS=1"), !expected, "{text}");
        assert_eq!(fields["locksEnabled"], expected);
    }
}
