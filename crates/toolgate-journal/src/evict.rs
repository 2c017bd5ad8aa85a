//! Which calls make room when a journal is full: those of whoever takes most of it, and what can't be undone last.
//!
//! Each caller has a share: the name of a token, or where there is none what asked. Only the one with the largest share
//! loses calls, the oldest first, so nobody can push out what others did. Calls of destructive tools and those a person was
//! asked about are apart: they make room only where they take more than half of the file, or nothing else is left.

use std::collections::HashMap;

use rusqlite::{Connection, Row, TransactionBehavior, params};

use crate::chain::Chain;
use crate::key::Key;

/// Rows deleted at once.
pub(crate) const ROWS: usize = 100;
/// Rows looked at at once: some ten milliseconds.
const SLICE: i64 = 5000;
/// More callers than this share one share.
const MOST_SHARES: usize = 10_000;
const OTHERS: &str = "@others";

const ROW: &str = "seq, finished, coalesce(caller, '@' || origin) AS who,
    coalesce(destructive, 0) OR coalesce(approval_time, 0) > 0 AS guarded,
    300 + octet_length(asked) + coalesce(octet_length(executed), 0) + coalesce(octet_length(result), 0)
        + coalesce(octet_length(content), 0) AS size";

/// What each caller takes of the journal.
#[derive(Default)]
pub(crate) struct Shares {
    used: HashMap<Share, Used>,
    /// Up to which call, and which voice turn, they are weighed.
    weighed: (Option<i64>, Option<i64>),
    /// Calls that were deleted since the last time this was asked.
    evicted: HashMap<String, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Share {
    Calls { who: String, is_guarded: bool },
    VoiceTurns,
}

impl Share {
    fn is_guarded(&self) -> bool {
        matches!(self, Self::Calls { is_guarded, .. } if *is_guarded)
    }
}

#[derive(Default)]
struct Used {
    bytes: i64,
    /// Everything up to this place is looked through.
    from: Option<i64>,
}

impl Shares {
    /// Weighs what was written since the last time: whoever writes while others make room takes part. False once everything
    /// is weighed.
    pub(crate) fn weigh(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let slice = format!("SELECT {ROW} FROM calls WHERE seq > ? ORDER BY seq LIMIT ?");
        let sql = format!(
            "SELECT who, guarded, sum(size), max(seq), count(*) FROM ({slice}) GROUP BY who, guarded"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![self.weighed.0.unwrap_or(i64::MIN), SLICE])?;
        let mut seen = 0;
        while let Some(row) = rows.next()? {
            let (who, is_guarded, bytes) = (row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?);
            self.share(who, is_guarded).bytes += bytes;
            self.weighed.0 = self.weighed.0.max(row.get(3)?);
            seen += row.get::<_, i64>(4)?;
        }
        if seen < SLICE {
            self.weigh_turns(connection)?;
        }
        Ok(seen == SLICE)
    }

    fn weigh_turns(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "SELECT sum(200 + octet_length(heard) + octet_length(answer)), max(seq) FROM turns WHERE seq > ?";
        let from = self.weighed.1.unwrap_or(i64::MIN);
        let take = |row: &Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?));
        let (bytes, last) = connection.prepare_cached(sql)?.query_row([from], take)?;
        if let Some(bytes) = bytes {
            self.used.entry(Share::VoiceTurns).or_default().bytes += bytes;
            self.weighed.1 = last;
        }
        Ok(())
    }

    fn share(&mut self, who: String, is_guarded: bool) -> &mut Used {
        let mut share = Share::Calls { who, is_guarded };
        if self.used.len() >= MOST_SHARES && !self.used.contains_key(&share) {
            let who = OTHERS.to_owned();
            share = Share::Calls { who, is_guarded };
        }
        self.used.entry(share).or_default()
    }

    /// Deletes some calls, or voice turns, of the largest share. False if there is nothing left to delete.
    pub(crate) fn evict(
        &mut self,
        connection: &mut Connection,
        key: Option<&Key>,
        max_size: i64,
        excess: i64,
    ) -> rusqlite::Result<bool> {
        let Some((share, next)) = self.largest(max_size) else {
            return Ok(false);
        };
        let Some(used) = self.used.get_mut(&share) else {
            return Ok(false);
        };
        // Down to what the next one takes: then it is their turn.
        let wanted = excess.min((used.bytes - next).max(1));
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = match &share {
            Share::VoiceTurns => delete_turns(&transaction, wanted)?,
            Share::Calls { who, is_guarded } => {
                let from = used.from.unwrap_or(i64::MIN);
                let found = victims(&transaction, who, *is_guarded, from, wanted)?;
                Chain::resume(&transaction, key)?.evict(&found.seqs)?;
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

    /// The share that makes room now, and the bytes of the next one of its kind.
    fn largest(&self, max_size: i64) -> Option<(Share, i64)> {
        let pool = |is_guarded: bool| {
            let of_kind = move |(share, _): &(&Share, &Used)| share.is_guarded() == is_guarded;
            let mut pool: Vec<_> = self.used.iter().filter(of_kind).collect();
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

    /// How many calls of each caller were deleted since the last time.
    pub(crate) fn take_evicted(&mut self) -> HashMap<String, u64> {
        std::mem::take(&mut self.evicted)
    }
}

/// What can be deleted of a share.
#[derive(Default)]
struct Found {
    seqs: Vec<i64>,
    bytes: i64,
    until: Option<i64>,
    /// There are no more.
    is_end: bool,
}

/// The oldest calls of a share in the next slice. Calls that run stay: their end would come back without its beginning.
fn victims(
    connection: &Connection,
    who: &str,
    is_guarded: bool,
    from: i64,
    wanted: i64,
) -> rusqlite::Result<Found> {
    let sql = format!("SELECT {ROW} FROM calls WHERE seq > ? ORDER BY seq LIMIT ?");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![from, SLICE])?;
    let (mut found, mut seen) = (Found::default(), 0);
    while let Some(row) = rows.next()? {
        seen += 1;
        let seq = row.get(0)?;
        found.until = Some(seq);
        let name = row.get_ref(2)?.as_str().unwrap_or_default();
        let is_ours = (name == who || who == OTHERS) && row.get::<_, bool>(3)? == is_guarded;
        if is_ours && row.get_ref(1)?.as_i64().is_ok() {
            found.seqs.push(seq);
            found.bytes += row.get::<_, i64>(4)?;
            if found.bytes >= wanted || found.seqs.len() == ROWS {
                return Ok(found);
            }
        }
    }
    found.is_end = seen < SLICE;
    Ok(found)
}

fn delete_turns(connection: &Connection, wanted: i64) -> rusqlite::Result<Found> {
    let sql = "DELETE FROM turns WHERE seq IN (SELECT seq FROM
            (SELECT seq, sum(200 + octet_length(heard) + octet_length(answer)) OVER (ORDER BY seq)
                - (200 + octet_length(heard) + octet_length(answer)) AS before
             FROM (SELECT * FROM turns ORDER BY seq LIMIT ?1)) WHERE before < ?2)
        RETURNING 200 + octet_length(heard) + octet_length(answer)";
    let mut statement = connection.prepare_cached(sql)?;
    let sizes = statement.query_map(params![ROWS as i64, wanted], |row| row.get(0))?;
    let sizes = sizes.collect::<rusqlite::Result<Vec<i64>>>()?;
    Ok(Found {
        bytes: sizes.iter().sum(),
        is_end: sizes.is_empty(),
        ..Found::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sync, store};

    const MAX_SIZE: i64 = 100_000;

    /// A call that ended, with a result of a kilobyte.
    fn write(connection: &Connection, seq: i64, is_destructive: bool) {
        let sql = "INSERT INTO calls (seq, id, run, tool, source, origin, started_at, asked, is_as_asked, finished, result, destructive)
            VALUES (?1, ?1, 1, 'tool', 'builtin', 'mcp', ?1, '{}', 1, 1, ?2, ?3)";
        let values = params![seq, "x".repeat(1000), is_destructive];
        connection.execute(sql, values).unwrap();
    }

    #[test]
    fn calls_written_while_others_make_room_go_before_what_cannot_be_undone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let mut connection = store::open(&file, Sync::Normal, store::Look::Quick).unwrap();
        let run = "INSERT INTO runs (seq, id, command, pid, version, started_at) VALUES (1, 'a', 'serve', 1, '1', 1)";
        connection.execute_batch(run).unwrap();
        write(&connection, 1, true);
        (2..5).for_each(|seq| write(&connection, seq, false));
        let mut shares = Shares::default();
        while shares.weigh(&connection).unwrap() {}
        assert!(
            shares
                .evict(&mut connection, None, MAX_SIZE, 10_000)
                .unwrap()
        );
        (5..8).for_each(|seq| write(&connection, seq, false));
        while shares.weigh(&connection).unwrap() {}
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
