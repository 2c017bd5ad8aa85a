//! The last calls, in memory: what `/api/calls` shows where there is no journal, or while it fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use toolgate_core::{CallId, CallRecord, CallStarted, Redactor, kept};
use toolgate_journal::{CallDetail, CallSummary, is_called_by};

const MOST_CALLS: usize = 1000;
/// All of them together, as JSON.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, Default)]
pub(crate) struct CallFilter {
    pub(crate) tool: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) caller: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) search: Option<String>,
    pub(crate) since: Option<jiff::Timestamp>,
    pub(crate) until: Option<jiff::Timestamp>,
    /// Only those older than the call with this id.
    pub(crate) before: Option<String>,
    pub(crate) limit: usize,
}

pub(crate) struct Recent {
    redactor: Redactor,
    command: String,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    /// Ids are sorted by time.
    by_id: BTreeMap<CallId, Kept>,
    bytes: u64,
}

struct Kept {
    detail: Arc<CallDetail>,
    /// With its secrets, so that the call can be made again.
    asked: Arc<Value>,
    bytes: u64,
}

impl Recent {
    /// `command` is what this process was started as.
    pub(crate) fn new(redactor: Redactor, command: String) -> Self {
        Self {
            redactor,
            command,
            calls: Mutex::default(),
        }
    }

    pub(crate) fn started(&self, call: &CallStarted) {
        let detail = CallDetail::started(call, &self.redactor, &self.command);
        self.calls().keep(call.id, detail, &call.asked);
    }

    pub(crate) fn finished(&self, record: &CallRecord) {
        let detail = CallDetail::finished(record, &self.redactor, &self.command);
        self.calls()
            .keep(record.outcome.call_id, detail, &record.asked);
    }

    /// Calls that `is_shown` lets through, newest first.
    pub(crate) fn list(
        &self,
        filter: &CallFilter,
        is_shown: impl Fn(&CallSummary) -> bool,
    ) -> Vec<CallSummary> {
        let calls = self.calls();
        let newest_first = calls.by_id.values().rev().map(|kept| &*kept.detail);
        let wanted = newest_first.filter(|detail| filter.has(detail) && is_shown(&detail.summary));
        wanted
            .take(filter.limit)
            .map(|detail| detail.summary.clone())
            .collect()
    }

    pub(crate) fn find(&self, id: &str) -> Option<(Arc<CallDetail>, Arc<Value>)> {
        let calls = self.calls();
        let kept = calls
            .by_id
            .values()
            .rev()
            .find(|kept| kept.detail.summary.id == id)?;
        Some((Arc::clone(&kept.detail), Arc::clone(&kept.asked)))
    }

    pub(crate) fn clear(&self) {
        *self.calls() = Calls::default();
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock()
    }
}

impl Calls {
    fn keep(&mut self, id: CallId, detail: CallDetail, asked: &Arc<Value>) {
        let values = [
            Some(&**asked),
            Some(&detail.asked),
            detail.executed.as_ref(),
            detail.result.as_ref(),
        ];
        let content = detail.content.iter().map(kept::length);
        let texts = [&detail.summary.error, &detail.details, &detail.hint];
        let texts = texts.into_iter().flatten().map(|text| text.len() as u64);
        let values = values.into_iter().flatten().map(kept::length);
        let bytes = values.chain(content).chain(texts).sum();
        let kept = Kept {
            detail: Arc::new(detail),
            asked: Arc::clone(asked),
            bytes,
        };
        self.bytes += bytes;
        if let Some(before) = self.by_id.insert(id, kept) {
            self.bytes -= before.bytes;
        }
        while self.by_id.len() > MOST_CALLS || self.bytes > MOST_BYTES {
            match self.by_id.pop_first() {
                Some((_, oldest)) => self.bytes -= oldest.bytes,
                None => break,
            }
        }
    }
}

impl CallFilter {
    fn has(&self, detail: &CallDetail) -> bool {
        let call = &detail.summary;
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        let outcome = match self.outcome.as_deref() {
            Some("failed") => call.success == Some(false),
            _ => is(&self.outcome, Some(&call.outcome)),
        };
        let is_by = self.caller.as_deref().is_none_or(|wanted| {
            is_called_by(wanted, call.caller.as_deref(), call.command.as_deref())
        });
        outcome
            && is(&self.tool, Some(&call.tool))
            && is(&self.server, call.server.as_deref())
            && is(&self.origin, Some(&call.origin))
            && is_by
            && self.since.is_none_or(|since| call.started_at >= since)
            && self.until.is_none_or(|until| call.started_at < until)
            && self.before.as_ref().is_none_or(|before| call.id < *before)
            && self
                .search
                .as_deref()
                .is_none_or(|text| mentions(detail, text))
    }
}

/// Whether a text stands in the name, the arguments or the error; capital and small letters are the same.
fn mentions(detail: &CallDetail, text: &str) -> bool {
    let text = text.to_lowercase();
    let has = |found: &str| found.to_lowercase().contains(&text);
    let executed = detail.executed.as_ref().map(Value::to_string);
    has(&detail.summary.tool)
        || detail.summary.error.as_deref().is_some_and(has)
        || has(&detail.asked.to_string())
        || executed.as_deref().is_some_and(has)
}
