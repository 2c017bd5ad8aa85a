//! Real servers from npm and PyPI behind the gateway, and real clients in front of it. `./test.sh`
//! installs them; without them these tests are skipped, and with `CI=true` they fail.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_mcp::{ProtocolEra, ServerConnection, ServerProgram, ServerSettings};

use crate::gateway::{ERAS, Gateway};

/// A gateway to these servers, each with its name, its program and its arguments.
pub(crate) async fn start(servers: Vec<(&str, String, Vec<String>)>) -> Gateway {
    let mut gateway = Gateway::prepare(ProtocolEra::Legacy, &[], |options| {
        options.relays_questions = true;
    });
    for (name, command, args) in servers {
        let program = ServerProgram {
            command,
            args,
            ..ServerProgram::default()
        };
        let mut settings = ServerSettings::new(name, ServerConnection::Stdio(program));
        // Ten times the usual limit, because test machines are slow.
        settings.start_timeout = Some(std::time::Duration::from_secs(100));
        gateway.settings.push(settings);
    }
    gateway.apply().await;
    gateway
}

/// A server from npm, run by the Node beside it.
fn npm<'a>(
    folder: &Path,
    name: &'a str,
    script: &str,
    args: &[&str],
) -> (&'a str, String, Vec<String>) {
    let script = folder
        .join("node_modules")
        .join(script)
        .display()
        .to_string();
    let args = std::iter::once(script).chain(args.iter().map(|arg| (*arg).to_owned()));
    (
        name,
        fakemcp::node(folder).display().to_string(),
        args.collect(),
    )
}

pub(crate) fn everything(folder: &Path) -> (&'static str, String, Vec<String>) {
    let script = "@modelcontextprotocol/server-everything/dist/index.js";
    npm(folder, "everything", script, &["stdio"])
}

#[tokio::test]
async fn everything_of_the_reference_server_works_in_both_eras() {
    let Some(folder) = fakemcp::real_servers() else {
        return;
    };
    let gateway = start(vec![everything(&folder)]).await;
    for era in ERAS {
        let mut client = gateway.client(era).await;
        let told = client.hello["instructions"].as_str().unwrap();
        assert!(
            told.contains("# mcp:everything\n# Everything Server"),
            "{told}"
        );
        let resources = client.list("resources/list").await;
        assert!(resources.len() >= 7, "{resources:?}");
        let text = client.read(&resources[0]).await;
        assert!(text.len() > 100, "{text}");
        let templates = client.list("resources/templates/list").await;
        let text_template = "demo://resource/dynamic/text/{resourceId}";
        assert_eq!(templates[0], text_template);
        let text = client.read("demo://resource/dynamic/text/42").await;
        assert!(text.starts_with("Resource 42: "), "{text}");
        let blob = json!({ "uri": "demo://resource/dynamic/blob/1" });
        let blob = client.result("resources/read", blob).await;
        assert!(blob["contents"][0]["blob"].is_string(), "{blob}");
        let unknown = json!({ "uri": "demo://resource/unknown" });
        let error = client.expect_error("resources/read", unknown).await;
        assert!(
            error["message"].as_str().unwrap().contains("unknown"),
            "{error}"
        );
        check_prompts(&mut client).await;
        check_completion(&mut client, text_template).await;
        check_subscription(&mut client).await;
    }
    gateway.stop().await;
}

async fn check_prompts(client: &mut crate::client::TestClient) {
    let prompts = client.list("prompts/list").await;
    assert_eq!(
        prompts,
        [
            "simple-prompt",
            "args-prompt",
            "completable-prompt",
            "resource-prompt"
        ]
    );
    let params = json!({ "name": "args-prompt", "arguments": { "city": "Köln", "state": "NRW" } });
    let prompt = client.result("prompts/get", params).await;
    let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("Köln") && text.contains("NRW"), "{text}");
    let missing = json!({ "name": "args-prompt", "arguments": {} });
    let error = client.expect_error("prompts/get", missing).await;
    assert_eq!(error["code"], -32602, "{error}");
    let arguments = json!({ "resourceType": "Text", "resourceId": "3" });
    let params = json!({ "name": "resource-prompt", "arguments": arguments });
    let prompt = client.result("prompts/get", params).await;
    let embedded = prompt["messages"][1]["content"]["resource"]["uri"].as_str();
    let text = client.read(embedded.unwrap()).await;
    assert!(text.starts_with("Resource 3: "), "{text}");
}

async fn check_completion(client: &mut crate::client::TestClient, template: &str) {
    let prompt = json!({ "type": "ref/prompt", "name": "completable-prompt" });
    let resource = json!({ "type": "ref/resource", "uri": template });
    for (reference, argument, context, values) in [
        (
            &prompt,
            ["department", "M"],
            json!({}),
            json!(["Marketing"]),
        ),
        (
            &prompt,
            ["name", "E"],
            json!({ "department": "Sales" }),
            json!(["Eve"]),
        ),
        (&resource, ["resourceId", "12"], json!({}), json!(["12"])),
        (&resource, ["resourceId", "x"], json!({}), json!([])),
    ] {
        let [name, value] = argument;
        let params = json!({
            "ref": reference, "argument": { "name": name, "value": value },
            "context": { "arguments": context },
        });
        let completed = client.result("completion/complete", params).await;
        assert_eq!(completed["completion"]["values"], values, "{name}={value}");
    }
}

async fn check_subscription(client: &mut crate::client::TestClient) {
    let uri = "demo://resource/dynamic/text/5";
    assert_eq!(client.subscribe(&[uri]).await, [uri]);
    let toggle = json!({ "name": "toggle-subscriber-updates", "arguments": {} });
    client.result("tools/call", toggle.clone()).await;
    assert_eq!(client.next_updated_uri().await, uri);
    client.unsubscribe(&[uri]).await;
    client.result("tools/call", toggle).await;
    client.drain().await;
    client.assert_quiet().await;
}

#[tokio::test]
async fn five_other_servers_share_one_gateway() {
    let Some(folder) = fakemcp::real_servers() else {
        return;
    };
    let map = "@modelcontextprotocol/server-map/dist/index.js";
    let budget = "@modelcontextprotocol/server-budget-allocator/dist/index.js";
    let fetch = folder
        .join("python/bin/mcp-server-fetch")
        .display()
        .to_string();
    let servers = vec![
        npm(&folder, "hello", "mcp-hello-world/build/stdio.js", &[]),
        npm(
            &folder,
            "git",
            "@cyanheads/git-mcp-server/dist/index.js",
            &[],
        ),
        npm(&folder, "map", map, &["--stdio"]),
        npm(&folder, "budget", budget, &["--stdio"]),
        ("fetch", fetch, Vec::new()),
    ];
    let gateway = start(servers).await;
    for era in ERAS {
        let mut client = gateway.client(era).await;
        assert_eq!(
            client.list("resources/list").await,
            [
                "hello://world",
                "git://working-directory",
                "ui://cesium-map/mcp-app.html",
                "ui://toolgate/budget/budget-allocator/mcp-app.html",
            ]
        );
        assert_eq!(
            client.read("hello://world").await,
            "Hello, World from the resource!"
        );
        assert_eq!(
            client.read("greeting://Ada").await,
            "Hello, Ada from the resource!"
        );
        let state: Value =
            serde_json::from_str(&client.read("git://working-directory").await).unwrap();
        assert_eq!(state["isSet"], false);
        for page in [
            "ui://cesium-map/mcp-app.html",
            "ui://toolgate/budget/budget-allocator/mcp-app.html",
        ] {
            let html = client.read(page).await;
            assert!(html.to_lowercase().starts_with("<!doctype html>"), "{page}");
        }
        check_app_pages(&mut client).await;
        let prompts = client.list("prompts/list").await;
        assert_eq!(prompts, ["helpful-assistant", "git_wrapup", "fetch"]);
        for (name, arguments, part) in [
            (
                "helpful-assistant",
                json!({}),
                "You are a helpful assistant.",
            ),
            ("git_wrapup", json!({ "createTag": "false" }), "git"),
            (
                "fetch",
                json!({ "url": "http://127.0.0.1:9/" }),
                "127.0.0.1",
            ),
        ] {
            let params = json!({ "name": name, "arguments": arguments });
            let prompt = client.result("prompts/get", params).await;
            let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
            assert!(text.contains(part), "{name}: {text}");
        }
    }
    gateway.stop().await;
}

/// The tools of MCP Apps name the address under which the page is found here.
async fn check_app_pages(client: &mut crate::client::TestClient) {
    let tools = client.result("tools/list", json!({})).await;
    let tools = tools["tools"].as_array().unwrap();
    for (name, page) in [
        ("show-map", "ui://cesium-map/mcp-app.html"),
        (
            "get-budget-data",
            "ui://toolgate/budget/budget-allocator/mcp-app.html",
        ),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(tool["_meta"]["ui"]["resourceUri"], page);
        assert_eq!(tool["_meta"]["ui/resourceUri"], page);
    }
}
