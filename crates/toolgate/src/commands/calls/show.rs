//! Calls as a person reads them.

use anstyle::{AnsiColor, Style};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::Value;
use toolgate_core::escape;

use crate::say;
use crate::spinner::fitting;

/// Enough of an id where calls do not come in the same millisecond.
const SHORT_ID: usize = 12;
const WIDEST_NAME: usize = 40;
/// JSON that needs no lines.
const SHORT: usize = 100;
/// A line where nobody knows the width of the terminal.
const WIDTH: usize = 120;

/// Prints calls, one in a line: aligned for eyes, with tabs for programs, or as JSON.
pub(super) struct Lines {
    manner: Manner,
    id: usize,
    tool: usize,
    origin: usize,
}

enum Manner {
    Eyes { width: usize },
    Tabs,
    Json,
}

impl Lines {
    /// Columns as wide as these calls want them.
    pub(super) fn new(calls: &[Value], as_json: bool) -> Self {
        let manner = match (as_json, say::is_watched()) {
            (true, _) => Manner::Json,
            (false, true) => Manner::Eyes { width: width() },
            (false, false) => Manner::Tabs,
        };
        let widest = |key: &str, least: usize| {
            let widths = calls.iter().map(|call| text(&call[key]).chars().count());
            widths.max().unwrap_or(0).clamp(least, WIDEST_NAME)
        };
        let mut lines = Self {
            manner,
            id: distinct(calls),
            tool: widest("tool", 12),
            origin: widest("origin", 6),
        };
        if let Manner::Eyes { .. } = lines.manner {
            lines.titles();
        }
        lines
    }

    fn titles(&mut self) {
        let bold = Style::new().bold();
        let (id, tool, origin) = (self.id, self.tool, self.origin);
        say::result(&format!(
            "{bold}{:<12}  {:<id$}  {:<tool$}  {:<origin$}  {:>9}  {:<17}  ARGUMENTS{bold:#}",
            "TIME", "ID", "TOOL", "ORIGIN", "TOOK", "OUTCOME"
        ));
    }

    pub(super) fn print(&mut self, call: &Value) {
        say::result(&match &self.manner {
            Manner::Json => call.to_string(),
            Manner::Tabs => tabbed(call),
            Manner::Eyes { width } => self.aligned(call, *width),
        });
    }

    fn aligned(&self, call: &Value, width: usize) -> String {
        let (id, tool, origin) = (self.id, self.tool, self.origin);
        let when = local(&call["started_at"]).map_or_else(String::new, |time| {
            let is_today = time.date() == Zoned::now().date();
            let form = if is_today {
                "%H:%M:%S.%3f"
            } else {
                "%b %d %H:%M"
            };
            time.strftime(form).to_string()
        });
        let outcome = text(&call["outcome"]);
        let colour = colour(&call["success"]);
        let head = format!(
            "{when:<12}  {:<id$}  {:<tool$}  {:<origin$}  {:>9}  ",
            fitting(&text(&call["id"]), id),
            fitting(&text(&call["tool"]), tool),
            fitting(&text(&call["origin"]), origin),
            took(&call["duration_ms"]),
        );
        let rest = width.saturating_sub(head.chars().count() + 19);
        let arguments = match &call["arguments"] {
            Value::String(cut) => escape(cut),
            other => escape(&other.to_string()),
        };
        format!(
            "{head}{colour}{outcome:<17}{colour:#}  {}",
            fitting(&arguments, rest)
        )
    }
}

fn tabbed(call: &Value) -> String {
    let took = match call["duration_ms"].as_f64() {
        Some(time) => time.to_string(),
        None => String::new(),
    };
    [
        text(&call["started_at"]),
        text(&call["id"]),
        text(&call["tool"]),
        text(&call["origin"]),
        took,
        text(&call["outcome"]),
        text(&call["arguments"]),
    ]
    .join("\t")
}

/// How much of the ids tells them apart.
fn distinct(calls: &[Value]) -> usize {
    let mut ids: Vec<&str> = calls
        .iter()
        .filter_map(|call| call["id"].as_str())
        .collect();
    ids.sort_unstable();
    let shared = |pair: &[&str]| {
        let both = pair[0].bytes().zip(pair[1].bytes());
        both.take_while(|(one, other)| one == other).count()
    };
    let longest = ids.windows(2).map(shared).max().unwrap_or(0);
    SHORT_ID.max(longest + 1)
}

/// Everything about one call.
pub(super) fn detail(call: &Value) -> String {
    let bold = Style::new().bold();
    let colour = colour(&call["success"]);
    let source = match &call["source"] {
        Value::String(source) => format!("  ({})", escape(source)),
        _ => String::new(),
    };
    let mut lines = vec![format!(
        "{bold}{}{bold:#}{source}  {colour}{}{colour:#}  {}",
        text(&call["tool"]),
        text(&call["outcome"]),
        took(&call["duration_ms"]),
    )];
    let mut part = |title: &str, text: String| {
        if !text.is_empty() {
            let mut rows = text.lines();
            lines.push(format!("{title:<10}{}", rows.next().unwrap_or_default()));
            lines.extend(rows.map(|row| format!("{:<10}{row}", "")));
        }
    };
    part("id", text(&call["id"]));
    part("asked", when(call));
    part("run", run(&call["run"]));
    part("steps", steps(&call["timings"]));
    part("error", text(&call["error"]));
    part("hint", text(&call["hint"]));
    part("details", lines_of(&call["details"]));
    part("arguments", pretty(&call["asked"]));
    if call["executed"] != call["asked"] {
        part("executed", pretty(&call["executed"]));
    }
    part("renamed", pairs(&call["renamed"]));
    part("dropped", list(&call["dropped"]));
    part("result", pretty(&call["result"]));
    part("content", pretty(&call["content"]));
    part("trace", text(&call["trace_id"]));
    lines.push(format!(
        "\nMake it once more:  toolgate replay {}",
        text(&call["id"])
    ));
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

fn steps(timings: &Value) -> String {
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

fn pairs(renamed: &Value) -> String {
    let pairs = renamed.as_array().into_iter().flatten();
    let pairs: Vec<String> = pairs
        .map(|pair| format!("{} → {}", text(&pair[0]), text(&pair[1])))
        .collect();
    pairs.join(", ")
}

fn list(names: &Value) -> String {
    let names = names.as_array().into_iter().flatten();
    names.map(text).collect::<Vec<_>>().join(", ")
}

fn lines_of(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}

fn pretty(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(_) => lines_of(value),
        other => {
            let text = match other.to_string() {
                short if short.len() <= SHORT => short,
                _ => format!("{other:#}"),
            };
            text.lines().map(escape).collect::<Vec<_>>().join("\n")
        }
    }
}

/// One line that drives no terminal.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => escape(text),
        other => escape(&other.to_string()),
    }
}

fn took(milliseconds: &Value) -> String {
    match milliseconds.as_f64() {
        None => "–".to_owned(),
        Some(time) if time < 10.0 => format!("{time:.2} ms"),
        Some(time) if time < 1000.0 => format!("{time:.0} ms"),
        Some(time) => format!("{:.1} s", time / 1000.0),
    }
}

fn local(time: &Value) -> Option<Zoned> {
    let time: Timestamp = time.as_str()?.parse().ok()?;
    Some(time.to_zoned(TimeZone::system()))
}

/// The word beside it says the same.
fn colour(success: &Value) -> Style {
    let colour = match success.as_bool() {
        Some(true) => AnsiColor::Green,
        Some(false) => AnsiColor::Red,
        None => AnsiColor::Yellow,
    };
    Style::new().fg_color(Some(colour.into()))
}

fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stdout()).map_or(WIDTH, |(width, _)| width.0.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_as_long_as_they_must_be() {
        let calls =
            |ids: &[&str]| -> Vec<Value> { ids.iter().map(|id| json!({ "id": id })).collect() };
        let (one, other) = (
            "019a8c000000aaaaaaaaaa0000000000",
            "019a8c000000aaaaaaaaaa0000000001",
        );
        for (ids, expected) in [
            (&[][..], 12),
            (&[one], 12),
            (&[one, "019a8c000001aaaaaaaaaa0000000000"], 12),
            (&[one, other], 32),
        ] {
            assert_eq!(distinct(&calls(ids)), expected, "{ids:?}");
        }
    }

    #[test]
    fn nothing_recorded_drives_a_terminal_or_forges_a_line() {
        let call = json!({
            "id": "a", "tool": "x\u{1b}[2K\nfake", "origin": "http", "outcome": "tool_error", "success": false,
            "error": "line\nline\u{1b}", "started_at": "2026-11-16T05:00:00.000Z", "arguments": { "a": "\u{9b}" },
            "asked": { "a": "\u{9b}" }, "details": "one\n\u{1b}two", "result": "r\u{7}",
        });
        let shown = format!("{}{}", tabbed(&call), detail(&call));
        let unstyled = anstream::adapter::strip_str(&shown).to_string();
        let driving: Vec<char> = unstyled
            .chars()
            .filter(|c| c.is_control() && !matches!(c, '\n' | '\t'))
            .collect();
        assert!(driving.is_empty(), "{unstyled:?}");
        assert_eq!(tabbed(&call).lines().count(), 1);
        assert!(!shown.contains("\u{1b}[2K"));
    }

    #[test]
    fn a_time_is_as_exact_as_it_is_read() {
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
