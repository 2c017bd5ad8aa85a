//! Recognizes tokens and maps them to callers.

use std::sync::Arc;

use ring::digest::SHA256;
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;
use toolgate_core::{Scope, ToolPattern};

use super::Caller;
use crate::ServeSettings;
use crate::rights::Rights;

/// The valid tokens, stored as hashes: all have the same length, and no token can
/// be read from memory.
pub(crate) struct AccessTokens {
    known: Vec<KnownToken>,
    // The number of the next new token. Numbers are never reused, so that no token inherits the
    // sessions or conversations of a former one.
    next: u64,
}

struct KnownToken {
    hash: [u8; 32],
    caller: Caller,
    // The rights of a browser that signed in with this token.
    session_rights: Rights,
    // Cancelled when the token becomes invalid.
    revoked: CancellationToken,
}

impl AccessTokens {
    pub(crate) fn new(settings: &ServeSettings) -> Self {
        let mut known = Vec::new();
        let mut add = |number: usize, token: &str, scope: Scope, rights: (Rights, Rights)| {
            if !token.is_empty() {
                known.push(KnownToken {
                    hash: digest(token.as_bytes()),
                    caller: Caller {
                        number: number as u64,
                        identity: identity_of(token, &scope),
                        scope,
                        rights: rights.0,
                        is_session: false,
                    },
                    session_rights: rights.1,
                    revoked: CancellationToken::new(),
                });
            }
        };
        let operators = (Rights::OPERATOR_PROGRAM, Rights::OPERATOR);
        let scope = Scope::default().for_caller("serve.token");
        add(1, &settings.token, scope, operators);
        for (index, token) in settings.tokens.iter().enumerate() {
            let unnamed = format!("serve.tokens[{index}]");
            let name = Some(token.name.as_str()).filter(|name| !name.is_empty());
            let scope = scope_of(&token.allow).for_caller(name.unwrap_or(&unnamed));
            let rights = Rights::from_list(&token.rights);
            add(index + 2, &token.token, scope, (rights, rights));
        }
        Self {
            known,
            next: settings.tokens.len() as u64 + 2,
        }
    }

    /// Returns the tokens of new settings. An unchanged token keeps its number, and with it its
    /// sessions. A token whose secret, name, tools or rights changed gets a new number.
    pub(crate) fn with_settings(&self, settings: &ServeSettings) -> Self {
        let mut after = Self::new(settings);
        after.next = self.next;
        for known in &mut after.known {
            match self.known.iter().find(|old| old.is_same(known)) {
                Some(old) => {
                    known.caller.number = old.caller.number;
                    known.revoked = old.revoked.clone();
                }
                None => {
                    known.caller.number = after.next;
                    after.next += 1;
                }
            }
        }
        after
    }

    /// Cancels [`revoked`](Self::revoked) of all tokens that `others` doesn't contain.
    pub(crate) fn revoke_all_but(&self, others: &Self) {
        for known in &self.known {
            if others.by_number(known.caller.number).is_none() {
                known.revoked.cancel();
            }
        }
    }

    /// Cancelled when the token becomes invalid, or now if it already is. Callers without a token
    /// and the operator are never revoked.
    pub(super) fn revoked(&self, number: u64) -> CancellationToken {
        let known = self.by_number(number);
        let revoked = known.map(|known| known.revoked.clone()).unwrap_or_default();
        if known.is_none() && !matches!(number, 0 | Caller::OPERATOR) {
            revoked.cancel();
        }
        revoked
    }

    /// True if no token is needed, so that everybody on this machine may connect.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(crate) fn find(&self, token: &[u8]) -> Option<&Caller> {
        let hash = digest(token);
        let mut found = None;
        // Compares with every token in constant time, so that timing reveals nothing about them.
        for known in &self.known {
            if bool::from(known.hash.ct_eq(&hash)) {
                found = Some(&known.caller);
            }
        }
        found
    }

    /// The caller of a browser that signed in with this token, if the token still exists.
    pub(super) fn session_caller(&self, number: u64) -> Option<Caller> {
        let known = self.by_number(number)?;
        Some(Caller {
            rights: known.session_rights,
            is_session: true,
            ..known.caller.clone()
        })
    }

    pub(crate) fn name(&self, number: u64) -> &str {
        let known = self.by_number(number);
        let name = known.and_then(|known| known.caller.scope.caller());
        name.unwrap_or("everybody")
    }

    fn by_number(&self, number: u64) -> Option<&KnownToken> {
        self.known
            .iter()
            .find(|known| known.caller.number == number)
    }
}

impl KnownToken {
    fn is_same(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.caller.scope, &other.caller.scope);
        self.hash == other.hash
            && ours.caller() == theirs.caller()
            && ours.patterns() == theirs.patterns()
            && self.session_rights == other.session_rights
    }
}

/// Stands for a token with its name and tools, so that after a change it is another caller.
fn identity_of(token: &str, scope: &Scope) -> Arc<str> {
    let patterns = scope.patterns().map(|patterns| {
        let texts = patterns.iter().map(ToString::to_string);
        texts.collect::<Vec<_>>()
    });
    let all = json!([digest(token.as_bytes()), scope.caller(), patterns]);
    let hash = digest(all.to_string().as_bytes());
    let hex = hash.iter().map(|byte| format!("{byte:02x}"));
    hex.collect::<String>().into()
}

fn scope_of(allow: &[ToolPattern]) -> Scope {
    if allow.contains(&ToolPattern::new("*")) {
        Scope::default()
    } else {
        Scope::only(allow.to_vec())
    }
}

pub(crate) fn digest(secret: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(ring::digest::digest(&SHA256, secret).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchanged_token_keeps_its_number() {
        let tokens = |json| AccessTokens::new(&serde_json::from_value(json).unwrap());
        let (a, b, c) = ("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc");
        let before = tokens(json!({ "tokens": [
            { "token": a, "name": "a" },
            { "token": b, "name": "b", "allow": ["echo"] },
            { "token": c, "name": "c" },
        ] }));
        let settings = json!({ "tokens": [
            { "token": c, "name": "c" },
            { "token": b, "name": "b", "allow": ["echo", "search"] },
        ] });
        let after = before.with_settings(&serde_json::from_value(settings).unwrap());
        let number = |tokens: &AccessTokens, token: &str| {
            tokens.find(token.as_bytes()).map(|caller| caller.number)
        };
        let numbers = [a, b, c].map(|token| number(&before, token));
        assert_eq!(numbers, [Some(2), Some(3), Some(4)]);
        let numbers = [a, b, c].map(|token| number(&after, token));
        assert_eq!(numbers, [None, Some(5), Some(4)]);
        before.revoke_all_but(&after);
        let is_cut = |n| before.revoked(n).is_cancelled();
        assert_eq!([2, 3, 4].map(is_cut), [true, true, false]);
        let is_cut = |n| after.revoked(n).is_cancelled();
        assert_eq!([0, 2, 4, 5].map(is_cut), [false, true, false, false]);
    }

    #[test]
    fn a_token_is_the_same_caller_after_a_restart_unless_it_changed() {
        let identity = |settings| {
            let tokens = AccessTokens::new(&serde_json::from_value(settings).unwrap());
            let caller = tokens.find(b"bbbbbbbbbbbbbbbb").unwrap();
            caller.identity.to_string()
        };
        let (a, b) = ("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb");
        let alone = identity(json!({ "tokens": [{ "token": b, "name": "b" }] }));
        let first = json!({ "token": a, "name": "b" });
        let second = identity(json!({ "tokens": [first, { "token": b, "name": "b" }] }));
        assert_eq!(alone, second);
        for changed in [
            json!({ "token": b, "name": "c" }),
            json!({ "token": b, "name": "b", "allow": ["echo"] }),
            json!({ "token": b }),
        ] {
            assert_ne!(identity(json!({ "tokens": [changed] })), alone);
        }
        assert!(!alone.contains("bbbb"));
    }

    #[test]
    fn a_token_has_its_own_tools_and_other_texts_are_no_tokens() {
        let settings = json!({
            "token": "all-all-all-all-all",
            "tokens": [
                { "token": "", "name": "unset" },
                { "token": "light-light-light", "allow": ["*_light"] },
                { "token": "none-none-none-none", "allow": [] },
                { "token": "more-more-more-more", "allow": ["echo", "*"] },
            ]
        });
        let tokens = AccessTokens::new(&serde_json::from_value(settings).unwrap());
        let number = |token: &str| tokens.find(token.as_bytes()).map(|caller| caller.number);
        let patterns = |number| {
            tokens
                .session_caller(number)
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
