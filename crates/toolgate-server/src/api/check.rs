//! Checks a call without making it.

use axum::Json;
use axum::extract::{Request, State};
use serde::Serialize;
use serde_json::Value;
use toolgate_core::{PolicyDecision, ToolCall, ToolError, Violation};
use utoipa::ToSchema;

use super::extract::{PathName, ReadBodyError, expect_json, read_body};
use super::tools::no_such_tool;
use crate::Gateway;
use crate::guard::Caller;
use crate::problem::Problem;

/// What a call with these arguments would do.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Check)]
pub(crate) struct CheckResponse {
    /// True if the tool would run.
    #[schema(example = true)]
    valid: bool,
    /// The arguments that the tool would get.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false, example = json!({ "text": "hello" }))]
    executed: Option<Value>,
    /// Parameters that would be renamed, as pairs of old and new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = json!([]))]
    renamed: Option<Vec<(String, String)>>,
    /// Parameters that would be ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = json!([]))]
    dropped: Option<Vec<String>>,
    /// True if a person would have to approve the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = false)]
    needs_approval: Option<bool>,
    /// Why the call would be rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// What is wrong, parameter by parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    violations: Option<Vec<ArgumentProblem>>,
}

/// A problem with one argument.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Violation)]
pub(crate) struct ArgumentProblem {
    /// The path of the parameter, such as `level`, `o.inner.depth` or `a[1]`; `arguments` if the
    /// problem is with the arguments as a whole.
    #[schema(example = "level")]
    parameter: String,
    /// What is wrong with it.
    #[schema(example = "must be at most 100")]
    message: String,
}

impl From<&Violation> for ArgumentProblem {
    fn from(violation: &Violation) -> Self {
        let parameter = violation.parameter();
        let text = violation.to_string();
        let message = match text.strip_prefix(&format!("'{parameter}' ")) {
            Some(rest) => rest.to_owned(),
            None if text == format!("missing '{parameter}'") => "is missing".to_owned(),
            None => text,
        };
        Self {
            parameter: parameter.to_owned(),
            message,
        }
    }
}

/// Checks arguments as a call would, without running the tool.
#[utoipa::path(post, path = "/api/tools/{name}/check", tag = "tools",
    params(("name" = String, Path, description = "The tool's name, percent-encoded", example = "echo")),
    request_body(content = Object, description = "The arguments", content_type = "application/json", example = json!({ "text": "hello" })),
    responses((status = 200, description = "Whether a call would run, and with which arguments", body = CheckResponse),
              (status = 400, description = "The path can't be read", body = Problem),
              (status = 404, description = "No such tool", body = Problem),
              (status = 413, description = "The arguments are too large", body = Problem),
              (status = 415, description = "The body is not JSON", body = Problem)))]
pub(crate) async fn check(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(name): PathName,
    request: Request,
) -> Result<Json<CheckResponse>, Problem> {
    expect_json(request.headers())?;
    let executor = gateway.executor();
    if let Err(error) = executor.find_in_scope(&name, &caller.scope) {
        return Err(no_such_tool(&error));
    }
    let limit = executor.rules().limits.max_arguments;
    let body = read_body(request.into_body(), limit).await;
    let body = body.map_err(ReadBodyError::problem)?;
    let call = ToolCall::from_json(name, &body).scope(caller.scope);
    Ok(Json(match executor.dry_run(&call) {
        Ok(rehearsal) => CheckResponse {
            valid: true,
            executed: Some(rehearsal.arguments.as_value().clone()),
            renamed: Some(rehearsal.renamed),
            dropped: Some(rehearsal.arguments.dropped().to_vec()),
            needs_approval: Some(rehearsal.decision == PolicyDecision::Ask),
            ..CheckResponse::default()
        },
        Err(error) => CheckResponse {
            error: Some(error.to_string()),
            violations: Some(match &error {
                ToolError::InvalidArguments { violations, .. } => {
                    violations.iter().map(ArgumentProblem::from).collect()
                }
                _ => Vec::new(),
            }),
            ..CheckResponse::default()
        },
    }))
}
