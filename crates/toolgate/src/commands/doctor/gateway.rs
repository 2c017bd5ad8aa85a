//! Checks of the journal and the gateway.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use toolgate_journal::{JournalFilter, JournalHealth, JournalReader, VerifyOptions};

use super::DoctorFinding::{Bad, Good, Warning};
use super::{DoctorFinding, DoctorReport};
use crate::commands::calls;
#[cfg(feature = "serve")]
use crate::commands::serve;
use crate::config::Config;
#[cfg(feature = "serve")]
use crate::gateway;
use crate::journal;
use crate::wiring::ConfiguredTools;

impl DoctorReport {
    pub(super) async fn check_journal(&mut self, config: &Config, tools: &ConfiguredTools) {
        let (file, journal) = match journal::probe(config, tools) {
            Ok(opened) => opened,
            Err(error) => {
                let text = format!("calls are not recorded: {error}");
                return self.add("journal", Bad(text));
            }
        };
        journal.flush().await;
        let finding = match journal.health() {
            JournalHealth::Failing { error, .. } => Bad(format!("{}: {error}", file.display())),
            _ => check_journal(&file, &journal.reader()),
        };
        let chain = check_chain(&journal.reader());
        journal.close().await;
        self.add("journal", finding);
        self.add("journal", chain);
    }

    /// Reports what `serve` would say at its start.
    #[cfg(feature = "serve")]
    pub(super) async fn check_gateway(&mut self, config: &Config) {
        if let Some(text) = config.exposed_secret_warning() {
            self.add("serve", Warning(text));
        }
        self.add("serve", check_gateway(config).await);
    }
}

fn check_journal(file: &Path, reader: &JournalReader) -> DoctorFinding {
    const DAY: SignedDuration = SignedDuration::from_hours(24);
    // Recent rows are still in the WAL file beside it.
    let beside = |end: &str| file.with_file_name(format!("{}{end}", name(file)));
    let sizes = [file.to_owned(), beside("-wal")].map(|path| {
        let found = std::fs::metadata(path);
        found.map_or(0, |found| found.len())
    });
    let kib = sizes.iter().sum::<u64>().div_ceil(1024);
    let text = format!("{} can be written, {kib} KiB", file.display());
    let mut interrupted = JournalFilter::default();
    interrupted.outcome = Some("interrupted".to_owned());
    interrupted.since = Timestamp::now().checked_sub(DAY).ok();
    interrupted.limit = 1000;
    match reader.calls(&interrupted) {
        Ok(calls) if calls.is_empty() => Good(text),
        Ok(calls) => Warning(format!(
            "{text}; calls interrupted in the last day, with an unknown outcome: {} ('toolgate calls --outcome interrupted')",
            calls.len()
        )),
        Err(error) => Bad(error.to_string()),
    }
}

// Only the newest calls, because a large journal would take minutes.
fn check_chain(reader: &JournalReader) -> DoctorFinding {
    const NEWEST: u32 = 10_000;
    let mut options = VerifyOptions::default();
    options.newest = Some(NEWEST);
    match reader.verify(&options) {
        Ok(verified) if verified.is_intact() => Good(calls::verified_summary(&verified)),
        Ok(verified) => {
            let first = verified.findings.first();
            let first = first.map_or(String::new(), |found| format!(": {}", found.text));
            let text = calls::verified_summary(&verified);
            Bad(format!(
                "{text}{first} ('toolgate calls --verify' lists all problems)"
            ))
        }
        Err(error) => Warning(format!("the newest calls can't be verified now: {error}")),
    }
}

fn name(file: &Path) -> std::borrow::Cow<'_, str> {
    file.file_name().unwrap_or_default().to_string_lossy()
}

#[cfg(feature = "serve")]
async fn check_gateway(config: &Config) -> DoctorFinding {
    // Unset variables are reported with the configuration.
    if config.unset_in_sections(&["serve", "telemetry"]).is_some() {
        return Warning("can't start until its variables are set".to_owned());
    }
    let settings = match serve::settings(config, None, serve::token_variable()) {
        Ok(settings) => settings,
        Err(error) => return Bad(error.to_string()),
    };
    let bind = settings.bind;
    let token = match settings.token.is_empty() && settings.tokens.is_empty() {
        true => "without a token, for this machine only",
        false => "with a token",
    };
    match gateway::listen(bind).await {
        Ok(_) => Good(format!("can listen on {bind}, {token}")),
        Err(_) => Warning(format!(
            "port {} is in use: a gateway is already running, or 'toolgate serve' needs another --bind",
            bind.port()
        )),
    }
}
