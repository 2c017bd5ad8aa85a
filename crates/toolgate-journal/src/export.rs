//! Every call as a line of JSON with its hash, for a store that only grows.

use std::io::{self, Write};

use rusqlite::{Row, params_from_iter};
use serde::Serialize;

use crate::chain;
use crate::columns::column;
use crate::detail::{CallDetail, RunInfo};
use crate::fields::number;
use crate::key::hex;
use crate::summary::NEXT;
use crate::{Filter, JournalError, Reader, reader};

/// How an export ended, which is also its last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExportSummary {
    /// The hash of the newest entry of the chain when it was made; nothing without a chain.
    pub head: Option<String>,
    /// The number of that entry.
    pub head_entry: Option<i64>,
    /// Calls in the export.
    pub calls: u64,
}

/// A call, with where it stands in the chain.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    call: CallDetail,
    /// Nothing of calls that are older than the chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<Link>,
}

/// The entry of a call in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Link {
    entry: i64,
    digest: String,
    hash: String,
}

impl Reader {
    /// Writes all calls that are wanted, oldest first, each as a line, and one last line that tells the head. Holds one call
    /// in memory at a time; the filter's limit does not count.
    pub fn export(
        &self,
        filter: &Filter,
        to: &mut impl Write,
    ) -> Result<ExportSummary, JournalError> {
        let mut failed = None;
        let exported = self.ask(|connection| {
            let transaction = connection.unchecked_transaction()?;
            let dead = self.dead(&transaction)?;
            let conditions = filter.conditions(&dead.list());
            let has_chain = transaction.table_exists(None, "chain")?;
            let sql = reader::detail_query(&transaction, &conditions.sql(), "seq", has_chain);
            let mut statement = transaction.prepare(&sql)?;
            let mut rows = statement.query(params_from_iter(&conditions.values))?;
            let (mut calls, mut run): (u64, Option<(i64, Option<RunInfo>)>) = (0, None);
            while let Some(row) = rows.next()? {
                let mut call = CallDetail::read(row, &dead)?;
                let number: i64 = row.get(column!(run))?;
                if run.as_ref().is_none_or(|(known, _)| *known != number) {
                    run = Some((number, RunInfo::read(&transaction, number)?));
                }
                call.run = run.as_ref().and_then(|(_, info)| info.clone());
                let chain = Link::read(row)?;
                if let Err(error) = write_line(to, &Line { call, chain }) {
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

/// One line of an export, without its line break.
pub(crate) fn line(call: CallDetail, chain: Option<Link>) -> String {
    serde_json::to_string(&Line { call, chain }).unwrap_or_default()
}

impl Link {
    /// Of a call that [`reader::detail_query`] found.
    fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let bytes = |column| row.get_ref(column).map(|value| value.as_blob().ok());
        let link = (number(row, NEXT)?, bytes(NEXT + 1)?, bytes(NEXT + 2)?);
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
