//! Who answers the questions of servers.

use std::sync::Arc;

use toolgate_mcp::{Elicitor, SoleClientLog};

use crate::elicit::TerminalElicitor;
use crate::spinner::Spinner;

/// Who answers what servers ask, besides the model that they may use, and who gets what they log
/// outside of calls.
pub(crate) struct ServerAnswers {
    pub(super) elicitor: Option<Arc<dyn Elicitor>>,
    // The clients that call their tools may be able to.
    pub(super) in_clients: bool,
    pub(super) log: Option<SoleClientLog>,
}

impl ServerAnswers {
    pub(crate) fn at_terminal(spinner: &Spinner) -> Self {
        let elicitor = TerminalElicitor::new(spinner);
        Self {
            elicitor: elicitor.map(|elicitor| Arc::new(elicitor) as Arc<_>),
            in_clients: false,
            log: None,
        }
    }

    pub(crate) fn in_clients() -> Self {
        Self {
            elicitor: None,
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

    /// The clients first, and `elicitor` for those that can't be asked.
    #[cfg(feature = "serve")]
    pub(crate) fn in_clients_or_with(elicitor: impl Elicitor + 'static) -> Self {
        Self {
            elicitor: Some(Arc::new(elicitor)),
            ..Self::in_clients()
        }
    }
}
