//! The number types besides double: complex, fraction, and decimal with 64 digits.

pub(crate) mod complex;
pub(crate) mod decimal;
pub(crate) mod fraction;
pub(crate) mod real;
pub(crate) mod special;
mod transcendental;

pub(crate) use complex::{Complex, complex};
pub(crate) use decimal::Decimal;
pub(crate) use fraction::Fraction;
