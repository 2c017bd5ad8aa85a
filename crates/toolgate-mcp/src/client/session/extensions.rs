//! Notifications of extensions: passes a server's on to the one client that they can be about, and
//! sends those of clients.

use std::sync::{Arc, Weak};

use serde_json::Value;
use tokio::time::Instant;
use toolgate_core::{CallContext, ClientId, ExtensionListener, ExtensionNotification, sanitize};

use super::pending_calls::AbandonedCall;
use super::{ClientSession, SessionError, SessionRequest};
use crate::client::diagnostics::NoiseKind;
use crate::client::extension_access::shares_notification;
use crate::extensions::extension_notification;
use crate::task_fields::RELATED_TASK;

// Bytes of the parameters of a notification that is passed on.
const MAX_PARAMS: u64 = 64 << 10;

/// Who has used a session so far.
#[derive(Default)]
pub(super) enum SessionUsers {
    #[default]
    Nobody,
    Only(OnlyUser),
    /// Several clients, or a caller that gets no notifications.
    Others,
}

#[derive(Clone)]
pub(super) struct OnlyUser {
    client: ClientId,
    // Where notifications go between calls; `None` for a client without a session.
    lasting: Option<Weak<dyn ExtensionListener>>,
}

impl SessionUsers {
    pub(super) fn add(&mut self, call: &CallContext) {
        let listener = match self {
            Self::Others => return,
            _ => call.extension_listener(),
        };
        *self = match (&*self, listener) {
            (Self::Only(known), Some(listener)) if known.client != listener.client() => {
                Self::Others
            }
            (_, Some(listener)) => Self::Only(OnlyUser {
                client: listener.client(),
                lasting: listener.outside_calls().as_ref().map(Arc::downgrade),
            }),
            (_, None) => Self::Others,
        };
    }
}

impl ClientSession {
    /// Passes a notification on that the protocol doesn't define. `request` is the request on whose
    /// stream it came, if it did.
    pub(super) fn handle_other_notification(
        &self,
        method: &str,
        params: &Value,
        request: Option<u64>,
    ) {
        let listener = extension_notification(method)
            .and_then(|name| self.find_extension_listener(name, params, request));
        let Some(listener) = listener else {
            return self
                .diagnostics
                .log_ignored(NoiseKind::Notification, method);
        };
        let is_taken = sanitize::length(params) <= MAX_PARAMS
            && listener.notify(ExtensionNotification {
                server: self.server.clone(),
                method: method.to_owned(),
                params: without_protocol_meta(params),
            });
        if !is_taken {
            self.diagnostics.log_ignored(NoiseKind::Extension, method);
        }
    }

    /// The client of the call that a notification names, or on whose stream it came. Otherwise the
    /// only one that it can be about: what a server says must not reach a stranger.
    fn find_extension_listener(
        &self,
        name: &str,
        params: &Value,
        request: Option<u64>,
    ) -> Option<Arc<dyn ExtensionListener>> {
        let task = params["_meta"][RELATED_TASK]["taskId"].as_str();
        let call = match (task, request) {
            (Some(task), _) => self.find_task(|running| running.has_id(task))?.context,
            (None, Some(id)) => self.pending_call(id)?.context,
            (None, None) => match self.pending_calls().pop() {
                Some(newest) => {
                    self.is_about_client_of(&newest.context)
                        .then_some(newest)?
                        .context
                }
                // What its client may get is checked when it is sent, which may be much later.
                None => return self.only_user()?.lasting?.upgrade(),
            },
        };
        let is_shared = shares_notification(&call, &self.server, name);
        call.extension_listener().filter(|_| is_shared).cloned()
    }

    /// True if what the server says while this call runs can only be about its client. In
    /// 2026-07-28, it is about one of the running requests. Before, it may be about anything that
    /// anybody has asked for, such as news of a thing that another client watches.
    fn is_about_client_of(&self, call: &CallContext) -> bool {
        let Some(client) = listening_client(call) else {
            return false;
        };
        if !self.is_modern() {
            return self.only_user().is_some_and(|only| only.client == client);
        }
        let is_same = |other: Option<ClientId>| other == Some(client);
        let running = self.pending_calls();
        running
            .iter()
            .all(|call| is_same(listening_client(&call.context)))
            && self.all_abandoned(|call| is_same(call.asker.client()))
    }

    fn only_user(&self) -> Option<OnlyUser> {
        match &*self.users.lock() {
            SessionUsers::Only(user) => Some(user.clone()),
            SessionUsers::Nobody | SessionUsers::Others => None,
        }
    }

    /// Sends a client's notification of an extension.
    pub(crate) async fn notify_for_call(
        &self,
        method: String,
        params: &Value,
        call: &CallContext,
    ) -> Result<(), SessionError> {
        // What the server says next may be about it.
        self.users.lock().add(call);
        self.remember_notification(call);
        let notification = SessionRequest {
            call: Some(call),
            ..SessionRequest::new(method, params)
        };
        let message = self.encode(None, notification, None)?;
        Ok(self.transport()?.send(message).await?)
    }

    /// Nobody answers a notification, so for a while the server may be working on it, as on a
    /// call that was cancelled.
    fn remember_notification(&self, call: &CallContext) {
        let caused = AbandonedCall::of_notification(call, self.abandoned_log_caller(call));
        let mut pending = self.pending.lock();
        let mut known = pending
            .abandoned
            .iter_mut()
            .filter_map(|it| it.call.as_mut());
        match known.find(|known| known.is_same_notifier(&caused)) {
            Some(known) => known.at = Instant::now(),
            None => {
                drop(pending);
                self.remember_abandoned(caused);
            }
        }
    }
}

fn listening_client(call: &CallContext) -> Option<ClientId> {
    call.extension_listener().map(|listener| listener.client())
}

/// The keys of the protocol are about the session with us.
fn without_protocol_meta(params: &Value) -> Value {
    let mut params = params.clone();
    if let Some(Value::Object(meta)) = params.get_mut("_meta") {
        meta.retain(|key, _| !key.starts_with("io.modelcontextprotocol/"));
    }
    params
}
