//! Reads calls from the local journal or from a gateway.

use reqwest::StatusCode;
use serde_json::{Value, json};
use toolgate_journal::{JournalError, JournalFilter, JournalReader};

use crate::exit::Exit;
use crate::output;
use crate::remote::{self, RemoteError, RemoteGateway};

// Calls per query.
const PAGE: usize = 1000;

pub(super) enum CallPages {
    Local(JournalReader),
    Remote(RemoteGateway),
}

#[derive(Debug, thiserror::Error)]
pub(in crate::commands) enum CallReadError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Gateway(#[from] RemoteError),
    #[error("{0}")]
    Other(String),
}

impl CallReadError {
    pub(in crate::commands) fn report(self) -> Exit {
        match self {
            Self::Gateway(error) => error.report(),
            Self::Journal(error) => {
                let is_usage = matches!(
                    error,
                    JournalError::InvalidId(_) | JournalError::Ambiguous(_)
                );
                // Without its causes, which its message already includes.
                output::print_error_text(&error.to_string());
                if is_usage { Exit::Usage } else { Exit::Failure }
            }
            Self::Other(text) => {
                output::print_error_text(&text);
                Exit::Usage
            }
        }
    }
}

impl CallPages {
    pub(super) async fn newest(
        &self,
        mut filter: JournalFilter,
    ) -> Result<Vec<Value>, CallReadError> {
        let wanted = filter.limit;
        let mut calls: Vec<Value> = Vec::new();
        while calls.len() < wanted {
            filter.limit = (wanted - calls.len()).min(PAGE);
            let page = self.page(&filter).await?;
            let is_last = page.len() < filter.limit;
            calls.extend(page);
            filter.before = calls
                .last()
                .and_then(|call| Some(call["id"].as_str()?.to_owned()));
            if is_last {
                break;
            }
        }
        Ok(calls)
    }

    async fn page(&self, filter: &JournalFilter) -> Result<Vec<Value>, CallReadError> {
        match self {
            Self::Local(reader) => {
                let calls = reader.calls(filter)?;
                Ok(calls.iter().map(|call| json!(call)).collect())
            }
            Self::Remote(remote) => page_at(remote, filter).await,
        }
    }

    /// How many digits identify each call. A gateway doesn't report that, so there only
    /// the listed ids are compared.
    pub(super) fn distinct_digits(&self, calls: &[Value]) -> Vec<usize> {
        let ids: Vec<&str> = calls
            .iter()
            .filter_map(|call| call["id"].as_str())
            .collect();
        let known = match self {
            Self::Local(reader) => reader.distinct_digits(&ids).ok(),
            Self::Remote(_) => None,
        };
        known.unwrap_or_else(|| super::lines::distinct_digits(&ids))
    }

    pub(super) async fn call(&self, id: &str) -> Result<Option<Value>, CallReadError> {
        match self {
            Self::Local(reader) => Ok(super::find(reader, id)?.map(|call| json!(call))),
            Self::Remote(remote) => call_at(remote, id).await,
        }
    }
}

async fn page_at(
    remote: &RemoteGateway,
    filter: &JournalFilter,
) -> Result<Vec<Value>, CallReadError> {
    let answer = remote.get(&["api", "calls"], &query(filter)).await?;
    match (answer.status, answer.body) {
        (StatusCode::OK, Value::Array(calls)) => Ok(calls),
        (status, body) => {
            let answer = remote::GatewayResponse { status, body };
            Err(CallReadError::Other(remote::problem_detail(&answer)))
        }
    }
}

pub(in crate::commands) async fn call_at(
    remote: &RemoteGateway,
    id: &str,
) -> Result<Option<Value>, CallReadError> {
    let mut id = id.to_owned();
    if id == super::LAST {
        let mut newest = JournalFilter::default();
        newest.limit = 1;
        let calls = page_at(remote, &newest).await?;
        match calls.first().and_then(|call| call["id"].as_str()) {
            Some(newest) => newest.clone_into(&mut id),
            None => return Ok(None),
        }
    }
    let answer = remote.get(&["api", "calls", &id], &[]).await?;
    match answer.status {
        StatusCode::OK => Ok(Some(answer.body)),
        StatusCode::NOT_FOUND => Ok(None),
        _ => Err(CallReadError::Other(remote::problem_detail(&answer))),
    }
}

fn query(filter: &JournalFilter) -> Vec<(&'static str, String)> {
    let texts = [
        ("tool", filter.tool.clone()),
        ("server", filter.server.clone()),
        ("origin", filter.origin.clone()),
        ("caller", filter.caller.clone()),
        ("outcome", filter.outcome.clone()),
        ("search", filter.search.clone()),
        ("since", filter.since.map(|time| time.to_string())),
        ("until", filter.until.map(|time| time.to_string())),
        ("before", filter.before.clone()),
        ("limit", Some(filter.limit.to_string())),
    ];
    let given = texts.into_iter();
    given
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}
