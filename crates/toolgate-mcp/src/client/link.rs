//! The current session with a server, which its tools share across reconnects.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolgate_core::{ToolError, WithheldReason};

use super::call_result::with_details;
use super::session::ClientSession;
use super::subscriptions::ResourceSubscriptions;
use super::tasks::RunningTaskLimit;

#[derive(Clone)]
pub(crate) struct ServerLink {
    state: watch::Sender<LinkState>,
    withheld: Arc<ArcSwap<HashMap<String, WithheldReason>>>,
    subscriptions: Arc<ResourceSubscriptions>,
    tasks: RunningTaskLimit,
    closed: CancellationToken,
}

#[derive(Clone)]
enum LinkState {
    Idle,
    Connecting,
    Up(Arc<ClientSession>),
    Down {
        reason: String,
        details: Option<String>,
    },
}

impl ServerLink {
    pub(crate) fn new() -> Self {
        Self::with_state(LinkState::Connecting)
    }

    /// For a server that starts at the first request.
    pub(crate) fn new_idle() -> Self {
        Self::with_state(LinkState::Idle)
    }

    fn with_state(state: LinkState) -> Self {
        Self {
            state: watch::Sender::new(state),
            withheld: Arc::default(),
            subscriptions: ResourceSubscriptions::new(),
            tasks: RunningTaskLimit::default(),
            closed: CancellationToken::new(),
        }
    }

    pub(crate) fn subscriptions(&self) -> &Arc<ResourceSubscriptions> {
        &self.subscriptions
    }

    pub(crate) fn tasks(&self) -> &RunningTaskLimit {
        &self.tasks
    }

    /// The server is stopped for good: nothing waits for it any more.
    pub(crate) fn close(&self) {
        self.closed.cancel();
    }

    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Starts the server if it is idle.
    pub(crate) fn request_start(&self) {
        self.state.send_if_modified(|state| {
            let is_idle = matches!(state, LinkState::Idle);
            if is_idle {
                *state = LinkState::Connecting;
            }
            is_idle
        });
    }

    pub(crate) async fn wait_for_start_request(&self) {
        let mut state = self.state.subscribe();
        // Can't fail: `self` keeps the channel open.
        drop(
            state
                .wait_for(|state| !matches!(state, LinkState::Idle))
                .await,
        );
    }

    /// Has a connected server list again what has become too old.
    pub(crate) fn list_again_if_stale(&self) {
        if let LinkState::Up(session) = &*self.state.borrow() {
            session.list_again_if_stale();
        }
    }

    pub(crate) fn set_connecting(&self) {
        self.state.send_replace(LinkState::Connecting);
    }

    pub(crate) fn set_up(&self, session: Arc<ClientSession>) {
        self.state.send_replace(LinkState::Up(session));
    }

    /// Makes calls fail at once with this reason. `details` are for operators.
    pub(crate) fn set_down(&self, reason: impl Into<String>, details: Option<String>) {
        let reason = reason.into();
        self.state.send_replace(LinkState::Down { reason, details });
    }

    pub(crate) fn set_withheld(&self, withheld: HashMap<String, WithheldReason>) {
        self.withheld.store(Arc::new(withheld));
    }

    /// Fails if the tool was withheld while a call waited for the server: the call was made for the
    /// remembered tool, and the server may list a different one now.
    pub(crate) fn check_not_withheld(
        &self,
        original_name: &str,
        tool: &str,
    ) -> Result<(), ToolError> {
        let withheld = self.withheld.load();
        withheld
            .get(original_name)
            .map_or(Ok(()), |why| Err(why.error(tool)))
    }

    /// Returns the session, starting an idle server and waiting while it connects. The caller's
    /// deadline limits the wait.
    pub(crate) async fn session(&self, tool: &str) -> Result<Arc<ClientSession>, ToolError> {
        let unavailable = |reason: &str, details: &Option<String>| {
            with_details(ToolError::unavailable(tool, reason), details.clone())
        };
        self.request_start();
        let mut state = self.state.subscribe();
        let settled = state
            .wait_for(|state| match state {
                LinkState::Idle | LinkState::Connecting => false,
                // An ended connection is about to be replaced, so wait for the next one.
                LinkState::Up(session) => !session.is_over(),
                LinkState::Down { .. } => true,
            })
            .await;
        match settled.as_deref() {
            Ok(LinkState::Up(session)) => Ok(Arc::clone(session)),
            Ok(LinkState::Down { reason, details }) => Err(unavailable(reason, details)),
            Ok(LinkState::Idle | LinkState::Connecting) | Err(_) => {
                Err(unavailable("its server was removed", &None))
            }
        }
    }
}
