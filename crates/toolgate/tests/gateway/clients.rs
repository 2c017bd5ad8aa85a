//! Third-party clients of `/mcp` in the whole program. `toolgate-mcp` tests the transport in
//! detail; here the calls pass through the gateway and are recorded.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use thirdparty::Inspector;

use crate::support::{ServeProcess, fake_server, get};

/// Runs a client that prints JSON.
fn run(program: &Path, arguments: &[&str]) -> Value {
    run_command(Command::new(program).args(arguments))
}

fn run_command(command: &mut Command) -> Value {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let told = String::from_utf8_lossy(&done.stdout);
    serde_json::from_str(&told).unwrap_or_else(|problem| panic!("{problem}: {told} {said}"))
}

fn expect_all_is_well(seen: &Value, who: &str) {
    let asked = json!({ "text": "häl\nlo", "nested": { "a": [1] } });
    assert_eq!(seen["server"], "toolgate", "{who}: {seen}");
    let tools = seen["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("math_eval")) && tools.contains(&json!("house__echo")));
    assert_eq!(seen["echo"]["echo"], asked, "{who}");
    assert_eq!(seen["failed"][0], true, "{who}");
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
fn the_sdks_and_the_inspector_work_with_the_whole_gateway() {
    let (Some(clients), Some(inspector)) = (thirdparty::MCP_CLIENTS.folder(), Inspector::find())
    else {
        return;
    };
    // A search engine that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let engine = format!("http://{}/", silent.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let house = json!({ "house": fake_server(&[]) });
    let config = json!({ "search": { "url": engine }, "mcpServers": house });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    let url = format!("{}/mcp", gateway.url());
    let script = |name| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
        folder.join(name).to_str().unwrap().to_owned()
    };
    let modules = clients.join("node_modules");
    let typescript = script("typescript.mjs");
    for kind in ["sdk", "client", "client-modern"] {
        let arguments = [&typescript, modules.to_str().unwrap(), kind, &url];
        expect_all_is_well(&run(Path::new("node"), &arguments), kind);
    }
    let python = clients.join("python/bin/python");
    let seen = run(&python, &[&script("python.py"), "auto", &url]);
    expect_all_is_well(&seen, "python");
    let first = [&url, "--transport", "http", "--method"];
    let call = [
        "tools/call",
        "--tool-name",
        "house__echo",
        "--tool-arg",
        "text=hello",
    ];
    let mut inspector = inspector.command_line(folder.path());
    let called = run_command(inspector.args(first).args(call));
    assert_eq!(called["content"][0]["text"], "hello", "{called}");
    assert_all_recorded(&gateway);
}

/// Checks the record: four clients with fifty parallel calls and one cancelled call each,
/// and the inspector's calls.
fn assert_all_recorded(gateway: &ServeProcess) {
    let count = |filter: &str| {
        let path = format!("/api/calls?limit=1000&origin=mcp&{filter}");
        get(&gateway.address, &path).1.as_array().unwrap().len()
    };
    assert_eq!(count("tool=echo&outcome=success"), 4 * 51);
    assert_eq!(count("tool=search&outcome=cancelled"), 4);
    assert_eq!(count("tool=house__echo&server=house&outcome=success"), 1);
    assert_eq!(get(&gateway.address, "/api/status").1["in_flight"], 0);
}
