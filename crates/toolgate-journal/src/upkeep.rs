//! Deletes old calls and keeps the file within its maximum size. Works in small steps, so that no
//! other writer waits long.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};
use tokio::time::Instant;
use tracing::debug;

use crate::chain::{self, HashChain};
use crate::evict::{CallerShares, MAX_EVICTED_ROWS};
use crate::health::HealthMonitor;
use crate::key::ChainKey;
use crate::{JournalSettings, seq, takeover, task_rows, time};

// The time between two rounds, unless much was written.
const INTERVAL: Duration = Duration::from_secs(3600);
// After this many bytes of rows, the size is checked without waiting for the next round.
const BYTES_BEFORE_SIZE_CHECK: usize = 8 << 20;
// Few, so that one step is short.
const PAGES_PER_STEP: i64 = 256;
// Free pages to keep, because the next rows need them.
const SPARE_PAGES: i64 = 1024;
const DAY: i64 = 86_400 * 1_000_000;

pub(crate) struct Upkeep {
    keep: i64,
    max_size: i64,
    next: Instant,
    written: usize,
    step: UpkeepStep,
    shares: CallerShares,
    health: Arc<HealthMonitor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpkeepStep {
    Idle,
    TakeOverRuns,
    DeleteExpired,
    /// Shrinks the file to this many bytes.
    Shrink(i64),
    TrimChain,
    DeleteRuns,
    ReleasePages,
}

impl Upkeep {
    pub(crate) fn new(settings: &JournalSettings, health: Arc<HealthMonitor>) -> Self {
        Self {
            keep: i64::from(settings.keep_days) * DAY,
            max_size: i64::try_from(settings.max_size).unwrap_or(i64::MAX),
            next: Instant::now() + INTERVAL,
            written: 0,
            step: UpkeepStep::TakeOverRuns,
            shares: CallerShares::default(),
            health,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.step == UpkeepStep::Idle
            && self.written < BYTES_BEFORE_SIZE_CHECK
            && Instant::now() < self.next
    }

    pub(crate) fn add_written(&mut self, bytes: usize) {
        self.written += bytes;
    }

    pub(crate) fn step(
        &mut self,
        connection: &mut Connection,
        key: Option<&ChainKey>,
        file: &Path,
    ) -> rusqlite::Result<()> {
        let next = match self.step {
            UpkeepStep::Idle if Instant::now() >= self.next => Ok(UpkeepStep::TakeOverRuns),
            UpkeepStep::Idle if self.written >= BYTES_BEFORE_SIZE_CHECK => {
                Ok(UpkeepStep::Shrink(self.max_size))
            }
            UpkeepStep::Idle => Ok(UpkeepStep::Idle),
            UpkeepStep::TakeOverRuns => match takeover::take_over(connection, file) {
                Ok(true) => Ok(UpkeepStep::DeleteExpired),
                Ok(false) => Ok(UpkeepStep::TakeOverRuns),
                Err(error) => Err(error),
            },
            UpkeepStep::DeleteExpired => self.delete_expired(connection, key),
            UpkeepStep::Shrink(wanted) => self.shrink(connection, key, wanted),
            UpkeepStep::TrimChain => trim_chain(connection, key, file),
            UpkeepStep::DeleteRuns => self.delete_runs(connection),
            UpkeepStep::ReleasePages => self.release_pages(connection),
        };
        match next {
            Ok(UpkeepStep::Idle) => self.finish_round(),
            Ok(step) => self.step = step,
            Err(error) => {
                debug!(%error, "old calls can't be deleted from the journal now");
                self.finish_round();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Starts a round as soon as possible, because the file was replaced.
    pub(crate) fn restart(&mut self) {
        self.step = UpkeepStep::TakeOverRuns;
    }

    pub(crate) fn finish_round(&mut self) {
        self.step = UpkeepStep::Idle;
        self.shares = CallerShares::default();
        self.written = 0;
        self.next = Instant::now() + INTERVAL;
    }

    fn oldest(&self) -> i64 {
        time::now() - self.keep
    }

    fn delete_expired(
        &self,
        connection: &mut Connection,
        key: Option<&ChainKey>,
    ) -> rusqlite::Result<UpkeepStep> {
        task_rows::delete_expired(connection)?;
        let oldest = seq::first_at(self.oldest() / 1000);
        Ok(match delete_before(connection, key, oldest)? {
            0 => UpkeepStep::Shrink(self.max_size),
            _ => UpkeepStep::DeleteExpired,
        })
    }

    fn shrink(
        &mut self,
        connection: &mut Connection,
        key: Option<&ChainKey>,
        wanted: i64,
    ) -> rusqlite::Result<UpkeepStep> {
        let pages = PageCounts::read(connection)?;
        let excess = (pages.all - pages.free) * pages.size - wanted;
        if excess <= 0 {
            return Ok(self.finish_shrinking());
        }
        if self.shares.measure(connection)? {
            return Ok(UpkeepStep::Shrink(wanted));
        }
        if !self.shares.evict(connection, key, self.max_size, excess)? {
            return Ok(self.finish_shrinking());
        }
        // Below the limit, so that the next rows don't exceed it again at once.
        Ok(UpkeepStep::Shrink(self.max_size / 10 * 9))
    }

    fn finish_shrinking(&mut self) -> UpkeepStep {
        let evicted = std::mem::take(&mut self.shares).take_evicted();
        self.health.record_evictions(&evicted, self.max_size);
        UpkeepStep::TrimChain
    }

    // Runs that ended before the oldest call began have no calls left.
    fn delete_runs(&self, connection: &Connection) -> rusqlite::Result<UpkeepStep> {
        connection.execute(
            "DELETE FROM runs WHERE ended_at < coalesce((SELECT started_at FROM calls ORDER BY seq LIMIT 1), ?)",
            [self.oldest()],
        )?;
        Ok(UpkeepStep::ReleasePages)
    }

    fn release_pages(&self, connection: &Connection) -> rusqlite::Result<UpkeepStep> {
        let pages = PageCounts::read(connection)?;
        let is_too_large = pages.all * pages.size > self.max_size;
        if pages.free <= if is_too_large { 0 } else { SPARE_PAGES } {
            return Ok(UpkeepStep::Idle);
        }
        let mut statement =
            connection.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES_PER_STEP})"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        // A file without incremental vacuum releases nothing. Without this check the step would
        // repeat forever.
        Ok(if PageCounts::read(connection)?.free < pages.free {
            UpkeepStep::ReleasePages
        } else {
            UpkeepStep::Idle
        })
    }
}

/// Deletes a limited number of calls before this `seq`, and of turns before the same time, oldest
/// first. Returns how many were deleted.
fn delete_before(
    connection: &mut Connection,
    key: Option<&ChainKey>,
    seq: i64,
) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "SELECT seq FROM calls WHERE seq < ? ORDER BY seq LIMIT ?";
    let mut statement = transaction.prepare(sql)?;
    let oldest = statement.query_map(params![seq, MAX_EVICTED_ROWS as i64], |row| row.get(0))?;
    let oldest = oldest.collect::<rusqlite::Result<Vec<i64>>>()?;
    drop(statement);
    HashChain::resume(&transaction, key)?.evict(&oldest)?;
    let micros = (seq >> 20) * 1000 + (seq & 0xf_ffff).min(1000);
    let sql =
        "DELETE FROM turns WHERE seq IN (SELECT seq FROM turns WHERE seq < ? ORDER BY seq LIMIT ?)";
    let turns = transaction.execute(sql, params![micros, MAX_EVICTED_ROWS as i64])?;
    transaction.commit()?;
    Ok(oldest.len() + turns)
}

fn trim_chain(
    connection: &mut Connection,
    key: Option<&ChainKey>,
    file: &Path,
) -> rusqlite::Result<UpkeepStep> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let is_trimmed = HashChain::resume(&transaction, key)?.trim()?;
    transaction.commit()?;
    // The saved head must not be an entry that is trimmed already.
    chain::save_head(connection, file)?;
    Ok(if is_trimmed {
        UpkeepStep::TrimChain
    } else {
        UpkeepStep::DeleteRuns
    })
}

struct PageCounts {
    all: i64,
    free: i64,
    size: i64,
}

impl PageCounts {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get(0));
        Ok(Self {
            all: number("page_count")?,
            free: number("freelist_count")?,
            size: number("page_size")?,
        })
    }
}
