//! A file lock that serializes installations of one package, across servers and processes.
//!
//! Two runs of npx that install the same package at once write to the same folder, and older
//! versions of npm leave it broken. So the first start of such a server takes a file lock that is
//! named after the folder.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;
use toolgate_core::text::escape;
use tracing::{debug, info};

use super::connection::ServerConnector;

const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Held while a package may be installed. If dropped before [`release`](Self::release), it
/// stays locked until no process of the server is left, because npm writes to the folder while
/// it undoes a download.
pub(crate) struct InstallLock {
    file: Option<File>,
    connector: Arc<dyn ServerConnector>,
    server: String,
}

impl InstallLock {
    /// Waits for the lock. If the file can't be locked, the installation goes on without it.
    pub(crate) async fn acquire(
        path: &Path,
        server: &str,
        connector: &Arc<dyn ServerConnector>,
    ) -> Self {
        let mut file = open_lock_file(path);
        let mut is_logged = false;
        while let Some(unlocked) = &file {
            match unlocked.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    debug!(%error, "the package installation can't be locked");
                    file = None;
                    break;
                }
            }
            if !std::mem::replace(&mut is_logged, true) {
                info!(server = %escape(server), "MCP server waits: another start installs the same package");
            }
            sleep(LOCK_POLL_INTERVAL).await;
        }
        Self {
            file,
            connector: Arc::clone(connector),
            server: server.to_owned(),
        }
    }

    pub(crate) fn release(mut self) {
        self.file = None;
    }
}

impl Drop for InstallLock {
    fn drop(&mut self) {
        let (Some(file), Ok(runtime)) = (self.file.take(), Handle::try_current()) else {
            return;
        };
        let connector = Arc::clone(&self.connector);
        let server = std::mem::take(&mut self.server);
        runtime.spawn(async move {
            connector.wait_for_exit(&server).await;
            drop(file);
        });
    }
}

fn open_lock_file(path: &Path) -> Option<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    match options.open(path) {
        Ok(file) => Some(file),
        Err(error) => {
            debug!(%error, "the package installation can't be locked");
            None
        }
    }
}
