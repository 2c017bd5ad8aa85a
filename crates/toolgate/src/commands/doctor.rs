//! `toolgate doctor`: checks what can be checked, and says what to do.

mod gateway;
mod model;
mod offer;
mod voice;

use std::time::Duration;

use serde_json::json;
use toolgate_core::{Origin, ToolCall, ToolExecutor, escape};
use toolgate_mcp::{Connection, ServerState, ServerStatus};

use super::{runtime, server};
use crate::cli::{DoctorOptions, Global};
use crate::config::{Config, ConfiguredServer};
use crate::exit::Exit;
use crate::say;
use crate::servers::{self, Fleet};
use crate::spinner::Spinner;
use crate::talk;
use crate::wiring::{self, Tools};

/// How a check ended. The mark never stands alone: the word says the same.
enum Finding {
    Good(String),
    /// Missing, but nothing else needs it.
    Warning(String),
    Bad(String),
}

pub(crate) fn run(global: &Global, options: &DoctorOptions) -> anyhow::Result<Exit> {
    // What makes no sense is wrong usage, and nothing that was found.
    talk::named(&options.choice)?;
    let config = match wiring::configuration(global) {
        Ok(config) => config,
        Err(error) => {
            show("configuration", &Finding::Bad(format!("{error:#}")));
            return Ok(Exit::Failure);
        }
    };
    let tools = wiring::tools(&config);
    let wanted: Vec<_> = config.servers.iter().collect();
    let admitted = servers::admit(&config, &wanted);
    let mut report = Report::default();
    report.on_configuration(&config, &tools);
    let runtime = runtime()?;
    let interrupted = runtime.block_on(async {
        let spinner = Spinner::new("starting");
        let fleet =
            (!wanted.is_empty()).then(|| Fleet::start(&config, &tools, admitted, Some(&spinner)));
        if let Some(fleet) = &fleet {
            if !fleet.wait(&spinner, fleet.servers.settled()).await {
                fleet.stop().await;
                return true;
            }
            report.on_servers(fleet, &config);
        }
        report.on_tools(&config, &tools, fleet.as_ref()).await;
        report.on_journal(&config, &tools).await;
        report.on_gateway(&config).await;
        report.on_model(&config, &options.choice, &tools).await;
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

/// What was found so far.
#[derive(Default)]
struct Report {
    failed: bool,
}

impl Report {
    fn add(&mut self, name: &str, finding: &Finding) {
        self.failed |= matches!(finding, Finding::Bad(_));
        show(name, finding);
    }

    fn on_configuration(&mut self, config: &Config, tools: &Tools) {
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

    fn on_servers(&mut self, fleet: &Fleet, config: &Config) {
        for status in fleet.servers.status() {
            let name = escape(&status.name);
            self.add(&name, &of_server(&status));
            if let Some(text) = server::pollution(&status) {
                self.add(&name, &Finding::Warning(text));
                detail("stdout", &status.polluted_lines);
            }
            for refused in &status.refused {
                self.add(&name, &Finding::Warning(format!("refused {refused}")));
            }
            if status.state != ServerState::Connected {
                detail("stderr", &status.stderr);
                let named = |server: &&ConfiguredServer| server.settings.name == status.name;
                let server = config.servers.iter().find(named);
                let is_disabled = status.state == ServerState::Disabled;
                let check = server.filter(|_| !is_disabled).map(to_check);
                detail("check", check.as_slice());
            }
        }
        for name in fleet.untrusted() {
            let text = "not trusted, since the file lies in this folder; 'toolgate trust' shows what would be started, and agrees";
            self.add(&escape(name), &Finding::Warning(text.to_owned()));
        }
    }

    async fn on_tools(&mut self, config: &Config, tools: &Tools, fleet: Option<&Fleet>) {
        // While a server is away, its tools are too.
        if fleet.is_none_or(Fleet::is_complete) {
            for name in unmatched(config, tools) {
                let text = format!("'{name}' in policy or limits means no tool there is");
                self.add("configuration", &Finding::Warning(text));
            }
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
        ServerState::Connected => Finding::Good(server::state(status)),
        ServerState::Disabled => Finding::Good("disabled in the configuration".to_owned()),
        state => {
            let error = status.error.as_deref().unwrap_or("it gave no reason");
            Finding::Bad(format!("{state} over {}: {error}", status.transport))
        }
    }
}

/// What a person can do about a server that does not start.
fn to_check(server: &ConfiguredServer) -> String {
    match (&server.settings.check, &server.settings.connection) {
        (Some(check), _) => check.clone(),
        (None, Connection::Stdio(program)) => {
            format!(
                "'{}' installed and on the PATH, its arguments and variables",
                program.command
            )
        }
        (None, Connection::Http { .. }) => "its address reachable, its headers".to_owned(),
    }
}

/// Further lines below a finding.
fn detail(title: &str, lines: &[String]) {
    for line in lines {
        say::result(&format!("{:24}{title}: {}", "", escape(line)));
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
    say::result(&format!(
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

/// Names in the policy and the limits that mean nothing, as a typing error would.
fn unmatched(config: &Config, tools: &Tools) -> Vec<String> {
    let all = tools.manager.tools();
    let policy = &config.policy;
    let patterns = policy.allow.iter().chain(&policy.deny).chain(&policy.ask);
    let idle =
        patterns.filter(|pattern| !all.iter().any(|tool| pattern.matches(tool.definition())));
    let unknown = config
        .limits
        .per_tool
        .keys()
        .filter(|name| all.find(name).is_none());
    idle.map(ToString::to_string)
        .chain(unknown.cloned())
        .collect()
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
