//! `toolgate replay --at URL ID`: a call of a gateway once more, by the gateway itself.

use anyhow::Context;
use reqwest::StatusCode;
use serde_json::json;

use super::Again;
use crate::cli::ReplayOptions;
use crate::commands::call::at::{envelope, unanswered};
use crate::commands::calls;
use crate::commands::runtime;
use crate::exit::{self, Exit};
use crate::remote::{self, Remote};
use crate::spinner::Spinner;

pub(super) fn run(remote: &Remote, options: &ReplayOptions) -> anyhow::Result<Exit> {
    let runtime = runtime().context("cannot start")?;
    let exit = runtime.block_on(async {
        let spinner = Spinner::new("replay");
        tokio::select! {
            exit = ask(remote, options, &spinner) => exit,
            never = spinner.turn() => match never {},
            // The gateway cancels a call whose caller is gone.
            () = exit::interrupted() => Ok(Exit::Interrupted),
        }
    });
    runtime.shutdown_background();
    exit
}

async fn ask(remote: &Remote, options: &ReplayOptions, spinner: &Spinner) -> anyhow::Result<Exit> {
    let call = match calls::call_at(remote, &options.id).await {
        Ok(Some(call)) => call,
        Ok(None) => {
            calls::tell_unknown(&options.id);
            return Ok(Exit::Failure);
        }
        Err(unread) => return Ok(unread.told()),
    };
    let text = |key: &str| call[key].as_str().unwrap_or_default();
    let (id, tool) = (text("id"), text("tool"));
    let only_reads = call["tool_definition"]["annotations"]["read_only"] == true;
    let again = Again { yes: options.yes };
    // Of a tool that is gone the gateway says so.
    let is_there = call["tool_definition"].is_object();
    if is_there && !only_reads && !again.agree(tool, &call["asked"], spinner).await? {
        return Ok(Exit::Failure);
    }
    let body = json!({ "confirm": true, "unverified": options.unverified })
        .to_string()
        .into_bytes();
    let path = ["api", "calls", id, "replay"];
    Ok(match remote.post(&path, &[], body).await {
        Ok(answer) if answer.body["success"].is_boolean() => envelope(tool, &answer),
        Ok(answer) => {
            crate::say::error(&anyhow::anyhow!(remote::detail(&answer)));
            match answer.status {
                StatusCode::UNPROCESSABLE_ENTITY => Exit::Usage,
                _ => Exit::Failure,
            }
        }
        Err(trouble) => unanswered(tool, trouble),
    })
}
