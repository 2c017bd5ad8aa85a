//! The imports that nearly every file of operators and functions needs.

pub(crate) use crate::budget::BudgetTracker;
pub(crate) use crate::error::{MathError, Result, fail};
pub(crate) use crate::eval::Evaluator;
pub(crate) use crate::matrix::{self, Matrix};
pub(crate) use crate::ops;
pub(crate) use crate::value::{Value, type_error};
