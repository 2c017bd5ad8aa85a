//! Shows everything about one call.

use anstyle::{AnsiColor, Style};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::Value;
use toolgate_core::text::escape;

use crate::wrap;

// Longer JSON is spread over several lines.
const MAX_ONE_LINE_LEN: usize = 100;
// Column where the text after a title starts.
const TITLE_WIDTH: usize = 10;

/// Wraps to `width` if there is a terminal.
pub(super) fn detail(call: &Value, width: Option<usize>) -> String {
    let wrapped = |line: String, indent: usize| match width {
        Some(width) => wrap::wrap_hanging(&line, indent, width),
        None => line,
    };
    let bold = Style::new().bold();
    let color = color(&call["success"]);
    let source = match &call["source"] {
        Value::String(source) => format!("  ({})", escape(source)),
        _ => String::new(),
    };
    let title = format!(
        "{bold}{}{bold:#}{source}  {color}{}{color:#}  {}",
        text(&call["tool"]),
        text(&call["outcome"]),
        took(&call["duration_ms"]),
    );
    let mut lines = vec![wrapped(title, 0)];
    let mut part = |title: &str, text: String| {
        if !text.is_empty() {
            let mut rows = text.lines();
            let first = format!("{title:<TITLE_WIDTH$}{}", rows.next().unwrap_or_default());
            lines.push(wrapped(first, TITLE_WIDTH));
            lines.extend(rows.map(|row| wrapped(format!("{:<TITLE_WIDTH$}{row}", ""), 0)));
        }
    };
    part("id", text(&call["id"]));
    part("asked", when(call));
    part("run", run(&call["run"]));
    part("approval", approval(&call["approval"]));
    part("steps", format_steps(&call["timings"]));
    part("error", text(&call["error"]));
    part("hint", text(&call["hint"]));
    part("details", lines_of(&call["details"]));
    part("arguments", format_pretty(&call["asked"]));
    if call["executed"] != call["asked"] {
        part("executed", format_pretty(&call["executed"]));
    }
    part("renamed", format_pairs(&call["renamed"]));
    part("dropped", format_names(&call["dropped"]));
    part("result", format_pretty(&call["result"]));
    part("content", format_pretty(&call["content"]));
    part("trace", text(&call["trace_id"]));
    let replay = format!("Repeat it:  toolgate replay {}", text(&call["id"]));
    lines.push(format!("\n{}", wrapped(replay, 2)));
    lines.join("\n")
}

fn when(call: &Value) -> String {
    let time = local(&call["started_at"])
        .map(|time| time.strftime("%Y-%m-%d %H:%M:%S.%3f %Z").to_string());
    let caller = match &call["caller"] {
        Value::String(caller) => format!(" ({})", escape(caller)),
        _ => String::new(),
    };
    format!(
        "{} by {}{caller}",
        time.unwrap_or_default(),
        text(&call["origin"])
    )
}

fn run(run: &Value) -> String {
    match run["command"].as_str() {
        Some(command) => format!(
            "{} (process {}, version {})",
            escape(command),
            run["pid"],
            text(&run["version"])
        ),
        None => String::new(),
    }
}

fn approval(approval: &Value) -> String {
    let Some(granted) = approval["granted"].as_bool() else {
        return String::new();
    };
    let did = if granted { "approved" } else { "refused" };
    let means = text(&approval["means"]);
    let by = match &approval["by"] {
        Value::String(name) => format!("{} ({means})", escape(name)),
        _ => means,
    };
    let at = local(&approval["at"]).map(|time| time.strftime("%H:%M:%S").to_string());
    format!("{did} by {by} at {}", at.unwrap_or_default())
}

fn format_steps(timings: &Value) -> String {
    let steps = [
        ("check", "check_ms"),
        ("approval", "approval_ms"),
        ("queue", "queue_ms"),
        ("tool", "invoke_ms"),
    ];
    let known = steps.iter().filter(|(_, key)| timings[*key].is_number());
    let known: Vec<String> = known
        .map(|(name, key)| format!("{name} {}", took(&timings[*key]).trim()))
        .collect();
    known.join(" · ")
}

fn format_pairs(renamed: &Value) -> String {
    let pairs = renamed.as_array().into_iter().flatten();
    let pairs: Vec<String> = pairs
        .map(|pair| format!("{} → {}", text(&pair[0]), text(&pair[1])))
        .collect();
    pairs.join(", ")
}

fn format_names(names: &Value) -> String {
    let names = names.as_array().into_iter().flatten();
    names.map(text).collect::<Vec<_>>().join(", ")
}

fn lines_of(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}

fn format_pretty(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(_) => lines_of(value),
        other => {
            let text = match other.to_string() {
                short if short.len() <= MAX_ONE_LINE_LEN => short,
                _ => format!("{other:#}"),
            };
            text.lines().map(escape).collect::<Vec<_>>().join("\n")
        }
    }
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => escape(text),
        other => escape(&other.to_string()),
    }
}

pub(super) fn took(milliseconds: &Value) -> String {
    match milliseconds.as_f64() {
        None => "–".to_owned(),
        Some(time) if time < 10.0 => format!("{time:.2} ms"),
        Some(time) if time < 1000.0 => format!("{time:.0} ms"),
        Some(time) => format!("{:.1} s", time / 1000.0),
    }
}

pub(super) fn local(time: &Value) -> Option<Zoned> {
    let time: Timestamp = time.as_str()?.parse().ok()?;
    Some(time.to_zoned(TimeZone::system()))
}

// Color alone carries no information: the outcome is printed beside it.
pub(super) fn color(success: &Value) -> Style {
    let color = match success.as_bool() {
        Some(true) => AnsiColor::Green,
        Some(false) => AnsiColor::Red,
        None => AnsiColor::Yellow,
    };
    Style::new().fg_color(Some(color.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lines::tab_separated;
    use super::*;

    #[test]
    fn recorded_text_cannot_drive_a_terminal_or_forge_a_line() {
        let call = json!({
            "id": "a", "tool": "x\u{1b}[2K\nfake", "origin": "http", "outcome": "tool_error", "success": false,
            "error": "line\nline\u{1b}", "started_at": "2026-11-16T05:00:00.000Z", "arguments": { "a": "\u{9b}" },
            "asked": { "a": "\u{9b}" }, "details": "one\n\u{1b}two", "result": "r\u{7}",
        });
        let shown = format!("{}{}", tab_separated(&call), detail(&call, None));
        let unstyled = anstream::adapter::strip_str(&shown).to_string();
        let driving: Vec<char> = unstyled
            .chars()
            .filter(|c| c.is_control() && !matches!(c, '\n' | '\t'))
            .collect();
        assert!(driving.is_empty(), "{unstyled:?}");
        assert_eq!(tab_separated(&call).lines().count(), 1);
        assert!(!shown.contains("\u{1b}[2K"));
    }

    #[test]
    fn details_of_a_call_wrap_between_words() {
        let error = "the server did not answer within 30 s and was asked to stop what it does";
        let call = json!({
            "id": "019a8c000000aa000aaaaa0000000000", "tool": "echo", "origin": "http", "outcome": "timeout", "success": false,
            "error": error, "asked": { "text": error, "n": 1, "more": "x".repeat(60) },
            "run": { "command": "toolgate serve", "pid": 4711, "version": "0.1.0" },
        });
        let shown = anstream::adapter::strip_str(&detail(&call, Some(60))).to_string();
        let expected = "error     the server did not answer within 30 s and was\n          asked to stop what it does\n";
        assert!(shown.contains(expected), "{shown}");
        let is_long = |line: &&str| line.chars().count() > 60 && !line.contains("xxx");
        assert_eq!(shown.lines().find(is_long), None, "{shown}");
        let whole = detail(&call, None);
        assert!(whole.contains(error), "{whole}");
    }

    #[test]
    fn a_duration_has_the_precision_that_people_need() {
        for (time, expected) in [
            (json!(0.123), "0.12 ms"),
            (json!(12.3), "12 ms"),
            (json!(1234.0), "1.2 s"),
            (json!(null), "–"),
        ] {
            assert_eq!(took(&time), expected);
        }
    }
}
