//! What a file that lies in the working folder must not do to the gateway. It may have come from anybody with the folder: it
//! may make the gateway narrower, never wider. What it must not do to the voice gateway stands in `voice`.

use std::path::Path;

use toolgate_core::escape;
use toolgate_journal::{JournalSettings, Require, Sync};

use super::{Config, ConfigError, Place};

impl Config {
    /// The file, if it lies in the working folder and nobody named it.
    pub(crate) fn stranger(&self) -> Option<&Path> {
        self.file().filter(|_| self.place == Place::Here)
    }

    /// What such a file opens to others, or sends to them. Its tokens only keep others out.
    pub(crate) fn widens(&self) -> Option<ConfigError> {
        let file = self.stranger()?;
        let serve = &self.serve;
        let is_loopback = serve.bind.ip().to_canonical().is_loopback();
        let wide = [
            (!is_loopback, "serve", "bind", OPEN),
            (!serve.hosts.is_empty(), "serve", "hosts", OPEN),
            (!serve.origins.is_empty(), "serve", "origins", OPEN),
            (serve.add_servers, "serve", "addServers", OPEN),
            (!self.telemetry.otlp.is_empty(), "telemetry", "otlp", SEND),
        ];
        let (_, section, key, what) = wide.into_iter().find(|(is_wide, ..)| *is_wide)?;
        self.error_about(section, key, &refused(file, what))
    }

    /// The settings of the journal, and what of those in such a file does not count: it may ask for more to be kept, never for less,
    /// and of the usual journal nothing may be deleted earlier.
    pub(crate) fn journal_settings(&self) -> (JournalSettings, Vec<ConfigError>) {
        let mut settings = self.journal.clone();
        let Some(file) = self.stranger() else {
            return (settings, Vec::new());
        };
        let usual = JournalSettings::default();
        let is_usual = settings.file.is_none() || self.misplaces_journal().is_some();
        let mut loose = Vec::new();
        if settings.require == Require::Nothing {
            settings.require = usual.require;
            loose.push("require");
        }
        if settings.sync == Sync::Relaxed {
            settings.sync = usual.sync;
            loose.push("sync");
        }
        if is_usual && settings.keep_days < usual.keep_days {
            settings.keep_days = usual.keep_days;
            loose.push("keepDays");
        }
        if is_usual && settings.max_size < usual.max_size {
            settings.max_size = usual.max_size;
            loose.push("maxSize");
        }
        let text = refused(file, "say that less is recorded");
        let sends = settings.forward.take().map(|_| refused(file, SEND_RECORDS));
        let sends = sends.and_then(|text| self.error_about("journal", "forward", &text));
        let told = loose
            .into_iter()
            .filter_map(|key| self.error_about("journal", key, &text));
        (settings, told.chain(sends).collect())
    }

    /// What is wrong with the place where such a file wants calls to be recorded: a file elsewhere might be somebody's.
    pub(crate) fn misplaces_journal(&self) -> Option<ConfigError> {
        let file = self.stranger()?;
        let journal = self.journal.file.as_deref()?;
        let real = |path: &Path| {
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            std::fs::canonicalize(folder)
        };
        let is_inside = match (real(journal), real(file)) {
            (Ok(journal), Ok(folder)) => journal.starts_with(folder),
            _ => false,
        };
        let is_plain = journal
            .symlink_metadata()
            .map_or(true, |found| found.is_file());
        let text = refused(file, "say that a file outside of it is written");
        match is_inside && is_plain {
            true => None,
            false => self.error_about("journal", "file", &text),
        }
    }
}

const OPEN: &str = "open the gateway to others";
const SEND: &str = "say where traces are sent";
const SEND_RECORDS: &str = "say where records of calls are sent";

pub(super) fn refused(file: &Path, what: &str) -> String {
    let file = escape(&file.to_string_lossy());
    format!(
        "a file that lies in the working folder must not {what}; if it is yours, say so with --config {file}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Document;

    fn read(journal: &str, place: Place) -> Config {
        let text = format!(r#"{{ "journal": {journal} }}"#);
        let document = Document::parse(Path::new("/etc/t.json"), text.as_bytes()).unwrap();
        let mut config = Config::resolve(document, &|_| None).unwrap();
        config.place = place;
        config
    }

    #[test]
    fn a_file_that_nobody_named_asks_for_more_to_be_kept_never_for_less() {
        let usual = JournalSettings::default();
        for (journal, loose) in [
            (r#"{ "require": "nothing" }"#, "require"),
            (r#"{ "sync": "relaxed" }"#, "sync"),
            (r#"{ "keepDays": 1 }"#, "keepDays"),
            (r#"{ "maxSize": "1MiB" }"#, "maxSize"),
            (r#"{ "forward": "syslog" }"#, "forward"),
        ] {
            let (settings, told) = read(journal, Place::Here).journal_settings();
            assert_eq!(settings, usual, "{journal}");
            let [told] = &told[..] else {
                panic!("{journal}: {told:?}");
            };
            let expected = format!("/etc/t.json:1:16: journal.{loose}: a file that lies in");
            assert!(told.to_string().starts_with(&expected), "{told}");
            let (named, told) = read(journal, Place::Named).journal_settings();
            assert_ne!(named, usual, "{journal}");
            assert!(told.is_empty(), "{journal}: {told:?}");
        }
        let strict =
            r#"{ "sync": "full", "keepDays": 60, "maxSize": "2GiB", "require": "destructive" }"#;
        // Of a journal beside it, it may delete what it likes.
        for journal in [
            strict,
            r#"{ "file": "here.db", "keepDays": 1, "maxSize": "1MiB" }"#,
        ] {
            let config = read(journal, Place::Here);
            let (settings, told) = config.journal_settings();
            assert_eq!(
                (settings, told.len()),
                (config.journal.clone(), 0),
                "{journal}"
            );
        }
    }
}
