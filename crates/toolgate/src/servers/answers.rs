//! Who answers the questions of servers.

use std::sync::Arc;

use toolgate_mcp::Elicitor;

use crate::elicit::TerminalElicitor;
use crate::spinner::Spinner;

/// Who answers what servers ask, besides the model that they may use.
pub(crate) struct ServerAnswers {
    pub(super) elicitor: Option<Arc<dyn Elicitor>>,
    // The clients that call their tools may be able to.
    pub(super) in_clients: bool,
}

impl ServerAnswers {
    pub(crate) fn at_terminal(spinner: &Spinner) -> Self {
        let elicitor = TerminalElicitor::new(spinner);
        Self {
            elicitor: elicitor.map(|elicitor| Arc::new(elicitor) as Arc<_>),
            in_clients: false,
        }
    }

    pub(crate) fn in_clients() -> Self {
        Self {
            elicitor: None,
            in_clients: true,
        }
    }

    /// The clients first, and `elicitor` for those that can't be asked.
    #[cfg(feature = "serve")]
    pub(crate) fn in_clients_or_with(elicitor: impl Elicitor + 'static) -> Self {
        Self {
            elicitor: Some(Arc::new(elicitor)),
            in_clients: true,
        }
    }
}
