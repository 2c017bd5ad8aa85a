//! The operators under their names, and the functions next to them.

use super::Body::{Each, Many, Two};
use super::Row;
use crate::budget::Meter;
use crate::error::Result;
use crate::eval::Run;
use crate::number::complex::complex;
use crate::number::decimal::Decimal;
use crate::ops::{self};
use crate::value::{Value, type_error};

pub(super) const TABLE: &[Row] = &[
    ("add", Many(|run, args| fold(run, args, ops::add))),
    ("subtract", Two(ops::subtract)),
    ("multiply", Many(|run, args| fold(run, args, ops::multiply))),
    ("divide", Two(ops::divide)),
    ("dotMultiply", Two(ops::dot_multiply)),
    ("dotDivide", Two(ops::dot_divide)),
    ("pow", Two(ops::power)),
    ("dotPow", Two(ops::dot_power)),
    ("mod", Two(ops::modulo)),
    ("unaryMinus", Each(ops::negate)),
    ("unaryPlus", Each(ops::plus)),
    ("abs", Each(abs)),
    ("sign", Each(sign)),
];

fn fold(run: &mut Run<'_>, args: &[Value], f: ops::Scalar2) -> Result<Value> {
    let first = f(&mut run.meter, &args[0], &args[1])?;
    args[2..]
        .iter()
        .try_fold(first, |sum, next| f(&mut run.meter, &sum, next))
}

pub(super) fn abs(_: &mut Meter, x: &Value) -> Result<Value> {
    absolute(x)
}

fn absolute(x: &Value) -> Result<Value> {
    Ok(match x {
        Value::Number(x) => Value::Number(x.abs()),
        Value::Complex(x) => Value::Number(x.abs()),
        Value::Big(x) => Value::big(x.abs()),
        Value::Fraction(x) => Value::fraction(x.abs()),
        Value::Unit(unit) => {
            let value = absolute(unit.required()?)?;
            Value::unit(unit.with(Some(value)))
        }
        Value::Bool(_) | Value::Text(_) => Value::Number(x.number("abs")?.abs()),
        _ => return Err(type_error("abs", x)),
    })
}

fn sign(_: &mut Meter, x: &Value) -> Result<Value> {
    signum(x)
}

fn signum(x: &Value) -> Result<Value> {
    // Zero keeps its sign, and what is not a number stays so.
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
        Value::Unit(unit) => signum(unit.required()?)?,
        Value::Bool(_) | Value::Text(_) => Value::Number(of(x.number("sign")?)),
        _ => return Err(type_error("sign", x)),
    })
}
