//! The tools that ship with Toolgate, and the definitions that make more of them.
//!
//! - `builtin/`: one file per tool, one list of them in `builtin/mod.rs`.
//! - `internal/`: services inside the program, found by the name a definition gives.
//! - `definition.rs`: `{name, description, parameters, implementation}` from a file becomes a tool.
//! - `handlers.rs`: what a definition may refer to, and the tools made of it.
//!
//! ```
//! use std::sync::Arc;
//! use toolgate_core::{ToolCall, ToolExecutor, ToolManager};
//! use toolgate_tools::{Handlers, builtin::BuiltinSettings};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let handlers = Handlers::new(&BuiltinSettings::default());
//! let manager = Arc::new(ToolManager::new());
//! manager.add_all(handlers.builtin_tools());
//! manager.add_all(handlers.load(&[serde_json::json!({
//!     "name": "get_weather", "description": "Weather for a city", "parameters": { "type": "object" },
//!     "implementation": { "type": "mock", "mock_response": { "temp": 21 } }
//! })]).tools);
//!
//! let outcome = ToolExecutor::new(manager).execute(ToolCall::new("get_weather", serde_json::json!({}))).await;
//! assert_eq!(outcome.to_envelope()["result"]["temp"], 21);
//! # });
//! ```

pub mod builtin;
mod definition;
mod handlers;
pub mod internal;

pub use definition::{Loaded, Problem};
pub use handlers::Handlers;
