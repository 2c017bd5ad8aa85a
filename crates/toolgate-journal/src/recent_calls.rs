//! The internal service `recent_calls`, which lists the latest calls.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_core::{CallContext, Handler, ToolError, ToolFuture, ToolOutput, ValidArguments};

use crate::filter::OUTCOME_NAMES;
use crate::{JournalFilter, JournalReader};

/// Implements the tool `recent_calls`.
///
/// Tools are made before the journal is opened, so [`set_reader`](Self::set_reader) sets the reader
/// later. Clones share it.
///
/// The tool takes `tool`, `outcome` and `limit`, and returns `{"calls": […]}`, newest first. The
/// call of `recent_calls` itself is left out.
#[derive(Clone, Default)]
pub struct RecentCallsHandler {
    reader: Arc<OnceLock<JournalReader>>,
}

#[derive(Deserialize)]
struct RecentCallsArguments {
    tool: Option<String>,
    outcome: Option<String>,
    limit: Option<usize>,
}

impl RecentCallsHandler {
    /// The name that definitions of type `internal` use.
    pub const NAME: &str = "recent_calls";
    const DEFAULT_LIMIT: usize = 10;
    const MAX_LIMIT: usize = 50;

    pub fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "tool": { "type": "string", "description": "Only calls of this tool" },
                "outcome": { "enum": OUTCOME_NAMES, "description": "Only calls that ended like this; 'failed' is every kind of failure" },
                "limit": { "type": "integer", "minimum": 1, "maximum": Self::MAX_LIMIT, "default": Self::DEFAULT_LIMIT, "description": "How many, newest first" },
            },
            "additionalProperties": false,
        })
    }

    /// Sets where calls are recorded. Only the first call counts.
    pub fn set_reader(&self, reader: JournalReader) {
        drop(self.reader.set(reader));
    }
}

impl Handler for RecentCallsHandler {
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let unavailable = |reason: &str| ToolError::unavailable(context.tool_name(), reason);
            let Some(reader) = self.reader.get().cloned() else {
                return Err(unavailable("calls are not recorded"));
            };
            let wanted: RecentCallsArguments = arguments.parse()?;
            let filter = JournalFilter {
                tool: wanted.tool,
                outcome: wanted.outcome,
                limit: wanted
                    .limit
                    .unwrap_or(Self::DEFAULT_LIMIT)
                    .min(Self::MAX_LIMIT),
                before: Some(context.id().to_string()),
                ..JournalFilter::default()
            };
            let read = tokio::task::spawn_blocking(move || reader.calls(&filter)).await;
            match read {
                Ok(Ok(calls)) => Ok(ToolOutput::json(json!({ "calls": calls }))),
                Ok(Err(error)) => {
                    Err(unavailable("the journal can't be read").with_details(error.to_string()))
                }
                Err(_) => Err(unavailable("the journal can't be read")),
            }
        })
    }
}
