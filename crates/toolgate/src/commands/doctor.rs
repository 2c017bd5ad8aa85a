//! `toolgate doctor`: checks the configuration, servers, tools and models, and says what to fix.

mod gateway;
mod model;
mod model_tools;
mod remote;
#[cfg(feature = "voice")]
mod voice;

use std::time::Duration;

use serde_json::json;
use toolgate_core::text::escape;
use toolgate_core::{Origin, Redactor, ToolCall, ToolExecutor};
use toolgate_mcp::{
    SandboxLevel, ServerConnection, ServerState, ServerStatus, sandbox, startup_advice,
};

use super::{block_on, server};
use crate::cli::{DoctorOptions, GlobalOptions};
use crate::config::{Config, ConfigErrors, ConfiguredServer, SecretScope};
use crate::exit::Exit;
use crate::remote::RemoteGateway;
use crate::servers::{self, ServerFleet, ServerStart};
use crate::spinner::Spinner;
use crate::wiring::{self, ConfiguredTools};
use crate::{output, patterns, trust, wanted_model, wrap};
use DoctorFinding::{Bad, Good, Warning};

// Column where the text of a row starts.
const TEXT_COLUMN: usize = 24;

enum DoctorFinding {
    Good(String),
    /// Something optional is missing, or something is odd but harmless.
    Warning(String),
    Bad(String),
}

pub(crate) fn run(global: &GlobalOptions, options: &DoctorOptions) -> anyhow::Result<Exit> {
    // Contradictory options are a usage error, not a finding.
    wanted_model::requested_model(&options.choice)?;
    if let Some(remote) = RemoteGateway::from_options(&options.remote)? {
        return remote::run(&remote);
    }
    let config = match wiring::find_config(global, SecretScope::Everything, trust::ask) {
        Ok(config) => config,
        Err(error) => {
            print_config_errors(&error);
            return Ok(Exit::Failure);
        }
    };
    let tools = wiring::build_tools(&config);
    let all = servers::settings(&config.servers);
    let mut report = DoctorReport::new(tools.redactor.clone());
    report.check_configuration(&config, &tools);
    report.check_sandbox(&config);
    let interrupted = block_on(async {
        let spinner = Spinner::new("starting");
        let fleet = (!all.is_empty())
            .then(|| ServerFleet::start(&config, &tools, all, ServerStart::AtOnce, Some(&spinner)));
        if let Some(fleet) = &fleet {
            fleet
                .servers
                .watch_health(wiring::probe_executor(&config, &tools));
            if !fleet
                .wait(&spinner, fleet.servers.wait_for_health_checks())
                .await
            {
                fleet.stop().await;
                return true;
            }
            report.check_servers(fleet, &config, &tools);
        }
        report.check_tools(&config, &tools, fleet.as_ref()).await;
        report.check_journal(&config, &tools).await;
        #[cfg(feature = "serve")]
        report.check_gateway(&config).await;
        report.check_model(&config, &options.choice, &tools).await;
        #[cfg(feature = "voice")]
        report.check_voice(&config).await;
        if let Some(fleet) = &fleet {
            fleet.stop().await;
        }
        false
    })?;
    Ok(match interrupted {
        true => Exit::Interrupted,
        false => Exit::success_if(!report.failed),
    })
}

struct DoctorReport {
    failed: bool,
    // Addresses and paths in the configuration may contain secrets.
    redactor: Redactor,
}

impl DoctorReport {
    fn new(redactor: Redactor) -> Self {
        Self {
            failed: false,
            redactor,
        }
    }

    fn add(&mut self, name: &str, finding: DoctorFinding) {
        self.failed |= matches!(finding, Bad(_));
        print_finding(name, finding, &self.redactor);
    }

    fn check_configuration(&mut self, config: &Config, tools: &ConfiguredTools) {
        if let Some(unused) = &config.unused_file {
            self.add("configuration", Warning(unused.note()));
        }
        self.add("configuration", check_file(config));
        for warning in &config.warnings {
            self.add("configuration", Warning(warning.to_string()));
        }
        for error in tools.problems.iter().chain(config.unset()) {
            self.add("configuration", Bad(error.to_string()));
        }
        for problem in &config.server_problems {
            let text = problem.error.to_string();
            let finding = match problem.left_out {
                true => Bad(text),
                false => Warning(text),
            };
            self.add("configuration", finding);
        }
    }

    fn check_servers(&mut self, fleet: &ServerFleet, config: &Config, tools: &ConfiguredTools) {
        for status in fleet.servers.status() {
            let name = escape(&status.name);
            self.add(&name, check_server(&status));
            if let Some(text) = server::pollution(&status) {
                self.add(&name, Warning(text));
                detail("stdout", &status.stray_lines);
            }
            if let Some(text) = server::unknown_health(&status) {
                self.add(&name, Warning(text));
            }
            self.check_changes(&name, &status);
            for refused in &status.refused {
                self.add(&name, Warning(format!("refused {refused}")));
            }
            if status.state != ServerState::Connected || status.degraded().is_some() {
                detail("stderr", &status.stderr);
                let named = |server: &&ConfiguredServer| server.settings.name == status.name;
                let server = config.servers.iter().find(named);
                let is_disabled = status.state == ServerState::Disabled;
                let check = server.filter(|_| !is_disabled).map(|server| {
                    let (settings, file) = (&server.settings, config.file());
                    startup_advice(settings, &status.stderr, file, &tools.redactor)
                });
                detail("check", check.as_slice());
            }
        }
    }

    fn check_changes(&mut self, name: &str, status: &ServerStatus) {
        let changes = server::changes(status);
        let finding = match server::withheld(status) {
            None if changes.is_empty() => return,
            Some(text) => Bad(text),
            None => Warning(format!(
                "tools differ from what you agreed to: 'toolgate trust {}' shows how they changed",
                status.name
            )),
        };
        self.add(name, finding);
        detail("changed", &changes);
    }

    fn check_sandbox(&mut self, config: &Config) {
        let settings = config.servers.iter().map(|server| &server.settings);
        let here =
            settings.filter(|settings| matches!(settings.connection, ServerConnection::Stdio(_)));
        let (open, confined): (Vec<_>, Vec<_>) =
            here.partition(|settings| settings.sandbox.level == SandboxLevel::Off);
        let support = sandbox::kernel_support();
        let open: Vec<String> = open.iter().map(|settings| escape(&settings.name)).collect();
        let finding = match (confined.len(), support.missing()) {
            (0, _) if open.is_empty() => return,
            (0, _) => Good(format!(
                "{support}; no server is confined; \"sandbox\": \"default\" in a server's entry confines it"
            )),
            (_, Some(missing)) => Warning(format!("{support}: {missing}")),
            (count, None) if open.is_empty() => Good(format!(
                "{support}; {count} of {count} servers are confined"
            )),
            (count, None) => Good(format!(
                "{support}; {count} of {} servers are confined, {} not",
                count + open.len(),
                open.join(", ")
            )),
        };
        self.add("sandbox", finding);
    }

    async fn check_tools(
        &mut self,
        config: &Config,
        tools: &ConfiguredTools,
        fleet: Option<&ServerFleet>,
    ) {
        let servers = fleet.map(|fleet| fleet.servers.status());
        let servers = servers.unwrap_or_default();
        for unmatched in patterns::unmatched(config, &tools.manager.tools(), &servers) {
            self.add("configuration", Warning(unmatched.to_string()));
        }
        let count = tools.manager.tools().len();
        self.add("tools", Good(format!("{count} registered")));
        for finding in check_folders(&config.documents.folders, "documents.folders") {
            self.add("documents", finding);
        }
        for finding in check_folders(&config.skills.folders, "skills.folders") {
            self.add("skills", finding);
        }
        let executor = wiring::probe_executor(config, tools);
        for (tool, arguments) in [
            ("volume", json!({ "action": "get" })),
            ("search", json!({ "query": "toolgate", "max_results": 1 })),
        ] {
            self.add(tool, check_tool(&executor, tool, arguments).await);
        }
    }
}

fn check_server(status: &ServerStatus) -> DoctorFinding {
    match status.state {
        ServerState::Connected => match server::degraded(status) {
            None => Good(server::describe_state(status)),
            Some(problem) => Bad(format!("{}, but {problem}", server::describe_state(status))),
        },
        ServerState::Disabled => Good("disabled in the configuration".to_owned()),
        state => {
            let error = status.error.as_deref().unwrap_or("it gave no reason");
            Bad(format!("{state} over {}: {error}", status.transport))
        }
    }
}

fn print_config_errors(error: &anyhow::Error) {
    let print_problem =
        |text: String| print_finding("configuration", Bad(text), &Redactor::default());
    match error.downcast_ref::<ConfigErrors>() {
        Some(errors) => errors
            .iter()
            .for_each(|error| print_problem(error.to_string())),
        None => print_problem(format!("{error:#}")),
    }
}

fn detail(title: &str, lines: &[String]) {
    for line in lines {
        print(&format!("{:TEXT_COLUMN$}{title}: {}", "", escape(line)));
    }
}

fn print(row: &str) {
    match output::stdout_width() {
        Some(width) if row.starts_with(' ') => {
            output::print_result(&wrap::wrap_hanging(row, 2, width));
        }
        Some(width) => output::print_result(&wrap::wrap_hanging(row, TEXT_COLUMN, width)),
        None => output::print_result(row),
    }
}

fn print_finding(name: &str, finding: DoctorFinding, redactor: &Redactor) {
    use anstyle::AnsiColor::{Green, Red, Yellow};
    let (color, word, text) = match finding {
        Good(text) => (Green, "ok", text),
        Warning(text) => (Yellow, "warning", text),
        Bad(text) => (Red, "FAILED", text),
    };
    let style = anstyle::Style::new().fg_color(Some(color.into()));
    let text = escape(&redactor.redact_known(&text));
    print(&format!("{style}{word:<8}{style:#} {name:<14} {text}"));
}

fn check_file(config: &Config) -> DoctorFinding {
    match config.file() {
        Some(file) => Good(format!("{} is in use", file.display())),
        None => Good(
            "no file; the built-in tools work without one ('toolgate init' writes one)".to_owned(),
        ),
    }
}

fn check_folders(folders: &[std::path::PathBuf], key: &str) -> Vec<DoctorFinding> {
    let finding = |folder: &std::path::PathBuf| match std::fs::read_dir(folder).is_ok() {
        true => Good(format!("{} can be read", folder.display())),
        false => Bad(format!("{} can't be read; correct {key}", folder.display())),
    };
    folders.iter().map(finding).collect()
}

// Calls the tool, because only the tool knows what it needs.
async fn check_tool(
    executor: &ToolExecutor,
    tool: &str,
    arguments: serde_json::Value,
) -> DoctorFinding {
    const TOOL_TIMEOUT: Duration = Duration::from_secs(5);
    let call = ToolCall::new(tool, arguments)
        .origin(Origin::CommandLine)
        .timeout(TOOL_TIMEOUT);
    if executor.dry_run(&call).is_err() {
        return Warning("not available under the policy".to_owned());
    }
    match executor.execute(call).await.result {
        Ok(_) => Good("works".to_owned()),
        Err(error) => Warning(error.to_string()),
    }
}
