//! Runs tool calls of AI models: every call is found, validated, permitted, queued, timed and
//! recorded in the same way, and ends in the same kind of outcome.
//!
//! ```text
//!  ToolCall ──▶ ToolExecutor::execute ──▶ ToolOutcome
//!                 1 find      ToolManager
//!                 2 rename    ParameterNames
//!                 3 validate  Schema, ValidArguments
//!                 4 permit    Policy, Approver
//!                 5 queue     a concurrency slot of the tool's server, or of the local tools
//!                 6 invoke    Tool, with deadline and cancellation
//!                 7 observe   Observer
//! ```
//!
//! - A [`Tool`] is a [`ToolDefinition`] (name, description, JSON Schema of its arguments) and the
//!   code that answers calls. [`FunctionTool`] makes one from an async function.
//! - A *source* ([`ToolSource`]) is where tools come from: this program, or one MCP server. The
//!   [`ToolManager`] is the registry of all tools. It can change at any time; running calls keep
//!   the tool they found.
//! - The [`ToolExecutor`] runs calls, and is the only thing that invokes a tool. It never fails and
//!   never panics: a timeout, a panic or a refusal is an outcome like any other.
//! - [`Limits`] bound time, size and concurrency. The [`Policy`] says which tools may be called and
//!   which need a person's approval, given through an [`Approver`]. A [`Scope`] narrows the tools
//!   for one caller. Tools that a caller may not use are hidden from it.
//! - The [`ToolOutcome`] is a result or a [`ToolError`]. It serializes to the JSON envelope that
//!   every interface of Toolgate returns.
//! - An [`Observer`] sees each call before it runs and after it has ended, for logs, metrics and
//!   journals. By default calls are logged through `tracing`.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use serde_json::{Value, json};
//! use toolgate_core::{CallContext, ErrorKind, FunctionTool, ToolCall, ToolError};
//! use toolgate_core::{ToolExecutor, ToolManager};
//!
//! /// A model reads these doc comments as the descriptions of the parameters.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct ForecastArguments {
//!     /// Name of a city.
//!     city: String,
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! async fn get_forecast(arguments: ForecastArguments, _: CallContext) -> Result<Value, ToolError> {
//!     match arguments.city.as_str() {
//!         "Paris" => Ok(json!({ "celsius": 21 })),
//!         city => Err(ToolError::failed(format!("No forecast for {city}"))),
//!     }
//! }
//!
//! let manager = Arc::new(ToolManager::new());
//! manager.add(FunctionTool::new("get_forecast", "Returns today's weather in a city", get_forecast)?);
//! let executor = ToolExecutor::new(manager);
//!
//! let call = ToolCall::new("get_forecast", json!({ "city": "Paris" })).timeout(Duration::from_secs(5));
//! let envelope = executor.execute(call).await.to_envelope();
//! assert_eq!(envelope["result"], json!({ "celsius": 21 }));
//!
//! // Invalid arguments never reach the tool.
//! let outcome = executor.execute(ToolCall::new("get_forecast", json!({}))).await;
//! let error = outcome.result.unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::InvalidArguments);
//! assert_eq!(error.to_string(), "Invalid parameters: missing 'city'");
//! # Ok::<_, toolgate_core::DefinitionError>(())
//! # }).unwrap();
//! ```
//!
//! # Everything else, by topic
//!
//! - **Calls.** A [`ToolCall`] knows its [`Origin`] and [`Scope`]. The tool
//!   receives [`ValidArguments`] and a [`CallContext`], with which it reports
//!   progress and notices cancellation.
//! - **Collections of tools.** [`ToolManager`] is the registry, which changes. [`ToolSet`] is an
//!   immutable snapshot of it, with every name resolved. [`Toolbox`] is one conversation's
//!   restricted view of an executor, and [`ToolList`] a snapshot of that view.
//! - **Names.** If two sources offer the same name, the one with the lower [`ToolRank`] keeps it,
//!   and the other tool is listed as `server__tool`. [`ToolPattern`] matches tools in policies and
//!   scopes. [`ParameterNames`] renames parameters for MCP servers that expect another spelling.
//!   [`wire_names`] makes tool names fit a protocol.
//! - **Annotations.** [`Annotations`] are a tool's own claims about its effects.
//!   [`DestructivePolicy`] says what happens if a model calls a tool that claims to be destructive.
//! - **Approvals.** If the policy requires one, the executor sends an [`ApprovalRequest`] to its
//!   [`Approver`]. The [`Approval`] is stored with the call as an [`ApprovalRecord`].
//! - **Requests from servers.** During a call, an MCP server can ask the caller something (a
//!   [`Question`], answered by its [`QuestionHandler`]) or send it a [`LogMessage`]
//!   (delivered by a [`LogHandler`]).
//! - **Tasks.** A [`RemoteTask`] is a call that its server continues in the background. A
//!   [`TaskStore`] keeps tasks across restarts.
//! - **Resources and prompts.** [`SourceContent`] is what a source offers besides tools.
//!   [`ContentSet`] collects the resources and prompts of all sources. Reading one is a call like
//!   any other, made by a [`ContentRequest`]: each [`ContentMethod`] is a tool of its source.
//! - **Conversations.** [`ToolReadiness`] knows which servers are still starting, so that a request
//!   can wait for their tools. [`FlowState`] remembers which kinds of data a conversation has read,
//!   so that [`FlowPolicy`] can ask before private data leaves.
//! - **Records.** Observers receive [`CallStarted`] and [`CallRecord`]. [`TraceContext`] puts a
//!   call into a W3C trace. [`Redactor`] removes secrets, and [`sanitize`] redacts and truncates
//!   values before they are stored.
//! - **Untrusted input.** [`parse_object`] rejects duplicate keys. [`ValueCounter`] counts JSON
//!   values before they are parsed. [`command_line_arguments`] and [`typed_arguments`] turn
//!   text into typed arguments.
//! - **Text.** [`text`] has the helpers that all crates share: escaping, truncating, fuzzy matching
//!   of names, parsing of sizes and durations.
//!
//! # What is stable
//!
//! The envelope's fields, the error kinds and the error texts are a contract: they change only with
//! a major version. Enums and structs that may grow are `#[non_exhaustive]`. Everything else may
//! change before 1.0, as described in the CHANGELOG.

mod annotations;
mod approval;
mod arguments;
mod call;
mod call_id;
mod content;
mod content_extension;
mod content_offer;
mod content_request;
mod content_set;
mod content_uri;
mod context;
mod definition;
mod error;
mod executor;
mod extension_listener;
mod function;
mod handler;
mod in_flight;
mod json;
mod limits;
mod linked_uris;
mod log;
mod log_message;
mod manager;
mod observer;
mod outcome;
mod output;
mod parameter_names;
mod policy;
mod question;
mod readiness;
mod redact;
mod remote_task;
mod rules;
pub mod sanitize;
mod schema;
mod scope;
mod slots;
mod source;
mod task_store;
pub mod text;
mod tool;
mod tool_name;
mod tool_pattern;
mod tool_set;
mod toolbox;
mod trace;
mod typed;
mod value_counter;
pub mod wire_names;
mod withheld;

pub use annotations::Annotations;
pub use approval::{
    Approval, ApprovalActor, ApprovalChannel, ApprovalReason, ApprovalRecord, ApprovalRequest,
    Approver, MAX_APPROVABLE_BYTES,
};
pub use arguments::{Arguments, ValidArguments};
pub use call::{Origin, ToolCall};
pub use call_id::CallId;
pub use content::{
    ContentAccess, ContentMethod, ContentSource, ResourceUpdates, SourceContent, UpdateListener,
    UpdateSubscription,
};
pub use content_extension::{ExtensionRequestError, is_named_by_extension};
pub use content_offer::OfferedEntry;
pub use content_request::ContentRequest;
pub use content_set::{ContentSet, ListedPrompt, ListedResource};
pub use context::{CallContext, PausedClock, Progress, SentRequest, TaskHandle, TaskReport};
pub use definition::{DefinitionBuilder, DefinitionError, ToolDefinition};
pub use error::{ErrorKind, HandlerKind, ServerFailure, ToolError};
pub use executor::{DryRun, ToolExecutor, ToolExecutorBuilder};
pub use extension_listener::{ExtensionListener, ExtensionNotification};
pub use function::{FunctionResult, FunctionTool};
pub use handler::Handler;
pub use json::{JsonError, StrictObject, parse_json, parse_object, parse_object_within};
pub use limits::{Limits, SchemaLimits, ToolLimits};
pub use linked_uris::{rewrite_app_uri, rewrite_block_uris, rewrite_result_uris};
pub use log::LogObserver;
pub use log_message::{LogHandler, LogLevel, LogMessage};
pub use manager::{ListRefresher, ToolManager};
pub use observer::{CallRecord, CallStarted, Observer, Timings};
pub use outcome::{ToolOutcome, error_chain};
pub use output::{ToolContent, ToolOutput};
pub use parameter_names::{ParameterNames, RenameMode};
pub use policy::{
    DestructivePolicy, DestructivePolicyCaller, FlowPolicy, FlowState, Policy, PolicyDecision,
};
pub use question::{ClientId, ElicitationListener, Question, QuestionError, QuestionHandler};
pub use readiness::{ToolReadiness, ToolWait, ToolWaitListener};
pub use redact::{Redactor, is_redacted};
pub use remote_task::RemoteTask;
pub use rules::ExecutionRules;
pub use schema::{Schema, SchemaError, Violation};
pub use scope::Scope;
pub use source::ToolSource;
pub use task_store::{TaskRecord, TaskStore};
pub use tool::{Tool, ToolFuture};
pub use tool_name::display_name;
pub use tool_pattern::ToolPattern;
pub use tool_set::{ToolRank, ToolSet};
pub use toolbox::{ToolList, Toolbox};
pub use trace::TraceContext;
pub use typed::{comma_separated_lists, command_line_arguments, typed_arguments};
pub use value_counter::{ValueCounter, has_more_values};
pub use withheld::WithheldReason;

// Compiles the program in the README together with the examples here.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
