//! [`HandlerRegistry`]: the handlers that tool definitions can refer to by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::{
    CallContext, FunctionTool, Handler, HandlerKind, Schema, SchemaError, SchemaLimits, Tool,
    ToolDefinition, ToolError, ToolFuture, ToolSource, ValidArguments,
};

use crate::builtin::{self, BuiltinSettings, BuiltinTool};

/// The handlers that tool definitions can refer to by name: the built-in ones, and the services
/// that the program has added.
pub struct HandlerRegistry {
    builtin: BTreeMap<&'static str, BuiltinTool>,
    internal: BTreeMap<String, InternalService>,
}

struct InternalService {
    parameters: Value,
    handler: Arc<dyn Handler>,
}

impl HandlerRegistry {
    /// Creates a registry with the built-in handlers.
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

    /// Adds a service that definitions of type `internal` can refer to. `parameters` is the JSON
    /// Schema of its arguments.
    pub fn add_service(
        &mut self,
        name: impl Into<String>,
        parameters: Value,
        handler: Arc<dyn Handler>,
    ) {
        self.internal.insert(
            name.into(),
            InternalService {
                parameters,
                handler,
            },
        );
    }

    /// The names of the services, sorted.
    pub fn services(&self) -> impl Iterator<Item = &str> {
        self.internal.keys().map(String::as_str)
    }

    /// Creates the built-in tools, sorted by name.
    pub fn builtin_tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.builtin.values().filter_map(|builtin| {
            let definition = ToolDefinition::builder(
                builtin.name,
                builtin.description,
                builtin.parameters.clone(),
            )
            .source(ToolSource::Builtin)
            .annotations(builtin.annotations)
            .build();
            match definition {
                Ok(definition) => {
                    let handler = Arc::clone(&builtin.handler);
                    Some(Arc::new(FunctionTool::with_handler(definition, handler)) as Arc<dyn Tool>)
                }
                Err(error) => {
                    tracing::error!(%error, "a built-in tool is invalid and left out");
                    None
                }
            }
        });
        tools.collect()
    }

    /// Finds a handler by name.
    ///
    /// A definition may accept arguments that the handler doesn't, so calls are validated against
    /// the handler's own schema too. Fails if that schema can't be compiled.
    pub(crate) fn find(
        &self,
        kind: HandlerKind,
        name: &str,
    ) -> Result<Option<Arc<dyn Handler>>, SchemaError> {
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
            return Ok(None);
        };
        let schema = Schema::compile(parameters.clone(), &SchemaLimits::default())?;
        Ok(Some(Arc::new(CheckedHandler {
            handler: Arc::clone(handler),
            schema,
        })))
    }

    pub(crate) fn names(&self, kind: HandlerKind) -> Vec<&str> {
        match kind {
            HandlerKind::Internal => self.services().collect(),
            _ => self.builtin.keys().copied().collect(),
        }
    }
}

// Validates against the handler's own schema before the call.
struct CheckedHandler {
    handler: Arc<dyn Handler>,
    schema: Schema,
}

impl Handler for CheckedHandler {
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        match self.schema.check(Value::Object(arguments.into_map())) {
            Ok(arguments) => self.handler.call(arguments, context),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

// Stands in for a handler that doesn't exist: every call fails with that error.
pub(crate) struct MissingHandler {
    pub(crate) kind: HandlerKind,
    pub(crate) name: String,
}

impl Handler for MissingHandler {
    fn call<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        let error = ToolError::HandlerNotFound {
            kind: self.kind,
            name: self.name.clone(),
        };
        Box::pin(std::future::ready(Err(error)))
    }
}
