//! What a definition may refer to, and the tools made of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::{
    CallContext, Handler, HandlerKind, Schema, SchemaLimits, Source, Tool, ToolDefinition,
    ToolError, ToolFuture, ToolOutput, ValidArguments,
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
    internal: BTreeMap<String, Arc<dyn Handler>>,
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

    /// Adds a service that definitions of type `internal` may name.
    pub fn add_service(&mut self, name: impl Into<String>, service: Arc<dyn Handler>) {
        self.internal.insert(name.into(), service);
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
                Ok(definition) => Some(HandlerTool::shared(
                    definition,
                    Implementation::Handler(Arc::clone(&builtin.handler)),
                )),
                Err(error) => {
                    tracing::error!(%error, "a builtin tool is left out");
                    None
                }
            }
        });
        tools.collect()
    }

    /// The implementation behind a builtin's name; a name that is not there becomes an error of each call.
    pub(crate) fn builtin(&self, name: &str) -> Implementation {
        let Some(builtin) = self.builtin.get(name) else {
            return Implementation::Missing(HandlerKind::Builtin, name.to_owned());
        };
        match Schema::compile(builtin.parameters.clone(), &SchemaLimits::default()) {
            Ok(schema) => Implementation::Builtin(Arc::clone(&builtin.handler), schema),
            Err(_) => Implementation::Handler(Arc::clone(&builtin.handler)),
        }
    }

    /// The implementation behind a service's name.
    pub(crate) fn internal(&self, name: &str) -> Implementation {
        match self.internal.get(name) {
            Some(service) => Implementation::Handler(Arc::clone(service)),
            None => Implementation::Missing(HandlerKind::Internal, name.to_owned()),
        }
    }

    /// All names of one kind, for suggestions.
    pub(crate) fn names(&self, kind: HandlerKind) -> Vec<&str> {
        match kind {
            HandlerKind::Builtin => self.builtin.keys().copied().collect(),
            _ => self.services().collect(),
        }
    }
}

/// What stands behind a tool of this crate.
pub(crate) enum Implementation {
    /// A canned answer.
    Mock(Value),
    /// A service, or a builtin under its own definition.
    Handler(Arc<dyn Handler>),
    /// A builtin under a definition of somebody else's, which may have let through what the function can not take.
    Builtin(Arc<dyn Handler>, Schema),
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
            Implementation::Handler(handler) => return handler.call(arguments, context),
            Implementation::Builtin(handler, schema) => {
                match schema.check(arguments.into_map().into()) {
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
