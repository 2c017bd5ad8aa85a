//! Tools from a file: `{name, description, parameters, implementation}`.
//!
//! One bad entry is left out and named, the rest load. A handler that does not exist is not a bad entry: the tool is
//! registered and each of its calls says so.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_path_to_error::Segment;
use toolgate_core::{DefinitionError, HandlerKind, Source, Tool, ToolDefinition, nearest};

use crate::Handlers;
use crate::handlers::{HandlerTool, Implementation};

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
/// assert_eq!(loaded.problems[0].text, "tool 'x' is left out: missing field `description`");
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

#[derive(Deserialize)]
struct Written {
    name: String,
    description: String,
    parameters: Value,
    implementation: WrittenImplementation,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum WrittenImplementation {
    Mock { mock_response: Value },
    Builtin { handler: String },
    Internal { handler: String },
}

const KEYS: [&str; 4] = ["name", "description", "parameters", "implementation"];

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
                Err(problem) => loaded.problems.push(problem),
            }
        }
        loaded
    }
}

/// One definition as it stands in the file.
struct Entry<'a> {
    index: usize,
    value: &'a Value,
}

impl Entry<'_> {
    /// The tool, perhaps with something to warn about.
    fn tool(&self, handlers: &Handlers) -> Result<(Arc<dyn Tool>, Option<Problem>), Problem> {
        if !self.value.is_object() {
            let text = format!("{} is left out: it must be an object", self.title());
            return Err(self.problem([], &text, true));
        }
        let written: Written = serde_path_to_error::deserialize(self.value)
            .map_err(|error| self.unreadable(&error))?;
        let find = |kind, name: &str| {
            handlers.find(kind, name).map_err(|error| {
                let text = format!(
                    "{} is left out: {kind} handler '{name}' {error}",
                    self.title()
                );
                self.problem(["implementation", "handler"], &text, true)
            })
        };
        let (source, implementation) = match written.implementation {
            WrittenImplementation::Mock { mock_response } => {
                (Source::Mock, Implementation::Mock(mock_response))
            }
            WrittenImplementation::Builtin { handler } => {
                (Source::Builtin, find(HandlerKind::Builtin, &handler)?)
            }
            WrittenImplementation::Internal { handler } => {
                (Source::Internal, find(HandlerKind::Internal, &handler)?)
            }
        };
        let definition =
            ToolDefinition::builder(written.name, written.description, written.parameters)
                .source(source)
                .build()
                .map_err(|error| self.refused(&error))?;
        let problem = match &implementation {
            Implementation::Missing(kind, name) => {
                Some(self.missing_handler(handlers, *kind, name))
            }
            _ => None,
        };
        Ok((HandlerTool::shared(definition, implementation), problem))
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

    fn unreadable(&self, error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
        let way = error.path().iter().filter_map(|segment| match segment {
            Segment::Map { key } => Some(key.as_str()),
            _ => None,
        });
        let text = format!("{} is left out: {}", self.title(), error.inner());
        self.problem(way, &text, true)
    }

    fn refused(&self, error: &DefinitionError) -> Problem {
        let key = match error {
            DefinitionError::Name { .. } => "name",
            DefinitionError::NoDescription { .. } => "description",
            _ => "parameters",
        };
        self.problem(
            [key],
            &format!("{} is left out: {error}", self.title()),
            true,
        )
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
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::builtin::BuiltinSettings;

    fn load(entries: &[Value]) -> Loaded {
        Handlers::new(&BuiltinSettings::default()).load(entries)
    }

    fn entry(implementation: &Value) -> Value {
        json!({ "name": "t", "description": "d", "parameters": { "type": "object" }, "implementation": implementation })
    }

    #[test]
    fn im1_a_definition_of_each_type_becomes_a_tool() {
        let loaded = load(&[
            entry(&json!({ "type": "mock", "mock_response": null })),
            entry(&json!({ "type": "builtin", "handler": "echo" })),
            entry(&json!({ "type": "internal", "handler": "documents" })),
        ]);
        let sources: Vec<String> = loaded
            .tools
            .iter()
            .map(|tool| tool.definition().source().to_string())
            .collect();
        assert_eq!(sources, ["mock", "builtin", "internal"]);
    }

    #[test]
    fn tm6_a_bad_entry_is_left_out_and_named_and_the_rest_load() {
        let mock = json!({ "type": "mock", "mock_response": 1 });
        let with = |key: &str, value: Value| {
            let mut entry = entry(&mock);
            entry[key] = value;
            entry
        };
        for (bad, path, text) in [
            (
                json!(5),
                vec![],
                "tool number 1 is left out: it must be an object",
            ),
            (
                json!({ "name": "x" }),
                vec![],
                "tool 'x' is left out: missing field `description`",
            ),
            (
                with("name", json!("")),
                vec!["name"],
                "tool number 1 is left out: tool name '' is empty",
            ),
            (
                with("name", json!("a b")),
                vec!["name"],
                "tool 'a b' is left out: tool name 'a b' may only have letters, digits and _ - . / :",
            ),
            (
                with("description", json!(" ")),
                vec!["description"],
                "tool 't' is left out: tool 't' has no description",
            ),
            (
                with("description", json!(7)),
                vec!["description"],
                "tool 't' is left out: invalid type: integer `7`, expected a string",
            ),
            (
                with("parameters", json!(null)),
                vec!["parameters"],
                "tool 't' is left out: parameters of tool 't': must be a JSON Schema object, not null",
            ),
            (
                with("implementation", json!({ "type": "magic" })),
                vec!["implementation", "type"],
                "tool 't' is left out: unknown variant `magic`, expected one of `mock`, `builtin`, `internal`",
            ),
            (
                with("implementation", json!({ "type": "mock" })),
                vec!["implementation"],
                "tool 't' is left out: missing field `mock_response`",
            ),
        ] {
            let loaded = load(&[bad.clone(), entry(&mock)]);
            assert_eq!(loaded.tools.len(), 1, "{bad}");
            assert_eq!(loaded.problems[0].text, text);
            assert_eq!(
                (loaded.problems[0].path.clone(), loaded.problems[0].left_out),
                (path.iter().map(|key| (*key).to_owned()).collect(), true),
                "{bad}"
            );
        }
    }

    #[test]
    fn im3_a_missing_handler_is_warned_about_and_the_tool_is_there() {
        let loaded = load(&[
            entry(&json!({ "type": "builtin", "handler": "ecko" })),
            entry(&json!({ "type": "internal", "handler": "x" })),
        ]);
        assert_eq!(loaded.tools.len(), 2);
        let texts: Vec<&str> = loaded
            .problems
            .iter()
            .map(|problem| problem.text.as_str())
            .collect();
        assert_eq!(
            texts,
            [
                "tool 't': Builtin handler 'ecko' not found, did you mean 'echo'?",
                "tool 't': Internal handler 'x' not found, there are none",
            ]
        );
    }

    #[test]
    fn unknown_keys_are_warned_about_with_the_way_to_them() {
        let mut odd = entry(&json!({ "type": "mock", "mock_response": 1, "mock_respons": 2 }));
        odd["descripton"] = json!("d");
        let loaded = load(&[odd]);
        assert_eq!(loaded.tools.len(), 1);
        assert_eq!(
            loaded.problems[0].text,
            "tool 't': unknown key 'descripton' is ignored, did you mean 'description'?"
        );
        assert_eq!(loaded.problems[1].path, ["implementation", "mock_respons"]);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z_$./ ]{0,12}".prop_map(Value::from),
            prop_oneof![
                Just("object"),
                Just("mock"),
                Just("builtin"),
                Just("internal"),
                Just("echo"),
                Just("#")
            ]
            .prop_map(Value::from),
        ];
        let key = prop_oneof![
            prop::sample::select(vec![
                "name",
                "description",
                "parameters",
                "implementation",
                "type",
                "handler",
                "mock_response",
                "properties",
                "$ref"
            ])
            .prop_map(str::to_owned),
            "[a-z$]{0,6}",
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner), 0..6)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_definitions_load_or_are_named(entries in prop::collection::vec(any_json(), 0..4)) {
            let loaded = load(&entries);
            let left_out = loaded.problems.iter().filter(|problem| problem.left_out).count();
            prop_assert_eq!(loaded.tools.len() + left_out, entries.len());
        }
    }
}
