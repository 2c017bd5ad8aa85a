//! `toolgate call TOOL …`: runs one tool and prints its envelope. The whole way of a call is here,
//! from the words of the command line to the executor; what a person is told is in `report.rs`.

pub(super) mod at;
mod report;

use std::io::{IsTerminal, Read};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_core::{ErrorKind, Origin, ToolCall, ToolError, ToolExecutor};
use toolgate_mcp::ServerHealth;

use super::replay::Again;
use super::runtime;
use crate::approve::TerminalApprover;
use crate::cli::{CallOptions, Global};
use crate::config::{Config, Uses};
use crate::exit::{self, Exit};
use crate::journal::{Patience, Record};
use crate::servers::{self, Fleet, Start};
use crate::spinner::Spinner;
use crate::{pairs, patterns, say, wiring};
use report::CallReporter;

pub(crate) fn run(global: &Global, options: &CallOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration_or_ask(global, Uses::Tools)?;
    let arguments = CliArguments::read(&options.arguments, config.limits.max_arguments)?;
    if options.remote.at.is_some() {
        return at::run(options, &arguments);
    }
    let request = CallRequest {
        tool: &options.tool,
        arguments,
        timeout: options.timeout,
        dry_run: options.dry_run,
        yes: options.yes,
        again: None,
    };
    request.run(&config, "toolgate call")
}

/// Arguments as they were given. What is asked is the [`ToolCall`] that they become.
pub(crate) enum CliArguments {
    /// `key=value`: the tool's schema says what the values mean.
    Pairs(Vec<(String, String)>),
    /// Typed or piped in as JSON, and not read yet.
    Json(Vec<u8>),
    /// JSON that was read already, such as that of a recorded call.
    Value(Value),
    /// What the record shall show, and why the call is refused.
    Unusable(Value, &'static str),
}

impl CliArguments {
    /// Reads stdin if it is asked for: before anything is started, since its writer may be slow.
    fn read(words: &[String], limit: usize) -> anyhow::Result<Self> {
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
                    let pair = pairs::split(word).with_context(|| {
                        let word = toolgate_core::escape(word);
                        format!("'{word}' is no key=value pair; give pairs, one JSON object, or - for stdin")
                    });
                    pair.map(|(key, text)| (key.to_owned(), text.to_owned()))
                });
                Self::Pairs(pairs.collect::<anyhow::Result<_>>()?)
            }
        })
    }

    /// `schema` is only looked at for pairs.
    fn to_call(&self, tool: &str, schema: &Value) -> ToolCall {
        match self {
            Self::Json(bytes) => ToolCall::from_json(tool, bytes),
            Self::Value(value) => ToolCall::new(tool, value.clone()),
            Self::Unusable(raw, problem) => {
                let error = ToolError::invalid("arguments", *problem);
                ToolCall::refused(tool, raw.clone(), error)
            }
            Self::Pairs(pairs) => {
                match toolgate_core::command_line_arguments(&borrowed(pairs), schema) {
                    Ok(arguments) => ToolCall::new(tool, Value::Object(arguments)),
                    Err(error) => {
                        // As an object, so that secrets are known by their keys.
                        let raw = pairs.iter().map(|(key, text)| (key.clone(), json!(text)));
                        let raw = Value::Object(raw.collect::<Map<_, _>>());
                        ToolCall::refused(tool, raw, error.into_tool_error(tool))
                    }
                }
            }
        }
    }

    /// Tells how the lists are typed that were given as `a,b`. For arguments that were refused.
    fn tell_of_lists(&self, schema: &Value) {
        if let Self::Pairs(pairs) = self {
            for hint in report::list_hints(&borrowed(pairs), schema) {
                say::note(&format!("a list is typed item by item: {hint}"));
            }
        }
    }
}

fn borrowed(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    let pairs = pairs.iter();
    pairs.map(|(key, text)| (&**key, &**text)).collect()
}

/// White space may double the size of what fits; more can't fit, and isn't read.
fn read_stdin(limit: usize) -> anyhow::Result<Vec<u8>> {
    if std::io::stdin().is_terminal() {
        say::note("reading a JSON object from the terminal; end it with Ctrl-D");
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
    /// Whatever the policy asks about is approved.
    pub(crate) yes: bool,
    /// The call was made before: what isn't read-only is asked about.
    pub(crate) again: Option<Again>,
}

impl CallRequest<'_> {
    /// Starts what the tool needs, and runs it. `command` says for the record what this run is.
    pub(crate) fn run(self, config: &Config, command: &str) -> anyhow::Result<Exit> {
        if let Some(unset) = config.unset_for(self.tool) {
            bail!(unset.clone());
        }
        let tools = wiring::tools(config);
        wiring::warn_about(config, &tools);
        patterns::warn_of_unmatched_policy(config, &tools);
        let spinner = Spinner::new(self.tool);
        let record = match self.dry_run {
            true => Record::default(),
            false => Record::open(config, &tools, command, Patience::None),
        };
        // No server has to be known for most local tools.
        let needed = servers::owners(config, &tools.manager, &servers::catalogue(), self.tool);
        if tools.manager.find(self.tool).is_none() || !needed.is_empty() {
            wiring::warn_about_servers(config);
        }
        let executor = wiring::quiet(config, &tools)
            .observer(CallReporter::new(&tools))
            .approver(TerminalApprover {
                agreed: self.yes,
                spinner: spinner.clone(),
                redactor: tools.redactor.clone(),
            });
        let executor = record.keep(executor).build();
        let runtime = runtime().context("cannot start")?;
        let exit = runtime.block_on(async {
            let fleet = (!needed.is_empty()).then(|| {
                let needed = servers::settings(needed);
                Fleet::start(config, &tools, needed, Start::WhenNeeded, Some(&spinner))
            });
            let exit = self.call(config, &executor, &spinner, fleet.as_ref()).await;
            if let Some(fleet) = &fleet {
                fleet.stop().await;
            }
            record.close().await;
            exit
        });
        // A thread that waits for an answer at the terminal must not hold up the end.
        runtime.shutdown_background();
        exit
    }

    async fn call(
        &self,
        config: &Config,
        executor: &ToolExecutor,
        spinner: &Spinner,
        fleet: Option<&Fleet>,
    ) -> anyhow::Result<Exit> {
        if let Some(fleet) = fleet {
            let ready = self.wait_for_servers(config, executor, fleet);
            if !fleet.wait(spinner, ready).await {
                report::print_cancelled(self.tool);
                return Ok(Exit::Interrupted);
            }
            spinner.title(self.tool);
        }
        // Nothing for a tool that isn't there: the executor says so.
        let schema = executor
            .find(self.tool)
            .map_or(Value::Null, |tool| tool.definition().parameters().clone());
        let call = self.arguments.to_call(self.tool, &schema);
        let mut call = call.origin(Origin::CommandLine);
        if let Some(timeout) = self.timeout {
            call = call.timeout(timeout);
        }
        let (exit, kind) = if self.dry_run {
            report::rehearse(executor, &call)
        } else {
            if let Some(again) = &self.again
                && !again.agreed(executor, &call, spinner).await?
            {
                return Ok(Exit::Failure);
            }
            execute(executor, call, spinner).await
        };
        if kind == Some(ErrorKind::InvalidArguments) {
            self.arguments.tell_of_lists(&schema);
        }
        if let (Some(ErrorKind::NotFound), Some(fleet)) = (kind, fleet) {
            fleet.tell_missing();
        }
        Ok(exit)
    }

    /// Returns when the tool is decided, or everything that it reports on.
    async fn wait_for_servers(&self, config: &Config, executor: &ToolExecutor, fleet: &Fleet) {
        if config.is_made_of(self.tool, ServerHealth::NAME) {
            return fleet.servers.settled().await;
        }
        fleet.servers.settled_for(self.tool).await;
        // Here rather than within the call, whose limit is the tool's own.
        if !self.dry_run && executor.find(self.tool).is_ok() {
            fleet.servers.connected_for(self.tool).await;
        }
    }
}

/// Runs the call with a spinner beside it and prints its envelope. Ctrl-C cancels the call; a
/// second one ends the program at once.
async fn execute(
    executor: &ToolExecutor,
    call: ToolCall,
    spinner: &Spinner,
) -> (Exit, Option<ErrorKind>) {
    let cancellation = CancellationToken::new();
    let progress = spinner.clone();
    let call = call
        .cancellation(cancellation.clone())
        .on_progress(move |step| progress.show(step));
    let running = executor.execute(call);
    tokio::pin!(running);
    let finished = tokio::select! {
        outcome = &mut running => Some(outcome),
        never = spinner.turn() => match never {},
        () = exit::interrupted() => None,
    };
    let (outcome, exit) = match finished {
        Some(outcome) if outcome.is_success() => (outcome, Exit::Success),
        Some(outcome) => (outcome, Exit::Failure),
        None => {
            say::note(
                "cancelling the call; it may already have had an effect (Ctrl-C again to leave at once)",
            );
            cancellation.cancel();
            tokio::select! {
                outcome = running => (outcome, Exit::Interrupted),
                () = exit::interrupted() => std::process::exit(i32::from(Exit::Interrupted.code())),
            }
        }
    };
    let kind = outcome.result.as_ref().err().map(ToolError::kind);
    // Printing may wait for a reader, and Ctrl-C must end that too.
    let exit = tokio::select! {
        _ = tokio::task::spawn_blocking(move || report::print(&outcome)) => exit,
        () = exit::interrupted() => Exit::Interrupted,
    };
    (exit, kind)
}
