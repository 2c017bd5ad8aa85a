//! Runs `resources/read`, `prompts/get` and `completion/complete`: each is a call through the
//! executor, of a tool that its server's content provides.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_core::text::escape;
use toolgate_core::{
    ContentMethod, ContentRequest, ErrorKind, ExtensionRequestError, ServerFailure, ToolError,
    ToolOutcome, ToolOutput,
};

use super::client_call::{ClientOutcome, RequestIdentity};
use super::client_message::RequestMeta;
use super::jsonrpc::RequestError;
use super::methods::{COMPLETE, MethodResult, RequestContext};
use super::service::McpService;
use super::suspended::ClientAnswers;
use super::tool_call::MAX_CALLS;
use crate::extensions::{may_be_extension_method, may_have_requests};

/// The code for a missing resource up to 2025-11-25.
const RESOURCE_NOT_FOUND: i32 = -32002;

impl McpService {
    pub(super) async fn use_content(
        self: &Arc<Self>,
        method: ContentMethod,
        params: Value,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        let wrong = || RequestError::wrong_params(method.as_str());
        let Value::Object(mut params) = params else {
            return Err(wrong());
        };
        let answers = ClientAnswers::take(&mut params);
        if method == ContentMethod::GetSkill {
            // Asked for by those who found that the entry they have is stale.
            self.executor.manager().refresh_lists().await;
        }
        let request = self.find_content(method, &params).await.ok_or_else(wrong)?;
        self.run_content(request, answers, meta, context).await
    }

    /// Sends a method that only an extension can define to the one server that may have it.
    pub(super) async fn use_extension(
        self: &Arc<Self>,
        method: &str,
        mut params: Value,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        let refused = |why: &str| {
            let text = format!("unknown method '{}'{why}", escape(method));
            RequestError::new(RequestError::METHOD_NOT_FOUND, text)
        };
        if !may_be_extension_method(method) || !(params.is_object() || params.is_null()) {
            return Err(refused(""));
        }
        let declared = context.declared_extensions(meta).unwrap_or_default();
        let is_shared = |id: &str| may_have_requests(id) && declared.contains_key(id);
        let answers = params.as_object_mut().map(ClientAnswers::take);
        let request = self
            .executor
            .find_extension_request(method, &params, &self.scope, is_shared);
        match request {
            Ok(request) => {
                let answers = answers.unwrap_or_default();
                self.run_content(request, answers, meta, context).await
            }
            Err(ExtensionRequestError::NoOwner) => Err(refused("")),
            Err(error) => Err(refused(&format!(": {error}"))),
        }
    }

    async fn run_content(
        self: &Arc<Self>,
        request: ContentRequest,
        mut answers: ClientAnswers,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        let method = request.method();
        let permit = self.shared.calls.try_acquire();
        if !can_complete(&request) {
            let nothing = json!({ "completion": { "values": [] } });
            let nothing = self.finish_result(nothing, method, context);
            return Ok(MethodResult::Json(nothing));
        }
        let identity = RequestIdentity {
            method: method.as_str(),
            target: request.requested(),
            arguments: request.arguments().as_object(),
        };
        let resumed = self.resume_for_client(&mut answers, &identity, meta, context, None);
        let outcome = match resumed.await? {
            Some(outcome) => outcome,
            None => {
                let mut call = request.to_call();
                if permit.is_err() {
                    let (tool, limit) = (method.as_str().to_owned(), MAX_CALLS);
                    call = call.reject(ToolError::Overloaded { tool, limit });
                }
                self.execute_for_client(call, answers, &identity, meta, context, None)
                    .await
            }
        };
        let outcome = match outcome {
            ClientOutcome::Finished(outcome) => outcome,
            ClientOutcome::Interim(result) => return Ok(MethodResult::Json(result)),
        };
        let output = content_output(&request, outcome, context)?;
        let no_result =
            || RequestError::new(RequestError::INTERNAL_ERROR, "the server sent no result");
        let result = output.structured.ok_or_else(no_result)?;
        if output.is_extension_result {
            return Ok(self.extension_result(result, context.lifecycle));
        }
        let result = self.finish_result(result, method, context);
        Ok(MethodResult::Json(result))
    }

    /// If what is wanted is not offered, waits a few seconds for servers that are starting.
    async fn find_content(
        &self,
        method: ContentMethod,
        params: &Map<String, Value>,
    ) -> Option<ContentRequest> {
        let find = || self.executor.find_content(method, params, &self.scope);
        let request = find()?;
        if request.owner().is_some() {
            return Some(request);
        }
        self.wait_for_lists().await;
        find()
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
        if is_cacheable(method) {
            if !object.get("ttlMs").is_some_and(Value::is_u64) {
                object.insert("ttlMs".to_owned(), 0.into());
            }
            let scope = object.get("cacheScope").and_then(Value::as_str);
            if !matches!(scope, Some("public" | "private")) {
                object.insert("cacheScope".to_owned(), "private".into());
            }
        }
        self.add_server_info(object);
        result
    }
}

fn is_cacheable(method: ContentMethod) -> bool {
    use ContentMethod::{GetSkill, ReadDirectory, ReadResource};
    matches!(method, ReadResource | GetSkill | ReadDirectory)
}

/// False for a completion that the server doesn't support, which has no suggestions.
fn can_complete(request: &ContentRequest) -> bool {
    let owner = request.owner();
    request.method() != ContentMethod::Complete
        || owner.is_none_or(|owner| owner.content.access.complete.is_some())
}

fn content_output(
    request: &ContentRequest,
    mut outcome: ToolOutcome,
    context: &RequestContext<'_>,
) -> Result<ToolOutput, RequestError> {
    request.finish(&mut outcome);
    match outcome.result {
        Ok(output) => Ok(output),
        // A request that was one too many may find it the next time.
        Err(error) if request.owner().is_none() && error.kind() != ErrorKind::Overloaded => {
            Err(not_found(request.method(), request.requested(), context))
        }
        Err(error) => {
            let (method, tool) = (request.method(), &outcome.tool_name);
            Err(request_error(&error, method, tool, context))
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
        ContentMethod::GetSkill => ("Skill not found", json!({ "uri": wanted })),
        ContentMethod::ReadDirectory => ("Folder not found", json!({ "uri": wanted })),
        ContentMethod::CallExtension => {
            return RequestError::new(
                RequestError::METHOD_NOT_FOUND,
                format!("unknown method '{}'", escape(wanted)),
            );
        }
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
fn request_error(
    error: &ToolError,
    method: ContentMethod,
    tool: &str,
    context: &RequestContext<'_>,
) -> RequestError {
    let message = error.to_string();
    if let ToolError::Failed {
        answer: Some(answer),
        ..
    } = error
        && let ServerFailure::Rpc { code, data } = &**answer
    {
        let code = match i32::try_from(*code).unwrap_or(RequestError::INTERNAL_ERROR) {
            RESOURCE_NOT_FOUND
                if context.lifecycle.is_modern() || method != ContentMethod::ReadResource =>
            {
                RequestError::INVALID_PARAMS
            }
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
