//! Calls that wait for a person: listed, answered.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::extract::{Named, Sent, Unreadable};
use crate::Gateway;
use crate::Right;
use crate::approvals::{Question, SettleError};
use crate::guard::Caller;
use crate::problem::Problem;

/// A person's answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// True lets the call run, false refuses it.
    #[schema(example = true)]
    approve: bool,
}

/// Calls that wait for a person, the oldest first; only whoever has the right to approve sees them.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals",
    responses((status = 200, description = "Calls that wait", body = Vec<Question>)))]
pub(crate) async fn list(State(gateway): State<Gateway>, caller: Caller) -> Json<Vec<Question>> {
    Json(match caller.rights.approve {
        true => gateway.parts().approvals.open(),
        false => Vec::new(),
    })
}

/// Lets a waiting call run, or refuses it. A token never approves a call that was made with it.
#[utoipa::path(post, path = "/api/approvals/{id}", tag = "approvals", request_body = Answer,
    params(("id" = String, Path, description = "The id of the call", example = "0199f0c27b1a4fd2c39b5d0000000007")),
    responses((status = 204, description = "The call knows"),
              (status = 403, description = "The caller does not have the right to approve, or the call was made with its token", body = Problem),
              (status = 404, description = "No such call waits, or not any more", body = Problem),
              Unreadable,
              (status = 422, description = "The body has no `approve`", body = Problem)))]
pub(crate) async fn settle(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(id): Named,
    Sent(answer): Sent<Answer>,
) -> Result<StatusCode, Problem> {
    caller.expect(Right::Approve)?;
    let settled = gateway
        .parts()
        .approvals
        .settle(&id, answer.approve, &caller);
    settled.map_err(|error| match error {
        SettleError::Gone => Problem::not_found(
            "no such call waits for approval; it may have been decided, given up or timed out",
        ),
        SettleError::OwnCall => Problem::new(
            StatusCode::FORBIDDEN,
            "a token never approves a call that was made with it; a person in a browser that is signed in does, or another \
             token with the right 'approve'",
        ),
    })?;
    Ok(StatusCode::NO_CONTENT)
}
