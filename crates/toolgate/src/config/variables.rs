//! `${VAR}`, `${VAR:-default}`, `${env:VAR}` and `${env://VAR}` in the strings of a section, and the secrets `${file:…}`,
//! `${keyring:…}` and `${cmd:…}`.

use std::collections::BTreeSet;

use serde_json::Value;
use toolgate_core::escape;

use super::Environment;
use crate::secrets::{SecretFetcher, SecretReference};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LookupError {
    Unset(String),
    Secret(SecretReference, String),
    /// A secret that the command doesn't use.
    NotFetched,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unresolved {
    pub(crate) error: LookupError,
    /// Way to the string inside the section.
    pub(crate) way: Vec<String>,
}

#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) environment: Environment<'a>,
    /// `None` where no secret is used.
    pub(crate) secrets: Option<&'a SecretFetcher<'a>>,
}

/// Replaces references in every string of a value; finds all that have no value.
pub(crate) fn expand(value: &mut Value, lookup: Lookup<'_>) -> Vec<Unresolved> {
    let mut unresolved = Vec::new();
    walk(value, lookup, &mut Vec::new(), &mut unresolved);
    unresolved
}

/// A text about a value, with its variables as they stand in the file: what one stands for may be a secret.
pub(crate) fn unexpand(text: &str, written: &Value, environment: Environment<'_>) -> String {
    let mut found = References::default();
    found.collect(written);
    found.variables.iter().fold(text.to_owned(), |text, name| {
        let value = environment(name).filter(|value| !value.is_empty());
        value.map_or(text.clone(), |value| {
            let reference = format!("${{{name}}}");
            let text = text.replace(&value, &reference);
            text.replace(&escape(&value), &reference)
        })
    })
}

/// The way to the first string that holds `text`.
pub(crate) fn find(value: &Value, text: &str) -> Option<Vec<String>> {
    let inside = |name: String, value: &Value| {
        let mut way = find(value, text)?;
        way.insert(0, name);
        Some(way)
    };
    match value {
        Value::String(string) => string.contains(text).then(Vec::new),
        Value::Array(array) => array
            .iter()
            .enumerate()
            .find_map(|(index, value)| inside(index.to_string(), value)),
        Value::Object(object) => object
            .iter()
            .find_map(|(name, value)| inside(name.clone(), value)),
        _ => None,
    }
}

#[derive(Debug, Default)]
pub(crate) struct References {
    /// Names of variables, and whatever else is written that way.
    pub(crate) variables: BTreeSet<String>,
    pub(crate) secrets: BTreeSet<SecretReference>,
}

impl References {
    pub(crate) fn collect(&mut self, value: &Value) {
        match value {
            Value::Array(array) => array.iter().for_each(|value| self.collect(value)),
            Value::Object(object) => object.values().for_each(|value| self.collect(value)),
            Value::String(text) => {
                for piece in pieces(text) {
                    match piece {
                        Piece::Text(_) => {}
                        Piece::Reference { inner, .. } => match Reference::parse(inner) {
                            Some(Reference::Secret(secret)) => {
                                self.secrets.insert(secret);
                            }
                            Some(Reference::Variable { name, .. }) => {
                                self.variables.insert(name.to_owned());
                            }
                            None => {
                                self.variables.insert(inner.to_owned());
                            }
                        },
                    }
                }
            }
            _ => {}
        }
    }
}

/// Every string that refers to a secret, by its path below `path`.
pub(crate) fn secret_uses(value: &Value, path: &str, uses: &mut Vec<(SecretReference, String)>) {
    match value {
        Value::Array(array) => {
            for (index, value) in array.iter().enumerate() {
                secret_uses(value, &format!("{path}[{index}]"), uses);
            }
        }
        Value::Object(object) => {
            for (name, value) in object {
                secret_uses(value, &format!("{path}.{name}"), uses);
            }
        }
        value => {
            let mut found = References::default();
            found.collect(value);
            let secrets = found.secrets.into_iter();
            uses.extend(secrets.map(|secret| (secret, path.to_owned())));
        }
    }
}

fn walk(
    value: &mut Value,
    lookup: Lookup<'_>,
    way: &mut Vec<String>,
    unresolved: &mut Vec<Unresolved>,
) {
    let mut inside = |name: String, value: &mut Value| {
        way.push(name);
        walk(value, lookup, way, unresolved);
        way.pop();
    };
    match value {
        Value::Array(array) => array
            .iter_mut()
            .enumerate()
            .for_each(|(index, value)| inside(index.to_string(), value)),
        Value::Object(object) => object
            .iter_mut()
            .for_each(|(name, value)| inside(name.clone(), value)),
        Value::String(text) => match expand_text(text, lookup) {
            Ok(expanded) => *text = expanded,
            Err(error) => unresolved.push(Unresolved {
                error,
                way: way.clone(),
            }),
        },
        _ => {}
    }
}

/// `Err` is about the first reference without a value. What is no reference, such as `${input:x}` of other clients, stays as it
/// is.
fn expand_text(text: &str, lookup: Lookup<'_>) -> Result<String, LookupError> {
    let mut out = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Reference { whole, inner } => match Reference::parse(inner) {
                Some(reference) => out.push_str(&reference.value(lookup)?),
                None => out.push_str(whole),
            },
        }
    }
    Ok(out)
}

enum Piece<'a> {
    Text(&'a str),
    Reference {
        /// With `${` and `}`.
        whole: &'a str,
        inner: &'a str,
    },
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        let Some(end) = end_of_reference(from) else {
            break;
        };
        let (whole, after) = from.split_at(end + 1);
        pieces.push(Piece::Text(before));
        let inner = &whole[2..end];
        pieces.push(Piece::Reference { whole, inner });
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

fn end_of_reference(from: &str) -> Option<usize> {
    if !from.starts_with("${cmd:") {
        return from.find('}');
    }
    let mut open = 0_usize;
    from.char_indices().find_map(|(index, c)| {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            _ => return None,
        }
        (open == 0).then_some(index)
    })
}

enum Reference<'a> {
    Variable {
        name: &'a str,
        default: Option<&'a str>,
    },
    Secret(SecretReference),
}

impl<'a> Reference<'a> {
    fn parse(inner: &'a str) -> Option<Self> {
        if let Some(secret) = SecretReference::parse(inner) {
            return Some(Self::Secret(secret));
        }
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let name = match name.strip_prefix("env:") {
            Some(name) => name.strip_prefix("//").unwrap_or(name),
            None => name,
        };
        let sound = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let sound = sound && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        sound.then_some(Self::Variable { name, default })
    }

    fn value(self, lookup: Lookup<'_>) -> Result<String, LookupError> {
        match self {
            Self::Variable { name, default } => {
                let value = (lookup.environment)(name);
                // As in a shell, `:-` also stands in for a variable that is set to nothing.
                let value = value.filter(|value| default.is_none() || !value.is_empty());
                value
                    .or(default.map(str::to_owned))
                    .ok_or_else(|| LookupError::Unset(name.to_owned()))
            }
            Self::Secret(secret) => match lookup.secrets {
                None => Err(LookupError::NotFetched),
                Some(fetcher) => fetcher
                    .fetch(&secret)
                    .map_err(|problem| LookupError::Secret(secret, problem)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("example.org".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn lookup() -> Lookup<'static> {
        Lookup {
            environment: &environment,
            secrets: None,
        }
    }

    #[test]
    fn variables_are_replaced() {
        for (text, expected) in [
            ("plain", Ok("plain")),
            (
                "https://${HOST}/${env:HOST}",
                Ok("https://example.org/example.org"),
            ),
            ("${NOPE:-x}${EMPTY:-y}${EMPTY}", Ok("xy")),
            ("${NOPE:-}", Ok("")),
            ("${env://HOST}${env://NOPE:-x}", Ok("example.orgx")),
            ("a${NOPE}", Err("NOPE")),
            (
                "${input:key} ${} ${a b} $HOST ${HOST",
                Ok("${input:key} ${} ${a b} $HOST ${HOST"),
            ),
        ] {
            assert_eq!(
                expand_text(text, lookup()),
                expected
                    .map(str::to_owned)
                    .map_err(|name: &str| LookupError::Unset(name.to_owned())),
                "{text}"
            );
        }
    }

    #[test]
    fn every_unset_variable_is_found_with_its_place() {
        let mut value = json!({ "a": ["${HOST}", "${ONE}"], "b": { "c": "${TWO}" } });
        let unresolved = expand(&mut value, lookup());
        assert_eq!(value["a"][0], "example.org");
        let unset = |name: &str| LookupError::Unset(name.to_owned());
        let found: Vec<(LookupError, String)> = unresolved
            .into_iter()
            .map(|one| (one.error, one.way.join(".")))
            .collect();
        assert_eq!(
            found,
            [
                (unset("ONE"), "a.1".to_owned()),
                (unset("TWO"), "b.c".to_owned())
            ]
        );
    }

    #[test]
    fn secrets_are_found_with_the_braces_of_a_command() {
        let mut found = References::default();
        found.collect(&json!([
            "${file:/a b}-${keyring:k}${X:-1}",
            { "x": "${cmd:awk '{print ${2}}' f}}" },
            "${cmd:never closed {}",
        ]));
        let secrets: Vec<String> = found.secrets.iter().map(ToString::to_string).collect();
        assert_eq!(
            secrets,
            [
                "${file:/a b}",
                "${keyring:k}",
                "${cmd:awk '{print ${2}}' f}"
            ]
        );
        assert_eq!(found.variables, BTreeSet::from(["X".to_owned()]));
        let not_fetched = expand_text("a ${keyring:k}", lookup());
        assert_eq!(not_fetched, Err(LookupError::NotFetched));
    }
}
