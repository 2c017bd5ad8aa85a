//! A tool of an MCP server, as a tool of ours.

mod definition;
mod hidden;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::{
    CallContext, Redactor, Schema, SchemaLimits, Tool, ToolDefinition, ToolError, ToolFuture,
    ToolOutput, ValidArguments, escape,
};
use tracing::warn;

use super::answer::{self, Answer};
use super::catalogue::RememberedTool;
use super::link::Link;
use super::peer::Offer;
use super::session::{Failure, Request, Session};
use crate::ServerSettings;
pub(crate) use definition::may_be_offered;
use definition::{Compile, ToolWords, brief, define, description, is_wanted, mirrored};
pub(crate) use hidden::hide_secrets;

/// How often a server may ask back before it answers a call.
const ROUNDS: usize = 8;

/// Makes tools of what a server listed. One that is no good costs nobody else. Of two with the same name the later one counts,
/// before anybody compares them with what was listed earlier: a list that repeats itself is no tool that changed.
///
/// What a server says of its tools is shown, offered to models and remembered, so secrets it repeats are hidden first.
pub(crate) async fn take(
    listed: Vec<Value>,
    settings: &ServerSettings,
    link: &Link,
    redactor: &Redactor,
) -> Offer {
    let mut taken = Offer {
        tools: Vec::with_capacity(listed.len()),
        listed: Vec::with_capacity(listed.len()),
        refused: Vec::new(),
    };
    // Where an entry and its tool stand, by the name on the server.
    let mut places: HashMap<String, (usize, usize)> = HashMap::new();
    let mut twice: BTreeSet<String> = BTreeSet::new();
    for mut entry in listed {
        hide_secrets(&mut entry, redactor);
        match McpTool::new(entry.clone(), settings, link, Compile::Now) {
            // Remembered all the same: the settings may want it another day.
            Ok(None) => taken.listed.push(entry),
            Ok(Some(tool)) => match places.entry(tool.definition.original_name().to_owned()) {
                Entry::Vacant(free) => {
                    free.insert((taken.listed.len(), taken.tools.len()));
                    taken.listed.push(entry);
                    taken.tools.push(Arc::new(tool));
                }
                Entry::Occupied(place) => {
                    twice.insert(tool.definition.name().to_owned());
                    let (listed_at, tool_at) = *place.get();
                    taken.listed[listed_at] = entry;
                    taken.tools[tool_at] = Arc::new(tool);
                }
            },
            Err(problem) => {
                warn!(server = %settings.name, "{problem}; the tool is left out");
                taken.refused.push(problem);
            }
        }
        // Schemas take time to compile, and a list may be long: others want this thread too.
        tokio::task::yield_now().await;
    }
    for tool in twice {
        warn!(server = %settings.name, tool = %brief(&tool), "the server lists a tool twice: the later one counts");
    }
    taken
}

/// Makes tools of what is remembered of a server. Whatever is odd about them was said when they were listed.
pub(crate) fn recall(
    remembered: Vec<RememberedTool>,
    settings: &ServerSettings,
    link: &Link,
) -> Vec<Arc<dyn Tool>> {
    let tool = |remembered: RememberedTool| {
        let tool = McpTool::new(remembered.definition, settings, link, Compile::AtFirstCall);
        Some(Arc::new(tool.ok()??) as Arc<dyn Tool>)
    };
    let quietly = tracing::subscriber::NoSubscriber::default();
    tracing::subscriber::with_default(quietly, || {
        remembered.into_iter().filter_map(tool).collect()
    })
}

struct McpTool {
    definition: ToolDefinition,
    server: String,
    link: Link,
    output: Option<Schema>,
    /// Parameters that HTTP of the modern era repeats in headers: parameter, header.
    headers: Vec<(String, String)>,
    repeatable: bool,
}

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a Value,
    #[serde(rename = "inputResponses", skip_serializing_if = "Option::is_none")]
    responses: Option<Map<String, Value>>,
    #[serde(rename = "requestState", skip_serializing_if = "Value::is_null")]
    state: Value,
}

impl McpTool {
    /// `None` if the settings leave it out.
    fn new(
        mut entry: Value,
        settings: &ServerSettings,
        link: &Link,
        compile: Compile,
    ) -> Result<Option<Self>, String> {
        let text = |entry: &Value, key: &str| entry[key].as_str().map(str::to_owned);
        let name = text(&entry, "name").unwrap_or_default();
        let title = text(&entry, "title").or_else(|| text(&entry["annotations"], "title"));
        let description = description(&entry, &name, title.as_deref(), &settings.name)?;
        let headers = mirrored(&entry["inputSchema"])
            .map_err(|problem| format!("tool '{}': {problem}", brief(&name)))?;
        let output = entry.get_mut("outputSchema").map(Value::take);
        let words = ToolWords {
            name,
            title,
            description,
        };
        let definition = define(&words, &mut entry, output.as_ref(), settings, compile)?;
        let annotations = definition.annotations();
        let repeatable =
            annotations.read_only == Some(true) || annotations.idempotent == Some(true);
        let sent = |(declared, header): (String, String)| {
            (definition.names().sent_name(&declared), header)
        };
        let headers = headers.into_iter().map(sent).collect();
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
                    Compile::Now => Schema::compile(schema, &limits).ok(),
                    Compile::AtFirstCall => Schema::deferred(schema, &limits).ok(),
                }
            }),
            headers,
            repeatable,
        }))
    }

    /// One call, with the questions the server asks in between.
    async fn converse(
        &self,
        session: &Arc<Session>,
        arguments: &Value,
        context: &CallContext,
    ) -> Result<Result<ToolOutput, ToolError>, Failure> {
        let tool = context.tool_name();
        let mut params = CallParams {
            name: self.definition.original_name(),
            arguments,
            responses: None,
            state: Value::Null,
        };
        for _ in 0..ROUNDS {
            let request = Request {
                name: Some(params.name),
                headers: self.headers_for(arguments),
                call: Some(context),
                ..Request::new("tools/call", &params)
            };
            let result = session
                .request(request)
                .await
                .map_err(|failure| match failure {
                    // The server has seen the beginning: from the start again would not be the first time.
                    Failure::NotSent(reason) if params.responses.is_some() => {
                        Failure::Interrupted(reason)
                    }
                    other => other,
                })?;
            match answer::read(tool, result) {
                Answer::Done(answer) => return Ok(answer),
                Answer::Wants { requests, state } => {
                    match self.respond(session, requests, context).await {
                        Ok(responses) => {
                            params.responses = Some(responses);
                            params.state = state;
                        }
                        Err(problem) => return Ok(Err(ToolError::failed(problem))),
                    }
                }
            }
        }
        let text = format!("The server of '{tool}' asked back {ROUNDS} times and never answered");
        Ok(Err(ToolError::failed(text)))
    }

    async fn respond(
        &self,
        session: &Arc<Session>,
        requests: Value,
        context: &CallContext,
    ) -> Result<Map<String, Value>, String> {
        let mut responses = Map::new();
        let Value::Object(requests) = requests else {
            return Ok(responses);
        };
        for (key, request) in requests.into_iter().take(16) {
            let method = request["method"].as_str().unwrap_or_default();
            let response = session
                .answer(method, &request["params"], Some(context))
                .await;
            responses.insert(key, response.map_err(|error| error.message)?);
        }
        Ok(responses)
    }

    fn headers_for(&self, arguments: &Value) -> Vec<(String, String)> {
        let header = |(parameter, header): &(String, String)| {
            let value = match arguments.get(parameter)? {
                Value::Null => return None,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some((header.clone(), value))
        };
        self.headers.iter().filter_map(header).collect()
    }

    /// A promise about the answer that the server does not keep is told, and the answer passed on: it may have had an effect.
    fn compare(&self, output: &ToolOutput) {
        let Some(schema) = &self.output else { return };
        let problem = match &output.structured {
            None => "structured content is missing".to_owned(),
            Some(value) => match schema.check(value.clone()) {
                Ok(_) => return,
                Err(error) => error.to_string(),
            },
        };
        let tool = brief(self.definition.name());
        warn!(server = %self.server, %tool, problem = %escape(&problem), "an answer does not match the tool's output schema");
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let tool = context.tool_name();
            let original_name = self.definition.original_name();
            let mut again = true;
            loop {
                let session = self.link.session(tool).await?;
                self.link.expect_agreed(original_name, tool)?;
                let call = self.converse(&session, arguments.as_value(), context);
                let failure = match call.await {
                    Ok(answer) => return answer.inspect(|output| self.compare(output)),
                    Err(failure) => failure,
                };
                // At most once more, and never if it may have had an effect.
                let harmless = match &failure {
                    Failure::NotSent(_) => true,
                    Failure::Stopped(_) | Failure::Interrupted(_) => self.repeatable,
                    _ => false,
                };
                if !(again && harmless) {
                    return Err(answer::failed(&self.server, tool, failure));
                }
                again = false;
                session.over().await;
            }
        })
    }
}

#[cfg(test)]
mod tests;
