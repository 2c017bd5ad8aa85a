//! How long the lists of a server may be shown before they are asked for again.

use std::time::Duration;

use tokio::time::Instant;

use super::ClientSession;

/// Lists are kept at least this long, whatever a server says. Many say that theirs are stale at
/// once, and announce changes anyway.
const MIN_TTL: Duration = Duration::from_secs(30);
/// For a list whose changes nobody announces.
pub(crate) const UNANNOUNCED_TTL: Duration = Duration::from_secs(60);

/// What the latest listing said about its age.
#[derive(Default)]
pub(super) struct ListFreshness {
    listed: Option<Instant>,
    // The shortest time of all lists. `None` if no list says one.
    ttl: Option<Duration>,
    // The listing that is due was not announced by the server.
    is_ttl_refresh: bool,
}

impl ListFreshness {
    fn is_stale(&self, now: Instant) -> bool {
        let Some((listed, ttl)) = self.listed.zip(self.ttl) else {
            return false;
        };
        now.saturating_duration_since(listed) >= ttl.max(MIN_TTL)
    }
}

impl ClientSession {
    /// A listing begins.
    pub(crate) fn begin_listing(&self) {
        let mut freshness = self.freshness.lock();
        freshness.listed = Some(Instant::now());
        freshness.ttl = None;
    }

    /// A list of the listing that has begun may be used for so long.
    pub(crate) fn note_ttl(&self, ttl: Duration) {
        let mut freshness = self.freshness.lock();
        freshness.ttl = Some(freshness.ttl.map_or(ttl, |known| known.min(ttl)));
    }

    /// Has everything listed again if its time has run out.
    pub(crate) fn list_again_if_stale(&self) {
        let now = Instant::now();
        let mut freshness = self.freshness.lock();
        if !freshness.is_stale(now) {
            return;
        }
        // Until that listing is there, nobody asks for another one.
        freshness.listed = Some(now);
        freshness.is_ttl_refresh = true;
        drop(freshness);
        self.mark_lists_changed();
    }

    /// True once if the listing that is due was not announced.
    pub(crate) fn take_routine_listing(&self) -> bool {
        std::mem::take(&mut self.freshness.lock().is_ttl_refresh)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::ProtocolEra;
    use crate::client::listing::list_tools;
    use crate::client::tests::scripted_server::{ScriptedReply, ScriptedServer};

    #[tokio::test(start_paused = true)]
    async fn lists_of_the_newer_era_are_asked_for_again_when_their_time_has_run_out() {
        for (era, is_listed_again) in [(ProtocolEra::Modern, true), (ProtocolEra::Legacy, false)] {
            let (session, _server) = ScriptedServer::session(|_, params| {
                let next = params["cursor"].is_null().then_some("2");
                let ttl = if next.is_some() { 3_600_000 } else { 60_000 };
                let page = json!({ "tools": [], "ttlMs": ttl, "nextCursor": next });
                ScriptedReply::Answers(page)
            });
            session.set_protocol(era, "2026-07-28", Map::new());
            session.begin_listing();
            list_tools("house", &session).await.unwrap();
            let is_due = async || {
                session.list_again_if_stale();
                let due = tokio::time::timeout(Duration::ZERO, session.lists_changed());
                due.await.is_ok()
            };
            tokio::time::advance(Duration::from_secs(59)).await;
            assert!(!is_due().await, "{era:?}");
            tokio::time::advance(Duration::from_secs(2)).await;
            assert_eq!(is_due().await, is_listed_again, "{era:?}");
            assert_eq!(session.take_routine_listing(), is_listed_again);
            assert!(!is_due().await, "once for all callers");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_stale_once_its_time_has_run_out_but_not_too_often() {
        let start = Instant::now();
        for (ttl, seconds, is_stale) in [
            (None, 100_000, false),
            (Some(0), 29, false),
            (Some(0), 30, true),
            (Some(60), 59, false),
            (Some(60), 60, true),
        ] {
            let freshness = ListFreshness {
                listed: Some(start),
                ttl: ttl.map(Duration::from_secs),
                is_ttl_refresh: false,
            };
            let now = start + Duration::from_secs(seconds);
            assert_eq!(
                freshness.is_stale(now),
                is_stale,
                "{ttl:?} after {seconds} s"
            );
        }
    }
}
