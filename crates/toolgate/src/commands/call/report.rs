//! What a person reads about a call: its envelope, what to do about a failure, and likely typos.

use std::io::IsTerminal;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolgate_core::text::nearest_names;
use toolgate_core::{
    CallRecord, CallStarted, ErrorKind, LogObserver, Observer, PolicyDecision, ToolCall,
    ToolDefinition, ToolError, ToolExecutor, ToolOutcome,
};
use tracing::warn;

use crate::command_words::quote_word;
use crate::commands::rendered;
use crate::exit::Exit;
use crate::output;
use crate::wiring::ConfiguredTools;

pub(in crate::commands) struct CallReporter {
    log: LogObserver,
    // A failure is shown already, such as by the envelope on the same terminal.
    only_successes: bool,
}

impl CallReporter {
    pub(in crate::commands) fn new(tools: &ConfiguredTools) -> Self {
        Self {
            log: LogObserver::default().redactor(tools.redactor.clone()),
            only_successes: output::log_repeats_result(),
        }
    }

    /// For a command that reports failures on stderr itself.
    pub(in crate::commands) fn without_failures(tools: &ConfiguredTools) -> Self {
        Self {
            only_successes: !tracing::enabled!(tracing::Level::INFO),
            ..Self::new(tools)
        }
    }
}

impl Observer for CallReporter {
    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        warn_of_unknown(call.tool.definition(), &call.requested, &call.executed);
        None
    }

    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        // A call that was denied never started, and a typo may be the reason.
        if let (false, Some(tool), Some(executed)) =
            (record.started, record.definition(), &record.executed)
        {
            warn_of_unknown(tool, &record.requested, executed);
        }
        match self.only_successes && !record.outcome.is_success() {
            true => None,
            false => self.log.finished(record),
        }
    }
}

/// Warns about unknown parameters. They are dropped, or passed to a server that may ignore them, so
/// a typo would go unnoticed.
fn warn_of_unknown(tool: &ToolDefinition, asked: &Value, executed: &Value) {
    let declared = tool
        .parameters()
        .get("properties")
        .and_then(Value::as_object);
    let known: Vec<&str> = declared
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect();
    for typed in asked.as_object().into_iter().flat_map(Map::keys) {
        let sent = tool.parameter_names().sent_name(typed);
        if known.contains(&typed.as_str()) || known.contains(&sent.as_str()) {
            continue;
        }
        let name = toolgate_core::text::escape(typed);
        let meant = nearest_names(typed, known.iter().copied(), 1).pop();
        if executed.get(&sent).is_none() {
            let hint = meant.map(|meant| format!("; did you mean '{meant}'?"));
            warn!(
                "'{}' is not a parameter of this tool and is ignored{}",
                name,
                hint.unwrap_or_default()
            );
        // An open schema accepts any name, so only warn if it looks like a typo.
        } else if let Some(meant) = meant {
            warn!("'{name}' is not a declared parameter of this tool; did you mean '{meant}'?");
        }
    }
}

pub(super) fn print_dry_run(executor: &ToolExecutor, call: &ToolCall) -> (Exit, Option<ErrorKind>) {
    let dry_run = match executor.dry_run(call) {
        Ok(dry_run) => dry_run,
        Err(error) => {
            let kind = error.kind();
            print(&ToolOutcome::rejected(call, error));
            return (Exit::Failure, Some(kind));
        }
    };
    let (tool, executed) = (dry_run.tool.definition(), dry_run.arguments.as_value());
    if let Ok(asked) = call.arguments() {
        warn_of_unknown(tool, asked, executed);
    }
    let renamed = dry_run.renamed.iter();
    let renamed: Map<String, Value> = renamed
        .map(|(from, to)| (from.clone(), json!(to)))
        .collect();
    output::print_result(&rendered(&json!({
        "dry_run": true,
        "tool_name": call.name(),
        "source": tool.source().to_string(),
        "arguments": executed,
        "renamed": renamed,
        "dropped": dry_run.arguments.dropped(),
        "needs_approval": dry_run.decision == PolicyDecision::Ask,
    })));
    (Exit::Success, None)
}

pub(super) fn print(outcome: &ToolOutcome) {
    output::print_result(&rendered(&outcome.to_envelope()));
    // The envelope is for programs. A person at the terminal gets advice as well.
    if let Err(error) = &outcome.result {
        advise(error.kind(), &outcome.tool_name);
    }
}

pub(super) fn print_refused(tool: &str, error: ToolError) {
    print(&ToolOutcome::rejected(
        &ToolCall::new(tool, json!({})),
        error,
    ));
}

pub(super) fn print_cancelled(tool: &str) {
    let error = ToolError::Cancelled {
        tool: tool.to_owned(),
    };
    print_refused(tool, error);
}

pub(in crate::commands) fn advise(kind: ErrorKind, tool: &str) {
    match kind {
        ErrorKind::Denied if !std::io::stdin().is_terminal() => {
            output::print_note("approve it at a terminal, or in advance with --yes");
        }
        ErrorKind::NotFound if output::stdout_is_terminal() => {
            output::print_note("'toolgate list' shows all tools");
        }
        ErrorKind::InvalidArguments if output::stdout_is_terminal() => {
            let tool = toolgate_core::text::escape(tool);
            output::print_note(&format!("'toolgate inspect {tool}' shows the parameters"));
        }
        _ => {}
    }
}

pub(super) fn list_hints(pairs: &[(&str, &str)], schema: &Value) -> Vec<String> {
    let lists = toolgate_core::comma_separated_lists(pairs, schema).into_iter();
    let hints = lists.map(|(key, items)| {
        let items = items
            .iter()
            .map(|item| quote_word(&format!("{key}={item}")));
        toolgate_core::text::escape(&items.collect::<Vec<_>>().join(" "))
    });
    hints.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_commas_is_shown_as_it_is_typed() {
        let schema = json!({ "properties": { "labels": { "type": "array" } } });
        for (pairs, expected) in [
            (
                &[("labels", "bug,ui"), ("title", "a,b")][..],
                &["labels=bug labels=ui"][..],
            ),
            (
                &[("labels", "not now, ui")],
                &["'labels=not now' labels=ui"],
            ),
            (&[("labels", "bug"), ("labels", "ui")], &[]),
        ] {
            assert_eq!(list_hints(pairs, &schema), expected, "{pairs:?}");
        }
    }
}
