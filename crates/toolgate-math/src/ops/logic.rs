//! Truth: what counts as true, and the logical operators.

use super::broadcast;
use crate::budget::Meter;
use crate::error::Result;
use crate::value::{Value, type_error};

/// Whether a value counts as true: numbers other than zero, and what has a value.
pub(crate) fn truth(function: &str, value: &Value) -> Result<bool> {
    Ok(match value {
        Value::Bool(value) => *value,
        Value::Number(value) => *value != 0.0 && !value.is_nan(),
        Value::Complex(value) => value.re != 0.0 || value.im != 0.0,
        Value::Big(value) => !value.is_zero() && !value.is_nan(),
        Value::Unit(unit) => truth(function, unit.required()?)?,
        Value::Text(_) => value.number(function)? != 0.0,
        Value::Fraction(_) => return Err(super::arithmetic::no_fraction()),
        _ => return Err(type_error(function, value)),
    })
}

/// `not a`
pub(crate) fn not(meter: &mut Meter, value: &Value) -> Result<Value> {
    match value {
        Value::Matrix(matrix) => Ok(Value::matrix(matrix.map(meter, not)?)),
        Value::Null | Value::Undefined => Ok(true.into()),
        _ => Ok((!truth("not", value)?).into()),
    }
}

/// `a xor b`
pub(crate) fn xor(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    broadcast(meter, a, b, |_, a, b| {
        Ok((truth("xor", a)? != truth("xor", b)?).into())
    })
}
