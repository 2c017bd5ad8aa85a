//! Where calls that were made are looked up: the journal, or this process's memory where there is none.

use std::sync::Arc;

use serde_json::Value;

use crate::Gateway;
use crate::calls::{Call, CallDetail};
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
        let is_shown = |call: &Call| sight.has_call(&call.tool, call.server.as_deref());
        let recent = self.0.parts().feed.recent();
        Ok(recent
            .map(|recent| recent.list(&filter, is_shown))
            .unwrap_or_default())
    }

    /// One call.
    pub(crate) async fn find(&self, id: String) -> Result<Option<Found>, Problem> {
        let found = self
            .0
            .parts()
            .feed
            .recent()
            .and_then(|recent| recent.find(&id));
        Ok(found.map(|(detail, asked)| Found {
            detail: CallDetail::clone(&detail),
            asking: match asked.is_object() {
                true => Asking::Whole(asked),
                false => Asking::NotWhole,
            },
        }))
    }
}
