//! Notices that the configuration file was written, however an editor does it.

use std::ffi::OsString;
use std::path::Path;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// Changes of one file, for as long as it lives.
pub(super) struct FileWatch {
    changes: mpsc::Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl FileWatch {
    /// Fails where the system can't watch, as when its limit of watches is reached.
    pub(super) fn start(path: &Path) -> notify::Result<Self> {
        let (watcher, changes) = watch(path)?;
        Ok(Self {
            changes,
            _watcher: watcher,
        })
    }

    /// Returns at the next change, at once if there was one since the last time.
    pub(super) async fn changed(&mut self) {
        if self.changes.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Watches the folder: an editor that replaces the file would take a watch on the file itself along with the old one.
fn watch(path: &Path) -> notify::Result<(RecommendedWatcher, mpsc::Receiver<()>)> {
    let path = std::path::absolute(path).map_err(notify::Error::io)?;
    let mut places = vec![path.clone()];
    // Behind a link the text changes elsewhere.
    places.extend(
        std::fs::canonicalize(&path)
            .ok()
            .filter(|real| *real != path),
    );
    let names: Vec<OsString> = places
        .iter()
        .filter_map(|place| Some(place.file_name()?.to_owned()))
        .collect();
    // One that waits is enough for any number of changes.
    let (changed, changes) = mpsc::channel(1);
    let first = changed.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        let is_ours = match &event {
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => false,
            Ok(event) => {
                event.need_rescan()
                    || event.paths.iter().any(|path| {
                        path.file_name()
                            .is_some_and(|name| names.iter().any(|ours| ours == name))
                    })
            }
            Err(_) => true,
        };
        if is_ours {
            // Full: a change is waiting already. Closed: nobody follows any more.
            let _waiting = changed.try_send(());
        }
    })?;
    for place in &places {
        let folder = place.parent().unwrap_or(Path::new("/"));
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    // What was written between the first reading and now would never be noticed: one look tells.
    let _waiting = first.try_send(());
    Ok((watcher, changes))
}
