//! Edits servers and tools in our configuration file, keeping its comments and layout.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;
use toolgate_core::text::escape;

use crate::cli::GlobalOptions;
use crate::config::{self, ConfigDocument, ConfigLocation, Environment};
use crate::file;
use crate::folder_file::FolderFile;
use crate::trust::{TrustScope, TrustStore};
use crate::wiring;

// Some editors put it at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

pub(crate) struct ServerFile {
    path: PathBuf,
    location: ConfigLocation,
    root: CstRootNode,
    /// How much of a file in the working folder is agreed to. A command that edits it adds only its
    /// own edit, because the person hasn't seen the rest.
    agreed: RefCell<Option<TrustScope>>,
}

/// The file that `add`, `remove` and `import` write: `--config`, `$TOOLGATE_CONFIG`,
/// `./toolgate.json` if it is there, else the user's. Never a file that other programs write too.
fn editable_file(
    global: &GlobalOptions,
    here: &Path,
    environment: Environment<'_>,
) -> anyhow::Result<(PathBuf, ConfigLocation)> {
    if let Some(path) = config::named_file(global.config.as_deref(), environment) {
        return Ok((path, ConfigLocation::Named));
    }
    if config::files_in_folder(here, environment).contains(&here.join("toolgate.json")) {
        return Ok(("toolgate.json".into(), ConfigLocation::Here));
    }
    let user = config::user_file(environment);
    let user =
        user.context("cannot choose a file to write to: set HOME, or name one with --config")?;
    Ok((user, ConfigLocation::User))
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NameTakenError(pub(crate) String);

impl ServerFile {
    pub(crate) fn open(
        global: &GlobalOptions,
        environment: Environment<'_>,
    ) -> anyhow::Result<Self> {
        let here = std::env::current_dir().context("the working folder is gone")?;
        let (path, location) = editable_file(global, &here, environment)?;
        Self::open_at(path, location)
    }

    pub(crate) fn open_at(path: PathBuf, location: ConfigLocation) -> anyhow::Result<Self> {
        let (text, agreed) = match std::fs::symlink_metadata(&path) {
            // A new file of ours contains nothing unknown.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                ("{}\n".to_owned(), Some(TrustScope::Whole))
            }
            _ if location != ConfigLocation::Here => (ConfigDocument::read_text(&path)?, None),
            _ => {
                let text = ConfigDocument::read_text(&path)?;
                let file = FolderFile::open(&path)?;
                let is_same = file.bytes() == text.as_bytes();
                let agreed = TrustStore::read(&wiring::environment).scope(&file);
                (text, agreed.filter(|_| is_same))
            }
        };
        let file = Self::parse(path, location, &text)?;
        *file.agreed.borrow_mut() = agreed;
        Ok(file)
    }

    fn parse(path: PathBuf, location: ConfigLocation, text: &str) -> anyhow::Result<Self> {
        // Parsed as it will be read later, so that errors have a line, and a broken
        // file isn't made worse.
        let document = ConfigDocument::parse(&path, text.as_bytes())?;
        if !document.value().is_object() {
            bail!("{}: must be a JSON object", path.display());
        }
        for key in config::servers::KEYS {
            config::servers::entries(&document, key)?;
        }
        let root = CstRootNode::parse(
            text.trim_start_matches(BYTE_ORDER_MARK),
            &ParseOptions::default(),
        )
        .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self {
            path,
            location,
            root,
            agreed: RefCell::default(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn location(&self) -> ConfigLocation {
        self.location
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let objects = config::servers::KEYS
            .into_iter()
            .filter_map(|key| self.servers(key));
        let properties = objects.flat_map(|object| object.properties());
        properties
            .filter_map(|property| property.decoded_name())
            .collect()
    }

    pub(crate) fn entry(&self, name: &str) -> anyhow::Result<Option<Value>> {
        let document = ConfigDocument::parse(&self.path, self.root.to_string().as_bytes())?;
        let mut objects = config::servers::KEYS
            .into_iter()
            .map(|key| &document.value()[key]);
        Ok(objects.find_map(|object| object.get(name)).cloned())
    }

    pub(crate) fn put(&self, name: &str, entry: &Value) {
        if let Some(property) = self.find(name) {
            return property.set_value(input(entry));
        }
        let servers = config::servers::KEYS
            .into_iter()
            .find_map(|key| self.servers(key));
        let servers = servers.unwrap_or_else(|| {
            self.root
                .object_value_or_set()
                .object_value_or_set("mcpServers")
        });
        servers.append(name, input(entry));
    }

    /// Agrees to a server that the person has typed. Takes effect when saved.
    pub(crate) fn agree_to(&self, name: &str) {
        let mut agreed = self.agreed.borrow_mut();
        match &mut *agreed {
            Some(TrustScope::Whole) => {}
            Some(TrustScope::Servers(names)) if names.iter().any(|one| one == name) => {}
            Some(TrustScope::Servers(names)) => names.push(name.to_owned()),
            none => *none = Some(TrustScope::Servers(vec![name.to_owned()])),
        }
    }

    /// True if part of a file in the working folder isn't in use, because it isn't agreed to.
    pub(crate) fn is_untrusted(&self) -> bool {
        self.location == ConfigLocation::Here && *self.agreed.borrow() != Some(TrustScope::Whole)
    }

    pub(crate) fn remove(&self, name: &str) -> bool {
        let found = self.find(name);
        let was_there = found.is_some();
        if let Some(property) = found {
            property.remove();
        }
        was_there
    }

    pub(crate) fn add_tool(&self, definition: &Value) -> anyhow::Result<()> {
        let root = self.root.object_value_or_set();
        let document = ConfigDocument::parse(&self.path, self.root.to_string().as_bytes())?;
        let tools = &document.value()["tools"];
        if !matches!(tools, Value::Null | Value::Array(_)) {
            bail!(
                "{}: tools: must be a list of tool definitions",
                self.path.display()
            );
        }
        let name = &definition["name"];
        let mut there = tools.as_array().into_iter().flatten();
        if there.any(|tool| tool["name"] == *name) {
            let name = escape(name.as_str().unwrap_or_default());
            let path = self.path.display();
            bail!(NameTakenError(format!(
                "{path} already has a tool '{name}'"
            )));
        }
        root.array_value_or_set("tools").append(input(definition));
        Ok(())
    }

    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let text = self.to_text();
        ConfigDocument::parse(&self.path, text.as_bytes()).context("nothing was written")?;
        file::create_parent_folder(&self.path)
            .and_then(|()| file::replace(&self.path, &text))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        match &*self.agreed.borrow() {
            Some(scope) if self.location == ConfigLocation::Here => agree(&self.path, &text, scope),
            _ => Ok(()),
        }
    }

    fn to_text(&self) -> String {
        let text = self.root.to_string();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        text + end
    }

    fn servers(&self, key: &str) -> Option<CstObject> {
        self.root.object_value()?.object_value(key)
    }

    fn find(&self, name: &str) -> Option<CstObjectProp> {
        let mut objects = config::servers::KEYS
            .into_iter()
            .filter_map(|key| self.servers(key));
        objects.find_map(|object| object.get(name))
    }
}

/// Agrees to a file that we have just written. Fails if it has changed since.
pub(crate) fn agree(path: &Path, text: &str, scope: &TrustScope) -> anyhow::Result<()> {
    let file = FolderFile::open(path)?;
    if file.bytes() != text.as_bytes() {
        bail!(
            "{} was changed by another program in the meantime; 'toolgate trust' shows what it does",
            path.display()
        );
    }
    TrustStore::read(&wiring::environment).agree(&file, scope, &wiring::environment)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(input).collect()),
        Value::Object(object) => {
            let properties = object
                .iter()
                .map(|(name, value)| (name.clone(), input(value)));
            CstInputValue::Object(properties.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open(text: &str) -> ServerFile {
        ServerFile::parse("t.json".into(), ConfigLocation::Named, text).unwrap()
    }

    fn after(text: &str, change: impl FnOnce(&ServerFile)) -> String {
        let file = open(text);
        change(&file);
        file.to_text()
    }

    #[test]
    fn a_server_is_added_to_the_existing_section() {
        let entry = json!({ "command": "npx", "args": ["-y", "x"], "env": { "K": "v\"\\\n" } });
        let put = |text: &str| after(text, |file| file.put("new", &entry));
        let written = r#"{
    "command": "npx",
    "args": ["-y", "x"],
    "env": {
"#;
        for (text, parts) in [
            ("{}\n", &["{\n  \"mcpServers\": {\n    \"new\": {\n"][..]),
            (
                "// mine\n{\n  // limits\n  \"limits\": {} // none\n}\n",
                &["// mine\n{\n  // limits\n  \"limits\": {}, // none\n  \"mcpServers\": {"],
            ),
            (
                "{\n\t\"servers\": {\n\t\t\"a\": { \"command\": \"x\" }, // first\n\t}\n}",
                &["\t\t\"a\": { \"command\": \"x\" }, // first\n\t\t\"new\": {"],
            ),
            (
                "{ \"mcpServers\": { /* was here */ \"new\": { \"command\": \"old\" }, \"b\": {} } }",
                &["/* was here */ \"new\": {", "\"b\": {}"],
            ),
        ] {
            let made = put(text);
            for part in parts {
                assert!(made.contains(part), "{part}\n{made}");
            }
            let document = ConfigDocument::parse(Path::new("t"), made.as_bytes()).unwrap();
            let servers = [
                &document.value()["mcpServers"],
                &document.value()["servers"],
            ];
            assert!(
                servers.iter().any(|servers| servers["new"] == entry),
                "{made}"
            );
        }
        assert!(
            put("{}").contains(written.trim()) || put("{}").contains("\"args\": [\"-y\", \"x\"]")
        );
    }

    #[test]
    fn removing_a_server_keeps_the_rest() {
        let text = "{\n  \"mcpServers\": {\n    // about a\n    \"a\": { \"command\": \"x\" },\n    // about b\n    \"b\": {}\n  }\n}\n";
        let made = after(text, |file| assert!(file.remove("a") && !file.remove("a")));
        let document = ConfigDocument::parse(Path::new("t"), made.as_bytes()).unwrap();
        assert_eq!(document.value(), &json!({ "mcpServers": { "b": {} } }));
        assert!(made.contains("// about b"), "{made}");
        assert_eq!(open(text).names(), ["a", "b"]);
    }

    #[test]
    fn an_unreadable_file_is_not_edited() {
        for text in [
            "{ nope",
            "[]",
            "{ \"mcpServers\": [] }",
            "{ \"a\": 1, \"a\": 2 }",
        ] {
            assert!(
                ServerFile::parse("t.json".into(), ConfigLocation::Named, text).is_err(),
                "{text}"
            );
        }
    }
}
