//! Calls that are checked, and not made.

use axum::Json;
use axum::extract::{Request, State};
use serde::Serialize;
use serde_json::Value;
use toolgate_core::{Decision, ToolCall, ToolError, Violation};
use utoipa::ToSchema;

use super::extract::{BodyError, Named, expect_json, read};
use super::tools::no_such_tool;
use crate::Gateway;
use crate::guard::Caller;
use crate::problem::Problem;

/// What a call with these arguments would be.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Check {
    /// True if the tool would run.
    #[schema(example = true)]
    valid: bool,
    /// The arguments it would get.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false, example = json!({ "text": "hello" }))]
    executed: Option<Value>,
    /// Parameters that would be renamed: from, to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = json!([]))]
    renamed: Option<Vec<(String, String)>>,
    /// Parameters that would count as not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = json!([]))]
    dropped: Option<Vec<String>>,
    /// True if a person would be asked first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = false)]
    needs_approval: Option<bool>,
    /// Why it would not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// The same, parameter by parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    violations: Option<Vec<Wrong>>,
}

/// One thing that is wrong with arguments.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Wrong {
    /// The path of the parameter: `level`, `o.inner.depth`, `a[1]`; `arguments` for all of them.
    #[schema(example = "level")]
    parameter: String,
    /// What is wrong with it.
    #[schema(example = "must be at most 100")]
    message: String,
}

impl From<&Violation> for Wrong {
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

/// Checks arguments as a call would, and runs nothing.
#[utoipa::path(post, path = "/api/tools/{name}/check", tag = "tools",
    params(("name" = String, Path, description = "The tool's name, percent-encoded", example = "echo")),
    request_body(content = Object, description = "The arguments", content_type = "application/json", example = json!({ "text": "hello" })),
    responses((status = 200, description = "Whether a call would run, and with which arguments", body = Check),
              (status = 400, description = "The path can not be read", body = Problem),
              (status = 404, description = "No such tool", body = Problem),
              (status = 413, description = "The arguments are too large", body = Problem),
              (status = 415, description = "The body is not JSON", body = Problem)))]
pub(crate) async fn check(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(name): Named,
    request: Request,
) -> Result<Json<Check>, Problem> {
    expect_json(request.headers())?;
    let executor = gateway.executor();
    if let Err(error) = executor.find_in(&name, &caller.scope) {
        return Err(no_such_tool(&error));
    }
    let limit = executor.rules().limits.max_arguments;
    let body = read(request.into_body(), limit).await;
    let body = body.map_err(BodyError::problem)?;
    let call = ToolCall::from_json(name, &body).scope(caller.scope);
    Ok(Json(match executor.rehearse(&call) {
        Ok(rehearsal) => Check {
            valid: true,
            executed: Some(rehearsal.arguments.as_value().clone()),
            renamed: Some(rehearsal.renamed),
            dropped: Some(rehearsal.arguments.dropped().to_vec()),
            needs_approval: Some(rehearsal.decision == Decision::Ask),
            ..Check::default()
        },
        Err(error) => Check {
            error: Some(error.to_string()),
            violations: Some(match &error {
                ToolError::InvalidArguments { violations, .. } => {
                    violations.iter().map(Wrong::from).collect()
                }
                _ => Vec::new(),
            }),
            ..Check::default()
        },
    }))
}
