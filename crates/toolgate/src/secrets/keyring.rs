//! The keyring of the desktop: the Secret Service of Linux (GNOME Keyring, KWallet, KeePassXC) or
//! the keychain of macOS.

#[cfg(all(feature = "keyring", target_os = "macos"))]
mod keychain;
#[cfg(all(feature = "keyring", not(target_os = "macos")))]
mod secret_service;

#[cfg(all(feature = "keyring", target_os = "macos"))]
pub(crate) use keychain::SystemKeyring;
#[cfg(all(feature = "keyring", not(target_os = "macos")))]
pub(crate) use secret_service::SystemKeyring;

// The service of our entries, beside their name, as other programs use keyrings.
const SERVICE: &str = "toolgate";

pub(crate) trait Keyring {
    /// `None` if the name is unknown.
    fn get(&self, name: &str) -> Result<Option<String>, KeyringError>;
    fn set(&self, name: &str, secret: &str) -> Result<(), KeyringError>;
    /// Returns false if the name was unknown.
    fn remove(&self, name: &str) -> Result<bool, KeyringError>;
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyringError {
    /// Normal on a machine without a desktop.
    #[error(
        "there is no keyring to ask ({0}), as on most machines without a desktop; keep the secret in a file of mode 0600 and write ${{file:PATH}}"
    )]
    Absent(String),
    #[error("the keyring is locked, and nobody has unlocked it; unlock it, or use ${{file:PATH}}")]
    Locked,
    #[error("the keyring did not answer in time; is it waiting for a password?")]
    Timeout,
    #[error("the secret in the keyring is not UTF-8")]
    NotText,
    #[error("the keyring refused: {0}")]
    Refused(String),
}
