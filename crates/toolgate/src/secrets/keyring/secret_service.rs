//! The Secret Service over D-Bus.

use std::collections::HashMap;

use dbus_secret_service::{EncryptionType, Error, Item, SecretService};

use super::{Keyring, KeyringError, SERVICE};

/// Long enough for a person to type the keyring's password.
const PROMPT_SECONDS: u64 = 30;

pub(crate) struct SystemKeyring;

impl Keyring for SystemKeyring {
    fn get(&self, name: &str) -> Result<Option<String>, KeyringError> {
        let service = connect()?;
        let Some(item) = find(&service, name)? else {
            return Ok(None);
        };
        let text = String::from_utf8(item.get_secret()?).map_err(|_| KeyringError::NotText)?;
        Ok(Some(text))
    }

    fn set(&self, name: &str, secret: &str) -> Result<(), KeyringError> {
        let service = connect()?;
        let collection = service.get_any_collection()?;
        if collection.is_locked()? {
            collection.unlock()?;
        }
        let label = format!("{SERVICE}: {name}");
        let secret = secret.as_bytes();
        collection.create_item(&label, attributes(name), secret, true, "text/plain")?;
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<bool, KeyringError> {
        let service = connect()?;
        let found = service.search_items(attributes(name))?;
        // Other programs may have made more than one. Searching until none is left could go on for
        // ever with a service that deletes nothing.
        for item in found.unlocked.iter().chain(&found.locked) {
            item.unlock()?;
            item.delete()?;
        }
        Ok(!(found.unlocked.is_empty() && found.locked.is_empty()))
    }
}

fn attributes(name: &str) -> HashMap<&str, &str> {
    HashMap::from([("service", SERVICE), ("username", name)])
}

fn connect() -> Result<SecretService, KeyringError> {
    // Encryption would hide nothing: a process that can read this user's session bus can also ask
    // the service itself.
    let plain = EncryptionType::Plain;
    SecretService::connect_with_max_prompt_timeout(plain, PROMPT_SECONDS)
        // Any failure here means that the service is missing.
        .map_err(|error| KeyringError::Absent(error.to_string()))
}

fn find<'a>(service: &'a SecretService, name: &str) -> Result<Option<Item<'a>>, KeyringError> {
    let found = service.search_items(attributes(name))?;
    if let Some(item) = found.unlocked.into_iter().next() {
        return Ok(Some(item));
    }
    let Some(item) = found.locked.into_iter().next() else {
        return Ok(None);
    };
    item.unlock()?;
    Ok(Some(item))
}

impl From<Error> for KeyringError {
    fn from(error: Error) -> Self {
        match error {
            Error::Locked | Error::Prompt => Self::Locked,
            Error::Unavailable | Error::NoResult => Self::Absent(error.to_string()),
            Error::Dbus(error) if error.name() == Some("org.freedesktop.DBus.Error.NoReply") => {
                Self::Timeout
            }
            other => Self::Refused(other.to_string()),
        }
    }
}
