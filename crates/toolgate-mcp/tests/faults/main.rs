//! Faulty servers as real processes, called through the public API: a call ends in exactly one
//! outcome within its limit, other servers are unaffected, and no process is left.
//!
//! Time limits only guard against hanging and are ten times what is promised.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod answers;
mod asking;
mod children;
mod dying;
mod environment;
mod eras;
mod fault_test;
mod listings;
mod many_servers;
mod names;
mod own_tasks;
mod pinning;
mod questions;
mod request_ids;
mod shutdown;
mod starting;
mod stray_output;
mod tasks;
