//! Deletes what is too old or too much, a little at a time, so that nobody who wants to write waits for long.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};
use tokio::time::Instant;
use tracing::debug;

use crate::chain::{self, Chain};
use crate::evict::{ROWS, Shares};
use crate::health::Health;
use crate::key::Key;
use crate::{JournalSettings, place, takeover, time};

/// How often it looks, besides after much was written.
const PERIOD: Duration = Duration::from_secs(3600);
/// So many bytes of rows are much.
const MUCH: usize = 8 << 20;
/// Pages given back at once.
const PAGES: i64 = 256;
/// Free pages that are kept: the next rows need them.
const SPARE: i64 = 1024;
const DAY: i64 = 86_400 * 1_000_000;

pub(crate) struct Upkeep {
    keep: i64,
    max_size: i64,
    next: Instant,
    written: usize,
    step: Step,
    shares: Shares,
    health: Arc<Health>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Rest,
    /// Calls of processes that are gone.
    Interrupted,
    Age,
    /// Down to so many bytes.
    Size(i64),
    Chain,
    Runs,
    Space,
}

impl Upkeep {
    pub(crate) fn new(settings: &JournalSettings, health: Arc<Health>) -> Self {
        Self {
            keep: i64::from(settings.keep_days) * DAY,
            max_size: i64::try_from(settings.max_size).unwrap_or(i64::MAX),
            next: Instant::now() + PERIOD,
            written: 0,
            step: Step::Interrupted,
            shares: Shares::default(),
            health,
        }
    }

    pub(crate) fn is_resting(&self) -> bool {
        self.step == Step::Rest && self.written < MUCH && Instant::now() < self.next
    }

    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
    }

    /// One small piece of work. What fails is left for the next time.
    pub(crate) fn step(
        &mut self,
        connection: &mut Connection,
        key: Option<&Key>,
        file: &Path,
    ) -> rusqlite::Result<()> {
        let next = match self.step {
            Step::Rest if Instant::now() >= self.next => Ok(Step::Interrupted),
            Step::Rest if self.written >= MUCH => Ok(Step::Size(self.max_size)),
            Step::Rest => Ok(Step::Rest),
            Step::Interrupted => takeover::take_over(connection, file)
                .map(|is_all| if is_all { Step::Age } else { Step::Interrupted }),
            Step::Age => self.age(connection, key),
            Step::Size(wanted) => self.size(connection, key, wanted),
            Step::Chain => trim(connection, key, file),
            Step::Runs => self.runs(connection),
            Step::Space => self.space(connection),
        };
        match next {
            Ok(Step::Rest) => self.rest(),
            Ok(step) => self.step = step,
            Err(error) => {
                debug!(%error, "the journal can not be tidied up now");
                self.rest();
                return Err(error);
            }
        }
        Ok(())
    }

    /// All of it as soon as possible: the file is another one.
    pub(crate) fn begin(&mut self) {
        self.step = Step::Interrupted;
    }

    /// Until the next time.
    pub(crate) fn rest(&mut self) {
        self.step = Step::Rest;
        self.shares = Shares::default();
        self.written = 0;
        self.next = Instant::now() + PERIOD;
    }

    fn oldest(&self) -> i64 {
        time::now() - self.keep
    }

    fn age(&self, connection: &mut Connection, key: Option<&Key>) -> rusqlite::Result<Step> {
        let oldest = place::first_at(self.oldest() / 1000);
        Ok(match delete_before(connection, key, oldest)? {
            0 => Step::Size(self.max_size),
            _ => Step::Age,
        })
    }

    fn size(
        &mut self,
        connection: &mut Connection,
        key: Option<&Key>,
        wanted: i64,
    ) -> rusqlite::Result<Step> {
        let pages = Pages::of(connection)?;
        let excess = (pages.all - pages.free) * pages.size - wanted;
        if excess <= 0 {
            return Ok(self.sized());
        }
        if self.shares.weigh(connection)? {
            return Ok(Step::Size(wanted));
        }
        if !self.shares.evict(connection, key, self.max_size, excess)? {
            return Ok(self.sized());
        }
        // A bit less than allowed, so that this is not needed again at once.
        Ok(Step::Size(self.max_size / 10 * 9))
    }

    fn sized(&mut self) -> Step {
        let evicted = std::mem::take(&mut self.shares).take_evicted();
        self.health.evicts(&evicted, self.max_size);
        Step::Chain
    }

    /// Runs that ended before the oldest call began have none left.
    fn runs(&self, connection: &Connection) -> rusqlite::Result<Step> {
        connection.execute(
            "DELETE FROM runs WHERE ended_at < coalesce((SELECT started_at FROM calls ORDER BY seq LIMIT 1), ?)",
            [self.oldest()],
        )?;
        Ok(Step::Space)
    }

    fn space(&self, connection: &Connection) -> rusqlite::Result<Step> {
        let pages = Pages::of(connection)?;
        let spare = if pages.all * pages.size > self.max_size {
            0
        } else {
            SPARE
        };
        if pages.free <= spare {
            return Ok(Step::Rest);
        }
        let mut statement =
            connection.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        // A file that was not made for it gives nothing back.
        Ok(if Pages::of(connection)?.free < pages.free {
            Step::Space
        } else {
            Step::Rest
        })
    }
}

/// Deletes calls and turns from before a place, the oldest first and not too many at once. Says how many.
fn delete_before(
    connection: &mut Connection,
    key: Option<&Key>,
    place: i64,
) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "SELECT seq FROM calls WHERE seq < ? ORDER BY seq LIMIT ?";
    let mut statement = transaction.prepare(sql)?;
    let oldest = statement.query_map(params![place, ROWS as i64], |row| row.get(0))?;
    let oldest = oldest.collect::<rusqlite::Result<Vec<i64>>>()?;
    drop(statement);
    Chain::resume(&transaction, key)?.evict(&oldest)?;
    let micros = (place >> 20) * 1000 + (place & 0xf_ffff).min(1000);
    let sql =
        "DELETE FROM turns WHERE seq IN (SELECT seq FROM turns WHERE seq < ? ORDER BY seq LIMIT ?)";
    let turns = transaction.execute(sql, params![micros, ROWS as i64])?;
    transaction.commit()?;
    Ok(oldest.len() + turns)
}

fn trim(connection: &mut Connection, key: Option<&Key>, file: &Path) -> rusqlite::Result<Step> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let is_trimmed = Chain::resume(&transaction, key)?.trim()?;
    transaction.commit()?;
    // Nothing may be noted that is trimmed already.
    chain::note(connection, file)?;
    Ok(if is_trimmed { Step::Chain } else { Step::Runs })
}

struct Pages {
    all: i64,
    free: i64,
    size: i64,
}

impl Pages {
    fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get(0));
        Ok(Self {
            all: number("page_count")?,
            free: number("freelist_count")?,
            size: number("page_size")?,
        })
    }
}
