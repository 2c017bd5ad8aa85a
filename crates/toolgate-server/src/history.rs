//! Where calls that were made are looked up: the journal, or this process's memory where there is none.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::is_redacted;
use toolgate_journal::{Filter, JournalError, Reader};

use crate::Gateway;
use crate::calls::{Call, CallDetail};
use crate::desk::{LOOKS, SEARCHES};
use crate::problem::Problem;
use crate::recent::CallFilter;
use crate::sight::Sight;

/// The calls of a gateway.
pub(crate) struct History<'a>(&'a Gateway);

/// One call.
pub(crate) struct Found {
    pub(crate) detail: CallDetail,
    pub(crate) asking: Asking,
}

/// The arguments as they were asked.
pub(crate) enum Asking {
    /// As they were.
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
        filter: CallFilter,
        sight: Sight,
    ) -> Result<Vec<Call>, Problem> {
        if sight.is_blind() {
            return Ok(Vec::new());
        }
        // These may have to look at every call there is.
        let desk = match sight.is_full() && filter.search.is_none() {
            true => &LOOKS,
            false => &SEARCHES,
        };
        let is_shown = move |tool: &str, server: Option<&str>| sight.has_call(tool, server);
        match self.reader() {
            Some(reader) => {
                let question = move |reader: &Reader| page(reader, filter, is_shown);
                desk.ask(reader, question).await
            }
            None => {
                let recent = self.0.parts().feed.recent();
                Ok(recent.map_or_else(Vec::new, |recent| {
                    recent.list(&filter, |call| is_shown(&call.tool, call.server.as_deref()))
                }))
            }
        }
    }

    /// One call.
    pub(crate) async fn find(&self, id: String) -> Result<Option<Found>, Problem> {
        if let Some(reader) = self.reader() {
            let found = LOOKS.ask(reader, move |reader| reader.call(&id)).await?;
            return Ok(found.map(|call| Found::recorded(call.into())));
        }
        let recent = self.0.parts().feed.recent();
        let found = recent.and_then(|recent| recent.find(&id));
        Ok(found.map(|(detail, asked)| Found {
            detail: CallDetail::clone(&detail),
            asking: match asked.is_object() {
                true => Asking::Whole(asked),
                false => Asking::NotWhole,
            },
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
        Self { detail, asking }
    }
}

/// One page of what may be shown. It is full unless there is no more: else a reader would take it for the last.
fn page(
    reader: &Reader,
    wanted: CallFilter,
    is_shown: impl Fn(&str, Option<&str>) -> bool,
) -> Result<Vec<Call>, JournalError> {
    let mut filter = Filter::default();
    filter.tool = wanted.tool;
    filter.server = wanted.server;
    filter.origin = wanted.origin;
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
            .or_insert_with_key(|(tool, server)| is_shown(tool, server.as_deref()))
    })?;
    Ok(calls.into_iter().map(Call::from).collect())
}
