//! Requests all pages of a list, within limits.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::sanitize;
use tracing::warn;

use super::session::{ClientSession, SessionError, SessionRequest};
use super::transport::UnreadableAnswer;

// Limits on one server's list, which a hostile server could make endless.
const MAX_PAGES: usize = 100;
pub(crate) const MAX_ENTRIES: usize = 1000;
pub(crate) const MAX_LIST_BYTES: usize = 16 << 20;
const MAX_CURSOR_BYTES: usize = 4 << 10;
const METHOD_NOT_FOUND: i64 = -32601;

/// Lists the tools of a server; none if it has only prompts or resources.
pub(crate) async fn list_tools(
    server: &str,
    session: &Arc<ClientSession>,
) -> Result<Vec<Value>, SessionError> {
    list_all(server, session, "tools/list", "tools").await
}

/// Returns the entries of all pages, which stand under `key` in each. A list that exceeds a limit is
/// cut, with a warning. A server that doesn't know the method lists nothing.
pub(crate) async fn list_all(
    server: &str,
    session: &Arc<ClientSession>,
    method: &'static str,
    key: &str,
) -> Result<Vec<Value>, SessionError> {
    let mut entries = Vec::new();
    let mut bytes = 0;
    let mut cursors = HashSet::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let mut page = match session.request(SessionRequest::new(method, &params)).await {
            Err(SessionError::Rpc(error))
                if error.code == METHOD_NOT_FOUND && entries.is_empty() =>
            {
                return Ok(entries);
            }
            page => page?,
        };
        // Up to 2025-11-25 a list says nothing about its age.
        if let Some(ttl) = page["ttlMs"].as_u64().filter(|_| session.is_modern()) {
            session.note_ttl(Duration::from_millis(ttl));
        }
        let Some(Value::Array(listed)) = page.get_mut(key).map(Value::take) else {
            let problem = format!("has no list of {key}");
            return Err(SessionError::Unreadable(UnreadableAnswer::Broken(problem)));
        };
        for entry in listed {
            bytes += sanitize::length(&entry);
            if entries.len() == MAX_ENTRIES || bytes > MAX_LIST_BYTES as u64 {
                warn!(
                    server,
                    "{method} has more than {MAX_ENTRIES} entries or {} MiB of them; the rest is left out",
                    MAX_LIST_BYTES >> 20
                );
                return Ok(entries);
            }
            entries.push(entry);
        }
        match next_cursor(server, &page, &mut cursors) {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return Ok(entries),
        }
    }
    warn!(
        server,
        "{method} has more than {MAX_PAGES} pages; the rest is left out"
    );
    Ok(entries)
}

fn next_cursor<'a>(server: &str, page: &'a Value, seen: &mut HashSet<String>) -> Option<&'a str> {
    let cursor = page.get("nextCursor")?.as_str()?;
    let problem = match cursor {
        "" => return None,
        cursor if cursor.len() > MAX_CURSOR_BYTES => "an over-long page cursor",
        cursor if seen.insert(cursor.to_owned()) => return Some(cursor),
        _ => "the same page cursor twice",
    };
    warn!(server, "sent {problem}; the list ends here");
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::tests::scripted_server::{ScriptedReply, ScriptedServer};

    async fn listed(script: impl Fn(&Value) -> Value + Send + Sync + 'static) -> (usize, usize) {
        let (session, server) =
            ScriptedServer::session(move |_, params| ScriptedReply::Answers(script(params)));
        let tools = list_tools("house", &session).await.unwrap();
        (tools.len(), server.sent().len())
    }

    fn tools(count: usize) -> Value {
        Value::from(vec![json!({ "name": "x" }); count])
    }

    #[tokio::test]
    async fn all_pages_are_read_and_no_list_is_endless() {
        let three = |params: &Value| match params["cursor"].as_str() {
            None => json!({ "tools": tools(2), "nextCursor": "a" }),
            Some("a") => json!({ "tools": tools(2), "nextCursor": "b" }),
            _ => json!({ "tools": tools(1), "nextCursor": null }),
        };
        assert_eq!(listed(three).await, (5, 3));
        assert_eq!(
            listed(|_| json!({ "tools": tools(1), "nextCursor": "same" })).await,
            (2, 2)
        );
        assert_eq!(
            listed(|_| json!({ "tools": tools(5000) })).await,
            (MAX_ENTRIES, 1)
        );
        let endless = std::sync::atomic::AtomicUsize::new(0);
        let endless = move |_: &Value| {
            let page = endless.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            json!({ "tools": tools(1), "nextCursor": page.to_string() })
        };
        assert_eq!(listed(endless).await, (MAX_PAGES, MAX_PAGES));
        let huge = |_: &Value| json!({ "tools": [{ "name": "a" }, { "name": "b", "description": "x".repeat(MAX_LIST_BYTES) }] });
        assert_eq!(listed(huge).await, (1, 1));
    }

    #[tokio::test]
    async fn a_server_without_tools_has_none_and_a_broken_list_is_an_error() {
        let (session, _server) = ScriptedServer::session(|_, _| {
            ScriptedReply::Refuses(METHOD_NOT_FOUND, "Method not found")
        });
        assert_eq!(list_tools("house", &session).await, Ok(Vec::new()));
        let (session, _server) =
            ScriptedServer::session(|_, _| ScriptedReply::Answers(json!({ "tools": "none" })));
        assert!(matches!(
            list_tools("house", &session).await,
            Err(SessionError::Unreadable(_))
        ));
    }
}
