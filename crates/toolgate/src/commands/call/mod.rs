//! `toolgate call TOOL …`: runs one tool and prints its envelope.

pub(crate) mod arguments;
pub(super) mod at;

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    Decision, ErrorKind, Origin, ToolCall, ToolError, ToolExecutor, ToolOutcome, nearest,
};
use toolgate_mcp::{ServerHealth, ServerSettings};
use tracing::warn;

use super::replay::Again;
use super::{rendered, runtime};
use crate::approve::TerminalApprover;
use crate::cli::{CallOptions, Global};
use crate::config::{Config, Uses};
use crate::exit::{self, Exit};
use crate::journal::Record;
use crate::servers::{self, Fleet, Start};
use crate::spinner::Spinner;
use crate::wiring::{self, Tools};
use crate::{patterns, say};
use arguments::Given;

pub(crate) fn run(global: &Global, options: &CallOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration_or_ask(global, Uses::Tools)?;
    let given = Given::read(&options.arguments, config.limits.max_arguments)?;
    if options.remote.at.is_some() {
        return at::run(options, &given);
    }
    let request = Request {
        tool: &options.tool,
        given,
        timeout: options.timeout,
        dry_run: options.dry_run,
        yes: options.yes,
        again: None,
    };
    request.run(&config, "toolgate call")
}

/// One call, from the words of the command line to the envelope.
pub(crate) struct Request<'a> {
    pub(crate) tool: &'a str,
    pub(crate) given: Given,
    pub(crate) timeout: Option<Duration>,
    pub(crate) dry_run: bool,
    /// Whatever the policy asks about is approved.
    pub(crate) yes: bool,
    /// The call was made before: what is not read-only is asked about.
    pub(crate) again: Option<Again>,
}

impl Request<'_> {
    /// Starts what the tool needs, and runs it. `command` says for the record what this is.
    pub(crate) fn run(self, config: &Config, command: &str) -> anyhow::Result<Exit> {
        if let Some(unset) = config.unset_for(self.tool) {
            bail!(unset.clone());
        }
        let tools = wiring::tools(config);
        wiring::warn_about(config, &tools);
        patterns::warn_of_unmatched_policy(config, &tools);
        let spinner = Spinner::new(self.tool);
        let approver = TerminalApprover {
            agreed: self.yes,
            spinner: spinner.clone(),
            redactor: tools.redactor.clone(),
        };
        let record = match self.dry_run {
            true => Record::default(),
            false => Record::open(config, &tools, command),
        };
        let servers = needed_servers(config, &tools, self.tool);
        let job = Job {
            executor: wiring::executor(config, &tools, approver, &record),
            spinner,
            reports_on_servers: config.is_made_of(self.tool, ServerHealth::NAME),
            request: self,
        };
        let runtime = runtime().context("cannot start")?;
        let exit = runtime.block_on(async {
            let fleet = servers.map(|them| {
                let spinner = Some(&job.spinner);
                Fleet::start(config, &tools, them, Start::WhenNeeded, spinner)
            });
            let exit = job.run(fleet.as_ref()).await;
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
}

/// The servers to start; none for most local tools.
fn needed_servers(config: &Config, tools: &Tools, tool: &str) -> Option<Vec<ServerSettings>> {
    let catalogue = servers::catalogue();
    let needed = servers::owners(config, &tools.manager, &catalogue, tool);
    if tools.manager.find(tool).is_none() || !needed.is_empty() {
        wiring::warn_about_servers(config);
    }
    (!needed.is_empty()).then(|| servers::settings(needed))
}

/// A request, and what it needs.
struct Job<'a> {
    request: Request<'a>,
    executor: ToolExecutor,
    spinner: Spinner,
    reports_on_servers: bool,
}

impl Job<'_> {
    async fn run(&self, fleet: Option<&Fleet>) -> anyhow::Result<Exit> {
        let name = self.request.tool;
        if let Some(fleet) = fleet {
            if !fleet.wait(&self.spinner, self.ready(fleet)).await {
                let tool = name.to_owned();
                let call = ToolCall::new(name, json!({}));
                print(&ToolOutcome::refused(&call, ToolError::Cancelled { tool }));
                return Ok(Exit::Interrupted);
            }
            self.spinner.title(name);
        }
        let mut call = self.call()?.origin(Origin::CommandLine);
        if let Some(timeout) = self.request.timeout {
            call = call.timeout(timeout);
        }
        if self.request.dry_run {
            warn_about_unknown(&self.executor, &call);
            let refused = rehearse(&self.executor, &call).err();
            self.help_with(refused.as_ref().map(ToolError::kind));
            return Ok(match refused {
                None => Exit::Success,
                Some(_) => Exit::Failure,
            });
        }
        if let Some(again) = &self.request.again
            && !again.agreed(&self.executor, &call, &self.spinner).await?
        {
            return Ok(Exit::Failure);
        }
        warn_about_unknown(&self.executor, &call);
        let (outcome, interrupted) = execute(&self.executor, call, &self.spinner).await;
        let exit = match outcome.is_success() {
            _ if interrupted => Exit::Interrupted,
            true => Exit::Success,
            false => Exit::Failure,
        };
        let kind = outcome.result.as_ref().err().map(ToolError::kind);
        // Printing may wait for a reader, and Ctrl-C must end that too.
        let exit = tokio::select! {
            _ = tokio::task::spawn_blocking(move || print(&outcome)) => exit,
            () = exit::interrupted() => Exit::Interrupted,
        };
        self.help_with(kind);
        if let (Some(ErrorKind::NotFound), Some(fleet)) = (kind, fleet) {
            fleet.tell_missing();
        }
        Ok(exit)
    }

    /// When the tool is decided, or everything it reports on.
    async fn ready(&self, fleet: &Fleet) {
        if self.reports_on_servers {
            fleet.servers.settled().await;
        } else {
            fleet.servers.settled_for(self.request.tool).await;
            // Here rather than within the call, whose limit is the tool's own.
            if !self.request.dry_run && self.executor.find(self.request.tool).is_ok() {
                fleet.servers.connected_for(self.request.tool).await;
            }
        }
    }

    fn call(&self) -> anyhow::Result<ToolCall> {
        let asked = self.request.given.asked(&self.schema())?;
        Ok(asked.call(self.request.tool))
    }

    /// Nothing for a tool that is not there.
    fn schema(&self) -> Value {
        let tool = self.executor.find(self.request.tool);
        tool.map_or(Value::Null, |tool| tool.definition().parameters().clone())
    }

    fn help_with(&self, kind: Option<ErrorKind>) {
        if kind == Some(ErrorKind::InvalidArguments) {
            self.request.given.tell_of_lists(&self.schema());
        }
    }
}

/// A parameter the tool does not know is left out, or passed on to a server that may ignore it; a person who mistyped it
/// should hear of that.
fn warn_about_unknown(executor: &ToolExecutor, call: &ToolCall) {
    let Ok(rehearsal) = executor.rehearse(call) else {
        return;
    };
    let parameters = rehearsal.tool.definition().parameters();
    let declared = parameters.get("properties").and_then(Value::as_object);
    let known: Vec<&str> = declared
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect();
    let passed_on = rehearsal.arguments.as_value().as_object();
    let passed_on = passed_on.into_iter().flat_map(Map::keys);
    let unknown = |name: &&String| !known.contains(&name.as_str());
    let meant = |name: &str| nearest(name, known.iter().copied(), 1).pop();
    for name in rehearsal.arguments.dropped().iter().filter(unknown) {
        let hint = meant(name).map(|name| format!("; did you mean '{name}'?"));
        warn!(
            "'{}' is not a parameter of this tool and is ignored{}",
            toolgate_core::escape(name),
            hint.unwrap_or_default()
        );
    }
    // Other names than those that are declared are fine where the schema is open, unless one of them looks like a slip.
    // The name that was typed counts: with `"normalize": "always"` a declared one is sent under another.
    let typed = |sent: &'_ String| {
        let renamed = rehearsal.renamed.iter().find(|(_, to)| to == sent);
        renamed.map_or(sent, |(from, _)| from).clone()
    };
    for name in passed_on.map(typed).filter(|name| unknown(&name)) {
        if let Some(meant) = meant(&name) {
            let name = toolgate_core::escape(&name);
            warn!("'{name}' is not a declared parameter of this tool; did you mean '{meant}'?");
        }
    }
}

/// Runs the call with a spinner beside it. Ctrl-C cancels the call; a second one ends the program at once.
async fn execute(
    executor: &ToolExecutor,
    call: ToolCall,
    spinner: &Spinner,
) -> (ToolOutcome, bool) {
    let cancellation = CancellationToken::new();
    let progress = spinner.clone();
    let call = call
        .cancellation(cancellation.clone())
        .on_progress(move |step| progress.show(step));
    let running = executor.execute(call);
    tokio::pin!(running);
    tokio::select! {
        outcome = &mut running => return (outcome, false),
        never = spinner.turn() => match never {},
        () = exit::interrupted() => {}
    }
    say::note(
        "cancelling the call; it may already have had an effect (Ctrl-C again to leave at once)",
    );
    cancellation.cancel();
    tokio::select! {
        outcome = running => (outcome, true),
        () = exit::interrupted() => std::process::exit(i32::from(Exit::Interrupted.code())),
    }
}

fn rehearse(executor: &ToolExecutor, call: &ToolCall) -> Result<(), ToolError> {
    match executor.rehearse(call) {
        Ok(rehearsal) => {
            let renamed: Map<String, Value> = rehearsal
                .renamed
                .iter()
                .map(|(from, to)| (from.clone(), json!(to)))
                .collect();
            let answer = json!({
                "dry_run": true,
                "tool_name": call.name(),
                "source": rehearsal.tool.definition().source().to_string(),
                "arguments": rehearsal.arguments.as_value(),
                "renamed": renamed,
                "dropped": rehearsal.arguments.dropped(),
                "needs_approval": rehearsal.decision == Decision::Ask,
            });
            say::result(&rendered(&answer));
            Ok(())
        }
        Err(error) => {
            print(&ToolOutcome::refused(call, error.clone()));
            Err(error)
        }
    }
}

fn print(outcome: &ToolOutcome) {
    say::result(&rendered(&outcome.to_envelope()));
    // The envelope says it for programs; a person who looks at the terminal is told what to do.
    let Err(error) = &outcome.result else { return };
    tell_what_to_do(error.kind(), &outcome.tool_name);
}

fn tell_what_to_do(kind: ErrorKind, tool: &str) {
    match kind {
        ErrorKind::Denied if !std::io::stdin().is_terminal() => {
            say::note("approve it at a terminal, or beforehand with --yes");
        }
        ErrorKind::NotFound if say::is_watched() => {
            say::note("'toolgate list' shows the tools there are");
        }
        ErrorKind::InvalidArguments if say::is_watched() => {
            let tool = toolgate_core::escape(tool);
            say::note(&format!("'toolgate inspect {tool}' shows the parameters"));
        }
        _ => {}
    }
}
