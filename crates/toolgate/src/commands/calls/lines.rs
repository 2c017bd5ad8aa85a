//! Calls in a list, one after the other.

use std::collections::HashMap;

use anstyle::Style;
use jiff::Zoned;
use serde_json::Value;
use toolgate_core::escape;
use unicode_width::UnicodeWidthStr;

use super::show::{colour, local, text, took};
use super::source::Pages;
use crate::commands::rendered_line;
use crate::say;
use crate::spinner::fitting;

/// No id is shown shorter, so that one stays good while new calls come.
const SHORTEST_ID: usize = 12;
/// So many digits tell all calls of one process apart.
const SURE_ID: usize = 17;
const WIDEST_NAME: usize = 16;
/// Where calls follow that nobody knows yet, columns have room for most of them.
const USUAL_WHO: usize = 12;
const WIDEST_OUTCOME: usize = 11;
/// Where fewer columns are left for a call that needs more, it stands in a line of its own, this far from the edge.
const ROOM: usize = 40;
const INDENT: usize = 10;
/// A line where nobody knows the width of the terminal.
const WIDTH: usize = 120;

/// Prints calls, one in a line: aligned for eyes, with tabs for programs, or as JSON.
pub(super) struct Lines {
    manner: Manner,
    /// How much of an id is shown.
    ids: HashMap<String, usize>,
    columns: Columns,
}

struct Columns {
    time: usize,
    id: usize,
    who: usize,
    outcome: usize,
}

/// Whether calls follow that are not known yet.
#[derive(Clone, Copy)]
pub(super) enum More {
    None,
    Later,
}

enum Manner {
    Eyes { width: usize },
    Tabs,
    Json,
}

impl Lines {
    /// Columns as wide as these calls want them, and those that come later if there will be such.
    pub(super) fn new(calls: &[Value], pages: &Pages, as_json: bool, more: More) -> Self {
        let manner = match (as_json, say::is_watched()) {
            (true, _) => Manner::Json,
            (false, true) => Manner::Eyes {
                width: say::width().unwrap_or(WIDTH),
            },
            (false, false) => Manner::Tabs,
        };
        let digits = match manner {
            Manner::Eyes { .. } => pages.distinct_digits(calls),
            _ => Vec::new(),
        };
        let lines = Self::fitting(manner, calls, &digits, more);
        if let Manner::Eyes { .. } = lines.manner {
            lines.titles();
        }
        lines
    }

    /// `digits` of its id tell each call apart.
    fn fitting(manner: Manner, calls: &[Value], digits: &[usize], more: More) -> Self {
        let id = |call: &Value| text(&call["id"]);
        let least = more.least_id();
        let digits = digits.iter().map(|digits| least.max(*digits));
        let ids: HashMap<_, _> = calls.iter().map(id).zip(digits).collect();
        let mut columns = Columns::fitting(calls, more);
        columns.id = ids.values().max().copied().unwrap_or(least);
        Self {
            manner,
            ids,
            columns,
        }
    }

    fn titles(&self) {
        let bold = Style::new().bold();
        let Columns {
            time,
            id,
            who,
            outcome,
        } = self.columns;
        say::result(&format!(
            "{bold}{:<time$}  {:<id$}  {:<who$}  {:>7}  {:<outcome$}  CALL{bold:#}",
            "TIME", "ID", "WHO", "TOOK", "OUTCOME"
        ));
    }

    pub(super) fn print(&mut self, call: &Value) {
        say::result(&match &self.manner {
            Manner::Json => rendered_line(call),
            Manner::Tabs => tabbed(call),
            Manner::Eyes { width } => self.aligned(call, *width),
        });
    }

    fn aligned(&self, call: &Value, width: usize) -> String {
        let Columns {
            time,
            id,
            who,
            outcome,
        } = self.columns;
        let known = text(&call["id"]);
        let digits = self.ids.get(&known).copied().unwrap_or(SURE_ID);
        let head = format!(
            "{:<time$}  {:<id$}  {:<who$}  {:>7}  ",
            moment(call),
            fitting(&known, digits),
            shortened(&asked_by(call), who),
            took(&call["duration_ms"]),
        );
        let colour = colour(&call["success"]);
        let rest = width.saturating_sub(head.width() + outcome + 2);
        let (ending, called) = (ending(call), called(call));
        if called.width() > rest && rest < ROOM {
            let below = shortened(&called, width.saturating_sub(INDENT));
            return format!("{head}{colour}{ending}{colour:#}\n{:INDENT$}{below}", "");
        }
        let called = shortened(&called, rest);
        format!("{head}{colour}{ending:<outcome$}{colour:#}  {called}")
    }
}

impl More {
    fn least_id(self) -> usize {
        match self {
            Self::None => SHORTEST_ID,
            Self::Later => SURE_ID,
        }
    }
}

impl Columns {
    fn fitting(calls: &[Value], more: More) -> Self {
        let (who, outcome) = match more {
            More::None => (3, 7),
            More::Later => (USUAL_WHO, WIDEST_OUTCOME),
        };
        let widest = |text: fn(&Value) -> String, least: usize| {
            let widths = calls.iter().map(|call| text(call).width());
            widths.max().unwrap_or(0).clamp(least, WIDEST_NAME)
        };
        Self {
            time: widest(moment, 8),
            id: more.least_id(),
            who: widest(asked_by, who),
            outcome: widest(ending, outcome),
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

/// Who asked: the name of a token, else the command, else what is known.
fn asked_by(call: &Value) -> String {
    let command = call["command"].as_str();
    let command = command.map(|command| command.strip_prefix("toolgate ").unwrap_or(command));
    match call["caller"].as_str().or(command) {
        Some(who) => escape(who),
        None => text(&call["origin"]),
    }
}

/// How it ended, in a word that leaves room for what was called.
fn ending(call: &Value) -> String {
    match call["outcome"].as_str().unwrap_or_default() {
        "success" => "ok".to_owned(),
        "invalid_arguments" => "bad args".to_owned(),
        "handler_not_found" => "no handler".to_owned(),
        other => escape(other),
    }
}

/// The tool and its arguments, as they could be typed.
fn called(call: &Value) -> String {
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

/// What fits, and a sign that there is more.
fn shortened(text: &str, width: usize) -> String {
    match text.width() <= width {
        true => text.to_owned(),
        false => format!("{}…", fitting(text, width.saturating_sub(1))),
    }
}

pub(super) fn tabbed(call: &Value) -> String {
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
        asked_by(call),
    ]
    .join("\t")
}

/// How many digits of each id tell it from the others.
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
        let lines = Lines::fitting(Manner::Eyes { width: 80 }, &calls, &digits, More::None);
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
            let shown = anstream::adapter::strip_str(&lines.aligned(call, 80)).to_string();
            assert!(shown.lines().all(|line| line.width() <= 80), "{shown}");
            for part in parts {
                assert!(shown.contains(part), "{part}: {shown}");
            }
        }
        let wide = lines.aligned(&calls[0], 110);
        assert_eq!(wide.lines().count(), 1, "{wide}");
    }

    #[test]
    fn calls_that_come_later_have_room_in_the_columns() {
        let lines = Lines::fitting(Manner::Eyes { width: 80 }, &[], &[], More::Later);
        let new = call(
            "019a8c000000aa000aaaaa0000000000",
            Some("kitchen-wall"),
            "echo",
            "unavailable",
            &json!({ "a": 1 }),
        );
        let shown = anstream::adapter::strip_str(&lines.aligned(&new, 80)).to_string();
        let columns = &lines.columns;
        let head = columns.time + 2 + columns.id + 2 + columns.who + 2 + 7 + 2;
        assert_eq!(shown.find("unavailable"), Some(head), "{shown}");
        assert_eq!(shown.find(" echo a=1"), Some(head + columns.outcome + 1));
        assert!(
            shown.contains("019a8c000000aa000  kitchen-wall  "),
            "{shown}"
        );
    }
}
