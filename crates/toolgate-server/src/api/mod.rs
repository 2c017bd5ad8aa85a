//! The HTTP API, one file per group of routes.

pub(crate) mod approvals;
pub(crate) mod calls;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod content;
pub(crate) mod events;
mod extract;
pub(crate) mod health;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod metrics;
pub(crate) mod new_server;
pub(crate) mod openapi;
pub(crate) mod questions;
pub(crate) mod servers;
mod sse;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod tasks;
pub(crate) mod tools;
pub(crate) mod turns;

use http::{Method, StatusCode, Uri};

use crate::problem::Problem;

pub(crate) async fn unknown(uri: Uri) -> Problem {
    Problem::not_found(format!(
        "{} was not found; /openapi.json lists all paths",
        escaped_path(&uri)
    ))
}

// The router puts the allowed methods into the header `allow`.
pub(crate) async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!(
            "{} is not allowed for {}; the header 'allow' lists the methods that are",
            toolgate_core::text::escape(method.as_str()),
            escaped_path(&uri)
        ),
    )
}

pub(crate) fn escaped_path(uri: &Uri) -> String {
    const MAX_PATH_BYTES: usize = 200;
    let path = uri.path();
    toolgate_core::text::escape(&path[..path.floor_char_boundary(MAX_PATH_BYTES)])
}
