//! Which provider, where nobody said.
