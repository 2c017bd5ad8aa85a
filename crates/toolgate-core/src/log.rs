//! One line in the log for every call.

use std::time::Duration;

use futures::future::BoxFuture;
use tracing::field::display;
use tracing::{Level, enabled, error, info, warn};

use crate::outcome::chain;
use crate::{CallRecord, ErrorKind, Observer, Redactor, ToolError};

/// How much of arguments and results a line shows.
const PREVIEW: usize = 500;

/// Writes one structured record per call through `tracing`: INFO for a success, WARN for a slow one and for what the caller
/// did wrong, ERROR for a failing tool. Secrets are taken out, long values cut, control characters escaped.
#[derive(Debug, Clone)]
pub struct LogObserver {
    slow_after: Duration,
    redactor: Redactor,
}

impl LogObserver {
    /// Calls longer than `slow_after` are logged as slow.
    pub fn new(slow_after: Duration) -> Self {
        Self {
            slow_after,
            redactor: Redactor::default(),
        }
    }

    /// Knows secrets by value.
    #[must_use]
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }
}

impl Observer for LogObserver {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        let outcome = &record.outcome;
        let slow = outcome.elapsed > self.slow_after;
        let level = match &outcome.result {
            Ok(_) if slow => Level::WARN,
            Ok(_) => Level::INFO,
            Err(error) => level_of(error),
        };
        // The fields cost more than the call of a small tool: they are made only for someone who listens.
        let listening = match level {
            Level::ERROR => enabled!(Level::ERROR),
            Level::WARN => enabled!(Level::WARN),
            _ => enabled!(Level::INFO),
        };
        if listening {
            self.write(record, level, slow);
        }
        None
    }
}

impl LogObserver {
    fn write(&self, record: &CallRecord, level: Level, slow: bool) {
        let outcome = &record.outcome;
        let call = outcome.call_id;
        let tool = self.redactor.line(&outcome.tool_name, 200);
        let source = record
            .definition()
            .map(|definition| display(definition.source()));
        let origin = record.origin;
        let elapsed_ms = outcome.execution_time_ms();
        let slow = slow.then_some(true);
        let arguments = self.redactor.json(&record.asked, PREVIEW);
        let changes = self.changes(record).map(display);
        match &outcome.result {
            Ok(output) => {
                let result = self.redactor.json(&output.to_result(), PREVIEW);
                match level {
                    Level::WARN => {
                        warn!(%call, %tool, source, %origin, elapsed_ms, %arguments, changes, %result, "slow tool call");
                    }
                    _ => {
                        info!(%call, %tool, source, %origin, elapsed_ms, %arguments, changes, %result, "tool call");
                    }
                };
            }
            Err(failure) => {
                let kind = failure.kind();
                let error = self.redactor.line(&chain(failure), 2 * PREVIEW);
                let details = failure
                    .details()
                    .map(|details| display(self.redactor.line(details, 8 * PREVIEW)));
                match level {
                    Level::ERROR => {
                        error!(%call, %tool, source, %origin, elapsed_ms, slow, %kind, %arguments, changes, %error, details, "tool call failed");
                    }
                    Level::WARN => {
                        warn!(%call, %tool, source, %origin, elapsed_ms, slow, %kind, %arguments, changes, %error, "tool call refused");
                    }
                    _ => {
                        info!(%call, %tool, source, %origin, elapsed_ms, slow, %kind, %arguments, %error, "tool call cancelled");
                    }
                }
            }
        }
    }

    /// What was renamed and what was left out: `{device_name: …} → {deviceName: …}, -unit`.
    fn changes(&self, record: &CallRecord) -> Option<String> {
        let renamed = record
            .renamed
            .iter()
            .map(|(from, to)| format!("{{{from}: …}} → {{{to}: …}}"));
        let dropped = record.dropped.iter().map(|name| format!("-{name}"));
        let changes = renamed.chain(dropped).collect::<Vec<_>>().join(", ");
        (!changes.is_empty()).then(|| self.redactor.line(&changes, PREVIEW))
    }
}

fn level_of(error: &ToolError) -> Level {
    match error.kind() {
        ErrorKind::Cancelled => Level::INFO,
        ErrorKind::Overloaded => Level::WARN,
        _ if error.is_callers_fault() => Level::WARN,
        _ => Level::ERROR,
    }
}
