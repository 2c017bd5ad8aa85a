//! Runs one request for content: with the configured servers, or through a running gateway. Prints
//! the answer as the command wants it, or the error.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value, json};
use toolgate_core::text::escape;
use toolgate_core::{
    ContentRequest, ErrorKind, Origin, Scope, ServerFailure, ToolCall, ToolError, ToolExecutor,
    ToolOutcome, ToolSource,
};

use super::prompt_arguments;
use crate::approve::TerminalApprover;
use crate::cli::{ContentCallOptions, GlobalOptions};
use crate::commands::call::report::{CallReporter, advise};
use crate::commands::call::{CliArguments, print_interruptible, run_interruptible};
use crate::commands::{block_on, block_on_interruptible, rendered};
use crate::config::{Config, SecretScope};
use crate::content_text::for_terminal;
use crate::exit::Exit;
use crate::journal::{CommandJournal, OpenRetry};
use crate::remote::{self, RemoteError, RemoteGateway};
use crate::servers::{self, ServerFleet, ServerStart::WhenNeeded};
use crate::spinner::Spinner;
use crate::{output, wiring};

// How long to wait for servers to list what they didn't list before.
const NEW_CONTENT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) enum ContentTarget<'a> {
    Resource(&'a str),
    Prompt(&'a str, CliArguments),
}

/// Prints the result of MCP.
pub(super) type Show = Box<dyn FnOnce(&Value) -> anyhow::Result<Exit> + Send>;

/// How a command asks for content, and prints it.
pub(super) struct ContentCommand<'a> {
    pub(super) wanted: ContentTarget<'a>,
    pub(super) command: &'static str,
    /// Prints the envelope instead of calling `show`.
    pub(super) json: bool,
    pub(super) call: &'a ContentCallOptions,
    pub(super) show: Show,
}

impl ContentTarget<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Resource(name) | Self::Prompt(name, _) => name,
        }
    }

    fn list_command(&self) -> &'static str {
        match self {
            Self::Resource(_) => "resources",
            Self::Prompt(..) => "prompts",
        }
    }

    /// Finds it, and makes the call. Wrong arguments of a prompt make the call fail.
    fn find(&self, executor: &ToolExecutor) -> (ContentRequest, ToolCall) {
        let scope = Scope::default();
        let (name, typed) = match self {
            Self::Resource(uri) => {
                let request = executor.find_resource(uri, &scope);
                let call = request.to_call();
                return (request, call);
            }
            Self::Prompt(name, typed) => (*name, typed),
        };
        let content = executor.manager().content();
        let entry = content.find_prompt(name).map(|found| found.entry.clone());
        match prompt_arguments(&entry.unwrap_or_default(), typed) {
            Ok(arguments) => {
                let request = executor.find_prompt(name, arguments, &scope);
                let call = request.to_call();
                (request, call)
            }
            Err(error) => {
                let request = executor.find_prompt(name, Map::new(), &scope);
                // What nobody offers has no wrong arguments.
                let call = match request.owner() {
                    Some(_) => request.to_call().reject(error),
                    None => request.to_call(),
                };
                (request, call)
            }
        }
    }
}

impl ContentCommand<'_> {
    pub(super) fn run(self, global: &GlobalOptions) -> anyhow::Result<Exit> {
        match RemoteGateway::from_options(&self.call.remote)? {
            Some(remote) => self.run_at(&remote),
            None => {
                let config = wiring::load_config_or_ask(global, SecretScope::Tools)?;
                self.run_here(&config)
            }
        }
    }

    fn run_here(self, config: &Config) -> anyhow::Result<Exit> {
        let tools = wiring::build_tools(config);
        wiring::warn_about_config(config, &tools);
        wiring::warn_about_servers(config);
        let spinner = Spinner::new(self.wanted.name());
        let journal = CommandJournal::open(config, &tools, self.command, OpenRetry::Never);
        let executor = wiring::unobserved_builder(config, &tools)
            .observer(match self.json {
                true => CallReporter::new(&tools),
                false => CallReporter::without_failures(&tools),
            })
            .approver(TerminalApprover {
                agreed: self.call.yes,
                spinner: spinner.clone(),
                redactor: tools.redactor.clone(),
            });
        let executor = journal.attach(executor).build();
        block_on(async {
            let all = servers::settings(&config.servers);
            let fleet = ServerFleet::start(config, &tools, all, WhenNeeded, Some(&spinner));
            let exit = self.call(&executor, &spinner, &fleet).await;
            fleet.stop().await;
            journal.close().await;
            exit
        })
    }

    async fn call(self, executor: &ToolExecutor, spinner: &Spinner, fleet: &ServerFleet) -> Exit {
        let ready = wait_for_owner(&self.wanted, executor, fleet);
        if !fleet.wait(spinner, ready).await {
            let tool = self.wanted.name().to_owned();
            return self
                .print_refused(ToolError::Cancelled { tool }, Exit::Interrupted)
                .await;
        }
        spinner.set_title(self.wanted.name());
        let (request, call) = self.wanted.find(executor);
        let mut call = call.origin(Origin::CommandLine);
        if let Some(timeout) = self.call.timeout {
            call = call.timeout(timeout);
        }
        let (mut outcome, exit) = run_interruptible(executor, call, spinner).await;
        request.finish(&mut outcome);
        let is_missing = request.owner().is_none();
        let nearest = match is_missing || is_refused(&outcome) {
            true => request.nearest(),
            false => Vec::new(),
        };
        let exit = self.print(outcome, exit, nearest).await;
        if is_missing {
            fleet.note_missing(None);
        }
        exit
    }

    async fn print_refused(self, error: ToolError, exit: Exit) -> Exit {
        let call = ToolCall::new(self.wanted.name(), json!({}));
        self.print(ToolOutcome::rejected(&call, error), exit, Vec::new())
            .await
    }

    async fn print(self, outcome: ToolOutcome, exit: Exit, nearest: Vec<String>) -> Exit {
        let kind = outcome.result.as_ref().err().map(ToolError::kind);
        let list = self.wanted.list_command();
        let name = self.wanted.name().to_owned();
        let (json, show) = (self.json, self.show);
        print_interruptible(move || {
            let exit = print_envelope(&outcome.to_envelope(), exit, json, show);
            match kind {
                Some(_) if !nearest.is_empty() => {
                    let near: Vec<_> = nearest
                        .iter()
                        .map(|one| format!("'{}'", escape(one)))
                        .collect();
                    output::print_note(&format!("did you mean {}?", near.join(" or ")));
                }
                Some(ErrorKind::InvalidArguments) => {
                    output::print_note(&format!("'toolgate {list}' shows the arguments"));
                }
                Some(kind) => advise(kind, &name),
                None => {}
            }
            exit
        })
        .await
    }

    fn run_at(self, remote: &RemoteGateway) -> anyhow::Result<Exit> {
        let spinner = Spinner::new(self.wanted.name());
        let asking = spinner.run_during(ask(remote, &self.wanted));
        Ok(match block_on_interruptible(asking)? {
            None => Exit::Interrupted,
            Some(Err(error)) => error.report(),
            Some(Ok(envelope)) => {
                let exit = Exit::success_if(envelope["success"] == true);
                print_envelope(&envelope, exit, self.json, self.show)
            }
        })
    }
}

/// Starts the server that offers it, and waits for it. If none is known to, the servers are asked
/// for their lists first.
async fn wait_for_owner(wanted: &ContentTarget<'_>, executor: &ToolExecutor, fleet: &ServerFleet) {
    let owner = || {
        let scope = Scope::default();
        let request = match wanted {
            ContentTarget::Resource(uri) => executor.find_resource(uri, &scope),
            ContentTarget::Prompt(name, _) => executor.find_prompt(name, Map::new(), &scope),
        };
        request.owner().map(|owner| owner.source.clone())
    };
    executor.manager().refresh_lists().await;
    if owner().is_none() {
        fleet.servers.start_servers_without_tools();
        fleet.servers.wait_for_known_tools().await;
    }
    if owner().is_none() {
        // A server may offer it since its last list.
        let started = fleet.servers.start_all();
        drop(tokio::time::timeout(NEW_CONTENT_TIMEOUT, started).await);
    }
    // Not within the call, whose timeout is the server's own.
    if let Some(ToolSource::Mcp(server)) = owner() {
        fleet.servers.start_server(&server).await;
    }
}

/// True if the server itself says that what was asked for doesn't exist, or is wrong.
fn is_refused(outcome: &ToolOutcome) -> bool {
    // The first was the code for a missing resource up to 2025-11-25.
    const CODES: [i64; 2] = [-32002, -32602];
    match &outcome.result {
        Err(ToolError::Failed {
            answer: Some(answer),
            ..
        }) => matches!(&**answer, ServerFailure::Rpc { code, .. } if CODES.contains(code)),
        _ => false,
    }
}

/// Sends the request to the gateway, which answers with the envelope.
async fn ask(remote: &RemoteGateway, wanted: &ContentTarget<'_>) -> Result<Value, RemoteError> {
    let (path, body) = match wanted {
        ContentTarget::Resource(uri) => (["api", "resources", "read"], json!({ "uri": uri })),
        ContentTarget::Prompt(name, typed) => {
            let listed = remote.get(&["api", "prompts"], &[]).await?.body;
            let mut listed = listed["prompts"].as_array().into_iter().flatten();
            let entry = listed.find(|entry| entry["name"] == **name);
            match prompt_arguments(entry.unwrap_or(&Value::Null), typed) {
                Ok(arguments) => {
                    let body = json!({ "name": name, "arguments": arguments });
                    (["api", "prompts", "get"], body)
                }
                Err(error) => {
                    let call = ToolCall::new(*name, json!({}));
                    return Ok(ToolOutcome::rejected(&call, error).to_envelope());
                }
            }
        }
    };
    let answer = remote
        .post(&path, &[], body.to_string().into_bytes())
        .await?;
    match answer.body["success"].is_boolean() {
        true => Ok(answer.body),
        false => Err(RemoteError::Unreachable(remote::problem_detail(&answer))),
    }
}

/// Prints the envelope, or only its result; an error goes to stderr then.
fn print_envelope(envelope: &Value, exit: Exit, json: bool, show: Show) -> Exit {
    if json {
        output::print_result(&rendered(envelope));
        return exit;
    }
    if envelope["success"] == true {
        let shown = show(&envelope["result"]).context("cannot show the result");
        return shown.unwrap_or_else(|error| {
            output::print_error(&error);
            Exit::Failure
        });
    }
    let error = envelope["error"].as_str().unwrap_or("it failed");
    output::print_error_text(&escape(error));
    let has_code = |text: &&str| text.starts_with("JSON-RPC error");
    let details = envelope["details"].as_str();
    let details = details.filter(|text| !has_code(text));
    for text in envelope["hint"].as_str().into_iter().chain(details) {
        output::print_note(&for_terminal(text));
    }
    exit
}
