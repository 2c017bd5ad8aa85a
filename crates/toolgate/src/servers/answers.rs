//! Who answers the questions of servers.

use std::sync::Arc;

use toolgate_mcp::ElicitationHandler;

use crate::elicit::TerminalElicitationHandler;
use crate::spinner::Spinner;

/// Who answers what servers ask, besides the model that they may use.
pub(crate) struct ServerAnswers {
    pub(super) elicitation_handler: Option<Arc<dyn ElicitationHandler>>,
    // The clients that call their tools may be able to.
    pub(super) in_clients: bool,
}

impl ServerAnswers {
    pub(crate) fn at_terminal(spinner: &Spinner) -> Self {
        let handler = TerminalElicitationHandler::new(spinner);
        Self {
            elicitation_handler: handler.map(|handler| Arc::new(handler) as Arc<_>),
            in_clients: false,
        }
    }

    pub(crate) fn in_clients() -> Self {
        Self {
            elicitation_handler: None,
            in_clients: true,
        }
    }

    /// The clients first, and `handler` for those that can't be asked.
    #[cfg(feature = "serve")]
    pub(crate) fn in_clients_or_with(handler: impl ElicitationHandler + 'static) -> Self {
        Self {
            elicitation_handler: Some(Arc::new(handler)),
            in_clients: true,
        }
    }
}
