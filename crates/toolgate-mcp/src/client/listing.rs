//! `tools/list`: all pages, within bounds.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tracing::warn;

use super::session::{Failure, Request, Session};
use super::transport::Lost;

/// Bounds of one server's list. Nobody needs more, and a hostile server gets no further.
const PAGES: usize = 100;
const TOOLS: usize = 1000;
const BYTES: usize = 16 << 20;
const METHOD_NOT_FOUND: i64 = -32601;

/// Asks for every tool, as raw as the server sent them.
pub(crate) async fn list(server: &str, session: &Arc<Session>) -> Result<Vec<Value>, Failure> {
    let mut tools = Vec::new();
    let mut bytes = 0;
    let mut cursors = HashSet::new();
    let mut params = json!({});
    for _ in 0..PAGES {
        let mut page = match session.request(Request::new("tools/list", &params)).await {
            Err(Failure::Rpc(error)) if error.code == METHOD_NOT_FOUND && tools.is_empty() => {
                return Ok(tools); // A server of prompts or resources alone.
            }
            page => page?,
        };
        let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) else {
            let problem = "has no list of tools".to_owned();
            return Err(Failure::Lost(Lost::Broken(problem)));
        };
        for tool in listed {
            bytes += size(&tool);
            if tools.len() == TOOLS || bytes > BYTES {
                warn!(
                    server,
                    "lists more than {TOOLS} tools or {} MiB of them; the rest is left out",
                    BYTES >> 20
                );
                return Ok(tools);
            }
            tools.push(tool);
        }
        match page.get("nextCursor").and_then(Value::as_str) {
            None | Some("") => return Ok(tools),
            Some(cursor) if cursors.insert(cursor.to_owned()) => {
                params = json!({ "cursor": cursor })
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
        "its list of tools has more than {PAGES} pages; the rest is left out"
    );
    Ok(tools)
}

/// Bytes as JSON, without making it.
fn size(tool: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, tool) {
        Ok(()) => count.0,
        Err(_) => usize::MAX / 2,
    }
}
