//! Recognizes the operator, who started the gateway: by a sign-in link in a browser, and by a key
//! that commands of the same user send.

use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use crate::guard::digest;

// How long a link stays valid until it is opened.
const LINK_LIFE: Duration = Duration::from_secs(12 * 3600);

/// The operator's link and command key, stored as hashes like tokens.
#[derive(Default)]
pub(crate) struct OperatorKeys {
    // A new link replaces the previous one.
    link: Mutex<Option<SignInLink>>,
    command: OnceLock<[u8; 32]>,
}

struct SignInLink {
    hash: [u8; 32],
    ends: Instant,
}

impl OperatorKeys {
    /// Lets this key sign in once.
    pub(crate) fn accept_link(&self, key: &str) {
        let link = SignInLink {
            hash: digest(key.as_bytes()),
            ends: Instant::now() + LINK_LIFE,
        };
        *self.link.lock() = Some(link);
    }

    /// True if this is the key of the latest link. Each key works only once.
    pub(crate) fn take_link(&self, key: &[u8]) -> bool {
        let hash = digest(key);
        let mut link = self.link.lock();
        let is_it =
            |link: &SignInLink| bool::from(link.hash.ct_eq(&hash)) && link.ends > Instant::now();
        let is_it = link.as_ref().is_some_and(is_it);
        if is_it {
            *link = None;
        }
        is_it
    }

    /// Sets the key for commands. Only the first call has an effect.
    pub(crate) fn accept_command_key(&self, key: &str) {
        self.command.get_or_init(|| digest(key.as_bytes()));
    }

    pub(crate) fn is_command_key(&self, key: &[u8]) -> bool {
        let known = self.command.get();
        known.is_some_and(|known| bool::from(known.ct_eq(&digest(key))))
    }
}

/// Generates a secret key, with which the operator or a command of this machine signs in.
///
/// It is for [`Gateway::accept_sign_in_key`](crate::Gateway::accept_sign_in_key) or
/// [`Gateway::accept_command_key`](crate::Gateway::accept_command_key). Returns `None` if the
/// system has no random numbers.
pub fn random_key() -> Option<String> {
    let mut key = [0_u8; 16];
    SystemRandom::new().fill(&mut key).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_link_works_once_until_it_expires_or_is_replaced() {
        let keys = OperatorKeys::default();
        assert!(!keys.take_link(b""));
        let [first, second, third] = [0; 3].map(|_| random_key().unwrap());
        assert_eq!(first.len(), 22, "128 bits");
        assert_ne!(first, second);
        keys.accept_link(&first);
        keys.accept_link(&second);
        assert!(!keys.take_link(first.as_bytes()));
        assert!(keys.take_link(second.as_bytes()));
        assert!(!keys.take_link(second.as_bytes()));
        keys.accept_link(&third);
        tokio::time::advance(LINK_LIFE).await;
        assert!(!keys.take_link(third.as_bytes()));
    }

    #[tokio::test]
    async fn command_keys_and_links_are_not_interchangeable() {
        let keys = OperatorKeys::default();
        let (link, command) = ("link", "command");
        keys.accept_link(link);
        keys.accept_command_key(command);
        assert!(keys.is_command_key(command.as_bytes()));
        assert!(!keys.is_command_key(link.as_bytes()) && !keys.take_link(command.as_bytes()));
        assert!(keys.take_link(link.as_bytes()) && !keys.is_command_key(b""));
    }
}
