//! Lists the questions that servers ask, and answers them.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_mcp::{ElicitationAnswer, ElicitationError};
use utoipa::ToSchema;

use super::check::ArgumentProblem;
use super::extract::{JsonBody, PathName, UnreadableResponses};
use crate::Gateway;
use crate::guard::Caller;
use crate::problem::Problem;
use crate::questions::{AnswerError, ServerQuestion};

/// An answer to a server's question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuestionAnswer {
    /// `accept` sends the values, or says that the page was opened. `decline` says no,
    /// and `cancel` that nobody decided.
    action: QuestionAction,
    /// The values by field, for `accept`.
    #[serde(default)]
    #[schema(value_type = Object, required = false, example = json!({ "room": "kitchen" }))]
    content: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QuestionAction {
    Accept,
    Decline,
    Cancel,
}

/// What is wrong with an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AnswerCheck {
    /// The HTTP status code.
    #[schema(example = 422)]
    status: u16,
    /// What is wrong, in one sentence.
    #[schema(example = "missing 'room'")]
    detail: String,
    /// What is wrong, field by field.
    violations: Vec<ArgumentProblem>,
}

/// Questions of servers that wait for an answer, the oldest first. Callers with the right to
/// approve see all of them, others those that are asked during their own calls.
#[utoipa::path(get, path = "/api/questions", tag = "approvals",
    responses((status = 200, description = "Questions that wait", body = Vec<ServerQuestion>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> Json<Vec<ServerQuestion>> {
    let questions = &gateway.parts.questions;
    Json(questions.open(&questions.viewer(&caller)))
}

/// Answers a server's question.
#[utoipa::path(post, path = "/api/questions/{id}", tag = "approvals", request_body = QuestionAnswer,
    params(("id" = String, Path, description = "The id of the question", example = "12")),
    responses((status = 204, description = "The answer was delivered"),
              (status = 404, description = "No such question waits for this caller", body = Problem),
              UnreadableResponses,
              (status = 422, description = "The values don't match the question, which stays open (an answer check), or the body has no `action` (a problem)", content((AnswerCheck = "application/json"), (Problem = "application/problem+json")))))]
pub(crate) async fn answer(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(id): PathName,
    JsonBody(answer): JsonBody<QuestionAnswer>,
) -> Result<Response, Problem> {
    let questions = &gateway.parts.questions;
    let settled = match answer.action {
        QuestionAction::Accept => questions.accept(&id, answer.content, &caller),
        QuestionAction::Decline => questions.settle(&id, ElicitationAnswer::Decline, &caller),
        QuestionAction::Cancel => questions.settle(&id, ElicitationAnswer::Cancel, &caller),
    };
    match settled {
        Ok(()) => Ok(StatusCode::NO_CONTENT.into_response()),
        Err(AnswerError::Gone) => Err(Problem::not_found(
            "no such question is waiting; it may have been answered, withdrawn or timed out",
        )),
        Err(AnswerError::Invalid(error)) => {
            let violations = match &error {
                ElicitationError::Content { violations } => {
                    violations.iter().map(ArgumentProblem::from).collect()
                }
                _ => Vec::new(),
            };
            let check = AnswerCheck {
                status: StatusCode::UNPROCESSABLE_ENTITY.as_u16(),
                detail: error.to_string(),
                violations,
            };
            Ok((StatusCode::UNPROCESSABLE_ENTITY, Json(check)).into_response())
        }
    }
}
