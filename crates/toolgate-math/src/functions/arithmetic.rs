//! The operators as named functions, and related functions.

use super::{FunctionRow, each, many, two};
use crate::number::{Decimal, complex};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    many("add", |evaluator, args| fold(evaluator, args, ops::add)),
    two("subtract", ops::subtract),
    many("multiply", |evaluator, args| {
        fold(evaluator, args, ops::multiply)
    }),
    two("divide", ops::divide),
    two("dotMultiply", ops::dot_multiply),
    two("dotDivide", ops::dot_divide),
    two("pow", ops::power),
    two("dotPow", ops::dot_power),
    two("mod", ops::modulo),
    each("unaryMinus", ops::negate),
    each("unaryPlus", ops::plus),
    each("abs", abs),
    each("sign", sign),
];

fn fold(evaluator: &mut Evaluator<'_>, args: &[Value], f: ops::ScalarFunction) -> Result<Value> {
    let first = f(&mut evaluator.budget, &args[0], &args[1])?;
    args[2..]
        .iter()
        .try_fold(first, |sum, next| f(&mut evaluator.budget, &sum, next))
}

pub(super) fn abs(_: &mut BudgetTracker, x: &Value) -> Result<Value> {
    absolute(x)
}

fn absolute(x: &Value) -> Result<Value> {
    Ok(match x {
        Value::Number(x) => Value::Number(x.abs()),
        Value::Complex(x) => Value::Number(x.abs()),
        Value::Big(x) => Value::big(x.abs()),
        Value::Fraction(x) => Value::fraction(x.abs()),
        Value::Unit(unit) => {
            let value = absolute(unit.require_value()?)?;
            Value::unit(unit.with_value(Some(value)))
        }
        Value::Bool(_) | Value::Text(_) => Value::Number(x.to_number("abs")?.abs()),
        _ => return Err(type_error("abs", x)),
    })
}

fn sign(_: &mut BudgetTracker, x: &Value) -> Result<Value> {
    signum(x)
}

fn signum(x: &Value) -> Result<Value> {
    // Zero keeps its sign, and NaN stays NaN.
    let of = |x: f64| {
        if x == 0.0 || x.is_nan() {
            x
        } else {
            x.signum()
        }
    };
    Ok(match x {
        Value::Number(x) => Value::Number(of(*x)),
        Value::Complex(x) if x.im == 0.0 => complex(of(x.re), 0.0).into(),
        Value::Complex(x) => complex(x.re / x.abs(), x.im / x.abs()).into(),
        Value::Big(x) => Value::big(Decimal::from_number(of(if x.is_zero() {
            0.0
        } else if x.is_negative() {
            -1.0
        } else {
            1.0
        }))),
        Value::Fraction(x) => Value::fraction(ops::implicit_fraction(of(x.to_f64()))?),
        Value::Unit(unit) => signum(unit.require_value()?)?,
        Value::Bool(_) | Value::Text(_) => Value::Number(of(x.to_number("sign")?)),
        _ => return Err(type_error("sign", x)),
    })
}
