//! The API over real HTTP on the loopback. Every answer is held against the document that describes it.

mod approvals;
mod calls;
mod chat;
mod client;
mod document;
mod events;
mod home;
mod mcp;
mod scope;
mod servers;
mod status;
mod tools;
