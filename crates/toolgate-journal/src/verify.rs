//! Checks the chain, and that every call stands in it as it was recorded.

mod call;
mod verifier;

use std::fmt;

use rusqlite::Connection;
use serde::Serialize;

use crate::chain::Entry;
use crate::head::{Head, parse_hash};
use crate::key::Key;
use crate::{JournalError, Reader};
use verifier::Verifier;

/// Findings beyond this are only counted.
const MOST_FINDINGS: usize = 100;

/// What is to be verified.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Only so many of the newest entries and calls; all of them if not said.
    pub newest: Option<u32>,
    /// A hash that was the head once, as 64 hexadecimal digits: the chain must still have it.
    pub expect: Option<String>,
}

/// What was verified, and what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verification {
    /// Entries of the chain that were looked at.
    pub entries: u64,
    /// Calls whose rows were compared with their entries.
    pub calls: u64,
    /// Calls that are older than the chain: nothing is known of them.
    pub uncovered: u64,
    /// Calls whose deletion, by age or size, stands in the chain.
    pub evicted: u64,
    /// The number of the newest entry.
    pub head_entry: i64,
    /// Its hash. Noted elsewhere, it shows later that nothing before it was changed.
    pub head: String,
    /// True if the newest entry was made with the key beside the journal.
    pub is_keyed: bool,
    /// True if only the newest entries were looked at.
    pub is_partial: bool,
    /// What isn't wrong, but limits what was verified.
    pub notes: Vec<String>,
    /// What is wrong, as much as is shown.
    pub findings: Vec<ChainFinding>,
    /// How much is wrong.
    pub problems: u64,
}

/// Something that isn't as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChainFinding {
    /// What happened to it.
    pub problem: ChainProblem,
    /// The entry of the chain where it was found.
    pub entry: Option<i64>,
    /// The id of the call, where it is known.
    pub call: Option<String>,
    /// The sentence for a person.
    pub text: String,
}

/// What happened to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChainProblem {
    /// It isn't what it was.
    Changed,
    /// It is gone.
    Missing,
    /// Toolgate didn't write it.
    Foreign,
    /// It stood elsewhere.
    OutOfOrder,
}

impl fmt::Display for ChainProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Foreign => "foreign",
            Self::OutOfOrder => "out of order",
        })
    }
}

impl Verification {
    /// True if nothing is wrong.
    pub fn is_intact(&self) -> bool {
        self.problems == 0
    }

    fn add(
        &mut self,
        problem: ChainProblem,
        entry: Option<i64>,
        call: Option<String>,
        text: String,
    ) {
        self.problems += 1;
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(ChainFinding {
                problem,
                entry,
                call,
                text,
            });
        }
    }
}

impl Reader {
    /// Checks the chain of hashes and every call in it. Reads the whole file unless `newest` says otherwise.
    pub fn verify(&self, options: &VerifyOptions) -> Result<Verification, JournalError> {
        let key = self.key()?;
        // Before anything is read: what is written meanwhile only makes the chain longer.
        let head = Head::read(self.file());
        let expect = options.expect.as_deref().map(parse_hash);
        self.ask(|connection| {
            let transaction = connection.unchecked_transaction()?;
            if !transaction.table_exists(None, "chain")? {
                return Ok(without_chain());
            }
            let verifier = Verifier::new(&transaction, key.as_ref(), expect.flatten());
            verifier.run(options, head)
        })
    }

    /// Why a call isn't what was recorded, as a part of a sentence; nothing if it is. Only its own row and entry are looked at.
    pub fn verify_call(&self, id: &str) -> Result<Option<String>, JournalError> {
        let key = self.key()?;
        self.ask(|connection| {
            let transaction = connection.unchecked_transaction()?;
            if !transaction.table_exists(None, "chain")? {
                return Ok(Some(OLDER.to_owned()));
            }
            call::verify(&transaction, key.as_ref(), id)
        })
    }
}

const OLDER: &str = "it is older than the journal's chain of hashes";

fn without_chain() -> Verification {
    Verification {
        notes: vec![
            "the journal has no chain of hashes yet: an older version wrote it; the next call begins one".to_owned(),
        ],
        ..Verification::default()
    }
}

fn uncovered_until(connection: &Connection) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(row), 0) FROM chain WHERE kind IN (3, 6) AND kind = 6";
    connection.query_row(sql, [], |row| row.get(0))
}

/// The key an entry was made with; nothing if it is not at hand.
fn usable<'a>(key: Option<&'a Key>, entry: &Entry) -> Option<Option<&'a Key>> {
    match (entry.key, key) {
        (None, _) => Some(None),
        (Some(id), Some(key)) if key.id == id => Some(Some(key)),
        _ => None,
    }
}
