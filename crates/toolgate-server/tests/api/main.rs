//! The API over real HTTP on loopback. Every answer is checked against the OpenAPI document.
#![expect(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod approvals;
mod calls;
mod chat;
mod client;
mod content;
mod document;
mod events;
mod fuzz;
mod mcp;
mod notifications;
mod odd_requests;
mod operator;
mod questions;
mod requests;
mod scope;
mod servers;
mod status;
mod tasks;
mod test_gateway;
mod tools;
mod turns;
