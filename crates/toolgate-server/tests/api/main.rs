//! The API over real HTTP on the loopback. Every answer is held against the document that describes it.
#![expect(clippy::unwrap_used, reason = "a test that can not go on says where")]

mod approvals;
mod calls;
mod chat;
mod client;
mod document;
mod events;
mod fuzz;
mod home;
mod mcp;
mod odd;
mod operator;
mod requests;
mod scope;
mod servers;
mod status;
mod tools;
mod turns;
