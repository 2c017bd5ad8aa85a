//! `toolgate calls --follow --at URL`: follows the calls of a gateway.

use serde_json::Value;
use toolgate_journal::{JournalFilter, matches_caller};

use super::source::{CallPages, CallReadError};
use crate::output;
use crate::remote::RemoteGateway;

pub(super) async fn follow(
    pages: &CallPages,
    remote: &RemoteGateway,
    filter: JournalFilter,
    as_json: bool,
) -> Result<super::Exit, CallReadError> {
    // Subscribe first, then list: a call that ends in between is in both, and is shown once.
    let mut events = remote.events("call").await?;
    let (mut printer, shown) = super::print_last(pages, filter.clone(), as_json).await?;
    loop {
        let event = events.next().await?;
        let call = &event.data;
        if event.name == "lagged" {
            let missed = &call["missed"];
            output::print_note(&format!(
                "{missed} calls came faster than they could be shown; 'toolgate calls --at' lists them"
            ));
        } else if event.name == "call" && is_wanted(&filter, call) && !is_among(&shown, call) {
            printer.print(call);
        }
    }
}

fn is_among(shown: &[String], call: &Value) -> bool {
    shown.iter().any(|id| call["id"] == id.as_str())
}

/// Applies the filter as the gateway does for its lists.
fn is_wanted(filter: &JournalFilter, call: &Value) -> bool {
    let is = |wanted: &Option<String>, key: &str| {
        let wanted = wanted.as_deref();
        wanted.is_none_or(|wanted| call[key].as_str() == Some(wanted))
    };
    let outcome = match filter.outcome.as_deref() {
        Some("failed") => call["success"] == false,
        _ => is(&filter.outcome, "outcome"),
    };
    let started = call["started_at"]
        .as_str()
        .and_then(|time| time.parse().ok());
    let (caller, command) = (call["caller"].as_str(), call["command"].as_str());
    let is_by = filter.caller.as_deref();
    let is_by = is_by.is_none_or(|wanted| matches_caller(wanted, caller, command));
    outcome
        && is(&filter.tool, "tool")
        && is(&filter.server, "server")
        && is(&filter.origin, "origin")
        && is_by
        && filter.since.is_none_or(|since| started >= Some(since))
        && filter.until.is_none_or(|until| started < Some(until))
        && filter
            .search
            .as_deref()
            .is_none_or(|text| mentions(call, text))
}

fn mentions(call: &Value, text: &str) -> bool {
    let text = text.to_lowercase();
    let written = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let mut parts = ["tool", "error", "arguments"].iter();
    parts.any(|key| written(&call[*key]).to_lowercase().contains(&text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_chosen_as_the_gateway_would() {
        let call = json!({
            "id": "a", "tool": "lamp", "server": "house", "origin": "http", "caller": "kitchen", "outcome": "timeout", "success": false,
            "error": "Tool 'lamp' timed out", "arguments": { "room": "Küche" }, "started_at": "2026-11-16T05:00:00.000Z",
        });
        type Change = fn(&mut JournalFilter);
        let table: [(Change, bool); 14] = [
            (|_| (), true),
            (|filter| filter.tool = Some("lamp".to_owned()), true),
            (|filter| filter.tool = Some("lam".to_owned()), false),
            (|filter| filter.server = Some("office".to_owned()), false),
            (|filter| filter.origin = Some("http".to_owned()), true),
            (|filter| filter.caller = Some("kitchen".to_owned()), true),
            (|filter| filter.caller = Some("serve".to_owned()), false),
            (|filter| filter.outcome = Some("failed".to_owned()), true),
            (|filter| filter.outcome = Some("success".to_owned()), false),
            (|filter| filter.search = Some("KÜCHE".to_owned()), true),
            (|filter| filter.search = Some("timed".to_owned()), true),
            (|filter| filter.search = Some("bath".to_owned()), false),
            (
                |filter| filter.since = "2026-11-16T05:00:01Z".parse().ok(),
                false,
            ),
            (
                |filter| filter.until = "2026-11-16T05:00:01Z".parse().ok(),
                true,
            ),
        ];
        for (index, (change, wanted)) in table.into_iter().enumerate() {
            let mut filter = JournalFilter::default();
            change(&mut filter);
            assert_eq!(is_wanted(&filter, &call), wanted, "row {index}");
        }
        // Without a token the command says who asked.
        let call = json!({ "tool": "lamp", "command": "toolgate serve" });
        for (caller, wanted) in [("serve", true), ("toolgate serve", true), ("chat", false)] {
            let mut filter = JournalFilter::default();
            filter.caller = Some(caller.to_owned());
            assert_eq!(is_wanted(&filter, &call), wanted, "{caller}");
        }
    }
}
