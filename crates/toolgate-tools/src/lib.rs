//! The tools that ship with Toolgate, and the definitions that configure more of them.
//!
//! - `builtin/`: one file per tool, one list of them in `builtin/mod.rs`.
//! - `internal/`: services inside the program, found by the name a definition gives.
//! - `definition.rs`: `{name, description, parameters, implementation}` from a file becomes a tool.
//! - `handler_registry.rs`: what a definition may refer to, and the tools made of it.

pub mod builtin;
mod definition;
mod handler_registry;
pub mod internal;

pub use definition::{DefinitionProblem, LoadedDefinitions};
pub use handler_registry::HandlerRegistry;
