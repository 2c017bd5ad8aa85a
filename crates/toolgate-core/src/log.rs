//! [`LogObserver`]: writes one log record per call.

use futures::future::BoxFuture;
use tracing::field::display;
use tracing::{Level, enabled, error, info, warn};

use crate::outcome::error_chain;
use crate::{CallRecord, ErrorKind, Observer, Redactor, ToolError, sanitize};

const PREVIEW_BYTES: usize = 500;
// Shorter, because the journal has the whole result, and long lists would drown the other lines.
const RESULT_PREVIEW_BYTES: usize = 200;

/// Writes one structured record per call through `tracing`: INFO for a success, WARN for a
/// slow call or a caller's mistake, ERROR for a failing tool. Secrets are removed, long values
/// cut, control characters escaped.
#[derive(Debug, Clone, Default)]
pub struct LogObserver {
    redactor: Redactor,
}

impl LogObserver {
    #[must_use]
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }
}

impl Observer for LogObserver {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        if record.left_to_server {
            return None; // It hasn't ended.
        }
        let slow = record.slow;
        let level = match &record.outcome.result {
            Ok(_) if slow => Level::WARN,
            Ok(_) => Level::INFO,
            Err(error) => level_for_error(error, slow),
        };
        // Formatting the fields costs more than calling a small tool, so it is done only if the
        // level is enabled.
        let is_enabled = match level {
            Level::ERROR => enabled!(Level::ERROR),
            Level::WARN => enabled!(Level::WARN),
            _ => enabled!(Level::INFO),
        };
        if is_enabled {
            self.write(record, level, slow);
        }
        None
    }
}

impl LogObserver {
    fn write(&self, record: &CallRecord, level: Level, slow: bool) {
        let redactor = self.redactor.for_call(&record.requested);
        let call = record.outcome.call_id;
        let tool = sanitize::name(&redactor, &record.outcome.tool_name);
        let source = record
            .definition()
            .map(|definition| display(definition.source()));
        let origin = record.origin;
        let caller = record
            .caller
            .as_deref()
            .map(|caller| display(sanitize::name(&redactor, caller)));
        let elapsed_ms = record.outcome.execution_time_ms();
        let slow = slow.then_some(true);
        let arguments = redactor.json(&record.requested, PREVIEW_BYTES);
        let changes = self.changes(record).map(display);
        let approval = self.approval(record).map(display);
        match &record.outcome.result {
            Ok(output) => {
                let outcome = "success";
                let result = redactor.json(&output.as_result(), RESULT_PREVIEW_BYTES);
                match level {
                    Level::WARN => {
                        warn!(%call, %tool, source, %origin, caller, elapsed_ms, %outcome, %arguments, changes, approval, %result, "slow tool call");
                    }
                    _ => {
                        info!(%call, %tool, source, %origin, caller, elapsed_ms, %outcome, %arguments, changes, approval, %result, "tool call");
                    }
                };
            }
            Err(failure) => {
                let outcome = failure.kind();
                let error = redactor.line(&error_chain(failure), 2 * PREVIEW_BYTES);
                let details = failure
                    .details()
                    .map(|details| display(redactor.line(details, 8 * PREVIEW_BYTES)));
                match level {
                    Level::ERROR => {
                        error!(%call, %tool, source, %origin, caller, elapsed_ms, slow, %outcome, %arguments, changes, approval, %error, details, "tool call failed");
                    }
                    Level::WARN if outcome != ErrorKind::Cancelled => {
                        warn!(%call, %tool, source, %origin, caller, elapsed_ms, slow, %outcome, %arguments, changes, approval, %error, "tool call refused");
                    }
                    Level::WARN => {
                        warn!(%call, %tool, source, %origin, caller, elapsed_ms, slow, %outcome, %arguments, changes, approval, %error, "slow tool call cancelled");
                    }
                    _ => {
                        info!(%call, %tool, source, %origin, caller, elapsed_ms, slow, %outcome, %arguments, changes, approval, %error, "tool call cancelled");
                    }
                }
            }
        }
    }

    fn approval(&self, record: &CallRecord) -> Option<String> {
        let approval = record.approval.as_ref()?;
        let answer = if approval.granted {
            "granted"
        } else {
            "refused"
        };
        let by = sanitize::name(&self.redactor, &approval.by.to_string());
        Some(format!("{answer} by {by}"))
    }

    fn changes(&self, record: &CallRecord) -> Option<String> {
        let renamed = record
            .renamed
            .iter()
            .map(|(from, to)| format!("{{{from}: …}} → {{{to}: …}}"));
        let dropped = record.dropped.iter().map(|name| format!("-{name}"));
        let changes = crate::text::join(renamed.chain(dropped), ", ");
        (!changes.is_empty()).then(|| self.redactor.line(&changes, PREVIEW_BYTES))
    }
}

fn level_for_error(error: &ToolError, slow: bool) -> Level {
    match error.kind() {
        ErrorKind::Cancelled if slow => Level::WARN,
        ErrorKind::Cancelled => Level::INFO,
        ErrorKind::Overloaded => Level::WARN,
        _ if error.is_callers_fault() => Level::WARN,
        _ => Level::ERROR,
    }
}
