//! `toolgate replay --at URL ID`: has a gateway repeat one of its calls.

use reqwest::StatusCode;
use serde_json::json;

use super::ReplayConsent;
use crate::cli::ReplayOptions;
use crate::commands::block_on_interruptible;
use crate::commands::call::remote::{print_envelope, report_failure};
use crate::commands::calls;
use crate::exit::Exit;
use crate::remote::{self, RemoteGateway};
use crate::spinner::Spinner;

pub(super) fn run(remote: &RemoteGateway, options: &ReplayOptions) -> anyhow::Result<Exit> {
    let spinner = Spinner::new("replay");
    // The gateway cancels a call whose caller is gone.
    let replayed = block_on_interruptible(spinner.run_during(ask(remote, options, &spinner)))?;
    replayed.unwrap_or(Ok(Exit::Interrupted))
}

async fn ask(
    remote: &RemoteGateway,
    options: &ReplayOptions,
    spinner: &Spinner,
) -> anyhow::Result<Exit> {
    let call = match calls::call_at(remote, &options.id).await {
        Ok(Some(call)) => call,
        Ok(None) => return Ok(calls::report_unknown(&options.id)),
        Err(error) => return Ok(error.report()),
    };
    let text = |key: &str| call[key].as_str().unwrap_or_default();
    let (id, tool) = (text("id"), text("tool"));
    let only_reads = call["tool_definition"]["annotations"]["read_only"] == true;
    let consent = ReplayConsent { yes: options.yes };
    // The gateway itself reports a tool that is gone.
    let is_there = call["tool_definition"].is_object();
    if is_there && !only_reads && !consent.ask(tool, &call["asked"], spinner).await? {
        return Ok(Exit::Failure);
    }
    let body = json!({ "confirm": true, "unverified": options.unverified })
        .to_string()
        .into_bytes();
    let path = ["api", "calls", id, "replay"];
    Ok(match remote.post(&path, &[], body).await {
        Ok(answer) if answer.body["success"].is_boolean() => print_envelope(tool, &answer),
        Ok(answer) => {
            crate::output::print_error(&anyhow::anyhow!(remote::problem_detail(&answer)));
            match answer.status {
                StatusCode::UNPROCESSABLE_ENTITY => Exit::Usage,
                _ => Exit::Failure,
            }
        }
        Err(error) => report_failure(tool, error),
    })
}
