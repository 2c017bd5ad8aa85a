//! Builds a tool definition from an entry of `tools/list`.

use serde_json::{Map, Value};
use toolgate_core::text::{escape, truncate};
use toolgate_core::{Annotations, ToolDefinition, ToolPattern, ToolSource, display_name, sanitize};
use tracing::warn;

use crate::ServerSettings;

// Bytes. Models read the description with every request.
pub(super) const MAX_DESCRIPTION_LEN: usize = 64 << 10;
const MAX_NAME_LEN: usize = 200;
// What is passed on of members that we don't know.
const MAX_UNKNOWN_MEMBERS: usize = 32;
const MAX_UNKNOWN_BYTES: u64 = 64 << 10;
// What a definition, or the server's side of a call, is made of.
const KNOWN_MEMBERS: [&str; 9] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "execution",
    "icons",
    "_meta",
];
// Annotations that have a place of their own in a definition.
const KNOWN_ANNOTATIONS: [&str; 5] = [
    "title",
    "readOnlyHint",
    "idempotentHint",
    "destructiveHint",
    "openWorldHint",
];

/// When to compile a schema, which is the most expensive part of building a tool.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum SchemaCompilation {
    Now,
    AtFirstCall,
}

pub(super) struct ToolTexts {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: String,
}

/// Builds the definition, and takes the parameter schema out of the entry. A schema that we don't
/// support is shown but not enforced.
pub(super) fn build_definition(
    texts: &ToolTexts,
    entry: &mut Value,
    output: Option<&Value>,
    settings: &ServerSettings,
    compile: SchemaCompilation,
) -> Result<ToolDefinition, String> {
    let (name, annotations) = (&texts.name, parse_annotations(&entry["annotations"]));
    let parameters = entry.get_mut("inputSchema").map(Value::take);
    let parameters = parameters.unwrap_or_default();
    let mut extra = passed_on(entry);
    let left_out = add_unknown_members(entry, &mut extra);
    if left_out > 0 {
        warn!(server = %settings.name, tool = %shorten(name), count = left_out, "members of a tool are too large or too many; leaving them out");
    }
    let build = |validate: bool, parameters: Value| {
        let mut builder =
            ToolDefinition::builder(name.clone(), texts.description.clone(), parameters)
                .source(ToolSource::Mcp(settings.name.clone()))
                .original_name(name.clone())
                .annotations(annotations)
                .extra(extra.clone())
                .parameter_names(settings.parameter_names_for(name))
                .validate(validate);
        if let Some(title) = &texts.title {
            builder = builder.title(title.clone());
        }
        if let Some(timeout) = settings.timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(output) = output {
            builder = builder.output_schema(output.clone());
        }
        if compile == SchemaCompilation::AtFirstCall {
            builder = builder.deferred();
        }
        builder.build()
    };
    let definition = match build(settings.validate, parameters.clone()) {
        Err(error) if error.is_unsupported() => {
            warn!(server = %settings.name, tool = %shorten(name), "{error}; leaving the check of its arguments to the server");
            build(false, parameters)
        }
        built => built,
    };
    definition.map_err(|error| error.to_string())
}

/// True if the settings let the server offer a tool of this name, which may be `<server>__<tool>`.
pub(crate) fn may_be_offered(settings: &ServerSettings, requested: &str) -> bool {
    let behind_server = requested.strip_prefix(&*settings.name);
    let name = behind_server.and_then(|rest| rest.strip_prefix("__"));
    let parameters = Value::Object(Map::new());
    let tool = ToolDefinition::builder(name.unwrap_or(requested), "?", parameters)
        .source(ToolSource::Mcp(settings.name.clone()))
        .build();
    tool.is_ok_and(|tool| is_wanted(settings, &tool))
}

pub(crate) fn is_wanted(settings: &ServerSettings, tool: &ToolDefinition) -> bool {
    let among = |patterns: &[ToolPattern]| patterns.iter().any(|pattern| pattern.matches(tool));
    (settings.allowed_tools.is_empty() || among(&settings.allowed_tools))
        && !among(&settings.excluded_tools)
}

/// Returns the tool's description, or its title or name if it has none. Fails if it is too long.
pub(super) fn choose_description(
    entry: &Value,
    name: &str,
    title: Option<&str>,
    server: &str,
) -> Result<String, String> {
    let is_present = |text: &&str| !text.trim().is_empty();
    let given = entry["description"].as_str().filter(is_present);
    // A name may be overlong or blank.
    let shown = display_name(name);
    let shown = truncate(&shown, MAX_NAME_LEN);
    let text = given.or(title.filter(is_present)).unwrap_or(&shown);
    if text.len() > MAX_DESCRIPTION_LEN {
        let (name, longest) = (shorten(name), MAX_DESCRIPTION_LEN >> 10);
        return Err(format!(
            "the description of tool '{name}' is longer than {longest} KiB"
        ));
    }
    // The description is optional in the protocol.
    if given.is_none() {
        warn!(server, tool = %shorten(name), instead = %shorten(text), "a tool without a description");
    }
    Ok(text.to_owned())
}

pub(super) fn shorten(text: &str) -> String {
    escape(&text.chars().take(100).collect::<String>())
}

fn parse_annotations(hints: &Value) -> Annotations {
    let mut annotations = Annotations::default();
    annotations.read_only = hints["readOnlyHint"].as_bool();
    annotations.idempotent = hints["idempotentHint"].as_bool();
    annotations.destructive = hints["destructiveHint"].as_bool();
    annotations.open_world = hints["openWorldHint"].as_bool();
    annotations
}

/// What is passed on to clients as it is. Members of the wrong form would make
/// them reject the list.
fn passed_on(entry: &mut Value) -> Map<String, Value> {
    let mut extra = Map::new();
    let is_icon = |icon: &Value| icon["src"].is_string();
    if let Some(icons) = entry["icons"].as_array()
        && icons.iter().all(is_icon)
    {
        extra.insert("icons".to_owned(), entry["icons"].take());
    }
    if entry["_meta"].is_object() {
        extra.insert("_meta".to_owned(), entry["_meta"].take());
    }
    let annotations = entry["annotations"].as_object().into_iter().flatten();
    let others: Map<String, Value> = annotations
        .filter(|(key, _)| !KNOWN_ANNOTATIONS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !others.is_empty() {
        extra.insert("annotations".to_owned(), others.into());
    }
    extra
}

pub(super) fn is_unknown_member(key: &str) -> bool {
    !KNOWN_MEMBERS.contains(&key)
}

/// Returns how many members were left out.
fn add_unknown_members(entry: &mut Value, extra: &mut Map<String, Value>) -> usize {
    let (mut count, mut bytes, mut left_out) = (0, 0, 0);
    for (key, value) in entry.as_object_mut().into_iter().flatten() {
        if !is_unknown_member(key) {
            continue;
        }
        let size = key.len() as u64 + sanitize::length(value);
        if count == MAX_UNKNOWN_MEMBERS || bytes + size > MAX_UNKNOWN_BYTES {
            left_out += 1;
            continue;
        }
        count += 1;
        bytes += size;
        extra.insert(key.clone(), value.take());
    }
    left_out
}
