//! The API: one file per group of routes.

pub(crate) mod approvals;
pub(crate) mod calls;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod events;
mod extract;
pub(crate) mod health;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod metrics;
pub(crate) mod new_server;
pub(crate) mod openapi;
pub(crate) mod servers;
mod sse;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod turns;

use http::{Method, StatusCode, Uri};

use crate::problem::Problem;

pub(crate) async fn unknown(uri: Uri) -> Problem {
    Problem::not_found(format!(
        "there is no {} here; /openapi.json lists what there is",
        shown(&uri)
    ))
}

/// A route that is there, asked for in a way that it is not. Which ways there are stands in the header `allow`.
pub(crate) async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!(
            "{} does not go with {}; the header 'allow' says what does",
            toolgate_core::escape(method.as_str()),
            shown(&uri)
        ),
    )
}

pub(crate) fn shown(uri: &Uri) -> String {
    const LONGEST: usize = 200;
    let path = uri.path();
    toolgate_core::escape(&path[..path.floor_char_boundary(LONGEST)])
}
