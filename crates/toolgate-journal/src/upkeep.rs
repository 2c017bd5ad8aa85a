//! Deletes what is too old or too much, a little at a time, so that nobody who wants to write waits for long.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, params};
use tokio::time::Instant;
use tracing::debug;

use crate::{JournalSettings, place, takeover, time};

/// How often it looks, besides after much was written.
const PERIOD: Duration = Duration::from_secs(3600);
/// So many bytes of rows are much.
const MUCH: usize = 8 << 20;
/// Rows deleted at once.
const ROWS: i64 = 100;
/// Pages given back at once.
const PAGES: i64 = 256;
/// Free pages that are kept: the next rows need them.
const SPARE: i64 = 1024;
const DAY: i64 = 86_400 * 1_000_000;

/// Up to which place the oldest calls and turns have to go to get rid of some bytes, but not too many rows at once.
const HORIZON: &str = "
    SELECT max(at) FROM
        (SELECT at, sum(size) OVER (ORDER BY at ROWS UNBOUNDED PRECEDING) - size AS before FROM
            (SELECT * FROM
                (SELECT seq AS at, 200 + octet_length(asked) + coalesce(octet_length(executed), 0)
                    + coalesce(octet_length(result), 0) + coalesce(octet_length(content), 0) AS size
                 FROM calls ORDER BY seq LIMIT ?1)
             UNION ALL SELECT * FROM
                (SELECT seq / 1000 << 20 | seq % 1000, 200 + octet_length(heard) + octet_length(answer) FROM turns ORDER BY seq LIMIT ?1)
             ORDER BY at LIMIT ?1))
    WHERE before < ?2";

pub(crate) struct Upkeep {
    keep: i64,
    max_size: i64,
    next: Instant,
    written: usize,
    step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Rest,
    /// Calls of processes that are gone.
    Interrupted,
    Age,
    /// Down to so many bytes.
    Size(i64),
    Runs,
    Space,
}

impl Upkeep {
    pub(crate) fn new(settings: &JournalSettings) -> Self {
        Self {
            keep: i64::from(settings.keep_days) * DAY,
            max_size: i64::try_from(settings.max_size).unwrap_or(i64::MAX),
            next: Instant::now() + PERIOD,
            written: 0,
            step: Step::Interrupted,
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
        file: &Path,
    ) -> rusqlite::Result<()> {
        let next = match self.step {
            Step::Rest if Instant::now() >= self.next => Ok(Step::Interrupted),
            Step::Rest if self.written >= MUCH => Ok(Step::Size(self.max_size)),
            Step::Rest => Ok(Step::Rest),
            Step::Interrupted => takeover::take_over(connection, file)
                .map(|is_all| if is_all { Step::Age } else { Step::Interrupted }),
            Step::Age => self.age(connection),
            Step::Size(wanted) => self.size(connection, wanted),
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
        self.written = 0;
        self.next = Instant::now() + PERIOD;
    }

    fn oldest(&self) -> i64 {
        time::now() - self.keep
    }

    fn age(&self, connection: &Connection) -> rusqlite::Result<Step> {
        Ok(
            match delete_before(connection, place::first_at(self.oldest() / 1000))? {
                0 => Step::Size(self.max_size),
                _ => Step::Age,
            },
        )
    }

    fn size(&self, connection: &Connection, wanted: i64) -> rusqlite::Result<Step> {
        let pages = Pages::of(connection)?;
        let excess = (pages.all - pages.free) * pages.size - wanted;
        if excess <= 0 {
            return Ok(Step::Runs);
        }
        let horizon: Option<i64> =
            connection.query_row(HORIZON, params![ROWS, excess], |row| row.get(0))?;
        let Some(horizon) = horizon else {
            return Ok(Step::Runs);
        };
        delete_before(connection, horizon + 1)?;
        // A bit less than allowed, so that this is not needed again at once.
        Ok(Step::Size(self.max_size / 10 * 9))
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
fn delete_before(connection: &Connection, place: i64) -> rusqlite::Result<usize> {
    let micros = (place >> 20) * 1000 + (place & 0xf_ffff).min(1000);
    let mut deleted = 0;
    for (table, end) in [("calls", place), ("turns", micros)] {
        let oldest = format!("SELECT seq FROM {table} WHERE seq < ? ORDER BY seq LIMIT ?");
        let sql = format!("DELETE FROM {table} WHERE seq IN ({oldest})");
        deleted += connection.execute(&sql, params![end, ROWS])?;
    }
    Ok(deleted)
}

/// How the file is divided.
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
