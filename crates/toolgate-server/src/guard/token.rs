//! Tokens: who knows one comes in.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use toolgate_core::{Pattern, Scope};

use super::Caller;
use crate::ServeSettings;

/// The tokens there are, each as a hash: all are equally long, and none can be read from memory.
pub(crate) struct Tokens(Vec<Known>);

struct Known {
    hash: [u8; 32],
    caller: Caller,
}

impl Tokens {
    pub(super) fn new(settings: &ServeSettings) -> Self {
        let mut known = Vec::new();
        let mut add = |number: usize, token: &str, name: &str, scope: Scope| {
            let scope = scope.of(name);
            if !token.is_empty() {
                known.push(Known {
                    hash: digest(token.as_bytes()),
                    caller: Caller {
                        number: number as u64,
                        scope,
                    },
                });
            }
        };
        add(1, &settings.token, "serve.token", Scope::default());
        for (index, token) in settings.tokens.iter().enumerate() {
            let unnamed = format!("serve.tokens[{index}]");
            let name = Some(token.name.as_str()).filter(|name| !name.is_empty());
            let scope = scope_of(&token.allow);
            add(index + 2, &token.token, name.unwrap_or(&unnamed), scope);
        }
        Self(known)
    }

    /// True if none is set: everybody on this machine may come in.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who has this token. It takes as long for a wrong one as for a right one.
    pub(crate) fn find(&self, token: &[u8]) -> Option<&Caller> {
        let hash = digest(token);
        let mut found = None;
        for known in &self.0 {
            if bool::from(known.hash.ct_eq(&hash)) {
                found = Some(&known.caller);
            }
        }
        found
    }

    /// Who signed in with this token, if it still is one.
    pub(super) fn by_number(&self, number: u64) -> Option<&Caller> {
        let known = self.0.iter().find(|known| known.caller.number == number);
        known.map(|known| &known.caller)
    }

    /// What it is called in the log.
    pub(crate) fn name(&self, number: u64) -> &str {
        let known = self.0.iter().find(|known| known.caller.number == number);
        let name = known.and_then(|known| known.caller.scope.caller());
        name.unwrap_or("everybody")
    }
}

fn scope_of(allow: &[Pattern]) -> Scope {
    if allow.contains(&Pattern::new("*")) {
        Scope::default()
    } else {
        Scope::only(allow.to_vec())
    }
}

pub(super) fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_token_opens_its_own_share_and_nothing_else_opens_any() {
        let settings = json!({
            "token": "all-all-all-all-all",
            "tokens": [
                { "token": "", "name": "unset" },
                { "token": "light-light-light", "allow": ["*_light"] },
                { "token": "none-none-none-none", "allow": [] },
                { "token": "more-more-more-more", "allow": ["echo", "*"] },
            ]
        });
        let tokens = Tokens::new(&serde_json::from_value(settings).unwrap());
        let number = |token: &str| tokens.find(token.as_bytes()).map(|caller| caller.number);
        let patterns = |number| {
            tokens
                .by_number(number)
                .unwrap()
                .scope
                .patterns()
                .map(<[_]>::len)
        };
        assert_eq!(number("all-all-all-all-all"), Some(1));
        assert_eq!(number("light-light-light"), Some(3));
        assert_eq!(
            (patterns(1), patterns(3), patterns(4), patterns(5)),
            (None, Some(1), Some(0), None)
        );
        for wrong in [
            "",
            "all-all-all-all-al",
            "all-all-all-all-all ",
            "ALL-ALL-ALL-ALL-ALL",
        ] {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
        assert_eq!(
            (tokens.name(1), tokens.name(3)),
            ("serve.token", "serve.tokens[1]")
        );
    }
}
