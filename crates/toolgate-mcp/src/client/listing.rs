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

/// Returns the entries of the array `key` of all pages. A list that exceeds a limit is truncated,
/// with a warning. A server that doesn't know the method lists nothing.
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
        // ttlMs exists only since 2026-07-28; ignore it from older servers.
        if let Some(ttl) = page["ttlMs"].as_u64().filter(|_| session.is_modern()) {
            session.note_ttl(Duration::from_millis(ttl));
        }
        let Some(Value::Array(listed)) = page.get_mut(key).map(Value::take) else {
            let problem = format!("the page of {method} has no '{key}' array");
            return Err(SessionError::Unreadable(UnreadableAnswer::Broken(problem)));
        };
        for entry in listed {
            bytes += sanitize::length(&entry);
            if entries.len() == MAX_ENTRIES || bytes > MAX_LIST_BYTES as u64 {
                warn!(
                    server,
                    "{method} returned more than {MAX_ENTRIES} entries or {} MiB; ignoring the rest",
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
        "{method} returned more than {MAX_PAGES} pages; ignoring the rest"
    );
    Ok(entries)
}

fn next_cursor<'a>(server: &str, page: &'a Value, seen: &mut HashSet<String>) -> Option<&'a str> {
    let cursor = page.get("nextCursor")?.as_str()?;
    if cursor.is_empty() {
        return None;
    }
    if cursor.len() > MAX_CURSOR_BYTES {
        let limit = MAX_CURSOR_BYTES >> 10;
        warn!(
            server,
            "MCP server sent a page cursor of more than {limit} KiB; ignoring further pages"
        );
        return None;
    }
    if !seen.insert(cursor.to_owned()) {
        warn!(
            server,
            "MCP server repeated a page cursor; ignoring further pages"
        );
        return None;
    }
    Some(cursor)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::client::tests::scripted_server::{ScriptedReply, ScriptedServer};

    #[derive(Debug, PartialEq)]
    struct ListingResult {
        tools: usize,
        requests: usize,
    }

    async fn list(page: impl Fn(&Value) -> Value + Send + Sync + 'static) -> ListingResult {
        let (session, server) =
            ScriptedServer::session(move |_, params| ScriptedReply::Answers(page(params)));
        let tools = list_tools("fake", &session).await.unwrap();
        ListingResult {
            tools: tools.len(),
            requests: server.sent().len(),
        }
    }

    fn tools(count: usize) -> Value {
        Value::from(vec![json!({ "name": "x" }); count])
    }

    #[tokio::test]
    async fn all_pages_are_read() {
        let result = list(|params| match params["cursor"].as_str() {
            None => json!({ "tools": tools(2), "nextCursor": "a" }),
            Some("a") => json!({ "tools": tools(2), "nextCursor": "b" }),
            _ => json!({ "tools": tools(1), "nextCursor": null }),
        });
        let expected = ListingResult {
            tools: 5,
            requests: 3,
        };
        assert_eq!(result.await, expected);
    }

    #[tokio::test]
    async fn a_repeated_cursor_ends_the_list() {
        let result = list(|_| json!({ "tools": tools(1), "nextCursor": "same" }));
        let expected = ListingResult {
            tools: 2,
            requests: 2,
        };
        assert_eq!(result.await, expected);
    }

    #[tokio::test]
    async fn entries_pages_and_bytes_are_limited() {
        let many_entries = list(|_| json!({ "tools": tools(5000) }));
        let expected = ListingResult {
            tools: MAX_ENTRIES,
            requests: 1,
        };
        assert_eq!(many_entries.await, expected);

        let page = AtomicUsize::new(0);
        let many_pages = list(move |_| {
            let page = page.fetch_add(1, Ordering::Relaxed);
            json!({ "tools": tools(1), "nextCursor": page.to_string() })
        });
        let expected = ListingResult {
            tools: MAX_PAGES,
            requests: MAX_PAGES,
        };
        assert_eq!(many_pages.await, expected);

        let many_bytes = list(|_| {
            let large = json!({ "name": "b", "description": "x".repeat(MAX_LIST_BYTES) });
            json!({ "tools": [{ "name": "a" }, large] })
        });
        let expected = ListingResult {
            tools: 1,
            requests: 1,
        };
        assert_eq!(many_bytes.await, expected);
    }

    #[tokio::test]
    async fn a_server_without_tools_lists_none() {
        let (session, _server) = ScriptedServer::session(|_, _| {
            ScriptedReply::Refuses(METHOD_NOT_FOUND, "Method not found")
        });
        assert_eq!(list_tools("fake", &session).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_malformed_page_is_an_error() {
        let (session, _server) =
            ScriptedServer::session(|_, _| ScriptedReply::Answers(json!({ "tools": "none" })));
        let problem = "the page of tools/list has no 'tools' array".to_owned();
        assert_eq!(
            list_tools("fake", &session).await,
            Err(SessionError::Unreadable(UnreadableAnswer::Broken(problem)))
        );
    }
}
