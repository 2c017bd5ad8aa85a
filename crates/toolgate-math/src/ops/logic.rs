//! The logical operators, and which values count as true.

use super::broadcast;
use crate::prelude::*;

/// Whether a value counts as true: any number except zero and NaN, and a quantity by its number.
pub(crate) fn truth(function: &str, value: &Value) -> Result<bool> {
    Ok(match value {
        Value::Bool(value) => *value,
        Value::Number(value) => *value != 0.0 && !value.is_nan(),
        Value::Complex(value) => value.re != 0.0 || value.im != 0.0,
        Value::Big(value) => !value.is_zero() && !value.is_nan(),
        Value::Unit(unit) => truth(function, unit.require_value()?)?,
        Value::Text(_) => value.to_number(function)? != 0.0,
        Value::Fraction(_) => return Err(super::arithmetic::no_fraction()),
        _ => return Err(type_error(function, value)),
    })
}

/// Both sides of `and`, `or` or `xor` as booleans. Some types can't be mixed: a
/// quantity needs another quantity.
pub(crate) fn truths(function: &str, a: &Value, b: &Value) -> Result<(bool, bool)> {
    match (a, b) {
        (Value::Unit(_), Value::Unit(_)) => {}
        (Value::Unit(_), other) | (other, Value::Unit(_)) => {
            return Err(type_error(function, other));
        }
        (Value::Complex(_), Value::Bool(_) | Value::Text(_)) => {
            return Err(type_error(function, b));
        }
        (Value::Bool(_) | Value::Text(_), Value::Complex(_)) => {
            return Err(type_error(function, b));
        }
        _ => {}
    }
    Ok((truth(function, a)?, truth(function, b)?))
}

pub(crate) fn not(budget: &mut BudgetTracker, value: &Value) -> Result<Value> {
    match value {
        Value::Matrix(matrix) => matrix.map(budget, not),
        Value::Null | Value::Undefined => Ok(true.into()),
        _ => Ok((!truth("not", value)?).into()),
    }
}

pub(crate) fn xor(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    broadcast(budget, a, b, |_, a, b| {
        Ok((truth("xor", a)? != truth("xor", b)?).into())
    })
}

pub(crate) fn and(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    broadcast(budget, a, b, |_, a, b| {
        let (a, b) = truths("and", a, b)?;
        Ok((a && b).into())
    })
}

pub(crate) fn or(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    broadcast(budget, a, b, |_, a, b| {
        let (a, b) = truths("or", a, b)?;
        Ok((a || b).into())
    })
}
