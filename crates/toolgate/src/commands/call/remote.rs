//! `toolgate call --at URL TOOL …`: makes the call through a running gateway.

use anyhow::Context;
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use toolgate_core::{ErrorKind, ToolCall, ToolError, ToolOutcome};

use super::CliArguments;
use super::report::{advise, print_cancelled, print_refused};
use crate::cli::CallOptions;
use crate::commands::{block_on_interruptible, rendered};
use crate::exit::Exit;
use crate::output;
use crate::remote::{self, GatewayResponse, RemoteError, RemoteGateway};
use crate::spinner::Spinner;

pub(super) fn run(options: &CallOptions, arguments: &CliArguments) -> anyhow::Result<Exit> {
    let remote = RemoteGateway::from_options(&options.remote)?.context("--at names no gateway")?;
    let spinner = Spinner::new(&options.tool);
    let answered = block_on_interruptible(spinner.run_during(ask(&remote, options, arguments)))?;
    answered.unwrap_or_else(|| {
        // The gateway cancels a call whose caller is gone.
        print_cancelled(&options.tool);
        Ok(Exit::Interrupted)
    })
}

async fn ask(
    remote: &RemoteGateway,
    options: &CallOptions,
    arguments: &CliArguments,
) -> anyhow::Result<Exit> {
    let schema = match arguments {
        CliArguments::Pairs(_) => schema(remote, &options.tool).await,
        _ => Ok(Value::Null),
    };
    let schema = match schema {
        Ok(schema) => schema,
        Err(error) => return Ok(report_failure(&options.tool, error)),
    };
    let body = match arguments {
        // Sent unparsed: the gateway checks and records it.
        CliArguments::Json(bytes) => bytes.clone(),
        CliArguments::Value(value) => value.to_string().into_bytes(),
        CliArguments::Pairs(_) | CliArguments::Unusable(..) => {
            match arguments.to_call(&options.tool, &schema).arguments() {
                Ok(arguments) => arguments.to_string().into_bytes(),
                Err(error) => {
                    print_refused(&options.tool, error);
                    return Ok(Exit::Failure);
                }
            }
        }
    };
    let answered = match options.dry_run {
        true => {
            let path = ["api", "tools", &options.tool, "check"];
            remote.post(&path, &[], body).await
        }
        false => {
            let timeout = options
                .timeout
                .map(|time| format!("{}ms", time.as_millis()));
            let query: Vec<_> = timeout.into_iter().map(|time| ("timeout", time)).collect();
            let path = ["api", "tools", &options.tool, "call"];
            remote.post(&path, &query, body).await
        }
    };
    Ok(match answered {
        Ok(answer) => {
            let exit = match options.dry_run {
                true => print_dry_run(options, &answer),
                false => print_envelope(&options.tool, &answer),
            };
            if is_invalid(&answer.body) {
                arguments.explain_lists(&schema);
            }
            exit
        }
        Err(error) => report_failure(&options.tool, error),
    })
}

fn is_invalid(answer: &Value) -> bool {
    let kind = answer["error_kind"].as_str();
    answer["valid"] == false || kind == Some(ErrorKind::InvalidArguments.as_str())
}

/// The tool's parameters. `Null` for an unknown tool, which the call itself reports.
async fn schema(remote: &RemoteGateway, tool: &str) -> Result<Value, RemoteError> {
    let mut answer = remote.get(&["api", "tools", tool], &[]).await?;
    Ok(answer.body["parameters"].take())
}

pub(in crate::commands) fn print_envelope(tool: &str, answer: &GatewayResponse) -> Exit {
    if !answer.body["success"].is_boolean() {
        return report_failure(
            tool,
            RemoteError::Unreachable(remote::problem_detail(answer)),
        );
    }
    output::print_result(&rendered(&answer.body));
    if answer.body["success"] == true {
        return Exit::Success;
    }
    let kind = answer.body["error_kind"].as_str().unwrap_or_default();
    let kinds = [
        ErrorKind::Denied,
        ErrorKind::NotFound,
        ErrorKind::InvalidArguments,
    ];
    if kind == ErrorKind::Denied.to_string() {
        output::print_note("approve it at the gateway's dashboard while the call waits");
    } else if let Some(kind) = kinds.into_iter().find(|one| one.to_string() == kind) {
        advise(kind, tool);
    }
    Exit::Failure
}

fn print_dry_run(options: &CallOptions, answer: &GatewayResponse) -> Exit {
    let Some(is_valid) = answer.body["valid"].as_bool() else {
        let error = match answer.status {
            StatusCode::NOT_FOUND => ToolError::NotFound {
                name: options.tool.clone(),
                nearest: Vec::new(),
                known: Vec::new(),
            },
            _ => ToolError::unavailable(&options.tool, remote::problem_detail(answer)),
        };
        print_refused(&options.tool, error);
        return Exit::Failure;
    };
    if !is_valid {
        let call = ToolCall::new(&options.tool, json!({}));
        let outcome = ToolOutcome::rejected(&call, ToolError::invalid("arguments", "are invalid"));
        let mut envelope = outcome.to_envelope();
        envelope["error"] = answer.body["error"].clone();
        output::print_result(&rendered(&envelope));
        return Exit::Failure;
    }
    let pairs = answer.body["renamed"].as_array().into_iter().flatten();
    let renamed: Map<String, Value> = pairs
        .filter_map(|pair| Some((pair[0].as_str()?.to_owned(), pair[1].clone())))
        .collect();
    output::print_result(&rendered(&json!({
        "dry_run": true,
        "tool_name": options.tool,
        "arguments": answer.body["executed"],
        "renamed": renamed,
        "dropped": answer.body["dropped"],
        "needs_approval": answer.body["needs_approval"],
    })));
    Exit::Success
}

/// Reports a failed request. If the gateway is away or gave no usable answer, prints an envelope.
/// Anything else is a usage error.
pub(in crate::commands) fn report_failure(tool: &str, error: RemoteError) -> Exit {
    if let RemoteError::Unreachable(reason) = &error {
        print_refused(tool, ToolError::unavailable(tool, reason.clone()));
    }
    error.report()
}
