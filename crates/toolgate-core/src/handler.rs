//! The [`Handler`] trait: the code that `implementation.handler` in a tool's definition names.

use crate::{CallContext, ToolFuture, ValidArguments};

/// The code behind `implementation.handler`: a built-in function or a service
/// such as document search.
///
/// A handler is a [`Tool`](crate::Tool) without a definition, so several definitions can share one
/// handler, each with its own name, description and schema.
pub trait Handler: Send + Sync {
    /// Answers one call. The arguments satisfy the schema of the definition that names this handler
    /// and, for a registered handler, the handler's own schema.
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a>;
}
