//! `toolgate call TOOL …`: runs one tool and prints its envelope.

use std::io::{IsTerminal, Read};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_core::{Decision, ErrorKind, Origin, ToolCall, ToolError, ToolExecutor, ToolOutcome};

use super::{rendered, runtime};
use crate::approve::TerminalApprover;
use crate::cli::{CallOptions, Global};
use crate::exit::Exit;
use crate::spinner::Spinner;
use crate::{pairs, say, wiring};

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
    };
    let executor = wiring::executor(&config, &tools, approver);
    let mut call = call(options, &executor)?.origin(Origin::CommandLine);
    if let Some(timeout) = options.timeout {
        call = call.timeout(timeout);
    }
    if options.dry_run {
        return Ok(rehearse(&executor, &call));
    }
    let runtime = runtime().context("cannot start")?;
    let (outcome, interrupted) = runtime.block_on(execute(&executor, call, &spinner));
    // A thread that waits for an answer at the terminal must not hold up the end.
    runtime.shutdown_background();
    print(&outcome);
    Ok(match outcome.is_success() {
        _ if interrupted => Exit::Interrupted,
        true => Exit::Success,
        false => Exit::Failure,
    })
}

/// Pairs, one JSON text, or stdin.
fn call(options: &CallOptions, executor: &ToolExecutor) -> anyhow::Result<ToolCall> {
    let name = options.tool.as_str();
    let is_json = |argument: &str| argument.starts_with(['{', '[', '"']) || !argument.contains('=');
    match options.arguments.as_slice() {
        [] => Ok(ToolCall::new(name, json!({}))),
        [dash] if dash == "-" => Ok(ToolCall::from_json(
            name,
            &stdin(executor.limits().max_arguments)?,
        )),
        [json] if is_json(json) => Ok(ToolCall::from_json(name, json.as_bytes())),
        several => {
            let mut split = Vec::new();
            for argument in several {
                let Some(pair) = pairs::split(argument) else {
                    bail!(
                        "'{}' is no key=value pair; give pairs, one JSON object, or - for stdin",
                        toolgate_core::escape(argument)
                    );
                };
                split.push(pair);
            }
            let tool = executor.manager().find(name);
            let schema = tool.as_ref().map(|tool| tool.definition().parameters());
            match pairs::typed(&split, schema) {
                Ok(arguments) => Ok(ToolCall::new(name, Value::Object(arguments))),
                Err(error) => Ok(ToolCall::refused(name, json!(several), error)),
            }
        }
    }
}

/// One byte more than allowed is enough to know that it is too much.
fn stdin(limit: usize) -> anyhow::Result<Vec<u8>> {
    if std::io::stdin().is_terminal() {
        say::note("reading a JSON object from the terminal; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(2 * limit as u64 + 1)
        .read_to_end(&mut bytes)
        .context("cannot read stdin")?;
    Ok(bytes)
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
    let finished = tokio::select! {
        outcome = &mut running => Some(outcome),
        never = spinner.turn() => match never {},
        _ = tokio::signal::ctrl_c() => None,
    };
    spinner.hide();
    if let Some(outcome) = finished {
        return (outcome, false);
    }
    say::note(
        "cancelling the call; it may already have had an effect (Ctrl-C again to leave at once)",
    );
    cancellation.cancel();
    tokio::select! {
        outcome = running => (outcome, true),
        _ = tokio::signal::ctrl_c() => std::process::exit(i32::from(Exit::Interrupted.code())),
    }
}

fn rehearse(executor: &ToolExecutor, call: &ToolCall) -> Exit {
    match executor.rehearse(call) {
        Ok(rehearsal) => {
            let renamed: serde_json::Map<String, Value> = rehearsal
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
    if let Err(ToolError::NotFound { .. }) = &outcome.result
        && std::io::stdout().is_terminal()
    {
        say::note("'toolgate list' shows the tools there are");
    }
    if outcome.result.as_ref().err().map(ToolError::kind) == Some(ErrorKind::InvalidArguments)
        && std::io::stdout().is_terminal()
    {
        say::note(&format!(
            "'toolgate inspect {}' shows the parameters",
            toolgate_core::escape(&outcome.tool_name)
        ));
    }
}
