//! Lists calls that wait for approval, and approves or refuses them.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::extract::{JsonBody, PathName, UnreadableResponses};
use crate::Gateway;
use crate::Right;
use crate::approvals::{ApprovalQuestion, DecisionError};
use crate::guard::Caller;
use crate::problem::Problem;

/// A person's decision about a call.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Answer)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalAnswer {
    /// True lets the call run, false refuses it.
    #[schema(example = true)]
    approve: bool,
}

/// Calls that wait for approval, the oldest first. Only callers with the right to approve see them.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals",
    responses((status = 200, description = "Calls that wait", body = Vec<ApprovalQuestion>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> Json<Vec<ApprovalQuestion>> {
    Json(match caller.rights.approve {
        true => gateway.parts.approvals.open(),
        false => Vec::new(),
    })
}

/// Approves or refuses a waiting call. A token never approves a call that was made with it.
#[utoipa::path(post, path = "/api/approvals/{id}", tag = "approvals", request_body = ApprovalAnswer,
    params(("id" = String, Path, description = "The id of the call", example = "0199f0c27b1a4fd2c39b5d0000000007")),
    responses((status = 204, description = "The decision was delivered"),
              (status = 403, description = "The caller does not have the right to approve, or the call was made with its token", body = Problem),
              (status = 404, description = "No such call is waiting", body = Problem),
              UnreadableResponses,
              (status = 422, description = "The body has no `approve`", body = Problem)))]
pub(crate) async fn decide(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(id): PathName,
    JsonBody(answer): JsonBody<ApprovalAnswer>,
) -> Result<StatusCode, Problem> {
    caller.require(Right::Approve)?;
    let approvals = &gateway.parts.approvals;
    let decided = approvals.decide(&id, answer.approve, &caller);
    decided.map_err(|error| match error {
        DecisionError::Gone => Problem::not_found(
            "no such call is waiting for approval; it may have been decided, cancelled or timed out",
        ),
        DecisionError::OwnCall => Problem::forbidden(
            "a token can't approve a call that was made with it; use a browser that is signed in, or another token with \
             the right 'approve'",
        ),
    })?;
    Ok(StatusCode::NO_CONTENT)
}
