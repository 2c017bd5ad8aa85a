//! The MCP servers of a configuration, as one command uses them: chosen, agreed to, started, waited for, stopped.

use std::path::Path;
use std::sync::Arc;

use toolgate_core::{ToolManager, escape};
use toolgate_mcp::guard::Guard;
use toolgate_mcp::{
    Connection, ServerHealth, ServerSettings, ServerState, ServerStatus, Servers, ServersOptions,
};
use tracing::warn;

use crate::config::{Config, ConfiguredServer, Place};
use crate::elicit::TerminalElicitor;
use crate::spinner::{Spinner, clear_line};
use crate::trust::{self, Trust};
use crate::wiring::{self, Tools};
use crate::{exit, say};

/// What this program is called with to watch over the servers of another run of it.
pub(crate) const GUARD: &str = "guard-servers";

/// The servers that a call of this tool could need: none for a local tool, but those that go before local ones, and all if it
/// reports on them; for `<server>__<tool>` that one; else all, since any may have it.
pub(crate) fn needed<'c>(
    config: &'c Config,
    manager: &ToolManager,
    tool: &str,
) -> Vec<&'c ConfiguredServer> {
    let is_local = manager
        .find(tool)
        .is_some_and(|found| found.definition().name() == tool);
    let is_of = |server: &&ConfiguredServer| {
        let rest = tool.strip_prefix(server.settings.name.as_str());
        rest.is_some_and(|rest| rest.starts_with("__"))
    };
    let all = config.servers.iter();
    if is_local && !config.is_made_of(tool, ServerHealth::NAME) {
        return all.filter(|server| server.settings.overrides).collect();
    }
    let named: Vec<_> = all.clone().filter(is_of).collect();
    if named.is_empty() {
        all.collect()
    } else {
        named
    }
}

/// Servers that may start, and the names of those that may not.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) settings: Vec<ServerSettings>,
    pub(crate) untrusted: Vec<String>,
}

impl Admitted {
    /// Whoever asks for a tool of a server that does not start will be told why it is not there.
    pub(crate) fn tell_absent(&self, manager: &ToolManager) {
        let disabled = self.settings.iter().filter(|settings| settings.disabled);
        let disabled = disabled.map(|settings| (&settings.name, "disabled in the configuration"));
        let untrusted = self.untrusted.iter();
        let untrusted = untrusted.map(|name| (name, "not trusted yet; run 'toolgate trust'"));
        for (name, why) in disabled.chain(untrusted) {
            let reason = format!("its server '{}' is {why}", escape(name));
            manager.set_absent(name, Some(&reason));
        }
    }
}

/// Keeps back what nobody has agreed to. On a terminal the person is asked.
pub(crate) fn admit(config: &Config, wanted: &[&ConfiguredServer]) -> Admitted {
    admit_if(config, wanted, trust::ask)
}

/// The same where nobody can be asked, because the program is busy with something else.
pub(crate) fn admit_unasked(config: &Config) -> Admitted {
    let all: Vec<_> = config.servers.iter().collect();
    admit_if(config, &all, |_, _| false)
}

fn admit_if(
    config: &Config,
    wanted: &[&ConfiguredServer],
    ask: impl FnOnce(&Path, &[&ConfiguredServer]) -> bool,
) -> Admitted {
    let file = config.file().filter(|_| config.place == Place::Here);
    let unknown = file.map_or_else(Vec::new, |file| strangers(file, wanted, ask));
    let is_unknown = |server: &&ConfiguredServer| {
        unknown
            .iter()
            .any(|unknown| unknown.settings.name == server.settings.name)
    };
    let (held, free): (Vec<_>, Vec<_>) = wanted.iter().copied().partition(is_unknown);
    Admitted {
        settings: free.iter().map(|server| server.settings.clone()).collect(),
        untrusted: held
            .iter()
            .map(|server| server.settings.name.clone())
            .collect(),
    }
}

/// Those that are still not agreed to after the person was asked.
fn strangers<'c>(
    file: &Path,
    wanted: &[&'c ConfiguredServer],
    ask: impl FnOnce(&Path, &[&ConfiguredServer]) -> bool,
) -> Vec<&'c ConfiguredServer> {
    let starting = wanted.iter().filter(|server| !server.settings.disabled);
    if starting.clone().next().is_none() {
        return Vec::new();
    }
    let mut trust = Trust::read(&wiring::environment);
    let unknown: Vec<_> = starting
        .copied()
        .filter(|server| !trust.has(file, server))
        .collect();
    if unknown.is_empty() || !ask(file, &unknown) {
        return unknown;
    }
    let agreed = unknown
        .iter()
        .map(|server| (server.settings.name.as_str(), &server.entry));
    if let Err(error) = trust.agree(file, agreed) {
        // It holds for this time.
        warn!("{error:#}");
    }
    Vec::new()
}

/// The running servers of a command.
pub(crate) struct Fleet {
    pub(crate) servers: Servers,
    untrusted: Vec<String>,
    /// Those that are for the house, by name.
    houses: Vec<String>,
}

impl Fleet {
    /// Starts them, with a spinner where a person could be asked something. Call it inside of a runtime.
    pub(crate) fn start(
        config: &Config,
        tools: &Tools,
        admitted: Admitted,
        spinner: Option<&Spinner>,
    ) -> Self {
        let mut options = ServersOptions::default();
        options.retry = config.retry;
        options.redactor = tools.redactor.clone();
        options.file = config.file().map(Path::to_owned);
        options.guard = guard();
        options.health = tools.health.clone();
        if let Some(elicitor) = spinner.and_then(TerminalElicitor::new) {
            options.elicitor = Some(Arc::new(elicitor));
        }
        admitted.tell_absent(&tools.manager);
        let servers = Servers::new(Arc::clone(&tools.manager), options);
        servers.apply(admitted.settings);
        let all = config.servers.iter().map(|server| &server.settings);
        let houses = all.filter(|settings| is_house(settings));
        Self {
            servers,
            untrusted: admitted.untrusted,
            houses: houses.map(|settings| settings.name.clone()).collect(),
        }
    }

    /// Waits with something to look at. False if the person had enough of it.
    pub(crate) async fn wait(&self, spinner: &Spinner, until: impl Future<Output = ()>) -> bool {
        let settled = tokio::select! {
            () = until => true,
            () = self.narrate(spinner) => true,
            () = exit::interrupted() => false,
        };
        clear_line();
        settled
    }

    /// Says which servers are still starting, for as long as it is polled.
    async fn narrate(&self, spinner: &Spinner) {
        let mut changed = self.servers.changed();
        let titles = async {
            loop {
                let starting = self.names(|status| status.state == ServerState::Starting);
                let title = match starting.len() {
                    // Something else is waited for.
                    0 => "starting".to_owned(),
                    1 => format!("starting {}", starting[0]),
                    several => format!("starting {several} servers: {}", starting.join(", ")),
                };
                spinner.title(&title);
                if changed.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            never = spinner.turn() => match never {},
            () = titles => {}
        }
    }

    fn names(&self, which: impl Fn(&ServerStatus) -> bool) -> Vec<String> {
        let all = self.servers.status();
        let names = all.into_iter().filter(which).map(|status| status.name);
        names.collect()
    }

    /// Tells, on stderr, of every server whose tools are not there.
    pub(crate) fn tell_missing(&self) {
        for status in self.servers.status() {
            let name = escape(&status.name);
            match status.state {
                ServerState::Connected => {}
                ServerState::Disabled => {
                    say::note(&format!("server '{name}' is disabled in the configuration"));
                }
                state => {
                    let error = status.error.as_deref().map(escape);
                    let reason = error.map(|error| format!(": {error}")).unwrap_or_default();
                    say::note(&format!(
                        "server '{name}' has no tools here ({state}{reason}); 'toolgate doctor' shows more"
                    ));
                }
            }
        }
        tell_untrusted(&self.untrusted);
    }

    /// What can not be reached, in words that can be spoken, such as `the smart home and the server files`. What is on its way is
    /// not missing.
    pub(crate) fn missing(&self) -> Option<String> {
        use ServerState::{Failed, Stopped};
        let away = self.names(|status| matches!(status.state, Failed | Stopped));
        spoken(away.iter().chain(&self.untrusted), &self.houses)
    }

    /// Logs which servers wait for an agreement, where nobody reads remarks.
    pub(crate) fn warn_of_untrusted(&self) {
        warn_of_untrusted(&self.untrusted);
    }

    /// Logs which servers are still on their way; of those that failed there is a record already.
    pub(crate) fn warn_of_late(&self) {
        use ServerState::{Connected, Disabled, Failed, Stopped};
        let is_late = |status: &ServerStatus| {
            !matches!(status.state, Connected | Disabled | Failed | Stopped)
        };
        for name in self.names(is_late) {
            warn!(server = %escape(&name), "MCP server has not answered yet: its tools are not offered; 'toolgate doctor' shows more");
        }
    }

    /// True if no server's tools are missing.
    pub(crate) fn is_complete(&self) -> bool {
        use ServerState::{Connected, Disabled};
        let missing = self.names(|status| !matches!(status.state, Connected | Disabled));
        missing.is_empty() && self.untrusted.is_empty()
    }

    pub(crate) fn untrusted(&self) -> &[String] {
        &self.untrusted
    }

    /// How the server of a name is.
    pub(crate) fn status(&self, server: &str) -> Option<ServerStatus> {
        let all = self.servers.status();
        all.into_iter().find(|status| status.name == server)
    }

    /// Ends all servers in an orderly way; a second Ctrl-C ends the program at once, and its guard ends the servers.
    pub(crate) async fn stop(&self) {
        tokio::select! {
            () = self.servers.stop() => {}
            () = exit::interrupted() => std::process::exit(i32::from(exit::Exit::Interrupted.code())),
        }
    }
}

/// The same as a record of the log.
pub(crate) fn warn_of_untrusted(names: &[String]) {
    for name in names {
        warn!(server = %escape(name), "MCP server is not trusted; 'toolgate trust' shows what would be started, and agrees");
    }
}

/// Tells which servers wait for an agreement.
pub(crate) fn tell_untrusted(names: &[String]) {
    if names.is_empty() {
        return;
    }
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("'{}'", escape(name)))
        .collect();
    let (noun, verb) = match names.len() {
        1 => ("server", "is"),
        _ => ("servers", "are"),
    };
    say::note(&format!(
        "{noun} {} {verb} not trusted, since the file lies in this folder; 'toolgate trust' shows what would be started, and agrees",
        names.join(", ")
    ));
}

/// True if it is the one for the house, as far as can be seen of a server whose tools are not there: by its name or its program.
fn is_house(settings: &ServerSettings) -> bool {
    let names_it = |word: &str| {
        let word = word.to_lowercase();
        word.contains("zwave") || word.contains("z-wave")
    };
    let is_program = |word: &String| {
        let file = word.rsplit('/').next().unwrap_or(word);
        names_it(file) && file.to_lowercase().contains("mcp")
    };
    let by_program = match &settings.connection {
        Connection::Stdio(program) => {
            let mut words = std::iter::once(&program.command).chain(&program.args);
            words.any(is_program)
        }
        Connection::Http { .. } => false,
    };
    names_it(&settings.name) || by_program
}

/// Servers by names that can be spoken. Most people who talk to their house have one for it, and call it otherwise.
fn spoken<'a>(names: impl Iterator<Item = &'a String>, houses: &[String]) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    for name in names {
        let spoken = match houses.contains(name) {
            true => "the smart home".to_owned(),
            false => format!("the server {}", escape(name).replace(['_', '-'], " ")),
        };
        if !words.contains(&spoken) {
            words.push(spoken);
        }
    }
    let last = words.pop()?;
    Some(match words.is_empty() {
        true => last,
        false => format!("{} and {last}", words.join(", ")),
    })
}

/// This program once more, as a watcher.
fn guard() -> Guard {
    match std::env::current_exe() {
        Ok(program) => Guard::new(program, [GUARD]),
        Err(error) => {
            warn!(
                "this program does not know where it is ({error}): its servers may outlive it if it is killed"
            );
            Guard::none()
        }
    }
}

#[cfg(test)]
mod tests {
    use toolgate_mcp::Program;

    use super::*;

    #[test]
    fn servers_are_called_by_names_that_can_be_spoken() {
        let houses = ["zwave", "upstairs"].map(str::to_owned);
        for (names, expected) in [
            (&[][..], None),
            (&["zwave"], Some("the smart home")),
            (&["my_files"], Some("the server my files")),
            (
                &["zwave", "files", "upstairs", "mail"],
                Some("the smart home, the server files and the server mail"),
            ),
        ] {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(spoken(names.iter(), &houses).as_deref(), expected);
        }
    }

    #[test]
    fn a_house_is_known_by_zwave_in_its_name_or_its_program() {
        for (name, command, expected) in [
            ("zwave", "x", true),
            ("My-Z-Wave", "x", true),
            ("upstairs", "/opt/zwave-mcp-server", true),
            ("upstairs", "/opt/toolgate zwave-mcp-server", true),
            ("upstairs", "npx -y @somebody/zwave-js-mcp", true),
            ("warehouse", "stock-mcp", false),
            ("homepage", "web-mcp", false),
            ("notes", "files-mcp /home/ada/zwave-mcp/notes", false),
            ("notes", "files-mcp zwave.txt", false),
        ] {
            let mut words = command.split(' ').map(str::to_owned);
            let program = Program {
                command: words.next().unwrap(),
                args: words.collect(),
                ..Program::default()
            };
            let settings = ServerSettings::new(name, Connection::Stdio(program));
            assert_eq!(is_house(&settings), expected, "{name} {command}");
        }
    }
}
