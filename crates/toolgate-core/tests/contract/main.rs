//! The contract, clause by clause: each test that proves one begins with its ID.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod approval;
mod caller_scopes;
mod cancellation;
mod concurrency;
mod consent;
mod dependencies;
mod envelope;
mod executor;
mod hostile_arguments;
mod hostile_references;
mod hostile_schemas;
mod hostile_sizes;
mod leniency;
mod log;
mod names;
mod observers;
mod properties;
mod public_functions;
mod real_schemas;
mod reference_validator;
mod rules;
mod scripted;
mod servers;
mod support;
mod timeouts;
mod tool_manager;
mod tool_ranks;
mod validation;
mod violations;
