//! The API: one file per group of routes.

pub(crate) mod health;
pub(crate) mod login;
pub(crate) mod openapi;
pub(crate) mod tools;

use http::Uri;

use crate::problem::Problem;

/// Whatever is no route.
pub(crate) async fn unknown(uri: Uri) -> Problem {
    let path = toolgate_core::escape(uri.path());
    Problem::not_found(format!(
        "there is no {path} here; /openapi.json lists what there is"
    ))
}
