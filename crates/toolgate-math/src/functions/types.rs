//! Questions about a value.

use super::Body::{Each, Many, Two};
use super::Row;
use crate::budget::Meter;
use crate::error::Result;
use crate::number::decimal::Decimal;
use crate::number::real;
use crate::ops;
use crate::value::{Value, type_error};

pub(super) const TABLE: &[Row] = &[
    (
        "typeOf",
        Many(|_, args| Ok(Value::text(args[0].type_name()))),
    ),
    ("isInteger", Each(is_integer)),
    (
        "isNaN",
        Each(|_, x| {
            Ok(match x {
                Value::Number(x) => x.is_nan(),
                Value::Complex(x) => x.re.is_nan() && x.im.is_nan(),
                Value::Big(x) => x.is_nan(),
                Value::Fraction(_) => false,
                Value::Unit(unit) => matches!(unit.required()?, Value::Number(x) if x.is_nan()),
                Value::Bool(_) | Value::Text(_) => x.number("isNaN")?.is_nan(),
                _ => return Err(type_error("isNaN", x)),
            }
            .into())
        }),
    ),
    ("isFinite", Each(|_, x| Ok(is_finite(x)?.into()))),
    (
        "isBounded",
        Many(|run, args| match &args[0] {
            Value::Matrix(matrix) => {
                for cell in &matrix.data {
                    run.meter.step(1)?;
                    if !is_finite(cell)? {
                        return Ok(false.into());
                    }
                }
                Ok(true.into())
            }
            x => Ok(is_finite(x)?.into()),
        }),
    ),
    (
        "isPositive",
        Each(|_, x| Ok((sign(x, "isPositive")? > 0).into())),
    ),
    (
        "isNegative",
        Each(|_, x| Ok((sign(x, "isNegative")? < 0).into())),
    ),
    (
        "isZero",
        Each(|_, x| match x {
            Value::Complex(x) => {
                Ok((real::nearly_equal(x.re, 0.0) && real::nearly_equal(x.im, 0.0)).into())
            }
            Value::Unit(unit) => Ok((sign(unit.required()?, "isZero")? == 0).into()),
            x => Ok((sign(x, "isZero")? == 0).into()),
        }),
    ),
    ("isNumeric", Each(|_, x| Ok(is_numeric(x).into()))),
    (
        "hasNumericValue",
        Each(|_, x| {
            Ok(match x {
                Value::Text(text) => {
                    !text.trim().is_empty() && crate::value::read_number(text).is_some()
                }
                x => is_numeric(x),
            }
            .into())
        }),
    ),
    ("isPrime", Each(is_prime)),
    ("numeric", Two(numeric)),
];

fn is_numeric(x: &Value) -> bool {
    matches!(
        x,
        Value::Number(_) | Value::Big(_) | Value::Fraction(_) | Value::Bool(_)
    )
}

fn is_integer(_: &mut Meter, x: &Value) -> Result<Value> {
    Ok(match x {
        Value::Big(x) => x.is_integer(),
        Value::Fraction(x) => x.is_integer(),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            let x = x.number("isInteger")?;
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
        Value::Unit(unit) => is_finite(unit.required()?)?,
        Value::Bool(_) => true,
        Value::Text(_) => x.number("isFinite")?.is_finite(),
        _ => false,
    })
}

/// -1, 0 or 1; zero within the tolerance of comparisons.
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
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => of(x.number(name)?),
        Value::Unit(unit) => sign(unit.required()?, name)?,
        _ => return Err(type_error(name, x)),
    })
}

fn is_prime(meter: &mut Meter, x: &Value) -> Result<Value> {
    let number = match x {
        Value::Fraction(_) => return Err(ops::no_fraction()),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) | Value::Big(_) => {
            x.number("isPrime")?
        }
        _ => return Err(type_error("isPrime", x)),
    };
    if let Value::Big(big) = x
        && big
            .compare(&Decimal::from_number(9e15))
            .is_none_or(std::cmp::Ordering::is_gt)
    {
        return Err(meter.too_many_digits());
    }
    // Trial division reads 2.5 as 2 would be read: only divisors decide, as in mathjs.
    if number <= 3.0 {
        return Ok((number > 1.0).into());
    }
    if number % 2.0 == 0.0 || number % 3.0 == 0.0 {
        return Ok(false.into());
    }
    if number.fract() == 0.0 && number < 1.8e19 {
        meter.step(50)?;
        return Ok(is_prime_u64(number as u64).into());
    }
    let mut divisor = 5.0;
    while divisor * divisor <= number {
        meter.step(1)?;
        if number % divisor == 0.0 || number % (divisor + 2.0) == 0.0 {
            return Ok(false.into());
        }
        divisor += 6.0;
    }
    Ok(true.into())
}

/// Miller-Rabin with the twelve bases that decide every number of 64 bits.
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

fn numeric(meter: &mut Meter, x: &Value, kind: &Value) -> Result<Value> {
    if !matches!(
        x,
        Value::Number(_) | Value::Big(_) | Value::Fraction(_) | Value::Text(_)
    ) {
        return Err(type_error("numeric", x));
    }
    match kind.as_text("numeric")?.as_ref() {
        "number" => super::construct::number(meter, x),
        "BigNumber" => super::construct::bignumber(meter, x),
        "Fraction" => super::construct::fraction(meter, x),
        other => Err(crate::error::Error::new(format!(
            "Cannot convert to type \"{other}\"; use number, BigNumber or Fraction"
        ))),
    }
}
