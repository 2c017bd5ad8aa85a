//! MCP servers as tools.

pub(crate) mod connect;
pub(crate) mod link;
pub(crate) mod message;
pub(crate) mod transport;
