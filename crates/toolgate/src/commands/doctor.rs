//! `toolgate doctor`: checks what can be checked, and says what to do.

mod at;
mod gateway;
mod model;
mod offer;
#[cfg(feature = "voice")]
mod voice;

use std::time::Duration;

use serde_json::json;
use toolgate_core::{Origin, Redactor, ToolCall, ToolExecutor, escape};
use toolgate_mcp::{Connection, SandboxLevel, ServerState, ServerStatus, sandbox, what_to_check};

use super::{runtime, server};
use crate::cli::{DoctorOptions, Global};
use crate::config::{Config, ConfigErrors, ConfiguredServer, Uses};
use crate::exit::Exit;
use crate::remote::Remote;
use crate::servers::{self, Fleet, Start};
use crate::spinner::Spinner;
use crate::wiring::{self, Tools};
use crate::{patterns, say, trust, wanted_model, wrap};

/// Where the text of a row begins.
const TEXT: usize = 24;

/// How a check ended. The mark never stands alone: the word says the same.
enum Finding {
    Good(String),
    /// Missing, but nothing else needs it.
    Warning(String),
    Bad(String),
}

impl Finding {
    fn redacted(&self, redactor: &Redactor) -> Self {
        let hidden = |text: &str| redactor.known(text).into_owned();
        match self {
            Self::Good(text) => Self::Good(hidden(text)),
            Self::Warning(text) => Self::Warning(hidden(text)),
            Self::Bad(text) => Self::Bad(hidden(text)),
        }
    }
}

pub(crate) fn run(global: &Global, options: &DoctorOptions) -> anyhow::Result<Exit> {
    // What makes no sense is wrong usage, and nothing that was found.
    wanted_model::named(&options.choice)?;
    if let Some(remote) = Remote::of(&options.remote)? {
        return at::run(&remote);
    }
    let config = match wiring::find_configuration(global, Uses::Everything, trust::ask) {
        Ok(config) => config,
        Err(error) => {
            show_broken(&error);
            return Ok(Exit::Failure);
        }
    };
    let tools = wiring::tools(&config);
    let all = servers::settings(&config.servers);
    let mut report = Report::new(tools.redactor.clone());
    report.on_configuration(&config, &tools);
    report.on_sandbox(&config);
    let runtime = runtime()?;
    let interrupted = runtime.block_on(async {
        let spinner = Spinner::new("starting");
        let fleet = (!all.is_empty())
            .then(|| Fleet::start(&config, &tools, all, Start::AtOnce, Some(&spinner)));
        if let Some(fleet) = &fleet {
            fleet.servers.watch_health(wiring::probe(&config, &tools));
            if !fleet.wait(&spinner, fleet.servers.checked()).await {
                fleet.stop().await;
                return true;
            }
            report.on_servers(fleet, &config, &tools);
        }
        report.on_tools(&config, &tools, fleet.as_ref()).await;
        report.on_journal(&config, &tools).await;
        #[cfg(feature = "serve")]
        report.on_gateway(&config).await;
        report.on_model(&config, &options.choice, &tools).await;
        #[cfg(feature = "voice")]
        report.on_voice(&config).await;
        if let Some(fleet) = &fleet {
            fleet.stop().await;
        }
        false
    });
    runtime.shutdown_background();
    Ok(match (interrupted, report.failed) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Failure,
        (false, false) => Exit::Success,
    })
}

struct Report {
    failed: bool,
    /// Addresses and folders of the configuration may hold secrets.
    redactor: Redactor,
}

impl Report {
    fn new(redactor: Redactor) -> Self {
        Self {
            failed: false,
            redactor,
        }
    }

    fn add(&mut self, name: &str, finding: &Finding) {
        self.failed |= matches!(finding, Finding::Bad(_));
        show(name, &finding.redacted(&self.redactor));
    }

    fn on_configuration(&mut self, config: &Config, tools: &Tools) {
        if let Some(waiting) = &config.waiting {
            self.add("configuration", &Finding::Warning(waiting.note()));
        }
        self.add("configuration", &of_file(config));
        for oddity in &config.warnings {
            self.add("configuration", &Finding::Warning(oddity.to_string()));
        }
        for error in tools.problems.iter().chain(config.unset()) {
            self.add("configuration", &Finding::Bad(error.to_string()));
        }
        for problem in &config.server_problems {
            let text = problem.error.to_string();
            let finding = match problem.left_out {
                true => Finding::Bad(text),
                false => Finding::Warning(text),
            };
            self.add("configuration", &finding);
        }
    }

    fn on_servers(&mut self, fleet: &Fleet, config: &Config, tools: &Tools) {
        for status in fleet.servers.status() {
            let name = escape(&status.name);
            self.add(&name, &of_server(&status));
            if let Some(text) = server::pollution(&status) {
                self.add(&name, &Finding::Warning(text));
                detail("stdout", &status.polluted_lines);
            }
            if let Some(text) = server::unknown_health(&status) {
                self.add(&name, &Finding::Warning(text));
            }
            self.on_changes(&name, &status);
            for refused in &status.refused {
                self.add(&name, &Finding::Warning(format!("refused {refused}")));
            }
            if status.state != ServerState::Connected || status.degraded().is_some() {
                detail("stderr", &status.stderr);
                let named = |server: &&ConfiguredServer| server.settings.name == status.name;
                let server = config.servers.iter().find(named);
                let is_disabled = status.state == ServerState::Disabled;
                let check = server.filter(|_| !is_disabled).map(|server| {
                    let (settings, file) = (&server.settings, config.file());
                    what_to_check(settings, &status.stderr, file, &tools.redactor)
                });
                detail("check", check.as_slice());
            }
        }
    }

    fn on_changes(&mut self, name: &str, status: &ServerStatus) {
        let changes = server::changes(status);
        let finding = match server::withheld(status) {
            None if changes.is_empty() => return,
            Some(text) => Finding::Bad(text),
            None => Finding::Warning(format!(
                "tools are not what you agreed to: 'toolgate trust {}' shows how they changed",
                status.name
            )),
        };
        self.add(name, &finding);
        detail("changed", &changes);
    }

    fn on_sandbox(&mut self, config: &Config) {
        let settings = config.servers.iter().map(|server| &server.settings);
        let here = settings.filter(|settings| matches!(settings.connection, Connection::Stdio(_)));
        let (open, confined): (Vec<_>, Vec<_>) =
            here.partition(|settings| settings.sandbox.level == SandboxLevel::Off);
        let support = sandbox::kernel_support();
        let open: Vec<String> = open.iter().map(|settings| escape(&settings.name)).collect();
        let finding = match (confined.len(), support.missing()) {
            (0, _) if open.is_empty() => return,
            (0, _) => Finding::Good(format!(
                "{support}; no server is confined: \"sandbox\": \"default\" in its entry does that"
            )),
            (_, Some(missing)) => Finding::Warning(format!("{support}: {missing}")),
            (count, None) if open.is_empty() => Finding::Good(format!(
                "{support}; {count} of {count} servers are confined"
            )),
            (count, None) => Finding::Good(format!(
                "{support}; {count} of {} servers are confined, {} not",
                count + open.len(),
                open.join(", ")
            )),
        };
        self.add("sandbox", &finding);
    }

    async fn on_tools(&mut self, config: &Config, tools: &Tools, fleet: Option<&Fleet>) {
        let servers = fleet.map(|fleet| fleet.servers.status());
        let servers = servers.unwrap_or_default();
        for unmatched in patterns::unmatched(config, &tools.manager.tools(), &servers) {
            self.add("configuration", &Finding::Warning(unmatched.to_string()));
        }
        let count = tools.manager.tools().len();
        self.add("tools", &Finding::Good(format!("{count} registered")));
        for finding in of_folders(config) {
            self.add("documents", &finding);
        }
        let executor = wiring::probe(config, tools);
        for (tool, arguments) in [
            ("volume", json!({ "action": "get" })),
            ("search", json!({ "query": "toolgate", "max_results": 1 })),
        ] {
            self.add(tool, &of_tool(&executor, tool, arguments).await);
        }
    }
}

fn of_server(status: &ServerStatus) -> Finding {
    match status.state {
        ServerState::Connected => match server::degraded(status) {
            None => Finding::Good(server::state(status)),
            Some(problem) => Finding::Bad(format!("{}, but {problem}", server::state(status))),
        },
        ServerState::Disabled => Finding::Good("disabled in the configuration".to_owned()),
        state => {
            let error = status.error.as_deref().unwrap_or("it gave no reason");
            Finding::Bad(format!("{state} over {}: {error}", status.transport))
        }
    }
}

/// A configuration that cannot be read at all: everything that is wrong with it.
fn show_broken(error: &anyhow::Error) {
    match error.downcast_ref::<ConfigErrors>() {
        Some(errors) => errors
            .iter()
            .for_each(|error| show("configuration", &Finding::Bad(error.to_string()))),
        None => show("configuration", &Finding::Bad(format!("{error:#}"))),
    }
}

fn detail(title: &str, lines: &[String]) {
    for line in lines {
        print(&format!("{:TEXT$}{title}: {}", "", escape(line)));
    }
}

/// A row whose text goes on below itself where the terminal is too narrow for it.
fn print(row: &str) {
    match say::width() {
        Some(width) if row.starts_with(' ') => say::result(&wrap::hanging(row, 2, width)),
        Some(width) => say::result(&wrap::hanging(row, TEXT, width)),
        None => say::result(row),
    }
}

fn show(name: &str, finding: &Finding) {
    use anstyle::AnsiColor::{Green, Red, Yellow};
    let (colour, word, text) = match finding {
        Finding::Good(text) => (Green, "ok", text),
        Finding::Warning(text) => (Yellow, "warning", text),
        Finding::Bad(text) => (Red, "FAILED", text),
    };
    let style = anstyle::Style::new().fg_color(Some(colour.into()));
    print(&format!(
        "{style}{word:<8}{style:#} {name:<14} {}",
        escape(text)
    ));
}

fn of_file(config: &Config) -> Finding {
    match config.file() {
        Some(file) => Finding::Good(format!("{} is read", file.display())),
        None => Finding::Good(
            "no file; the built-in tools work without one ('toolgate init' writes one)".to_owned(),
        ),
    }
}

fn of_folders(config: &Config) -> Vec<Finding> {
    let folders = config.documents.folders.iter();
    let finding = |folder: &std::path::PathBuf| match std::fs::read_dir(folder).is_ok() {
        true => Finding::Good(format!("{} is there", folder.display())),
        false => Finding::Bad(format!(
            "{} can not be read; correct documents.folders",
            folder.display()
        )),
    };
    folders.map(finding).collect()
}

/// Asks the tool itself: nothing else knows better what it needs.
async fn of_tool(executor: &ToolExecutor, tool: &str, arguments: serde_json::Value) -> Finding {
    const PATIENCE: Duration = Duration::from_secs(5);
    let call = ToolCall::new(tool, arguments)
        .origin(Origin::CommandLine)
        .timeout(PATIENCE);
    if executor.rehearse(&call).is_err() {
        return Finding::Warning("not available under the policy".to_owned());
    }
    match executor.execute(call).await.result {
        Ok(_) => Finding::Good("works".to_owned()),
        Err(error) => Finding::Warning(error.to_string()),
    }
}
