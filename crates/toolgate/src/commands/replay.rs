//! `toolgate replay ID`: repeats a recorded call.

mod remote;

use anyhow::bail;
use serde_json::Value;
use toolgate_core::text::escape;
use toolgate_core::{ToolCall, ToolExecutor, is_redacted};
use toolgate_journal::{CallDetail, JournalError, JournalReader};

use super::call::{CallRequest, CliArguments};
use super::calls;
use crate::cli::{GlobalOptions, ReplayOptions};
use crate::config::SecretScope;
use crate::exit::Exit;
use crate::remote::RemoteGateway;
use crate::spinner::Spinner;
use crate::{journal, output, questions, terminal, wiring};

pub(crate) fn run(global: &GlobalOptions, options: &ReplayOptions) -> anyhow::Result<Exit> {
    if let Some(remote) = RemoteGateway::from_options(&options.remote)? {
        return remote::run(&remote, options);
    }
    let config = wiring::load_config(global, SecretScope::Tools)?;
    let call = match journal::reader(&config) {
        Ok(reader) => find_verified(&reader, options),
        Err(error) => return Ok(Exit::failure(error)),
    };
    let call = match call {
        Ok(call) => call,
        Err(error) => return Ok(calls::CallReadError::from(error).report()),
    };
    let Some((call, unverified)) = call else {
        return Ok(calls::report_unknown(&options.id));
    };
    expect_repeatable(&call)?;
    if let Some(problem) = unverified {
        return Ok(Exit::failure(format!(
            "the record of this call can't be trusted: {problem}. Nothing was run; 'toolgate calls {}' shows it, and --unverified runs it anyway",
            call.summary.id
        )));
    }
    let request = CallRequest {
        tool: &call.summary.tool,
        arguments: CliArguments::Value(call.requested.clone()),
        timeout: options.timeout,
        dry_run: false,
        yes: options.yes,
        replay: Some(ReplayConsent { yes: options.yes }),
    };
    request.run(&config, "toolgate replay")
}

fn find_verified(
    reader: &JournalReader,
    options: &ReplayOptions,
) -> Result<Option<(CallDetail, Option<String>)>, JournalError> {
    let Some(call) = calls::find(reader, &options.id)? else {
        return Ok(None);
    };
    let unverified = match options.unverified {
        true => None,
        false => reader.verify_call(&call.summary.id)?,
    };
    Ok(Some((call, unverified)))
}

fn expect_repeatable(call: &CallDetail) -> anyhow::Result<()> {
    let tool = escape(&call.summary.tool);
    if !call.requested.is_object() {
        bail!(
            "the arguments of this call were not a JSON object, or were too long to record; make a new call with 'toolgate call {tool} …'"
        );
    }
    if is_redacted(&call.requested) {
        bail!(
            "the arguments of this call contained a secret, which is not recorded; make a new call with 'toolgate call {tool} …'"
        );
    }
    Ok(())
}

pub(crate) struct ReplayConsent {
    yes: bool,
}

impl ReplayConsent {
    /// Asks for confirmation unless the tool is read-only. Fails without a terminal.
    pub(crate) async fn is_confirmed(
        &self,
        executor: &ToolExecutor,
        call: &ToolCall,
        spinner: &Spinner,
    ) -> anyhow::Result<bool> {
        let Ok(dry_run) = executor.dry_run(call) else {
            // The call will fail before it has an effect, and say why.
            return Ok(true);
        };
        let tool = dry_run.tool.definition();
        if tool.annotations().read_only == Some(true) {
            return Ok(true);
        }
        self.ask(tool.name(), dry_run.arguments.as_value(), spinner)
            .await
    }

    async fn ask(&self, tool: &str, arguments: &Value, spinner: &Spinner) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        let name = escape(tool);
        if !terminal::can_ask() {
            bail!(
                "'{name}' is not marked as read-only, so running it again may repeat its effect; --yes runs it anyway"
            );
        }
        let arguments = escape(&arguments.to_string());
        let text =
            format!("{name} {arguments}\nIt is not marked as read-only. Run it again? [y/N]");
        let answer = questions::ask(spinner, move |line| {
            output::print_to_stderr(&text);
            questions::is_yes(line().as_deref())
        });
        let is_agreed = answer.await.unwrap_or(false);
        if !is_agreed {
            output::print_note("nothing was run");
        }
        Ok(is_agreed)
    }
}
