//! The [`Handler`] trait: what `implementation.handler` in a definition refers to.

use crate::{CallContext, ToolFuture, ValidArguments};

/// A builtin function or a service in the program, looked up by name when a
/// definition refers to it.
///
/// A handler is a [`Tool`](crate::Tool) without a definition, so several definitions can share one
/// handler, each with its own name, description and schema.
pub trait Handler: Send + Sync {
    /// Answers one call. The arguments satisfy the schema of the definition
    /// that named this handler.
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a>;
}
