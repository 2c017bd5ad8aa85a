//! The configuration file and its secrets, followed while the program runs: what changed is applied, at once or on SIGHUP, and
//! what is broken, or not agreed to, leaves the old configuration in force. An agreement is noticed, too.

mod events;
mod file_watch;
mod pattern_checks;
mod reading;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use events::{changed, finished, passed, told};
use file_watch::FileWatch;
use pattern_checks::PatternChecks;
use reading::{Commands, FileReading, ReadResult, ReadTask, is_changed};
use tokio::signal::unix::Signal;
use toolgate_core::{Redactor, ToolExecutor, escape};
use toolgate_mcp::Servers;
use toolgate_server::ConfigurationState;
use tracing::{error, info, warn};

use crate::config::{Config, Place};
use crate::wiring::{self, Services, Tools};
use crate::{folder_file, patterns, say, servers, trust};

/// An editor writes in several steps; this long nothing must happen.
const QUIET: Duration = Duration::from_millis(150);
/// A file that is written to all the time is read after this long all the same.
const LONGEST: Duration = Duration::from_secs(2);
/// How often it is looked whether somebody has agreed to a file in the meantime.
const LOOK: Duration = Duration::from_secs(2);

/// What is read once, by whatever follows the file: a section, or a key of one such as `serve.bind`.
const FIXED: [&str; 1] = ["journal"];

type Tell = Box<dyn Fn(ConfigurationState) + Send>;
type Apply = Box<dyn Fn(&Config) -> anyhow::Result<Vec<&'static str>> + Send>;

pub(crate) struct Reload {
    path: PathBuf,
    place: Place,
    config: Arc<Config>,
    /// What the program was started with, and still uses of what is read once.
    started: Arc<Config>,
    executor: ToolExecutor,
    services: Services,
    redactor: Redactor,
    servers: Servers,
    /// A file in the working folder that takes effect once somebody agrees to it as it is.
    waiting: Option<PathBuf>,
    /// When the agreements were last written, as far as is known.
    agreed_at: Option<SystemTime>,
    /// An error if the file can't be watched; it is still read on SIGHUP.
    watch: notify::Result<FileWatch>,
    hangup: Option<Signal>,
    pattern_checks: PatternChecks,
    also_fixed: &'static [&'static str],
    also_applied: Option<Apply>,
    /// What of the configuration could not be applied besides.
    refused: Vec<&'static str>,
    /// A person who does not read the log is told of every change.
    is_attended: bool,
    tell: Option<Tell>,
}

impl Reload {
    /// `None` if there is no file to follow.
    pub(crate) fn new(
        config: impl Into<Arc<Config>>,
        tools: &Tools,
        executor: ToolExecutor,
        servers: Servers,
    ) -> Option<Self> {
        let config = config.into();
        let waiting = config.waiting.as_ref().map(|waiting| waiting.path.clone());
        let path = config.file().map(Path::to_owned).or(waiting.clone())?;
        Some(Self {
            watch: FileWatch::start(&path, config.fetched.watched(&wiring::environment)),
            path,
            place: config.place,
            agreed_at: trust::changed_at(&wiring::environment),
            waiting,
            started: Arc::clone(&config),
            config,
            executor,
            services: tools.services(),
            redactor: tools.redactor.clone(),
            servers,
            hangup: None,
            pattern_checks: PatternChecks::new(),
            also_fixed: &[],
            also_applied: None,
            refused: Vec::new(),
            is_attended: false,
            tell: None,
        })
    }

    pub(crate) fn on(mut self, hangup: Option<Signal>) -> Self {
        self.hangup = hangup;
        self
    }

    pub(crate) fn also_fixed(mut self, sections: &'static [&'static str]) -> Self {
        self.also_fixed = sections;
        self
    }

    pub(crate) fn attended(mut self) -> Self {
        self.is_attended = say::is_followed();
        self
    }

    /// What else this command takes from a new configuration, before anything of it is in use. An error refuses the whole of it;
    /// else it names what can't be taken without a restart.
    pub(crate) fn also_applying(
        mut self,
        apply: impl Fn(&Config) -> anyhow::Result<Vec<&'static str>> + Send + 'static,
    ) -> Self {
        self.also_applied = Some(Box::new(apply));
        self
    }

    /// Tells at every change how the file is.
    pub(crate) fn telling(mut self, tell: impl Fn(ConfigurationState) + Send + 'static) -> Self {
        self.tell = Some(Box::new(tell));
        self
    }

    pub(crate) async fn run(mut self) -> Infallible {
        let servers = self.servers.clone();
        let mut agreements = std::pin::pin!(servers.follow_agreements());
        if let Err(error) = &self.watch {
            let file = escape(&self.path.to_string_lossy());
            let applied = match self.hangup {
                Some(_) => "SIGHUP applies edits of it",
                None => "edits of it take effect at the next start",
            };
            warn!("cannot watch {file}: {error}; {applied}");
        }
        // Files, the keyring and commands take their time: nothing else waits for them.
        let mut reading: Option<ReadTask> = None;
        loop {
            let is_idle = reading.is_none();
            let waits = self.waiting.is_some() && is_idle;
            let early = self.pattern_checks.early;
            let is_settled = self.pattern_checks.is_settled;
            tokio::select! {
                () = changed(&mut self.watch), if is_idle => {
                    self.settle().await;
                    reading = Some(self.start_reading(Commands::Remember));
                }
                read = finished(&mut reading) => {
                    reading = None;
                    self.apply(read);
                }
                () = told(&mut self.hangup), if is_idle => {
                    let file = escape(&self.path.to_string_lossy());
                    self.tell_of(&format!("SIGHUP: {file} is read again"));
                    reading = Some(self.start_reading(Commands::Run));
                }
                () = tokio::time::sleep(LOOK), if waits => reading = self.look_for_agreement(),
                never = &mut agreements => match never {},
                () = passed(early) => self.check_patterns(),
                () = servers.settled(), if !is_settled => {
                    self.pattern_checks.is_settled = true;
                    self.check_patterns();
                }
            }
        }
    }

    /// Takes over the file that somebody has agreed to, with `toolgate trust` in another window.
    fn look_for_agreement(&mut self) -> Option<ReadTask> {
        let agreed_at = trust::changed_at(&wiring::environment);
        if agreed_at == self.agreed_at {
            return None;
        }
        self.agreed_at = agreed_at;
        let path = self.waiting.clone()?;
        if !folder_file::is_agreed(&path, &wiring::environment) {
            return None;
        }
        if path != self.path {
            self.path = path;
            self.watch = FileWatch::start(&self.path, BTreeSet::new());
        }
        self.place = Place::Here;
        Some(self.start_reading(Commands::Run))
    }

    fn start_reading(&self, commands: Commands) -> ReadTask {
        let reading = FileReading {
            path: self.path.clone(),
            place: self.place,
            needs_agreement: self.needs_agreement(),
            before: Arc::clone(&self.config),
            commands,
        };
        tokio::task::spawn_blocking(move || reading.run())
    }

    fn needs_agreement(&self) -> bool {
        self.place == Place::Here || self.config.file().is_none()
    }

    async fn settle(&mut self) {
        let quiet = async {
            while tokio::time::timeout(QUIET, changed(&mut self.watch))
                .await
                .is_ok()
            {}
        };
        // A file that never rests is read as it is.
        drop(tokio::time::timeout(LONGEST, quiet).await);
    }

    fn apply(&mut self, read: ReadResult) {
        let problem = match self.judge(read) {
            Ok(Some((new, refused))) => {
                self.take_over(new, refused);
                None
            }
            Ok(None) => None,
            Err(problem) => {
                error!("{problem:#}; the configuration before it stays in force");
                Some(format!("{problem:#}"))
            }
        };
        self.watch_secrets();
        if let Some(tell) = &self.tell {
            let restart_needed = self.restart_needed().map(str::to_owned).collect();
            tell(ConfigurationState {
                problem,
                restart_needed,
            });
        }
    }

    /// The configuration as it is now, and what of it only a restart can take; nothing if it says the same as before.
    fn judge(&mut self, read: ReadResult) -> anyhow::Result<Option<(Config, Vec<&'static str>)>> {
        let Some(new) = self.agreed(read)? else {
            return Ok(None);
        };
        if let Some(lost) = new.fetched.lost_since(&self.config.fetched) {
            bail!(lost);
        }
        // The user's own policy holds beside that of a folder's file, and may have changed alone.
        if new.is_same_text(&self.config)
            && new.policy == self.config.policy
            && new.fetched == self.config.fetched
        {
            return Ok(None);
        }
        let refused = match &self.also_applied {
            Some(apply) => apply(&new)?,
            None => Vec::new(),
        };
        Ok(Some((new, refused)))
    }

    /// Nothing if it is a file that was never in use, and still isn't agreed to.
    fn agreed(&mut self, read: ReadResult) -> anyhow::Result<Option<Config>> {
        let agreed = read.context("the configuration could not be read")??;
        if !self.needs_agreement() {
            return Ok(agreed);
        }
        let is_in_use = self.config.file().is_some();
        let waiting = match &agreed {
            Some(_) => None,
            None => Some(self.path.clone()),
        };
        let was_waiting = std::mem::replace(&mut self.waiting, waiting).is_some();
        if was_waiting && agreed.is_some() {
            let file = escape(&self.path.to_string_lossy());
            self.tell_of(&format!("{file} is agreed to now"));
        }
        if agreed.is_none() && is_in_use {
            bail!(folder_file::changed(&self.path));
        }
        Ok(agreed)
    }

    /// Puts a new configuration in force, and tells what of it needs a restart.
    fn take_over(&mut self, new: Config, refused: Vec<&'static str>) {
        let file = escape(&self.path.to_string_lossy());
        self.tell_of(
            &match new.is_same_text(&self.config) && new.fetched != self.config.fetched {
                true => format!("a secret of {file} changed, and is in use"),
                false => format!("{file} changed, and is in use"),
            },
        );
        self.redactor.learn(new.secrets());
        self.executor
            .set_rules(new.limits.clone(), new.policy.clone());
        self.servers
            .set_health_rules(new.limits.clone(), new.policy.clone());
        self.servers.set_retry(new.retry);
        self.apply_tools(&new);
        self.apply_servers(&new);
        self.pattern_checks = PatternChecks::new();
        let before = std::mem::replace(&mut self.config, Arc::new(new));
        self.refused = refused;
        let differs = |key: &&str| is_changed(&self.config, &before, key);
        let later = self
            .restart_needed()
            .filter(|key| differs(key) || self.refused.contains(key));
        let later: Vec<String> = later.map(|key| format!("'{key}'")).collect();
        if !later.is_empty() {
            let keys = later.join(", ");
            warn!("{keys} changed: that takes effect at the next start");
        }
    }

    /// What the configuration says otherwise than the program was started with, and is read at the start alone.
    fn restart_needed(&self) -> impl Iterator<Item = &'static str> {
        let differs = |key: &&str| is_changed(&self.config, &self.started, key);
        let fixed = FIXED.iter().chain(self.also_fixed).copied();
        fixed.filter(differs).chain(self.refused.iter().copied())
    }

    fn watch_secrets(&mut self) {
        let secrets = self.config.fetched.watched(&wiring::environment);
        if self.watch.as_ref().is_ok_and(|watch| !watch.has(&secrets)) {
            self.watch = FileWatch::start(&self.path, secrets);
        }
    }

    fn check_patterns(&mut self) {
        self.pattern_checks.early = None;
        let tools = self.executor.manager().tools();
        for unmatched in patterns::unmatched(&self.config, &tools, &self.servers.status()) {
            // What is said about servers that can't be asked differs from check to check; the pattern is the same.
            let key = (unmatched.place.clone(), unmatched.pattern.clone());
            if self.pattern_checks.told.insert(key) {
                warn!("{unmatched}");
            }
        }
    }

    fn tell_of(&self, text: &str) {
        match self.is_attended {
            true => say::note(text),
            false => info!("{text}"),
        }
    }

    fn apply_tools(&self, new: &Config) {
        let tools = wiring::tools_beside(new, self.services.clone());
        wiring::warn_about(new, &tools);
        let old = &self.config;
        let is_same =
            (&new.tools, &new.search, &new.documents) == (&old.tools, &old.search, &old.documents);
        if !is_same {
            self.executor
                .manager()
                .replace_local(tools.manager.tools().iter().cloned());
            info!(tools = tools.manager.tools().len(), "local tools made anew");
        }
    }

    fn apply_servers(&self, new: &Config) {
        wiring::warn_about_servers(new);
        let settings = servers::settings(&new.servers);
        servers::tell_absent(&settings, self.executor.manager());
        self.servers.apply(settings);
    }
}

pub(crate) async fn followed(reload: Option<Reload>) -> Infallible {
    match reload {
        Some(reload) => reload.run().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
