//! What a person is told of a call: its envelope, what to do about a failure, and slips that the
//! call survived.

use std::io::IsTerminal;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolgate_core::{
    CallRecord, CallStarted, Decision, ErrorKind, LogObserver, Observer, ToolCall, ToolDefinition,
    ToolError, ToolExecutor, ToolOutcome, nearest,
};
use tracing::warn;

use crate::commands::rendered;
use crate::exit::Exit;
use crate::pairs::quoted;
use crate::say;
use crate::wiring::Tools;

/// The log of a call, and warnings of what was probably mistyped.
pub(super) struct CallReporter {
    log: LogObserver,
    /// The envelope on the same terminal tells of what fails.
    only_successes: bool,
}

impl CallReporter {
    pub(super) fn new(tools: &Tools) -> Self {
        Self {
            log: LogObserver::default().redactor(tools.redactor.clone()),
            only_successes: say::shows_twice(),
        }
    }
}

impl Observer for CallReporter {
    fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        warn_of_unknown(call.tool.definition(), &call.asked, &call.executed);
        None
    }

    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        // One that was denied never started, and the slip may be why.
        if let (false, Some(tool), Some(executed)) =
            (record.started, record.definition(), &record.executed)
        {
            warn_of_unknown(tool, &record.asked, executed);
        }
        match self.only_successes && !record.outcome.is_success() {
            true => None,
            false => self.log.finished(record),
        }
    }
}

/// A parameter the tool doesn't know is left out, or passed on to a server that may ignore it: a
/// person who mistyped it should hear of that.
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
        let sent = tool.names().sent_name(typed);
        if known.contains(&typed.as_str()) || known.contains(&sent.as_str()) {
            continue;
        }
        let name = toolgate_core::escape(typed);
        let meant = nearest(typed, known.iter().copied(), 1).pop();
        if executed.get(&sent).is_none() {
            let hint = meant.map(|meant| format!("; did you mean '{meant}'?"));
            warn!(
                "'{}' is not a parameter of this tool and is ignored{}",
                name,
                hint.unwrap_or_default()
            );
        // Where the schema is open any name is fine, unless it looks like a slip.
        } else if let Some(meant) = meant {
            warn!("'{name}' is not a declared parameter of this tool; did you mean '{meant}'?");
        }
    }
}

pub(super) fn rehearse(executor: &ToolExecutor, call: &ToolCall) -> (Exit, Option<ErrorKind>) {
    let rehearsal = match executor.rehearse(call) {
        Ok(rehearsal) => rehearsal,
        Err(error) => {
            let kind = error.kind();
            print(&ToolOutcome::refused(call, error));
            return (Exit::Failure, Some(kind));
        }
    };
    let (tool, executed) = (rehearsal.tool.definition(), rehearsal.arguments.as_value());
    if let Ok(asked) = call.arguments() {
        warn_of_unknown(tool, asked, executed);
    }
    let renamed = rehearsal.renamed.iter();
    let renamed: Map<String, Value> = renamed
        .map(|(from, to)| (from.clone(), json!(to)))
        .collect();
    say::result(&rendered(&json!({
        "dry_run": true,
        "tool_name": call.name(),
        "source": tool.source().to_string(),
        "arguments": executed,
        "renamed": renamed,
        "dropped": rehearsal.arguments.dropped(),
        "needs_approval": rehearsal.decision == Decision::Ask,
    })));
    (Exit::Success, None)
}

pub(super) fn print(outcome: &ToolOutcome) {
    say::result(&rendered(&outcome.to_envelope()));
    // The envelope says it for programs; a person who looks at the terminal is told what to do.
    if let Err(error) = &outcome.result {
        tell_what_to_do(error.kind(), &outcome.tool_name);
    }
}

/// For a call that nobody ran.
pub(super) fn print_refused(tool: &str, error: ToolError) {
    print(&ToolOutcome::refused(
        &ToolCall::new(tool, json!({})),
        error,
    ));
}

/// For a call that was given up before anybody ran it.
pub(super) fn print_cancelled(tool: &str) {
    let error = ToolError::Cancelled {
        tool: tool.to_owned(),
    };
    print_refused(tool, error);
}

pub(super) fn tell_what_to_do(kind: ErrorKind, tool: &str) {
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

/// How the lists are typed that were given as `a,b`.
pub(super) fn list_hints(pairs: &[(&str, &str)], schema: &Value) -> Vec<String> {
    let lists = toolgate_core::comma_separated_lists(pairs, schema).into_iter();
    let hints = lists.map(|(key, items)| {
        let items = items.iter().map(|item| quoted(&format!("{key}={item}")));
        toolgate_core::escape(&items.collect::<Vec<_>>().join(" "))
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
