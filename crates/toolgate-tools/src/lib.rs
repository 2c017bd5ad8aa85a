//! The tools that ship with Toolgate, and the loader for tools that are defined in a file.
//!
//! - `builtin/`: the built-in tools, one file or folder each. `builtin/mod.rs` lists them.
//! - `internal/`: services of the program, which definitions refer to by name.
//! - `definition.rs`: makes tools from `{name, description, parameters, implementation}` in a file.
//! - `handler_registry.rs`: the handlers that definitions can refer to.

pub mod builtin;
mod definition;
mod handler_registry;
pub mod internal;

pub use definition::{DefinitionProblem, LoadedDefinitions};
pub use handler_registry::HandlerRegistry;
