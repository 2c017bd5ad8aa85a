//! Wraps the tools of MCP servers as Toolgate tools.

mod definition;
mod hide_secrets;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use toolgate_core::text::escape;
use toolgate_core::{
    CallContext, Redactor, Schema, SchemaLimits, Tool, ToolDefinition, ToolError, ToolFuture,
    ToolOutput, ValidArguments,
};
use tracing::warn;

use super::call_result;
use super::catalog::RememberedTool;
use super::connection::ToolOffer;
use super::link::ServerLink;
use super::server_request::{RequestOutcome, ServerRequest};
use super::tasks::{TaskSupport, TaskWait};
use crate::header_parameters::HeaderParameter;
use crate::{ServerConnection, ServerSettings};
use definition::{SchemaCompilation, ToolTexts, build_definition, choose_description, shorten};
pub(crate) use definition::{is_wanted, may_be_offered};
pub(crate) use hide_secrets::{hide_secrets, hide_tool_secrets};

/// Turns a server's list into tools. An invalid entry is skipped. If a name is listed twice,
/// the later entry wins. This is decided before pinning, so that a repeated entry isn't
/// taken for a change.
///
/// Definitions are shown, offered to models and stored, so secrets that a server repeats in
/// them are hidden first.
pub(crate) async fn tools_from_listing(
    listed: Vec<Value>,
    settings: &ServerSettings,
    link: &ServerLink,
    redactor: &Redactor,
) -> ToolOffer {
    let mut offer = ToolOffer {
        tools: Vec::with_capacity(listed.len()),
        listed: Vec::with_capacity(listed.len()),
        refused: Vec::new(),
        ..ToolOffer::default()
    };
    // The indexes of an entry and its tool, by original name.
    let mut indexes: HashMap<String, (usize, usize)> = HashMap::new();
    let mut duplicates: BTreeSet<String> = BTreeSet::new();
    for mut entry in listed {
        hide_tool_secrets(&mut entry, redactor);
        match McpTool::new(entry.clone(), settings, link, SchemaCompilation::Now) {
            // Remembered anyway: the settings may include it later.
            Ok(None) => offer.listed.push(entry),
            Ok(Some(tool)) => match indexes.entry(tool.definition.original_name().to_owned()) {
                Entry::Vacant(free) => {
                    free.insert((offer.listed.len(), offer.tools.len()));
                    offer.listed.push(entry);
                    offer.tools.push(Arc::new(tool));
                }
                Entry::Occupied(indexes) => {
                    duplicates.insert(tool.definition.name().to_owned());
                    let (listed_at, tool_at) = *indexes.get();
                    offer.listed[listed_at] = entry;
                    offer.tools[tool_at] = Arc::new(tool);
                }
            },
            Err(problem) => {
                warn!(server = %settings.name, "{problem}; skipping the tool");
                offer.refused.push(problem);
            }
        }
        // Compiling schemas takes time and a list may be long, so let other tasks run.
        tokio::task::yield_now().await;
    }
    for tool in duplicates {
        warn!(server = %settings.name, tool = %shorten(&tool), "the server lists a tool twice; using the later one");
    }
    offer
}

/// Turns remembered entries into tools. Problems were logged when they were listed, so
/// nothing is logged here.
pub(crate) fn tools_from_catalog(
    remembered: Vec<RememberedTool>,
    settings: &ServerSettings,
    link: &ServerLink,
) -> Vec<Arc<dyn Tool>> {
    let tool = |remembered: RememberedTool| {
        let tool = McpTool::new(
            remembered.definition,
            settings,
            link,
            SchemaCompilation::AtFirstCall,
        );
        Some(Arc::new(tool.ok()??) as Arc<dyn Tool>)
    };
    let no_logs = tracing::subscriber::NoSubscriber::default();
    tracing::subscriber::with_default(no_logs, || {
        remembered.into_iter().filter_map(tool).collect()
    })
}

struct McpTool {
    definition: ToolDefinition,
    server: String,
    link: ServerLink,
    output: Option<Schema>,
    // Only of servers behind HTTP.
    headers: Vec<HeaderParameter>,
    // Read-only or idempotent, so that a call may be repeated.
    is_repeatable: bool,
    task_support: TaskSupport,
}

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a Value,
}

impl McpTool {
    fn new(
        mut entry: Value,
        settings: &ServerSettings,
        link: &ServerLink,
        compile: SchemaCompilation,
    ) -> Result<Option<Self>, String> {
        let text = |entry: &Value, key: &str| entry[key].as_str().map(str::to_owned);
        let name = text(&entry, "name").unwrap_or_default();
        let title = text(&entry, "title").or_else(|| text(&entry["annotations"], "title"));
        let description = choose_description(&entry, &name, title.as_deref(), &settings.name)?;
        // An invalid mark excludes the tool behind stdio too: clients of our own HTTP side would
        // reject it.
        let mut headers = HeaderParameter::find(&entry["inputSchema"])
            .map_err(|problem| format!("tool '{}': {problem}", shorten(&name)))?;
        let output = entry.get_mut("outputSchema").map(Value::take);
        let task_support = TaskSupport::of_tool(&entry);
        let texts = ToolTexts {
            name,
            title,
            description,
        };
        let definition = build_definition(&texts, &mut entry, output.as_ref(), settings, compile)?;
        let annotations = definition.annotations();
        let is_repeatable =
            annotations.read_only == Some(true) || annotations.idempotent == Some(true);
        match settings.connection {
            ServerConnection::Http { .. } => {
                for parameter in headers.iter_mut().filter_map(|it| it.path.first_mut()) {
                    *parameter = definition.parameter_names().sent_name(parameter);
                }
            }
            ServerConnection::Stdio(_) => headers.clear(),
        }
        if !is_wanted(settings, &definition) {
            return Ok(None);
        }
        Ok(Some(Self {
            definition,
            server: settings.name.clone(),
            link: link.clone(),
            output: output.and_then(|schema| {
                let limits = SchemaLimits::default();
                match compile {
                    SchemaCompilation::Now => Schema::compile(schema, &limits).ok(),
                    SchemaCompilation::AtFirstCall => Schema::deferred(schema, &limits).ok(),
                }
            }),
            headers,
            is_repeatable,
            task_support,
        }))
    }

    fn headers_for(&self, arguments: &Value) -> Result<Vec<(String, String)>, ToolError> {
        let mut headers = Vec::new();
        let Some(arguments) = arguments.as_object() else {
            return Ok(headers);
        };
        for parameter in &self.headers {
            match parameter.value(arguments) {
                Ok(None) => {}
                Ok(Some(value)) => headers.push((parameter.header.as_str().to_owned(), value)),
                Err(error) => {
                    let text = format!("{error}, because its value is also sent in a header");
                    return Err(ToolError::invalid(parameter.path.join("."), text));
                }
            }
        }
        Ok(headers)
    }

    async fn result(
        &self,
        arguments: &ValidArguments,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let (server, link) = (&*self.server, &self.link);
        let parse = |result: Value| call_result::parse_output(context.tool_name(), result);
        if let Some(task) = context.resumed_task() {
            return parse(TaskWait::resume(server, link, context, task)?.run().await?);
        }
        let (name, arguments) = (self.definition.original_name(), arguments.as_value());
        let request = ServerRequest {
            server,
            link,
            method: "tools/call".into(),
            name: Some(name),
            params: CallParams { name, arguments },
            headers: self.headers_for(arguments)?,
            is_repeatable: self.is_repeatable,
            pinned_tool: Some(name),
            task_support: Some(self.task_support),
        };
        match request.run(context).await? {
            RequestOutcome::Complete(result) => parse(result),
            RequestOutcome::Extension(result) => Ok(ToolOutput::extension_result(result)),
            RequestOutcome::Task(started) => {
                let task = TaskWait::start(server, link, context, started)?;
                parse(task.run().await?)
            }
        }
    }

    // A result that violates the output schema is only logged, because the call may have had an
    // effect.
    fn warn_on_schema_mismatch(&self, output: &ToolOutput) {
        let schema = self.output.as_ref();
        let Some(schema) = schema.filter(|_| !output.is_extension_result) else {
            return;
        };
        let problem = match &output.structured {
            None => "structured content is missing".to_owned(),
            Some(value) => match schema.check(value.clone()) {
                Ok(_) => return,
                Err(error) => error.to_string(),
            },
        };
        let tool = shorten(self.definition.name());
        warn!(server = %self.server, %tool, problem = %escape(&problem), "a result does not match the tool's output schema");
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let output = self.result(&arguments, context).await;
            output.inspect(|output| self.warn_on_schema_mismatch(output))
        })
    }
}
#[cfg(test)]
mod tests;
