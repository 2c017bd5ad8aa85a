//! The bitwise operators: doubles as 32-bit words, big numbers as integers of any size.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::{NumberPair, broadcast, counted_big, number_pair};
use crate::number::Decimal;
use crate::number::decimal::PRECISION;
use crate::prelude::*;
use crate::tree::BinaryOperator;
use crate::value::read_number;

// The low 32 bits of an integer, as in ECMAScript.
fn to_word(value: f64, function: &str) -> Result<i32> {
    if value.fract() != 0.0 || value.is_nan() {
        return fail(format!("Integers expected in function {function}"));
    }
    Ok(value.rem_euclid(4_294_967_296.0) as u32 as i32)
}

fn to_big_integer(budget: &BudgetTracker, value: &Decimal, function: &str) -> Result<BigInt> {
    if !value.is_integer() {
        return fail(format!("Integers expected in function {function}"));
    }
    value
        .to_integer(budget.max_digits())
        .ok_or_else(|| budget.too_many_digits())
}

fn bitwise(
    budget: &mut BudgetTracker,
    function: &str,
    a: &Value,
    b: &Value,
    small: fn(i32, i32) -> f64,
    big: fn(BigInt, BigInt) -> Option<BigInt>,
) -> Result<Value> {
    match number_pair(function, a, b)? {
        NumberPair::Number(a, b) => Ok(Value::Number(small(
            to_word(a, function)?,
            to_word(b, function)?,
        ))),
        NumberPair::Big(a, b) if a.is_nan() || b.is_nan() => Ok(Value::big(Decimal::nan())),
        NumberPair::Big(a, b) => {
            let (a, b) = (
                to_big_integer(budget, &a, function)?,
                to_big_integer(budget, &b, function)?,
            );
            // As in mathjs, which can't shift a big number by a negative count.
            if function.contains("Shift") && b.sign() == num_bigint::Sign::Minus {
                return Ok(Value::big(Decimal::nan()));
            }
            if function == "leftShift" {
                let shifted = Decimal::from_integer(&a).mul(&Decimal::integer(2).powi(&b));
                return counted_big(budget, shifted);
            }
            let result = big(a, b).ok_or_else(|| budget.too_many_digits())?;
            let result = Decimal::from_integer(&result);
            counted_big(budget, result.significant(PRECISION))
        }
        NumberPair::Complex(..) | NumberPair::Fraction(..) => Err(type_error(function, a)),
    }
}

/// The result of `&` or `|` if the left side alone decides it. As in mathjs, the right side
/// is then not checked.
#[inline]
pub(crate) fn short_circuit(operator: BinaryOperator, left: &Value) -> Option<Value> {
    if !matches!(operator, BinaryOperator::BitAnd | BinaryOperator::BitOr) {
        return None;
    }
    let not_a_number = match left {
        Value::Number(number) => number.is_nan(),
        Value::Big(number) => number.is_nan(),
        Value::Text(text) => read_number(text).is_none(),
        Value::Bool(_) | Value::Null | Value::Fraction(_) | Value::Matrix(_) => false,
        _ => true,
    };
    if not_a_number {
        return Some(f64::NAN.into());
    }
    match (operator, left) {
        (BinaryOperator::BitAnd, Value::Bool(false)) => Some(0.0.into()),
        (BinaryOperator::BitAnd, Value::Number(0.0)) => Some(0.0.into()),
        (BinaryOperator::BitOr, Value::Bool(true)) => Some(1.0.into()),
        (BinaryOperator::BitOr, Value::Number(-1.0)) => Some((-1.0).into()),
        _ => None,
    }
}

pub(crate) fn bit_and(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    match short_circuit(BinaryOperator::BitAnd, a) {
        Some(value) => Ok(value),
        None => and(budget, a, b),
    }
}

pub(crate) fn bit_or(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    match short_circuit(BinaryOperator::BitOr, a) {
        Some(value) => Ok(value),
        None => or(budget, a, b),
    }
}

macro_rules! bit_operators {
    ($($(#[$doc:meta])* $name:ident, $function:literal, $small:expr, $big:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
            broadcast(budget, a, b, |budget, a, b| bitwise(budget, $function, a, b, $small, $big))
        }
    )*};
}

bit_operators! {
    and, "bitAnd", |a, b| f64::from(a & b), |a, b| Some(a & b);
    or, "bitOr", |a, b| f64::from(a | b), |a, b| Some(a | b);
    bit_xor, "bitXor", |a, b| f64::from(a ^ b), |a, b| Some(a ^ b);
    shift_left, "leftShift", |a, b| f64::from(a.wrapping_shl(b as u32)), |_, _| None;
    shift_right, "rightArithShift", |a, b| f64::from(a.wrapping_shr(b as u32)), |a, b| Some(a >> b.to_u64()?);
}

pub(crate) fn shift_right_logical(
    budget: &mut BudgetTracker,
    a: &Value,
    b: &Value,
) -> Result<Value> {
    broadcast(budget, a, b, |_, a, b| {
        match number_pair("rightLogShift", a, b)? {
            NumberPair::Number(a, b) => {
                let (a, b) = (to_word(a, "rightLogShift")?, to_word(b, "rightLogShift")?);
                Ok(Value::Number(f64::from((a as u32).wrapping_shr(b as u32))))
            }
            _ => Err(type_error("rightLogShift", a)),
        }
    })
}

pub(crate) fn bit_not(budget: &mut BudgetTracker, value: &Value) -> Result<Value> {
    match value {
        Value::Matrix(matrix) => matrix.map(budget, bit_not),
        Value::Big(value) => {
            let value = to_big_integer(budget, value, "bitNot")?;
            counted_big(budget, Decimal::from_integer(&!value))
        }
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            let number = value.to_number("bitNot")?;
            if number.fract() != 0.0 {
                return fail("Integer expected in function bitNot");
            }
            Ok(Value::Number(f64::from(!to_word(number, "bitNot")?)))
        }
        _ => Err(type_error("bitNot", value)),
    }
}
