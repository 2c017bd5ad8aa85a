//! Services of the program. Definitions of type `internal` refer to them by name; those for
//! resources are tools by themselves.

mod documents;
mod resources;

pub use documents::{Documents, DocumentsError, DocumentsSettings};
pub use resources::{LIST_RESOURCES, READ_RESOURCE, ResourcesSettings, resource_tools};
