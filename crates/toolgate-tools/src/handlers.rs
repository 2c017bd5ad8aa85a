//! What a definition may refer to, and the tools made of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::{
    CallContext, FunctionTool, Handler, HandlerKind, Schema, SchemaError, SchemaLimits, Source,
    Tool, ToolDefinition, ToolError, ToolFuture, ValidArguments,
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
                    let handler = Arc::clone(&builtin.handler);
                    Some(Arc::new(FunctionTool::with_handler(definition, handler)) as Arc<dyn Tool>)
                }
                Err(error) => {
                    tracing::error!(%error, "a builtin tool is left out");
                    None
                }
            }
        });
        tools.collect()
    }

    /// The handler of this name, if there is one.
    ///
    /// The definition that refers to it may let through what the handler can not take, so the handler's own schema is asked too.
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
        let accepts = Schema::compile(parameters.clone(), &SchemaLimits::default())?;
        Ok(Some(Arc::new(CheckedHandler {
            handler: Arc::clone(handler),
            accepts,
        })))
    }

    /// All names of one kind, for suggestions.
    pub(crate) fn names(&self, kind: HandlerKind) -> Vec<&str> {
        match kind {
            HandlerKind::Internal => self.services().collect(),
            _ => self.builtin.keys().copied().collect(),
        }
    }
}

/// A handler behind a definition that is not its own.
struct CheckedHandler {
    handler: Arc<dyn Handler>,
    accepts: Schema,
}

impl Handler for CheckedHandler {
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        match self.accepts.check(Value::Object(arguments.into_map())) {
            Ok(arguments) => self.handler.call(arguments, context),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// A name without a handler: each call says so.
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
