//! The server with the MCP inspector, an independent client.

use serde_json::Value;
use thirdparty::Inspector;
use tokio::process::Command;
use tokio::time::timeout;

use crate::brokers::Kind;
use crate::fixture::{GUARD, HouseFixture};

#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_lists_the_tools_and_turns_a_light_on() {
    let Some(inspector) = Inspector::find() else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let fixture = HouseFixture::demo(Kind::Embedded).await;
    drop(fixture.server().await);
    let run = async |method: &[&str]| -> Value {
        let output = Command::from(inspector.command_line(home.path()))
            .arg(env!("CARGO_BIN_EXE_zwave-mcp-server"))
            .args(["--broker", &fixture.broker.url(), "--method"])
            .args(method)
            .output();
        let output = timeout(GUARD, output).await.unwrap().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let listed = run(&["tools/list"]).await;
    let tools = listed["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["name"].as_str().unwrap());
    let mut names = names.collect::<Vec<_>>();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "activate_scene",
            "check_zwave_health",
            "control_zwave_device",
            "get_device_sensor_data",
            "list_zwave_devices",
            "set_thermostat",
        ]
    );
    let called = run(&[
        "tools/call",
        "--tool-name",
        "control_zwave_device",
        "--tool-arg",
        "deviceName=Kitchen Light",
        "--tool-arg",
        "action=on",
    ])
    .await;
    assert_eq!(called["structuredContent"]["state"], "on", "{called}");
    assert_eq!(fixture.state("Kitchen Light"), "on");
}
