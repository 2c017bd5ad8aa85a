//! The current connection of a server, as its tools see it.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use toolgate_core::{ToolError, Withheld};

use super::session::Session;

/// One per configured server, for as long as it is configured; connections come and go in it.
#[derive(Clone)]
pub(crate) struct Link {
    state: watch::Sender<State>,
    /// Tools that may not be called, by their name on the server.
    withheld: Arc<ArcSwap<HashMap<String, Withheld>>>,
}

#[derive(Clone)]
enum State {
    Idle,
    Connecting,
    Up(Arc<Session>),
    Down {
        reason: String,
        details: Option<String>,
    },
}

impl Link {
    pub(crate) fn new() -> Self {
        Self {
            state: watch::Sender::new(State::Connecting),
            withheld: Arc::default(),
        }
    }

    pub(crate) fn idle() -> Self {
        Self {
            state: watch::Sender::new(State::Idle),
            withheld: Arc::default(),
        }
    }

    /// The server is needed: an idle one is to be started.
    pub(crate) fn want(&self) {
        self.state.send_if_modified(|state| {
            let is_idle = matches!(state, State::Idle);
            if is_idle {
                *state = State::Connecting;
            }
            is_idle
        });
    }

    pub(crate) async fn wanted(&self) {
        let mut state = self.state.subscribe();
        // It can't fail: `self` keeps the channel open.
        drop(state.wait_for(|state| !matches!(state, State::Idle)).await);
    }

    pub(crate) fn connecting(&self) {
        self.state.send_replace(State::Connecting);
    }

    pub(crate) fn up(&self, session: Arc<Session>) {
        self.state.send_replace(State::Up(session));
    }

    /// Calls fail at once with this reason; `details` are for an operator.
    pub(crate) fn down(&self, reason: impl Into<String>, details: Option<String>) {
        let reason = reason.into();
        self.state.send_replace(State::Down { reason, details });
    }

    /// Calls of these fail, even if they found their tool before.
    pub(crate) fn withhold(&self, withheld: HashMap<String, Withheld>) {
        self.withheld.store(Arc::new(withheld));
    }

    /// An error if the tool is withheld by now. A call that waits for its server has found the tool as it was remembered; what the
    /// server lists once it is there may be another one.
    pub(crate) fn expect_agreed(&self, original_name: &str, tool: &str) -> Result<(), ToolError> {
        match self.withheld.load().get(original_name) {
            Some(why) => Err(why.error(tool)),
            None => Ok(()),
        }
    }

    /// The session, once it is there. Starts an idle server, and waits while it is being connected: the caller's deadline is
    /// the bound.
    pub(crate) async fn session(&self, tool: &str) -> Result<Arc<Session>, ToolError> {
        let unavailable = |reason: &str, details: &Option<String>| {
            let error = ToolError::unavailable(tool, reason);
            match details {
                Some(details) => error.with_details(details.clone()),
                None => error,
            }
        };
        self.want();
        let mut state = self.state.subscribe();
        let settled = state
            .wait_for(|state| match state {
                State::Idle | State::Connecting => false,
                // A connection that is over is replaced in a moment; whoever comes before that waits for the next one.
                State::Up(session) => !session.is_over(),
                State::Down { .. } => true,
            })
            .await;
        match settled.as_deref() {
            Ok(State::Up(session)) => Ok(Arc::clone(session)),
            Ok(State::Down { reason, details }) => Err(unavailable(reason, details)),
            Ok(State::Idle | State::Connecting) | Err(_) => {
                Err(unavailable("its server was removed", &None))
            }
        }
    }
}
