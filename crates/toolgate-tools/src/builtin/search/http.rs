//! One question over HTTP, bounded in time and size. Whatever goes wrong becomes a sentence that says what to do.

use std::error::Error;
use std::time::Duration;

use reqwest::{Client, Request, Response, StatusCode};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use toolgate_core::ToolError;

use super::SearchBackend;

const TIMEOUT: Duration = Duration::from_secs(10);
const LARGEST: usize = 1 << 20;
const NO_CLIENT: &str =
    "no HTTPS client could be made; are the machine's CA certificates installed?";

#[derive(Debug)]
pub(super) struct Outage {
    reason: String,
    details: Option<String>,
}

impl Outage {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            details: None,
        }
    }

    /// The cause is for the operator: addresses and error numbers do not belong into a sentence.
    fn because(reason: impl Into<String>, cause: &dyn Error) -> Self {
        let mut causes = cause.to_string();
        let mut next = cause.source();
        while let Some(cause) = next {
            causes = format!("{causes}: {cause}");
            next = cause.source();
        }
        Self {
            reason: reason.into(),
            details: Some(causes),
        }
    }

    pub(super) fn of(self, tool: &str) -> ToolError {
        let error = ToolError::unavailable(tool, self.reason);
        match self.details {
            Some(details) => error.with_details(details),
            None => error,
        }
    }
}

/// A client that is made when it is first needed: reading the machine's certificates takes longer than many programs run.
#[derive(Default)]
pub(super) struct Http(OnceCell<Client>);

impl Http {
    pub(super) async fn json(
        &self,
        backend: SearchBackend,
        request: Request,
    ) -> Result<Value, Outage> {
        let client = self
            .0
            .get_or_try_init(|| client(toolgate_net::is_this_machine(request.url())))
            .await?;
        let name = backend.name();
        match timeout(TIMEOUT, fetch(client, backend, &request)).await {
            Ok(body) => parse(name, &body?),
            Err(_) => Err(Outage::new(format!(
                "{name} did not answer within {} s; try again later",
                TIMEOUT.as_secs()
            ))),
        }
    }
}

async fn client(is_local: bool) -> Result<Client, Outage> {
    let made = tokio::task::spawn_blocking(move || {
        toolgate_net::client_builder(is_local)
            .build()
            .map_err(|error| Outage::because(NO_CLIENT, &error))
    });
    made.await
        .unwrap_or_else(|error| Err(Outage::because(NO_CLIENT, &error)))
}

async fn fetch(
    client: &Client,
    backend: SearchBackend,
    request: &Request,
) -> Result<Vec<u8>, Outage> {
    let name = backend.name();
    let broken = |error| broken(name, error);
    // Made anew by the client, which turns a login in the address into a header.
    let asked = client
        .get(request.url().clone())
        .headers(request.headers().clone());
    let mut response = asked.send().await.map_err(broken)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > LARGEST {
            let reason = format!("{name} answered with more than {} MiB", LARGEST >> 20);
            return Err(Outage::new(reason));
        }
    }
    match refusal(backend, &response, &body) {
        Some(reason) => Err(Outage {
            reason,
            details: Some(format!("HTTP status {}", response.status())),
        }),
        None => Ok(body),
    }
}

fn broken(name: &str, error: reqwest::Error) -> Outage {
    let reason = if error.is_connect() {
        format!("{name} could not be reached; check the network and `search.url`")
    } else {
        format!("the connection to {name} broke off; try again")
    };
    Outage::because(reason, &error.without_url())
}

fn refusal(backend: SearchBackend, response: &Response, body: &[u8]) -> Option<String> {
    let (name, status) = (backend.name(), response.status());
    // Brave answers a wrong key with 422 and this word.
    let wrong_key = status == StatusCode::UNPROCESSABLE_ENTITY
        && String::from_utf8_lossy(body).contains("SUBSCRIPTION_TOKEN_INVALID");
    match (backend, status.as_u16()) {
        _ if status.is_success() => None,
        _ if wrong_key => Some(format!(
            "{name} does not accept the key; check `search.key`"
        )),
        (SearchBackend::Searxng, 403) => Some(format!(
            "the {name} instance does not give JSON; add `json` to `search.formats` in its settings.yml and restart it"
        )),
        (SearchBackend::Brave, 401 | 403) => Some(format!(
            "{name} does not accept the key; check `search.key`"
        )),
        (_, 401 | 403) => Some(format!(
            "{name} refuses to answer; if it wants a login, write `search.url` like https://name:password@host"
        )),
        (_, 429) => Some(format!(
            "{name} had too many questions in a short time; wait a while before the next"
        )),
        (_, 300..=399) => Some(format!(
            "{name} has moved, and redirects are not followed; set `search.url` to its new address"
        )),
        (_, 500..) => Some(format!("{name} has a problem of its own; try again later")),
        _ => Some(format!(
            "{name} did not understand the question; check `search.url`"
        )),
    }
}

fn parse(name: &str, body: &[u8]) -> Result<Value, Outage> {
    serde_json::from_slice(body).map_err(|error| {
        let what = if body.trim_ascii_start().starts_with(b"<") {
            "a web page instead of JSON"
        } else {
            "something that is no JSON"
        };
        Outage::because(
            format!("{name} answered with {what}; check `search.url`"),
            &error,
        )
    })
}
