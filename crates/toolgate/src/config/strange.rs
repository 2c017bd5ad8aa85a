//! What a file that lies in the working folder must not do to the gateway. It may have come from anybody with the folder: it
//! may make the gateway narrower, never wider. What it must not do to the voice gateway stands in `voice`.

use std::path::Path;

use toolgate_core::escape;

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

pub(super) fn refused(file: &Path, what: &str) -> String {
    let file = escape(&file.to_string_lossy());
    format!(
        "a file that lies in the working folder must not {what}; if it is yours, say so with --config {file}"
    )
}
