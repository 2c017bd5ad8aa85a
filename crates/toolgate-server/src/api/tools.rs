//! Tools: listed, shown, called.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_core::{Origin, ToolCall, parse_duration};
use utoipa::IntoParams;

use crate::Gateway;
use crate::guard::Caller;
use crate::problem::Problem;

/// All tools this caller may use.
#[utoipa::path(get, path = "/api/tools", tag = "tools", responses((status = 200, description = "All tools", body = Vec<Object>)))]
pub(crate) async fn list(State(gateway): State<Gateway>, caller: Caller) -> Json<Value> {
    let executor = gateway.executor();
    let tools = executor.manager().tools();
    let visible = tools
        .iter()
        .map(|tool| tool.definition())
        .filter(|tool| executor.is_visible_in(tool, &caller.scope));
    Json(visible.map(|tool| json!(tool)).collect())
}

/// One tool.
#[utoipa::path(get, path = "/api/tools/{name}", tag = "tools", params(("name" = String, Path, description = "The tool's name")),
    responses((status = 200, description = "The tool", body = Object), (status = 404, description = "No such tool", body = Problem)))]
pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    match gateway.executor().find_in(&name, &caller.scope) {
        Ok(tool) => Ok(Json(json!(tool.definition()))),
        Err(error) => Err(Problem::not_found(match error.hint() {
            Some(hint) => format!("{error}. {hint}"),
            None => error.to_string(),
        })),
    }
}

/// How to call.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct CallQuery {
    /// Give up after this long, such as 500ms or 5s.
    timeout: Option<String>,
}

/// Runs a tool once; the body is its arguments.
#[utoipa::path(post, path = "/api/tools/{name}/call", tag = "tools",
    params(("name" = String, Path, description = "The tool's name"), CallQuery), request_body = Object,
    responses((status = 200, description = "The envelope, also when the tool failed", body = Object),
              (status = 400, description = "The body is no JSON object", body = Object)))]
pub(crate) async fn call(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(name): Path<String>,
    Query(query): Query<CallQuery>,
    body: Bytes,
) -> Result<Response, Problem> {
    let timeout = query.timeout.as_deref().map(parse_duration).transpose();
    let timeout: Option<Duration> = timeout
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("timeout: {error}")))?;
    let mut call = ToolCall::from_json(name, &body)
        .origin(Origin::Http)
        .scope(caller.scope);
    if let Some(timeout) = timeout {
        call = call.timeout(timeout);
    }
    let outcome = gateway.executor().execute(call).await;
    Ok(Json(outcome).into_response())
}
