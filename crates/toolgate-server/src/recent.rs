//! Keeps the latest calls in memory, for `/api/calls` without a journal or while it fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolgate_core::{CallId, CallRecord, CallStarted, Redactor, sanitize};
use toolgate_journal::{CallDetail, CallSummary, JournalFilter, matches_caller};

const MAX_CALLS: usize = 1000;
// The JSON size of all calls together.
const MAX_BYTES: u64 = 64 << 20;

pub(crate) struct RecentCallCache {
    redactor: Redactor,
    command: String,
    calls: Mutex<CachedCalls>,
}

#[derive(Default)]
struct CachedCalls {
    // Ids sort by time.
    by_id: BTreeMap<CallId, CachedCall>,
    bytes: u64,
}

struct CachedCall {
    detail: Arc<CallDetail>,
    // Not redacted, so that the call can be made again.
    asked: Arc<Value>,
    bytes: u64,
}

impl RecentCallCache {
    pub(crate) fn new(redactor: Redactor, command: String) -> Self {
        Self {
            redactor,
            command,
            calls: Mutex::default(),
        }
    }

    pub(crate) fn started(&self, call: &CallStarted) {
        let detail = CallDetail::started(call, &self.redactor, &self.command);
        self.calls.lock().insert(call.id, detail, &call.requested);
    }

    pub(crate) fn finished(&self, record: &CallRecord) {
        let detail = CallDetail::finished(record, &self.redactor, &self.command);
        self.calls
            .lock()
            .insert(record.outcome.call_id, detail, &record.requested);
    }

    pub(crate) fn list(
        &self,
        filter: &JournalFilter,
        is_visible: impl Fn(&CallSummary) -> bool,
    ) -> Vec<CallSummary> {
        let calls = self.calls.lock();
        let newest_first = calls.by_id.values().rev().map(|call| &*call.detail);
        newest_first
            .filter(|detail| matches(filter, detail) && is_visible(&detail.summary))
            .take(filter.limit)
            .map(|detail| detail.summary.clone())
            .collect()
    }

    pub(crate) fn find(&self, id: &str) -> Option<(Arc<CallDetail>, Arc<Value>)> {
        let calls = self.calls.lock();
        let mut newest_first = calls.by_id.values().rev();
        let call = newest_first.find(|call| call.detail.summary.id == id)?;
        Some((Arc::clone(&call.detail), Arc::clone(&call.asked)))
    }

    pub(crate) fn clear(&self) {
        *self.calls.lock() = CachedCalls::default();
    }
}

impl CachedCalls {
    fn insert(&mut self, id: CallId, detail: CallDetail, asked: &Arc<Value>) {
        let values = [
            Some(&**asked),
            Some(&detail.requested),
            detail.executed.as_ref(),
            detail.result.as_ref(),
        ];
        let content = detail.content.iter().map(sanitize::length);
        let texts = [&detail.summary.error, &detail.details, &detail.hint];
        let texts = texts.into_iter().flatten().map(|text| text.len() as u64);
        let values = values.into_iter().flatten().map(sanitize::length);
        let bytes = values.chain(content).chain(texts).sum();
        let cached = CachedCall {
            detail: Arc::new(detail),
            asked: Arc::clone(asked),
            bytes,
        };
        self.bytes += bytes;
        if let Some(before) = self.by_id.insert(id, cached) {
            self.bytes -= before.bytes;
        }
        while self.by_id.len() > MAX_CALLS || self.bytes > MAX_BYTES {
            match self.by_id.pop_first() {
                Some((_, oldest)) => self.bytes -= oldest.bytes,
                None => break,
            }
        }
    }
}

/// Must select the same calls as the journal's SQL.
fn matches(filter: &JournalFilter, detail: &CallDetail) -> bool {
    let call = &detail.summary;
    let is = |wanted: &Option<String>, value: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
    };
    let is_by =
        |wanted: &str| matches_caller(wanted, call.caller.as_deref(), call.command.as_deref());
    let outcome = match filter.outcome.as_deref() {
        Some("failed") => call.success == Some(false),
        _ => is(&filter.outcome, Some(&call.outcome)),
    };
    outcome
        && is(&filter.tool, Some(&call.tool))
        && is(&filter.server, call.server.as_deref())
        && is(&filter.origin, Some(&call.origin))
        && filter.caller.as_deref().is_none_or(is_by)
        && filter.since.is_none_or(|since| call.started_at >= since)
        && filter.until.is_none_or(|until| call.started_at < until)
        && filter
            .before
            .as_ref()
            .is_none_or(|before| call.id < *before)
        && filter
            .search
            .as_deref()
            .is_none_or(|text| mentions(detail, text))
}

fn mentions(detail: &CallDetail, text: &str) -> bool {
    let text = text.to_lowercase();
    let has = |found: &str| found.to_lowercase().contains(&text);
    let executed = detail.executed.as_ref().map(Value::to_string);
    has(&detail.summary.tool)
        || detail.summary.error.as_deref().is_some_and(has)
        || has(&detail.requested.to_string())
        || executed.as_deref().is_some_and(has)
}
