//! Rounding, with digits and with units.

use super::Body::Many;
use super::Row;
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::eval::Run;
use crate::number::complex::complex;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::number::real::{self, Digits};
use crate::ops;
use crate::value::{Value, type_error};

pub(super) const TABLE: &[Row] = &[
    ("round", Many(|run, args| rounded(run, args, &ROUND))),
    ("floor", Many(|run, args| rounded(run, args, &FLOOR))),
    ("ceil", Many(|run, args| rounded(run, args, &CEIL))),
    ("fix", Many(|run, args| rounded(run, args, &FIX))),
];

/// One way of rounding, for each kind of number.
struct Way {
    name: &'static str,
    number: fn(f64, i32) -> f64,
    big: fn(&Decimal) -> Decimal,
    fraction: fn(&Fraction) -> Fraction,
}

const ROUND: Way = Way {
    name: "round",
    number: real::round,
    big: |x| ops::round_big(x, 0),
    fraction: Fraction::round,
};
const FLOOR: Way = Way {
    name: "floor",
    number: |x, n| shifted(x, n, real::floor),
    big: ops::floor_big,
    fraction: Fraction::floor,
};
const CEIL: Way = Way {
    name: "ceil",
    number: |x, n| shifted(x, n, real::ceil),
    big: |x| ops::floor_big(&x.neg()).neg(),
    fraction: Fraction::ceil,
};
const FIX: Way = Way {
    name: "fix",
    number: |x, n| {
        shifted(x, n, |x| {
            if x > 0.0 {
                real::floor(x)
            } else {
                real::ceil(x)
            }
        })
    },
    big: Decimal::truncate,
    fraction: |x| {
        if x.num.sign() == num_bigint::Sign::Minus {
            x.ceil()
        } else {
            x.floor()
        }
    },
};

/// `f` of x times 10^n, back again, without the rounding errors of multiplying by a power of ten.
fn shifted(x: f64, n: i32, f: fn(f64) -> f64) -> f64 {
    if n == 0 || !x.is_finite() {
        return f(x);
    }
    let mut digits = Digits::of(x);
    digits.exponent += i64::from(n);
    let whole = f(digits.value());
    if whole == 0.0 {
        return whole.copysign(x);
    }
    let mut result = Digits::of(whole);
    result.exponent -= i64::from(n);
    result.value()
}

fn rounded(run: &mut Run<'_>, args: &[Value], way: &Way) -> Result<Value> {
    match args {
        [Value::Matrix(x)] if way.name == "round" => {
            Ok(Value::matrix(x.map(
                &mut run.meter,
                |meter, x| match x {
                    // A zero stays as it is, sign included.
                    Value::Number(0.0) => Ok(x.clone()),
                    x => round_all(meter, way, x, 0),
                },
            )?))
        }
        [x] => round_all(&mut run.meter, way, x, 0),
        [Value::Unit(_), Value::Unit(_)] => with_unit(&mut run.meter, way, &args[0], 0, &args[1]),
        [Value::Matrix(x), unit @ Value::Unit(_)] => {
            Ok(Value::matrix(x.map(&mut run.meter, |meter, x| {
                with_unit(meter, way, x, 0, unit)
            })?))
        }
        [Value::Unit(_), _] => Err(Error::new(format!(
            "Too few arguments in function {}: to round a quantity, say in which unit, as in {0}(x, 2, cm)",
            way.name
        ))),
        [x, Value::Matrix(places)] => {
            let cells = places.map(&mut run.meter, |meter, n| {
                let n = decimals(way, n)?;
                round_all(meter, way, x, n)
            })?;
            Ok(Value::matrix(cells))
        }
        [x, n] => {
            let n = decimals(way, n)?;
            round_all(&mut run.meter, way, x, n)
        }
        [Value::Matrix(x), n, unit] => {
            let n = decimals(way, n)?;
            Ok(Value::matrix(x.map(&mut run.meter, |meter, x| {
                with_unit(meter, way, x, n, unit)
            })?))
        }
        [x, n, unit, ..] => {
            let n = decimals(way, n)?;
            with_unit(&mut run.meter, way, x, n, unit)
        }
        [] => Err(Error::new(format!(
            "Too few arguments in function {}",
            way.name
        ))),
    }
}

fn decimals(way: &Way, value: &Value) -> Result<i32> {
    let number = value.number(way.name)?;
    if number.fract() != 0.0 {
        return Err(Error::new(format!(
            "Number of decimals in function {} must be an integer",
            way.name
        )));
    }
    if !(0.0..=15.0).contains(&number) && !matches!(value, Value::Big(_)) && way.name == "round" {
        return Err(Error::new(
            "Number of decimals in function round must be in the range of 0-15",
        ));
    }
    Ok(number.clamp(-400.0, 400.0) as i32)
}

fn with_unit(meter: &mut Meter, way: &Way, x: &Value, n: i32, unit: &Value) -> Result<Value> {
    let (Value::Unit(x), Value::Unit(unit)) = (x, unit) else {
        return Err(type_error(way.name, x));
    };
    let count = x.count_in(meter, unit)?;
    let count = round_all(meter, way, &count, n)?;
    ops::multiply(meter, &count, &Value::unit(unit.as_ref().clone()))
}

/// One part of a complex number: by a plain power of ten and without tolerance, halves towards positive.
fn part(way: &Way, x: f64, n: i32) -> f64 {
    let power = libm::exp10(f64::from(n));
    let scaled = x * power;
    let whole = match way.name {
        "round" => (scaled + 0.5).floor(),
        "floor" => scaled.floor(),
        "ceil" => scaled.ceil(),
        _ => scaled.trunc(),
    };
    whole / power
}

fn round_all(meter: &mut Meter, way: &Way, x: &Value, n: i32) -> Result<Value> {
    Ok(match x {
        Value::Number(x) => {
            // With decimals, the number passes through its digits.
            meter.step(if n == 0 { 0 } else { 8 })?;
            Value::Number((way.number)(*x, n))
        }
        Value::Complex(x) => complex(part(way, x.re, n), part(way, x.im, n)).into(),
        Value::Big(x) if way.name == "round" => Value::big(ops::round_big(x, n)),
        Value::Big(x) if n == 0 => Value::big((way.big)(x)),
        Value::Big(x) => {
            let scale = Decimal::exact(false, 1u8.into(), i64::from(n));
            Value::big((way.big)(&x.mul(&scale)).div(&scale))
        }
        Value::Fraction(x) if n == 0 => Value::fraction((way.fraction)(x)),
        Value::Fraction(x) => {
            let scale = ops::implicit_fraction(libm::exp10(f64::from(n.abs())))?;
            let scaled = if n > 0 {
                x.mul(&scale)
            } else {
                x.div(&scale).unwrap_or_else(|| x.as_ref().clone())
            };
            let whole = (way.fraction)(&scaled);
            ops::counted(
                meter,
                if n > 0 {
                    whole.div(&scale).unwrap_or(whole)
                } else {
                    whole.mul(&scale)
                },
            )?
        }
        Value::Bool(_) | Value::Text(_) => Value::Number((way.number)(x.number(way.name)?, n)),
        Value::Matrix(x) => Value::matrix(x.map(meter, |meter, x| round_all(meter, way, x, n))?),
        Value::Unit(_) => {
            return Err(Error::new(format!(
                "Too few arguments in function {0}: to round a quantity, say in which unit, as in {0}(x, 2, cm)",
                way.name
            )));
        }
        _ => return Err(type_error(way.name, x)),
    })
}
