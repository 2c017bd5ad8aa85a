//! Notices that the configuration file, or a file that a secret of it comes from, was written, however an editor does it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// Changes of a file and those it depends on, for as long as this lives.
pub(super) struct FileWatch {
    others: BTreeSet<PathBuf>,
    changes: mpsc::Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl FileWatch {
    /// Fails where the system can't watch, as when its limit of watches is reached.
    pub(super) fn start(path: &Path, others: BTreeSet<PathBuf>) -> notify::Result<Self> {
        let (watcher, changes) = watch(path, &others)?;
        Ok(Self {
            others,
            changes,
            _watcher: watcher,
        })
    }

    /// True if it watches these besides the file itself.
    pub(super) fn has(&self, others: &BTreeSet<PathBuf>) -> bool {
        self.others == *others
    }

    /// Returns at the next change, at once if there was one since the last time.
    pub(super) async fn changed(&mut self) {
        if self.changes.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Watches the folder: an editor that replaces the file would take a watch on the file itself along with the old one.
fn watch(
    path: &Path,
    others: &BTreeSet<PathBuf>,
) -> notify::Result<(RecommendedWatcher, mpsc::Receiver<()>)> {
    let needed = places(path)?;
    let others: Vec<PathBuf> = others
        .iter()
        .flat_map(|path| places(path).unwrap_or_default())
        .collect();
    let places: Vec<&PathBuf> = needed.iter().chain(&others).collect();
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
    let folder = |place: &PathBuf| place.parent().unwrap_or(Path::new("/")).to_owned();
    for place in &needed {
        watcher.watch(&folder(place), RecursiveMode::NonRecursive)?;
    }
    let folders: BTreeSet<PathBuf> = others.iter().map(folder).collect();
    for folder in &folders {
        // What isn't there is told of as a secret that can't be read.
        if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
            tracing::debug!("cannot watch {}: {error}", folder.display());
        }
    }
    // What was written between the first reading and now would never be noticed: one look tells.
    let _waiting = first.try_send(());
    Ok((watcher, changes))
}

/// Where a file is looked for, and where it really is: behind a link the text changes elsewhere.
fn places(path: &Path) -> notify::Result<Vec<PathBuf>> {
    let path = std::path::absolute(path).map_err(notify::Error::io)?;
    let real = std::fs::canonicalize(&path).ok();
    let real = real.filter(|real| *real != path);
    Ok([path].into_iter().chain(real).collect())
}
