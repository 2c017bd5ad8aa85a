//! Verifies the whole chain, and what it says about calls.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::{HashChainProblem, VerifyOptions, VerifyReport, key_for, uncovered_until};
use crate::chain::{self, ChainEntry, EntryKind, NO_HASH, SELECT};
use crate::columns::{SELECT_BY_SEQ, column};
use crate::head::ChainHead;
use crate::key::{ChainHash, ChainKey, hex};
use crate::{digest, time};

// How many entries around a wrong one are searched for its original position.
const SEARCH_DISTANCE: i64 = 16;

pub(super) struct ChainVerifier<'a> {
    connection: &'a Connection,
    key: Option<&'a ChainKey>,
    expect: Option<ChainHash>,
    expected_at: Option<i64>,
    report: VerifyReport,
    // The `seq` of calls that are missing, with the number of their entry. A later entry may still
    // say that they were deleted.
    missing: HashMap<i64, i64>,
    uncovered_until: i64,
    trimmed: Option<ChainEntry>,
}

impl<'a> ChainVerifier<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        key: Option<&'a ChainKey>,
        expect: Option<ChainHash>,
    ) -> Self {
        Self {
            connection,
            key,
            expect,
            expected_at: None,
            report: VerifyReport::default(),
            missing: HashMap::new(),
            uncovered_until: 0,
            trimmed: None,
        }
    }

    pub(super) fn run(
        mut self,
        options: &VerifyOptions,
        head: Option<ChainHead>,
    ) -> rusqlite::Result<VerifyReport> {
        let Some(last) = chain::last(self.connection)? else {
            let text = "the whole hash chain is gone";
            self.report
                .add_finding(HashChainProblem::Missing, None, None, text);
            return Ok(self.report);
        };
        let oldest = chain::first(self.connection)?.unwrap_or(last.n);
        let newest = options.newest.map(i64::from);
        let from = newest.map_or(oldest, |newest| (last.n - newest).max(oldest));
        self.report.is_partial = from > oldest;
        (self.report.head_entry, self.report.head) = (last.n, hex(&last.hash));
        self.report.is_keyed = last.key.is_some() && last.key == self.key.map(|key| key.id);
        self.uncovered_until = uncovered_until(self.connection)?;
        self.check_entries(from)?;
        self.check_rows(options.newest)?;
        self.report_missing();
        self.check_count(&last)?;
        self.check_head(head, &last)?;
        self.check_expected_hash(options, oldest);
        self.check_key(&last);
        Ok(self.report)
    }

    fn check_entries(&mut self, from: i64) -> rusqlite::Result<()> {
        let sql = format!("{SELECT} WHERE n >= ? ORDER BY n");
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query([from])?;
        let (mut first, mut before): (Option<ChainEntry>, Option<ChainEntry>) = (None, None);
        while let Some(row) = rows.next()? {
            let entry = ChainEntry::read(row)?;
            self.report.entries += 1;
            if Some(entry.hash) == self.expect {
                self.expected_at = Some(entry.n);
            }
            match &before {
                Some(before) => self.check_link(before, &entry)?,
                None => {
                    first = Some(entry.clone());
                    self.check_first(&entry);
                }
            }
            // The oldest kept entry was carried forward when it was trimmed, so its content is
            // checked there.
            let is_anchor = before.is_none() && !self.report.is_partial;
            self.check_content(&entry, is_anchor)?;
            before = Some(entry);
        }
        let was_trimmed = |first: &ChainEntry| {
            let trimmed = self.trimmed.as_ref();
            trimmed.is_some_and(|last| (last.row, last.digest) == (first.n, first.hash))
        };
        if let Some(first) = first
            && first.kind != Some(EntryKind::Begin)
            && !self.report.is_partial
            && !was_trimmed(&first)
        {
            let text = format!(
                "entries before #{} are missing, and nothing says that they were trimmed",
                first.n
            );
            self.report
                .add_finding(HashChainProblem::Missing, first.n, None, text);
        }
        Ok(())
    }

    fn check_first(&mut self, entry: &ChainEntry) {
        if entry.kind != Some(EntryKind::Begin) {
            return;
        }
        let expected = key_for(self.key, entry).map(|key| entry.expected_hash(key, &NO_HASH));
        if expected.is_some_and(|expected| expected != entry.hash) {
            let text = "the first entry was changed";
            self.report
                .add_finding(HashChainProblem::Changed, entry.n, None, text);
        }
        if entry.digest != NO_HASH {
            self.report.notes.push(format!(
                "this journal begins with entry #{}; the one before it ended with the head {}",
                entry.n,
                hex(&entry.digest)
            ));
        }
    }

    fn check_link(&mut self, before: &ChainEntry, entry: &ChainEntry) -> rusqlite::Result<()> {
        let gap = entry.n - before.n - 1;
        let is_recorded = entry.kind == Some(EntryKind::Lost) && entry.row == gap;
        if gap > 0 && !is_recorded {
            let text = match gap {
                1 => format!("entry #{} is missing", before.n + 1),
                _ => format!("entries #{} to #{} are missing", before.n + 1, entry.n - 1),
            };
            self.report
                .add_finding(HashChainProblem::Missing, entry.n, None, text);
            return Ok(());
        }
        let Some(key) = key_for(self.key, entry) else {
            if before.key != entry.key {
                self.report.notes.push(format!(
                    "entries from #{} on were made with a key that isn't here, so their hashes can't be checked",
                    entry.n
                ));
            }
            return Ok(());
        };
        if self.key.is_some() && before.key.is_some() && entry.key.is_none() {
            let text = format!("entry #{} was made without the key", entry.n);
            self.report
                .add_finding(HashChainProblem::Foreign, entry.n, None, text);
        }
        if entry.expected_hash(key, &before.hash) == entry.hash {
            return Ok(());
        }
        let call = self.id_at(entry.row)?;
        let of_call = call
            .as_ref()
            .map_or(String::new(), |id| format!(", of call {id},"));
        if self.was_moved(key, entry)? {
            let text = format!(
                "entry #{}{of_call} was moved: another one was written there",
                entry.n
            );
            self.report
                .add_finding(HashChainProblem::OutOfOrder, entry.n, call, text);
        } else {
            let text = format!("entry #{}{of_call} was changed", entry.n);
            self.report
                .add_finding(HashChainProblem::Changed, entry.n, call, text);
        }
        Ok(())
    }

    /// True if the entry's hash would be right at a nearby position, after one of its neighbors.
    fn was_moved(&self, key: Option<&ChainKey>, entry: &ChainEntry) -> rusqlite::Result<bool> {
        let sql = format!("{SELECT} WHERE n >= ? AND n <= ?");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let near = statement.query_map(
            params![entry.n - SEARCH_DISTANCE - 1, entry.n + SEARCH_DISTANCE],
            ChainEntry::read,
        )?;
        let near = near.collect::<rusqlite::Result<Vec<ChainEntry>>>()?;
        let mut moved = entry.clone();
        Ok(
            (entry.n - SEARCH_DISTANCE..=entry.n + SEARCH_DISTANCE).any(|n| {
                moved.n = n;
                near.iter()
                    .any(|before| moved.expected_hash(key, &before.hash) == entry.hash)
            }),
        )
    }

    fn check_content(&mut self, entry: &ChainEntry, is_anchor: bool) -> rusqlite::Result<()> {
        match entry.kind {
            Some(kind) if kind.is_call() && !is_anchor => self.check_call(entry)?,
            Some(EntryKind::Evicted) => {
                self.missing.remove(&entry.row);
                self.report.evicted += 1;
            }
            Some(EntryKind::Trimmed) => self.trimmed = Some(entry.clone()),
            Some(EntryKind::Lost) if !is_anchor => {
                let text = match entry.row {
                    0 => format!(
                        "the chain before entry #{} was rewritten: its head was {}",
                        entry.n,
                        hex(&entry.digest)
                    ),
                    lost => format!(
                        "{lost} entries before #{} are missing: the newest calls were deleted, or lost in a power failure",
                        entry.n
                    ),
                };
                self.report
                    .add_finding(HashChainProblem::Missing, entry.n, None, text);
            }
            None => {
                let text = format!("entry #{} has an unknown kind", entry.n);
                self.report
                    .add_finding(HashChainProblem::Foreign, entry.n, None, text);
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn check_call(&mut self, entry: &ChainEntry) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(&SELECT_BY_SEQ)?;
        let mut rows = statement.query([entry.row])?;
        let Some(row) = rows.next()? else {
            self.missing.insert(entry.row, entry.n);
            return Ok(());
        };
        self.missing.remove(&entry.row);
        let chained: Option<i64> = row.get(column!(chained))?;
        if chained.is_some_and(|chained| chained > entry.n) {
            return Ok(()); // A later entry has the digest of its current row.
        }
        self.report.calls += 1;
        let run = digest::run_digest(self.connection, row.get(column!(run))?)?;
        let is_same = chained == Some(entry.n) && digest::row_digest(&run, row)? == entry.digest;
        if !is_same {
            let id: String = row.get(column!(id))?;
            let text = format!("call {id} was changed: it differs from entry #{}", entry.n);
            self.report
                .add_finding(HashChainProblem::Changed, entry.n, Some(id), text);
        }
        Ok(())
    }

    fn check_rows(&mut self, newest: Option<u32>) -> rusqlite::Result<()> {
        let calls = match newest {
            Some(newest) => format!("(SELECT * FROM calls ORDER BY seq DESC LIMIT {newest})"),
            None => "calls".to_owned(),
        };
        let sql = format!(
            "SELECT some.seq, some.id, some.chained, some.finished FROM {calls} AS some
             LEFT JOIN chain ON chain.n = some.chained WHERE chain.row IS NOT some.seq"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (seq, id): (i64, String) = (row.get(0)?, row.get(1)?);
            let (chained, finished): (Option<i64>, Option<i64>) = (row.get(2)?, row.get(3)?);
            match chained {
                None if seq <= self.uncovered_until => {
                    self.report.uncovered += u64::from(finished.is_some());
                }
                _ => {
                    let text = format!("call {id} is not in the chain: Toolgate did not record it");
                    let problem = HashChainProblem::Foreign;
                    self.report.add_finding(problem, chained, Some(id), text);
                }
            }
        }
        Ok(())
    }

    fn report_missing(&mut self) {
        let mut missing: Vec<(i64, i64)> = self.missing.drain().map(|(seq, n)| (n, seq)).collect();
        missing.sort_unstable();
        for (n, seq) in missing {
            let moment = time::timestamp((seq >> 20) * 1000);
            let text = format!("the call of entry #{n}, made at {moment:.3}, is missing");
            self.report
                .add_finding(HashChainProblem::Missing, n, None, text);
        }
    }

    // Of calls that are older than the chain, only the number is known. If other problems were
    // found, a wrong number would only repeat them.
    fn check_count(&mut self, last: &ChainEntry) -> rusqlite::Result<()> {
        if self.report.is_partial || self.report.problems > 0 {
            return Ok(());
        }
        let sql = "SELECT count(*) FROM calls WHERE finished IS NOT NULL OR chained IS NOT NULL";
        let count: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        let (problem, what) = match count - last.calls {
            0 => return Ok(()),
            more @ 1.. => (
                HashChainProblem::Foreign,
                format!("{more} more exist than before"),
            ),
            less => (HashChainProblem::Missing, format!("{} are missing", -less)),
        };
        let text = format!("of the calls that are older than the chain, {what}");
        self.report.add_finding(problem, None, None, text);
        Ok(())
    }

    fn check_head(&mut self, head: Option<ChainHead>, last: &ChainEntry) -> rusqlite::Result<()> {
        let (problem, text) = match head {
            None => (
                HashChainProblem::Missing,
                "the '.head' file beside the journal is missing, so it can't be detected whether the newest calls were deleted".to_owned(),
            ),
            Some(head) if head.is_in_chain(self.connection)? => return Ok(()),
            Some(head) if head.n > last.n => (
                HashChainProblem::Missing,
                format!(
                    "entries #{} to #{} at the end are missing: the newest calls were deleted, or lost in a power failure",
                    last.n + 1,
                    head.n
                ),
            ),
            Some(head) => (
                HashChainProblem::Changed,
                format!(
                    "entry #{} is not the one that was the head, {}: the chain was rewritten",
                    head.n,
                    hex(&head.hash)
                ),
            ),
        };
        self.report.add_finding(problem, None, None, text);
        Ok(())
    }

    fn check_expected_hash(&mut self, options: &VerifyOptions, oldest: i64) {
        let Some(expected) = &options.expect else {
            return;
        };
        match self.expected_at {
            Some(n) => {
                let since = self.report.head_entry - n;
                let note = format!(
                    "the expected hash is that of entry #{n}; {since} entries were added since"
                );
                self.report.notes.push(note);
            }
            None => {
                let text = format!(
                    "no entry has the expected hash {expected}: the chain was rewritten since it was noted, or that entry is older than #{oldest}, the oldest that is kept"
                );
                self.report
                    .add_finding(HashChainProblem::Missing, None, None, text);
            }
        }
    }

    // If there is a key and the last entry doesn't use it, somebody without the key continued the
    // chain.
    fn check_key(&mut self, last: &ChainEntry) {
        if let Some(key) = self.key
            && last.key != Some(key.id)
        {
            let text = "the newest entry was not made with the key beside the journal";
            self.report
                .add_finding(HashChainProblem::Foreign, last.n, None, text);
        }
    }

    fn id_at(&self, seq: i64) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT id FROM calls WHERE seq = ?";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.query_row([seq], |row| row.get(0)).optional()
    }
}
