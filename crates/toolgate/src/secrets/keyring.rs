//! The keyring of the desktop: the Secret Service of Linux (GNOME Keyring, KWallet, KeePassXC) or the keychain of macOS.

#[cfg(all(feature = "keyring", target_os = "macos"))]
mod keychain;
#[cfg(all(feature = "keyring", not(target_os = "macos")))]
mod secret_service;

#[cfg(all(feature = "keyring", target_os = "macos"))]
pub(crate) use keychain::SystemKeyring;
#[cfg(all(feature = "keyring", not(target_os = "macos")))]
pub(crate) use secret_service::SystemKeyring;

/// What our entries are filed under, with their name beside it: as other programs that use keyrings do.
const SERVICE: &str = "toolgate";

/// Where secrets are kept by name.
pub(crate) trait Keyring {
    /// `None` if there is none of this name.
    fn get(&self, name: &str) -> Result<Option<String>, KeyringError>;
    fn set(&self, name: &str, secret: &str) -> Result<(), KeyringError>;
    /// False if there was none of this name.
    fn remove(&self, name: &str) -> Result<bool, KeyringError>;
}

/// Why the keyring could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyringError {
    /// Normal on a machine without a desktop.
    #[error(
        "there is no keyring to ask ({0}), as on most machines without a desktop; keep the secret in a file of mode 0600 and write ${{file:PATH}}"
    )]
    Absent(String),
    #[error("the keyring is locked, and nobody has unlocked it; unlock it, or use ${{file:PATH}}")]
    Locked,
    #[error("the keyring did not answer within {0} s; is it waiting for a password?")]
    Timeout(u64),
    #[error("the secret in the keyring is not UTF-8")]
    NotText,
    #[error("the keyring refused: {0}")]
    Refused(String),
}
