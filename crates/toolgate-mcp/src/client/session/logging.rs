//! Log messages of servers: asks for the levels that callers want, and passes each message on to
//! the caller whose call it is about, or to the only client there is.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use toolgate_core::{CallContext, LogHandler, LogLevel, LogMessage, sanitize};
use tracing::debug;

use super::{ClientSession, SessionRequest};
use crate::client::diagnostics::NoiseKind;
use crate::client::message::notification_meta;

/// The server's log as its sessions of revisions up to 2025-11-25 have it.
const SET_LEVEL: &str = "logging/setLevel";
// How long a call waits until its server has the level.
const SET_LEVEL_TIMEOUT: Duration = Duration::from_secs(1);
// A more verbose level than needed is kept for so long, because the next call may want it again.
const KEEP_LEVEL: Duration = Duration::from_secs(60);
const MAX_DATA_BYTES: usize = 64 << 10;

/// The level that a server up to 2025-11-25 was told.
#[derive(Default)]
pub(super) struct ServerLogLevel(Option<(LogLevel, Instant)>);

impl ServerLogLevel {
    /// Returns true if the server must be told this level, the most verbose that is wanted now.
    fn change_to(&mut self, wanted: LogLevel, now: Instant) -> bool {
        let must_tell = match self.0 {
            Some((told, _)) if told == wanted => false,
            Some((told, needed_at)) if told < wanted => now - needed_at > KEEP_LEVEL,
            _ => true,
        };
        if must_tell || self.0.is_some_and(|(told, _)| told == wanted) {
            self.0 = Some((wanted, now));
        }
        must_tell
    }
}

impl ClientSession {
    /// Asks a server up to 2025-11-25 for the messages that callers want. A later server reads the
    /// level in each request.
    pub(crate) async fn prepare_logging(self: &Arc<Self>, call: &CallContext) {
        if let Some(wanted) = wanted_level(call) {
            self.ask_for_level(wanted).await;
        }
    }

    /// Keeps the level of a server up to 2025-11-25 at what the only client wants, even while it
    /// calls nothing. `None` if there may be several clients.
    pub(crate) fn follow_log_level(self: &Arc<Self>) -> Option<AbortOnDropHandle<()>> {
        let mut levels = self.sole_client_log.get()?.levels.clone();
        let session = Arc::clone(self);
        Some(AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                let wanted = *levels.borrow_and_update();
                if let Some(wanted) = wanted {
                    session.ask_for_level(wanted).await;
                }
                if levels.changed().await.is_err() {
                    return;
                }
            }
        })))
    }

    async fn ask_for_level(self: &Arc<Self>, wanted: LogLevel) {
        if self.is_modern() || !self.offer.get().is_some_and(|offer| offer.logging) {
            return;
        }
        let others = self.pending_calls();
        let wanted = others
            .iter()
            .filter_map(|call| wanted_level(&call.context))
            .fold(wanted, Ord::min);
        if !self.log_level.lock().change_to(wanted, Instant::now()) {
            return;
        }
        let request = SessionRequest::new(SET_LEVEL, json!({ "level": wanted.as_str() }));
        let told = tokio::time::timeout(SET_LEVEL_TIMEOUT, self.request(request)).await;
        if !matches!(told, Ok(Ok(_))) {
            debug!(server = %self.server, level = %wanted, "the server doesn't confirm the log level");
        }
    }

    /// Passes a message on. `request` is the request on whose stream it came, if it did.
    pub(super) fn handle_log(&self, params: &Value, request: Option<u64>) {
        let level = params["level"].as_str().and_then(LogLevel::from_name);
        let caller = match request {
            Some(id) => self.pending_call(id).map(|call| call.context),
            None => self.only_caller(),
        };
        let sole_client = self.sole_client_log.get().map(|log| &log.handler);
        let (Some(level), true) = (level, caller.is_some() || sole_client.is_some()) else {
            return self
                .diagnostics
                .log_ignored(NoiseKind::Notification, "notifications/message");
        };
        let wants = |log: &&Arc<dyn LogHandler>| log.level().is_some_and(|wanted| level >= wanted);
        let of_call = caller.as_ref().and_then(CallContext::logs);
        // Only what is wanted is worth a copy.
        let Some(log) = of_call.filter(wants).or(sole_client.filter(wants)) else {
            return;
        };
        let redactor = self.diagnostics.redactor();
        let (data, _) = sanitize::value(redactor, &params["data"], MAX_DATA_BYTES);
        let logger = params["logger"].as_str().unwrap_or(&self.server);
        log.log(LogMessage {
            level,
            logger: Some(sanitize::name(redactor, logger)),
            data,
            meta: notification_meta(params),
        });
    }

    /// A call of the only caller that a message without a request can be for. If there are several,
    /// nobody knows whose call it is about, and it must not reach a stranger.
    fn only_caller(&self) -> Option<CallContext> {
        let calls = self.pending_calls().into_iter();
        let mut calls: Vec<CallContext> = calls.map(|call| call.context).collect();
        let is_modern = self.is_modern();
        if is_modern {
            // Only requests that asked for messages cause any.
            calls.retain(|call| wanted_level(call).is_some());
        }
        let newest = calls.pop()?;
        let caller = log_caller(&newest)?;
        let is_same = |other: Option<u64>| other == Some(caller) || (is_modern && other.is_none());
        let is_only = calls.iter().all(|call| log_caller(call) == Some(caller))
            && self.all_abandoned(|call| is_same(call.log_caller));
        is_only.then_some(newest)
    }

    /// Who may get the messages of a cancelled call. `None` is a stranger to everybody, except that
    /// a modern server logs nothing for a call that asked for nothing.
    pub(super) fn abandoned_log_caller(&self, call: &CallContext) -> Option<u64> {
        let takes_messages = !self.is_modern() || wanted_level(call).is_some();
        log_caller(call).filter(|_| takes_messages)
    }
}

fn log_caller(call: &CallContext) -> Option<u64> {
    call.logs().map(|logs| logs.caller())
}

pub(super) fn wanted_level(call: &CallContext) -> Option<LogLevel> {
    call.logs()?.level()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_is_told_a_more_verbose_level_at_once_and_a_quieter_one_later() {
        let mut level = ServerLogLevel::default();
        let start = Instant::now();
        for (seconds, wanted, must_tell) in [
            (0, LogLevel::Warning, true),
            (1, LogLevel::Warning, false),
            (2, LogLevel::Debug, true),
            (3, LogLevel::Error, false),
            (60, LogLevel::Debug, false),
            (119, LogLevel::Error, false),
            (121, LogLevel::Error, true),
            (122, LogLevel::Info, true),
        ] {
            let now = start + Duration::from_secs(seconds);
            assert_eq!(level.change_to(wanted, now), must_tell, "{seconds} s");
        }
    }
}
