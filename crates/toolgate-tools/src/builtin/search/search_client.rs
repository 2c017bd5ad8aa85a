//! [`SearchClient`]: sends search requests over HTTP, bounded in time and size. Every error
//! says what to do.

use std::error::Error;
use std::time::Duration;

use reqwest::{Client, Request, Response, StatusCode};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use toolgate_core::{ToolError, error_chain};

use super::SearchBackend;

const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_BODY_BYTES: usize = 1 << 20;
const NO_CLIENT: &str =
    "can't create an HTTPS client; are the machine's CA certificates installed?";

#[derive(Debug)]
pub(super) struct SearchError {
    reason: String,
    details: Option<String>,
}

impl SearchError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            details: None,
        }
    }

    // The cause is for the operator: addresses and error numbers don't belong in a spoken sentence.
    fn with_cause(reason: impl Into<String>, cause: &dyn Error) -> Self {
        Self {
            reason: reason.into(),
            details: Some(error_chain(cause)),
        }
    }

    pub(super) fn into_tool_error(self, tool: &str) -> ToolError {
        let error = ToolError::unavailable(tool, self.reason);
        match self.details {
            Some(details) => error.with_details(details),
            None => error,
        }
    }
}

// Created on first use, because reading the machine's certificates takes longer than many programs
// run.
#[derive(Default)]
pub(super) struct SearchClient(OnceCell<Client>);

impl SearchClient {
    pub(super) async fn fetch_json(
        &self,
        backend: SearchBackend,
        request: Request,
    ) -> Result<Value, SearchError> {
        let client = self
            .0
            .get_or_try_init(|| build_client(toolgate_net::is_local_url(request.url())))
            .await?;
        let name = backend.name();
        match timeout(TIMEOUT, fetch(client, backend, &request)).await {
            Ok(body) => parse(name, &body?),
            Err(_) => Err(SearchError::new(format!(
                "{name} did not answer within {} s; try again later",
                TIMEOUT.as_secs()
            ))),
        }
    }
}

async fn build_client(is_local: bool) -> Result<Client, SearchError> {
    // Building a client reads certificates from disk, which blocks.
    let made = tokio::task::spawn_blocking(move || {
        toolgate_net::client_builder(is_local)
            .build()
            .map_err(|error| SearchError::with_cause(NO_CLIENT, &error))
    });
    made.await
        .unwrap_or_else(|error| Err(SearchError::with_cause(NO_CLIENT, &error)))
}

async fn fetch(
    client: &Client,
    backend: SearchBackend,
    request: &Request,
) -> Result<Vec<u8>, SearchError> {
    let name = backend.name();
    let to_error = |error| transport_error(name, error);
    // Rebuilt through the client, which turns a login in the address into a header.
    let request = client
        .get(request.url().clone())
        .headers(request.headers().clone());
    let mut response = request.send().await.map_err(to_error)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(to_error)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BODY_BYTES {
            let reason = format!(
                "{name} answered with more than {} MiB",
                MAX_BODY_BYTES >> 20
            );
            return Err(SearchError::new(reason));
        }
    }
    match rejection_reason(backend, &response, &body) {
        Some(reason) => Err(SearchError {
            reason,
            details: Some(format!("HTTP status {}", response.status())),
        }),
        None => Ok(body),
    }
}

fn transport_error(name: &str, error: reqwest::Error) -> SearchError {
    let reason = if error.is_connect() {
        format!("{name} could not be reached; check the network and `search.url`")
    } else {
        format!("the connection to {name} was lost; try again")
    };
    SearchError::with_cause(reason, &error.without_url())
}

fn rejection_reason(backend: SearchBackend, response: &Response, body: &[u8]) -> Option<String> {
    let (name, status) = (backend.name(), response.status());
    // Brave answers a wrong key with status 422 and this word.
    let wrong_key = status == StatusCode::UNPROCESSABLE_ENTITY
        && String::from_utf8_lossy(body).contains("SUBSCRIPTION_TOKEN_INVALID");
    match (backend, status.as_u16()) {
        _ if status.is_success() => None,
        _ if wrong_key => Some(format!(
            "{name} does not accept the key; check `search.key`"
        )),
        (SearchBackend::Searxng, 403) => Some(format!(
            "the {name} instance does not return JSON; add `json` to `search.formats` in its settings.yml and restart it"
        )),
        (SearchBackend::Brave, 401 | 403) => Some(format!(
            "{name} does not accept the key; check `search.key`"
        )),
        (_, 401 | 403) => Some(format!(
            "{name} refuses to answer; if it requires a login, write `search.url` like https://name:password@host"
        )),
        (_, 429) => Some(format!(
            "{name} received too many requests; wait a while and try again"
        )),
        (_, 300..=399) => Some(format!(
            "{name} has moved, and redirects are not followed; set `search.url` to its new address"
        )),
        (_, 500..) => Some(format!("{name} has an internal problem; try again later")),
        _ => Some(format!(
            "{name} did not understand the request; check `search.url`"
        )),
    }
}

fn parse(name: &str, body: &[u8]) -> Result<Value, SearchError> {
    serde_json::from_slice(body).map_err(|error| {
        let what = if body.trim_ascii_start().starts_with(b"<") {
            "a web page instead of JSON"
        } else {
            "something other than JSON"
        };
        SearchError::with_cause(
            format!("{name} answered with {what}; check `search.url`"),
            &error,
        )
    })
}
