//! What a caller may do besides calling its tools.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::guard::Caller;
use crate::problem::Problem;

/// Something that a token may do only if its entry says so: a list of tools says what its holder may
/// call, never whom it may decide for.
///
/// ```
/// use toolgate_server::Right;
///
/// let rights: Vec<Right> = serde_json::from_str(r#"["approve", "see_all"]"#).unwrap();
/// assert_eq!(rights, [Right::Approve, Right::SeeAll]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// Let calls of others run that wait for approval, or refuse them.
    Approve,
    /// Add servers and mocks, reconnect servers, make recorded calls again.
    Operate,
    /// Read the calls, voice turns, events and figures of everybody.
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
    /// A secret that programs send may have leaked to what it calls: it never approves.
    pub(crate) const ALL_BUT_APPROVE: Self = Self {
        approve: false,
        ..Self::ALL
    };

    pub(crate) fn of(rights: &[Right]) -> Self {
        Self {
            approve: rights.contains(&Right::Approve),
            operate: rights.contains(&Right::Operate),
            see_all: rights.contains(&Right::SeeAll),
        }
    }

    fn has(self, right: Right) -> bool {
        match right {
            Right::Approve => self.approve,
            Right::Operate => self.operate,
            Right::SeeAll => self.see_all,
        }
    }
}

impl Right {
    fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Operate => "operate",
            Self::SeeAll => "see_all",
        }
    }
}

impl Caller {
    /// Why this caller may not do something that needs a right, and what would change that.
    pub(crate) fn expect(&self, right: Right) -> Result<(), Problem> {
        if self.rights.has(right) {
            return Ok(());
        }
        let word = right.as_str();
        let detail = match (self.scope.caller(), right) {
            (None, _) => format!(
                "this needs the operator (the right '{word}'): sign in with the link that 'toolgate serve' printed; \
                 'kill -USR1' with its process id makes it print a new one"
            ),
            (Some("serve.token" | OPERATOR), Right::Approve) => {
                "the operator approves calls in a browser that is signed in, or at the terminal of 'toolgate serve', not \
                 with a token that programs send; a token for that has \"rights\": [\"approve\"] in serve.tokens"
                    .to_owned()
            }
            (Some(name), _) => format!(
                "the token '{}' does not have the right '{word}'; \"rights\": [\"{word}\"] in its entry of serve.tokens \
                 gives it",
                toolgate_core::escape(name)
            ),
        };
        Err(Problem::new(StatusCode::FORBIDDEN, detail))
    }
}

/// What the one who started the gateway is called, in the journal and everywhere else.
pub(crate) const OPERATOR: &str = "local operator";
