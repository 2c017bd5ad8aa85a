//! Where calls are read: in the journal of this machine, or at a gateway.

use reqwest::StatusCode;
use serde_json::{Value, json};
use toolgate_journal::{Filter, JournalError, Reader};

use crate::exit::Exit;
use crate::remote::{self, Remote, Trouble};
use crate::say;

/// So many calls are asked for at once.
const PAGE: usize = 1000;

pub(super) enum Pages {
    Local(Reader),
    Remote(Remote),
}

#[derive(Debug, thiserror::Error)]
pub(in crate::commands) enum Unread {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Gateway(#[from] Trouble),
    #[error("{0}")]
    Other(String),
}

impl Unread {
    pub(in crate::commands) fn told(self) -> Exit {
        match self {
            Self::Gateway(trouble) => trouble.told(),
            Self::Journal(error) => {
                let is_usage = matches!(error, JournalError::NoId(_) | JournalError::Ambiguous(_));
                // Without its causes: they stand in its own words already.
                say::error(&anyhow::anyhow!(error.to_string()));
                if is_usage { Exit::Usage } else { Exit::Failure }
            }
            Self::Other(text) => {
                say::error(&anyhow::anyhow!(text));
                Exit::Usage
            }
        }
    }
}

impl Pages {
    /// As many calls as the filter wants, newest first, page by page.
    pub(super) async fn newest(&self, mut filter: Filter) -> Result<Vec<Value>, Unread> {
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

    async fn page(&self, filter: &Filter) -> Result<Vec<Value>, Unread> {
        match self {
            Self::Local(reader) => {
                let calls = reader.calls(filter)?;
                Ok(calls.iter().map(|call| json!(call)).collect())
            }
            Self::Remote(remote) => page_at(remote, filter).await,
        }
    }

    /// How many digits of the id of each call are enough to name it. A gateway does not tell: there, those of the list are told
    /// apart.
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

    pub(super) async fn call(&self, id: &str) -> Result<Option<Value>, Unread> {
        match self {
            Self::Local(reader) => Ok(super::find(reader, id)?.map(|call| json!(call))),
            Self::Remote(remote) => call_at(remote, id).await,
        }
    }
}

async fn page_at(remote: &Remote, filter: &Filter) -> Result<Vec<Value>, Unread> {
    let answer = remote.get(&["api", "calls"], &query(filter)).await?;
    match (answer.status, answer.body) {
        (StatusCode::OK, Value::Array(calls)) => Ok(calls),
        (status, body) => {
            let answer = remote::Answer { status, body };
            Err(Unread::Other(remote::detail(&answer)))
        }
    }
}

/// One call of a gateway with everything that is known of it.
pub(in crate::commands) async fn call_at(
    remote: &Remote,
    id: &str,
) -> Result<Option<Value>, Unread> {
    let mut id = id.to_owned();
    if id == super::LAST {
        let mut newest = Filter::default();
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
        _ => Err(Unread::Other(remote::detail(&answer))),
    }
}

fn query(filter: &Filter) -> Vec<(&'static str, String)> {
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
