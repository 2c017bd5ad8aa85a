//! Who answers the questions of servers.

use std::sync::Arc;

use toolgate_mcp::{ElicitationHandler, SoleClientLog};

use crate::elicit::TerminalElicitationHandler;
use crate::spinner::Spinner;

/// Who answers what servers ask, besides the model that they may use, and who gets what they
/// log outside of calls.
pub(crate) struct ServerAnswers {
    pub(super) elicitation_handler: Option<Arc<dyn ElicitationHandler>>,
    // The clients that call their tools may be able to.
    pub(super) in_clients: bool,
    pub(super) log: Option<SoleClientLog>,
}

impl ServerAnswers {
    pub(crate) fn at_terminal(spinner: &Spinner) -> Self {
        let handler = TerminalElicitationHandler::new(spinner);
        Self {
            elicitation_handler: handler.map(|handler| Arc::new(handler) as Arc<_>),
            in_clients: false,
            log: None,
        }
    }

    pub(crate) fn in_clients() -> Self {
        Self {
            elicitation_handler: None,
            in_clients: true,
            log: None,
        }
    }

    pub(crate) fn in_sole_client(log: SoleClientLog) -> Self {
        Self {
            log: Some(log),
            ..Self::in_clients()
        }
    }

    /// The clients first, and `handler` for those that can't be asked.
    #[cfg(feature = "serve")]
    pub(crate) fn in_clients_or_with(handler: impl ElicitationHandler + 'static) -> Self {
        Self {
            elicitation_handler: Some(Arc::new(handler)),
            ..Self::in_clients()
        }
    }
}
