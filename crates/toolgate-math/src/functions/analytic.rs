//! Functions of one number that exist for doubles, complex numbers and big numbers.

use crate::number::{Complex, Decimal, complex};
use crate::ops::counted_big;
use crate::prelude::*;

pub(super) fn apply_analytic(
    budget: &mut BudgetTracker,
    name: &str,
    x: &Value,
    number: fn(f64) -> Value,
    of_complex: fn(Complex) -> Complex,
    big: fn(&Decimal) -> Option<Value>,
) -> Result<Value> {
    match x {
        Value::Number(x) => Ok(number(*x)),
        Value::Complex(x) => Ok(of_complex(*x).into()),
        Value::Big(x) => {
            // A series over all digits costs far more than an addition.
            budget.charge_steps(500)?;
            match big(x).ok_or_else(|| budget.too_many_digits())? {
                Value::Big(result) => counted_big(budget, result.as_ref().clone()),
                other => Ok(other),
            }
        }
        Value::Fraction(_) => Err(ops::no_fraction()),
        Value::Bool(_) | Value::Text(_) => Ok(number(x.to_number(name)?)),
        _ => Err(type_error(name, x)),
    }
}

/// Applies the real function if `x` is `inside` its domain, otherwise the complex one.
pub(super) fn real_or_complex(
    inside: bool,
    x: f64,
    real: fn(f64) -> f64,
    of_complex: fn(Complex) -> Complex,
) -> Value {
    if inside || x.is_nan() {
        real(x).into()
    } else {
        of_complex(complex(x, 0.0)).into()
    }
}

pub(super) fn some_big(value: Decimal) -> Option<Value> {
    Some(Value::big(value))
}

/// Each line lists the Rust function to define, the name in expressions, and the implementations
/// for doubles, complex numbers and big numbers.
macro_rules! analytic_functions {
    ($($function:ident $name:literal: $number:expr, $complex:expr, $big:expr;)*) => {$(
        fn $function(budget: &mut BudgetTracker, x: &Value) -> Result<Value> {
            super::analytic::apply_analytic(budget, $name, x, $number, $complex, $big)
        }
    )*};
}
pub(super) use analytic_functions;
