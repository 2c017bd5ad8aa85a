//! Requests all pages of `tools/list`, within limits.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::sanitize;
use tracing::warn;

use super::session::{ClientSession, SessionError, SessionRequest};
use super::transport::UnreadableAnswer;

// Limits on one server's list, which a hostile server could make endless.
const MAX_PAGES: usize = 100;
pub(crate) const MAX_TOOLS: usize = 1000;
pub(crate) const MAX_LIST_BYTES: usize = 16 << 20;
const MAX_CURSOR_BYTES: usize = 4 << 10;
const METHOD_NOT_FOUND: i64 = -32601;

/// Returns the listed definitions. A list that exceeds a limit is cut, with a warning.
pub(crate) async fn list_tools(
    server: &str,
    session: &Arc<ClientSession>,
) -> Result<Vec<Value>, SessionError> {
    let mut tools = Vec::new();
    let mut bytes = 0;
    let mut cursors = HashSet::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let mut page = match session
            .request(SessionRequest::new("tools/list", &params))
            .await
        {
            Err(SessionError::Rpc(error)) if error.code == METHOD_NOT_FOUND && tools.is_empty() => {
                return Ok(tools); // The server offers only prompts or resources.
            }
            page => page?,
        };
        let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) else {
            let problem = "has no list of tools".to_owned();
            return Err(SessionError::Unreadable(UnreadableAnswer::Broken(problem)));
        };
        for tool in listed {
            bytes += sanitize::length(&tool);
            if tools.len() == MAX_TOOLS || bytes > MAX_LIST_BYTES as u64 {
                warn!(
                    server,
                    "lists more than {MAX_TOOLS} tools or {} MiB of them; the rest is left out",
                    MAX_LIST_BYTES >> 20
                );
                return Ok(tools);
            }
            tools.push(tool);
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            None | Some("") => return Ok(tools),
            Some(cursor) if cursor.len() > MAX_CURSOR_BYTES => {
                warn!(server, "sent an over-long page cursor; the list ends here");
                return Ok(tools);
            }
            Some(cursor) if cursors.insert(cursor.to_owned()) => {
                params = json!({ "cursor": cursor });
            }
            Some(_) => {
                warn!(
                    server,
                    "sent the same page cursor twice; the list ends here"
                );
                return Ok(tools);
            }
        }
    }
    warn!(
        server,
        "its list of tools has more than {MAX_PAGES} pages; the rest is left out"
    );
    Ok(tools)
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
            (MAX_TOOLS, 1)
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
