//! A filter for calls, and its translation to SQL.

use jiff::Timestamp;
use rusqlite::types::Value;

use crate::seq::{self, MAX_PROBES};

/// The values of [`JournalFilter::outcome`].
pub const OUTCOME_NAMES: [&str; 15] = [
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

// Longer searches are cut.
const MAX_SEARCH_BYTES: usize = 1000;
// How far, in milliseconds, the time in an id may be from the time its call started.
const ID_SLACK_MILLIS: i64 = 3_600_000;

/// Selects calls. By default the newest 50.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalFilter {
    pub tool: Option<String>,
    pub server: Option<String>,
    pub origin: Option<String>,
    /// The name of a token, or the command that made calls without one, such as `chat`.
    pub caller: Option<String>,
    /// One of [`OUTCOME_NAMES`]; any other word matches nothing. `failed` matches every error kind.
    pub outcome: Option<String>,
    /// A string in the name, the arguments or the error. Ignores the case of ASCII letters.
    pub search: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Selects calls older than the call with this id, such as the next page of a list.
    pub before: Option<String>,
    /// Selects calls newer than the call with this id.
    pub after: Option<String>,
    /// The largest number of calls to return. Values above 1000 count as 1000.
    pub limit: usize,
}

impl Default for JournalFilter {
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

#[derive(Default)]
pub(crate) struct SqlConditions {
    texts: Vec<String>,
    pub(crate) values: Vec<Value>,
}

/// Like [`JournalFilter::caller`], for calls that aren't in a journal.
///
/// `caller` is the name of the token that the call was made with, and `command` the
/// command that made it.
pub fn matches_caller(wanted: &str, caller: Option<&str>, command: Option<&str>) -> bool {
    match (caller, command) {
        (Some(caller), _) => caller == wanted,
        (None, Some(command)) => {
            command == wanted || command.strip_prefix("toolgate ") == Some(wanted)
        }
        (None, None) => false,
    }
}

impl JournalFilter {
    /// `dead` lists the runs of dead processes, as SQL.
    pub(crate) fn conditions(&self, dead: &str) -> SqlConditions {
        let mut all = SqlConditions::default();
        let equal = [
            ("tool = ?", &self.tool),
            ("server = ?", &self.server),
            ("origin = ?", &self.origin),
        ];
        for (condition, value) in equal {
            if let Some(value) = value {
                all.add(condition, [value.clone().into()]);
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
        self.add_bounds(&mut all);
        all
    }

    fn add_bounds(&self, all: &mut SqlConditions) {
        if let Some(since) = self.since {
            // The condition on `seq` bounds the scan: the table is sorted by it, and times have no
            // index.
            let start = seq::first_at(since.as_millisecond() - ID_SLACK_MILLIS);
            let since = since.as_microsecond();
            all.add("started_at >= ? AND seq >= ?", [since.into(), start.into()]);
        }
        if let Some(until) = self.until {
            // For the same reason.
            let end = seq::first_at(until.as_millisecond() + ID_SLACK_MILLIS);
            let until = until.as_microsecond();
            all.add("started_at < ? AND seq < ?", [until.into(), end.into()]);
        }
        for (id, compared) in [(&self.before, "<"), (&self.after, ">")] {
            if let Some(id) = id {
                let seq = seq::for_id(id);
                all.add(
                    // The id of a deleted call still marks a point in time.
                    &format!("seq {compared} coalesce((SELECT seq FROM calls WHERE seq >= ? AND seq < ? AND id = ?), ?)"),
                    [seq.into(), (seq + MAX_PROBES).into(), id.clone().into(), seq.into()],
                );
            }
        }
    }
}

impl SqlConditions {
    pub(crate) fn add<const N: usize>(&mut self, condition: &str, values: [Value; N]) {
        self.texts.push(condition.to_owned());
        self.values.extend(values);
    }

    fn search(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_SEARCH_BYTES)];
        let plain = like_pattern(text);
        // Arguments are kept as JSON, where quotes and line breaks are written differently.
        let json = serde_json::Value::from(text).to_string();
        let json = like_pattern(&json[1..json.len() - 1]);
        self.add(
            r"(tool LIKE ? ESCAPE '\' OR error LIKE ? ESCAPE '\' OR asked LIKE ? ESCAPE '\' OR executed LIKE ? ESCAPE '\')",
            [plain.clone().into(), plain.into(), json.clone().into(), json.into()],
        );
    }

    pub(crate) fn sql(&self) -> String {
        if self.texts.is_empty() {
            return "TRUE".to_owned();
        }
        self.texts.join(" AND ")
    }
}

fn like_pattern(text: &str) -> String {
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
