//! `inspect --at`: shows a tool or a server of a running gateway.

use serde_json::Value;
use toolgate_core::text::escape;

use super::describe_tool;
use crate::cli::InspectOptions;
use crate::commands::tool_list::{self, ToolRow};
use crate::commands::{block_on_interruptible, rendered};
use crate::exit::Exit;
use crate::output;
use crate::remote::{self, RemoteError, RemoteGateway};
use crate::wrap::pluralize;

enum RemoteItem {
    Tool(Value),
    Server(Value, Value),
    Nothing(String),
}

pub(super) fn inspect_at(remote: &RemoteGateway, options: &InspectOptions) -> anyhow::Result<Exit> {
    Ok(match block_on_interruptible(find(remote, &options.tool))? {
        None => Exit::Interrupted,
        Some(Err(error)) => error.report(),
        Some(Ok(RemoteItem::Nothing(text))) => Exit::failure(text),
        Some(Ok(RemoteItem::Tool(tool))) => {
            let timeout = tool["timeout_ms"].as_f64().unwrap_or_default() / 1000.0;
            match options.json {
                true => output::print_result(&rendered(&tool)),
                false => output::print_text(&describe_tool(&tool, timeout)),
            }
            Exit::Success
        }
        Some(Ok(RemoteItem::Server(server, tools))) => {
            show_server(server, &tools, options.json);
            Exit::Success
        }
    })
}

async fn find(remote: &RemoteGateway, name: &str) -> Result<RemoteItem, RemoteError> {
    let tool = remote.get(&["api", "tools", name], &[]).await?;
    if tool.body["name"].is_string() {
        return Ok(RemoteItem::Tool(tool.body));
    }
    let servers = remote.get(&["api", "servers"], &[]).await?;
    let mut servers = servers.body.as_array().into_iter().flatten();
    let Some(server) = servers.find(|server| server["name"] == name) else {
        return Ok(RemoteItem::Nothing(remote::problem_detail(&tool)));
    };
    let tools = remote.get(&["api", "tools"], &[]).await?;
    Ok(RemoteItem::Server(server.clone(), tools.body))
}

fn show_server(mut server: Value, tools: &Value, as_json: bool) {
    let name = escape(server["name"].as_str().unwrap_or_default());
    let source = format!("mcp:{}", server["name"].as_str().unwrap_or_default());
    let tools = tools.as_array().into_iter().flatten();
    let tools = tools.filter(|tool| tool["source"] == source.as_str());
    if as_json {
        server["tool_names"] = tools.map(|tool| tool["name"].clone()).collect();
        return output::print_result(&rendered(&server));
    }
    let text = |key: &str| escape(server[key].as_str().unwrap_or_default());
    let rows: Vec<ToolRow> = tools.map(ToolRow::from_json).collect();
    let bold = anstyle::Style::new().bold();
    let (state, transport) = (text("state"), text("transport"));
    let count = pluralize(rows.len(), "tool");
    let mut parts = vec![format!(
        "{bold}Server {name}{bold:#}  ({state} over {transport}, {count})"
    )];
    let error = text("error");
    if !error.is_empty() {
        parts.push(format!("Error:\n  {error}"));
    }
    if !rows.is_empty() {
        parts.push(tool_list::names(&rows, 2, output::stdout_width()));
    }
    output::print_text(&parts.join("\n\n"));
}
