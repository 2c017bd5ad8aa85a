//! The N best tools for a request.
