//! Servers that go wrong in every way we know, as real processes, behind the public door: a call ends in exactly one outcome
//! within its bound, the neighbours go on, and no process is left.
//!
//! Times are guards against hanging, ten times what is promised.
#![expect(clippy::unwrap_used, reason = "a test that can not go on says where")]

mod answers;
mod children;
mod crowds;
mod dying;
mod endings;
mod environment;
mod eras;
mod house;
mod identities;
mod listings;
mod names;
mod pinning;
mod pollution;
mod questions;
mod starting;
