//! Resources, prompts, completion and subscriptions through both halves: an MCP client in front,
//! real processes behind, in every pair of protocol eras.
//!
//! Time limits only guard against hanging and are ten times what is promised.
#![expect(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod clashes;
mod client;
mod documented;
mod everything;
mod extension_messages;
mod extensions;
mod faults;
mod floods;
mod gateway;
mod lists;
mod malformed_messages;
mod pages;
mod passed_on;
mod real_clients;
mod real_servers;
mod real_tasks;
mod reconfiguring;
mod remembering;
mod rights;
mod scopes;
mod skills;
mod updates;
