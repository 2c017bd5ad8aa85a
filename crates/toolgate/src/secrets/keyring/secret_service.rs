//! The Secret Service over D-Bus.

use std::collections::HashMap;
use std::time::Duration;

use secret_service::{EncryptionType, Error, Item, SecretService};

use super::{Keyring, KeyringError, SERVICE};

/// Long enough for a person to type the keyring's password.
const LIMIT: Duration = Duration::from_secs(30);

/// That of the session this program runs in.
pub(crate) struct SystemKeyring;

impl Keyring for SystemKeyring {
    fn get(&self, name: &str) -> Result<Option<String>, KeyringError> {
        run(async {
            let service = connect().await?;
            let Some(item) = find(&service, name).await? else {
                return Ok(None);
            };
            let secret = item.get_secret().await?;
            let text = String::from_utf8(secret).map_err(|_| KeyringError::NotText)?;
            Ok(Some(text))
        })
    }

    fn set(&self, name: &str, secret: &str) -> Result<(), KeyringError> {
        run(async {
            let service = connect().await?;
            let collection = service.get_any_collection().await?;
            if collection.is_locked().await? {
                collection.unlock().await?;
            }
            let label = format!("{SERVICE}: {name}");
            collection
                .create_item(
                    &label,
                    attributes(name),
                    secret.as_bytes(),
                    true,
                    "text/plain",
                )
                .await?;
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> Result<bool, KeyringError> {
        run(async {
            let service = connect().await?;
            let mut was_there = false;
            while let Some(item) = find(&service, name).await? {
                item.delete().await?;
                was_there = true;
            }
            Ok(was_there)
        })
    }
}

fn attributes(name: &str) -> HashMap<&str, &str> {
    HashMap::from([("service", SERVICE), ("username", name)])
}

async fn connect() -> Result<SecretService<'static>, KeyringError> {
    let connected = SecretService::connect(EncryptionType::Dh).await;
    // Whatever fails here, there is nobody to ask.
    connected.map_err(|error| KeyringError::Absent(error.to_string()))
}

/// The entry of this name, unlocked.
async fn find<'a>(
    service: &'a SecretService<'_>,
    name: &str,
) -> Result<Option<Item<'a>>, KeyringError> {
    let found = service.search_items(attributes(name)).await?;
    if let Some(item) = found.unlocked.into_iter().next() {
        return Ok(Some(item));
    }
    let Some(item) = found.locked.into_iter().next() else {
        return Ok(None);
    };
    item.unlock().await?;
    Ok(Some(item))
}

/// On a thread and a runtime of its own: configurations are also read where a runtime is at work.
fn run<T: Send>(
    work: impl Future<Output = Result<T, KeyringError>> + Send,
) -> Result<T, KeyringError> {
    let refused = |error: std::io::Error| KeyringError::Refused(error.to_string());
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(refused)?;
        let limited = async { tokio::time::timeout(LIMIT, work).await };
        runtime
            .block_on(limited)
            .unwrap_or(Err(KeyringError::Timeout(LIMIT.as_secs())))
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(work);
        let crashed = |_| Err(KeyringError::Refused("it could not be asked".to_owned()));
        thread.join().unwrap_or_else(crashed)
    })
}

impl From<Error> for KeyringError {
    fn from(error: Error) -> Self {
        match error {
            Error::Locked | Error::Prompt => Self::Locked,
            Error::Unavailable | Error::NoResult => Self::Absent(error.to_string()),
            other => Self::Refused(other.to_string()),
        }
    }
}
