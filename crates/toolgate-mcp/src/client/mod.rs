//! MCP servers as tools.

pub(crate) mod answer;
pub(crate) mod connect;
pub(crate) mod greeting;
pub(crate) mod link;
pub(crate) mod listing;
pub(crate) mod message;
pub(crate) mod questions;
#[cfg(test)]
pub(crate) mod scripted;
pub(crate) mod session;
pub(crate) mod tool;
pub(crate) mod transport;

pub use questions::{Elicitation, ElicitationAnswer, Elicitor};
