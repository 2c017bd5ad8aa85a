//! `inspect --at`: a tool or a server of a gateway that runs.

use anyhow::Context;
use serde_json::Value;
use toolgate_core::escape;

use super::described;
use crate::cli::InspectOptions;
use crate::commands::tool_list::{self, ToolRow};
use crate::commands::{rendered, runtime};
use crate::exit::{self, Exit};
use crate::remote::{self, Remote, Trouble};
use crate::say;

enum RemoteItem {
    Tool(Value),
    /// A server, and all tools that the gateway has.
    Server(Value, Value),
    /// Neither, in the gateway's words.
    Nothing(String),
}

pub(super) fn inspect_at(remote: &Remote, options: &InspectOptions) -> anyhow::Result<Exit> {
    let runtime = runtime().context("cannot start")?;
    let asked = runtime.block_on(async {
        tokio::select! {
            item = find(remote, &options.tool) => Some(item),
            () = exit::interrupted() => None,
        }
    });
    Ok(match asked {
        None => Exit::Interrupted,
        Some(Err(trouble)) => trouble.told(),
        Some(Ok(RemoteItem::Nothing(text))) => {
            say::error(&anyhow::anyhow!(text));
            Exit::Failure
        }
        Some(Ok(RemoteItem::Tool(tool))) => {
            let timeout = tool["timeout_ms"].as_f64().unwrap_or_default() / 1000.0;
            match options.json {
                true => say::result(&rendered(&tool)),
                false => say::text(&described(&tool, timeout)),
            }
            Exit::Success
        }
        Some(Ok(RemoteItem::Server(server, tools))) => {
            show_server(server, &tools, options.json);
            Exit::Success
        }
    })
}

async fn find(remote: &Remote, name: &str) -> Result<RemoteItem, Trouble> {
    let tool = remote.get(&["api", "tools", name], &[]).await?;
    if tool.body["name"].is_string() {
        return Ok(RemoteItem::Tool(tool.body));
    }
    let servers = remote.get(&["api", "servers"], &[]).await?;
    let mut servers = servers.body.as_array().into_iter().flatten();
    let Some(server) = servers.find(|server| server["name"] == name) else {
        return Ok(RemoteItem::Nothing(remote::detail(&tool)));
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
        return say::result(&rendered(&server));
    }
    let text = |key: &str| escape(server[key].as_str().unwrap_or_default());
    let rows: Vec<ToolRow> = tools.map(ToolRow::from_json).collect();
    let bold = anstyle::Style::new().bold();
    let (state, transport, count) = (text("state"), text("transport"), rows.len());
    let noun = if count == 1 { "tool" } else { "tools" };
    let mut parts = vec![format!(
        "{bold}Server {name}{bold:#}  ({state} over {transport}, {count} {noun})"
    )];
    let error = text("error");
    if !error.is_empty() {
        parts.push(format!("Error:\n  {error}"));
    }
    if count > 0 {
        parts.push(tool_list::names(&rows, 2, say::width()));
    }
    say::text(&parts.join("\n\n"));
}
