//! The door every tool call passes.
//!
//! ```text
//!  ToolCall ──▶ ToolExecutor::execute ──▶ ToolOutcome
//!                 1 find      ToolManager
//!                 2 rename    ParameterNames
//!                 3 validate  Schema, ValidArguments
//!                 4 permit    Policy, Approver
//!                 5 queue     a slot among those of the tool's server
//!                 6 invoke    Tool, with deadline and cancellation
//!                 7 observe   Observer
//! ```
//!
//! Start reading in `executor.rs`. A tool of your own takes ten lines:
//!
//! ```
//! use std::sync::Arc;
//! use toolgate_core::{FunctionTool, ToolCall, ToolError, ToolExecutor, ToolManager};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greeting { name: String }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let greet = FunctionTool::new("greet", "Greets a person", async |greeting: Greeting, _context| {
//!     Ok::<_, ToolError>(format!("Hello, {}!", greeting.name))
//! })?;
//! let manager = Arc::new(ToolManager::new());
//! manager.add(greet);
//!
//! let outcome = ToolExecutor::new(manager).execute(ToolCall::new("greet", serde_json::json!({ "name": "Ada" }))).await;
//! assert_eq!(outcome.to_envelope()["result"], "Hello, Ada!");
//! # Ok::<_, toolgate_core::DefinitionError>(())
//! # }).unwrap();
//! ```
//!
//! # What is stable
//!
//! The envelope's fields, the error kinds and the error texts are a contract and change only with a major version. Enums and
//! structs that will grow are `#[non_exhaustive]`. Everything else may still change before 1.0, told in the CHANGELOG.

mod annotations;
mod approval;
mod arguments;
mod call;
mod context;
mod definition;
mod deserialize_error;
mod error;
mod executor;
mod flight;
mod function;
mod handler;
mod json;
pub mod kept;
mod limits;
mod log;
mod manager;
mod names;
mod observer;
mod outcome;
mod output;
mod policy;
mod readiness;
mod redact;
mod rules;
mod schema;
mod scope;
mod slots;
mod source;
mod text;
mod tool;
mod tool_name;
mod tool_pattern;
mod toolbox;
mod tools;
mod trace;
mod typed;
mod value_counter;
pub mod wire_names;
mod withheld;

pub use annotations::Annotations;
pub use approval::{
    Approval, ApprovalBy, ApprovalMeans, ApprovalReason, ApprovalRecord, ApprovalRequest, Approver,
    LONGEST_APPROVABLE,
};
pub use arguments::{Arguments, ValidArguments};
pub use call::{CallId, Origin, ToolCall};
pub use context::{CallContext, Progress, Sent};
pub use definition::{DefinitionBuilder, DefinitionError, ToolDefinition};
pub use deserialize_error::{describe_mismatch, unknown_word};
pub use error::{ErrorKind, HandlerKind, ToolError};
pub use executor::{Rehearsal, ToolExecutor, ToolExecutorBuilder};
pub use function::{FunctionResult, FunctionTool};
pub use handler::Handler;
pub use json::{JsonError, StrictObject, parse_json, parse_object, parse_object_within};
pub use limits::{Limits, SchemaLimits, ToolLimits};
pub use log::LogObserver;
pub use manager::ToolManager;
pub use names::{Normalize, ParameterNames};
pub use observer::{CallRecord, CallStarted, Observer, Timings};
pub use outcome::ToolOutcome;
pub use output::{Content, ToolOutput};
pub use policy::{Decision, Destructive, DestructiveCaller, FlowPolicy, FlowState, Policy};
pub use readiness::{ToolReadiness, ToolWait, ToolWaitListener};
pub use redact::{Redactor, is_redacted};
pub use rules::Rules;
pub use schema::{Schema, SchemaError, Violation};
pub use scope::Scope;
pub use source::Source;
pub use text::{
    BYTES_PATTERN, DURATION_PATTERN, bounded, bytes_from_json, deserialize_bytes,
    deserialize_duration, duration_from_json, escape, fold, is_unseen, is_visible, marked, nearest,
    parse_bytes, parse_duration, reveal, visible, visible_schema,
};
pub use tool::{Tool, ToolFuture};
pub use tool_name::shown as shown_name;
pub use tool_pattern::Pattern;
pub use toolbox::{ToolList, Toolbox};
pub use tools::{Rank, Tools};
pub use trace::Trace;
pub use typed::{comma_separated_lists, command_line_arguments, typed_arguments};
pub use value_counter::{ValueCounter, has_more_values};
pub use withheld::Withheld;

/// The program in the README is compiled with the examples here.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
