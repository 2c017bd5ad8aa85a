//! Clients that others wrote fetch results of tasks, over HTTP.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use toolgate_mcp::{HttpOptions, McpServer, ProtocolEra, ServeOptions};

use crate::gateway::Gateway;
use crate::real_clients::{listen, run};

#[tokio::test]
async fn the_sdks_fetch_results_of_tasks() {
    let Some(clients) = thirdparty::MCP_CLIENTS.folder() else {
        return;
    };
    let gateway = Gateway::start(ProtocolEra::Legacy, &[("notes", json!({}))]).await;
    let mut options = ServeOptions::gateway("1.0.0");
    options.tasks.after = Duration::from_millis(300);
    let server = McpServer::new(gateway.executor.clone(), options);
    let url = listen(server.http(HttpOptions::default())).await;

    let modules = clients.join("node_modules").display().to_string();
    let seen = run(Path::new("node"), "tasks.mjs", &[&modules, &url]).await;
    assert_eq!(seen["slow"], "done", "{seen}");
    assert_eq!(
        seen["states"].as_array().unwrap().last().unwrap(),
        "completed"
    );
    assert!(seen["question"].as_str().unwrap().contains("Ada"), "{seen}");
    assert_eq!(seen["related"], true, "the question names its task: {seen}");
    assert_eq!(seen["cancelled"], "cancelled", "{seen}");

    let python = clients.join("python/bin/python");
    let seen = run(&python, "tasks.py", &[&url]).await;
    assert_eq!(
        (&seen["slow"], &seen["fast"]),
        (&json!("done"), &json!("at once")),
        "{seen}"
    );
    let states = seen["states"].as_array().unwrap();
    assert_eq!(states[0], "working", "{seen}");
    assert_eq!(states.last().unwrap(), "completed", "{seen}");
    assert_eq!(seen["protocol"], "2026-07-28");
    gateway.stop().await;
}
