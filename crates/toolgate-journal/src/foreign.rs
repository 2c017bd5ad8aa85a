//! What somebody else put into a journal, so that it forgets calls: a file that came with a folder
//! may look like one of ours and drop every row that is written.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::JournalError;
use crate::store::Unusable;

/// Triggers and views are never ours. Neither are clauses that drop a row that clashes, nor virtual
/// tables, which run code of their own.
const FOREIGN: &str = "
    SELECT type, name FROM sqlite_schema
    WHERE type IN ('trigger', 'view') OR sql LIKE '%CONFLICT%' OR sql LIKE 'CREATE%VIRTUAL%TABLE%'
    LIMIT 1";
/// Rows that clash are left out, since a call may be written twice. So nothing but an id may be
/// unique: were the name of a tool, its second call would be forgotten.
const UNIQUE: &str = "
    SELECT 'index', list.name
    FROM sqlite_schema AS tables, pragma_index_list(tables.name) AS list, pragma_index_info(list.name) AS info
    WHERE tables.type = 'table' AND list.\"unique\" AND info.name IS NOT 'id'
    LIMIT 1";

/// Refuses a file with anything in it that isn't ours and decides what is kept.
pub(crate) fn check(connection: &Connection, file: &Path) -> Result<(), Unusable> {
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
