//! Wraps the tools of MCP servers as Toolgate tools.

mod definition;
mod hide_secrets;

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

use super::call_result::{self, CallAnswer};
use super::catalogue::RememberedTool;
use super::connection::ToolOffer;
use super::link::ServerLink;
use super::session::{ClientSession, SessionError, SessionRequest};
use crate::ServerSettings;
pub(crate) use definition::may_be_offered;
use definition::{
    SchemaCompilation, ToolTexts, build_definition, choose_description, find_header_parameters,
    is_wanted, shorten,
};
pub(crate) use hide_secrets::hide_secrets;

// How often a server may ask for input before it answers a call.
const MAX_QUESTION_ROUNDS: usize = 8;

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
    };
    // The indexes of an entry and its tool, by original name.
    let mut indexes: HashMap<String, (usize, usize)> = HashMap::new();
    let mut duplicates: BTreeSet<String> = BTreeSet::new();
    for mut entry in listed {
        hide_secrets(&mut entry, redactor);
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
pub(crate) fn tools_from_catalogue(
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
    headers: Vec<(String, String)>,
    // Read-only or idempotent, so that a call may be repeated.
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
        let headers = find_header_parameters(&entry["inputSchema"])
            .map_err(|problem| format!("tool '{}': {problem}", shorten(&name)))?;
        let output = entry.get_mut("outputSchema").map(Value::take);
        let texts = ToolTexts {
            name,
            title,
            description,
        };
        let definition = build_definition(&texts, &mut entry, output.as_ref(), settings, compile)?;
        let annotations = definition.annotations();
        let repeatable =
            annotations.read_only == Some(true) || annotations.idempotent == Some(true);
        let rename = |(declared, header): (String, String)| {
            (definition.names().sent_name(&declared), header)
        };
        let headers = headers.into_iter().map(rename).collect();
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
            repeatable,
        }))
    }

    async fn call_until_answered(
        &self,
        session: &Arc<ClientSession>,
        arguments: &Value,
        context: &CallContext,
    ) -> Result<Result<ToolOutput, ToolError>, SessionError> {
        let tool = context.tool_name();
        let mut params = CallParams {
            name: self.definition.original_name(),
            arguments,
            responses: None,
            state: Value::Null,
        };
        for _ in 0..MAX_QUESTION_ROUNDS {
            let request = SessionRequest {
                name: Some(params.name),
                headers: self.headers_for(arguments),
                call: Some(context),
                ..SessionRequest::new("tools/call", &params)
            };
            let result = session
                .request(request)
                .await
                .map_err(|failure| match failure {
                    // The server has received the first request, so a retry would run the tool a
                    // second time.
                    SessionError::NotSent(reason) if params.responses.is_some() => {
                        SessionError::Interrupted(reason)
                    }
                    other => other,
                })?;
            match call_result::parse_result(tool, result) {
                CallAnswer::Done(answer) => return Ok(answer),
                CallAnswer::InputRequired { requests, state } => {
                    match self.answer_questions(session, requests, context).await {
                        Ok(responses) => {
                            params.responses = Some(responses);
                            params.state = state;
                        }
                        Err(problem) => return Ok(Err(ToolError::failed(problem))),
                    }
                }
            }
        }
        let text = format!(
            "The server of '{tool}' asked for input {MAX_QUESTION_ROUNDS} times without completing the call"
        );
        Ok(Err(ToolError::failed(text)))
    }

    async fn answer_questions(
        &self,
        session: &Arc<ClientSession>,
        requests: Value,
        context: &CallContext,
    ) -> Result<Map<String, Value>, String> {
        let mut responses = Map::new();
        let Value::Object(requests) = requests else {
            return Ok(responses);
        };
        // Untrusted input, so the number of questions is limited.
        for (key, request) in requests.into_iter().take(16) {
            let method = request["method"].as_str().unwrap_or_default();
            let response = session
                .answer_question(method, &request["params"], Some(context))
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

    // A result that violates the output schema is only logged, because the call may have had an
    // effect.
    fn warn_on_schema_mismatch(&self, output: &ToolOutput) {
        let Some(schema) = &self.output else { return };
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
            let tool = context.tool_name();
            let original_name = self.definition.original_name();
            let mut may_retry = true;
            loop {
                let session = self.link.session(tool).await?;
                self.link.check_not_withheld(original_name, tool)?;
                let call = self.call_until_answered(&session, arguments.as_value(), context);
                let failure = match call.await {
                    Ok(answer) => {
                        return answer.inspect(|output| self.warn_on_schema_mismatch(output));
                    }
                    Err(failure) => failure,
                };
                // Retry at most once, and never if the call may have had an effect.
                let is_safe = match &failure {
                    SessionError::NotSent(_) => true,
                    SessionError::Stopped(_) | SessionError::Interrupted(_) => self.repeatable,
                    _ => false,
                };
                if !(may_retry && is_safe) {
                    return Err(call_result::to_tool_error(&self.server, tool, failure));
                }
                may_retry = false;
                session.wait_briefly_for_end().await;
            }
        })
    }
}

#[cfg(test)]
mod tests;
