//! Expands `${VAR}`, `${VAR:-default}`, `${env:VAR}` and `${env://VAR}` in strings, and the secrets
//! `${file:…}`, `${keyring:…}` and `${cmd:…}`.

use std::collections::BTreeSet;

use serde_json::Value;
use toolgate_core::text::escape;

use super::Environment;
use crate::secrets::{SecretFetcher, SecretReference};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LookupError {
    Unset(String),
    Secret(SecretReference, String),
    NotFetched,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnresolvedReference {
    pub(crate) error: LookupError,
    pub(crate) key_path: Vec<String>,
}

#[derive(Clone, Copy)]
pub(crate) struct ReferenceLookup<'a> {
    pub(crate) environment: Environment<'a>,
    pub(crate) secrets: Option<&'a SecretFetcher<'a>>,
}

pub(crate) fn expand(value: &mut Value, lookup: ReferenceLookup<'_>) -> Vec<UnresolvedReference> {
    let mut unresolved = Vec::new();
    walk(value, lookup, &mut Vec::new(), &mut unresolved);
    unresolved
}

/// Puts variables back into a message about a value, since what they stand for may be a secret.
pub(crate) fn unexpand(text: &str, written: &Value, environment: Environment<'_>) -> String {
    let mut found = ReferenceSet::default();
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

pub(crate) fn find(value: &Value, text: &str) -> Option<Vec<String>> {
    if let Value::String(string) = value {
        return string.contains(text).then(Vec::new);
    }
    children(value).find_map(|(name, value)| {
        let mut key_path = find(value, text)?;
        key_path.insert(0, name);
        Some(key_path)
    })
}

fn children(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    let items = value.as_array().into_iter().flatten().enumerate();
    let items = items.map(|(index, value)| (index.to_string(), value));
    let members = value.as_object().into_iter().flatten();
    items.chain(members.map(|(name, value)| (name.clone(), value)))
}

#[derive(Debug, Default)]
pub(crate) struct ReferenceSet {
    /// Names of variables, and anything else in `${…}`.
    pub(crate) variables: BTreeSet<String>,
    pub(crate) secrets: BTreeSet<SecretReference>,
}

impl ReferenceSet {
    pub(crate) fn collect(&mut self, value: &Value) {
        for piece in split_references(value.as_str().unwrap_or_default()) {
            let ReferencePiece::Reference { inner, .. } = piece else {
                continue;
            };
            match ValueReference::parse(inner) {
                Some(ValueReference::Secret(secret)) => drop(self.secrets.replace(secret)),
                Some(ValueReference::Variable { name, .. }) => self.add_variable(name),
                None => self.add_variable(inner),
            }
        }
        children(value).for_each(|(_, value)| self.collect(value));
    }

    fn add_variable(&mut self, name: &str) {
        self.variables.insert(name.to_owned());
    }
}

pub(crate) fn secret_uses(value: &Value, path: &str, uses: &mut Vec<(SecretReference, String)>) {
    if value.is_string() {
        let mut found = ReferenceSet::default();
        found.collect(value);
        let secrets = found.secrets.into_iter();
        uses.extend(secrets.map(|secret| (secret, path.to_owned())));
    }
    for (name, inner) in children(value) {
        let path = match value.is_array() {
            true => format!("{path}[{name}]"),
            false => format!("{path}.{name}"),
        };
        secret_uses(inner, &path, uses);
    }
}

fn walk(
    value: &mut Value,
    lookup: ReferenceLookup<'_>,
    key_path: &mut Vec<String>,
    unresolved: &mut Vec<UnresolvedReference>,
) {
    let mut inside = |name: String, value: &mut Value| {
        key_path.push(name);
        walk(value, lookup, key_path, unresolved);
        key_path.pop();
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
            Err(error) => unresolved.push(UnresolvedReference {
                error,
                key_path: key_path.clone(),
            }),
        },
        _ => {}
    }
}

/// Fails at the first reference without a value. What isn't a reference, such as `${input:x}` of
/// other clients, stays as it is.
fn expand_text(text: &str, lookup: ReferenceLookup<'_>) -> Result<String, LookupError> {
    let mut out = String::new();
    for piece in split_references(text) {
        match piece {
            ReferencePiece::Text(text) => out.push_str(text),
            ReferencePiece::Reference { whole, inner } => match ValueReference::parse(inner) {
                Some(reference) => out.push_str(&reference.value(lookup)?),
                None => out.push_str(whole),
            },
        }
    }
    Ok(out)
}

enum ReferencePiece<'a> {
    Text(&'a str),
    Reference { whole: &'a str, inner: &'a str },
}

fn split_references(text: &str) -> Vec<ReferencePiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        let Some(end) = end_of_reference(from) else {
            break;
        };
        let (whole, after) = from.split_at(end + 1);
        pieces.push(ReferencePiece::Text(before));
        let inner = &whole[2..end];
        pieces.push(ReferencePiece::Reference { whole, inner });
        rest = after;
    }
    pieces.push(ReferencePiece::Text(rest));
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

enum ValueReference<'a> {
    Variable {
        name: &'a str,
        default: Option<&'a str>,
    },
    Secret(SecretReference),
}

impl<'a> ValueReference<'a> {
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

    fn value(self, lookup: ReferenceLookup<'_>) -> Result<String, LookupError> {
        match self {
            Self::Variable { name, default } => {
                let value = (lookup.environment)(name);
                // As in a shell, `:-` also replaces a variable that is set but empty.
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

    fn lookup() -> ReferenceLookup<'static> {
        ReferenceLookup {
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
            .map(|one| (one.error, one.key_path.join(".")))
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
        let mut found = ReferenceSet::default();
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
