//! `toolgate call TOOL …`: runs one tool and prints its envelope. The whole path from the command
//! line to the executor is here; what a person reads about the call is in `report`.

pub(super) mod remote;
pub(super) mod report;

use std::io::{IsTerminal, Read};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_core::{ErrorKind, Origin, ToolCall, ToolError, ToolExecutor, ToolOutcome};
use toolgate_mcp::ServerHealthHandler;

use super::block_on;
use super::replay::ReplayConsent;
use crate::approve::TerminalApprover;
use crate::cli::{CallOptions, GlobalOptions};
use crate::config::{Config, SecretScope};
use crate::exit::{self, Exit};
use crate::journal::{CommandJournal, OpenRetry};
use crate::servers::{self, ServerFleet, ServerStart::WhenNeeded};
use crate::spinner::Spinner;
use crate::{command_words, output, patterns, wiring};
use report::CallReporter;

pub(crate) fn run(global: &GlobalOptions, options: &CallOptions) -> anyhow::Result<Exit> {
    let config = wiring::load_config_or_ask(global, SecretScope::Tools)?;
    let arguments = CliArguments::read(&options.arguments, config.limits.max_arguments)?;
    if options.remote.at.is_some() {
        return remote::run(options, &arguments);
    }
    let request = CallRequest {
        tool: &options.tool,
        arguments,
        timeout: options.timeout,
        dry_run: options.dry_run,
        yes: options.yes,
        replay: None,
    };
    request.run(&config, "toolgate call")
}

/// Arguments as typed, before they become a [`ToolCall`].
pub(crate) enum CliArguments {
    /// `key=value`, typed by the tool's schema.
    Pairs(Vec<(String, String)>),
    Json(Vec<u8>),
    /// Parsed JSON, such as that of a recorded call.
    Value(Value),
    Unusable(Value, &'static str),
}

impl CliArguments {
    // May read stdin, so it is called before anything is started: the writer may be slow.
    pub(super) fn read(words: &[String], limit: usize) -> anyhow::Result<Self> {
        Ok(match words {
            [] => Self::Value(json!({})),
            [dash] if dash == "-" => match read_stdin(limit)? {
                blank if blank.trim_ascii().is_empty() => Self::Unusable(
                    Value::Null,
                    "must be a JSON object, and stdin was empty; give {} for none",
                ),
                bytes => Self::Json(bytes),
            },
            [json] if json.starts_with(['{', '[', '"']) => Self::Json(json.clone().into_bytes()),
            [word] if !word.contains('=') => match toolgate_core::parse_json(word.as_bytes()) {
                Ok(value) => Self::Value(value),
                Err(_) => Self::Unusable(json!(word), "must be a JSON object, or key=value pairs"),
            },
            words => {
                let pairs = words.iter().map(|word| {
                    let pair = command_words::split_pair(word).with_context(|| {
                        let word = toolgate_core::text::escape(word);
                        format!("'{word}' is not a key=value pair; give pairs, one JSON object, or - for stdin")
                    });
                    pair.map(|(key, text)| (key.to_owned(), text.to_owned()))
                });
                Self::Pairs(pairs.collect::<anyhow::Result<_>>()?)
            }
        })
    }

    pub(super) fn to_call(&self, tool: &str, schema: &Value) -> ToolCall {
        match self {
            Self::Json(bytes) => ToolCall::from_json(tool, bytes),
            Self::Value(value) => ToolCall::new(tool, value.clone()),
            Self::Unusable(raw, problem) => {
                let error = ToolError::invalid("arguments", *problem);
                ToolCall::from_invalid(tool, raw.clone(), error)
            }
            Self::Pairs(pairs) => {
                match toolgate_core::command_line_arguments(&as_str_pairs(pairs), schema) {
                    Ok(arguments) => ToolCall::new(tool, Value::Object(arguments)),
                    Err(error) => {
                        // An object, so that the redactor recognizes secrets by their keys.
                        let raw = pairs.iter().map(|(key, text)| (key.clone(), json!(text)));
                        let raw = Value::Object(raw.collect::<Map<_, _>>());
                        ToolCall::from_invalid(tool, raw, error.into_tool_error(tool))
                    }
                }
            }
        }
    }

    fn explain_lists(&self, schema: &Value) {
        if let Self::Pairs(pairs) = self {
            for hint in report::list_hints(&as_str_pairs(pairs), schema) {
                output::print_note(&format!("a list is typed item by item: {hint}"));
            }
        }
    }
}

fn as_str_pairs(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    let pairs = pairs.iter();
    pairs.map(|(key, text)| (&**key, &**text)).collect()
}

// White space may double the size of valid arguments. Anything longer can't be valid,
// so it isn't read.
fn read_stdin(limit: usize) -> anyhow::Result<Vec<u8>> {
    if std::io::stdin().is_terminal() {
        output::print_note("reading a JSON object from the terminal; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(2 * limit as u64);
    input.read_to_end(&mut bytes).context("cannot read stdin")?;
    Ok(bytes)
}

pub(crate) struct CallRequest<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: CliArguments,
    pub(crate) timeout: Option<Duration>,
    pub(crate) dry_run: bool,
    /// Approves every call that the policy asks about.
    pub(crate) yes: bool,
    /// Set for a replay: a tool that isn't read-only needs a confirmation.
    pub(crate) replay: Option<ReplayConsent>,
}

impl CallRequest<'_> {
    pub(crate) fn run(self, config: &Config, command: &str) -> anyhow::Result<Exit> {
        if let Some(unset) = config.unset_for_tool(self.tool) {
            bail!(unset.clone());
        }
        let tools = wiring::build_tools(config);
        wiring::warn_about_config(config, &tools);
        patterns::warn_of_unmatched_policy(config, &tools);
        let spinner = Spinner::new(self.tool);
        let journal = match self.dry_run {
            true => CommandJournal::default(),
            false => CommandJournal::open(config, &tools, command, OpenRetry::Never),
        };
        // Problems of servers don't matter to a local tool that needs none.
        let needed = servers::owners(config, &tools.manager, &servers::catalog(), self.tool);
        if tools.manager.find(self.tool).is_none() || !needed.is_empty() {
            wiring::warn_about_servers(config);
        }
        let executor = wiring::unobserved_builder(config, &tools)
            .observer(CallReporter::new(&tools))
            .approver(TerminalApprover {
                agreed: self.yes,
                spinner: spinner.clone(),
                redactor: tools.redactor.clone(),
            });
        let executor = journal.attach(executor).build();
        block_on(async {
            let fleet = (!needed.is_empty()).then(|| {
                let needed = servers::settings(needed);
                ServerFleet::start(config, &tools, needed, WhenNeeded, Some(&spinner))
            });
            let exit = self.call(config, &executor, &spinner, fleet.as_ref()).await;
            if let Some(fleet) = &fleet {
                fleet.stop().await;
            }
            journal.close().await;
            exit
        })?
    }

    async fn call(
        &self,
        config: &Config,
        executor: &ToolExecutor,
        spinner: &Spinner,
        fleet: Option<&ServerFleet>,
    ) -> anyhow::Result<Exit> {
        if let Some(fleet) = fleet {
            let ready = self.wait_for_servers(config, executor, fleet);
            if !fleet.wait(spinner, ready).await {
                report::print_cancelled(self.tool);
                return Ok(Exit::Interrupted);
            }
            spinner.set_title(self.tool);
        }
        // `Null` for an unknown tool; the executor reports that.
        let schema = executor
            .find(self.tool)
            .map_or(Value::Null, |tool| tool.definition().parameters().clone());
        let call = self.arguments.to_call(self.tool, &schema);
        let mut call = call.origin(Origin::CommandLine);
        if let Some(timeout) = self.timeout {
            call = call.timeout(timeout);
        }
        let (exit, kind) = if self.dry_run {
            report::print_dry_run(executor, &call)
        } else {
            if let Some(replay) = &self.replay
                && !replay.is_confirmed(executor, &call, spinner).await?
            {
                return Ok(Exit::Failure);
            }
            execute(executor, call, spinner).await
        };
        if kind == Some(ErrorKind::InvalidArguments) {
            self.arguments.explain_lists(&schema);
        }
        if let (Some(ErrorKind::NotFound), Some(fleet)) = (kind, fleet) {
            fleet.note_missing(None);
        }
        Ok(exit)
    }

    /// Returns once it is certain which tool has the name. The `server_health` tool waits for
    /// all servers, and those for resources until they are known.
    async fn wait_for_servers(
        &self,
        config: &Config,
        executor: &ToolExecutor,
        fleet: &ServerFleet,
    ) {
        if config.uses_handler(self.tool, ServerHealthHandler::NAME) {
            return fleet.servers.start_all().await;
        }
        if config.is_resource_tool(self.tool) {
            fleet.servers.start_servers_without_tools();
            return fleet.servers.wait_for_known_tools().await;
        }
        fleet.servers.wait_for_tool(self.tool).await;
        // Not within the call, whose timeout is the tool's own.
        if !self.dry_run && executor.find(self.tool).is_ok() {
            fleet.servers.start_owner_of(self.tool).await;
        }
    }
}

async fn execute(
    executor: &ToolExecutor,
    call: ToolCall,
    spinner: &Spinner,
) -> (Exit, Option<ErrorKind>) {
    let (outcome, exit) = run_interruptible(executor, call, spinner).await;
    let kind = outcome.result.as_ref().err().map(ToolError::kind);
    let print = move || {
        report::print(&outcome);
        exit
    };
    (print_interruptible(print).await, kind)
}

/// Runs the call with a spinner beside it. Ctrl-C cancels the call; a second one
/// ends the program at once.
pub(super) async fn run_interruptible(
    executor: &ToolExecutor,
    call: ToolCall,
    spinner: &Spinner,
) -> (ToolOutcome, Exit) {
    let cancellation = CancellationToken::new();
    let progress = spinner.clone();
    let call = call
        .cancellation(cancellation.clone())
        .on_progress(move |step| progress.show_progress(step));
    let running = executor.execute(call);
    tokio::pin!(running);
    let finished = tokio::select! {
        outcome = &mut running => Some(outcome),
        never = spinner.animate() => match never {},
        () = exit::wait_for_interrupt() => None,
    };
    if let Some(outcome) = finished {
        let exit = Exit::success_if(outcome.is_success());
        return (outcome, exit);
    }
    output::print_note(
        "cancelling the call; it may already have had an effect (Ctrl-C again quits at once)",
    );
    cancellation.cancel();
    tokio::select! {
        outcome = running => (outcome, Exit::Interrupted),
        () = exit::wait_for_interrupt() => std::process::exit(i32::from(Exit::Interrupted.code())),
    }
}

/// Printing may block on a slow reader, and Ctrl-C must end that too.
pub(super) async fn print_interruptible(print: impl FnOnce() -> Exit + Send + 'static) -> Exit {
    tokio::select! {
        exit = tokio::task::spawn_blocking(print) => exit.unwrap_or(Exit::Failure),
        () = exit::wait_for_interrupt() => Exit::Interrupted,
    }
}
