//! The protocol of voice engines.
