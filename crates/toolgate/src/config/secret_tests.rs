use std::cell::RefCell;

use serde_json::json;

use super::*;
use crate::secrets::keyring::{Keyring, KeyringError};

#[derive(Default)]
struct FakeKeyring {
    asked: RefCell<Vec<String>>,
}

impl Keyring for FakeKeyring {
    fn get(&self, name: &str) -> Result<Option<String>, KeyringError> {
        self.asked.borrow_mut().push(name.to_owned());
        Ok((name == "token").then(|| "k3yring-value".to_owned()))
    }

    fn set(&self, _name: &str, _secret: &str) -> Result<(), KeyringError> {
        Err(KeyringError::Locked)
    }

    fn remove(&self, _name: &str) -> Result<bool, KeyringError> {
        Err(KeyringError::Locked)
    }
}

struct SecretFolder {
    folder: tempfile::TempDir,
    keyring: FakeKeyring,
}

impl SecretFolder {
    fn new(config: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.json"), config.to_string()).unwrap();
        std::fs::write(folder.path().join("key"), "f1le-value\n").unwrap();
        Self {
            folder,
            keyring: FakeKeyring::default(),
        }
    }

    fn read(&self, uses: SecretScope, before: Option<&Config>) -> Config {
        let reading = ConfigReadOptions {
            keyring: Some(&self.keyring),
            before,
            ..ConfigReadOptions::new(&|_| None, uses)
        };
        Config::read(&self.folder.path().join("t.json"), reading).unwrap()
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.folder.path().join("runs"));
        runs.map_or(0, |runs| runs.lines().count())
    }
}

fn everything() -> Value {
    let command = "${cmd:sh -c 'echo x >> runs; printf c0mmand-%s value'}";
    json!({
        "search": { "url": "http://h/${keyring:token}", "key": "${file:key}" },
        "model": { "key": command },
        "mcpServers": { "one": { "command": "x", "args": ["${keyring:token}", "a-${file:key}", command] } },
    })
}

#[test]
fn each_secret_is_fetched_once_and_hidden_everywhere() {
    let folder = SecretFolder::new(&everything());
    let config = folder.read(SecretScope::Everything, None);
    assert_eq!(config.search.url, "http://h/k3yring-value");
    assert_eq!(config.search.key, "f1le-value");
    let secrets = config.secrets();
    for value in ["k3yring-value", "f1le-value", "c0mmand-value"] {
        assert!(secrets.iter().any(|secret| secret == value), "{secrets:?}");
        assert!(!format!("{:?}", config.fetched).contains(value));
    }
    assert_eq!(*folder.keyring.asked.borrow(), ["token"]);
    assert_eq!(folder.runs(), 1);
    let uses: Vec<String> = config
        .secret_uses()
        .into_iter()
        .filter(|(secret, _)| secret.to_string() == "${keyring:token}")
        .map(|(_, path)| path)
        .collect();
    assert_eq!(uses, ["search.url", "mcpServers.one.args[0]"]);
}

#[test]
fn a_command_fetches_only_what_it_uses() {
    let folder = SecretFolder::new(&everything());
    let names = folder.read(SecretScope::Names, None);
    assert_eq!((folder.runs(), names.secrets().len()), (0, 0));
    assert!(folder.keyring.asked.borrow().is_empty());
    assert_eq!(names.unset().count(), 0);
    assert!(names.servers[0].settings.blocked.is_some());
    let model = json!({ "model": { "key": "${cmd:touch ran}" }, "serve": { "bind": "127.0.0.1:1", "token": "${file:key}" } });
    let folder = SecretFolder::new(&model);
    let tools = folder.read(SecretScope::Tools, None);
    assert!(!folder.folder.path().join("ran").exists());
    // The rest of such a section is there.
    assert_eq!(tools.serve.bind.port(), 1);
    assert_eq!(tools.serve.token, "");
}

#[test]
fn a_commands_secret_is_kept_until_its_entry_changes() {
    let folder = SecretFolder::new(&everything());
    let first = folder.read(SecretScope::Everything, None);
    std::fs::write(folder.folder.path().join("key"), "other-value").unwrap();
    let second = folder.read(SecretScope::Everything, Some(&first));
    assert_eq!(
        (folder.runs(), second.search.key.as_str()),
        (1, "other-value")
    );
    assert!(first.is_unchanged_from(&second) && first.fetched != second.fetched);
    let mut edited = everything();
    edited["limits"] = json!({ "timeout": "5s" });
    std::fs::write(folder.folder.path().join("t.json"), edited.to_string()).unwrap();
    folder.read(SecretScope::Everything, Some(&second));
    assert_eq!(folder.runs(), 2);
}

#[test]
fn only_lost_secrets_are_reported() {
    let folder = SecretFolder::new(&everything());
    let before = folder.read(SecretScope::Everything, None);
    std::fs::remove_file(folder.folder.path().join("key")).unwrap();
    let after = folder.read(SecretScope::Everything, Some(&before));
    let lost = after.fetched.lost_since(&before.fetched).unwrap();
    assert!(lost.starts_with("${file:key}: "), "{lost}");
    assert_eq!(before.fetched.lost_since(&after.fetched), None);
    let watched = after
        .fetched
        .files_to_watch(&|name| (name == "HOME").then(|| "/h".to_owned()));
    let real = folder.folder.path().canonicalize().unwrap();
    assert!(watched.contains(&real.join("key")), "{watched:?}");
    assert!(watched.contains(Path::new("/h/.local/state/toolgate/secrets.json")));
}
