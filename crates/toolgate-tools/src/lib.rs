//! The tools that ship with Toolgate, and the loader for tools that are defined in a file.
//!
//! - [`builtin`]: the built-in tools, such as `datetime` and `search`.
//! - [`internal`]: services of the program, such as document search.
//! - [`HandlerRegistry`]: the handlers of both, by name. [`HandlerRegistry::load`] makes tools from
//!   definitions in a file, `{name, description, parameters, implementation}`, which refer to a
//!   handler or contain a canned answer.

pub mod builtin;
mod definition;
mod handler_registry;
pub mod internal;

pub use definition::{DefinitionProblem, LoadedDefinitions};
pub use handler_registry::HandlerRegistry;
