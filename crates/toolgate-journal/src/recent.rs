//! `recent_calls`: an internal service that says what was called lately.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_core::{CallContext, Handler, ToolError, ToolFuture, ToolOutput, ValidArguments};

use crate::filter::OUTCOMES;
use crate::{Filter, Reader};

/// The handler behind `recent_calls`. Made before the journal is opened, since tools are, and told of it by
/// [`reads`](Self::reads); clones are the same service.
///
/// It takes `tool`, `outcome` and `limit`, and answers `{"calls": […]}`, newest first, without the call that asks.
///
/// ```
/// use toolgate_journal::RecentCalls;
///
/// assert_eq!((RecentCalls::NAME, RecentCalls::parameters()["properties"]["limit"]["maximum"].as_u64()), ("recent_calls", Some(50)));
/// ```
#[derive(Clone, Default)]
pub struct RecentCalls {
    reader: Arc<OnceLock<Reader>>,
}

#[derive(Deserialize)]
struct Wanted {
    tool: Option<String>,
    outcome: Option<String>,
    limit: Option<usize>,
}

impl RecentCalls {
    /// What definitions of type `internal` call it.
    pub const NAME: &str = "recent_calls";
    const USUAL: usize = 10;
    const MOST: usize = 50;

    /// The JSON Schema of what it takes.
    pub fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "tool": { "type": "string", "description": "Only calls of this tool" },
                "outcome": { "enum": OUTCOMES, "description": "Only calls that ended like this; 'failed' is every kind of failure" },
                "limit": { "type": "integer", "minimum": 1, "maximum": Self::MOST, "default": Self::USUAL, "description": "How many, newest first" },
            },
            "additionalProperties": false,
        })
    }

    /// Tells it where calls are recorded. Only the first time counts.
    pub fn reads(&self, reader: Reader) {
        drop(self.reader.set(reader));
    }
}

impl Handler for RecentCalls {
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let unavailable = |reason: &str| ToolError::unavailable(context.tool_name(), reason);
            let Some(reader) = self.reader.get().cloned() else {
                return Err(unavailable("calls are not recorded"));
            };
            let wanted: Wanted = arguments.parse()?;
            let filter = Filter {
                tool: wanted.tool,
                outcome: wanted.outcome,
                limit: wanted.limit.unwrap_or(Self::USUAL).min(Self::MOST),
                before: Some(context.id().to_string()),
                ..Filter::default()
            };
            let read = tokio::task::spawn_blocking(move || reader.calls(&filter)).await;
            match read {
                Ok(Ok(calls)) => Ok(ToolOutput::json(json!({ "calls": calls }))),
                Ok(Err(error)) => {
                    Err(unavailable("the journal can not be read").with_details(error.to_string()))
                }
                Err(_) => Err(unavailable("the journal can not be read")),
            }
        })
    }
}
