//! Tools from a file: `{name, description, parameters, implementation}`.
//!
//! One bad entry is left out and named, the rest load. A handler that does not exist is not a bad entry: the tool is
//! registered and each of its calls says so.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_core::{
    DefinitionError, FunctionTool, HandlerKind, Source, Tool, ToolDefinition, nearest, unknown_word,
};

use crate::Handlers;
use crate::handlers::MissingHandler;

/// What came of a list of definitions.
///
/// ```
/// use toolgate_tools::{Handlers, builtin::BuiltinSettings};
///
/// let loaded = Handlers::new(&BuiltinSettings::default()).load(&[]);
/// assert!(loaded.tools.is_empty() && loaded.problems.is_empty());
/// ```
#[derive(Default)]
#[non_exhaustive]
pub struct Loaded {
    /// The tools, in the order of the file.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What was wrong, in the order of the file.
    pub problems: Vec<Problem>,
}

/// Something wrong with one entry.
///
/// ```
/// use serde_json::json;
/// use toolgate_tools::{Handlers, builtin::BuiltinSettings};
///
/// let loaded = Handlers::new(&BuiltinSettings::default()).load(&[json!({ "name": "x" })]);
/// assert_eq!(loaded.problems[0].text, "tool 'x' is left out: missing 'description', missing 'parameters', missing 'implementation'");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Which entry of the list.
    pub index: usize,
    /// The way to the key inside the entry, so that a file and line can be found for it.
    pub path: Vec<String>,
    /// What is wrong, naming the tool.
    pub text: String,
    /// True if the tool was left out because of it.
    pub left_out: bool,
}

const KEYS: [&str; 4] = ["name", "description", "parameters", "implementation"];

const TYPES: [&str; 3] = ["mock", "builtin", "internal"];

/// The keys an implementation of a type may have.
fn implementation_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "mock" => &["type", "mock_response"],
        "builtin" | "internal" => &["type", "handler"],
        _ => &["type", "mock_response", "handler"],
    }
}

impl Handlers {
    /// Makes tools of definitions as they stand in a file.
    pub fn load(&self, definitions: &[Value]) -> Loaded {
        let mut loaded = Loaded::default();
        for (index, entry) in definitions.iter().enumerate() {
            let entry = Entry {
                index,
                value: entry,
            };
            loaded.problems.extend(entry.unknown_keys());
            match entry.tool(self) {
                Ok((tool, problem)) => {
                    loaded.tools.push(tool);
                    loaded.problems.extend(problem);
                }
                Err(problems) => loaded.problems.extend(problems),
            }
        }
        loaded
    }
}

/// A tool, and what is odd about it.
type LoadedTool = (Arc<dyn Tool>, Option<Problem>);

/// One definition as it stands in the file.
struct Entry<'a> {
    index: usize,
    value: &'a Value,
}

impl Entry<'_> {
    /// The tool, perhaps with something to warn about; else everything that is wrong.
    fn tool(&self, handlers: &Handlers) -> Result<LoadedTool, Vec<Problem>> {
        let Value::Object(written) = self.value else {
            return Err(vec![self.left_out([], "it must be an object in { }")]);
        };
        let wrong = self.wrong(written);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let implementation = &written["implementation"];
        let (source, kind) = match implementation["type"].as_str() {
            Some("builtin") => (Source::Builtin, Some(HandlerKind::Builtin)),
            Some("internal") => (Source::Internal, Some(HandlerKind::Internal)),
            _ => (Source::Mock, None),
        };
        let text = |key: &str| written[key].as_str().unwrap_or_default();
        let parameters = written["parameters"].clone();
        let definition = ToolDefinition::builder(text("name"), text("description"), parameters)
            .source(source)
            .build();
        let define = || definition.map_err(|error| vec![self.refused(&error)]);
        let Some(kind) = kind else {
            let answer = implementation["mock_response"].clone();
            return Ok((Arc::new(FunctionTool::mock(define()?, answer)), None));
        };
        let name = implementation["handler"].as_str().unwrap_or_default();
        let found = handlers.find(kind, name).map_err(|error| {
            let text = format!("{kind} handler '{name}' {error}");
            vec![self.left_out(["implementation", "handler"], &text)]
        })?;
        let problem = match found {
            Some(_) => None,
            None => Some(self.missing_handler(handlers, kind, name)),
        };
        let handler = found.unwrap_or_else(|| {
            let name = name.to_owned();
            Arc::new(MissingHandler { kind, name })
        });
        let tool = FunctionTool::with_handler(define()?, handler);
        Ok((Arc::new(tool), problem))
    }

    /// What is missing, has the wrong type or is an unknown word.
    fn wrong(&self, written: &Map<String, Value>) -> Vec<Problem> {
        let mut wrong = Vec::new();
        let missing = KEYS.iter().filter(|key| !written.contains_key(**key));
        let missing: Vec<String> = missing.map(|key| format!("missing '{key}'")).collect();
        if !missing.is_empty() {
            wrong.push(self.left_out([], &missing.join(", ")));
        }
        for key in ["name", "description"] {
            if written.get(key).is_some_and(|value| !value.is_string()) {
                wrong.push(self.left_out([key], &format!("{key}: must be a string")));
            }
        }
        if let Some(implementation) = written.get("implementation") {
            wrong.extend(self.wrong_implementation(implementation));
        }
        wrong
    }

    fn wrong_implementation(&self, implementation: &Value) -> Option<Problem> {
        let example = "such as { \"type\": \"builtin\", \"handler\": \"echo\" }";
        let Value::Object(object) = implementation else {
            let text = format!("implementation: must be an object, {example}");
            return Some(self.left_out(["implementation"], &text));
        };
        let Some(kind) = object.get("type") else {
            let text = format!("implementation: missing 'type', {example}");
            return Some(self.left_out(["implementation"], &text));
        };
        let known = kind.as_str().filter(|kind| TYPES.contains(kind));
        let (key, is_right) = match known {
            Some("mock") => ("mock_response", object.contains_key("mock_response")),
            Some(_) => (
                "handler",
                object.get("handler").is_some_and(Value::is_string),
            ),
            None => {
                let text = match kind.as_str() {
                    Some(word) => format!("implementation.type: {}", unknown_word(word, &TYPES)),
                    None => format!("implementation.type: must be one of: {}", TYPES.join(", ")),
                };
                return Some(self.left_out(["implementation", "type"], &text));
            }
        };
        match (is_right, object.contains_key(key)) {
            (true, _) => None,
            (false, true) => {
                let text = format!("implementation.{key}: must be a string");
                Some(self.left_out(["implementation", key], &text))
            }
            (false, false) => {
                let text = format!("implementation: missing '{key}'");
                Some(self.left_out(["implementation"], &text))
            }
        }
    }

    fn unknown_keys(&self) -> Vec<Problem> {
        let inner = self.value.get("implementation").unwrap_or(&Value::Null);
        let kind = inner
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let places = [
            (self.value, &[][..], &KEYS[..]),
            (inner, &["implementation"], implementation_keys(kind)),
        ];
        let mut problems = Vec::new();
        for (object, way, known) in places {
            let keys = object
                .as_object()
                .into_iter()
                .flat_map(|object| object.keys());
            for key in keys.filter(|key| !known.contains(&key.as_str())) {
                let hint = nearest(key, known.iter().copied(), 1)
                    .pop()
                    .map(|name| format!(", did you mean '{name}'?"));
                let text = format!(
                    "{}: unknown key '{key}' is ignored{}",
                    self.title(),
                    hint.unwrap_or_default()
                );
                problems.push(self.problem(
                    way.iter().copied().chain([key.as_str()]),
                    &text,
                    false,
                ));
            }
        }
        problems
    }

    fn refused(&self, error: &DefinitionError) -> Problem {
        let key = match error {
            DefinitionError::Name { .. } => "name",
            DefinitionError::NoDescription { .. } => "description",
            _ => "parameters",
        };
        self.left_out([key], &error.to_string())
    }

    fn left_out<'k>(&self, way: impl IntoIterator<Item = &'k str>, text: &str) -> Problem {
        self.problem(way, &format!("{} is left out: {text}", self.title()), true)
    }

    fn missing_handler(&self, handlers: &Handlers, kind: HandlerKind, name: &str) -> Problem {
        let names = handlers.names(kind);
        let hint = match nearest(name, names.iter().copied(), 1).pop() {
            Some(name) => format!("did you mean '{name}'?"),
            None if names.is_empty() => "there are none".to_owned(),
            None => format!("there are: {}", names.join(", ")),
        };
        let text = format!(
            "{}: {kind} handler '{name}' not found, {hint}",
            self.title()
        );
        self.problem(["implementation", "handler"], &text, false)
    }

    fn title(&self) -> String {
        match self.value.get("name").and_then(Value::as_str) {
            Some(name) if !name.is_empty() => format!("tool '{name}'"),
            _ => format!("tool number {}", self.index + 1),
        }
    }

    fn problem<'k>(
        &self,
        way: impl IntoIterator<Item = &'k str>,
        text: &str,
        left_out: bool,
    ) -> Problem {
        let path = way.into_iter().map(str::to_owned).collect();
        Problem {
            index: self.index,
            path,
            text: toolgate_core::escape(text),
            left_out,
        }
    }
}

#[cfg(test)]
mod tests;
