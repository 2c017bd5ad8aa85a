//! The definition of a tool, out of a server's entry in `tools/list`.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toolgate_core::{Annotations, Pattern, Source, ToolDefinition, bounded, escape, shown_name};
use tracing::warn;

use crate::ServerSettings;

/// Longest text a server may spend on one tool; a model reads all of it at every request.
pub(super) const LONGEST_DESCRIPTION: usize = 64 << 10;
/// Bytes of a name that stands for a description, or in a log.
const LONGEST_NAME: usize = 200;

/// When a schema is compiled, which takes most of the time it takes to make a tool.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Compile {
    Now,
    AtFirstCall,
}

pub(super) struct ToolWords {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: String,
}

/// Takes the schema of the parameters out of the entry. One that can't be run here is only shown.
pub(super) fn define(
    words: &ToolWords,
    entry: &mut Value,
    output: Option<&Value>,
    settings: &ServerSettings,
    compile: Compile,
) -> Result<ToolDefinition, String> {
    let (name, annotations) = (&words.name, annotations(&entry["annotations"]));
    let parameters = entry.get_mut("inputSchema").map(Value::take);
    let parameters = parameters.unwrap_or_default();
    let build = |validate: bool, parameters: Value| {
        let mut builder =
            ToolDefinition::builder(name.clone(), words.description.clone(), parameters)
                .source(Source::Mcp(settings.name.clone()))
                .original_name(name.clone())
                .annotations(annotations)
                .names(settings.names_of(name))
                .validate(validate);
        if let Some(title) = &words.title {
            builder = builder.title(title.clone());
        }
        if let Some(timeout) = settings.timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(output) = output {
            builder = builder.output_schema(output.clone());
        }
        if compile == Compile::AtFirstCall {
            builder = builder.deferred();
        }
        builder.build()
    };
    let definition = match build(settings.validate, parameters.clone()) {
        Err(error) if error.is_unsupported() => {
            warn!(server = %settings.name, tool = %brief(name), "{error}; its arguments are left to the server to check");
            build(false, parameters)
        }
        built => built,
    };
    definition.map_err(|error| error.to_string())
}

/// True if the settings let the server offer a tool that is asked for by this name, whether it has one or not.
pub(crate) fn may_be_offered(settings: &ServerSettings, asked: &str) -> bool {
    let behind_server = asked.strip_prefix(&*settings.name);
    let name = behind_server.and_then(|rest| rest.strip_prefix("__"));
    let parameters = Value::Object(Map::new());
    let tool = ToolDefinition::builder(name.unwrap_or(asked), "?", parameters)
        .source(Source::Mcp(settings.name.clone()))
        .build();
    tool.is_ok_and(|tool| is_wanted(settings, &tool))
}

pub(super) fn is_wanted(settings: &ServerSettings, tool: &ToolDefinition) -> bool {
    let among = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(tool));
    (settings.allowed_tools.is_empty() || among(&settings.allowed_tools))
        && !among(&settings.excluded_tools)
}

pub(super) fn description(
    entry: &Value,
    name: &str,
    title: Option<&str>,
    server: &str,
) -> Result<String, String> {
    let said = |text: &&str| !text.trim().is_empty();
    let given = entry["description"].as_str().filter(said);
    // A name may be longer than any description, or nothing but white space.
    let shown = shown_name(name);
    let shown = bounded(&shown, LONGEST_NAME);
    let text = given.or(title.filter(said)).unwrap_or(&shown);
    if text.len() > LONGEST_DESCRIPTION {
        let (name, longest) = (brief(name), LONGEST_DESCRIPTION >> 10);
        return Err(format!(
            "the description of tool '{name}' is longer than {longest} KiB"
        ));
    }
    // The protocol lets it be absent.
    if given.is_none() {
        warn!(server, tool = %brief(name), instead = %brief(text), "a tool without a description");
    }
    Ok(text.to_owned())
}

/// A server's word, fit for a log.
pub(super) fn brief(text: &str) -> String {
    escape(&text.chars().take(100).collect::<String>())
}

fn annotations(given: &Value) -> Annotations {
    let mut annotations = Annotations::default();
    annotations.read_only = given["readOnlyHint"].as_bool();
    annotations.idempotent = given["idempotentHint"].as_bool();
    annotations.destructive = given["destructiveHint"].as_bool();
    annotations.open_world = given["openWorldHint"].as_bool();
    annotations
}

/// Parameters marked `x-mcp-header`. A mark that makes no header refuses the tool, as the revision 2026-07-28 wants it.
pub(super) fn mirrored(schema: &Value) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    let mut seen = HashSet::new();
    for (parameter, property) in schema["properties"].as_object().into_iter().flatten() {
        let Some(mark) = property.get("x-mcp-header") else {
            continue;
        };
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let name = mark
            .as_str()
            .filter(|name| !name.is_empty() && name.chars().all(token));
        let Some(name) = name else {
            return Err(format!(
                "'x-mcp-header' of parameter '{}' is no header name",
                brief(parameter)
            ));
        };
        if !seen.insert(name.to_ascii_lowercase()) {
            return Err(format!("two parameters want the header '{}'", escape(name)));
        }
        headers.push((parameter.clone(), format!("Mcp-Param-{name}")));
    }
    Ok(headers)
}
