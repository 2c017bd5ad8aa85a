//! Exports calls as lines of JSON with their hashes, for an append-only store.

use std::io::{self, Write};

use rusqlite::{Row, params_from_iter};
use serde::Serialize;

use crate::chain;
use crate::columns::column;
use crate::detail::{CallDetail, RunInfo};
use crate::fields::number;
use crate::key::hex;
use crate::summary::NEXT_COLUMN;
use crate::{JournalError, JournalFilter, JournalReader, reader};

/// The result of an export, which is also its last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExportSummary {
    /// The hash of the chain's newest entry at that time; `None` without a chain.
    pub head: Option<String>,
    pub head_entry: Option<i64>,
    pub calls: u64,
}

#[derive(Serialize)]
struct ExportLine {
    #[serde(flatten)]
    call: CallDetail,
    // Absent for calls that are older than the chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<ChainLink>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ChainLink {
    entry: i64,
    digest: String,
    hash: String,
}

impl JournalReader {
    /// Writes the matching calls, oldest first, one per line, and a last line with the head. Holds
    /// one call in memory at a time and ignores the filter's limit.
    pub fn export(
        &self,
        filter: &JournalFilter,
        to: &mut impl Write,
    ) -> Result<ExportSummary, JournalError> {
        let mut failed = None;
        let exported = self.query(|connection| {
            // One snapshot, so that the calls and the head of the last line belong together.
            let transaction = connection.unchecked_transaction()?;
            let dead = self.dead_runs(&transaction)?;
            let conditions = filter.conditions(&dead.list());
            let has_chain = transaction.table_exists(None, "chain")?;
            let sql = reader::detail_query(&transaction, &conditions.sql(), "seq", has_chain);
            let mut statement = transaction.prepare(&sql)?;
            let mut rows = statement.query(params_from_iter(&conditions.values))?;
            let (mut calls, mut run): (u64, Option<(i64, Option<RunInfo>)>) = (0, None);
            while let Some(row) = rows.next()? {
                let mut call = CallDetail::read(row, &dead)?;
                let number: i64 = row.get(column!(run))?;
                // Neighboring calls mostly belong to the same run.
                if run.as_ref().is_none_or(|(known, _)| *known != number) {
                    run = Some((number, RunInfo::read(&transaction, number)?));
                }
                call.run = run.as_ref().and_then(|(_, info)| info.clone());
                let chain = ChainLink::read(row)?;
                if let Err(error) = write_line(to, &ExportLine { call, chain }) {
                    failed = Some(error);
                    return Ok(None);
                }
                calls += 1;
            }
            let last = match has_chain {
                true => chain::last(&transaction)?,
                false => None,
            };
            Ok(Some(ExportSummary {
                head: last.as_ref().map(|last| hex(&last.hash)),
                head_entry: last.map(|last| last.n),
                calls,
            }))
        })?;
        let written = match (exported, failed) {
            (Some(summary), _) => write_line(to, &summary).map(|()| summary),
            (None, error) => Err(error.unwrap_or_else(|| io::ErrorKind::Other.into())),
        };
        written.map_err(JournalError::Export)
    }
}

fn write_line(to: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

pub(crate) fn export_line(call: CallDetail, chain: Option<ChainLink>) -> String {
    serde_json::to_string(&ExportLine { call, chain }).unwrap_or_default()
}

impl ChainLink {
    /// Reads a row of [`reader::detail_query`].
    fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let bytes = |column| row.get_ref(column).map(|value| value.as_blob().ok());
        let link = (
            number(row, NEXT_COLUMN)?,
            bytes(NEXT_COLUMN + 1)?,
            bytes(NEXT_COLUMN + 2)?,
        );
        Ok(match link {
            (Some(entry), Some(digest), Some(hash)) => Some(Self::new(entry, digest, hash)),
            _ => None,
        })
    }

    pub(crate) fn new(entry: i64, digest: &[u8], hash: &[u8]) -> Self {
        Self {
            entry,
            digest: hex(digest),
            hash: hex(hash),
        }
    }
}
