//! Detects what somebody else put into a journal to make it forget calls. A file that came with a
//! folder may look like one of ours and drop every row that is written.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::JournalError;
use crate::store::StoreError;

// Triggers and views are never ours. Neither are clauses that drop a row that clashes, nor virtual
// tables, which run their own code.
const FOREIGN: &str = "
    SELECT type, name FROM sqlite_schema
    WHERE type IN ('trigger', 'view') OR sql LIKE '%CONFLICT%' OR sql LIKE 'CREATE%VIRTUAL%TABLE%'
    LIMIT 1";
// Rows that clash are skipped, since a call may be written twice. So only an id may be unique: if
// the name of a tool were, its second call would be forgotten.
const UNIQUE: &str = "
    SELECT 'index', list.name
    FROM sqlite_schema AS tables, pragma_index_list(tables.name) AS list, pragma_index_info(list.name) AS info
    WHERE tables.type = 'table' AND list.\"unique\" AND info.name IS NOT 'id'
    LIMIT 1";

/// Fails if the schema has anything foreign that decides what is kept.
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
