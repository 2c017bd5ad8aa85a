use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::test_server::TestMcpServer;

/// The folder into which `./test.sh` installs clients. `None` skips the test,
/// which fails with `CI=true`.
fn installed(what: &str) -> Option<PathBuf> {
    Some(thirdparty::MCP_CLIENTS.folder()?.join(what))
}

/// These scripts also test `toolgate mcp`.
fn script(name: &str) -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let script = crates.join("toolgate/tests/clients").join(name);
    script.to_str().unwrap().to_owned()
}

/// Runs a client that prints JSON.
async fn run(program: &Path, arguments: &[&str]) -> Value {
    let done = Command::new(program)
        .args(arguments)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let told = String::from_utf8_lossy(&done.stdout);
    serde_json::from_str(&told).unwrap_or_else(|problem| panic!("{problem}: {told} {said}"))
}

fn assert_results(seen: &Value, who: &str) {
    let asked = json!({ "text": "häl\nlo", "nested": { "a": [1] } });
    assert_eq!(seen["server"], "toolgate", "{who}: {seen}");
    assert_eq!(
        seen["tools"],
        json!(["echo", "datetime", "search", "steps"]),
        "{who}"
    );
    assert_eq!(seen["schema"], "object", "{who}");
    assert_eq!(seen["echo"]["echo"], asked, "{who}");
    assert_eq!(seen["failed"][0], true, "{who}");
    let failed = seen["failed"][1].as_str().unwrap();
    let expected = "Invalid parameters: 'action' must be one of";
    assert!(failed.starts_with(expected), "{who}: {failed}");
    let unknown = seen["unknown"].as_str().unwrap();
    assert!(
        unknown.contains("Tool 'nope' not found. "),
        "{who}: {unknown}"
    );
    assert_eq!(seen["cancelled"], "cancelled", "{who}");
    assert_eq!(seen["together"], true, "{who}");
    assert_eq!(seen["progress"], json!([1, 2, 3]), "{who}");
    assert_eq!(seen["problems"], json!([]), "{who}");
}

#[tokio::test]
async fn the_typescript_sdks_work_over_http_in_both_eras() {
    let Some(modules) = installed("node_modules") else {
        return;
    };
    let script = script("typescript.mjs");
    for kind in ["sdk", "client", "client-modern"] {
        let server = TestMcpServer::open().await;
        let arguments = [&script, modules.to_str().unwrap(), kind, &server.url()];
        let seen = run(Path::new("node"), &arguments).await;
        assert_results(&seen, kind);
        assert_eq!(
            server.mcp.session_count(),
            0,
            "{kind}: they say when they are done"
        );
        server.wait_until_idle().await;
    }
}

#[tokio::test]
async fn the_python_sdk_works_over_http_in_both_eras() {
    let Some(python) = installed("python/bin/python") else {
        return;
    };
    let script = script("python.py");
    for (mode, protocol) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let server = TestMcpServer::open().await;
        let mut seen = run(&python, &[&script, mode, &server.url()]).await;
        seen["progress"] = json!([1, 2, 3].map(|done| {
            assert_eq!(seen["progress"][done - 1], done as f64, "{mode}");
            done
        }));
        assert_results(&seen, mode);
        assert_eq!(seen["protocol"], protocol);
        assert_eq!(server.mcp.session_count(), 0, "{mode}");
        server.wait_until_idle().await;
    }
}

#[tokio::test]
async fn the_inspector_works_over_http() {
    let Some(inspector) = installed("node_modules/.bin/mcp-inspector") else {
        return;
    };
    let server = TestMcpServer::open().await;
    let url = server.url();
    let ask = async |method: &[&str]| {
        let first = ["--cli", &url, "--transport", "http", "--method"];
        run(&inspector, &[&first, method].concat()).await
    };
    let listed = ask(&["tools/list"]).await;
    assert_eq!(listed["tools"][0]["name"], "echo", "{listed}");
    let called = ask(&["tools/call", "--tool-name", "echo", "--tool-arg", "a=1"]).await;
    assert_eq!(called["structuredContent"]["echo"]["a"], "1", "{called}");
}
