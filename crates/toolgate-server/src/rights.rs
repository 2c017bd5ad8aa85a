//! Defines what callers may do besides calling their tools.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::guard::Caller;
use crate::problem::Problem;

/// What a token may do besides calling tools, if its entry in the configuration says so. The tools
/// of a token never imply a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// Approve or refuse waiting calls of others.
    Approve,
    /// Add servers and mocks, reconnect servers, make recorded calls again.
    Operate,
    /// Read the calls, voice turns, events and statistics of everybody.
    SeeAll,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) approve: bool,
    pub(crate) operate: bool,
    pub(crate) see_all: bool,
}

impl Rights {
    pub(crate) const ALL: Self = Self {
        approve: true,
        operate: true,
        see_all: true,
    };
    /// For secrets that programs send: these may leak to the tools they call, so
    /// they never approve calls.
    pub(crate) const ALL_BUT_APPROVE: Self = Self {
        approve: false,
        ..Self::ALL
    };

    pub(crate) fn from_list(rights: &[Right]) -> Self {
        Self {
            approve: rights.contains(&Right::Approve),
            operate: rights.contains(&Right::Operate),
            see_all: rights.contains(&Right::SeeAll),
        }
    }

    /// Returns whether the right is granted, and its name in the configuration.
    fn check(self, right: Right) -> (bool, &'static str) {
        match right {
            Right::Approve => (self.approve, "approve"),
            Right::Operate => (self.operate, "operate"),
            Right::SeeAll => (self.see_all, "see_all"),
        }
    }
}

impl Caller {
    pub(crate) fn require(&self, right: Right) -> Result<(), Problem> {
        let (is_granted, word) = self.rights.check(right);
        if is_granted {
            return Ok(());
        }
        let detail = match (self.scope.caller(), right) {
            (None, _) => format!(
                "this needs the operator (the right '{word}'): sign in with the link that 'toolgate serve' printed; \
                 'kill -USR1' with its process id makes it print a new one"
            ),
            (Some("serve.token" | OPERATOR), Right::Approve) => {
                "the operator's token can't approve calls, because programs send it; approve in a browser that is signed in, \
                 at the terminal of 'toolgate serve', or with a token that has \"rights\": [\"approve\"] in serve.tokens"
                    .to_owned()
            }
            (Some(name), _) => format!(
                "the token '{}' does not have the right '{word}'; add \"rights\": [\"{word}\"] to its entry in serve.tokens",
                toolgate_core::text::escape(name)
            ),
        };
        Err(Problem::forbidden(detail))
    }
}

/// The name under which the journal records the person who started the gateway.
pub(crate) const OPERATOR: &str = "local operator";
