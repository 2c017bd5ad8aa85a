//! Where calls that were made are looked up: the journal, or this process's memory where there is none or while it fails.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::is_redacted;
use toolgate_journal::{CallDetail, CallSummary, Filter, JournalError, Reader};

use crate::Gateway;
use crate::desk::{LOOKS, SEARCHES};
use crate::problem::Problem;
use crate::recent::CallFilter;
use crate::sight::Sight;

pub(crate) struct History<'a>(&'a Gateway);

pub(crate) struct Found {
    pub(crate) detail: CallDetail,
    pub(crate) asking: Asking,
    /// Why the record isn't to be trusted.
    pub(crate) unverified: Option<String>,
}

pub(crate) enum Asking {
    Whole(Arc<Value>),
    /// Not as they were: without secrets, cut, or no JSON object in the first place.
    NotWhole,
}

impl<'a> History<'a> {
    pub(crate) fn of(gateway: &'a Gateway) -> Self {
        Self(gateway)
    }

    /// The calls that a caller may see, newest first.
    pub(crate) async fn list(
        &self,
        mut filter: CallFilter,
        sight: Sight,
    ) -> Result<Vec<CallSummary>, Problem> {
        if sight.is_blind() {
            return Ok(Vec::new());
        }
        if let Some(name) = sight.only_of() {
            if filter.caller.as_deref().is_some_and(|asked| asked != name) {
                return Ok(Vec::new());
            }
            filter.caller = Some(name.to_owned());
        }
        // These may have to look at every call there is.
        let desk = match sight.sees_all() && filter.search.is_none() {
            true => &LOOKS,
            false => &SEARCHES,
        };
        let recent = self.0.parts().feed.recent();
        let recent = recent.map(|recent| recent.list(&filter, |call| sight.has_call(call)));
        let Some(reader) = self.reader() else {
            return Ok(recent.unwrap_or_default());
        };
        let limit = filter.limit;
        let question = move |reader: &Reader| page(reader, filter, &sight);
        match (desk.ask(reader, question).await, recent) {
            (recorded, None) => recorded,
            // What waits for better times stands before what was recorded, if that can be read at all.
            (recorded, Some(recent)) => Ok(merged(recorded.unwrap_or_default(), recent, limit)),
        }
    }

    pub(crate) async fn find(&self, id: String) -> Result<Option<Found>, Problem> {
        let recent = self.0.parts().feed.recent();
        if let Some((detail, asked)) = recent.and_then(|recent| recent.find(&id)) {
            let asking = match asked.is_object() {
                true => Asking::Whole(asked),
                false => Asking::NotWhole,
            };
            let detail = CallDetail::clone(&detail);
            return Ok(Some(Found {
                detail,
                asking,
                unverified: None,
            }));
        }
        let Some(reader) = self.reader() else {
            return Ok(None);
        };
        let look = move |reader: &Reader| {
            let Some(call) = reader.call(&id)? else {
                return Ok(None);
            };
            let unverified = reader.verify_call(&call.summary.id)?;
            Ok(Some((call, unverified)))
        };
        let found = LOOKS.ask(reader, look).await?;
        Ok(found.map(|(call, unverified)| Found {
            unverified,
            ..Found::recorded(call)
        }))
    }

    pub(crate) fn reader(&self) -> Option<Reader> {
        let journal = self.0.parts().journal.as_ref();
        journal.map(toolgate_journal::Journal::reader)
    }
}

impl Found {
    fn recorded(detail: CallDetail) -> Self {
        let asking = match detail.asked.is_object() && !is_redacted(&detail.asked) {
            true => Asking::Whole(Arc::new(detail.asked.clone())),
            false => Asking::NotWhole,
        };
        Self {
            detail,
            asking,
            unverified: None,
        }
    }
}

/// One page of what may be shown. It is full unless there is no more: else a reader would take it for the last.
fn page(
    reader: &Reader,
    wanted: CallFilter,
    sight: &Sight,
) -> Result<Vec<CallSummary>, JournalError> {
    let mut filter = Filter::default();
    filter.tool = wanted.tool;
    filter.server = wanted.server;
    filter.origin = wanted.origin;
    filter.caller = wanted.caller;
    filter.outcome = wanted.outcome;
    filter.search = wanted.search;
    filter.since = wanted.since;
    filter.until = wanted.until;
    filter.before = wanted.before;
    filter.limit = wanted.limit;
    // Thousands of calls are of a few tools.
    let mut known = HashMap::<(String, Option<String>), bool>::new();
    let calls = reader.calls_shown(&filter, |tool, server| {
        let key = (tool.to_owned(), server.map(str::to_owned));
        *known
            .entry(key)
            .or_insert_with_key(|(tool, server)| sight.has_tool_of_call(tool, server.as_deref()))
    })?;
    // A token may have the name of a command, whose calls the filter lets through as well.
    Ok(calls
        .into_iter()
        .filter(|call| sight.is_of_whom_it_sees(call.caller.as_deref()))
        .collect())
}

/// Recorded calls and those that wait to be, each once, newest first.
fn merged(recorded: Vec<CallSummary>, recent: Vec<CallSummary>, limit: usize) -> Vec<CallSummary> {
    let mut all: BTreeMap<String, CallSummary> = recorded
        .into_iter()
        .map(|call| (call.id.clone(), call))
        .collect();
    for call in recent {
        // Of a call that has ended the beginning may be recorded, and the other way round.
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
    fn what_is_recorded_and_what_waits_is_one_list_and_the_end_of_a_call_counts() {
        let well = Some(true);
        let recorded = vec![call("4", well), call("3", None), call("1", well)];
        let recent = vec![call("5", None), call("4", None), call("3", well)];
        let all = merged(recorded, recent, 3);
        let all: Vec<_> = all.iter().map(|call| (&*call.id, call.success)).collect();
        assert_eq!(all, [("5", None), ("4", well), ("3", well)]);
    }
}
