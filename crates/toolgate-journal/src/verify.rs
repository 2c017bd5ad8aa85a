//! Verifies the hash chain, and that every call is still as it was recorded.

mod call;
mod verifier;

use std::fmt;

use rusqlite::Connection;
use serde::Serialize;

use crate::chain::ChainEntry;
use crate::head::{ChainHead, parse_hash};
use crate::key::ChainKey;
use crate::{JournalError, JournalReader};
use verifier::ChainVerifier;

const MAX_FINDINGS: usize = 100;

/// What [`JournalReader::verify`] checks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Limits the check to this many of the newest entries and calls.
    pub newest: Option<u32>,
    /// A hash, as 64 hexadecimal digits, that was once the head. The chain must still have it.
    pub expect: Option<String>,
}

/// What [`JournalReader::verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    pub entries: u64,
    /// Calls whose rows were compared with their entries.
    pub calls: u64,
    /// Calls that are older than the chain and can't be verified.
    pub uncovered: u64,
    /// Calls whose deletion, by age or size, is recorded in the chain.
    pub evicted: u64,
    pub head_entry: i64,
    /// The hash of the newest entry. If you note it elsewhere, it shows later that nothing
    /// before it was changed.
    pub head: String,
    /// True if the newest entry was made with the key beside the journal.
    pub is_keyed: bool,
    pub is_partial: bool,
    /// Limits of the check that are not problems.
    pub notes: Vec<String>,
    /// The first 100 problems.
    pub findings: Vec<HashChainFinding>,
    pub problems: u64,
}

/// One problem that was found in the hash chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HashChainFinding {
    pub problem: HashChainProblem,
    pub entry: Option<i64>,
    pub call: Option<String>,
    pub text: String,
}

/// What is wrong with a row of the hash chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HashChainProblem {
    Changed,
    Missing,
    /// Not written by Toolgate.
    Foreign,
    OutOfOrder,
}

impl fmt::Display for HashChainProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Foreign => "foreign",
            Self::OutOfOrder => "out of order",
        })
    }
}

impl VerifyReport {
    pub fn is_intact(&self) -> bool {
        self.problems == 0
    }

    fn add_finding(
        &mut self,
        problem: HashChainProblem,
        entry: impl Into<Option<i64>>,
        call: Option<String>,
        text: impl Into<String>,
    ) {
        self.problems += 1;
        if self.findings.len() < MAX_FINDINGS {
            let (entry, text) = (entry.into(), text.into());
            self.findings.push(HashChainFinding {
                problem,
                entry,
                call,
                text,
            });
        }
    }
}

impl JournalReader {
    /// Verifies the hash chain and every call in it. Reads the whole file
    /// unless `newest` limits it.
    pub fn verify(&self, options: &VerifyOptions) -> Result<VerifyReport, JournalError> {
        let key = self.key()?;
        // Read first: entries written meanwhile only make the chain longer.
        let head = ChainHead::read(self.file());
        let expect = options.expect.as_deref().map(parse_hash);
        self.query(|connection| {
            let transaction = connection.unchecked_transaction()?;
            if !transaction.table_exists(None, "chain")? {
                return Ok(without_chain());
            }
            let verifier = ChainVerifier::new(&transaction, key.as_ref(), expect.flatten());
            verifier.run(options, head)
        })
    }

    /// Says why a call can't be verified, as part of a sentence; `None` if it is as recorded. Reads
    /// only the call's own row and entry.
    pub fn verify_call(&self, id: &str) -> Result<Option<String>, JournalError> {
        let key = self.key()?;
        self.query(|connection| {
            let transaction = connection.unchecked_transaction()?;
            if !transaction.table_exists(None, "chain")? {
                return Ok(Some(OLDER_THAN_CHAIN.to_owned()));
            }
            call::verify_call(&transaction, key.as_ref(), id)
        })
    }
}

const OLDER_THAN_CHAIN: &str = "it is older than the journal's hash chain";

fn without_chain() -> VerifyReport {
    VerifyReport {
        notes: vec![
            "the journal has no hash chain yet: it was written by an older version; the next call starts one".to_owned(),
        ],
        ..VerifyReport::default()
    }
}

fn uncovered_until(connection: &Connection) -> rusqlite::Result<i64> {
    // The first condition repeats that of the partial index, or SQLite wouldn't use it.
    let sql = "SELECT coalesce(max(row), 0) FROM chain WHERE kind IN (3, 6) AND kind = 6";
    connection.query_row(sql, [], |row| row.get(0))
}

/// The key of an entry's hash. The outer `None` means that it was made with another key than ours.
fn key_for<'a>(key: Option<&'a ChainKey>, entry: &ChainEntry) -> Option<Option<&'a ChainKey>> {
    match (entry.key, key) {
        (None, _) => Some(None),
        (Some(id), Some(key)) if key.id == id => Some(Some(key)),
        _ => None,
    }
}
