//! The dashboard in a real browser: every element used, no error on its console, nothing that keeps a person out.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Gateway, fake_server, installed};

/// Where screenshots go, to be looked at.
fn pictures() -> PathBuf {
    // A test is target/debug/deps/name-hash.
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(3).unwrap().join("dashboard")
}

/// Runs one of the scripts beside this file in Node, with the driver of the browser.
fn drive(tools: &Path, script: &str, gateway: &Gateway, more: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/gateway")
        .join(script);
    let pictures = pictures();
    std::fs::create_dir_all(&pictures).unwrap();
    let done = Command::new("node")
        .arg(script)
        .arg(tools.join("node_modules"))
        .arg(gateway.url())
        .arg(&pictures)
        .args(more)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}\n{}\nthe gateway's log:\n{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
        gateway.log()
    );
}

fn house() -> Value {
    json!({
        "mcpServers": {
            "house": fake_server(&["stdout=Starting up\\n"]),
            "gone": { "command": "a-program-that-is-not-there" },
        },
        "policy": { "ask": ["volume"] },
        "model": { "provider": "intents" },
        "retry": { "attempts": 2, "baseDelay": "50ms" },
    })
}

#[test]
fn every_element_of_the_dashboard_works_in_a_browser() {
    let Some(tools) = installed() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), &house());
    drive(&tools, "dashboard.mjs", &gateway, &[]);
}

#[test]
fn the_sign_in_page_lets_in_who_has_the_token_and_nobody_else() {
    let Some(tools) = installed() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut config = house();
    config["serve"] = json!({ "token": "correct-horse-battery-staple" });
    let gateway = Gateway::start(folder.path(), &config);
    drive(
        &tools,
        "signin.mjs",
        &gateway,
        &["correct-horse-battery-staple"],
    );
}
