//! Runs `resources/read`, `prompts/get` and `completion/complete`: each is a call through the
//! executor, of a tool that its server's content provides.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_core::{
    CallContext, ContentMethod, ContentSet, ContentSource, ErrorKind, ServerFailure, Tool,
    ToolCall, ToolDefinition, ToolError, ToolFuture, ToolOutcome, ToolOutput, ToolSource,
    ValidArguments, escape,
};

use super::client_call::{ClientOutcome, RequestIdentity};
use super::client_message::RequestMeta;
use super::content_list::is_offered;
use super::jsonrpc::RequestError;
use super::linked_uris::rewrite_result_uris;
use super::methods::{COMPLETE, MethodResult, RequestContext, SERVER_INFO};
use super::service::McpService;
use super::suspended::ClientAnswers;
use super::tool_call::MAX_CALLS;

/// The code for a missing resource up to 2025-11-25.
const RESOURCE_NOT_FOUND: i32 = -32002;

/// A request for content: whose it is, and the parameters as its source knows them.
struct ContentRequest {
    method: ContentMethod,
    // `None` if nobody offers it to this client.
    owner: Option<ContentSource>,
    arguments: Value,
    // What was asked for, for the error that there is no such thing.
    wanted: String,
}

impl ContentRequest {
    fn tool(&self) -> Option<&Arc<dyn Tool>> {
        self.owner.as_ref()?.content.access.tool(self.method)
    }

    fn to_call(&self) -> Result<ToolCall, RequestError> {
        let tool = match self.tool() {
            Some(tool) => Arc::clone(tool),
            None => MissingContent::tool(self.method, &self.wanted)?,
        };
        let call = ToolCall::new(self.method.as_str(), self.arguments.clone());
        Ok(call.resolved_tool(tool))
    }

    fn parse_outcome(
        &self,
        outcome: ToolOutcome,
        context: &RequestContext<'_>,
    ) -> Result<Value, RequestError> {
        let is_known = self.tool().is_some();
        match outcome.result {
            Ok(ToolOutput {
                structured: Some(result),
                ..
            }) if is_known => Ok(result),
            Ok(_) => Err(RequestError::new(
                RequestError::INTERNAL_ERROR,
                "the server sent no result",
            )),
            // A request that was one too many may find it the next time.
            Err(error) if !is_known && !matches!(error, ToolError::Overloaded { .. }) => {
                Err(not_found(self.method, &self.wanted, context))
            }
            Err(error) => Err(request_error(&error, &outcome.tool_name, context)),
        }
    }
}

impl McpService {
    pub(super) async fn use_content(
        &self,
        method: ContentMethod,
        params: Value,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        let Value::Object(mut params) = params else {
            return Err(RequestError::wrong_params(method.as_str()));
        };
        let permit = self.shared.calls.try_acquire();
        let answers = ClientAnswers::take(&mut params);
        let content = self.content_with(method, &params).await;
        let request = self.find_content(&content, method, params)?;
        let completes_nothing = |owner: &ContentSource| owner.content.access.complete.is_none();
        if method == ContentMethod::Complete
            && request.owner.as_ref().is_some_and(completes_nothing)
        {
            let empty = json!({ "completion": { "values": [] } });
            return Ok(MethodResult::Json(
                self.finish_result(empty, method, context),
            ));
        }
        let identity = RequestIdentity {
            method: method.as_str(),
            target: &request.wanted,
            arguments: request.arguments.as_object(),
        };
        let outcome = match self
            .resume_for_client(answers, &identity, meta, context)
            .await?
        {
            Some(outcome) => outcome,
            None => {
                let mut call = request.to_call()?;
                if permit.is_err() {
                    let (tool, limit) = (method.as_str().to_owned(), MAX_CALLS);
                    call = call.reject(ToolError::Overloaded { tool, limit });
                }
                self.execute_for_client(call, &identity, meta, context)
                    .await
            }
        };
        let outcome = match outcome {
            ClientOutcome::Finished(outcome) => outcome,
            ClientOutcome::InputRequired(result) => return Ok(MethodResult::Json(result)),
        };
        let result = request.parse_outcome(outcome, context)?;
        let mut result = self.finish_result(result, method, context);
        if let Some(owner) = &request.owner {
            rewrite_result_uris(&mut result, &content, &owner.source);
            if method == ContentMethod::ReadResource {
                let own = text(&request.arguments["uri"]);
                let offered = content.linked_uri(&owner.source, own);
                restore_asked_uri(&mut result, &offered, &request.wanted);
            }
        }
        Ok(MethodResult::Json(result))
    }

    /// The content of all servers. If what is wanted is not among it, waits a few seconds for
    /// servers that are starting.
    async fn content_with(
        &self,
        method: ContentMethod,
        params: &Map<String, Value>,
    ) -> Arc<ContentSet> {
        let content = self.executor.manager().content();
        if owner_of(&content, method, params).is_some() {
            return content;
        }
        self.wait_for_lists().await;
        self.executor.manager().content()
    }

    fn find_content(
        &self,
        content: &ContentSet,
        method: ContentMethod,
        mut params: Map<String, Value>,
    ) -> Result<ContentRequest, RequestError> {
        let wrong = || RequestError::wrong_params(method.as_str());
        let wanted = wanted(method, &params).ok_or_else(wrong)?.to_owned();
        let found = owner_of(content, method, &params);
        let rules = self.executor.rules();
        let used = match method {
            // Completion comes with what it completes.
            ContentMethod::Complete if params["ref"]["type"] == "ref/prompt" => {
                ContentMethod::GetPrompt
            }
            ContentMethod::Complete => ContentMethod::ReadResource,
            method => method,
        };
        let offered =
            |(owner, _): &(&ContentSource, String)| is_offered(owner, used, &rules, &self.scope);
        let found = found.filter(offered);
        let own = found
            .as_ref()
            .map_or_else(|| wanted.clone(), |(_, own)| own.clone());
        let arguments = match method {
            ContentMethod::ReadResource => json!({ "uri": own }),
            ContentMethod::GetPrompt => {
                let arguments = params.remove("arguments").filter(|given| !given.is_null());
                let mut all = json!({ "name": own });
                if let Some(arguments) = arguments {
                    all["arguments"] = arguments;
                }
                all
            }
            ContentMethod::Complete => {
                params.retain(|key, _| ["ref", "argument", "context"].contains(&&**key));
                let key = reference_key(&params["ref"]);
                params["ref"][key] = own.into();
                Value::Object(params)
            }
        };
        let owner = found.map(|(owner, _)| owner.clone());
        Ok(ContentRequest {
            method,
            owner,
            arguments,
            wanted,
        })
    }

    /// Gives a server's result the form of the client's revision.
    fn finish_result(
        &self,
        mut result: Value,
        method: ContentMethod,
        context: &RequestContext<'_>,
    ) -> Value {
        let Some(object) = result.as_object_mut() else {
            return result;
        };
        let is_modern = context.lifecycle.is_modern();
        object.shift_remove("resultType");
        if !is_modern {
            object.shift_remove("ttlMs");
            object.shift_remove("cacheScope");
            return result;
        }
        object.insert("resultType".to_owned(), COMPLETE.into());
        if method == ContentMethod::ReadResource {
            if !object.get("ttlMs").is_some_and(Value::is_u64) {
                object.insert("ttlMs".to_owned(), 0.into());
            }
            let scope = object.get("cacheScope").and_then(Value::as_str);
            if !matches!(scope, Some("public" | "private")) {
                object.insert("cacheScope".to_owned(), "private".into());
            }
        }
        let info = self.result_meta[SERVER_INFO].clone();
        match object.get_mut("_meta") {
            Some(Value::Object(meta)) => drop(meta.insert(SERVER_INFO.to_owned(), info)),
            _ => drop(object.insert("_meta".to_owned(), json!({ SERVER_INFO: info }))),
        }
        result
    }
}

/// The URI or the name in the parameters, if they have the form of the method.
fn wanted(method: ContentMethod, params: &Map<String, Value>) -> Option<&str> {
    match method {
        ContentMethod::ReadResource => params.get("uri")?.as_str(),
        ContentMethod::GetPrompt => params.get("name")?.as_str(),
        ContentMethod::Complete => {
            let reference = params.get("ref")?;
            let has_argument = params.get("argument")?["name"].is_string();
            reference[reference_key(reference)]
                .as_str()
                .filter(|_| has_argument)
        }
    }
}

fn reference_key(reference: &Value) -> &'static str {
    match reference["type"].as_str() {
        Some("ref/prompt") => "name",
        _ => "uri",
    }
}

/// Who offers what is wanted, and its name or URI there.
fn owner_of<'a>(
    content: &'a ContentSet,
    method: ContentMethod,
    params: &Map<String, Value>,
) -> Option<(&'a ContentSource, String)> {
    let wanted = wanted(method, params)?;
    let is_prompt = match method {
        ContentMethod::ReadResource => false,
        ContentMethod::GetPrompt => true,
        ContentMethod::Complete => reference_key(&params["ref"]) == "name",
    };
    if is_prompt {
        let prompt = content.find_prompt(wanted)?;
        return Some((prompt.owner, text(&prompt.entry["name"]).to_owned()));
    }
    let (owner, own) = content.resolve(wanted)?;
    Some((owner, own.into_owned()))
}

/// A server answers with the URI it was asked for, and so do we, however the client wrote it.
fn restore_asked_uri(result: &mut Value, offered: &Cow<'_, str>, asked: &str) {
    let contents = result.get_mut("contents").and_then(Value::as_array_mut);
    for item in contents.into_iter().flatten() {
        if item["uri"] == **offered {
            item["uri"] = asked.into();
        }
    }
}

fn not_found(method: ContentMethod, wanted: &str, context: &RequestContext<'_>) -> RequestError {
    let (text, data) = match method {
        ContentMethod::ReadResource => ("Resource not found", json!({ "uri": wanted })),
        ContentMethod::GetPrompt => ("Prompt not found", json!({ "name": wanted })),
        ContentMethod::Complete => (
            "There is nothing of this name to complete",
            json!({ "ref": wanted }),
        ),
    };
    let is_legacy_resource =
        method == ContentMethod::ReadResource && !context.lifecycle.is_modern();
    let code = match is_legacy_resource {
        true => RESOURCE_NOT_FOUND,
        false => RequestError::INVALID_PARAMS,
    };
    let mut error = RequestError::new(code, format!("{text}: {}", escape(wanted)));
    error.data = Some(data);
    error
}

/// A server's own JSON-RPC error is passed on; anything else says its kind.
fn request_error(error: &ToolError, tool: &str, context: &RequestContext<'_>) -> RequestError {
    let message = error.to_string();
    if let ToolError::Failed {
        answer: Some(answer),
        ..
    } = error
        && let ServerFailure::Rpc { code, data } = &**answer
    {
        let code = match i32::try_from(*code).unwrap_or(RequestError::INTERNAL_ERROR) {
            RESOURCE_NOT_FOUND if context.lifecycle.is_modern() => RequestError::INVALID_PARAMS,
            code => code,
        };
        let mut passed_on = RequestError::new(code, message);
        passed_on.data.clone_from(data);
        return passed_on;
    }
    let code = match error.kind() {
        ErrorKind::InvalidArguments => RequestError::INVALID_PARAMS,
        _ => RequestError::INTERNAL_ERROR,
    };
    let mut failed = RequestError::new(code, message);
    failed.data = Some(json!({ "kind": error.kind().as_str(), "method": tool }));
    failed
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Stands in for content that nobody offers, so that the request is still on record.
struct MissingContent {
    definition: ToolDefinition,
    wanted: String,
}

impl MissingContent {
    fn tool(method: ContentMethod, wanted: &str) -> Result<Arc<dyn Tool>, RequestError> {
        let definition = method
            .definition(ToolSource::Internal)
            .build()
            .map_err(|error| RequestError::new(RequestError::INTERNAL_ERROR, error.to_string()))?;
        let wanted = wanted.to_owned();
        Ok(Arc::new(Self { definition, wanted }))
    }
}

impl Tool for MissingContent {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        let wanted = escape(&self.wanted);
        Box::pin(async move { Err(ToolError::failed(format!("Nobody offers '{wanted}'"))) })
    }
}
