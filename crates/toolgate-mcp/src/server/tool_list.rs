//! The tools an executor has for a client, as MCP lists them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::watch;
use toolgate_core::{Annotations, ToolDefinition, visible, visible_schema, wire_names};

use super::http::MirroredHeader;
use super::service::McpService;

/// The specification lets a name have 128 letters, digits, `_`, `-` and `.`. Claude Desktop, Windsurf and others take 64 without
/// the dot, and refuse the whole list for one name that has more.
const LONGEST_NAME: usize = 64;
/// Changes that come in such quick succession are told once.
const COALESCE: Duration = Duration::from_millis(50);

#[derive(Debug, PartialEq, Serialize)]
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
    annotations: Option<ToolHints>,
}

/// Only what the tool says: MCP has defaults for the rest.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolHints {
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world_hint: Option<bool>,
}

/// All tools that one group of clients may see, made once for every change of the tool set.
#[derive(Default)]
pub(super) struct ToolList {
    /// The manager's count of changes it was made at.
    pub(super) version: u64,
    pub(super) tools: Arc<Vec<ListedTool>>,
    /// The names here of tools that clients know by another one.
    renamed: HashMap<String, String>,
    /// By the tool's name here, only of tools that have any.
    mirrored: HashMap<String, Vec<MirroredHeader>>,
}

impl ToolList {
    /// Where clients can't see a difference to the list `before`, it has the very same tools.
    pub(super) fn new(version: u64, definitions: &[&ToolDefinition], before: &Self) -> Self {
        let names: Vec<&str> = definitions.iter().map(|tool| tool.name()).collect();
        let wire = wire_names::fixed(&names, LONGEST_NAME);
        let listed = definitions.iter().zip(wire);
        let tools: Vec<ListedTool> = listed.map(|(tool, name)| list(tool, name)).collect();
        let with_names = || tools.iter().zip(&names);
        let renamed = with_names().filter(|(tool, name)| tool.name != **name);
        let renamed = renamed.map(|(tool, name)| (tool.name.clone(), (*name).to_owned()));
        let mirrored = with_names().map(|(tool, name)| {
            let headers = MirroredHeader::of_schema(&tool.input_schema);
            ((*name).to_owned(), headers)
        });
        Self {
            version,
            renamed: renamed.collect(),
            mirrored: mirrored.filter(|(_, all)| !all.is_empty()).collect(),
            tools: match tools == *before.tools {
                true => Arc::clone(&before.tools),
                false => Arc::new(tools),
            },
        }
    }

    /// What the tool is called here that a client knows by this name.
    pub(super) fn own_name<'a>(&'a self, asked: &'a str) -> &'a str {
        self.renamed.get(asked).map_or(asked, String::as_str)
    }

    /// In 2026-07-28 some arguments stand in headers too, where a tool's schema says so.
    pub(super) fn check_mirrored(
        &self,
        headers: &HeaderMap,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(), String> {
        let mirrored = self.mirrored.get(self.own_name(tool));
        let mut mirrored = mirrored.into_iter().flatten();
        mirrored.try_for_each(|header| header.check(headers, arguments))
    }
}

/// One client's view of the list over time.
pub(super) struct ToolListWatch {
    service: Arc<McpService>,
    version: watch::Receiver<u64>,
    seen: Arc<Vec<ListedTool>>,
}

impl ToolListWatch {
    pub(super) fn new(service: &Arc<McpService>) -> Self {
        Self {
            version: service.executor.manager().subscribe(),
            seen: Arc::clone(&service.tool_list().tools),
            service: Arc::clone(service),
        }
    }

    pub(super) fn from_list(service: &Arc<McpService>, seen: Arc<Vec<ListedTool>>) -> Self {
        let mut watch = Self::new(service);
        if !Arc::ptr_eq(&watch.seen, &seen) {
            watch.seen = seen;
            watch.version.mark_changed();
        }
        watch
    }

    /// The list as it was last seen.
    pub(super) fn seen(&self) -> Arc<Vec<ListedTool>> {
        Arc::clone(&self.seen)
    }

    /// Returns when the list is another one than before; never, if it can't change any more.
    pub(super) async fn changed(&mut self) {
        loop {
            if self.version.changed().await.is_err() {
                return std::future::pending().await;
            }
            tokio::time::sleep(COALESCE).await;
            self.version.mark_unchanged();
            let tools = Arc::clone(&self.service.tool_list().tools);
            if !Arc::ptr_eq(&tools, &self.seen) {
                self.seen = tools;
                return;
            }
        }
    }
}

fn list(tool: &ToolDefinition, name: String) -> ListedTool {
    let own_name = (name != tool.name()).then(|| tool.name());
    let title = tool.title().or(own_name);
    // One output schema of another type makes the TypeScript SDK refuse the whole list.
    let output_schema = tool
        .output_schema()
        .filter(|schema| schema["type"] == "object");
    ListedTool {
        name,
        title: title.map(|title| visible(title).into_owned()),
        description: visible(tool.description()).into_owned(),
        input_schema: object(tool.parameters()),
        output_schema: output_schema.map(object),
        annotations: hints(tool.annotations()),
    }
}

fn object(schema: &Value) -> Map<String, Value> {
    match visible_schema(schema) {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn hints(said: Annotations) -> Option<ToolHints> {
    (said != Annotations::default()).then_some(ToolHints {
        read_only_hint: said.read_only,
        destructive_hint: said.destructive,
        idempotent_hint: said.idempotent,
        open_world_hint: said.open_world,
    })
}
