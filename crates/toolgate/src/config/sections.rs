//! Deserializes sections strictly, and reports every unknown key and wrong value rather
//! than only the first.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use toolgate_core::text::describe_mismatch;

use super::unknown_keys::unknown_key;
use super::variables::{self, LookupError, ReferenceLookup};
use super::{ConfigDocument, ConfigError, SecretScope};

// After this many errors in one section, more don't help.
const MAX_ERRORS: usize = 50;

pub(super) struct SectionReader<'a> {
    document: &'a ConfigDocument,
    lookup: ReferenceLookup<'a>,
    secret_scope: SecretScope,
    pub(super) unset: Vec<(&'static str, ConfigError)>,
    pub(super) errors: Vec<ConfigError>,
}

impl<'a> SectionReader<'a> {
    pub(super) fn new(
        document: &'a ConfigDocument,
        lookup: ReferenceLookup<'a>,
        secret_scope: SecretScope,
    ) -> Self {
        Self {
            document,
            lookup,
            secret_scope,
            unset: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// A section that every command uses: an unset variable is an error.
    pub(super) fn read_required<T: DeserializeOwned + Default>(
        &mut self,
        section: &'static str,
    ) -> T {
        let before = self.unset.len();
        let settings = self.read_with(section, self.lookup);
        let unset = self.unset.drain(before..);
        self.errors.extend(unset.map(|(_, error)| error));
        settings
    }

    /// A section that only some commands use: unset variables are recorded for those.
    pub(super) fn read<T: DeserializeOwned + Default>(&mut self, section: &'static str) -> T {
        let secrets = self.lookup.secrets;
        let lookup = ReferenceLookup {
            secrets: secrets.filter(|_| self.secret_scope.has_section(section)),
            ..self.lookup
        };
        self.read_with(section, lookup)
    }

    fn read_with<T: DeserializeOwned + Default>(
        &mut self,
        section: &'static str,
        lookup: ReferenceLookup<'_>,
    ) -> T {
        let Some(value) = self.document.value().get(section) else {
            return T::default();
        };
        if !value.is_object() {
            let text = format!("{section}: must be an object in {{ }}");
            self.errors.push(self.document.error_at(&[section], text));
            return T::default();
        }
        let mut pruned = PrunedSection::new(value.clone());
        let unresolved = variables::expand(&mut pruned.value, lookup);
        let before = self.unset.len();
        for one in unresolved.iter().take(MAX_ERRORS) {
            let key_path: Vec<&str> = [section]
                .into_iter()
                .chain(one.key_path.iter().map(String::as_str))
                .collect();
            let path = key_path.join(".");
            let text = match &one.error {
                LookupError::Unset(name) => format!("{path}: the variable {name} is not set"),
                LookupError::Secret(secret, problem) => format!("{path}: {secret}: {problem}"),
                // This command doesn't use the section.
                LookupError::NotFetched => continue,
            };
            let error = self.document.error_at(&key_path, text);
            self.unset.push((section, error));
        }
        if unresolved.len() > MAX_ERRORS {
            return T::default();
        }
        // Their values are unknown. Remove them, and check the rest.
        for one in unresolved.iter().rev() {
            pruned.remove_named(&one.key_path);
        }
        let settings = self.deserialize(section, pruned);
        match self.unset.len() == before {
            true => settings,
            false => T::default(),
        }
    }

    // Removes one error after another until the rest is right, because serde stops at the first.
    fn deserialize<T: DeserializeOwned + Default>(
        &mut self,
        section: &str,
        mut pruned: PrunedSection,
    ) -> T {
        for _ in 0..MAX_ERRORS {
            let error = match serde_path_to_error::deserialize::<_, T>(&pruned.value) {
                Ok(settings) => return settings,
                Err(error) => error,
            };
            let current: Vec<SectionStep> = error
                .path()
                .iter()
                .filter_map(SectionStep::from_segment)
                .collect();
            let problem = error.inner().to_string();
            // Removing a wrong key may cause a "missing field" error, which isn't another mistake.
            let missing = problem.strip_prefix("missing field `");
            let missing = missing.and_then(|rest| rest.split('`').next());
            if !missing.is_some_and(|name| pruned.lacks(&current, name)) {
                let key_path = pruned.original(&current);
                self.errors
                    .push(self.error_about(section, &key_path, &problem));
            }
            if !pruned.remove(&current) {
                break;
            }
        }
        T::default()
    }

    fn error_about(&self, section: &str, inside: &[SectionStep], problem: &str) -> ConfigError {
        let mut found = &self.document.value()[section];
        let mut key_path = vec![section.to_owned()];
        for step in inside {
            found = step.get(found).unwrap_or(&Value::Null);
            key_path.push(step.to_string());
        }
        let path = key_path.join(".");
        let problem = variables::unexpand(problem, found, self.lookup.environment);
        let text = match problem.rsplit_once(", expected ") {
            // serde names the known keys only in its message.
            Some((unknown, known)) if unknown.starts_with("unknown field") => {
                let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
                unknown_key(
                    &path,
                    key_path.last().map_or(section, String::as_str),
                    &known,
                )
            }
            _ => format!("{path}: {}", describe_mismatch(&problem, found)),
        };
        self.document.error_at(&key_path, text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SectionStep {
    Key(String),
    Index(usize),
}

impl SectionStep {
    fn from_segment(segment: &Segment) -> Option<Self> {
        match segment {
            Segment::Seq { index } => Some(Self::Index(*index)),
            Segment::Map { key } => Some(Self::Key(key.clone())),
            _ => None,
        }
    }

    fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Key(key) => value.get(key),
            Self::Index(index) => value.get(index),
        }
    }

    fn get_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        match self {
            Self::Key(key) => value.get_mut(key),
            Self::Index(index) => value.get_mut(index),
        }
    }
}

impl std::fmt::Display for SectionStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Index(index) => index.fmt(f),
        }
    }
}

struct PrunedSection {
    value: Value,
    removed: Vec<Vec<SectionStep>>,
}

impl PrunedSection {
    fn new(value: Value) -> Self {
        Self {
            value,
            removed: Vec::new(),
        }
    }

    /// Maps a path in `value` to one in the file: list items move up when an
    /// earlier one is removed.
    fn original(&self, key_path: &[SectionStep]) -> Vec<SectionStep> {
        let mut original: Vec<SectionStep> = Vec::new();
        for step in key_path {
            let step = match step {
                SectionStep::Key(_) => step.clone(),
                SectionStep::Index(index) => {
                    let mut gone: Vec<usize> = self.gone_items(&original).collect();
                    gone.sort_unstable();
                    let moved = gone
                        .iter()
                        .fold(*index, |index, gone| index + usize::from(*gone <= index));
                    SectionStep::Index(moved)
                }
            };
            original.push(step);
        }
        original
    }

    fn gone_items(&self, list: &[SectionStep]) -> impl Iterator<Item = usize> {
        self.removed
            .iter()
            .filter_map(move |key_path| match key_path.split_last() {
                Some((SectionStep::Index(index), parent)) if parent == list => Some(*index),
                _ => None,
            })
    }

    fn lacks(&self, key_path: &[SectionStep], key: &str) -> bool {
        let mut key_path = self.original(key_path);
        key_path.push(SectionStep::Key(key.to_owned()));
        self.removed.contains(&key_path)
    }

    fn remove(&mut self, key_path: &[SectionStep]) -> bool {
        let original = self.original(key_path);
        let Some((last, parents)) = key_path.split_last() else {
            return false;
        };
        let parent = parents
            .iter()
            .try_fold(&mut self.value, |value, step| step.get_mut(value));
        let was_there = match (last, parent) {
            (SectionStep::Key(key), Some(Value::Object(object))) => object.remove(key).is_some(),
            (SectionStep::Index(index), Some(Value::Array(list))) if *index < list.len() => {
                list.remove(*index);
                true
            }
            _ => false,
        };
        self.removed.push(original);
        was_there
    }

    /// Like `remove`, by names. Items of a list have to be removed from the last to the first.
    fn remove_named(&mut self, key_path: &[String]) {
        let mut value = &self.value;
        let mut steps = Vec::new();
        for name in key_path {
            let step = match (value, name.parse()) {
                (Value::Array(_), Ok(index)) => SectionStep::Index(index),
                _ => SectionStep::Key(name.clone()),
            };
            value = step.get(value).unwrap_or(&Value::Null);
            steps.push(step);
        }
        self.remove(&steps);
    }
}
