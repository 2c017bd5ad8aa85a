//! The keychain of macOS.

use security_framework::passwords::{
    delete_generic_password, get_generic_password, set_generic_password,
};

use super::{Keyring, KeyringError, SERVICE};

// `errSecItemNotFound`
const NOT_FOUND: i32 = -25300;

pub(crate) struct SystemKeyring;

impl Keyring for SystemKeyring {
    fn get(&self, name: &str) -> Result<Option<String>, KeyringError> {
        match get_generic_password(SERVICE, name) {
            Ok(secret) => String::from_utf8(secret)
                .map(Some)
                .map_err(|_| KeyringError::NotText),
            Err(error) if error.code() == NOT_FOUND => Ok(None),
            Err(error) => Err(KeyringError::Refused(error.to_string())),
        }
    }

    fn set(&self, name: &str, secret: &str) -> Result<(), KeyringError> {
        set_generic_password(SERVICE, name, secret.as_bytes())
            .map_err(|error| KeyringError::Refused(error.to_string()))
    }

    fn remove(&self, name: &str) -> Result<bool, KeyringError> {
        match delete_generic_password(SERVICE, name) {
            Ok(()) => Ok(true),
            Err(error) if error.code() == NOT_FOUND => Ok(false),
            Err(error) => Err(KeyringError::Refused(error.to_string())),
        }
    }
}
