//! Services of the program: document search, and tools that read resources of MCP servers.
//!
//! Tool definitions of type `internal` refer to a service by name. The tools for
//! resources need no definition.

mod documents;
mod resources;

pub use documents::{Documents, DocumentsError, DocumentsSettings};
pub use resources::{LIST_RESOURCES, READ_RESOURCE, ResourcesSettings, resource_tools};
