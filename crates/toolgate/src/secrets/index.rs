//! The names of the secrets that `toolgate secret set` has stored. Not every keyring can list its
//! entries, and running programs watch this file to notice a new secret.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use toolgate_core::text::escape;

use crate::config::{Environment, state_folder};
use crate::file;

const MAX_NAME_LEN: usize = 128;

#[derive(Default, Serialize, Deserialize)]
struct SecretIndex {
    names: BTreeSet<String>,
}

pub(crate) fn file(environment: Environment<'_>) -> Option<PathBuf> {
    state_folder(environment).map(|folder| folder.join("secrets.json"))
}

/// Accepts only names that need no quotes, neither in a configuration nor in a shell.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/@".contains(c);
    let is_sound = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
        && name.len() <= MAX_NAME_LEN;
    match is_sound {
        true => Ok(()),
        false => Err(format!(
            "'{}' is not a valid name for a secret: use at most {MAX_NAME_LEN} letters, digits and . _ - / @, with a letter or a digit first",
            escape(&name.chars().take(MAX_NAME_LEN).collect::<String>())
        )),
    }
}

pub(crate) fn names(environment: Environment<'_>) -> anyhow::Result<BTreeSet<String>> {
    let Some(path) = file(environment) else {
        return Ok(BTreeSet::new());
    };
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let stored: SecretIndex =
        serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(stored.names)
}

// Written even if nothing has changed, because programs that watch it fetch secrets again.
pub(crate) fn write(names: BTreeSet<String>, environment: Environment<'_>) -> anyhow::Result<()> {
    let path = file(environment)
        .context("cannot remember the name: neither HOME nor XDG_STATE_HOME is set")?;
    let text = format!("{:#}\n", serde_json::json!(SecretIndex { names }));
    file::create_parent_folder(&path)
        .and_then(|()| file::replace(&path, &text))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quotes() {
        for (name, expected) in [
            ("github", true),
            ("work/github.token_2@x-y", true),
            ("", false),
            ("-x", false),
            ("a b", false),
            ("a}", false),
            ("ä", false),
            (&"x".repeat(MAX_NAME_LEN), true),
            (&"x".repeat(MAX_NAME_LEN + 1), false),
        ] {
            assert_eq!(check_name(name).is_ok(), expected, "{name}");
        }
    }
}
