//! Watches the configuration file, and the files that its secrets come from, however
//! an editor writes them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

pub(super) struct FileWatch {
    others: BTreeSet<PathBuf>,
    changes: mpsc::Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl FileWatch {
    /// Fails if the system can't watch, as when its limit of watches is reached.
    pub(super) fn start(path: &Path, others: BTreeSet<PathBuf>) -> notify::Result<Self> {
        let (watcher, changes) = watch(path, &others)?;
        Ok(Self {
            others,
            changes,
            _watcher: watcher,
        })
    }

    pub(super) fn has(&self, others: &BTreeSet<PathBuf>) -> bool {
        self.others == *others
    }

    /// Returns at the next change, or at once if there was one since the last call.
    pub(super) async fn wait_for_change(&mut self) {
        if self.changes.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

// Watches the folder, because an editor that replaces the file would take a watch on the
// file itself with it.
fn watch(
    path: &Path,
    others: &BTreeSet<PathBuf>,
) -> notify::Result<(RecommendedWatcher, mpsc::Receiver<()>)> {
    let needed = paths_to_watch(path)?;
    let others: Vec<PathBuf> = others
        .iter()
        .flat_map(|path| paths_to_watch(path).unwrap_or_default())
        .collect();
    let places: Vec<&PathBuf> = needed.iter().chain(&others).collect();
    let names: Vec<OsString> = places
        .iter()
        .filter_map(|place| Some(place.file_name()?.to_owned()))
        .collect();
    // One pending change represents any number of them.
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
            // Full: a change is already pending. Closed: the watch has ended.
            let _waiting = changed.try_send(());
        }
    })?;
    let folder = |place: &PathBuf| place.parent().unwrap_or(Path::new("/")).to_owned();
    for place in &needed {
        watcher.watch(&folder(place), RecursiveMode::NonRecursive)?;
    }
    let folders: BTreeSet<PathBuf> = others.iter().map(folder).collect();
    for folder in &folders {
        // A missing folder is reported as a secret that can't be read.
        if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
            tracing::debug!("cannot watch {}: {error}", folder.display());
        }
    }
    // A write between the first read and now would go unnoticed, so trigger one check.
    let _waiting = first.try_send(());
    Ok((watcher, changes))
}

// The path, and the real path behind a link, since that is where the text changes.
fn paths_to_watch(path: &Path) -> notify::Result<Vec<PathBuf>> {
    let path = std::path::absolute(path).map_err(notify::Error::io)?;
    let real = std::fs::canonicalize(&path).ok();
    let real = real.filter(|real| *real != path);
    Ok([path].into_iter().chain(real).collect())
}
