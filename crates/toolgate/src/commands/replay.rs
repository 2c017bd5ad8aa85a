//! `toolgate replay ID`: makes a recorded call once more.

mod at;

use anyhow::bail;
use serde_json::Value;
use toolgate_core::{ToolCall, ToolExecutor, escape, is_redacted};
use toolgate_journal::{CallDetail, JournalError, Reader};

use super::call::{CallRequest, CliArguments};
use super::calls;
use crate::cli::{Global, ReplayOptions};
use crate::config::Uses;
use crate::exit::Exit;
use crate::remote::Remote;
use crate::spinner::Spinner;
use crate::{journal, questions, say, terminal, wiring};

pub(crate) fn run(global: &Global, options: &ReplayOptions) -> anyhow::Result<Exit> {
    if let Some(remote) = Remote::of(&options.remote)? {
        return at::run(&remote, options);
    }
    let config = wiring::configuration(global, Uses::Tools)?;
    let call = match journal::reader(&config) {
        Ok(reader) => found(&reader, options),
        Err(error) => {
            say::error(&anyhow::anyhow!(error.to_string()));
            return Ok(Exit::Failure);
        }
    };
    let call = match call {
        Ok(call) => call,
        Err(error) => return Ok(calls::Unread::from(error).told()),
    };
    let Some((call, unverified)) = call else {
        calls::tell_unknown(&options.id);
        return Ok(Exit::Failure);
    };
    expect_repeatable(&call)?;
    if let Some(problem) = unverified {
        say::error(&anyhow::anyhow!(
            "the record of this call is not to be trusted: {problem}. Nothing was run; look at it with 'toolgate calls {}', and --unverified runs it all the same",
            call.summary.id
        ));
        return Ok(Exit::Failure);
    }
    let request = CallRequest {
        tool: &call.summary.tool,
        arguments: CliArguments::Value(call.asked.clone()),
        timeout: options.timeout,
        dry_run: false,
        yes: options.yes,
        again: Some(Again { yes: options.yes }),
    };
    request.run(&config, "toolgate replay")
}

fn found(
    reader: &Reader,
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

/// Refuses what could only be made as another call than it was.
fn expect_repeatable(call: &CallDetail) -> anyhow::Result<()> {
    let tool = escape(&call.summary.tool);
    if !call.asked.is_object() {
        bail!(
            "the arguments of this call were no JSON object or too long to keep; make it anew with 'toolgate call {tool} …'"
        );
    }
    if is_redacted(&call.asked) {
        bail!(
            "the arguments of this call held a secret, which is not recorded; make it anew with 'toolgate call {tool} …'"
        );
    }
    Ok(())
}

/// The agreement that something which may have an effect is done once more.
pub(crate) struct Again {
    yes: bool,
}

impl Again {
    /// Asks about what is not read-only; an error if nobody can be asked.
    pub(crate) async fn agreed(
        &self,
        executor: &ToolExecutor,
        call: &ToolCall,
        spinner: &Spinner,
    ) -> anyhow::Result<bool> {
        let Ok(rehearsal) = executor.rehearse(call) else {
            // It will fail before it has an effect, and say why.
            return Ok(true);
        };
        let tool = rehearsal.tool.definition();
        if tool.annotations().read_only == Some(true) {
            return Ok(true);
        }
        self.agree(tool.name(), rehearsal.arguments.as_value(), spinner)
            .await
    }

    /// The same of a tool that is known not to say that it only reads.
    async fn agree(
        &self,
        tool: &str,
        arguments: &Value,
        spinner: &Spinner,
    ) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        let name = escape(tool);
        if !terminal::can_ask() {
            bail!(
                "'{name}' does not say that it only reads, so it may have its effect twice; --yes runs it again"
            );
        }
        let arguments = escape(&arguments.to_string());
        let text =
            format!("{name} {arguments}\nIt does not say that it only reads. Run it again? [y/N]");
        let answer = questions::ask(spinner, move |line| {
            say::line(&text);
            questions::is_yes(line().as_deref())
        });
        let is_agreed = answer.await.unwrap_or(false);
        if !is_agreed {
            say::note("nothing was run");
        }
        Ok(is_agreed)
    }
}
