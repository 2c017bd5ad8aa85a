//! Starts, awaits, reports on and stops the MCP servers that a command uses.

mod answers;
mod owners;
#[cfg(feature = "chat")]
mod readiness;
mod spoken;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use toolgate_core::ToolManager;
use toolgate_core::text::escape;
use toolgate_mcp::sandbox::{self, SandboxLauncher};
use toolgate_mcp::watcher::{self, ServerWatcher};
use toolgate_mcp::{
    ServerSettings, ServerState, ServerStatus, Servers, ServersOptions, ToolCatalog,
};
use tracing::warn;

pub(crate) use answers::ServerAnswers;
pub(crate) use owners::{needed, owners};
#[cfg(feature = "chat")]
pub(crate) use readiness::{StartingServers, UnseenServers};
use spoken::spoken_names;

use crate::config::{Config, ConfiguredServer, state_folder, user_file};
use crate::sampling::ModelSamplingHandler;
use crate::spinner::{Spinner, clear_line};
use crate::wiring::{self, ConfiguredTools};
use crate::{exit, journal, output};

pub(crate) fn settings<'c>(
    servers: impl IntoIterator<Item = &'c ConfiguredServer>,
) -> Vec<ServerSettings> {
    let servers = servers.into_iter();
    servers.map(|server| server.settings.clone()).collect()
}

pub(crate) fn set_absent_reasons(settings: &[ServerSettings], manager: &ToolManager) {
    for settings in settings.iter().filter(|settings| settings.disabled) {
        let name = escape(&settings.name);
        let reason = format!("its server '{name}' is disabled in the configuration");
        manager.set_absent_reason(&settings.name, Some(&reason));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerStart {
    AtOnce,
    /// When one of their tools is called, or something is needed that isn't remembered.
    WhenNeeded,
}

pub(crate) fn catalog() -> ToolCatalog {
    let folder = state_folder(&wiring::environment);
    folder.map_or_else(ToolCatalog::default, |folder| {
        ToolCatalog::new(folder.join("catalogue"))
    })
}

pub(crate) fn options(config: &Config, tools: &ConfiguredTools) -> ServersOptions {
    let mut options = ServersOptions::default();
    options.retry = config.retry;
    options.redactor = tools.redactor.clone();
    options.file = config.file().map(Path::to_owned);
    options.watcher = watcher();
    options.launcher = launcher(config);
    options.catalog = catalog();
    options
}

pub(crate) struct ServerFleet {
    pub(crate) servers: Servers,
    // Servers that can't start because of their configuration.
    blocked: Vec<String>,
    homes: Vec<String>,
}

impl ServerFleet {
    /// Registers remembered tools at once. With a `spinner`, servers may ask the person at the
    /// terminal questions, otherwise the clients that call their tools.
    /// Has to be called in a tokio runtime.
    pub(crate) fn start(
        config: &Config,
        tools: &ConfiguredTools,
        settings: Vec<ServerSettings>,
        start: ServerStart,
        spinner: Option<&Spinner>,
    ) -> Self {
        let answers = match spinner {
            Some(spinner) => ServerAnswers::at_terminal(spinner),
            None => ServerAnswers::in_clients(),
        };
        Self::start_with(config, tools, settings, start, answers)
    }

    pub(crate) fn start_with(
        config: &Config,
        tools: &ConfiguredTools,
        settings: Vec<ServerSettings>,
        start: ServerStart,
        answers: ServerAnswers,
    ) -> Self {
        let mut options = options(config, tools);
        options.health = tools.services.health.clone();
        options.on_demand = start == ServerStart::WhenNeeded;
        options.elicitation_handler = answers.elicitation_handler;
        options.relays_questions = answers.in_clients;
        options.sole_client_log = answers.log;
        let sampling_handler = ModelSamplingHandler::new(config, &tools.redactor);
        options.sampling_handler = sampling_handler.map(|handler| Arc::new(handler) as Arc<_>);
        let servers = Servers::new(Arc::clone(&tools.manager), options);
        set_absent_reasons(&settings, &tools.manager);
        let blocked = settings.iter();
        let blocked = blocked.filter(|settings| settings.blocked.is_some());
        let blocked = blocked.map(|settings| settings.name.clone()).collect();
        servers.apply(settings);
        tools.services.offer_skills(config);
        let all = config.servers.iter().map(|server| &server.settings);
        let homes = all.filter(|settings| settings.is_home());
        Self {
            servers,
            blocked,
            homes: homes.map(|settings| settings.name.clone()).collect(),
        }
    }

    pub(crate) async fn wait(&self, spinner: &Spinner, until: impl Future<Output = ()>) -> bool {
        let settled = tokio::select! {
            () = until => true,
            () = self.show_progress(spinner) => true,
            () = exit::wait_for_interrupt() => false,
        };
        clear_line();
        settled
    }

    async fn show_progress(&self, spinner: &Spinner) {
        let mut changed = self.servers.subscribe();
        let titles = async {
            loop {
                let starting = self.names(|status| status.state == ServerState::Starting);
                let title = match starting.len() {
                    // Something other than a server is awaited.
                    0 => "starting".to_owned(),
                    1 => format!("starting {}", starting[0]),
                    several => format!("starting {several} servers: {}", starting.join(", ")),
                };
                spinner.set_title(&title);
                if changed.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            never = spinner.animate() => match never {},
            () = titles => {}
        }
    }

    fn names(&self, which: impl Fn(&ServerStatus) -> bool) -> Vec<String> {
        let all = self.servers.status();
        let names = all.into_iter().filter(which).map(|status| status.name);
        names.collect()
    }

    pub(crate) fn remembers(&self, server: &str) -> bool {
        let status = self.servers.server_status(server);
        status.is_some_and(|status| status.remembered)
    }

    pub(crate) fn note_missing(&self, server: Option<&str>) {
        self.note_problems(self.status_of(server));
    }

    pub(crate) fn note_missing_except_unseen(&self) {
        let unseen = self.servers.installed_servers_without_tools();
        let mut all = self.servers.status();
        all.retain(|status| !unseen.contains(&status.name));
        self.note_problems(all);
    }

    fn note_problems(&self, statuses: Vec<ServerStatus>) {
        for status in statuses {
            let name = escape(&status.name);
            let withheld = status.withheld();
            if withheld > 0 {
                output::print_note(&format!(
                    "withheld tools of server '{name}': {withheld}; 'toolgate trust {name}' shows what changed and asks you"
                ));
            }
            match status.state {
                ServerState::Connected => {
                    if let Some(problem) = status.degraded() {
                        output::print_note(&format!(
                            "server '{name}' is connected, but can't do its work: {}; 'toolgate doctor' shows more",
                            escape(problem)
                        ));
                    }
                }
                ServerState::Disabled => {
                    output::print_note(&format!(
                        "server '{name}' is disabled in the configuration"
                    ));
                }
                ServerState::Failed if status.remembered => {
                    let error = status.error.as_deref().map(escape).unwrap_or_default();
                    output::print_note(&format!(
                        "server '{name}' is down, so its tools can't be called ({error}); 'toolgate doctor' shows more"
                    ));
                }
                _ if status.remembered => {}
                // Reported with the configuration.
                _ if self.blocked.contains(&status.name) => {}
                ServerState::Idle => {
                    let failure = self.servers.last_failure(&status.name);
                    output::print_note(&match failure {
                        Some(failure) => format!(
                            "server '{name}' has no tools here: {} ({}); 'toolgate list --refresh' asks it again",
                            escape(&failure.reason),
                            ago(failure.at)
                        ),
                        None => format!(
                            "server '{name}' has never been started; 'toolgate list' starts it, which may take minutes the first time"
                        ),
                    });
                }
                state => {
                    let error = status.error.as_deref().map(escape);
                    let reason = error.map(|error| format!(": {error}")).unwrap_or_default();
                    output::print_note(&format!(
                        "server '{name}' has no tools here ({state}{reason}); 'toolgate doctor' shows more"
                    ));
                }
            }
        }
    }

    fn status_of(&self, server: Option<&str>) -> Vec<ServerStatus> {
        match server {
            Some(server) => self.servers.server_status(server).into_iter().collect(),
            None => self.servers.status(),
        }
    }

    pub(crate) fn note_remembered(&self, what: &str, server: Option<&str>) {
        let all = self.status_of(server);
        let remembered = all.iter().filter(|status| status.remembered);
        let times: Vec<_> = remembered.filter_map(|status| status.listed_at).collect();
        let Some(oldest) = times.iter().min() else {
            return;
        };
        let of = match times.len() {
            1 => "1 server are".to_owned(),
            several => format!("{several} servers are"),
        };
        output::print_note(&format!(
            "the {what} of {of} remembered, listed {}; --refresh asks the servers",
            ago(*oldest)
        ));
    }

    pub(crate) fn knows_any_tools(&self) -> bool {
        let all = self.servers.status();
        all.iter().any(|status| status.listed_at.is_some())
    }

    /// What can't be reached, in words that can be spoken, such as `the smart home and the server
    /// files`. Servers that are down or can't work count; those that are starting don't.
    pub(crate) fn missing(&self) -> Option<String> {
        use ServerState::{Failed, Stopped};
        let is_unusable = |status: &ServerStatus| {
            matches!(status.state, Failed | Stopped) || status.degraded().is_some()
        };
        let away = self.names(is_unusable);
        spoken_names(away.iter(), &self.homes)
    }

    pub(crate) fn is_complete(&self) -> bool {
        use ServerState::{Connected, Disabled};
        let is_missing = |status: &ServerStatus| {
            !matches!(status.state, Connected | Disabled) && !status.remembered
        };
        self.names(is_missing).is_empty()
    }

    pub(crate) fn status(&self, server: &str) -> Option<ServerStatus> {
        self.servers.server_status(server)
    }

    /// Stops all servers. A second Ctrl-C ends the program at once, and the
    /// watcher ends the servers.
    pub(crate) async fn stop(&self) {
        tokio::select! {
            () = self.servers.stop() => {}
            () = exit::wait_for_interrupt() => std::process::exit(i32::from(exit::Exit::Interrupted.code())),
        }
    }
}

pub(crate) fn ago(time: SystemTime) -> String {
    // If the clock was set back, the answer is now.
    let seconds = time.elapsed().unwrap_or_default().as_secs();
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3600 => (seconds / 60, "minute"),
        3600..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

fn watcher() -> ServerWatcher {
    match std::env::current_exe() {
        Ok(program) => ServerWatcher::new(program, [watcher::SUBCOMMAND]),
        Err(error) => {
            warn!(
                "the path of this program is unknown ({error}): its servers may outlive it if it is killed"
            );
            ServerWatcher::none()
        }
    }
}

/// This program again, as the launcher that confines a server. A confined server sees neither our
/// files nor the folders of the others.
fn launcher(config: &Config) -> SandboxLauncher {
    let program = match cfg!(target_os = "linux") {
        // The same program even after an update has replaced the file.
        true => Ok(PathBuf::from("/proc/self/exe")),
        false => std::env::current_exe(),
    };
    // Without it, servers that have to be confined don't start, and say why.
    let Ok(program) = program else {
        return SandboxLauncher::none();
    };
    let beginning = |path: PathBuf| format!("{}*", path.display());
    let file = config
        .file()
        .and_then(|file| std::path::absolute(file).ok());
    let ours = [
        user_file(&wiring::environment).and_then(|file| Some(file.parent()?.to_owned())),
        state_folder(&wiring::environment),
    ];
    let ours = ours.into_iter().flatten();
    let hidden = ours.map(|folder| folder.display().to_string());
    let files = file.into_iter().chain(journal::file(config));
    let launcher = SandboxLauncher::new(
        program,
        [sandbox::SUBCOMMAND],
        hidden.chain(files.map(beginning)).collect(),
    );
    launcher.hide_folders_of(config.servers.iter().map(|server| &server.settings));
    launcher
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_use_the_largest_unit_that_fits() {
        for (seconds, expected) in [
            (59, "just now"),
            (60, "1 minute ago"),
            (3599, "59 minutes ago"),
            (3600, "1 hour ago"),
            (172_799, "47 hours ago"),
            (172_800, "2 days ago"),
        ] {
            let time = SystemTime::now() - std::time::Duration::from_secs(seconds);
            assert_eq!(ago(time), expected, "{seconds}");
        }
        assert_eq!(
            ago(SystemTime::now() + std::time::Duration::from_secs(9)),
            "just now"
        );
    }
}
