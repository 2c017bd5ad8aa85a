//! Services of the program, which definitions of type `internal` refer to by name.

mod documents;

pub use documents::{Documents, DocumentsError, DocumentsSettings};
