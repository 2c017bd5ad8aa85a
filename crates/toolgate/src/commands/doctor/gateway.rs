//! What `doctor` finds about the journal and the gateway.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use toolgate_journal::{Filter, JournalHealth, Reader, VerifyOptions};

use super::{Finding, Report};
use crate::commands::calls;
#[cfg(feature = "serve")]
use crate::commands::serve;
use crate::config::Config;
#[cfg(feature = "serve")]
use crate::gateway;
use crate::journal;
use crate::wiring::Tools;

impl Report {
    pub(super) async fn on_journal(&mut self, config: &Config, tools: &Tools) {
        let (file, journal) = match journal::probe(config, tools) {
            Ok(opened) => opened,
            Err(error) => {
                let text = format!("calls are not recorded: {error}");
                return self.add("journal", &Finding::Bad(text));
            }
        };
        journal.flush().await;
        let finding = match journal.health() {
            JournalHealth::Failing { error, .. } => {
                Finding::Bad(format!("{}: {error}", file.display()))
            }
            _ => of_journal(&file, &journal.reader()),
        };
        let chain = of_chain(&journal.reader());
        journal.close().await;
        self.add("journal", &finding);
        self.add("journal", &chain);
    }

    /// What `serve` would say before it starts.
    #[cfg(feature = "serve")]
    pub(super) async fn on_gateway(&mut self, config: &Config) {
        if let Some(text) = config.open_secret() {
            self.add("serve", &Finding::Warning(text));
        }
        self.add("serve", &of_gateway(config).await);
    }
}

fn of_journal(file: &Path, reader: &Reader) -> Finding {
    const DAY: SignedDuration = SignedDuration::from_hours(24);
    // What is not yet in the file itself lies beside it.
    let beside = |end: &str| file.with_file_name(format!("{}{end}", name(file)));
    let sizes = [file.to_owned(), beside("-wal")].map(|path| {
        let found = std::fs::metadata(path);
        found.map_or(0, |found| found.len())
    });
    let kib = sizes.iter().sum::<u64>().div_ceil(1024);
    let text = format!("{} is written to, {kib} KiB", file.display());
    let mut interrupted = Filter::default();
    interrupted.outcome = Some("interrupted".to_owned());
    interrupted.since = Timestamp::now().checked_sub(DAY).ok();
    interrupted.limit = 1000;
    match reader.calls(&interrupted) {
        Ok(calls) if calls.is_empty() => Finding::Good(text),
        Ok(calls) => Finding::Warning(format!(
            "{text}; calls of the last day that were interrupted, outcome unknown: {} ('toolgate calls --outcome interrupted')",
            calls.len()
        )),
        Err(error) => Finding::Bad(error.to_string()),
    }
}

/// Only the newest calls: a large journal would take minutes.
fn of_chain(reader: &Reader) -> Finding {
    const NEWEST: u32 = 10_000;
    let mut options = VerifyOptions::default();
    options.newest = Some(NEWEST);
    match reader.verify(&options) {
        Ok(verified) if verified.is_intact() => Finding::Good(calls::verified_summary(&verified)),
        Ok(verified) => {
            let first = verified.findings.first();
            let first = first.map_or(String::new(), |found| format!(": {}", found.text));
            let text = calls::verified_summary(&verified);
            Finding::Bad(format!(
                "{text}{first} ('toolgate calls --verify' tells all)"
            ))
        }
        Err(error) => Finding::Warning(format!("the newest calls can't be verified now: {error}")),
    }
}

fn name(file: &Path) -> std::borrow::Cow<'_, str> {
    file.file_name().unwrap_or_default().to_string_lossy()
}

#[cfg(feature = "serve")]
async fn of_gateway(config: &Config) -> Finding {
    // Unset variables are told with the configuration.
    if config.unset_for_serve().is_some() {
        return Finding::Warning("will not start before its variables are set".to_owned());
    }
    let settings = match serve::settings(config, None, serve::variable()) {
        Ok(settings) => settings,
        Err(error) => return Finding::Bad(error.to_string()),
    };
    let bind = settings.bind;
    let token = match settings.token.is_empty() && settings.tokens.is_empty() {
        true => "without a token, for this machine alone",
        false => "with a token",
    };
    match gateway::listen(bind).await {
        Ok(_) => Finding::Good(format!("can listen on {bind}, {token}")),
        Err(_) => Finding::Warning(format!(
            "port {} is in use: a gateway runs already, or 'toolgate serve' needs another --bind",
            bind.port()
        )),
    }
}
