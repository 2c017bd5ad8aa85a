//! How the program exits.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::client::StdioClient;

#[tokio::test]
async fn the_server_exits_0_when_stdin_closes() {
    let client = StdioClient::start(&[]).await;
    assert_eq!(client.leave().await.0.code(), Some(0));
}

#[tokio::test]
async fn the_server_exits_0_on_sigterm_and_ctrl_c() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut client = StdioClient::start(&[]).await;
        client.ask("ping", json!({})).await;
        let pid = Pid::from_raw(client.pid().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        assert_eq!(client.end().await.code(), Some(0), "{signal:?}");
    }
}

#[test]
fn help_shows_examples_and_a_wrong_flag_exits_2_with_an_empty_stdout() {
    let run = |flag: &str| {
        let program = env!("CARGO_BIN_EXE_zwave-mcp-server");
        std::process::Command::new(program)
            .arg(flag)
            .output()
            .unwrap()
    };
    let help = run("--help");
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success());
    for part in [
        "MQTT_BROKER_URL",
        "ZWAVE_ALLOW_LOCKS",
        "Examples:",
        "--broker",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let wrong = run("--bogus");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stdout.is_empty() && !wrong.stderr.is_empty());
}
