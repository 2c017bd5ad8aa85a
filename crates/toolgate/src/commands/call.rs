//! `toolgate call TOOL …`: runs one tool and prints its envelope.

use std::io::{IsTerminal, Read};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    Decision, ErrorKind, Origin, ToolCall, ToolError, ToolExecutor, ToolOutcome, nearest,
};
use toolgate_mcp::ServerHealth;
use tracing::warn;

use super::{rendered, runtime};
use crate::approve::TerminalApprover;
use crate::cli::{CallOptions, Global};
use crate::config::Config;
use crate::exit::{self, Exit};
use crate::servers::{self, Admitted, Fleet};
use crate::spinner::Spinner;
use crate::wiring::{self, Tools};
use crate::{pairs, say};

pub(crate) fn run(global: &Global, options: &CallOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration(global)?;
    if let Some(unset) = config.unset_for(&options.tool) {
        bail!(unset.clone());
    }
    let tools = wiring::tools(&config);
    wiring::warn_about(&config, &tools);
    let spinner = Spinner::new(&options.tool);
    let approver = TerminalApprover {
        agreed: options.yes,
        spinner: spinner.clone(),
        redactor: tools.redactor.clone(),
    };
    let job = Job {
        options,
        executor: wiring::executor(&config, &tools, approver),
        spinner,
        // Before any server starts: whoever feeds us may take his time.
        stdin: match options.arguments.as_slice() {
            [dash] if dash == "-" => Some(stdin(config.limits.max_arguments)?),
            _ => None,
        },
        reports_on_servers: config.is_made_of(&options.tool, ServerHealth::NAME),
    };
    let admitted = admitted(&config, &tools, &options.tool);
    let runtime = runtime().context("cannot start")?;
    let exit = runtime.block_on(async {
        let fleet = admitted.map(|them| Fleet::start(&config, &tools, them, Some(&job.spinner)));
        let exit = job.run(fleet.as_ref()).await;
        if let Some(fleet) = &fleet {
            fleet.stop().await;
        }
        exit
    });
    // A thread that waits for an answer at the terminal must not hold up the end.
    runtime.shutdown_background();
    exit
}

/// The servers to start; none for most local tools.
fn admitted(config: &Config, tools: &Tools, tool: &str) -> Option<Admitted> {
    let needed = servers::needed(config, &tools.manager, tool);
    if tools.manager.find(tool).is_none() || !needed.is_empty() {
        wiring::warn_about_servers(config);
    }
    (!needed.is_empty()).then(|| servers::admit(config, &needed))
}

/// One call, from the words of the command line to the envelope.
struct Job<'a> {
    options: &'a CallOptions,
    executor: ToolExecutor,
    spinner: Spinner,
    stdin: Option<Vec<u8>>,
    reports_on_servers: bool,
}

impl Job<'_> {
    async fn run(&self, fleet: Option<&Fleet>) -> anyhow::Result<Exit> {
        let name = self.options.tool.as_str();
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
        if let Some(timeout) = self.options.timeout {
            call = call.timeout(timeout);
        }
        if self.options.dry_run {
            return Ok(rehearse(&self.executor, &call));
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
            fleet.servers.settled_for(&self.options.tool).await;
        }
    }

    /// Pairs, one JSON text, or stdin.
    fn call(&self) -> anyhow::Result<ToolCall> {
        let name = self.options.tool.as_str();
        let unusable = |raw: Value, text: &str| {
            let error = ToolError::invalid("arguments", text);
            Ok(ToolCall::refused(name, raw, error))
        };
        if let Some(bytes) = &self.stdin {
            return match bytes.trim_ascii().is_empty() {
                true => unusable(
                    Value::Null,
                    "must be a JSON object, and stdin was empty; give {} for none",
                ),
                false => Ok(ToolCall::from_json(name, bytes)),
            };
        }
        match self.options.arguments.as_slice() {
            [] => Ok(ToolCall::new(name, json!({}))),
            [json] if json.starts_with(['{', '[', '"']) => {
                Ok(ToolCall::from_json(name, json.as_bytes()))
            }
            [word] if !word.contains('=') => match toolgate_core::parse_json(word.as_bytes()) {
                Ok(value) => Ok(ToolCall::new(name, value)),
                Err(_) => unusable(json!(word), "must be a JSON object, or key=value pairs"),
            },
            several => pairs(name, several, &self.executor),
        }
    }
}

fn pairs(name: &str, arguments: &[String], executor: &ToolExecutor) -> anyhow::Result<ToolCall> {
    let mut split = Vec::new();
    for argument in arguments {
        let Some(pair) = pairs::split(argument) else {
            let shown = toolgate_core::escape(argument);
            bail!("'{shown}' is no key=value pair; give pairs, one JSON object, or - for stdin");
        };
        split.push(pair);
    }
    let tool = executor.find(name);
    let schema = tool
        .as_ref()
        .map_or(&Value::Null, |tool| tool.definition().parameters());
    Ok(match toolgate_core::typed_arguments(&split, schema) {
        Ok(arguments) => ToolCall::new(name, Value::Object(arguments)),
        Err(error) => {
            // As an object, so that secrets are known by their keys.
            let asked: Map<String, Value> = split
                .iter()
                .map(|(key, text)| ((*key).to_owned(), json!(text)))
                .collect();
            ToolCall::refused(name, Value::Object(asked), error.into())
        }
    })
}

/// White space may double the size of what fits; more can not fit, and is not read.
fn stdin(limit: usize) -> anyhow::Result<Vec<u8>> {
    if std::io::stdin().is_terminal() {
        say::note("reading a JSON object from the terminal; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(2 * limit as u64);
    input.read_to_end(&mut bytes).context("cannot read stdin")?;
    Ok(bytes)
}

/// A parameter the tool does not know is ignored, as agreed; a person who mistyped it should hear of that.
fn warn_about_unknown(executor: &ToolExecutor, call: &ToolCall) {
    let Ok(rehearsal) = executor.rehearse(call) else {
        return;
    };
    let declared = rehearsal
        .tool
        .definition()
        .parameters()
        .get("properties")
        .and_then(Value::as_object);
    let known: Vec<&str> = declared
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect();
    for name in rehearsal
        .arguments
        .dropped()
        .iter()
        .filter(|name| !known.contains(&name.as_str()))
    {
        let hint = nearest(name, known.iter().copied(), 1)
            .pop()
            .map(|name| format!("; did you mean '{name}'?"));
        warn!(
            "'{}' is not a parameter of this tool and is ignored{}",
            toolgate_core::escape(name),
            hint.unwrap_or_default()
        );
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

fn rehearse(executor: &ToolExecutor, call: &ToolCall) -> Exit {
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
            Exit::Success
        }
        Err(error) => {
            print(&ToolOutcome::refused(call, error));
            Exit::Failure
        }
    }
}

fn print(outcome: &ToolOutcome) {
    say::result(&rendered(&outcome.to_envelope()));
    // The envelope says it for programs; a person who looks at the terminal is told what to do.
    let Err(error) = &outcome.result else { return };
    match error.kind() {
        ErrorKind::Denied if !std::io::stdin().is_terminal() => {
            say::note("approve it at a terminal, or beforehand with --yes");
        }
        ErrorKind::NotFound if say::is_watched() => {
            say::note("'toolgate list' shows the tools there are");
        }
        ErrorKind::InvalidArguments if say::is_watched() => {
            say::note(&format!(
                "'toolgate inspect {}' shows the parameters",
                toolgate_core::escape(&outcome.tool_name)
            ));
        }
        _ => {}
    }
}
