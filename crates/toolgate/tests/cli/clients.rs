//! Third-party clients against `toolgate mcp`: the SDKs in both eras, and the inspector.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use thirdparty::Inspector;

use crate::run::RunOutput;

/// The folder where `./test.sh` installs them. If they are missing, the test is skipped with a
/// note, or fails with `CI=true`.
fn installed(what: &str) -> Option<PathBuf> {
    Some(thirdparty::MCP_CLIENTS.folder()?.join(what))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/clients")
        .join(name)
}

/// A search engine that never answers, and a folder with a configuration that uses it.
struct ClientFolder {
    folder: TempDir,
    _silent: TcpListener,
}

impl ClientFolder {
    fn new() -> Self {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", silent.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let config = json!({ "search": { "url": url } });
        let own = folder.path().join(".config/toolgate");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("toolgate.json"), config.to_string()).unwrap();
        Self {
            folder,
            _silent: silent,
        }
    }

    /// Runs a client that starts `toolgate mcp` in the folder and prints JSON.
    fn run(&self, program: &Path, arguments: &[&str], after: &[&str]) -> Value {
        self.run_command(Command::new(program).args(arguments), after)
    }

    fn run_command(&self, command: &mut Command, after: &[&str]) -> Value {
        let output = command
            .arg(env!("CARGO_BIN_EXE_toolgate"))
            .arg("mcp")
            .args(after)
            .current_dir(self.folder.path())
            // The SDKs pass on this variable, but not ours.
            .env("HOME", self.folder.path())
            .output()
            .unwrap();
        RunOutput::from(output).json()
    }
}

fn expect_all_is_well(seen: &Value, who: &str) {
    let asked = json!({ "text": "häl\nlo", "nested": { "a": [1] } });
    assert_eq!(seen["server"], "toolgate", "{who}: {seen}");
    let tools = json!(["datetime", "echo", "math_eval", "search", "volume"]);
    assert_eq!(seen["tools"], tools, "{who}");
    assert_eq!(seen["schema"], "object", "{who}");
    assert_eq!(seen["echo"]["echo"], asked, "{who}");
    let text: Value = serde_json::from_str(seen["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, seen["echo"], "{who}");
    assert_eq!(seen["failed"][0], true, "{who}");
    let failed = seen["failed"][1].as_str().unwrap();
    assert!(
        failed.starts_with("Invalid parameters: 'action' must be one of"),
        "{who}: {failed}"
    );
    let unknown = seen["unknown"].as_str().unwrap();
    assert!(
        unknown.starts_with("Tool 'nope' not found. Available tools: "),
        "{who}: {unknown}"
    );
    assert_eq!(seen["cancelled"], "cancelled", "{who}");
    assert_eq!(seen["together"], true, "{who}");
    assert_eq!(seen["problems"], json!([]), "{who}");
}

#[test]
fn the_typescript_sdks_work_with_our_server_in_both_eras() {
    let Some(modules) = installed("node_modules") else {
        return;
    };
    let script = script("typescript.mjs");
    for kind in ["sdk", "client", "client-modern"] {
        let arguments = [script.to_str().unwrap(), modules.to_str().unwrap(), kind];
        let seen = ClientFolder::new().run(Path::new("node"), &arguments, &[]);
        expect_all_is_well(&seen, kind);
    }
}

#[test]
fn the_python_sdk_works_with_our_server_in_both_eras() {
    let Some(python) = installed("python/bin/python") else {
        return;
    };
    let script = script("python.py");
    // It detects by itself that the server supports the newer era.
    for (mode, protocol) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let seen = ClientFolder::new().run(&python, &[script.to_str().unwrap(), mode], &[]);
        expect_all_is_well(&seen, mode);
        assert_eq!(seen["protocol"], protocol);
    }
}

#[test]
fn the_inspector_works_with_our_server_in_both_eras() {
    let Some(inspector) = Inspector::find() else {
        return;
    };
    for era in ["legacy", "modern"] {
        let folder = ClientFolder::new();
        let ask = |after: &[&str]| {
            let mut command = inspector.command_line(folder.folder.path());
            folder.run_command(command.args(["--protocol-era", era]), after)
        };
        let listed = ask(&["--deny", "volume", "--method", "tools/list"]);
        let listed = listed["tools"].as_array().unwrap().iter();
        let names: Vec<&Value> = listed.map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["datetime", "echo", "math_eval", "search"], "{era}");
        let call = ["--method", "tools/call", "--tool-name", "math_eval"];
        let called = ask(&[&call[..], &["--tool-arg", "expression=6*7"]].concat());
        assert_eq!(called["isError"], false, "{era}: {called}");
        let text = called["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("42"), "{era}: {called}");
    }
}
