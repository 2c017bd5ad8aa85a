//! What a definition may refer to, and the tools made of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::{
    CallContext, Handler, HandlerKind, Schema, SchemaError, SchemaLimits, Source, Tool,
    ToolDefinition, ToolError, ToolFuture, ToolOutput, ValidArguments,
};

use crate::builtin::{self, Builtin, BuiltinSettings};

/// Every handler by name: the builtins, and the services the program has added.
///
/// ```
/// use toolgate_tools::{Handlers, builtin::BuiltinSettings};
///
/// let handlers = Handlers::new(&BuiltinSettings::default());
/// assert!(handlers.builtin_tools().iter().any(|tool| tool.definition().name() == "echo"));
/// ```
pub struct Handlers {
    builtin: BTreeMap<&'static str, Builtin>,
    internal: BTreeMap<String, Service>,
}

/// A service inside the program.
struct Service {
    /// The JSON Schema of what it takes.
    parameters: Value,
    handler: Arc<dyn Handler>,
}

impl Handlers {
    /// The builtins, and no services yet.
    pub fn new(settings: &BuiltinSettings) -> Self {
        let builtin = builtin::all(settings)
            .into_iter()
            .map(|builtin| (builtin.name, builtin))
            .collect();
        Self {
            builtin,
            internal: BTreeMap::new(),
        }
    }

    /// Adds a service that definitions of type `internal` may name; `parameters` is the JSON Schema of what it takes.
    pub fn add_service(
        &mut self,
        name: impl Into<String>,
        parameters: Value,
        handler: Arc<dyn Handler>,
    ) {
        self.internal.insert(
            name.into(),
            Service {
                parameters,
                handler,
            },
        );
    }

    /// Names of the services, sorted.
    pub fn services(&self) -> impl Iterator<Item = &str> {
        self.internal.keys().map(String::as_str)
    }

    /// Every builtin as a tool under its own name.
    pub fn builtin_tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.builtin.values().filter_map(|builtin| {
            let definition = ToolDefinition::builder(
                builtin.name,
                builtin.description,
                builtin.parameters.clone(),
            )
            .source(Source::Builtin)
            .annotations(builtin.annotations)
            .build();
            match definition {
                Ok(definition) => {
                    let implementation =
                        Implementation::Handler(Arc::clone(&builtin.handler), None);
                    Some(HandlerTool::shared(definition, implementation))
                }
                Err(error) => {
                    tracing::error!(%error, "a builtin tool is left out");
                    None
                }
            }
        });
        tools.collect()
    }

    /// The implementation behind a handler's name; a name that is not there becomes an error of each call.
    ///
    /// The definition that refers to it may let through what the handler can not take, so the handler's own schema is asked too.
    pub(crate) fn find(
        &self,
        kind: HandlerKind,
        name: &str,
    ) -> Result<Implementation, SchemaError> {
        let found = match kind {
            HandlerKind::Internal => self
                .internal
                .get(name)
                .map(|service| (&service.handler, &service.parameters)),
            _ => self
                .builtin
                .get(name)
                .map(|builtin| (&builtin.handler, &builtin.parameters)),
        };
        let Some((handler, parameters)) = found else {
            return Ok(Implementation::Missing(kind, name.to_owned()));
        };
        let accepts = Schema::compile(parameters.clone(), &SchemaLimits::default())?;
        Ok(Implementation::Handler(Arc::clone(handler), Some(accepts)))
    }

    /// All names of one kind, for suggestions.
    pub(crate) fn names(&self, kind: HandlerKind) -> Vec<&str> {
        match kind {
            HandlerKind::Internal => self.services().collect(),
            _ => self.builtin.keys().copied().collect(),
        }
    }
}

/// What stands behind a tool of this crate.
pub(crate) enum Implementation {
    /// A canned answer.
    Mock(Value),
    /// A handler, and its own schema where the definition is somebody else's.
    Handler(Arc<dyn Handler>, Option<Schema>),
    /// A name without a handler.
    Missing(HandlerKind, String),
}

/// A tool of this crate: a definition and what stands behind it.
pub(crate) struct HandlerTool {
    definition: ToolDefinition,
    implementation: Implementation,
}

impl HandlerTool {
    pub(crate) fn shared(
        definition: ToolDefinition,
        implementation: Implementation,
    ) -> Arc<dyn Tool> {
        Arc::new(Self {
            definition,
            implementation,
        })
    }
}

impl Tool for HandlerTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        let answer = match &self.implementation {
            Implementation::Handler(handler, None) => return handler.call(arguments, context),
            Implementation::Handler(handler, Some(accepts)) => {
                match accepts.check(Value::Object(arguments.into_map())) {
                    Ok(arguments) => return handler.call(arguments, context),
                    Err(error) => Err(error),
                }
            }
            Implementation::Mock(answer) => Ok(ToolOutput::json(answer.clone())),
            Implementation::Missing(kind, name) => Err(ToolError::HandlerNotFound {
                kind: *kind,
                name: name.clone(),
            }),
        };
        Box::pin(std::future::ready(answer))
    }
}
