//! Follows the configuration file and its secrets while the program runs. Changes are applied at
//! once or on SIGHUP. A broken or untrusted file leaves the old configuration in use.

mod file_reading;
mod file_watch;
mod pattern_checks;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use file_reading::{FileReading, ReadResult, ReadTask, SecretCommands, is_changed};
use file_watch::FileWatch;
use futures::future::OptionFuture;
use pattern_checks::PatternChecks;
use tokio::signal::unix::Signal;
use tokio::time::sleep_until;
use toolgate_core::text::escape;
use toolgate_core::{Redactor, ToolExecutor};
use toolgate_mcp::Servers;
use toolgate_server::ConfigurationState;
use tracing::{error, info, warn};

use crate::config::{Config, ConfigLocation};
use crate::wiring::{self, ConfiguredTools, ToolServices};
use crate::{folder_file, output, patterns, servers, trust};

// Editors write in several steps, so wait until nothing has happened for this long.
const SETTLE_TIME: Duration = Duration::from_millis(150);
// A file that is written to all the time is read after this long anyway.
const MAX_DELAY: Duration = Duration::from_secs(2);
// How often to check for a new agreement.
const AGREEMENT_POLL_INTERVAL: Duration = Duration::from_secs(2);

// Read only at the start by every command: a section, or a key of one such as `serve.bind`.
const FIXED_KEYS: [&str; 1] = ["journal"];

type StateReporter = Box<dyn Fn(ConfigurationState) + Send>;
type ConfigApplier = Box<dyn Fn(&Config) -> anyhow::Result<Vec<&'static str>> + Send>;

pub(crate) struct ConfigReload {
    path: PathBuf,
    location: ConfigLocation,
    config: Arc<Config>,
    /// The configuration at the start, which is still in use where it is read only once.
    started: Arc<Config>,
    executor: ToolExecutor,
    services: ToolServices,
    redactor: Redactor,
    servers: Servers,
    awaiting_agreement: Option<PathBuf>,
    agreed_at: Option<SystemTime>,
    /// An error if the file can't be watched. SIGHUP still works then.
    watch: notify::Result<FileWatch>,
    hangup: Option<Signal>,
    pattern_checks: PatternChecks,
    fixed_by_command: &'static [&'static str],
    applier: Option<ConfigApplier>,
    restart_keys: Vec<&'static str>,
    /// Prints changes for a person who doesn't read the log.
    is_interactive: bool,
    report_state: Option<StateReporter>,
}

impl ConfigReload {
    /// `None` without a file to follow.
    pub(crate) fn new(
        config: impl Into<Arc<Config>>,
        tools: &ConfiguredTools,
        executor: ToolExecutor,
        servers: Servers,
    ) -> Option<Self> {
        let config = config.into();
        let awaiting_agreement = config
            .unused_file
            .as_ref()
            .map(|awaiting_agreement| awaiting_agreement.path.clone());
        let path = config
            .file()
            .map(Path::to_owned)
            .or(awaiting_agreement.clone())?;
        Some(Self {
            watch: FileWatch::start(&path, config.fetched.files_to_watch(&wiring::environment)),
            path,
            location: config.location,
            agreed_at: trust::changed_at(&wiring::environment),
            awaiting_agreement,
            started: Arc::clone(&config),
            config,
            executor,
            services: tools.services.clone(),
            redactor: tools.redactor.clone(),
            servers,
            hangup: None,
            pattern_checks: PatternChecks::new(),
            fixed_by_command: &[],
            applier: None,
            restart_keys: Vec::new(),
            is_interactive: false,
            report_state: None,
        })
    }

    pub(crate) fn on_hangup(mut self, hangup: Option<Signal>) -> Self {
        self.hangup = hangup;
        self
    }

    pub(crate) fn with_fixed(mut self, sections: &'static [&'static str]) -> Self {
        self.fixed_by_command = sections;
        self
    }

    pub(crate) fn notify_person(mut self) -> Self {
        self.is_interactive = output::is_interactive();
        self
    }

    /// Applies more of a new configuration before any of it is in use. An error refuses all of it;
    /// otherwise the result names the keys that need a restart.
    pub(crate) fn on_apply(
        mut self,
        apply: impl Fn(&Config) -> anyhow::Result<Vec<&'static str>> + Send + 'static,
    ) -> Self {
        self.applier = Some(Box::new(apply));
        self
    }

    pub(crate) fn on_state(
        mut self,
        report_state: impl Fn(ConfigurationState) + Send + 'static,
    ) -> Self {
        self.report_state = Some(Box::new(report_state));
        self
    }

    pub(crate) async fn run(mut self) -> Infallible {
        let servers = self.servers.clone();
        let mut agreements = std::pin::pin!(servers.follow_agreements());
        if let Err(error) = &self.watch {
            let file = escape(&self.path.to_string_lossy());
            let applied = match self.hangup {
                Some(_) => "SIGHUP applies edits",
                None => "edits take effect at the next start",
            };
            warn!("cannot watch {file}: {error}; {applied}");
        }
        // Files, the keyring and commands are slow, so nothing else waits for them.
        let mut reading: Option<ReadTask> = None;
        loop {
            let is_idle = reading.is_none();
            let waits = self.awaiting_agreement.is_some() && is_idle;
            let early = self.pattern_checks.early.map(sleep_until);
            let hangup = self.hangup.as_mut().map(Signal::recv);
            let is_settled = self.pattern_checks.is_settled;
            tokio::select! {
                () = file_changed(&mut self.watch), if is_idle => {
                    self.settle().await;
                    reading = Some(self.start_reading(SecretCommands::Remember));
                }
                Some(read) = OptionFuture::from(reading.as_mut()) => {
                    reading = None;
                    self.apply(read);
                }
                Some(Some(())) = OptionFuture::from(hangup), if is_idle => {
                    let file = escape(&self.path.to_string_lossy());
                    self.announce(&format!("SIGHUP: reading {file} again"));
                    reading = Some(self.start_reading(SecretCommands::Run));
                }
                () = tokio::time::sleep(AGREEMENT_POLL_INTERVAL), if waits => reading = self.look_for_agreement(),
                never = &mut agreements => match never {},
                Some(()) = OptionFuture::from(early) => self.check_patterns(),
                () = servers.start_all(), if !is_settled => {
                    self.pattern_checks.is_settled = true;
                    self.check_patterns();
                }
            }
        }
    }

    /// Starts to use a file that was agreed to with `toolgate trust` in another window.
    fn look_for_agreement(&mut self) -> Option<ReadTask> {
        let agreed_at = trust::changed_at(&wiring::environment);
        if agreed_at == self.agreed_at {
            return None;
        }
        self.agreed_at = agreed_at;
        let path = self.awaiting_agreement.clone()?;
        if !folder_file::is_agreed(&path, &wiring::environment) {
            return None;
        }
        if path != self.path {
            self.path = path;
            self.watch = FileWatch::start(&self.path, BTreeSet::new());
        }
        self.location = ConfigLocation::Here;
        Some(self.start_reading(SecretCommands::Run))
    }

    fn start_reading(&self, commands: SecretCommands) -> ReadTask {
        let reading = FileReading {
            path: self.path.clone(),
            location: self.location,
            needs_agreement: self.needs_agreement(),
            before: Arc::clone(&self.config),
            commands,
        };
        tokio::task::spawn_blocking(move || reading.run())
    }

    fn needs_agreement(&self) -> bool {
        self.location == ConfigLocation::Here || self.config.file().is_none()
    }

    async fn settle(&mut self) {
        let quiet = async {
            while tokio::time::timeout(SETTLE_TIME, file_changed(&mut self.watch))
                .await
                .is_ok()
            {}
        };
        // A file that never rests is read as it is.
        drop(tokio::time::timeout(MAX_DELAY, quiet).await);
    }

    fn apply(&mut self, read: ReadResult) {
        let problem = match self.evaluate(read) {
            Ok(Some((new, restart_keys))) => {
                self.put_in_use(new, restart_keys);
                None
            }
            Ok(None) => None,
            Err(problem) => {
                error!("{problem:#}; the previous configuration stays in force");
                Some(format!("{problem:#}"))
            }
        };
        self.watch_secrets();
        if let Some(report_state) = &self.report_state {
            let restart_needed = self.restart_needed().map(str::to_owned).collect();
            report_state(ConfigurationState {
                problem,
                restart_needed,
            });
        }
    }

    /// The new configuration, and the keys that need a restart. `None` if nothing has changed.
    fn evaluate(
        &mut self,
        read: ReadResult,
    ) -> anyhow::Result<Option<(Config, Vec<&'static str>)>> {
        let Some(new) = self.check_agreement(read)? else {
            return Ok(None);
        };
        if let Some(lost) = new.fetched.lost_since(&self.config.fetched) {
            bail!(lost);
        }
        // The user's own policy applies beside that of a project file, and may change alone.
        if new.is_unchanged_from(&self.config)
            && new.policy == self.config.policy
            && new.fetched == self.config.fetched
        {
            return Ok(None);
        }
        let restart_keys = match &self.applier {
            Some(apply) => apply(&new)?,
            None => Vec::new(),
        };
        Ok(Some((new, restart_keys)))
    }

    fn check_agreement(&mut self, read: ReadResult) -> anyhow::Result<Option<Config>> {
        let agreed = read.context("the configuration could not be read")??;
        if !self.needs_agreement() {
            return Ok(agreed);
        }
        let is_in_use = self.config.file().is_some();
        let awaiting_agreement = match &agreed {
            Some(_) => None,
            None => Some(self.path.clone()),
        };
        let was_waiting =
            std::mem::replace(&mut self.awaiting_agreement, awaiting_agreement).is_some();
        if was_waiting && agreed.is_some() {
            let file = escape(&self.path.to_string_lossy());
            self.announce(&format!("{file} is now agreed to"));
        }
        if agreed.is_none() && is_in_use {
            bail!(folder_file::changed_message(&self.path));
        }
        Ok(agreed)
    }

    fn put_in_use(&mut self, new: Config, restart_keys: Vec<&'static str>) {
        let file = escape(&self.path.to_string_lossy());
        self.announce(&match new.is_unchanged_from(&self.config)
            && new.fetched != self.config.fetched
        {
            true => format!("a secret of {file} changed and is now in use"),
            false => format!("{file} changed and is now in use"),
        });
        self.redactor.add_secrets(new.secrets());
        self.executor
            .set_rules(new.limits.clone(), new.policy.clone());
        self.servers
            .set_health_rules(new.limits.clone(), new.policy.clone());
        self.servers.set_retry(new.retry);
        self.apply_tools(&new);
        self.apply_servers(&new);
        self.pattern_checks = PatternChecks::new();
        let before = std::mem::replace(&mut self.config, Arc::new(new));
        self.restart_keys = restart_keys;
        let differs = |key: &&str| is_changed(&self.config, &before, key);
        let later = self
            .restart_needed()
            .filter(|key| differs(key) || self.restart_keys.contains(key));
        let later: Vec<String> = later.map(|key| format!("'{key}'")).collect();
        if !later.is_empty() {
            let keys = later.join(", ");
            warn!("{keys} changed, which takes effect after a restart");
        }
    }

    fn restart_needed(&self) -> impl Iterator<Item = &'static str> {
        let differs = |key: &&str| is_changed(&self.config, &self.started, key);
        let fixed = FIXED_KEYS.iter().chain(self.fixed_by_command).copied();
        fixed
            .filter(differs)
            .chain(self.restart_keys.iter().copied())
    }

    fn watch_secrets(&mut self) {
        let secrets = self.config.fetched.files_to_watch(&wiring::environment);
        if self.watch.as_ref().is_ok_and(|watch| !watch.has(&secrets)) {
            self.watch = FileWatch::start(&self.path, secrets);
        }
    }

    fn check_patterns(&mut self) {
        self.pattern_checks.early = None;
        let tools = self.executor.manager().tools();
        for unmatched in patterns::unmatched(&self.config, &tools, &self.servers.status()) {
            // Not the message, which names the servers that can't be asked at the moment.
            let key = (unmatched.key.clone(), unmatched.pattern.clone());
            if self.pattern_checks.reported.insert(key) {
                warn!("{unmatched}");
            }
        }
    }

    fn announce(&self, text: &str) {
        match self.is_interactive {
            true => output::print_note(text),
            false => info!("{text}"),
        }
    }

    fn apply_tools(&self, new: &Config) {
        self.services.offer_skills(new);
        let tools = wiring::build_tools_with_services(new, self.services.clone());
        wiring::warn_about_config(new, &tools);
        let old = &self.config;
        let is_same = (&new.tools, &new.search) == (&old.tools, &old.search)
            && (&new.documents, &new.resources) == (&old.documents, &old.resources);
        if !is_same {
            self.executor
                .manager()
                .replace_local(tools.manager.tools().iter().cloned());
            info!(tools = tools.manager.tools().len(), "local tools rebuilt");
        }
    }

    fn apply_servers(&self, new: &Config) {
        wiring::warn_about_servers(new);
        let settings = servers::settings(&new.servers);
        servers::set_absent_reasons(&settings, self.executor.manager());
        self.servers.apply(settings);
    }
}

async fn file_changed(watch: &mut notify::Result<FileWatch>) {
    match watch {
        Ok(watch) => watch.wait_for_change().await,
        Err(_) => std::future::pending().await,
    }
}

pub(crate) async fn run_if_any(reload: Option<ConfigReload>) -> Infallible {
    match reload {
        Some(reload) => reload.run().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
