//! Detects triggers, views and indexes that somebody put into a journal to make it lose calls. A
//! file that was copied from elsewhere may look like a journal and drop every row that is written.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::JournalError;
use crate::store::StoreError;

// A journal has no triggers, no views, no clauses that drop conflicting rows, and no virtual
// tables, which run their own code.
const FOREIGN: &str = "
    SELECT type, name FROM sqlite_schema
    WHERE type IN ('trigger', 'view') OR sql LIKE '%CONFLICT%' OR sql LIKE 'CREATE%VIRTUAL%TABLE%'
    LIMIT 1";
// Conflicting rows are skipped when they are inserted, since a call may be written twice. So only
// ids may be unique: if the names of tools were unique, the second call of a tool would be lost.
const UNIQUE: &str = "
    SELECT 'index', list.name
    FROM sqlite_schema AS tables, pragma_index_list(tables.name) AS list, pragma_index_info(list.name) AS info
    WHERE tables.type = 'table' AND list.\"unique\" AND info.name IS NOT 'id'
    LIMIT 1";

/// Fails if the schema has something foreign that could keep rows from being stored.
pub(crate) fn check(connection: &Connection, file: &Path) -> Result<(), StoreError> {
    for query in [FOREIGN, UNIQUE] {
        let found = connection.query_row(query, [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        });
        if let Some((kind, name)) = found.optional()? {
            let file = file.to_owned();
            return Err(JournalError::Tampered { file, kind, name }.into());
        }
    }
    Ok(())
}
