//! `toolgate inspect TOOL`: everything about one tool.

mod statistics;

use anyhow::Context;
use serde_json::{Value, json};
use toolgate_core::{Source, escape};

use super::{rendered, runtime, server, table, to_json};
use crate::cli::{Global, InspectOptions};
use crate::config::{Config, ConfiguredServer};
use crate::exit::{self, Exit};
use crate::remote::{self, Remote};
use crate::say;
use crate::servers::{self, Fleet};
use crate::spinner::Spinner;
use crate::wiring::{self, Tools};

pub(crate) fn run(global: &Global, options: &InspectOptions) -> anyhow::Result<Exit> {
    if let Some(remote) = Remote::of(&options.remote)? {
        return inspect_at(&remote, options);
    }
    let config = wiring::configuration(global)?;
    let tools = wiring::tools(&config);
    wiring::warn_about(&config, &tools);
    let named = |server: &&ConfiguredServer| server.settings.name == options.tool;
    let wanted = match config.servers.iter().find(named) {
        Some(server) if tools.manager.find(&options.tool).is_none() => vec![server],
        _ => servers::needed(&config, &tools.manager, &options.tool),
    };
    if wanted.is_empty() {
        return Ok(inspect(&config, &tools, None, options));
    }
    wiring::warn_about_servers(&config);
    let admitted = servers::admit(&config, &wanted);
    let runtime = runtime().context("cannot start")?;
    let exit = runtime.block_on(async {
        let spinner = Spinner::new("starting");
        let fleet = Fleet::start(&config, &tools, admitted, Some(&spinner));
        let settled = fleet.servers.settled_for(&options.tool);
        let exit = match fleet.wait(&spinner, settled).await {
            true => inspect(&config, &tools, Some(&fleet), options),
            false => Exit::Interrupted,
        };
        fleet.stop().await;
        exit
    });
    runtime.shutdown_background();
    Ok(exit)
}

/// A tool; else a server of that name.
fn inspect(
    config: &Config,
    tools: &Tools,
    fleet: Option<&Fleet>,
    options: &InspectOptions,
) -> Exit {
    let tool = match wiring::probe(config, tools).find(&options.tool) {
        Ok(tool) => tool,
        Err(error) => {
            if let Some(status) = fleet.and_then(|fleet| fleet.status(&options.tool)) {
                say::result(&match options.json {
                    true => rendered(&json!(status)),
                    false => server::described(&status),
                });
                return Exit::Success;
            }
            let hint = error
                .hint()
                .unwrap_or_else(|| "'toolgate list' shows all there are".to_owned());
            say::error(&anyhow::anyhow!("{error}. {hint}"));
            if let Some(fleet) = fleet {
                fleet.tell_missing();
            }
            return Exit::Failure;
        }
    };
    let definition = tool.definition();
    let status = match definition.source() {
        Source::Mcp(server) => fleet.and_then(|fleet| fleet.status(server)),
        _ => None,
    };
    let statistics = statistics::of(config, definition.name());
    let mut object = to_json(definition, fleet);
    if options.json {
        object["calls"] = json!(statistics);
        if let Some(status) = status {
            object["polluted"] = json!(status.polluted);
            object["polluted_lines"] = json!(status.polluted_lines);
        }
        say::result(&rendered(&object));
    } else {
        let timeout = definition.timeout(&config.limits).as_secs_f64();
        let server = status.map(|status| format!("\n\n{}", server::described(&status)));
        let text = described(&object, timeout);
        let calls = statistics.map(|calls| format!("\n\n{calls}"));
        say::result(&format!(
            "{text}{}{}",
            calls.unwrap_or_default(),
            server.unwrap_or_default()
        ));
    }
    Exit::Success
}

/// A tool of a gateway.
fn inspect_at(remote: &Remote, options: &InspectOptions) -> anyhow::Result<Exit> {
    let runtime = runtime().context("cannot start")?;
    let path = ["api", "tools", options.tool.as_str()];
    let asked = runtime.block_on(async {
        tokio::select! {
            answer = remote.get(&path, &[]) => Some(answer),
            () = exit::interrupted() => None,
        }
    });
    let tool = match asked {
        None => return Ok(Exit::Interrupted),
        Some(Err(trouble)) => return Ok(trouble.told()),
        Some(Ok(answer)) if answer.body["name"].is_string() => answer.body,
        Some(Ok(answer)) => {
            say::error(&anyhow::anyhow!(remote::detail(&answer)));
            return Ok(Exit::Failure);
        }
    };
    let timeout = tool["timeout_ms"].as_f64().unwrap_or_default() / 1000.0;
    say::result(&match options.json {
        true => rendered(&tool),
        false => described(&tool, timeout),
    });
    Ok(Exit::Success)
}

fn described(tool: &Value, timeout: f64) -> String {
    let bold = anstyle::Style::new().bold();
    let name = escape(tool["name"].as_str().unwrap_or_default());
    let source = escape(tool["source"].as_str().unwrap_or_default());
    let effects = match &tool["annotations"] {
        annotations if annotations["read_only"] == true => ", read-only",
        annotations if annotations["destructive"] == true => ", destructive",
        _ => "",
    };
    let parameters = match parameters(&tool["parameters"]) {
        rows if rows.is_empty() => "Parameters: any, or none".to_owned(),
        rows => table(rows)
            .set_header(["PARAMETER", "TYPE", "", "MEANING"])
            .trim_fmt(),
    };
    let timeout = match timeout > 0.0 {
        true => format!(", timeout {timeout} s"),
        false => String::new(),
    };
    format!(
        "{bold}{name}{bold:#}  ({source}{effects}{timeout})\n{}\n\n{parameters}\n\nCall it:  toolgate call {name}{}",
        table(vec![[lines(
            tool["description"].as_str().unwrap_or_default()
        )]])
        .trim_fmt(),
        example(&tool["parameters"]),
    )
}

/// Lines stay lines; what else is in them can not drive the terminal.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.trim().lines().map(escape).collect();
    lines.join("\n")
}

/// Name, type, whether it is required, and what it means.
fn parameters(schema: &Value) -> Vec<[String; 4]> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let row = |(name, parameter): (&String, &Value)| {
        let required = if is_required(schema, name) {
            "required"
        } else {
            ""
        };
        let default = parameter
            .get("default")
            .map(|default| format!(" (default {default})"));
        let meaning = parameter
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        [
            escape(name),
            type_of(parameter),
            required.to_owned(),
            escape(&format!("{meaning}{}", default.unwrap_or_default())),
        ]
    };
    properties.into_iter().flatten().map(row).collect()
}

fn type_of(parameter: &Value) -> String {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let joined =
        |list: &Vec<Value>, separator| list.iter().map(text).collect::<Vec<_>>().join(separator);
    let mut name = match (parameter.get("enum"), parameter.get("type")) {
        (Some(Value::Array(options)), _) => joined(options, " | "),
        (_, Some(Value::Array(types))) => joined(types, " or "),
        (_, Some(Value::String(name))) => name.clone(),
        _ => "any".to_owned(),
    };
    if let (Some(least), Some(most)) = (parameter.get("minimum"), parameter.get("maximum")) {
        name.push_str(&format!(" {least}–{most}"));
    }
    escape(&name)
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|required| required == name))
}

/// The required parameters as a person would type them.
fn example(schema: &Value) -> String {
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
