//! The contract, clause by clause: each test that proves one begins with its ID.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod approval;
mod by_others;
mod cancellation;
mod concurrency;
mod consent;
mod dependencies;
mod envelope;
mod ex;
mod hostile_arguments;
mod hostile_references;
mod hostile_schemas;
mod hostile_sizes;
mod leniency;
mod log;
mod names;
mod observers;
mod properties;
mod ranks;
mod real_schemas;
mod rules;
mod scopes;
mod scripted;
mod servers;
mod support;
mod timeouts;
mod tm;
mod va;
mod violations;
