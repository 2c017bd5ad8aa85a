//! The kinds of number beside the double: complex, fraction, and decimal with 64 digits.

pub(crate) mod complex;
pub(crate) mod decimal;
pub(crate) mod fraction;
pub(crate) mod real;
pub(crate) mod special;
mod transcendental;
