//! `toolgate calls --verify` and `--export`: the journal as evidence.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use toolgate_core::text::escape;
use toolgate_journal::{JournalError, JournalFilter, JournalReader, VerifyOptions, VerifyReport};

use super::super::rendered;
use crate::exit::Exit;
use crate::output;

// Long enough to read any journal to its end. Ctrl-C stops it sooner.
const READ_TIMEOUT: Duration = Duration::from_secs(86_400);
const STDOUT: &str = "-";

pub(super) fn verify(
    reader: JournalReader,
    expect: Option<&str>,
    json: bool,
) -> anyhow::Result<Exit> {
    if let Some(expect) = expect
        && (expect.len() != 64 || !expect.bytes().all(|byte| byte.is_ascii_hexdigit()))
    {
        bail!("--expect takes a head as --verify prints it: 64 digits from 0 to 9 and a to f");
    }
    let mut options = VerifyOptions::default();
    options.expect = expect.map(str::to_ascii_lowercase);
    let verified = match with_long_timeout(reader).verify(&options) {
        Ok(verified) => verified,
        Err(error) => return Ok(Exit::failure(error)),
    };
    match json {
        true => output::print_result(&rendered(&serde_json::json!(verified))),
        false => print_report(&verified),
    }
    Ok(Exit::success_if(verified.is_intact()))
}

fn print_report(verified: &VerifyReport) {
    for finding in &verified.findings {
        output::print_result(&format!(
            "{:<13} {}",
            finding.problem.to_string(),
            escape(&finding.text)
        ));
    }
    let shown = verified.findings.len() as u64;
    if verified.problems > shown {
        output::print_result(&format!("and {} more", verified.problems - shown));
    }
    for note in &verified.notes {
        output::print_note(&escape(note));
    }
    output::print_result(&summary(verified));
    if !verified.head.is_empty() {
        output::print_result(&format!("head #{} {}", verified.head_entry, verified.head));
    }
}

pub(in crate::commands) fn summary(verified: &VerifyReport) -> String {
    let what = match verified.is_partial {
        true => format!("the newest {} entries of its chain", verified.entries),
        false => format!("all {} entries of its chain", verified.entries),
    };
    let key = if verified.is_keyed {
        ", made with the key"
    } else {
        ""
    };
    let uncovered = match verified.uncovered {
        0 => String::new(),
        calls => format!("; {calls} calls are older than the chain and can't be checked"),
    };
    match verified.problems {
        _ if verified.entries == 0 && verified.is_intact() => "nothing to verify".to_owned(),
        0 => format!(
            "intact: {} calls are as they were recorded, by {what}{key}{uncovered}",
            verified.calls
        ),
        1 => format!("NOT intact: 1 problem in {what}{key}{uncovered}"),
        problems => format!("NOT intact: {problems} problems in {what}{key}{uncovered}"),
    }
}

pub(super) fn export(
    reader: JournalReader,
    filter: &JournalFilter,
    to: &str,
) -> anyhow::Result<Exit> {
    let reader = with_long_timeout(reader);
    let exported = if to == STDOUT {
        let mut out = BufWriter::new(io::stdout().lock());
        let exported = reader.export(filter, &mut out);
        exported.and_then(|summary| out.flush().map(|()| summary).map_err(JournalError::Export))
    } else {
        // Never overwrites, because an export is evidence; private, because
        // it holds people's arguments.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to)
            .with_context(|| {
                format!(
                    "can't write {}; name a new file, or append to an existing one with '--export - >> FILE'",
                    escape(to)
                )
            })?;
        let mut out = BufWriter::new(file);
        let exported = reader.export(filter, &mut out);
        exported.and_then(|summary| {
            let written = out.flush().and_then(|()| out.get_ref().sync_all());
            written.map(|()| summary).map_err(JournalError::Export)
        })
    };
    match exported {
        Ok(summary) => {
            let head = summary.head.unwrap_or_default();
            output::print_note(&format!("{} calls exported; head {head}", summary.calls));
            Ok(Exit::Success)
        }
        // The reader has closed the pipe.
        Err(JournalError::Export(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(Exit::Success)
        }
        Err(error) => Ok(Exit::failure(error)),
    }
}

fn with_long_timeout(reader: JournalReader) -> JournalReader {
    reader.with_limits(READ_TIMEOUT, Arc::default())
}
