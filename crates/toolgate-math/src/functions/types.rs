//! Type checks and other predicates.

use super::{FunctionRow, each, many, two};
use crate::number::{Decimal, real};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    many("typeOf", |_, args| Ok(Value::text(args[0].type_name()))),
    each("isInteger", is_integer),
    each("isNaN", |_, x| {
        Ok(match x {
            Value::Number(x) => x.is_nan(),
            Value::Complex(x) => x.re.is_nan() && x.im.is_nan(),
            Value::Big(x) => x.is_nan(),
            Value::Fraction(_) => false,
            Value::Unit(unit) => matches!(unit.require_value()?, Value::Number(x) if x.is_nan()),
            Value::Bool(_) | Value::Text(_) => x.to_number("isNaN")?.is_nan(),
            _ => return Err(type_error("isNaN", x)),
        }
        .into())
    }),
    each("isFinite", |_, x| Ok(is_finite(x)?.into())),
    many("isBounded", |evaluator, args| match &args[0] {
        Value::Matrix(matrix) => {
            for cell in &matrix.data {
                evaluator.budget.charge_steps(1)?;
                if !is_finite(cell)? {
                    return Ok(false.into());
                }
            }
            Ok(true.into())
        }
        x => Ok(is_finite(x)?.into()),
    }),
    each("isPositive", |_, x| Ok((sign(x, "isPositive")? > 0).into())),
    each("isNegative", |_, x| Ok((sign(x, "isNegative")? < 0).into())),
    each("isZero", |_, x| match x {
        Value::Complex(x) => {
            Ok((real::nearly_equal(x.re, 0.0) && real::nearly_equal(x.im, 0.0)).into())
        }
        Value::Unit(unit) => Ok((sign(unit.require_value()?, "isZero")? == 0).into()),
        x => Ok((sign(x, "isZero")? == 0).into()),
    }),
    each("isNumeric", |_, x| Ok(is_numeric(x).into())),
    each("hasNumericValue", |_, x| {
        Ok(match x {
            Value::Text(text) => {
                !text.trim().is_empty() && crate::value::read_number(text).is_some()
            }
            x => is_numeric(x),
        }
        .into())
    }),
    each("isPrime", is_prime),
    two("numeric", numeric),
];

fn is_numeric(x: &Value) -> bool {
    matches!(
        x,
        Value::Number(_) | Value::Big(_) | Value::Fraction(_) | Value::Bool(_)
    )
}

fn is_integer(_: &mut BudgetTracker, x: &Value) -> Result<Value> {
    Ok(match x {
        Value::Big(x) => x.is_integer(),
        Value::Fraction(x) => x.is_integer(),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            let x = x.to_number("isInteger")?;
            x.is_finite() && real::nearly_equal(x, x.round())
        }
        _ => return Err(type_error("isInteger", x)),
    }
    .into())
}

fn is_finite(x: &Value) -> Result<bool> {
    Ok(match x {
        Value::Number(x) => x.is_finite(),
        Value::Complex(x) => x.re.is_finite() && x.im.is_finite(),
        Value::Big(x) => x.is_finite(),
        Value::Fraction(_) => true,
        Value::Unit(unit) => is_finite(unit.require_value()?)?,
        Value::Bool(_) => true,
        Value::Text(_) => x.to_number("isFinite")?.is_finite(),
        _ => false,
    })
}

// Returns -1, 0 or 1, with the tolerance of comparisons around zero.
fn sign(x: &Value, name: &str) -> Result<i8> {
    let of = |x: f64| {
        if real::nearly_equal(x, 0.0) || x.is_nan() {
            0
        } else if x > 0.0 {
            1
        } else {
            -1
        }
    };
    Ok(match x {
        Value::Big(x) if x.is_zero() || x.is_nan() => 0,
        Value::Big(x) => {
            if x.is_negative() {
                -1
            } else {
                1
            }
        }
        Value::Fraction(x) => of(x.to_f64()),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => of(x.to_number(name)?),
        Value::Unit(unit) => sign(unit.require_value()?, name)?,
        _ => return Err(type_error(name, x)),
    })
}

fn is_prime(budget: &mut BudgetTracker, x: &Value) -> Result<Value> {
    let number = match x {
        Value::Fraction(_) => return Err(ops::no_fraction()),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) | Value::Big(_) => {
            x.to_number("isPrime")?
        }
        _ => return Err(type_error("isPrime", x)),
    };
    if let Value::Big(big) = x
        && big
            .compare(&Decimal::from_number(9e15))
            .is_none_or(std::cmp::Ordering::is_gt)
    {
        return Err(budget.too_many_digits());
    }
    // As in mathjs, only divisors decide, so 2.5 is treated like 2.
    if number <= 3.0 {
        return Ok((number > 1.0).into());
    }
    if number % 2.0 == 0.0 || number % 3.0 == 0.0 {
        return Ok(false.into());
    }
    // Only these fit 64 bits; others are tried one by one until the steps are used up.
    if number.fract() == 0.0 && number < 1.8e19 {
        budget.charge_steps(50)?;
        return Ok(is_prime_u64(number as u64).into());
    }
    let mut divisor = 5.0;
    while divisor * divisor <= number {
        budget.charge_steps(1)?;
        if number % divisor == 0.0 || number % (divisor + 2.0) == 0.0 {
            return Ok(false.into());
        }
        divisor += 6.0;
    }
    Ok(true.into())
}

// These twelve bases make Miller-Rabin exact for every 64-bit number.
fn is_prime_u64(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if BASES.contains(&n) {
        return true;
    }
    let power = |mut base: u64, mut exponent: u64| {
        let mut result = 1u64;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = (u128::from(result) * u128::from(base) % u128::from(n)) as u64;
            }
            base = (u128::from(base) * u128::from(base) % u128::from(n)) as u64;
            exponent >>= 1;
        }
        result
    };
    let twos = (n - 1).trailing_zeros();
    BASES.iter().all(|&base| {
        let mut x = power(base, (n - 1) >> twos);
        if x == 1 || x == n - 1 || x == 0 {
            return x != 0;
        }
        (1..twos).any(|_| {
            x = (u128::from(x) * u128::from(x) % u128::from(n)) as u64;
            x == n - 1
        })
    })
}

fn numeric(budget: &mut BudgetTracker, x: &Value, kind: &Value) -> Result<Value> {
    if !matches!(
        x,
        Value::Number(_) | Value::Big(_) | Value::Fraction(_) | Value::Text(_)
    ) {
        return Err(type_error("numeric", x));
    }
    match kind.as_text("numeric")?.as_ref() {
        "number" => super::construct::number(budget, x),
        "BigNumber" => super::construct::bignumber(budget, x),
        "Fraction" => super::construct::fraction(budget, x),
        other => Err(crate::error::MathError::new(format!(
            "Cannot convert to type \"{other}\"; use number, BigNumber or Fraction"
        ))),
    }
}
