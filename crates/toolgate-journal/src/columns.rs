//! The columns of a call, each declared once.
//!
//! The table, its upgrades, what is written, hashed, read and salvaged all follow from [`COLUMNS`].
//! A new column is a line here, a field in `row.rs` that keeps its value, and a field in
//! `summary.rs` or `detail.rs` that shows it.

use std::sync::LazyLock;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::row::{EndRow, ExecutedArguments, StartRow};

pub(crate) struct Column {
    pub(crate) name: &'static str,
    sql: &'static str,
    /// The file format that introduced it.
    since: i64,
    // Its position in the digest of a call, which never changes, or old digests would not match. A
    // new column takes the next number. Older rows keep their digest because a column that holds
    // nothing is left out.
    digest: usize,
    read: ColumnSet,
    written: ColumnSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnSet {
    List,
    Detail,
}

enum ColumnSource {
    Start(for<'a> fn(&CallStart<'a>) -> ValueRef<'a>),
    End(for<'a> fn(&CallEnd<'a>) -> ValueRef<'a>),
    /// False until the call ends.
    EndFlag(for<'a> fn(&CallEnd<'a>) -> ValueRef<'a>),
}

impl Column {
    fn is_missing(&self, connection: &Connection) -> bool {
        let exists = || connection.column_exists(None, "calls", self.name);
        self.since > 1 && matches!(exists(), Ok(false))
    }
}

pub(crate) struct CallStart<'a> {
    pub(crate) seq: i64,
    pub(crate) run: i64,
    pub(crate) chained: i64,
    pub(crate) row: &'a StartRow,
}

pub(crate) struct CallEnd<'a> {
    pub(crate) finished: i64,
    pub(crate) row: &'a EndRow,
}

// Only `chained` isn't hashed: it says where in the chain the digest is.
const UNHASHED: usize = usize::MAX;

macro_rules! columns {
    ($($name:ident $sql:literal $since:literal $digest:tt $read:ident
        $written:ident |$row:ident| $value:expr;)*) => {
        #[expect(non_camel_case_types, dead_code, reason = "the numbers of the columns, by name")]
        pub(crate) enum ColumnNumber {
            $($name),*
        }

        pub(crate) const COUNT: usize = [$(stringify!($name)),*].len();
        pub(crate) static COLUMNS: [Column; COUNT] = [$(Column {
            name: stringify!($name),
            sql: $sql,
            since: $since,
            digest: $digest,
            read: ColumnSet::$read,
            written: ColumnSource::$written(|$row| $value.into()),
        }),*];
    };
}

// Name, SQL, the format that introduced it, its position in the digest, where it is read, when it
// is written, and its value. New files have the columns in this order, long ones last, so that a
// list doesn't read past them. `seq` is explained in `seq.rs`. Times are microseconds since 1970,
// durations microseconds. `finished` is the time of the end, adjusted so that it never repeats or
// goes back: it is the order in which calls ended, over all processes, and NULL while a call runs.
columns! {
    seq "INTEGER PRIMARY KEY" 1 0 List Start |call| int(call.seq);
    id "TEXT NOT NULL" 1 1 List Start |call| &*call.row.id;
    run "INTEGER NOT NULL" 1 2 List Start |call| int(call.run);
    tool "TEXT NOT NULL" 1 3 List Start |call| &*call.row.tool;
    source "TEXT" 1 4 List Start |call| call.row.source.as_deref();
    server "TEXT" 1 5 List Start |call| call.row.server.as_deref();
    origin "TEXT NOT NULL" 1 6 List Start |call| &*call.row.origin;
    caller "TEXT" 3 7 List Start |call| call.row.caller.as_deref();
    trace_id "TEXT" 1 8 Detail Start |call| call.row.trace_id.as_deref();
    parent_span_id "TEXT" 1 9 Detail Start |call| call.row.parent_span_id.as_deref();
    started_at "INTEGER NOT NULL" 1 10 List Start |call| int(call.row.started_at);
    finished "INTEGER" 1 15 List End |call| int(call.finished);
    outcome "TEXT" 1 16 List End |call| &*call.row.outcome;
    duration "INTEGER" 1 17 List End |call| int(call.row.duration);
    check_time "INTEGER" 1 18 Detail End |call| int(call.row.check);
    approval_time "INTEGER" 1 19 Detail End |call| int(call.row.approval);
    queue_time "INTEGER" 4 20 Detail End |call| int(call.row.queue);
    invoke_time "INTEGER" 1 21 Detail End |call| int(call.row.invoke);
    result_bytes "INTEGER" 1 22 List End |call| int(call.row.result_bytes);
    result_cut "INTEGER NOT NULL DEFAULT 0" 1 23 Detail EndFlag |call| int(i64::from(call.row.result_cut));
    is_as_asked "INTEGER NOT NULL" 1 13 Detail Start
        |call| int(i64::from(matches!(call.row.executed, ExecutedArguments::AsAsked)));
    destructive "INTEGER" 6 31 Detail Start |call| int(call.row.destructive.then_some(1));
    chained "INTEGER" 6 UNHASHED Detail Start |call| int(call.chained);
    error "TEXT" 1 24 List End |call| call.row.error.as_deref();
    hint "TEXT" 1 25 Detail End |call| call.row.hint.as_deref();
    details "TEXT" 1 26 Detail End |call| call.row.details.as_deref();
    renamed "TEXT" 1 27 Detail End |call| call.row.renamed.as_deref();
    dropped "TEXT" 1 28 Detail End |call| call.row.dropped.as_deref();
    approval "TEXT" 5 14 Detail Start |call| call.row.approval.as_deref();
    asked "TEXT NOT NULL" 1 11 Detail Start |call| &*call.row.asked;
    executed "TEXT" 1 12 Detail Start |call| call.row.executed.text();
    result "TEXT" 1 29 Detail End |call| call.row.result.as_deref();
    content "TEXT" 1 30 Detail End |call| call.row.content.as_deref();
}

/// The index of a column in [`COLUMNS`], and so in every row that is read. An
/// unknown name doesn't compile.
macro_rules! column {
    ($name:ident) => {
        $crate::columns::ColumnNumber::$name as usize
    };
}
pub(crate) use column;

/// The columns that are hashed, in that order. A gap in the numbers doesn't compile.
pub(crate) static DIGESTED: [usize; COUNT - 1] = {
    let mut order = [UNHASHED; COUNT - 1];
    let mut at = 0;
    while at < COUNT {
        if COLUMNS[at].digest != UNHASHED {
            order[COLUMNS[at].digest] = at;
        }
        at += 1;
    }
    let mut at = 0;
    // A number that is missing leaves `UNHASHED` here, which is out of bounds.
    while at < order.len() {
        let _in_bounds = COLUMNS[order[at]].digest;
        at += 1;
    }
    order
};

/// The newest file format: that of the newest column, or `other` if that is newer.
pub(crate) const fn newest_format(other: i64) -> i64 {
    let (mut newest, mut at) = (other, 0);
    while at < COUNT {
        if COLUMNS[at].since > newest {
            newest = COLUMNS[at].since;
        }
        at += 1;
    }
    newest
}

pub(crate) static INSERT: LazyLock<String> = LazyLock::new(|| {
    let marks = ["?"; COUNT].join(", ");
    let names = names();
    // A call may be written twice, once from the queue and once from a spool.
    format!("INSERT INTO calls ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING")
});

/// Takes the values of [`end_values`], then the call's `seq` and its id.
pub(crate) static UPDATE: LazyLock<String> = LazyLock::new(|| {
    let is_start = |column: &Column| matches!(column.written, ColumnSource::Start(_));
    let set = join_columns(|column| (!is_start(column)).then(|| format!("{} = ?", column.name)));
    format!("UPDATE calls SET {set} WHERE seq = ? AND id = ?")
});

pub(crate) static SELECT_BY_SEQ: LazyLock<String> = LazyLock::new(|| {
    let columns = select_list(ColumnSet::Detail);
    format!("SELECT {columns} FROM calls WHERE seq = ?")
});

pub(crate) fn create_table() -> String {
    let columns = join_columns(|column| Some(format!("{} {}", column.name, column.sql)));
    format!("CREATE TABLE calls ({columns});")
}

/// The statements that upgrade the previous format to this one. They add new columns at the
/// end, so lists of old calls with long results read some more pages. Rewriting a large
/// file would cost more.
pub(crate) fn upgrade(format: i64) -> String {
    let new = COLUMNS.iter().filter(|column| column.since == format);
    new.map(|column| {
        let Column { name, sql, .. } = column;
        format!("ALTER TABLE calls ADD COLUMN {name} {sql};")
    })
    .collect()
}

/// The columns in their order, with NULL instead of those that aren't read.
pub(crate) fn select_list(read: ColumnSet) -> String {
    join_columns(
        |column| match read == ColumnSet::List && column.read == ColumnSet::Detail {
            true => Some("NULL".to_owned()),
            false => Some(format!("calls.{}", column.name)),
        },
    )
}

/// The table to read from, with NULL for columns that a file is too old to have.
pub(crate) fn table_expression(connection: &Connection) -> String {
    let missing = COLUMNS
        .iter()
        .filter(|column| column.is_missing(connection));
    let missing = missing.map(|column| format!(", NULL AS {}", column.name));
    match missing.collect::<String>().as_str() {
        "" => "calls".to_owned(),
        missing => format!("(SELECT *{missing} FROM calls) AS calls"),
    }
}

pub(crate) fn names() -> String {
    join_columns(|column| Some(column.name.to_owned()))
}

/// The columns to read from a damaged file of any format. `chained` is left out, because the chain
/// of a damaged file proves nothing.
pub(crate) fn salvage_list(connection: &Connection) -> String {
    join_columns(|column| {
        let is_left_out = column.digest == UNHASHED || column.is_missing(connection);
        Some(if is_left_out { "NULL" } else { column.name }.to_owned())
    })
}

fn join_columns(text: impl Fn(&Column) -> Option<String>) -> String {
    COLUMNS
        .iter()
        .filter_map(text)
        .collect::<Vec<_>>()
        .join(", ")
}

pub(crate) fn values<'a>(
    start: &CallStart<'a>,
    end: Option<&CallEnd<'a>>,
) -> [ValueRef<'a>; COUNT] {
    let mut values = [ValueRef::Null; COUNT];
    for (value, column) in values.iter_mut().zip(&COLUMNS) {
        *value = match (&column.written, end) {
            (ColumnSource::Start(value_of), _) => value_of(start),
            (ColumnSource::End(value_of) | ColumnSource::EndFlag(value_of), Some(end)) => {
                value_of(end)
            }
            (ColumnSource::End(_), None) => continue,
            (ColumnSource::EndFlag(_), None) => ValueRef::Integer(0),
        };
    }
    values
}

pub(crate) fn end_values<'a>(end: &CallEnd<'a>) -> impl Iterator<Item = ValueRef<'a>> {
    COLUMNS
        .iter()
        .filter_map(move |column| match &column.written {
            ColumnSource::Start(_) => None,
            ColumnSource::End(value) | ColumnSource::EndFlag(value) => Some(value(end)),
        })
}

fn int<'a>(number: impl Into<Option<i64>>) -> ValueRef<'a> {
    number.into().map_or(ValueRef::Null, ValueRef::Integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(connection: &Connection) -> Vec<String> {
        let sql = "SELECT name || ' ' || type || \"notnull\" || coalesce(dflt_value, '') || pk
            FROM pragma_table_info('calls')";
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.query_map([], |row| row.get(0)).unwrap();
        columns.map(Result::unwrap).collect()
    }

    #[test]
    fn an_upgraded_table_has_the_columns_of_a_new_one() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&create_table()).unwrap();
        let mut new = columns(&connection);
        for column in COLUMNS.iter().filter(|column| column.since > 1) {
            let sql = format!("ALTER TABLE calls DROP COLUMN {}", column.name);
            connection.execute_batch(&sql).unwrap();
        }
        assert!(columns(&connection).len() < new.len());
        assert!(table_expression(&connection).contains("NULL AS caller"));
        for format in 2..=newest_format(1) {
            connection.execute_batch(&upgrade(format)).unwrap();
        }
        assert_eq!(table_expression(&connection), "calls");
        let mut upgraded = columns(&connection);
        new.sort();
        upgraded.sort();
        assert_eq!(upgraded, new);
    }
}
