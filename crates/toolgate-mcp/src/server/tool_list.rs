//! The tools of an executor, in the form of `tools/list`.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::text::{strip_invisible, strip_invisible_in_schema};
use toolgate_core::{Annotations, ContentSet, ToolDefinition, rewrite_app_uri, wire_names};

use super::content_list::ContentLists;
use super::extension_result::remove_own_tool_members;
use super::http::check_parameter;
use super::list_watch::KnownLists;
use crate::header_parameters::HeaderParameter;

/// The specification allows 128 letters, digits, `_`, `-` and `.`. Claude Desktop, Windsurf and
/// others allow 64 without the dot, and reject the whole list for one longer name.
const MAX_NAME_LEN: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedTool {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    description: String,
    input_schema: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Map<String, Value>>,
    // What a client may do with its calls, in 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<ToolExecution>,
    // `icons`, `_meta` and what nobody here knows, as the server sent it.
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolExecution {
    task_support: &'static str,
}

/// What one group of clients may see, rebuilt after every change.
#[derive(Default)]
pub(super) struct ClientLists {
    // The manager's version that the list was built at.
    pub(super) version: u64,
    pub(super) tools: Arc<Vec<ListedTool>>,
    // The same tools, for clients that may ask for tasks. Made when the first one asks.
    with_tasks: OnceLock<Arc<Vec<ListedTool>>>,
    pub(super) content: ContentLists,
    // Local names by the names that clients use, where they differ.
    renamed: HashMap<String, String>,
    // Parameters that clients repeat in headers, by the tool's local name.
    mirrored: HashMap<String, Vec<HeaderParameter>>,
}

impl ClientLists {
    /// Reuses the tools of `before` if clients would see no difference, so that a change can be
    /// noticed by comparing pointers.
    pub(super) fn new(
        version: u64,
        definitions: &[&ToolDefinition],
        content: ContentLists,
        all_content: &ContentSet,
        before: &Self,
    ) -> Self {
        let names: Vec<&str> = definitions.iter().map(|tool| tool.name()).collect();
        let wire = wire_names::assign_stable(&names, MAX_NAME_LEN);
        let listed = definitions.iter().zip(wire);
        let tools: Vec<ListedTool> = listed
            .map(|(tool, name)| listed_tool(tool, name, all_content))
            .collect();
        let with_names = || tools.iter().zip(&names);
        let renamed = with_names().filter(|(tool, name)| tool.name != **name);
        let renamed = renamed.map(|(tool, name)| (tool.name.clone(), (*name).to_owned()));
        // Clients don't use a tool with an invalid mark, so there is nothing to compare.
        let mirrored = definitions.iter().map(|tool| {
            let headers = HeaderParameter::find(tool.parameters()).unwrap_or_default();
            (tool.name().to_owned(), headers)
        });
        Self {
            version,
            with_tasks: OnceLock::new(),
            content,
            renamed: renamed.collect(),
            mirrored: mirrored.filter(|(_, all)| !all.is_empty()).collect(),
            tools: match tools == *before.tools {
                true => Arc::clone(&before.tools),
                false => Arc::new(tools),
            },
        }
    }

    pub(super) fn tools_with_tasks(&self) -> Arc<Vec<ListedTool>> {
        let mark = |tool: &ListedTool| ListedTool {
            execution: Some(ToolExecution {
                task_support: "optional",
            }),
            ..tool.clone()
        };
        let marked = || Arc::new(self.tools.iter().map(mark).collect());
        Arc::clone(self.with_tasks.get_or_init(marked))
    }

    pub(super) fn known(&self) -> KnownLists {
        KnownLists {
            tools: Arc::clone(&self.tools),
            content: self.content.clone(),
        }
    }

    pub(super) fn local_name<'a>(&'a self, requested: &'a str) -> &'a str {
        self.renamed
            .get(requested)
            .map_or(requested, String::as_str)
    }

    pub(super) fn check_mirrored(
        &self,
        headers: &HeaderMap,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(), String> {
        let mirrored = self.mirrored.get(self.local_name(tool));
        let mut mirrored = mirrored.into_iter().flatten();
        mirrored.try_for_each(|parameter| check_parameter(headers, parameter, arguments))
    }
}

fn listed_tool(tool: &ToolDefinition, name: String, content: &ContentSet) -> ListedTool {
    let own_name = (name != tool.name()).then(|| tool.name());
    let title = tool.title().or(own_name);
    // The TypeScript SDK rejects the whole list for one output schema that is not an object.
    let output_schema = tool
        .output_schema()
        .filter(|schema| schema["type"] == "object");
    let mut extra = passed_on(tool, content);
    let others = extra.remove("annotations");
    ListedTool {
        name,
        title: title.map(|title| strip_invisible(title).into_owned()),
        description: strip_invisible(tool.description()).into_owned(),
        input_schema: schema_object(tool.parameters()),
        output_schema: output_schema.map(schema_object),
        annotations: tool_hints(tool.annotations(), others),
        execution: None,
        extra,
    }
}

fn passed_on(tool: &ToolDefinition, content: &ContentSet) -> Map<String, Value> {
    let mut extra = tool.extra().cloned().unwrap_or_default();
    remove_own_tool_members(&mut extra);
    if let Some(meta) = extra.get_mut("_meta") {
        rewrite_app_uri(meta, content, tool.source());
    }
    extra
}

fn schema_object(schema: &Value) -> Map<String, Value> {
    match strip_invisible_in_schema(schema) {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

// Leaves out hints that the tool doesn't give, because MCP has defaults for those. `others` are
// annotations that we don't know.
fn tool_hints(annotations: Annotations, others: Option<Value>) -> Option<Map<String, Value>> {
    let hints = [
        ("readOnlyHint", annotations.read_only),
        ("destructiveHint", annotations.destructive),
        ("idempotentHint", annotations.idempotent),
        ("openWorldHint", annotations.open_world),
    ];
    let stated = hints
        .into_iter()
        .filter_map(|(name, hint)| Some((name.to_owned(), hint?.into())));
    let mut stated: Map<String, Value> = stated.collect();
    if let Some(Value::Object(others)) = others {
        stated.extend(others);
    }
    (!stated.is_empty()).then_some(stated)
}
