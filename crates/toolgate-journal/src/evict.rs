//! Decides which calls are deleted when the journal is full.
//!
//! Each caller has a share of the file. A caller is the name of a token or, without one, the origin
//! of the call. Only the caller with the largest share loses calls, oldest first, so no caller can
//! push out the calls of others. Calls of destructive tools and calls that needed an approval form
//! shares of their own. They are deleted only if together they take more than half of the allowed
//! size, or if nothing else is left.

use std::collections::HashMap;

use rusqlite::{Connection, Row, TransactionBehavior, params};

use crate::chain::HashChain;
use crate::key::ChainKey;

// Few enough that no other writer waits long for the transaction.
pub(crate) const MAX_EVICTED_ROWS: usize = 100;
// Reading this many takes about ten milliseconds.
const SCAN_ROWS: i64 = 5000;
// Callers beyond this number share one share, so that made-up names can't fill memory.
const MAX_SHARES: usize = 10_000;
const OTHERS: &str = "@others";

const ROW: &str = "seq, finished, coalesce(caller, '@' || origin) AS who,
    coalesce(destructive, 0) OR coalesce(approval_time, 0) > 0 AS guarded,
    300 + octet_length(asked) + coalesce(octet_length(executed), 0) + coalesce(octet_length(result), 0)
        + coalesce(octet_length(content), 0) AS size";

#[derive(Default)]
pub(crate) struct CallerShares {
    used: HashMap<ShareKey, ShareUsage>,
    // The last call and the last voice turn that are included in the shares.
    measured: (Option<i64>, Option<i64>),
    evicted: HashMap<String, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ShareKey {
    Calls { who: String, is_guarded: bool },
    VoiceTurns,
}

impl ShareKey {
    fn is_guarded(&self) -> bool {
        matches!(self, Self::Calls { is_guarded, .. } if *is_guarded)
    }
}

#[derive(Default)]
struct ShareUsage {
    bytes: i64,
    from: Option<i64>,
}

impl CallerShares {
    /// Adds to the shares what was written since the last time, so that calls written during the
    /// eviction count too. Returns false once everything is included.
    pub(crate) fn measure(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let slice = format!("SELECT {ROW} FROM calls WHERE seq > ? ORDER BY seq LIMIT ?");
        let sql = format!(
            "SELECT who, guarded, sum(size), max(seq), count(*) FROM ({slice}) GROUP BY who, guarded"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![self.measured.0.unwrap_or(i64::MIN), SCAN_ROWS])?;
        let mut seen = 0;
        while let Some(row) = rows.next()? {
            let (who, is_guarded, bytes) = (row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?);
            self.share(who, is_guarded).bytes += bytes;
            self.measured.0 = self.measured.0.max(row.get(3)?);
            seen += row.get::<_, i64>(4)?;
        }
        if seen < SCAN_ROWS {
            self.measure_turns(connection)?;
        }
        Ok(seen == SCAN_ROWS)
    }

    fn measure_turns(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "SELECT sum(200 + octet_length(heard) + octet_length(answer)), max(seq) FROM turns WHERE seq > ?";
        let from = self.measured.1.unwrap_or(i64::MIN);
        let take = |row: &Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?));
        let (bytes, last) = connection.prepare_cached(sql)?.query_row([from], take)?;
        if let Some(bytes) = bytes {
            self.used.entry(ShareKey::VoiceTurns).or_default().bytes += bytes;
            self.measured.1 = last;
        }
        Ok(())
    }

    fn share(&mut self, who: String, is_guarded: bool) -> &mut ShareUsage {
        let mut share = ShareKey::Calls { who, is_guarded };
        if self.used.len() >= MAX_SHARES && !self.used.contains_key(&share) {
            let who = OTHERS.to_owned();
            share = ShareKey::Calls { who, is_guarded };
        }
        self.used.entry(share).or_default()
    }

    /// Deletes some calls or voice turns of the largest share. Returns false if nothing
    /// is left to delete.
    pub(crate) fn evict(
        &mut self,
        connection: &mut Connection,
        key: Option<&ChainKey>,
        max_size: i64,
        excess: i64,
    ) -> rusqlite::Result<bool> {
        let Some((share, next)) = self.largest(max_size) else {
            return Ok(false);
        };
        let Some(used) = self.used.get_mut(&share) else {
            return Ok(false);
        };
        // Only down to the size of the next share, which is the largest from then on.
        let wanted = excess.min((used.bytes - next).max(1));
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = match &share {
            ShareKey::VoiceTurns => delete_oldest_turns(&transaction, wanted)?,
            ShareKey::Calls { who, is_guarded } => {
                let from = used.from.unwrap_or(i64::MIN);
                let found = eviction_batch(&transaction, who, *is_guarded, from, wanted)?;
                HashChain::resume(&transaction, key)?.evict(&found.seqs)?;
                if !found.seqs.is_empty() {
                    *self.evicted.entry(who.clone()).or_default() += found.seqs.len() as u64;
                }
                found
            }
        };
        transaction.commit()?;
        used.from = found.until.or(used.from);
        used.bytes -= found.bytes;
        if found.is_end || used.bytes <= 0 {
            self.used.remove(&share);
        }
        Ok(true)
    }

    /// The largest share, and the size of the next one of its kind.
    fn largest(&self, max_size: i64) -> Option<(ShareKey, i64)> {
        let pool = |is_guarded: bool| {
            let mut pool: Vec<_> = self.used.iter().collect();
            pool.retain(|(share, _)| share.is_guarded() == is_guarded);
            pool.sort_by_key(|(_, used)| -used.bytes);
            pool
        };
        let (guarded, others) = (pool(true), pool(false));
        let bytes: i64 = guarded.iter().map(|(_, used)| used.bytes).sum();
        let chosen = match bytes > max_size / 2 || others.is_empty() {
            true => guarded,
            false => others,
        };
        let next = chosen.get(1).map_or(0, |(_, used)| used.bytes);
        let (share, _) = chosen.first()?;
        Some(((*share).clone(), next))
    }

    pub(crate) fn take_evicted(&mut self) -> HashMap<String, u64> {
        std::mem::take(&mut self.evicted)
    }
}

#[derive(Default)]
struct EvictionBatch {
    seqs: Vec<i64>,
    bytes: i64,
    until: Option<i64>,
    is_end: bool,
}

/// Finds the oldest calls of a share among the next rows. Calls that still run stay, because their
/// end would add them again without their start.
fn eviction_batch(
    connection: &Connection,
    who: &str,
    is_guarded: bool,
    from: i64,
    wanted: i64,
) -> rusqlite::Result<EvictionBatch> {
    let sql = format!("SELECT {ROW} FROM calls WHERE seq > ? ORDER BY seq LIMIT ?");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![from, SCAN_ROWS])?;
    let (mut found, mut seen) = (EvictionBatch::default(), 0);
    while let Some(row) = rows.next()? {
        seen += 1;
        let seq = row.get(0)?;
        found.until = Some(seq);
        let name = row.get_ref(2)?.as_str().unwrap_or_default();
        let is_ours = (name == who || who == OTHERS) && row.get::<_, bool>(3)? == is_guarded;
        if is_ours && row.get_ref(1)?.as_i64().is_ok() {
            found.seqs.push(seq);
            found.bytes += row.get::<_, i64>(4)?;
            if found.bytes >= wanted || found.seqs.len() == MAX_EVICTED_ROWS {
                return Ok(found);
            }
        }
    }
    found.is_end = seen < SCAN_ROWS;
    Ok(found)
}

fn delete_oldest_turns(connection: &Connection, wanted: i64) -> rusqlite::Result<EvictionBatch> {
    let sql = "DELETE FROM turns WHERE seq IN (SELECT seq FROM
            (SELECT seq, sum(200 + octet_length(heard) + octet_length(answer)) OVER (ORDER BY seq)
                - (200 + octet_length(heard) + octet_length(answer)) AS before
             FROM (SELECT * FROM turns ORDER BY seq LIMIT ?1)) WHERE before < ?2)
        RETURNING 200 + octet_length(heard) + octet_length(answer)";
    let mut statement = connection.prepare_cached(sql)?;
    let sizes = statement.query_map(params![MAX_EVICTED_ROWS as i64, wanted], |row| row.get(0))?;
    let sizes = sizes.collect::<rusqlite::Result<Vec<i64>>>()?;
    Ok(EvictionBatch {
        bytes: sizes.iter().sum(),
        is_end: sizes.is_empty(),
        ..EvictionBatch::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SyncMode, store};

    const MAX_SIZE: i64 = 100_000;

    fn write(connection: &Connection, seq: i64, is_destructive: bool) {
        let sql = "INSERT INTO calls (seq, id, run, tool, source, origin, started_at, asked, is_as_asked, finished, result, destructive)
            VALUES (?1, ?1, 1, 'tool', 'builtin', 'mcp', ?1, '{}', 1, 1, ?2, ?3)";
        let values = params![seq, "x".repeat(1000), is_destructive];
        connection.execute(sql, values).unwrap();
    }

    #[test]
    fn calls_written_during_eviction_are_evicted_before_destructive_ones() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let mut connection =
            store::open(&file, SyncMode::Normal, store::CheckDepth::Quick).unwrap();
        let run = "INSERT INTO runs (seq, id, command, pid, version, started_at) VALUES (1, 'a', 'serve', 1, '1', 1)";
        connection.execute_batch(run).unwrap();
        write(&connection, 1, true);
        (2..5).for_each(|seq| write(&connection, seq, false));
        let mut shares = CallerShares::default();
        while shares.measure(&connection).unwrap() {}
        assert!(
            shares
                .evict(&mut connection, None, MAX_SIZE, 10_000)
                .unwrap()
        );
        (5..8).for_each(|seq| write(&connection, seq, false));
        while shares.measure(&connection).unwrap() {}
        assert!(
            shares
                .evict(&mut connection, None, MAX_SIZE, 10_000)
                .unwrap()
        );
        let left = "SELECT group_concat(seq) FROM calls";
        let left: String = connection.query_row(left, [], |row| row.get(0)).unwrap();
        assert_eq!(left, "1");
    }
}
