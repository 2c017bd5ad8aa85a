//! Sections of the file become settings, strictly: every unknown key and every wrong value is told, not only the first.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use toolgate_core::describe_mismatch;

use super::variables::{self, Lookup, LookupError};
use super::{ConfigError, Document, Uses, unknown_key};

/// Whoever has more of them in one section reads no further.
const MOST_ERRORS: usize = 50;

pub(super) struct Sections<'a> {
    document: &'a Document,
    lookup: Lookup<'a>,
    uses: Uses,
    /// Variables that are unset, and secrets that can't be had, in a section which only some commands use.
    pub(super) unset: Vec<(&'static str, ConfigError)>,
    pub(super) errors: Vec<ConfigError>,
}

impl<'a> Sections<'a> {
    pub(super) fn new(document: &'a Document, lookup: Lookup<'a>, uses: Uses) -> Self {
        Self {
            document,
            lookup,
            uses,
            unset: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// A section that every command uses: an unset variable is an error.
    pub(super) fn needed<T: DeserializeOwned + Default>(&mut self, section: &'static str) -> T {
        let before = self.unset.len();
        let settings = self.read_with(section, self.lookup);
        let unset = self.unset.drain(before..);
        self.errors.extend(unset.map(|(_, error)| error));
        settings
    }

    /// A section that only some commands use: unset variables are kept for them.
    pub(super) fn read<T: DeserializeOwned + Default>(&mut self, section: &'static str) -> T {
        let secrets = self.lookup.secrets;
        let lookup = Lookup {
            secrets: secrets.filter(|_| self.uses.has_section(section)),
            ..self.lookup
        };
        self.read_with(section, lookup)
    }

    fn read_with<T: DeserializeOwned + Default>(
        &mut self,
        section: &'static str,
        lookup: Lookup<'_>,
    ) -> T {
        let Some(value) = self.document.value().get(section) else {
            return T::default();
        };
        if !value.is_object() {
            let text = format!("{section}: must be an object in {{ }}");
            self.errors.push(self.document.error_at(&[section], text));
            return T::default();
        }
        let mut pruned = Pruned::new(value.clone());
        let unresolved = variables::expand(&mut pruned.value, lookup);
        let before = self.unset.len();
        for one in unresolved.iter().take(MOST_ERRORS) {
            let way: Vec<&str> = [section]
                .into_iter()
                .chain(one.way.iter().map(String::as_str))
                .collect();
            let path = way.join(".");
            let text = match &one.error {
                LookupError::Unset(name) => format!("{path}: the variable {name} is not set"),
                LookupError::Secret(secret, problem) => format!("{path}: {secret}: {problem}"),
                // Nobody asks for it.
                LookupError::NotFetched => continue,
            };
            let error = self.document.error_at(&way, text);
            self.unset.push((section, error));
        }
        if unresolved.len() > MOST_ERRORS {
            return T::default();
        }
        // What they would be is not known; what is wrong besides is.
        for one in unresolved.iter().rev() {
            pruned.remove_named(&one.way);
        }
        let settings = self.deserialize(section, pruned);
        match self.unset.len() == before {
            true => settings,
            false => T::default(),
        }
    }

    /// Takes out what is wrong, one after the other, until the rest is right.
    fn deserialize<T: DeserializeOwned + Default>(
        &mut self,
        section: &str,
        mut pruned: Pruned,
    ) -> T {
        for _ in 0..MOST_ERRORS {
            let error = match serde_path_to_error::deserialize::<_, T>(&pruned.value) {
                Ok(settings) => return settings,
                Err(error) => error,
            };
            let current: Vec<Step> = error.path().iter().filter_map(Step::of).collect();
            let problem = error.inner().to_string();
            // A key that was wrong was taken out, and may be missed now.
            let missing = problem.strip_prefix("missing field `");
            let missing = missing.and_then(|rest| rest.split('`').next());
            if !missing.is_some_and(|name| pruned.lacks(&current, name)) {
                let way = pruned.original(&current);
                self.errors.push(self.wrong(section, &way, &problem));
            }
            if !pruned.remove(&current) {
                break;
            }
        }
        T::default()
    }

    fn wrong(&self, section: &str, inside: &[Step], problem: &str) -> ConfigError {
        let mut found = &self.document.value()[section];
        let mut way = vec![section.to_owned()];
        for step in inside {
            found = step.of_value(found).unwrap_or(&Value::Null);
            way.push(step.to_string());
        }
        let path = way.join(".");
        let problem = variables::unexpand(problem, found, self.lookup.environment);
        let text = match problem.rsplit_once(", expected ") {
            // serde tells the known names only inside its text.
            Some((unknown, known)) if unknown.starts_with("unknown field") => {
                let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
                unknown_key(&path, way.last().map_or(section, String::as_str), &known)
            }
            _ => format!("{path}: {}", describe_mismatch(&problem, found)),
        };
        self.document.error_at(&way, text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl Step {
    fn of(segment: &Segment) -> Option<Self> {
        match segment {
            Segment::Seq { index } => Some(Self::Index(*index)),
            Segment::Map { key } => Some(Self::Key(key.clone())),
            _ => None,
        }
    }

    fn of_value<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Key(key) => value.get(key),
            Self::Index(index) => value.get(index),
        }
    }

    fn of_value_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        match self {
            Self::Key(key) => value.get_mut(key),
            Self::Index(index) => value.get_mut(index),
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Index(index) => index.fmt(f),
        }
    }
}

/// A section without what was found to be wrong in it.
struct Pruned {
    value: Value,
    /// The ways to what was taken out, as in the file.
    gone: Vec<Vec<Step>>,
}

impl Pruned {
    fn new(value: Value) -> Self {
        Self {
            value,
            gone: Vec::new(),
        }
    }

    /// The way in the file to what now stands at `way`: items of a list move up when one before them is taken out.
    fn original(&self, way: &[Step]) -> Vec<Step> {
        let mut original: Vec<Step> = Vec::new();
        for step in way {
            let step = match step {
                Step::Key(_) => step.clone(),
                Step::Index(index) => {
                    let mut gone: Vec<usize> = self.gone_items(&original).collect();
                    gone.sort_unstable();
                    let moved = gone
                        .iter()
                        .fold(*index, |index, gone| index + usize::from(*gone <= index));
                    Step::Index(moved)
                }
            };
            original.push(step);
        }
        original
    }

    fn gone_items(&self, list: &[Step]) -> impl Iterator<Item = usize> {
        self.gone
            .iter()
            .filter_map(move |way| match way.split_last() {
                Some((Step::Index(index), parent)) if parent == list => Some(*index),
                _ => None,
            })
    }

    /// True if a key was taken out of the object at `way`.
    fn lacks(&self, way: &[Step], key: &str) -> bool {
        let mut way = self.original(way);
        way.push(Step::Key(key.to_owned()));
        self.gone.contains(&way)
    }

    fn remove(&mut self, way: &[Step]) -> bool {
        let original = self.original(way);
        let Some((last, parents)) = way.split_last() else {
            return false;
        };
        let parent = parents
            .iter()
            .try_fold(&mut self.value, |value, step| step.of_value_mut(value));
        let was_there = match (last, parent) {
            (Step::Key(key), Some(Value::Object(object))) => object.remove(key).is_some(),
            (Step::Index(index), Some(Value::Array(list))) if *index < list.len() => {
                list.remove(*index);
                true
            }
            _ => false,
        };
        self.gone.push(original);
        was_there
    }

    /// The same by names; items of a list come from the last to the first.
    fn remove_named(&mut self, way: &[String]) {
        let mut value = &self.value;
        let mut steps = Vec::new();
        for name in way {
            let step = match (value, name.parse()) {
                (Value::Array(_), Ok(index)) => Step::Index(index),
                _ => Step::Key(name.clone()),
            };
            value = step.of_value(value).unwrap_or(&Value::Null);
            steps.push(step);
        }
        self.remove(&steps);
    }
}
