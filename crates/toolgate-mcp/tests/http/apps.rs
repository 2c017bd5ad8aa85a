use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    CallContext, ContentMethod, FunctionTool, SourceContent, ToolDefinition, ToolError, ToolRank,
    ToolSource,
};
use toolgate_mcp::{EraSetting, McpServer, ServeOptions};

use crate::chained::TestGateway;
use crate::test_server::TestMcpServer;

const PAGE: &str = "ui://view/main";
const APP_TYPE: &str = "text/html;profile=mcp-app";

/// A server whose tool `show_<name>` has a page.
async fn app_server(name: &str) -> TestMcpServer {
    let server = TestMcpServer::open().await;
    let source = ToolSource::Custom;
    let mut content = SourceContent::default();
    content.resources = vec![json!({
        "uri": PAGE, "name": "View", "mimeType": APP_TYPE, "_meta": { "ui": { "prefersBorder": true } },
    })];
    let owner = name.to_owned();
    let read = move |arguments: Value, _: CallContext| {
        let page = json!({
            "uri": arguments["uri"], "mimeType": APP_TYPE, "text": format!("<b>{owner}</b>"),
            "_meta": { "ui": { "csp": { "connectDomains": ["https://example.org"] } } },
        });
        async move { Ok::<_, ToolError>(json!({ "contents": [page] })) }
    };
    let define = ContentMethod::ReadResource.definition(source.clone());
    let read = FunctionTool::with_definition(define, read).unwrap();
    content.access.read_resource = Some(Arc::new(read));
    let content = Some(Arc::new(content));
    server
        .manager
        .replace_content(&source, ToolRank::Local, content);
    let meta = json!({ "_meta": { "ui": { "resourceUri": PAGE, "visibility": ["app"] } } });
    let schema = json!({ "type": "object" });
    let shows = ToolDefinition::builder(format!("show_{name}"), "Shows a page", schema)
        .source(source)
        .extra(meta.as_object().unwrap().clone())
        .build();
    let shows = FunctionTool::mock(shows.unwrap(), json!({ "shown": true }));
    server.manager.add(shows);
    server
}

/// Sends a request to the gateway as its client does in each era.
async fn ask(gateway: &TestGateway, is_modern: bool, method: &str, mut params: Value) -> Value {
    let server = McpServer::new(gateway.executor.clone(), ServeOptions::gateway("1.0.0"));
    let (mut ours, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(theirs);
    let serving = server.serve(reader, writer, CancellationToken::new());
    let extensions = json!({ "io.modelcontextprotocol/ui": { "mimeTypes": [APP_TYPE] } });
    let capabilities = json!({ "extensions": extensions });
    let mut lines = Vec::new();
    if is_modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
    } else {
        let client = json!({ "name": "c", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
        lines.push(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }));
    }
    lines.push(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
    let asking = async {
        for line in lines {
            ours.write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
        }
        ours.shutdown().await.unwrap();
        let mut answers = String::new();
        ours.read_to_string(&mut answers).await.unwrap();
        answers
    };
    let (answers, ended) = tokio::join!(asking, serving);
    ended.unwrap();
    let mut answers = answers
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut answer = answers.find(|answer| answer["id"] == 1).unwrap();
    answer["result"].take()
}

#[tokio::test]
async fn pages_of_two_servers_stay_apart_in_both_eras() {
    let (maps, notes) = (app_server("maps").await, app_server("notes").await);
    for (upstream, is_modern) in [
        (EraSetting::Legacy, false),
        (EraSetting::Legacy, true),
        (EraSetting::Modern, false),
        (EraSetting::Modern, true),
    ] {
        let urls = vec![("maps", maps.url()), ("notes", notes.url())];
        let gateway = TestGateway::connect_all(urls, upstream).await;
        let tools = ask(&gateway, is_modern, "tools/list", json!({})).await;
        let listed = ask(&gateway, is_modern, "resources/list", json!({})).await;
        for (owner, address) in [("maps", PAGE), ("notes", "ui://toolgate/notes/view/main")] {
            let name = format!("show_{owner}");
            let mut all = tools["tools"].as_array().unwrap().iter();
            let tool = all.find(|tool| tool["name"] == name).unwrap();
            let expected = json!({ "resourceUri": address, "visibility": ["app"] });
            assert_eq!(tool["_meta"]["ui"], expected, "{upstream:?} {is_modern}");

            let mut all = listed["resources"].as_array().unwrap().iter();
            let page = all.find(|page| page["uri"] == address).unwrap();
            assert_eq!(page["mimeType"], APP_TYPE);
            assert_eq!(page["_meta"]["ui"]["prefersBorder"], true);

            let read = ask(
                &gateway,
                is_modern,
                "resources/read",
                json!({ "uri": address }),
            )
            .await;
            let csp = json!({ "csp": { "connectDomains": ["https://example.org"] } });
            let expected = json!([{
                "uri": address, "mimeType": APP_TYPE, "text": format!("<b>{owner}</b>"), "_meta": { "ui": csp },
            }]);
            assert_eq!(read["contents"], expected, "{upstream:?} {is_modern}");
        }
        gateway.servers.stop().await;
    }
}
