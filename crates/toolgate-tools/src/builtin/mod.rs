//! The built-in tools, one file each; [`all`] lists them.

use std::sync::Arc;

use serde_json::Value;
use toolgate_core::{Annotations, Handler};

mod datetime;
mod echo;
mod math_eval;
mod search;
mod volume;

pub use search::{SearchBackend, SearchSettings};
pub use volume::{VolumeControl, VolumeState};

/// A built-in tool: a handler, and its definition unless a file defines another one.
#[non_exhaustive]
pub struct BuiltinTool {
    /// The name of both the tool and the handler.
    pub name: &'static str,
    pub description: &'static str,
    pub parameters: Value,
    pub annotations: Annotations,
    pub handler: Arc<dyn Handler>,
}

/// Settings of the built-in tools.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BuiltinSettings {
    pub search: SearchSettings,
    /// What the `volume` tool controls instead of the machine's speakers, for
    /// a program that speaks.
    pub volume_control: Option<Arc<dyn VolumeControl>>,
}

/// Creates all built-in tools, sorted by name.
pub fn all(settings: &BuiltinSettings) -> Vec<BuiltinTool> {
    vec![
        datetime::builtin(),
        echo::builtin(),
        math_eval::builtin(),
        search::builtin(&settings.search),
        volume::builtin(settings.volume_control.as_ref()),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;
    use toolgate_core::{ToolCall, ToolDefinition, ToolExecutor, ToolManager};

    use super::*;
    use crate::HandlerRegistry;

    /// Returns the envelope's result or error of a call through the executor.
    async fn call(name: &str, arguments: Value) -> Value {
        let mut settings = BuiltinSettings::default();
        settings.search.backend = SearchBackend::Searxng;
        let manager = Arc::new(ToolManager::new());
        manager.add_all(HandlerRegistry::new(&settings).builtin_tools());
        let outcome = ToolExecutor::new(manager)
            .execute(ToolCall::new(name, arguments))
            .await;
        let envelope = outcome.to_envelope();
        envelope
            .get("result")
            .or(envelope.get("error"))
            .cloned()
            .unwrap()
    }

    #[tokio::test]
    async fn im5_echo_gives_its_arguments_back() {
        for arguments in [json!({}), json!({ "b": [1, null, { "ü": 1.5 }], "a": "x" })] {
            let echo = call("echo", arguments.clone()).await;
            assert_eq!(echo.to_string(), json!({ "echo": arguments }).to_string());
        }
    }

    #[tokio::test]
    async fn im7_builtins_answer_and_refuse_through_the_executor() {
        let weekday = json!({ "action": "weekday", "date": "2026-11-15", "timezone": null });
        assert_eq!(call("datetime", weekday).await["weekday"], "Sunday");
        assert_eq!(
            call("datetime", json!({ "timezone": "UTC" })).await["utc_offset"],
            "+00:00"
        );
        for (name, arguments, expected) in [
            (
                "datetime",
                json!({ "action": "later" }),
                "Invalid parameters: 'action' must be one of: now, weekday, difference",
            ),
            ("search", json!({}), "Invalid parameters: missing 'query'"),
            (
                "search",
                json!({ "query": " " }),
                "Invalid parameters: 'query' must not be blank",
            ),
            (
                "search",
                json!({ "query": "x", "max_results": 21 }),
                "Invalid parameters: 'max_results' must be at most 20",
            ),
            (
                "search",
                json!({ "query": "x", "max_results": 2.0 }),
                "The search service is currently unavailable: no SearXNG instance is configured; set `search.url` to the address of one",
            ),
            ("volume", json!({}), "Invalid parameters: missing 'action'"),
            (
                "volume",
                json!({ "action": "set", "level": 101 }),
                "Invalid parameters: 'level' must be at most 100",
            ),
            (
                "volume",
                json!({ "action": "set", "level": 0.5 }),
                "Invalid parameters: 'level' must be integer",
            ),
            (
                "volume",
                json!({ "action": "set" }),
                "Invalid parameters: 'level' is needed to set the volume: a percentage from 0 to 100",
            ),
        ] {
            assert_eq!(call(name, arguments).await, expected);
        }
    }

    #[test]
    fn the_list_is_sorted_and_names_are_unique() {
        let names: Vec<&str> = all(&BuiltinSettings::default())
            .iter()
            .map(|builtin| builtin.name)
            .collect();
        assert!(names.is_sorted());
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn every_builtin_has_a_sound_definition_that_a_model_can_use() {
        for BuiltinTool {
            name,
            description,
            parameters,
            ..
        } in all(&BuiltinSettings::default())
        {
            let properties = parameters["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            ToolDefinition::builder(name, description, parameters)
                .build()
                .unwrap();
            assert!(
                description.ends_with('.') && description.contains("Use "),
                "'{name}' says what it does and when to use it"
            );
            assert!(
                !description.contains("  "),
                "'{name}' has a line break in its description"
            );
            for (property, schema) in properties {
                assert!(
                    schema["description"].is_string(),
                    "'{property}' of '{name}' is not explained"
                );
            }
        }
    }
}
