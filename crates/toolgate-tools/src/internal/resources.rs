//! `list_resources` and `read_resource`: the resources of MCP servers, for models and clients that
//! know only tools. They show a caller what its scope and the policy allow, and nothing else.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_core::{
    Annotations, CallContext, FunctionTool, OfferedEntry, Tool, ToolContent, ToolDefinition,
    ToolError, ToolOutput, ToolSource,
};

/// The name of the tool that lists resources.
pub const LIST_RESOURCES: &str = "list_resources";
/// The name of the tool that reads a resource.
pub const READ_RESOURCE: &str = "read_resource";

// Entries in one answer. A model would lose its way in more.
const MAX_LISTED: usize = 100;
// Bytes of a description in the list.
const MAX_DESCRIPTION: usize = 300;

/// The section `resources` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Resources of MCP servers")]
#[non_exhaustive]
pub struct ResourcesSettings {
    /// Offer the tools list_resources and read_resource, for models and clients
    /// that know only tools.
    pub tools: bool,
}

#[derive(Deserialize, JsonSchema)]
struct ListResourcesArguments {
    /// Only resources with all these words in the address, the name or the description.
    #[serde(default)]
    query: String,
    /// Only resources of this server.
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct ReadResourceArguments {
    /// The address of a resource as list_resources shows it, or a template
    /// with its braces filled in.
    uri: String,
}

/// Makes the tools that `resources.tools` switches on.
pub fn resource_tools() -> Vec<Arc<dyn Tool>> {
    let list = ToolDefinition::for_type::<ListResourcesArguments>(
        LIST_RESOURCES,
        "Lists what can be read with read_resource: files, pages and other data of the servers. \
         Templates stand for many resources: fill in what is in braces.",
    );
    let read = ToolDefinition::for_type::<ReadResourceArguments>(
        READ_RESOURCE,
        "Reads a resource that list_resources shows",
    );
    let [list, read] = [list, read].map(|definition| {
        definition
            .source(ToolSource::Internal)
            .annotations(Annotations::READ_ONLY)
    });
    let tools = [
        FunctionTool::with_definition(list, async |arguments, context| {
            Ok::<_, ToolError>(list_resources(&arguments, &context))
        }),
        FunctionTool::with_definition(read, async |arguments: ReadResourceArguments, context| {
            read_resource(&arguments.uri, &context).await
        }),
    ];
    let tools = tools.into_iter().filter_map(|tool| match tool {
        Ok(tool) => Some(Arc::new(tool) as Arc<dyn Tool>),
        Err(error) => {
            tracing::error!(%error, "a tool for resources is invalid and left out");
            None
        }
    });
    tools.collect()
}

fn list_resources(arguments: &ListResourcesArguments, context: &CallContext) -> Value {
    let (executor, scope) = (context.executor(), context.scope());
    let (content, rules) = (executor.manager().content(), executor.rules());
    let query = arguments.query.to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    let is_wanted = |entry: &Value| {
        let text = entry.to_string().to_lowercase();
        let server = arguments.server.as_deref();
        server.is_none_or(|server| entry["server"] == *server)
            && words.iter().all(|word| text.contains(word))
    };
    let resources = content
        .offered_resources(&rules, scope)
        .map(|it| summarize_entry(&it));
    let templates = content
        .offered_templates(&rules, scope)
        .map(|it| summarize_entry(&it));
    let mut resources: Vec<Value> = resources.filter(is_wanted).collect();
    let mut templates: Vec<Value> = templates.filter(is_wanted).collect();
    let all = resources.len() + templates.len();
    templates.truncate(MAX_LISTED);
    resources.truncate(MAX_LISTED - templates.len().min(MAX_LISTED / 2));
    templates.truncate(MAX_LISTED - resources.len());
    let left_out = all - resources.len() - templates.len();
    let mut list = json!({ "resources": resources, "templates": templates });
    if left_out > 0 {
        list["note"] = json!(format!(
            "{left_out} more are left out; narrow the list with query or server"
        ));
    }
    list
}

/// What a model needs of an entry.
fn summarize_entry(offered: &OfferedEntry<'_>) -> Value {
    let server = match offered.source {
        ToolSource::Mcp(server) => json!(server),
        local => json!(local.to_string()),
    };
    let mut shown = json!({ "server": server });
    for key in ["uri", "uriTemplate", "name", "title", "mimeType", "size"] {
        if let Some(value) = offered.entry.get(key) {
            shown[key] = value.clone();
        }
    }
    if let Some(text) = offered.entry["description"].as_str() {
        let end = text.floor_char_boundary(MAX_DESCRIPTION);
        let more = if end < text.len() { "…" } else { "" };
        shown["description"] = json!(format!("{}{more}", &text[..end]));
    }
    shown
}

async fn read_resource(uri: &str, context: &CallContext) -> Result<ToolOutput, ToolError> {
    let request = context.executor().find_resource(uri, context.scope());
    if request.owner().is_none() {
        let near = request.nearest();
        let error = request.missing_error();
        return Err(match near.first() {
            Some(near) => ToolError::failed(format!("{error}; did you mean '{near}'?")),
            None => ToolError::failed(format!("{error}; {LIST_RESOURCES} shows what there is")),
        });
    }
    let mut outcome = context.execute(request.to_call()).await;
    request.finish(&mut outcome);
    let result = outcome.result?.structured.unwrap_or_default();
    let contents = result["contents"].as_array().map_or(&[][..], Vec::as_slice);
    let blocks = contents.iter().flat_map(|content| {
        // Only several parts have to be told apart.
        let address = (contents.len() > 1)
            .then(|| ToolContent::text(format!("Resource {}:", text_field(content, "uri"))));
        address.into_iter().chain([block(content)])
    });
    Ok(ToolOutput::blocks(blocks.collect()))
}

/// Text, images and sound as models receive them from tools. Of other data only what it is.
fn block(content: &Value) -> ToolContent {
    if let Some(text) = content["text"].as_str() {
        return ToolContent::text(text);
    }
    let (mime, data) = (text_field(content, "mimeType"), text_field(content, "blob"));
    match mime.split('/').next() {
        Some(kind @ ("image" | "audio")) => {
            ToolContent::from(json!({ "type": kind, "data": data, "mimeType": mime }))
        }
        _ => {
            let bytes = data.trim_end_matches('=').len() * 3 / 4;
            let mime = if mime.is_empty() {
                "unknown type"
            } else {
                mime
            };
            ToolContent::text(format!("(binary data: {mime}, {bytes} bytes)"))
        }
    }
}

fn text_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
