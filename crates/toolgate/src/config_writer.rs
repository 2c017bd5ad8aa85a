//! Stores what is added over HTTP in the configuration file, and the reload puts it into use.

use std::path::PathBuf;

use serde_json::Value;
use toolgate_core::text::escape;
use toolgate_server::{ConfigWriteError, ConfigWriter};

use crate::config::{Config, ConfigLocation, ReferenceSet};
use crate::server_file::{NameTakenError, ServerFile};

pub(crate) struct FileConfigWriter {
    file: Option<(PathBuf, ConfigLocation)>,
    // One change at a time, because each reads the file and replaces it.
    turn: parking_lot::Mutex<()>,
}

impl FileConfigWriter {
    pub(crate) fn new(config: &Config) -> Self {
        let file = config.file().map(|path| (path.to_owned(), config.location));
        Self {
            file,
            turn: parking_lot::Mutex::default(),
        }
    }

    fn change(
        &self,
        change: impl FnOnce(&ServerFile) -> anyhow::Result<()>,
    ) -> anyhow::Result<String> {
        let _turn = self.turn.lock();
        let Some((path, location)) = &self.file else {
            anyhow::bail!(
                "this gateway runs without a configuration file; write one with 'toolgate init' and restart the gateway"
            );
        };
        let is_shared = path.file_name().is_some_and(|name| name == ".mcp.json");
        if is_shared && *location == ConfigLocation::Here {
            anyhow::bail!(
                ".mcp.json is shared with other programs, so it is not changed; 'toolgate init' writes a toolgate.json"
            );
        }
        let file = ServerFile::open_at(path.clone(), *location)?;
        change(&file)?;
        file.save()?;
        Ok(format!("in {}", escape(&path.to_string_lossy())))
    }
}

impl ConfigWriter for FileConfigWriter {
    fn add_tool(&self, definition: &Value) -> Result<String, ConfigWriteError> {
        self.change(|file| file.add_tool(definition))
            .map_err(|error| refusal_from(&error))
    }

    fn add_server(&self, name: &str, url: &str) -> Result<String, ConfigWriteError> {
        let entry = serde_json::json!({ "url": url });
        let mut found = ReferenceSet::default();
        found.collect(&entry);
        if !found.secrets.is_empty() {
            // Permission to add servers over HTTP doesn't include reading
            // files or running commands.
            return Err(ConfigWriteError::Refused(
                "an address that is added over HTTP can't refer to files, the keyring or commands; write it into the configuration file".to_owned(),
            ));
        }
        let added = self.change(|file| {
            if file.names().iter().any(|taken| taken == name) {
                let taken = format!("there is already a server '{}'", escape(name));
                anyhow::bail!(NameTakenError(taken));
            }
            file.put(name, &entry);
            // A caller who may add servers was admitted for that.
            file.agree_to(name);
            Ok(())
        });
        added.map_err(|error| refusal_from(&error))
    }
}

fn refusal_from(error: &anyhow::Error) -> ConfigWriteError {
    let reason = format!("{error:#}");
    match error.downcast_ref() {
        Some(NameTakenError(_)) => ConfigWriteError::NameTaken(reason),
        None => ConfigWriteError::Refused(reason),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{ConfigReadOptions, SecretScope};

    fn writer(text: &str) -> (FileConfigWriter, PathBuf, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        std::fs::write(&path, text).unwrap();
        let writer = FileConfigWriter {
            file: Some((path.clone(), ConfigLocation::Named)),
            turn: parking_lot::Mutex::default(),
        };
        (writer, path, folder)
    }

    #[test]
    fn a_server_added_over_http_reads_no_files_and_runs_nothing() {
        let (writer, path, _folder) = writer("{}");
        for url in [
            "http://h/${cmd:touch x}",
            "http://h/${file:/etc/passwd}",
            "http://h/${keyring:token}",
        ] {
            assert!(matches!(
                writer.add_server("evil", url),
                Err(ConfigWriteError::Refused(_))
            ));
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), "{}");
    }

    #[test]
    fn additions_keep_the_rest_of_the_file() {
        let (writer, path, _folder) = writer("{\n  // mine\n  \"limits\": {}\n}\n");
        let tool = json!({ "name": "m", "description": "d", "parameters": { "type": "object" },
            "implementation": { "type": "mock", "mock_response": [1, null] } });
        assert!(writer.add_tool(&tool).unwrap().contains("t.json"));
        writer.add_server("remote", "http://h/mcp").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("// mine"), "{text}");
        let config = Config::read(
            &path,
            ConfigReadOptions::new(&|_| None, SecretScope::Everything),
        )
        .unwrap();
        assert_eq!(config.tools, std::slice::from_ref(&tool));
        assert_eq!(config.servers[0].settings.name, "remote");
        let twice = writer.add_tool(&tool).unwrap_err();
        assert!(
            matches!(&twice, ConfigWriteError::NameTaken(reason) if reason.contains("already has a tool 'm'")),
            "{twice:?}"
        );
        let twice = writer.add_server("remote", "http://h/").unwrap_err();
        assert!(
            matches!(&twice, ConfigWriteError::NameTaken(reason) if reason.contains("already a server 'remote'")),
            "{twice:?}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn without_a_file_of_ours_nothing_is_written() {
        let shared = FileConfigWriter {
            file: Some((".mcp.json".into(), ConfigLocation::Here)),
            turn: parking_lot::Mutex::default(),
        };
        let none = FileConfigWriter::new(&Config::default());
        for writer in [shared, none] {
            let error = writer.add_server("a", "http://h/").unwrap_err();
            assert!(
                matches!(&error, ConfigWriteError::Refused(reason) if reason.contains("toolgate init")),
                "{error:?}"
            );
        }
    }
}
