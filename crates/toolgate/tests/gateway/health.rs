//! A server that is connected but can't do its work.

use serde_json::{Value, json};

use crate::support::{ServeProcess, get, pause};

#[test]
fn degraded_servers_show_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody listens on this port.
    let config = json!({ "mcpServers": { "house": {
        "command": env!("CARGO_BIN_EXE_toolgate"),
        "args": ["zwave-mcp-server"],
        "env": { "MQTT_BROKER_URL": "mqtt://127.0.0.1:1" },
        "startTimeout": "60s",
    } } });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    let server = || get(&gateway.address, "/api/servers").1[0].clone();
    let health = (0..600).find_map(|_| {
        pause(50);
        let health = server()["health"].take();
        (!health.is_null()).then_some(health)
    });
    let health = health.expect("it is asked");
    assert_eq!(
        (&health["tool"], &health["state"]),
        (&json!("check_zwave_health"), &json!("degraded"))
    );
    let problem = health["problem"].as_str().unwrap();
    assert!(problem.contains("MQTT broker"), "{problem}");
    assert_eq!(server()["state"], "connected");

    let reason = "house: connected, but can't do its work: ";
    let says_why = |answer: &Value| {
        let reasons = answer["reasons"].as_array().unwrap();
        let mut texts = reasons.iter().filter_map(Value::as_str);
        texts.any(|text| text.starts_with(reason) && text.contains("MQTT broker"))
    };
    let status = get(&gateway.address, "/api/status").1;
    assert!(
        status["status"] == "degraded" && says_why(&status),
        "{status}"
    );
    // The other tools work, so a load balancer must not take the gateway out.
    let (code, ready) = get(&gateway.address, "/readyz");
    assert_eq!(
        (code, &ready["status"]),
        (200, &json!("degraded")),
        "{ready}"
    );
    assert!(says_why(&ready), "{ready}");

    let calls = get(&gateway.address, "/api/calls").1.to_string();
    assert!(!calls.contains("check_zwave_health"), "{calls}");
    let told = gateway.log().matches("check_zwave_health").count();
    assert_eq!(told, 1, "{}", gateway.log());
}
