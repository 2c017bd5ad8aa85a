//! `toolgate call --at URL TOOL …`: the same by a gateway that runs already.

use anyhow::Context;
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use toolgate_core::{ErrorKind, ToolCall, ToolError, ToolOutcome};

use super::CliArguments;
use super::report::{print_cancelled, print_refused, tell_what_to_do};
use crate::cli::CallOptions;
use crate::commands::{rendered, runtime};
use crate::exit::{self, Exit};
use crate::remote::{self, Answer, Remote, Trouble};
use crate::say;
use crate::spinner::Spinner;

pub(super) fn run(options: &CallOptions, arguments: &CliArguments) -> anyhow::Result<Exit> {
    let remote = Remote::of(&options.remote)?.context("--at names no gateway")?;
    let runtime = runtime().context("cannot start")?;
    let exit = runtime.block_on(async {
        let spinner = Spinner::new(&options.tool);
        tokio::select! {
            exit = ask(&remote, options, arguments) => exit,
            never = spinner.turn() => match never {},
            () = exit::interrupted() => {
                // The gateway cancels a call whose caller is gone.
                print_cancelled(&options.tool);
                Ok(Exit::Interrupted)
            }
        }
    });
    runtime.shutdown_background();
    exit
}

async fn ask(
    remote: &Remote,
    options: &CallOptions,
    arguments: &CliArguments,
) -> anyhow::Result<Exit> {
    let schema = match arguments {
        CliArguments::Pairs(_) => schema(remote, &options.tool).await,
        _ => Ok(Value::Null),
    };
    let schema = match schema {
        Ok(schema) => schema,
        Err(trouble) => return Ok(unanswered(&options.tool, trouble)),
    };
    let body = match arguments {
        // The gateway judges it, and has it on record.
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
                true => rehearsed(options, &answer),
                false => envelope(&options.tool, &answer),
            };
            if is_invalid(&answer.body) {
                arguments.tell_of_lists(&schema);
            }
            exit
        }
        Err(trouble) => unanswered(&options.tool, trouble),
    })
}

/// True if the arguments of a call, or of a rehearsal, were refused.
fn is_invalid(answer: &Value) -> bool {
    let kind = answer["error_kind"].as_str();
    answer["valid"] == false || kind == Some(ErrorKind::InvalidArguments.as_str())
}

/// What the tool's arguments look like; nothing for one that is not there, which the call itself will say.
async fn schema(remote: &Remote, tool: &str) -> Result<Value, Trouble> {
    let mut answer = remote.get(&["api", "tools", tool], &[]).await?;
    Ok(answer.body["parameters"].take())
}

pub(in crate::commands) fn envelope(tool: &str, answer: &Answer) -> Exit {
    if !answer.body["success"].is_boolean() {
        return unanswered(tool, Trouble::Away(remote::detail(answer)));
    }
    say::result(&rendered(&answer.body));
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
        say::note("approve it at the gateway's dashboard while the call waits");
    } else if let Some(kind) = kinds.into_iter().find(|one| one.to_string() == kind) {
        tell_what_to_do(kind, tool);
    }
    Exit::Failure
}

fn rehearsed(options: &CallOptions, answer: &Answer) -> Exit {
    let Some(is_valid) = answer.body["valid"].as_bool() else {
        let error = match answer.status {
            StatusCode::NOT_FOUND => ToolError::NotFound {
                name: options.tool.clone(),
                nearest: Vec::new(),
                known: Vec::new(),
            },
            _ => ToolError::unavailable(&options.tool, remote::detail(answer)),
        };
        print_refused(&options.tool, error);
        return Exit::Failure;
    };
    if !is_valid {
        let call = ToolCall::new(&options.tool, json!({}));
        let outcome = ToolOutcome::refused(&call, ToolError::invalid("arguments", "are invalid"));
        let mut envelope = outcome.to_envelope();
        envelope["error"] = answer.body["error"].clone();
        say::result(&rendered(&envelope));
        return Exit::Failure;
    }
    let pairs = answer.body["renamed"].as_array().into_iter().flatten();
    let renamed: Map<String, Value> = pairs
        .filter_map(|pair| Some((pair[0].as_str()?.to_owned(), pair[1].clone())))
        .collect();
    say::result(&rendered(&json!({
        "dry_run": true,
        "tool_name": options.tool,
        "arguments": answer.body["executed"],
        "renamed": renamed,
        "dropped": answer.body["dropped"],
        "needs_approval": answer.body["needs_approval"],
    })));
    Exit::Success
}

/// The envelope all the same where the gateway is away; else it is wrong usage.
pub(in crate::commands) fn unanswered(tool: &str, trouble: Trouble) -> Exit {
    if let Trouble::Away(reason) = &trouble {
        print_refused(tool, ToolError::unavailable(tool, reason.clone()));
    }
    trouble.told()
}
