//! The dashboard in a real browser: uses every element, and allows no console error
//! and no accessibility problem.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::{
    CallContext, Redactor, Tool, ToolCall, ToolDefinition, ToolExecutor, ToolFuture, ToolManager,
    ToolOutput, ValidArguments,
};
use toolgate_journal::{Journal, JournalSettings};

use crate::support::{ServeProcess, browser_tools, fake_server};

const TOKEN: &str = "correct-horse-battery-staple";
const KITCHEN: &str = "kettle-spoon-oven-table";

/// The folder for screenshots.
fn screenshot_folder() -> PathBuf {
    // A test is target/debug/deps/name-hash.
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(3).unwrap().join("dashboard")
}

/// Runs one of the scripts beside this file in Node, with the driver of the browser.
pub(crate) fn run_script(tools: &Path, script: &str, gateway: &ServeProcess, more: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/gateway")
        .join(script);
    let screenshot_folder = screenshot_folder();
    std::fs::create_dir_all(&screenshot_folder).unwrap();
    let done = Command::new("node")
        .arg(script)
        .arg(tools.join("node_modules"))
        .arg(gateway.url())
        .arg(&screenshot_folder)
        .args(more)
        .env("TOOLGATE_LINK", gateway.link().unwrap_or_default())
        .env("TOOLGATE_KEY", gateway.operator_key().unwrap_or_default())
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "the gateway's log:\n{}\n{}\n{}",
        gateway.log(),
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
}

/// One server that pollutes stdout, one that describes itself in HTML, and one that is missing.
fn fake_servers(folder: &Path) -> Value {
    let tools = folder.join("tools.json");
    let text =
        json!({ "type": "string", "description": "<script>document.title='owned'</script>" });
    let markup = json!([{
        "name": "markup",
        "description": "<img src=x onerror=document.title='owned'> & <b>bold</b>",
        "inputSchema": { "type": "object", "properties": { "text": text } },
    }]);
    std::fs::write(&tools, markup.to_string()).unwrap();
    let mut house = fake_server(&[
        "stdout=Starting up\\n",
        "stderr=listening on <b>stdio</b>\\n",
    ]);
    house["parameterNames"] = json!({ "sleep": { "milliseconds": "ms" } });
    json!({
        "mcpServers": {
            "house": house,
            "names": fake_server(&[&format!("list={}", tools.display())]),
            "gone": { "command": "a-program-that-is-not-there" },
        },
        "policy": { "ask": ["volume", "pid"] },
        "model": { "provider": "intents" },
        "retry": { "attempts": 2, "baseDelay": "50ms" },
    })
}

#[test]
fn every_element_of_the_dashboard_works_in_a_browser() {
    let Some(tools) = browser_tools() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let gateway = ServeProcess::start(folder.path(), &fake_servers(folder.path()));
    let pid = gateway.child.id().to_string();
    run_script(&tools, "dashboard.mjs", &gateway, &[&pid]);
}

#[test]
fn a_degraded_server_and_edits_that_need_a_restart_are_shown() {
    let Some(tools) = browser_tools() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    // Nobody listens on this port.
    let config = json!({ "mcpServers": { "house": {
        "command": env!("CARGO_BIN_EXE_toolgate"),
        "args": ["zwave-mcp-server"],
        "env": { "MQTT_BROKER_URL": "mqtt://127.0.0.1:1" },
        "startTimeout": "60s",
    } } });
    let gateway = ServeProcess::start(folder.path(), &config);
    let file = folder.path().join("gateway.json");
    let file = file.to_string_lossy();
    run_script(&tools, "degraded.mjs", &gateway, &[&file]);
}

#[test]
fn a_changed_tool_is_shown_and_agreed_to() {
    let Some(tools) = browser_tools() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tools.json");
    let look =
        json!({ "name": "look", "description": "Looks", "inputSchema": { "type": "object" } });
    std::fs::write(&file, json!([look]).to_string()).unwrap();
    let file = file.to_string_lossy();
    let list = format!("list={file}");
    let config = json!({ "mcpServers": { "house": fake_server(&[&list]) } });
    let gateway = ServeProcess::start(folder.path(), &config);
    run_script(&tools, "changed.mjs", &gateway, &[&file]);
}

#[test]
fn tasks_of_servers_and_clients_show_their_progress_and_are_stopped() {
    let Some(tools) = browser_tools() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "mcpServers": { "studio": fake_server(&["tasks"]) },
        "serve": { "tasks": { "after": "200ms" } },
    });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    run_script(&tools, "tasks.mjs", &gateway, &[]);
}

#[test]
fn resources_and_prompts_are_previewed_and_nothing_in_them_runs() {
    let Some(tools) = browser_tools() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/content-server.mjs");
    let memos = json!({ "command": "node", "args": [server] });
    let config = json!({ "mcpServers": { "memos": memos, "other": memos } });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    run_script(&tools, "content.mjs", &gateway, &[]);
}

#[test]
fn only_the_token_opens_the_sign_in_page() {
    let Some(tools) = browser_tools() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let kitchen = json!({ "token": KITCHEN, "name": "kitchen", "allow": ["volume"] });
    let config = json!({
        "serve": { "token": TOKEN, "tokens": [kitchen] },
        "policy": { "ask": ["volume"] },
        "model": { "provider": "intents" },
    });
    let gateway = ServeProcess::start(folder.path(), &config);
    run_script(&tools, "signin.mjs", &gateway, &[TOKEN, KITCHEN]);
}

#[test]
fn a_token_with_a_list_is_shown_only_what_it_may_do() {
    let Some(tools) = browser_tools() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let allow = ["echo", "house/*"];
    let config = json!({
        "serve": { "token": TOKEN, "tokens": [{ "token": KITCHEN, "name": "kitchen", "allow": allow }] },
        "mcpServers": { "house": fake_server(&[]) },
    });
    let gateway = ServeProcess::start(folder.path(), &config);
    run_script(&tools, "rights.mjs", &gateway, &[TOKEN, KITCHEN]);
}

#[test]
fn the_list_stays_fast_with_ten_thousand_calls() {
    let Some(tools) = browser_tools() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), 10_000);
    let gateway = ServeProcess::start(folder.path(), &json!({}));
    run_script(&tools, "crowd.mjs", &gateway, &[]);
}

struct CountingTool(ToolDefinition);

impl Tool for CountingTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn invoke<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(std::future::ready(Ok(ToolOutput::json(json!("counted")))))
    }
}

/// Records `count` calls.
fn record(home: &Path, calls: usize) {
    with_journal(home, "toolgate call", async |_, executor| {
        for n in 0..calls {
            // One in a hundred names an unknown tool.
            let tool = if n % 100 == 99 { "gone" } else { "counting" };
            let call = ToolCall::new(tool, json!({ "n": n }));
            executor.execute(call).await;
        }
    });
}

/// Uses the journal of the gateway with this home, as another command would.
pub(crate) fn with_journal(
    home: &Path,
    command: &str,
    work: impl AsyncFnOnce(&Journal, &ToolExecutor),
) {
    let file = home.join(".local/state/toolgate/journal.db");
    let settings: JournalSettings = serde_json::from_value(json!({ "sync": "relaxed" })).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().unwrap();
    runtime.block_on(async {
        let journal = Journal::open(&file, &settings, Redactor::default(), command).unwrap();
        let manager = ToolManager::new();
        let definition = ToolDefinition::builder("counting", "Counts", json!({ "type": "object" }));
        manager.add(CountingTool(definition.build().unwrap()));
        let executor = ToolExecutor::builder(Arc::new(manager));
        let executor = executor.observer(journal.observer()).build();
        work(&journal, &executor).await;
        journal.close().await;
    });
}
