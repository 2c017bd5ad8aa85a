//! Calls that wait for a person: listed, answered.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::extract::{Named, Sent, Unreadable};
use crate::Gateway;
use crate::approvals::Question;
use crate::guard::Caller;
use crate::problem::Problem;
use crate::sight::Sight;

/// A person's answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// True lets the call run, false refuses it.
    #[schema(example = true)]
    approve: bool,
}

/// Calls that wait for a person, the oldest first; only whoever may use everything sees them.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals",
    responses((status = 200, description = "Calls that wait", body = Vec<Question>)))]
pub(crate) async fn list(State(gateway): State<Gateway>, caller: Caller) -> Json<Vec<Question>> {
    Json(match Sight::new(&gateway, &caller).is_full() {
        true => gateway.parts().approvals.open(),
        false => Vec::new(),
    })
}

/// Lets a waiting call run, or refuses it.
#[utoipa::path(post, path = "/api/approvals/{id}", tag = "approvals", request_body = Answer,
    params(("id" = String, Path, description = "The id of the call", example = "0199f0c27b1a4fd2c39b5d0000000007")),
    responses((status = 204, description = "The call knows"),
              (status = 403, description = "The caller may not use everything", body = Problem),
              (status = 404, description = "No such call waits, or not any more", body = Problem),
              Unreadable,
              (status = 422, description = "The body has no `approve`", body = Problem)))]
pub(crate) async fn settle(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(id): Named,
    Sent(answer): Sent<Answer>,
) -> Result<StatusCode, Problem> {
    if !Sight::new(&gateway, &caller).is_full() {
        // Else a program could agree to its own calls.
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "only whoever may use all tools decides on calls that need approval",
        ));
    }
    match gateway.parts().approvals.settle(&id, answer.approve) {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found(
            "no such call waits for approval; it may have been decided, given up or timed out",
        )),
    }
}
