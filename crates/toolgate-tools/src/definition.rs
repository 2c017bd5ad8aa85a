//! Loads tools from a file: `{name, description, parameters, implementation}`.
//!
//! An invalid entry is left out and reported; the others load. An entry with a missing handler
//! isn't left out: the tool is registered, and each of its calls reports the problem.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_core::text::{nearest_names, unknown_value_message};
use toolgate_core::{DefinitionError, FunctionTool, HandlerKind, Tool, ToolDefinition, ToolSource};

use crate::HandlerRegistry;
use crate::handler_registry::MissingHandler;

/// The result of [`HandlerRegistry::load`]: the tools from a file, and the problems found in it.
#[derive(Default)]
#[non_exhaustive]
pub struct LoadedDefinitions {
    pub tools: Vec<Arc<dyn Tool>>,
    pub problems: Vec<DefinitionProblem>,
}

/// A problem in one tool definition of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefinitionProblem {
    /// Index of the entry in the list, from 0.
    pub index: usize,
    /// The path to the key inside the entry, to find its line in the file.
    pub path: Vec<String>,
    /// The message for a person. It names the tool.
    pub text: String,
    /// True if the tool was left out because of this problem; false for a warning.
    pub left_out: bool,
}

const KEYS: [&str; 4] = ["name", "description", "parameters", "implementation"];

const TYPES: [&str; 3] = ["mock", "builtin", "internal"];

fn implementation_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "mock" => &["type", "mock_response"],
        "builtin" | "internal" => &["type", "handler"],
        _ => &["type", "mock_response", "handler"],
    }
}

impl HandlerRegistry {
    /// Creates a tool from each definition in a file. Never fails: every problem is reported.
    pub fn load(&self, definitions: &[Value]) -> LoadedDefinitions {
        let mut loaded = LoadedDefinitions::default();
        for (index, entry) in definitions.iter().enumerate() {
            let entry = DefinitionEntry {
                index,
                value: entry,
            };
            loaded.problems.extend(entry.unknown_keys());
            match entry.build_tool(self) {
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

type LoadedTool = (Arc<dyn Tool>, Option<DefinitionProblem>);

struct DefinitionEntry<'a> {
    index: usize,
    value: &'a Value,
}

impl DefinitionEntry<'_> {
    /// Returns the tool, perhaps with a warning, or all problems of the entry.
    fn build_tool(&self, handlers: &HandlerRegistry) -> Result<LoadedTool, Vec<DefinitionProblem>> {
        let Value::Object(written) = self.value else {
            return Err(vec![self.rejection([], "it must be an object in { }")]);
        };
        let problems = self.entry_problems(written);
        if !problems.is_empty() {
            return Err(problems);
        }
        let implementation = &written["implementation"];
        let (source, kind) = match implementation["type"].as_str() {
            Some("builtin") => (ToolSource::Builtin, Some(HandlerKind::Builtin)),
            Some("internal") => (ToolSource::Internal, Some(HandlerKind::Internal)),
            _ => (ToolSource::Mock, None),
        };
        let text = |key: &str| written[key].as_str().unwrap_or_default();
        let parameters = written["parameters"].clone();
        let definition = ToolDefinition::builder(text("name"), text("description"), parameters)
            .source(source)
            .build();
        let define = || definition.map_err(|error| vec![self.definition_problem(&error)]);
        let Some(kind) = kind else {
            let answer = implementation["mock_response"].clone();
            return Ok((Arc::new(FunctionTool::mock(define()?, answer)), None));
        };
        let name = implementation["handler"].as_str().unwrap_or_default();
        let found = handlers.find(kind, name).map_err(|error| {
            let text = format!("{kind} handler '{name}' {error}");
            vec![self.rejection(["implementation", "handler"], &text)]
        })?;
        let problem = match found {
            Some(_) => None,
            None => Some(self.missing_handler_problem(handlers, kind, name)),
        };
        let handler = found.unwrap_or_else(|| {
            let name = name.to_owned();
            Arc::new(MissingHandler { kind, name })
        });
        let tool = FunctionTool::with_handler(define()?, handler);
        Ok((Arc::new(tool), problem))
    }

    // Reports all problems at once, so that a file is fixed in one go.
    fn entry_problems(&self, written: &Map<String, Value>) -> Vec<DefinitionProblem> {
        let mut problems = Vec::new();
        let missing = KEYS.iter().filter(|key| !written.contains_key(**key));
        let missing: Vec<String> = missing.map(|key| format!("missing '{key}'")).collect();
        if !missing.is_empty() {
            problems.push(self.rejection([], &missing.join(", ")));
        }
        for key in ["name", "description"] {
            if written.get(key).is_some_and(|value| !value.is_string()) {
                problems.push(self.rejection([key], &format!("{key}: must be a string")));
            }
        }
        if let Some(implementation) = written.get("implementation") {
            problems.extend(self.implementation_problem(implementation));
        }
        problems
    }

    fn implementation_problem(&self, implementation: &Value) -> Option<DefinitionProblem> {
        let example = "such as { \"type\": \"builtin\", \"handler\": \"echo\" }";
        let Value::Object(object) = implementation else {
            let text = format!("implementation: must be an object, {example}");
            return Some(self.rejection(["implementation"], &text));
        };
        let Some(kind) = object.get("type") else {
            let text = format!("implementation: missing 'type', {example}");
            return Some(self.rejection(["implementation"], &text));
        };
        let known = kind.as_str().filter(|kind| TYPES.contains(kind));
        let (key, is_valid) = match known {
            Some("mock") => ("mock_response", object.contains_key("mock_response")),
            Some(_) => (
                "handler",
                object.get("handler").is_some_and(Value::is_string),
            ),
            None => {
                let text = match kind.as_str() {
                    Some(word) => format!(
                        "implementation.type: {}",
                        unknown_value_message(word, &TYPES)
                    ),
                    None => format!("implementation.type: must be one of: {}", TYPES.join(", ")),
                };
                return Some(self.rejection(["implementation", "type"], &text));
            }
        };
        match (is_valid, object.contains_key(key)) {
            (true, _) => None,
            (false, true) => {
                let text = format!("implementation.{key}: must be a string");
                Some(self.rejection(["implementation", key], &text))
            }
            (false, false) => {
                let text = format!("implementation: missing '{key}'");
                Some(self.rejection(["implementation"], &text))
            }
        }
    }

    fn unknown_keys(&self) -> Vec<DefinitionProblem> {
        let inner = self.value.get("implementation").unwrap_or(&Value::Null);
        let kind = inner
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let objects = [
            (self.value, &[][..], &KEYS[..]),
            (inner, &["implementation"], implementation_keys(kind)),
        ];
        let mut problems = Vec::new();
        for (object, key_path, known) in objects {
            let keys = object
                .as_object()
                .into_iter()
                .flat_map(|object| object.keys());
            for key in keys.filter(|key| !known.contains(&key.as_str())) {
                let hint = nearest_names(key, known.iter().copied(), 1)
                    .pop()
                    .map(|name| format!(", did you mean '{name}'?"));
                let text = format!(
                    "{}: unknown key '{key}' is ignored{}",
                    self.title(),
                    hint.unwrap_or_default()
                );
                problems.push(self.new_problem(
                    key_path.iter().copied().chain([key.as_str()]),
                    &text,
                    false,
                ));
            }
        }
        problems
    }

    fn definition_problem(&self, error: &DefinitionError) -> DefinitionProblem {
        let key = match error {
            DefinitionError::Name { .. } => "name",
            DefinitionError::NoDescription { .. } => "description",
            _ => "parameters",
        };
        self.rejection([key], &error.to_string())
    }

    fn rejection<'k>(
        &self,
        key_path: impl IntoIterator<Item = &'k str>,
        text: &str,
    ) -> DefinitionProblem {
        self.new_problem(
            key_path,
            &format!("{} is left out: {text}", self.title()),
            true,
        )
    }

    fn missing_handler_problem(
        &self,
        handlers: &HandlerRegistry,
        kind: HandlerKind,
        name: &str,
    ) -> DefinitionProblem {
        let names = handlers.names(kind);
        let hint = match nearest_names(name, names.iter().copied(), 1).pop() {
            Some(name) => format!("did you mean '{name}'?"),
            None if names.is_empty() => "no handlers of this type exist".to_owned(),
            None => format!("known handlers: {}", names.join(", ")),
        };
        let text = format!(
            "{}: {kind} handler '{name}' not found, {hint}",
            self.title()
        );
        self.new_problem(["implementation", "handler"], &text, false)
    }

    fn title(&self) -> String {
        match self.value.get("name").and_then(Value::as_str) {
            Some(name) if !name.is_empty() => format!("tool '{name}'"),
            _ => format!("tool number {}", self.index + 1),
        }
    }

    fn new_problem<'k>(
        &self,
        key_path: impl IntoIterator<Item = &'k str>,
        text: &str,
        left_out: bool,
    ) -> DefinitionProblem {
        let path = key_path.into_iter().map(str::to_owned).collect();
        DefinitionProblem {
            index: self.index,
            path,
            text: toolgate_core::text::escape(text),
            left_out,
        }
    }
}

#[cfg(test)]
mod tests;
