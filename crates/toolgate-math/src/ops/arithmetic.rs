//! The arithmetic operators: sums, products, quotients, remainders and powers.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::{NumberPair, broadcast, counted_big, counted_fraction, matrix_product, number_pair};
use crate::number::{Fraction, complex, real};
use crate::prelude::*;
use crate::unit::Unit;

pub(crate) fn add(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    if let (Value::Number(a), Value::Number(b)) = (a, b) {
        return Ok(Value::Number(a + b));
    }
    broadcast(budget, a, b, add_scalars)
}

fn add_scalars(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    if let (Value::Unit(a), Value::Unit(b)) = (a, b) {
        return join_units(budget, a, b, add);
    }
    match number_pair("add", a, b)? {
        NumberPair::Number(a, b) => Ok(Value::Number(a + b)),
        NumberPair::Complex(a, b) => Ok(a.add(b).into()),
        NumberPair::Big(a, b) => counted_big(budget, a.add(&b)),
        NumberPair::Fraction(a, b) => counted_fraction(budget, a.add(&b)),
    }
}

pub(crate) fn subtract(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    if let (Value::Number(a), Value::Number(b)) = (a, b) {
        return Ok(Value::Number(a - b));
    }
    broadcast(budget, a, b, subtract_scalars)
}

fn subtract_scalars(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    if let (Value::Unit(a), Value::Unit(b)) = (a, b) {
        return join_units(budget, a, b, subtract);
    }
    match number_pair("subtract", a, b)? {
        NumberPair::Number(a, b) => Ok(Value::Number(a - b)),
        NumberPair::Complex(a, b) => Ok(a.sub(b).into()),
        NumberPair::Big(a, b) => counted_big(budget, a.sub(&b)),
        NumberPair::Fraction(a, b) => counted_fraction(budget, a.sub(&b)),
    }
}

fn join_units(
    budget: &mut BudgetTracker,
    a: &Unit,
    b: &Unit,
    f: super::ScalarFunction,
) -> Result<Value> {
    if !a.is_compatible(b) {
        return fail("Units do not match");
    }
    let value = f(budget, a.require_value()?, b.require_value()?)?;
    let mut sum = a.with_value(Some(value));
    sum.fixed_prefix = false;
    Ok(Value::unit(sum))
}

/// The matrix product of matrices; cell by cell with a scalar.
pub(crate) fn multiply(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Ok(Value::Number(a * b)),
        (Value::Matrix(a), Value::Matrix(b)) => matrix_product(budget, a, b),
        _ => broadcast(budget, a, b, multiply_scalars),
    }
}

pub(crate) fn dot_multiply(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    broadcast(budget, a, b, multiply_scalars)
}

fn multiply_scalars(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => return Ok(Value::Number(a * b)),
        (Value::Unit(a), Value::Unit(b)) => return a.combine(budget, b, 1.0),
        (Value::Unit(unit), factor) | (factor, Value::Unit(unit)) if is_number(factor) => {
            return unit.scale(budget, factor);
        }
        _ => {}
    }
    match number_pair("multiply", a, b)? {
        NumberPair::Number(a, b) => Ok(Value::Number(a * b)),
        NumberPair::Complex(a, b) => Ok(a.mul(b).into()),
        NumberPair::Big(a, b) => counted_big(budget, a.mul(&b)),
        NumberPair::Fraction(a, b) => counted_fraction(budget, a.mul(&b)),
    }
}

fn is_number(value: &Value) -> bool {
    matches!(
        value,
        Value::Number(_)
            | Value::Big(_)
            | Value::Fraction(_)
            | Value::Complex(_)
            | Value::Bool(_)
            | Value::Text(_)
    )
}

pub(crate) fn divide(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Ok(Value::Number(a / b)),
        (_, Value::Matrix(b)) => {
            let inverse = super::inverse(budget, b)?;
            multiply(budget, a, &inverse)
        }
        _ => broadcast(budget, a, b, divide_scalars),
    }
}

pub(crate) fn dot_divide(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    broadcast(budget, a, b, divide_scalars)
}

fn divide_scalars(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => return Ok(Value::Number(a / b)),
        (Value::Unit(a), Value::Unit(b)) => return a.combine(budget, b, -1.0),
        (Value::Unit(unit), divisor) if is_number(divisor) => {
            let value = divide(budget, unit.require_value()?, divisor)?;
            return Ok(Value::unit(unit.with_value(Some(value))));
        }
        (number, Value::Unit(unit)) if is_number(number) => {
            return Unit::dimensionless(number.clone()).combine(budget, unit, -1.0);
        }
        _ => {}
    }
    match number_pair("divide", a, b)? {
        NumberPair::Number(a, b) => Ok(Value::Number(a / b)),
        NumberPair::Complex(a, b) => Ok(a.div(b).into()),
        NumberPair::Big(a, b) => counted_big(budget, a.div(&b)),
        NumberPair::Fraction(a, b) => {
            counted_fraction(budget, a.div(&b).ok_or_else(division_by_zero)?)
        }
    }
}

fn division_by_zero() -> MathError {
    MathError::new("Division by Zero")
}

/// The remainder, with the sign of the divisor. `x mod 0` is x.
pub(crate) fn modulo(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    if let (Value::Number(a), Value::Number(b)) = (a, b) {
        return Ok(Value::Number(real::modulo(*a, *b)));
    }
    broadcast(budget, a, b, modulo_scalars)
}

fn modulo_scalars(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    match number_pair("mod", a, b)? {
        NumberPair::Number(a, b) => Ok(Value::Number(real::modulo(a, b))),
        NumberPair::Complex(..) => Err(type_error("mod", a)),
        NumberPair::Big(a, b) if b.is_zero() => counted_big(budget, a),
        NumberPair::Big(a, b) => {
            let quotient = super::floor_big(&a.div(&b));
            counted_big(budget, a.sub(&b.mul(&quotient)))
        }
        NumberPair::Fraction(a, b) => {
            let quotient = a.div(&b).ok_or_else(division_by_zero)?.floor();
            counted_fraction(budget, a.sub(&b.mul(&quotient)))
        }
    }
}

pub(crate) fn power(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Ok(number_power(*a, *b)),
        (Value::Matrix(a), Value::Number(b)) => super::linear::matrix_power(budget, a, *b),
        (Value::Unit(a), Value::Number(b)) => a.power(budget, *b),
        (Value::Unit(a), Value::Big(_) | Value::Fraction(_)) => {
            let exponent = b.to_number("pow")?;
            a.power(budget, exponent)
        }
        _ => power_scalars(budget, a, b),
    }
}

pub(crate) fn dot_power(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    broadcast(budget, a, b, power)
}

fn number_power(a: f64, b: f64) -> Value {
    if (a * a < 1.0 && b == f64::INFINITY) || (a * a > 1.0 && b == f64::NEG_INFINITY) {
        return Value::Number(0.0);
    }
    if a >= 0.0 || real::is_integer(b) {
        return Value::Number(real::pow(a, b));
    }
    complex(a, 0.0).pow(complex(b, 0.0)).into()
}

fn power_scalars(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    match number_pair("pow", a, b)? {
        NumberPair::Number(a, b) => Ok(number_power(a, b)),
        NumberPair::Complex(a, b) => Ok(a.pow(b).into()),
        NumberPair::Big(a, b) => match a.pow(&b) {
            Some(power) => counted_big(budget, power),
            None => Ok(complex(a.to_f64(), 0.0)
                .pow(complex(b.to_f64(), 0.0))
                .into()),
        },
        NumberPair::Fraction(a, b) => fraction_power(budget, &a, &b),
    }
}

fn fraction_power(budget: &mut BudgetTracker, a: &Fraction, b: &Fraction) -> Result<Value> {
    if !b.is_integer() {
        let root = b
            .den
            .to_u32()
            // Larger roots of fractions are hardly ever exact and slow to try.
            .filter(|n| *n <= 64)
            .and_then(|n| a.exact_root(n));
        if let Some(root) = root {
            return fraction_power(budget, &root, &Fraction::integer(b.num.clone()));
        }
        return Ok(number_power(a.to_f64(), b.to_f64()));
    }
    // Checked before computing: the result has the bits of the base times the exponent.
    let count = b
        .num
        .abs()
        .to_u32()
        .ok_or_else(|| budget.too_many_digits())?;
    if a.bits() > 1 {
        budget.charge_big(a.bits().saturating_mul(u64::from(count)))?;
    }
    let raise = |n: &BigInt| {
        if n.bits() <= 1 {
            if count % 2 == 0 { n.abs() } else { n.clone() }
        } else {
            n.pow(count)
        }
    };
    let (num, den) = (raise(&a.num), raise(&a.den));
    let result = if b.num.is_negative() {
        Fraction::new(den, num)
    } else {
        Fraction::new(num, den)
    };
    counted_fraction(budget, result.ok_or_else(division_by_zero)?)
}

pub(crate) fn negate(budget: &mut BudgetTracker, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Number(value) => Value::Number(-value),
        Value::Complex(value) => value.neg().into(),
        Value::Big(value) => Value::big(value.neg()),
        Value::Fraction(value) => Value::fraction(value.neg()),
        Value::Bool(_) | Value::Text(_) => Value::Number(-value.to_number("unaryMinus")?),
        Value::Unit(unit) => {
            let value = negate(budget, unit.require_value()?)?;
            Value::unit(unit.with_value(Some(value)))
        }
        // A zero in a matrix keeps its sign.
        Value::Matrix(matrix) => matrix.map(budget, |budget, cell| match cell {
            Value::Number(0.0) => Ok(cell.clone()),
            cell => negate(budget, cell),
        })?,
        _ => return Err(type_error("unaryMinus", value)),
    })
}

pub(crate) fn plus(budget: &mut BudgetTracker, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Bool(_) | Value::Text(_) => Value::Number(value.to_number("unaryPlus")?),
        Value::Matrix(matrix) => matrix.map(budget, plus)?,
        Value::Number(_)
        | Value::Complex(_)
        | Value::Big(_)
        | Value::Fraction(_)
        | Value::Unit(_) => value.clone(),
        _ => return Err(type_error("unaryPlus", value)),
    })
}

pub(crate) fn magnitude(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Number(value) => value.abs(),
        Value::Complex(value) => value.abs(),
        Value::Big(value) => value.to_f64().abs(),
        Value::Fraction(value) => value.to_f64().abs(),
        _ => return None,
    })
}

pub(crate) fn square_root(budget: &mut BudgetTracker, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Number(x) if *x < 0.0 => complex(*x, 0.0).sqrt().into(),
        Value::Number(x) => Value::Number(x.sqrt()),
        Value::Complex(x) => x.sqrt().into(),
        Value::Big(x) if x.is_negative() => complex(x.to_f64(), 0.0).sqrt().into(),
        Value::Big(x) => return counted_big(budget, x.sqrt()),
        Value::Bool(_) | Value::Text(_) => {
            return square_root(budget, &Value::Number(value.to_number("sqrt")?));
        }
        Value::Unit(unit) => return unit.power(budget, 0.5),
        Value::Fraction(_) => return Err(no_fraction()),
        _ => return Err(type_error("sqrt", value)),
    })
}

// Analytic functions don't accept fractions, because their results aren't fractions.
pub(crate) fn no_fraction() -> MathError {
    MathError::new(
        "Cannot implicitly convert a Fraction to BigNumber or vice versa. \
         Use function bignumber(x) to convert to BigNumber or number(x) to convert to a number.",
    )
}
