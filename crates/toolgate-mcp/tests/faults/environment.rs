//! A9: the environment and the memory limit of a server.

use serde_json::json;
use toolgate_mcp::ServerConnection;

use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR};

/// The variables every server gets, as names or prefixes.
const USUAL: [&str; 26] = [
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "PWD",
    "SHELL",
    "LANG",
    "LC_",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "FTP_PROXY",
    "SSL_CERT_",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_",
    "PIP_",
    "UV_",
    "PYTHONUTF8",
    "FAKEMCP_MARK",
    "TOOLGATE_CHAIN",
    "TOOLGATE_SERVER_OF",
];

#[tokio::test]
async fn a_server_gets_a_clean_environment() {
    let test = FaultTest::start(&["describe=3"]).await;
    let env = test.answer("env", json!({})).await;
    let env = env.as_object().unwrap();
    let strange: Vec<_> = env
        .keys()
        .filter(|key| {
            !USUAL
                .iter()
                .any(|usual| key.to_uppercase().starts_with(usual))
        })
        .collect();
    assert!(strange.is_empty(), "{strange:?}");
    // Cargo sets them for every test; they stand for all other variables of ours.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    assert!(!env.contains_key("CARGO_MANIFEST_DIR"));
    assert_eq!(env["PYTHONUTF8"], "1");
    assert_eq!(test.answer("args", json!({})).await, json!(["describe=3"]));
    assert_eq!(test.answer("fds", json!({})).await, json!(["0", "1", "2"]));
    test.finish().await;
}

#[tokio::test]
async fn inherit_env_passes_everything_and_configured_values_win() {
    let test = FaultTestBuilder::new()
        .settings(FAKE, &[], |fake| {
            let ServerConnection::Stdio(program) = &mut fake.connection else {
                panic!()
            };
            program.inherit_env = true;
            program
                .env
                .insert("CARGO_PKG_NAME".to_owned(), "mine".to_owned());
        })
        .start_settled()
        .await;
    let env = test.answer("env", json!({})).await;
    assert_eq!(env["CARGO_MANIFEST_DIR"], env!("CARGO_MANIFEST_DIR"));
    assert_eq!(env["CARGO_PKG_NAME"], "mine");
    test.finish().await;
}

#[tokio::test]
async fn a_child_above_its_memory_limit_is_ended_with_that_reason() {
    let test = FaultTestBuilder::new()
        .settings(FAKE, &[], |fake| fake.max_memory = Some(100 << 20))
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    test.assert_works().await;
    let envelope = test.call("allocate", json!({ "mb": 400 })).await;
    let text = envelope.to_string();
    assert_eq!(envelope["error_kind"], "unavailable", "{envelope}");
    assert!(text.contains("memory"), "{envelope}");
    test.assert_works().await;
    test.finish().await;
}
