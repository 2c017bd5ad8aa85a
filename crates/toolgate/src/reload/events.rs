//! What a reload waits for.

use tokio::signal::unix::Signal;
use tokio::time::Instant;

use super::file_watch::FileWatch;
use super::reading::{ReadResult, ReadTask};

pub(super) async fn changed(watch: &mut notify::Result<FileWatch>) {
    match watch {
        Ok(watch) => watch.changed().await,
        Err(_) => std::future::pending().await,
    }
}

pub(super) async fn passed(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

pub(super) async fn told(signal: &mut Option<Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Returns when the file has been read, if it is.
pub(super) async fn finished(reading: &mut Option<ReadTask>) -> ReadResult {
    match reading {
        Some(task) => task.await,
        None => std::future::pending().await,
    }
}
