//! Clients that others wrote use resources and prompts through the gateway, over HTTP.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;
use toolgate_mcp::{
    HttpOptions, McpHttp, ProtocolEra, ServerConnection, ServerProgram, ServerSettings,
};

use crate::gateway::Gateway;
use crate::real_servers::everything;

/// A gateway to the reference server and a fake one, and its URL.
async fn gateway(servers: &Path) -> (Gateway, String) {
    let notes = json!({ "instructions": "hints", "resources": [{ "uri": "notes:1" }] });
    let mut gateway = Gateway::prepare(ProtocolEra::Modern, &[("notes", notes)], |options| {
        options.relays_questions = true;
    });
    let (name, command, args) = everything(servers);
    let program = ServerProgram {
        command,
        args,
        ..ServerProgram::default()
    };
    let mut settings = ServerSettings::new(name, ServerConnection::Stdio(program));
    settings.start_timeout = Some(Duration::from_secs(100));
    gateway.settings.push(settings);
    gateway.apply().await;
    let url = listen(gateway.server.http(HttpOptions::default())).await;
    (gateway, url)
}

pub(crate) async fn listen(mcp: McpHttp) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mcp = mcp.clone();
            tokio::spawn(async move {
                let service = service_fn(|request| async {
                    Ok::<_, Infallible>(mcp.respond(request, 0).await)
                });
                let stream = TokioIo::new(stream);
                let connection = http1::Builder::new().serve_connection(stream, service);
                drop(connection.await);
            });
        }
    });
    url
}

/// Runs a client that prints JSON.
pub(crate) async fn run(program: &Path, script: &str, arguments: &[&str]) -> Value {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let script = crates.join("toolgate/tests/clients").join(script);
    let script = script.display().to_string();
    run_program(program, &[&[&*script], arguments].concat()).await
}

async fn run_program(program: &Path, arguments: &[&str]) -> Value {
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

fn expect_all_is_well(seen: &Value, who: &str) {
    let told = seen["instructions"].as_str().unwrap();
    assert!(
        told.contains("# mcp:notes\nhints\n\n# mcp:everything\n"),
        "{who}: {told}"
    );
    let resources = seen["resources"].as_array().unwrap();
    assert_eq!(resources[0], "notes:1", "{who}");
    assert!(resources.len() >= 8, "{who}: {resources:?}");
    assert_eq!(
        seen["templates"][0], "demo://resource/dynamic/text/{resourceId}",
        "{who}"
    );
    let prompts = json!([
        "simple-prompt",
        "args-prompt",
        "completable-prompt",
        "resource-prompt"
    ]);
    assert_eq!(seen["prompts"], prompts, "{who}");
    assert_eq!(seen["note"], "notes:1 of notes", "{who}");
    assert_eq!(
        (&seen["document"], &seen["blob"]),
        (&json!(true), &json!(true)),
        "{who}"
    );
    let missing = seen["missing"].as_str().unwrap();
    assert!(
        missing.contains("Resource not found: nobody:1"),
        "{who}: {missing}"
    );
    assert!(
        seen["city"].as_str().unwrap().contains("Köln"),
        "{who}: {seen}"
    );
    assert_eq!(seen["embedded"], "demo://resource/dynamic/text/3", "{who}");
    assert_eq!(seen["completed"], json!(["David", "Eve", "Frank"]), "{who}");
    assert_eq!(seen["updated"], "notes:1", "{who}");
    // One server asks as servers did up to 2025-11-25, the other one as of 2026-07-28.
    let asked = json!([
        "Who?",
        "https://example.org/who",
        "Please provide inputs for the following fields:"
    ]);
    assert_eq!(seen["asked"], asked, "{who}");
    for (answer, part) in [(0, r#""who":"Ada""#), (1, "accept"), (2, "- Name: Ada")] {
        let text = seen["answered"][answer].as_str().unwrap();
        assert!(text.contains(part), "{who}: {text}");
    }
    assert_eq!(seen["problems"], json!([]), "{who}");
}

#[tokio::test]
async fn the_typescript_sdks_use_resources_prompts_updates_and_questions() {
    let (Some(clients), Some(servers)) =
        (thirdparty::MCP_CLIENTS.folder(), fakemcp::real_servers())
    else {
        return;
    };
    let (gateway, url) = gateway(&servers).await;
    let modules = clients.join("node_modules").display().to_string();
    for kind in ["sdk", "client", "client-modern"] {
        let seen = run(Path::new("node"), "content.mjs", &[&modules, kind, &url]).await;
        expect_all_is_well(&seen, kind);
        gateway.wait_until_subscribed("notes", &[]).await;
    }
    gateway.stop().await;
}

#[tokio::test]
async fn the_python_sdk_and_fastmcp_use_resources_prompts_updates_and_questions() {
    let (Some(clients), Some(servers)) =
        (thirdparty::MCP_CLIENTS.folder(), fakemcp::real_servers())
    else {
        return;
    };
    let (gateway, url) = gateway(&servers).await;
    let python = clients.join("python/bin/python");
    for script in ["content.py", "fastmcp_client.py"] {
        for (mode, protocol) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
            let seen = run(&python, script, &[mode, &url]).await;
            expect_all_is_well(&seen, &format!("{script} {mode}"));
            assert_eq!(seen["protocol"], protocol);
            gateway.wait_until_subscribed("notes", &[]).await;
        }
    }
    gateway.stop().await;
}

#[tokio::test]
async fn the_inspector_uses_resources_and_prompts() {
    let (Some(clients), Some(servers)) =
        (thirdparty::MCP_CLIENTS.folder(), fakemcp::real_servers())
    else {
        return;
    };
    let (gateway, url) = gateway(&servers).await;
    let inspector = clients.join("node_modules/.bin/mcp-inspector");
    let ask = async |method: &[&str]| {
        let first = ["--cli", &url, "--transport", "http", "--method"];
        run_program(&inspector, &[&first, method].concat()).await
    };
    let listed = ask(&["resources/list"]).await;
    assert_eq!(listed["resources"][0]["uri"], "notes:1", "{listed}");
    let listed = ask(&["resources/templates/list"]).await;
    let template = &listed["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "demo://resource/dynamic/text/{resourceId}");
    let read = ask(&["resources/read", "--uri", "notes:1"]).await;
    assert_eq!(read["contents"][0]["text"], "notes:1 of notes", "{read}");
    let listed = ask(&["prompts/list"]).await;
    assert_eq!(listed["prompts"][1]["name"], "args-prompt", "{listed}");
    let prompt = ["prompts/get", "--prompt-name", "args-prompt"];
    let prompt = ask(&[&prompt[..], &["--prompt-args", "city=Köln"]].concat()).await;
    let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("Köln"), "{text}");
    gateway.stop().await;
}
