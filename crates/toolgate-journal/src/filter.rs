//! Which calls are wanted, and the SQL that finds them.

use jiff::Timestamp;
use rusqlite::types::Value;

use crate::place::{self, NEARBY};

/// What a call can have come to: the words of [`Filter::outcome`].
pub const OUTCOMES: [&str; 15] = [
    "success",
    "failed",
    "running",
    "interrupted",
    "not_found",
    "invalid_arguments",
    "denied",
    "unavailable",
    "timeout",
    "cancelled",
    "handler_not_found",
    "tool_error",
    "panicked",
    "too_large",
    "overloaded",
];

/// Longer texts are not looked for.
const LONGEST_SEARCH: usize = 1000;
/// How far the time in an id may lie from the time its call started, in milliseconds.
const SLACK: i64 = 3_600_000;

/// Which calls are wanted; by default the newest.
///
/// ```
/// use toolgate_journal::Filter;
///
/// let mut failed = Filter::default();
/// failed.outcome = Some("failed".to_owned());
/// assert_eq!(failed.limit, 50);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// Only of this tool.
    pub tool: Option<String>,
    /// Only of tools of this MCP server.
    pub server: Option<String>,
    /// Only from there.
    pub origin: Option<String>,
    /// Only by this caller: the name of a token, or the command that made calls without one, such as `chat`.
    pub caller: Option<String>,
    /// One of [`OUTCOMES`]; `failed` is every error kind. Another word finds nothing.
    pub outcome: Option<String>,
    /// Only with this text in the name, the arguments or the error. Capital and small letters are the same.
    pub search: Option<String>,
    /// Only those that started at this time or later.
    pub since: Option<Timestamp>,
    /// Only those that started before this time.
    pub until: Option<Timestamp>,
    /// Only those older than the call with this id: the next page of a list.
    pub before: Option<String>,
    /// Only those newer than the call with this id.
    pub after: Option<String>,
    /// At most so many; never more than 1000.
    pub limit: usize,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            tool: None,
            server: None,
            origin: None,
            caller: None,
            outcome: None,
            search: None,
            since: None,
            until: None,
            before: None,
            after: None,
            limit: 50,
        }
    }
}

/// Conditions on the table `calls`, and the values they speak of.
pub(crate) struct Conditions {
    texts: Vec<String>,
    pub(crate) values: Vec<Value>,
}

/// Whether [`Filter::caller`] means a call by this token or, without one, by this command. For calls that aren't in a journal.
pub fn is_called_by(wanted: &str, caller: Option<&str>, command: Option<&str>) -> bool {
    match (caller, command) {
        (Some(caller), _) => caller == wanted,
        (None, Some(command)) => {
            command == wanted || command.strip_prefix("toolgate ") == Some(wanted)
        }
        (None, None) => false,
    }
}

impl Filter {
    /// `dead` are the runs that are over without having said so.
    pub(crate) fn conditions(&self, dead: &str) -> Conditions {
        let mut all = Conditions {
            texts: Vec::new(),
            values: Vec::new(),
        };
        for (column, value) in [
            ("tool", &self.tool),
            ("server", &self.server),
            ("origin", &self.origin),
        ] {
            if let Some(value) = value {
                all.add(&format!("{column} = ?"), [value.clone().into()]);
            }
        }
        if let Some(caller) = &self.caller {
            let value = || Value::from(caller.clone());
            all.add(
                "(caller = ? OR caller IS NULL AND run IN (SELECT seq FROM runs WHERE command IN (?, 'toolgate ' || ?)))",
                [value(), value(), value()],
            );
        }
        match self.outcome.as_deref() {
            None => {}
            Some("failed") => all.add("outcome NOT IN ('success', 'interrupted')", []),
            Some("running") => all.add(&format!("finished IS NULL AND run NOT IN ({dead})"), []),
            Some("interrupted") => all.add(
                &format!("(outcome = 'interrupted' OR finished IS NULL AND run IN ({dead}))"),
                [],
            ),
            Some(outcome) => all.add("outcome = ?", [outcome.to_owned().into()]),
        }
        if let Some(search) = &self.search {
            all.search(search);
        }
        self.bound(&mut all);
        all
    }

    fn bound(&self, all: &mut Conditions) {
        if let Some(since) = self.since {
            let start = place::first_at(since.as_millisecond() - SLACK);
            let since = since.as_microsecond();
            all.add("started_at >= ? AND seq >= ?", [since.into(), start.into()]);
        }
        if let Some(until) = self.until {
            let end = place::first_at(until.as_millisecond() + SLACK);
            let until = until.as_microsecond();
            all.add("started_at < ? AND seq < ?", [until.into(), end.into()]);
        }
        for (id, compared) in [(&self.before, "<"), (&self.after, ">")] {
            if let Some(id) = id {
                let place = place::of(id);
                all.add(
                    &format!("seq {compared} coalesce((SELECT seq FROM calls WHERE seq >= ? AND seq < ? AND id = ?), ?)"),
                    [place.into(), (place + NEARBY).into(), id.clone().into(), place.into()],
                );
            }
        }
    }
}

impl Conditions {
    pub(crate) fn add<const N: usize>(&mut self, condition: &str, values: [Value; N]) {
        self.texts.push(condition.to_owned());
        self.values.extend(values);
    }

    fn search(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(LONGEST_SEARCH)];
        let plain = contains(text);
        // Arguments are kept as JSON, where quotes and line breaks are written differently.
        let json = serde_json::Value::from(text).to_string();
        let json = contains(&json[1..json.len() - 1]);
        self.add(
            r"(tool LIKE ? ESCAPE '\' OR error LIKE ? ESCAPE '\' OR asked LIKE ? ESCAPE '\' OR executed LIKE ? ESCAPE '\')",
            [plain.clone().into(), plain.into(), json.clone().into(), json.into()],
        );
    }

    /// As SQL that follows `WHERE`.
    pub(crate) fn sql(&self) -> String {
        if self.texts.is_empty() {
            return "TRUE".to_owned();
        }
        self.texts.join(" AND ")
    }
}

fn contains(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
