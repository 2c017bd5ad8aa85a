//! One installation of a package at a time, across servers and processes.
//!
//! Two runs of npx that install one package at the same moment write into one folder, and older versions of npm leave it
//! broken. So the first start of such a server waits for a file lock that is named after that folder.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;
use toolgate_core::escape;
use tracing::{debug, info};

use super::peer::Reach;

/// How often a lock that another start holds is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// Held while a package may be being installed. Dropped before [`finish`](Self::finish), it stays locked until nothing is left
/// of the server's process: a download that is taken back still writes.
pub(crate) struct InstallLock {
    file: Option<File>,
    reach: Arc<dyn Reach>,
    server: String,
}

impl InstallLock {
    /// Waits for its turn. Where the lock can't be had at all, the start goes on without it.
    pub(crate) async fn acquire(path: &Path, server: &str, reach: &Arc<dyn Reach>) -> Self {
        let mut file = open(path);
        let mut is_told = false;
        while let Some(open) = &file {
            match open.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    debug!(%error, "an installation can't be locked");
                    file = None;
                    break;
                }
            }
            if !std::mem::replace(&mut is_told, true) {
                info!(server = %escape(server), "MCP server waits: another start installs the same package");
            }
            sleep(TRY_AGAIN).await;
        }
        Self {
            file,
            reach: Arc::clone(reach),
            server: server.to_owned(),
        }
    }

    pub(crate) fn finish(mut self) {
        self.file = None;
    }
}

impl Drop for InstallLock {
    fn drop(&mut self) {
        let (Some(file), Ok(runtime)) = (self.file.take(), Handle::try_current()) else {
            return;
        };
        let (reach, server) = (Arc::clone(&self.reach), std::mem::take(&mut self.server));
        runtime.spawn(async move {
            reach.cleared(&server).await;
            drop(file);
        });
    }
}

fn open(path: &Path) -> Option<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    match options.open(path) {
        Ok(file) => Some(file),
        Err(error) => {
            debug!(%error, "an installation can't be locked");
            None
        }
    }
}
