//! Prints calls as a table, as tab-separated lines or as JSON.

use std::collections::HashMap;

use anstyle::Style;
use jiff::Zoned;
use serde_json::Value;
use toolgate_core::text::escape;
use unicode_width::UnicodeWidthStr;

use super::show::{color, local, text, took};
use super::source::CallPages;
use crate::commands::rendered_line;
use crate::output;
use crate::spinner::truncate_to_width;

// A shorter id could become ambiguous as new calls come in.
const MIN_ID_LEN: usize = 12;
// This many digits distinguish all calls of one process.
const UNIQUE_ID_LEN: usize = 17;
const MAX_NAME_WIDTH: usize = 16;
// The WHO column while following, when later callers aren't known yet.
const DEFAULT_WHO_WIDTH: usize = 12;
const MAX_OUTCOME_WIDTH: usize = 11;
// A call with less space than this moves to a line of its own.
const MIN_CALL_WIDTH: usize = 40;
const INDENT: usize = 10;
// Used if the terminal doesn't report its width.
const DEFAULT_WIDTH: usize = 120;

pub(super) struct CallPrinter {
    format: CallListFormat,
    ids: HashMap<String, usize>,
    columns: ColumnWidths,
}

struct ColumnWidths {
    time: usize,
    id: usize,
    who: usize,
    outcome: usize,
}

#[derive(Clone, Copy)]
pub(super) enum MoreCalls {
    None,
    Later,
}

enum CallListFormat {
    Table { width: usize },
    Tabs,
    Json,
}

impl CallPrinter {
    /// Sizes the columns for these calls, and leaves room for later ones if there will be any.
    pub(super) fn new(calls: &[Value], pages: &CallPages, as_json: bool, more: MoreCalls) -> Self {
        let format = match (as_json, output::stdout_is_terminal()) {
            (true, _) => CallListFormat::Json,
            (false, true) => CallListFormat::Table {
                width: output::stdout_width().unwrap_or(DEFAULT_WIDTH),
            },
            (false, false) => CallListFormat::Tabs,
        };
        let digits = match format {
            CallListFormat::Table { .. } => pages.distinct_digits(calls),
            _ => Vec::new(),
        };
        let printer = Self::sized_for(format, calls, &digits, more);
        if let CallListFormat::Table { .. } = printer.format {
            printer.print_titles();
        }
        printer
    }

    fn sized_for(
        format: CallListFormat,
        calls: &[Value],
        digits: &[usize],
        more: MoreCalls,
    ) -> Self {
        let id = |call: &Value| text(&call["id"]);
        let least = more.min_id_len();
        let digits = digits.iter().map(|digits| least.max(*digits));
        let ids: HashMap<_, _> = calls.iter().map(id).zip(digits).collect();
        let mut columns = ColumnWidths::sized_for(calls, more);
        columns.id = ids.values().max().copied().unwrap_or(least);
        Self {
            format,
            ids,
            columns,
        }
    }

    fn print_titles(&self) {
        let (bold, width) = (Style::new().bold(), self.columns.outcome);
        let head = self.columns.line_start(["TIME", "ID", "WHO", "TOOK"]);
        output::print_result(&format!("{bold}{head}{:<width$}  CALL{bold:#}", "OUTCOME"));
    }

    pub(super) fn print(&mut self, call: &Value) {
        output::print_result(&match &self.format {
            CallListFormat::Json => rendered_line(call),
            CallListFormat::Tabs => tab_separated(call),
            CallListFormat::Table { width } => self.aligned(call, *width),
        });
    }

    fn aligned(&self, call: &Value, width: usize) -> String {
        let outcome = self.columns.outcome;
        let known = text(&call["id"]);
        let digits = self.ids.get(&known).copied().unwrap_or(UNIQUE_ID_LEN);
        let head = self.columns.line_start([
            &moment(call),
            truncate_to_width(&known, digits),
            &shorten(&caller_name(call), self.columns.who),
            &took(&call["duration_ms"]),
        ]);
        let color = color(&call["success"]);
        let rest = width.saturating_sub(head.width() + outcome + 2);
        let (outcome_label, call_text) = (outcome_label(call), call_text(call));
        if call_text.width() > rest && rest < MIN_CALL_WIDTH {
            let below = shorten(&call_text, width.saturating_sub(INDENT));
            return format!(
                "{head}{color}{outcome_label}{color:#}\n{:INDENT$}{below}",
                ""
            );
        }
        let call_text = shorten(&call_text, rest);
        format!("{head}{color}{outcome_label:<outcome$}{color:#}  {call_text}")
    }
}

impl MoreCalls {
    fn min_id_len(self) -> usize {
        match self {
            Self::None => MIN_ID_LEN,
            Self::Later => UNIQUE_ID_LEN,
        }
    }
}

impl ColumnWidths {
    fn line_start(&self, [time, id, who, took]: [&str; 4]) -> String {
        let Self {
            time: a,
            id: b,
            who: c,
            ..
        } = *self;
        format!("{time:<a$}  {id:<b$}  {who:<c$}  {took:>7}  ")
    }

    fn sized_for(calls: &[Value], more: MoreCalls) -> Self {
        let (who, outcome) = match more {
            MoreCalls::None => (3, 7),
            MoreCalls::Later => (DEFAULT_WHO_WIDTH, MAX_OUTCOME_WIDTH),
        };
        let widest = |text: fn(&Value) -> String, least: usize| {
            let widths = calls.iter().map(|call| text(call).width());
            widths.max().unwrap_or(0).clamp(least, MAX_NAME_WIDTH)
        };
        Self {
            time: widest(moment, 8),
            id: more.min_id_len(),
            who: widest(caller_name, who),
            outcome: widest(outcome_label, outcome),
        }
    }
}

fn moment(call: &Value) -> String {
    local(&call["started_at"]).map_or_else(String::new, |time| {
        let is_today = time.date() == Zoned::now().date();
        let form = if is_today { "%H:%M:%S" } else { "%b %d %H:%M" };
        time.strftime(form).to_string()
    })
}

fn caller_name(call: &Value) -> String {
    let command = call["command"].as_str();
    let command = command.map(|command| command.strip_prefix("toolgate ").unwrap_or(command));
    match call["caller"].as_str().or(command) {
        Some(who) => escape(who),
        None => text(&call["origin"]),
    }
}

fn outcome_label(call: &Value) -> String {
    match call["outcome"].as_str().unwrap_or_default() {
        "success" => "ok".to_owned(),
        "invalid_arguments" => "bad args".to_owned(),
        "handler_not_found" => "no handler".to_owned(),
        other => escape(other),
    }
}

fn call_text(call: &Value) -> String {
    let mut words = vec![text(&call["tool"])];
    match &call["arguments"] {
        Value::Object(arguments) => words.extend(arguments.iter().map(|(key, value)| {
            let is_plain =
                |text: &&str| !text.is_empty() && !text.contains([' ', '"', '\'', '{', '[']);
            let value = match value.as_str().filter(is_plain) {
                Some(plain) => escape(plain),
                None => escape(&value.to_string()),
            };
            format!("{}={value}", escape(key))
        })),
        Value::Null => {}
        other => words.push(text(other)),
    }
    words.join(" ")
}

fn shorten(text: &str, width: usize) -> String {
    match text.width() <= width {
        true => text.to_owned(),
        false => format!("{}…", truncate_to_width(text, width.saturating_sub(1))),
    }
}

pub(super) fn tab_separated(call: &Value) -> String {
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
        caller_name(call),
    ]
    .join("\t")
}

pub(super) fn distinct_digits(ids: &[&str]) -> Vec<usize> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    let shared = |one: &str, other: &str| {
        let both = one.bytes().zip(other.bytes());
        both.take_while(|(one, other)| one == other).count()
    };
    let digits = |id: &&str| {
        let place = sorted.partition_point(|other| other < id);
        let before = place.checked_sub(1).and_then(|place| sorted.get(place));
        let near = [before, sorted.get(place + 1)];
        let most = near
            .into_iter()
            .flatten()
            .map(|other| shared(id, other))
            .max();
        (most.unwrap_or(0) + 1).min(id.len())
    };
    ids.iter().map(digits).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, caller: Option<&str>, tool: &str, outcome: &str, arguments: &Value) -> Value {
        json!({
            "id": id, "tool": tool, "origin": "http", "caller": caller, "command": "toolgate serve", "outcome": outcome,
            "success": outcome == "success", "duration_ms": 1234.5, "started_at": Zoned::now().timestamp().to_string(),
            "arguments": arguments,
        })
    }

    #[test]
    fn ids_are_as_long_as_they_must_be() {
        let (one, other) = (
            "019a8c000000aa000aaaaa0000000000",
            "019a8c000000aa001aaaaa0000000001",
        );
        let later = "019a8c000001aa000aaaaa0000000002";
        assert_eq!(distinct_digits(&[]), Vec::<usize>::new());
        assert_eq!(distinct_digits(&[one]), [1]);
        assert_eq!(distinct_digits(&[later, other, one]), [12, 17, 17]);
    }

    #[test]
    fn a_line_fits_80_columns_and_shows_who_and_what() {
        let calls = [
            call(
                "019a8c000000aa000aaaaa0000000000",
                Some("kitchen"),
                "control_zwave_device",
                "success",
                &json!({ "deviceName": "Bedside Lamp", "action": "on" }),
            ),
            call(
                "019a8c000000aa001aaaaa0000000001",
                None,
                "echo",
                "unavailable",
                &json!({ "a": [1, 2], "b": "x" }),
            ),
        ];
        let ids: Vec<&str> = calls
            .iter()
            .filter_map(|call| call["id"].as_str())
            .collect();
        let digits = distinct_digits(&ids);
        let printer = CallPrinter::sized_for(
            CallListFormat::Table { width: 80 },
            &calls,
            &digits,
            MoreCalls::None,
        );
        for (call, parts) in calls.iter().zip([
            [
                "019a8c000000aa000  kitchen ",
                "ok\n",
                "  control_zwave_device deviceName=\"Bedside Lamp\" action=on",
            ],
            [
                "019a8c000000aa001  serve ",
                "unavailable",
                "echo a=[1,2] b=x",
            ],
        ]) {
            let shown = anstream::adapter::strip_str(&printer.aligned(call, 80)).to_string();
            assert!(shown.lines().all(|line| line.width() <= 80), "{shown}");
            for part in parts {
                assert!(shown.contains(part), "{part}: {shown}");
            }
        }
        let wide = printer.aligned(&calls[0], 110);
        assert_eq!(wide.lines().count(), 1, "{wide}");
    }

    #[test]
    fn calls_that_come_later_have_room_in_the_columns() {
        let printer = CallPrinter::sized_for(
            CallListFormat::Table { width: 80 },
            &[],
            &[],
            MoreCalls::Later,
        );
        let new = call(
            "019a8c000000aa000aaaaa0000000000",
            Some("kitchen-wall"),
            "echo",
            "unavailable",
            &json!({ "a": 1 }),
        );
        let shown = anstream::adapter::strip_str(&printer.aligned(&new, 80)).to_string();
        let columns = &printer.columns;
        let head = columns.time + 2 + columns.id + 2 + columns.who + 2 + 7 + 2;
        assert_eq!(shown.find("unavailable"), Some(head), "{shown}");
        assert_eq!(shown.find(" echo a=1"), Some(head + columns.outcome + 1));
        assert!(
            shown.contains("019a8c000000aa000  kitchen-wall  "),
            "{shown}"
        );
    }
}
