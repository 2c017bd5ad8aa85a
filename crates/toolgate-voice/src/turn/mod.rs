//! One request and its answer.
