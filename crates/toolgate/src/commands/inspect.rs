//! `toolgate inspect NAME`: shows everything about one tool, or about a server and its tools.

mod parameters;
mod remote;
mod statistics;

use serde_json::{Value, json};
use toolgate_core::text::escape;
use toolgate_core::{Scope, ToolDefinition, ToolError, ToolSource};
use toolgate_mcp::{ServerStatus, ToolChange};

use super::tool_list::{self, ToolRow};
use super::{block_on, rendered, server, to_json, trust_tools};
use crate::cli::{GlobalOptions, InspectOptions};
use crate::config::{Config, ConfiguredServer, SecretScope};
use crate::exit::Exit;
use crate::output;
use crate::remote::RemoteGateway;
use crate::servers::{self, ServerFleet, ServerStart::WhenNeeded};
use crate::spinner::Spinner;
use crate::wiring::{self, ConfiguredTools};
use crate::wrap;
use parameters::is_required;

pub(crate) fn run(global: &GlobalOptions, options: &InspectOptions) -> anyhow::Result<Exit> {
    if let Some(remote) = RemoteGateway::from_options(&options.remote)? {
        return remote::inspect_at(&remote, options);
    }
    let config = wiring::load_config_or_ask(global, SecretScope::Tools)?;
    let tools = wiring::build_tools(&config);
    wiring::warn_about_config(&config, &tools);
    let named = |server: &&ConfiguredServer| server.settings.name == options.tool;
    let server = config.servers.iter().find(named);
    let server = server.filter(|_| tools.manager.find(&options.tool).is_none());
    let is_server = server.is_some();
    let wanted = match server {
        Some(server) => vec![server],
        None => servers::needed(&config, &tools.manager, &options.tool),
    };
    if wanted.is_empty() {
        return Ok(inspect(&config, &tools, None, options));
    }
    wiring::warn_about_servers(&config);
    let all = servers::settings(&config.servers);
    block_on(async {
        let spinner = Spinner::new("starting");
        let fleet = ServerFleet::start(&config, &tools, all, WhenNeeded, Some(&spinner));
        let settled = async {
            let (servers, name) = (&fleet.servers, &options.tool);
            if is_server && (options.refresh || !fleet.remembers(name)) {
                servers.start_server(name).await;
            } else if !is_server {
                servers.wait_for_tool(name).await;
                if options.refresh {
                    servers.start_owner_of(name).await;
                }
            }
        };
        let exit = match fleet.wait(&spinner, settled).await {
            true => inspect(&config, &tools, Some(&fleet), options),
            false => Exit::Interrupted,
        };
        fleet.stop().await;
        exit
    })
}

fn inspect(
    config: &Config,
    tools: &ConfiguredTools,
    fleet: Option<&ServerFleet>,
    options: &InspectOptions,
) -> Exit {
    let found = match wiring::probe_executor(config, tools).find(&options.tool) {
        // A withheld tool can still be inspected.
        Err(error @ ToolError::Withheld { .. }) => tools.manager.find(&options.tool).ok_or(error),
        found => found,
    };
    let tool = match found {
        Ok(tool) => tool,
        Err(error) => {
            if let Some(status) = fleet.and_then(|fleet| fleet.status(&options.tool)) {
                print_server(config, tools, &status, options.json);
                return Exit::Success;
            }
            let hint = error
                .hint()
                .unwrap_or_else(|| "'toolgate list' shows all tools".to_owned());
            output::print_error(&anyhow::anyhow!("{error}. {hint}"));
            if let Some(fleet) = fleet {
                fleet.note_missing(None);
            }
            return Exit::Failure;
        }
    };
    let definition = tool.definition();
    let status = match definition.source() {
        ToolSource::Mcp(server) => fleet.and_then(|fleet| fleet.status(server)),
        _ => None,
    };
    let statistics = statistics::for_tool(config, definition.name());
    let mut object = to_json(definition, fleet);
    let changes = status.as_ref().and_then(|status| status.changes.clone());
    let change = changes.and_then(|changes| changes.for_tool(definition.original_name()).cloned());
    if options.json {
        object["change"] = json!(change);
        object["calls"] = json!(statistics);
        if let Some(status) = status {
            object["polluted"] = json!(status.stray_line_count);
            object["polluted_lines"] = json!(status.stray_lines);
        }
        output::print_result(&rendered(&object));
    } else {
        let timeout = definition.timeout(&config.limits).as_secs_f64();
        let change = change.map(|change| describe_change(&change));
        let server = status.map(|status| format!("\n\n{}", server::describe(&status)));
        let text = describe_tool(&object, timeout);
        let calls = statistics.map(|calls| format!("\n\n{calls}"));
        output::print_text(&format!(
            "{text}{}{}{}",
            change.unwrap_or_default(),
            calls.unwrap_or_default(),
            server.unwrap_or_default()
        ));
    }
    Exit::Success
}

fn describe_change(change: &ToolChange) -> String {
    let bold = anstyle::Style::new().bold();
    let summary = trust_tools::summary(change);
    let lines = trust_tools::differences(change).into_iter();
    let lines: String = lines.map(|line| format!("\n  {line}")).collect();
    format!(
        "\n\n{bold}Not what you agreed to{bold:#} ({summary})\n  'toolgate trust' with its server's name agrees to it{lines}"
    )
}

fn print_server(config: &Config, tools: &ConfiguredTools, status: &ServerStatus, as_json: bool) {
    let executor = wiring::probe_executor(config, tools);
    let all = tools.manager.tools();
    let server_tools = all.iter().map(|tool| tool.definition()).filter(|tool| {
        matches!(tool.source(), ToolSource::Mcp(server) if *server == status.name)
            && executor.rules().admits(tool, &Scope::default())
    });
    if as_json {
        let mut object = json!(status);
        object["tool_names"] = server_tools.map(ToolDefinition::name).collect();
        return output::print_result(&rendered(&object));
    }
    let rows: Vec<ToolRow> = server_tools
        .map(|tool| ToolRow::from_json(&json!(tool)))
        .collect();
    let names = tool_list::names(&rows, 2, output::stdout_width());
    let names = match names.is_empty() {
        true => names,
        false => format!("\n\n{names}"),
    };
    output::print_text(&format!("{}{names}", server::describe(status)));
}

fn describe_tool(tool: &Value, timeout: f64) -> String {
    let bold = anstyle::Style::new().bold();
    let name = escape(tool["name"].as_str().unwrap_or_default());
    let source = escape(tool["source"].as_str().unwrap_or_default());
    let effects = match &tool["annotations"] {
        annotations if annotations["read_only"] == true => ", read-only",
        annotations if annotations["destructive"] == true => ", destructive",
        _ => "",
    };
    let parameters = match parameters::parameters(&tool["parameters"]) {
        rows if rows.is_empty() => "Parameters: any, or none".to_owned(),
        rows => {
            let rows = wrap::definition_list(&rows, 2, output::stdout_width());
            format!("{bold}Parameters{bold:#}\n{rows}")
        }
    };
    let timeout = match timeout > 0.0 {
        true => format!(", timeout {timeout} s"),
        false => String::new(),
    };
    format!(
        "{bold}{name}{bold:#}  ({source}{effects}{timeout})\n{}\n\n{parameters}\n\nCall it:  toolgate call {name}{}",
        escape_lines(tool["description"].as_str().unwrap_or_default()),
        example_arguments(&tool["parameters"]),
    )
}

fn escape_lines(text: &str) -> String {
    let lines: Vec<String> = text.trim().lines().map(escape).collect();
    lines.join("\n")
}

fn example_arguments(schema: &Value) -> String {
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let required = properties.filter(|(name, _)| is_required(schema, name));
    let pair = |(name, parameter): (&String, &Value)| {
        let value = match parameter
            .get("enum")
            .and_then(|options| options.get(0))
            .or(parameter.get("default"))
        {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => "…".to_owned(),
        };
        format!(" {}={}", escape(name), escape(&value))
    };
    required.map(pair).collect()
}
