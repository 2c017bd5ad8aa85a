//! Where sound comes from.
