//! Looks up past calls in the journal, or in memory where there is none or while it fails.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::is_redacted;
use toolgate_journal::{CallDetail, CallSummary, JournalError, JournalFilter, JournalReader};

use crate::Gateway;
use crate::caller_view::CallerView;
use crate::problem::Problem;
use crate::query_limiter::{LOOKUPS, SEARCHES};

pub(crate) struct CallHistory<'a>(pub(crate) &'a Gateway);

pub(crate) struct FoundCall {
    pub(crate) detail: CallDetail,
    // `None` if the arguments were redacted, cut, or not an object in the first place.
    pub(crate) arguments: Option<Arc<Value>>,
    // Why the record may have been tampered with.
    pub(crate) unverified: Option<String>,
}

impl CallHistory<'_> {
    pub(crate) async fn list(
        &self,
        mut filter: JournalFilter,
        view: CallerView,
    ) -> Result<Vec<CallSummary>, Problem> {
        if view.sees_no_calls() {
            return Ok(Vec::new());
        }
        if let Some(name) = view.only_caller() {
            if filter.caller.as_deref().is_some_and(|asked| asked != name) {
                return Ok(Vec::new());
            }
            filter.caller = Some(name.to_owned());
        }
        // Filters by caller or text may have to read every call.
        let limiter = match view.sees_all() && filter.search.is_none() {
            true => &LOOKUPS,
            false => &SEARCHES,
        };
        let recent = self.0.parts.feed.recent();
        let recent = recent.map(|recent| recent.list(&filter, |call| view.has_call(call)));
        let Some(reader) = self.reader() else {
            return Ok(recent.unwrap_or_default());
        };
        let limit = filter.limit;
        let query = move |reader: &JournalReader| page(reader, &filter, &view);
        match (limiter.run(reader, query).await, recent) {
            (recorded, None) => recorded,
            // Calls that could not be recorded are still listed, even if the journal can't be read.
            (recorded, Some(recent)) => Ok(merge(recorded.unwrap_or_default(), recent, limit)),
        }
    }

    pub(crate) async fn find(&self, id: String) -> Result<Option<FoundCall>, Problem> {
        let recent = self.0.parts.feed.recent();
        if let Some((detail, asked)) = recent.and_then(|recent| recent.find(&id)) {
            return Ok(Some(FoundCall {
                detail: CallDetail::clone(&detail),
                arguments: Some(asked).filter(|asked| asked.is_object()),
                unverified: None,
            }));
        }
        let Some(reader) = self.reader() else {
            return Ok(None);
        };
        let query = move |reader: &JournalReader| {
            let Some(call) = reader.call(&id)? else {
                return Ok(None);
            };
            let unverified = reader.verify_call(&call.summary.id)?;
            Ok(Some((call, unverified)))
        };
        let found = LOOKUPS.run(reader, query).await?;
        Ok(found.map(|(detail, unverified)| {
            let is_whole = detail.requested.is_object() && !is_redacted(&detail.requested);
            FoundCall {
                arguments: is_whole.then(|| Arc::new(detail.requested.clone())),
                detail,
                unverified,
            }
        }))
    }

    pub(crate) fn reader(&self) -> Option<JournalReader> {
        let journal = self.0.parts.journal.as_ref();
        journal.map(toolgate_journal::Journal::reader)
    }
}

/// Returns one page of visible calls. It is full unless there are no more, because clients take a
/// short page for the last one.
fn page(
    reader: &JournalReader,
    filter: &JournalFilter,
    view: &CallerView,
) -> Result<Vec<CallSummary>, JournalError> {
    // Thousands of calls use few tools, so decisions are cached.
    let mut known = HashMap::<(String, Option<String>), bool>::new();
    let calls = reader.visible_calls(filter, |tool, server| {
        let key = (tool.to_owned(), server.map(str::to_owned));
        *known
            .entry(key)
            .or_insert_with_key(|(tool, server)| view.has_tool_of_call(tool, server.as_deref()))
    })?;
    // The journal's filter also matches commands, and a token may be named like one.
    Ok(calls
        .into_iter()
        .filter(|call| view.sees_calls_of(call.caller.as_deref()))
        .collect())
}

fn merge(recorded: Vec<CallSummary>, recent: Vec<CallSummary>, limit: usize) -> Vec<CallSummary> {
    let mut all: BTreeMap<String, CallSummary> = recorded
        .into_iter()
        .map(|call| (call.id.clone(), call))
        .collect();
    for call in recent {
        // Either source may know only the start of a call, so the record of its end wins.
        if all
            .get(&call.id)
            .is_none_or(|other| other.success.is_none())
        {
            all.insert(call.id.clone(), call);
        }
    }
    all.into_values().rev().take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, success: Option<bool>) -> CallSummary {
        let mut call = CallSummary::default();
        id.clone_into(&mut call.id);
        call.success = success;
        call
    }

    #[test]
    fn recorded_and_recent_calls_are_merged() {
        let well = Some(true);
        let recorded = vec![call("4", well), call("3", None), call("1", well)];
        let recent = vec![call("5", None), call("4", None), call("3", well)];
        let all = merge(recorded, recent, 3);
        let all: Vec<_> = all.iter().map(|call| (&*call.id, call.success)).collect();
        assert_eq!(all, [("5", None), ("4", well), ("3", well)]);
    }
}
