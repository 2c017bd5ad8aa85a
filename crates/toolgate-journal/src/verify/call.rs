//! Verifies a single call by its own row and entry.

use rusqlite::{Connection, OptionalExtension, params};

use super::{OLDER_THAN_CHAIN, key_for, uncovered_until};
use crate::key::ChainKey;
use crate::seq::{self, MAX_PROBES};
use crate::{chain, digest};

pub(super) fn verify_call(
    connection: &Connection,
    key: Option<&ChainKey>,
    id: &str,
) -> rusqlite::Result<Option<String>> {
    let first = seq::for_id(id);
    let sql = "SELECT seq, chained FROM calls WHERE seq >= ? AND seq < ? AND id = ?";
    let found = connection.query_row(sql, params![first, first + MAX_PROBES, id], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
    });
    let Some((seq, chained)) = found.optional()? else {
        return Ok(Some("its id was changed".to_owned()));
    };
    let Some(n) = chained else {
        let is_older = seq <= uncovered_until(connection)?;
        let text = if is_older {
            OLDER_THAN_CHAIN
        } else {
            "Toolgate didn't record it: it is not in the hash chain"
        };
        return Ok(Some(text.to_owned()));
    };
    let entry = chain::entry(connection, n)?;
    let entry = entry.filter(|entry| entry.row == seq);
    let Some(entry) = entry else {
        return Ok(Some("it has no entry in the hash chain".to_owned()));
    };
    if digest::call_digest(connection, seq)? != Some(entry.digest) {
        return Ok(Some("its row was changed since".to_owned()));
    }
    // The oldest entry that is kept has nothing before it to check against.
    let before = chain::entry(connection, n - 1)?;
    let is_linked = before.is_none_or(|before| {
        key_for(key, &entry).is_none_or(|key| entry.expected_hash(key, &before.hash) == entry.hash)
    });
    let is_keyed = key.is_none() || entry.key.is_some();
    Ok(match is_linked && is_keyed {
        true => None,
        false => Some("its entry in the hash chain was changed".to_owned()),
    })
}
