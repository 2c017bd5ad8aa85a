//! Tools that record their calls.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_core::{
    CallContext, Policy, Tool, ToolContent, ToolDefinition, ToolError, ToolExecutor, ToolFuture,
    ToolManager, ToolOutput, ValidArguments,
};
use toolgate_models::Toolbox;

type Calls = Arc<Mutex<Vec<(String, Value)>>>;
type Wait = Box<dyn Fn(&Value) -> BoxFuture<'static, ()> + Send + Sync>;
type Work = Box<dyn Fn(&Value) -> Result<ToolOutput, ToolError> + Send + Sync>;

/// A set of recorded tools, and the policy for them.
pub(crate) struct RecordedTools {
    pub(crate) manager: Arc<ToolManager>,
    pub(crate) policy: Policy,
    calls: Calls,
}

struct RecordedTool {
    definition: ToolDefinition,
    calls: Calls,
    wait: Wait,
    work: Work,
}

impl Tool for RecordedTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        let arguments = Value::Object(arguments.into_map());
        let name = self.definition.name().to_owned();
        self.calls.lock().push((name, arguments.clone()));
        Box::pin(async move {
            (self.wait)(&arguments).await;
            (self.work)(&arguments)
        })
    }
}

impl RecordedTools {
    pub(crate) fn empty() -> Self {
        Self {
            manager: Arc::new(ToolManager::new()),
            policy: Policy::default(),
            calls: Calls::default(),
        }
    }

    /// The tools that most tests need.
    pub(crate) fn new() -> Self {
        let city = json!({ "type": "object", "required": ["city"], "properties": {
            "city": { "type": "string", "description": "Which city" },
            "days": { "type": "integer", "minimum": 1, "description": "How far ahead" },
        } });
        let level = json!({ "type": "object", "required": ["level"], "properties": { "level": { "type": "integer" } } });
        let recorded = Self::empty();
        recorded
            .with("get_weather", city, |arguments| {
                Ok(ToolOutput::json(
                    json!({ "city": arguments["city"], "degrees": 3 }),
                ))
            })
            .with("set_level", level, |arguments| {
                Ok(ToolOutput::json(arguments["level"].clone()))
            })
            .with("clock", json!({ "type": "object" }), |_| {
                Ok(ToolOutput::text("12:00"))
            })
            .with("broken", json!({ "type": "object" }), |_| {
                Err(ToolError::failed("The sensor is broken"))
            })
            .with("silent", json!({ "type": "object" }), |_| {
                Ok(ToolOutput::text(""))
            })
            .with("large", json!({ "type": "object" }), |_| {
                Ok(ToolOutput::text("ä".repeat(100_000)))
            })
            .with("camera", json!({ "type": "object" }), |_| {
                let picture =
                    json!({ "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" });
                let content = [json!({ "type": "text", "text": "The garden" }), picture];
                Ok(ToolOutput::blocks(
                    content
                        .into_iter()
                        .map(|block| serde_json::from_value::<ToolContent>(block).unwrap())
                        .collect(),
                ))
            })
    }

    pub(crate) fn with(
        self,
        name: &str,
        parameters: Value,
        work: impl Fn(&Value) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
    ) -> Self {
        let at_once = |_: &Value| -> BoxFuture<'static, ()> { Box::pin(std::future::ready(())) };
        self.with_waiting(name, parameters, at_once, work)
    }

    /// Adds a tool that waits for something before it answers.
    pub(crate) fn with_waiting(
        self,
        name: &str,
        parameters: Value,
        wait: impl Fn(&Value) -> BoxFuture<'static, ()> + Send + Sync + 'static,
        work: impl Fn(&Value) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
    ) -> Self {
        let definition = ToolDefinition::builder(name, format!("Does {name}"), parameters);
        self.manager.add(RecordedTool {
            definition: definition.build().unwrap(),
            calls: Arc::clone(&self.calls),
            wait: Box::new(wait),
            work: Box::new(work),
        });
        self
    }

    pub(crate) fn toolbox(&self) -> Toolbox {
        let executor = ToolExecutor::builder(Arc::clone(&self.manager));
        Toolbox::new(
            executor
                .policy(self.policy.clone())
                .without_observers()
                .build(),
        )
    }

    /// The calls in the order they began.
    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        self.calls.lock().clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.calls().into_iter().map(|(name, _)| name).collect()
    }
}
