//! The configuration file, followed while the program runs: what changed in it is applied, and what is broken in it leaves the
//! old configuration in force. So is an agreement to its servers, as long as one is missing.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use toolgate_core::{Redactor, ToolManager, escape};
use toolgate_mcp::Servers;
use tracing::{error, info, warn};

use crate::config::Config;
use crate::servers::{self, Admitted};
use crate::wiring::{self, Services, Tools};
use crate::{say, trust};

/// An editor writes in several steps; this long nothing must happen.
const QUIET: Duration = Duration::from_millis(150);
/// A file that is written to all the time is read after this long all the same.
const LONGEST: Duration = Duration::from_secs(2);
/// How often it is looked whether somebody has agreed to a server in the meantime.
const LOOK: Duration = Duration::from_secs(2);

/// Sections that are read once, by whatever follows the file.
const FIXED: [&str; 4] = ["journal", "limits", "policy", "retry"];

type Tell = Box<dyn Fn(Option<String>) + Send>;

/// Follows one file.
pub(crate) struct Reload {
    path: PathBuf,
    config: Arc<Config>,
    manager: Arc<ToolManager>,
    services: Services,
    redactor: Redactor,
    servers: Servers,
    /// Servers of the file that nobody has agreed to.
    untrusted: Vec<String>,
    /// When the agreements were last written, as far as is known.
    agreed_at: Option<SystemTime>,
    changes: mpsc::Receiver<()>,
    also_fixed: &'static [&'static str],
    /// A person who does not read the log is told of every change.
    is_attended: bool,
    tell: Option<Tell>,
    /// Ends the watching with it.
    _watcher: RecommendedWatcher,
}

impl Reload {
    /// `None` if there is no file to follow.
    pub(crate) fn new(
        config: impl Into<Arc<Config>>,
        tools: &Tools,
        servers: Servers,
    ) -> anyhow::Result<Option<Self>> {
        let config = config.into();
        let Some(path) = config.file().map(Path::to_owned) else {
            return Ok(None);
        };
        let (watcher, changes) =
            watch(&path).with_context(|| format!("cannot follow {}", path.display()))?;
        Ok(Some(Self {
            path,
            agreed_at: trust::changed_at(&wiring::environment),
            untrusted: servers::admit_unasked(&config).untrusted,
            config,
            manager: Arc::clone(&tools.manager),
            services: tools.services(),
            redactor: tools.redactor.clone(),
            servers,
            changes,
            also_fixed: &[],
            is_attended: false,
            tell: None,
            _watcher: watcher,
        }))
    }

    /// Sections that this command reads once, besides the usual ones.
    pub(crate) fn also_fixed(mut self, sections: &'static [&'static str]) -> Self {
        self.also_fixed = sections;
        self
    }

    /// A person at a terminal is told of every change.
    pub(crate) fn attended(mut self) -> Self {
        self.is_attended = say::is_followed();
        self
    }

    /// Tells at every change what is wrong with the file, or that nothing is.
    pub(crate) fn telling(mut self, tell: impl Fn(Option<String>) + Send + 'static) -> Self {
        self.tell = Some(Box::new(tell));
        self
    }

    /// Applies every change, for as long as it is polled.
    pub(crate) async fn run(mut self) -> Infallible {
        loop {
            let waits = !self.untrusted.is_empty();
            tokio::select! {
                changed = self.changes.recv() => {
                    if changed.is_none() {
                        return std::future::pending().await;
                    }
                    self.settle().await;
                    self.apply();
                }
                () = tokio::time::sleep(LOOK), if waits => self.look_for_agreement(),
            }
        }
    }

    /// Starts the servers that somebody has agreed to, with `toolgate trust` in another window.
    fn look_for_agreement(&mut self) {
        let agreed_at = trust::changed_at(&wiring::environment);
        if agreed_at == self.agreed_at {
            return;
        }
        self.agreed_at = agreed_at;
        let admitted = servers::admit_unasked(&self.config);
        if admitted.untrusted == self.untrusted {
            return;
        }
        let is_new = |name: &&String| !admitted.untrusted.contains(name);
        for name in self.untrusted.iter().filter(is_new) {
            let text = format!("server '{}' is trusted now, and starts", escape(name));
            self.tell_of(&text);
        }
        self.admit(admitted);
    }

    /// Waits until the writing is over.
    async fn settle(&mut self) {
        let quiet = async {
            while let Ok(Some(())) = tokio::time::timeout(QUIET, self.changes.recv()).await {}
        };
        // A file that never rests is read as it is.
        drop(tokio::time::timeout(LONGEST, quiet).await);
    }

    fn apply(&mut self) {
        let read = Config::read(&self.path, &wiring::environment);
        if let Some(tell) = &self.tell {
            tell(read.as_ref().err().map(ToString::to_string));
        }
        let mut new = match read {
            Ok(config) => config,
            Err(problem) => {
                error!("{problem}; the configuration before it stays in force");
                return;
            }
        };
        new.place = self.config.place;
        if new.is_same_text(&self.config) {
            return;
        }
        self.tell_changed();
        self.redactor.learn(new.secrets());
        self.apply_tools(&new);
        self.apply_servers(&new);
        if let Some(text) = self.left_for_later(&new) {
            warn!("{text}");
        }
        self.config = Arc::new(new);
    }

    fn tell_changed(&self) {
        let file = escape(&self.path.to_string_lossy());
        self.tell_of(&format!("{file} changed: its tools and servers are in use"));
    }

    fn tell_of(&self, text: &str) {
        match self.is_attended {
            true => say::note(text),
            false => info!("{text}"),
        }
    }

    /// What of a new configuration this program can not take into use.
    fn left_for_later(&self, new: &Config) -> Option<String> {
        let fixed = FIXED.iter().chain(self.also_fixed).copied();
        let changed = fixed.filter(|name| new.section(name) != self.config.section(name));
        let names: Vec<String> = changed.map(|name| format!("'{name}'")).collect();
        let names = names.join(", ");
        (!names.is_empty()).then(|| format!("{names} changed: that takes effect at the next start"))
    }

    fn apply_tools(&self, new: &Config) {
        let tools = wiring::tools_beside(new, self.services.clone());
        wiring::warn_about(new, &tools);
        let old = &self.config;
        let is_same =
            (&new.tools, &new.search, &new.documents) == (&old.tools, &old.search, &old.documents);
        if !is_same {
            self.manager
                .replace_local(tools.manager.tools().iter().cloned());
            info!(tools = tools.manager.tools().len(), "local tools made anew");
        }
    }

    fn apply_servers(&mut self, new: &Config) {
        wiring::warn_about_servers(new);
        let admitted = servers::admit_unasked(new);
        match self.is_attended {
            true => servers::tell_untrusted(&admitted.untrusted),
            false => servers::warn_of_untrusted(&admitted.untrusted),
        }
        self.admit(admitted);
    }

    fn admit(&mut self, admitted: Admitted) {
        admitted.tell_absent(&self.manager);
        self.untrusted = admitted.untrusted;
        self.servers.apply(admitted.settings);
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

/// Applies what is edited in the file, if there is one that can be followed.
pub(crate) async fn followed(reload: anyhow::Result<Option<Reload>>) -> Infallible {
    match reload {
        Ok(Some(reload)) => reload.run().await,
        Ok(None) => std::future::pending().await,
        Err(error) => {
            warn!("{error:#}: edits of it take effect at the next start");
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests;
