//! Rounding functions, with digits and units.

use super::{FunctionRow, many};
use crate::number::real::DecimalDigits;
use crate::number::{Decimal, Fraction, complex, real};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    many("round", |evaluator, args| {
        round_arguments(evaluator, args, &ROUND)
    }),
    many("floor", |evaluator, args| {
        round_arguments(evaluator, args, &FLOOR)
    }),
    many("ceil", |evaluator, args| {
        round_arguments(evaluator, args, &CEIL)
    }),
    many("fix", |evaluator, args| {
        round_arguments(evaluator, args, &FIX)
    }),
];

struct RoundingMode {
    name: &'static str,
    number: fn(f64, i32) -> f64,
    big: fn(&Decimal) -> Decimal,
    fraction: fn(&Fraction) -> Fraction,
}

const ROUND: RoundingMode = RoundingMode {
    name: "round",
    number: real::round,
    big: |x| ops::round_big(x, 0),
    fraction: Fraction::round,
};
const FLOOR: RoundingMode = RoundingMode {
    name: "floor",
    number: |x, n| scaled_by_power_of_ten(x, n, real::floor),
    big: ops::floor_big,
    fraction: Fraction::floor,
};
const CEIL: RoundingMode = RoundingMode {
    name: "ceil",
    number: |x, n| scaled_by_power_of_ten(x, n, real::ceil),
    big: |x| ops::floor_big(&x.neg()).neg(),
    fraction: Fraction::ceil,
};
const FIX: RoundingMode = RoundingMode {
    name: "fix",
    number: |x, n| {
        scaled_by_power_of_ten(x, n, |x| {
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

// Shifts the decimal exponent in text, because multiplying by a power of ten
// would add rounding errors.
fn scaled_by_power_of_ten(x: f64, n: i32, f: fn(f64) -> f64) -> f64 {
    if n == 0 || !x.is_finite() {
        return f(x);
    }
    let mut digits = DecimalDigits::from_number(x);
    digits.exponent += i64::from(n);
    let whole = f(digits.value());
    if whole == 0.0 {
        return whole.copysign(x);
    }
    let mut result = DecimalDigits::from_number(whole);
    result.exponent -= i64::from(n);
    result.value()
}

fn round_arguments(
    evaluator: &mut Evaluator<'_>,
    args: &[Value],
    mode: &RoundingMode,
) -> Result<Value> {
    match args {
        [Value::Matrix(x)] if mode.name == "round" => {
            x.map(&mut evaluator.budget, |budget, x| match x {
                // A zero keeps its sign.
                Value::Number(0.0) => Ok(x.clone()),
                x => round_all(budget, mode, x, 0),
            })
        }
        [x] => round_all(&mut evaluator.budget, mode, x, 0),
        [Value::Unit(_), Value::Unit(_)] => {
            round_in_unit(&mut evaluator.budget, mode, &args[0], 0, &args[1])
        }
        [Value::Matrix(x), unit @ Value::Unit(_)] => x.map(&mut evaluator.budget, |budget, x| {
            round_in_unit(budget, mode, x, 0, unit)
        }),
        [x, Value::Matrix(places)] => places.map(&mut evaluator.budget, |budget, n| {
            let n = parse_places(mode, n)?;
            round_all(budget, mode, x, n)
        }),
        [x, n] => {
            let n = parse_places(mode, n)?;
            round_all(&mut evaluator.budget, mode, x, n)
        }
        [Value::Matrix(x), n, unit] => {
            let n = parse_places(mode, n)?;
            x.map(&mut evaluator.budget, |budget, x| {
                round_in_unit(budget, mode, x, n, unit)
            })
        }
        [x, n, unit, ..] => {
            let n = parse_places(mode, n)?;
            round_in_unit(&mut evaluator.budget, mode, x, n, unit)
        }
        [] => fail(format!("Too few arguments in function {}", mode.name)),
    }
}

fn parse_places(mode: &RoundingMode, value: &Value) -> Result<i32> {
    let number = value.to_number(mode.name)?;
    if number.fract() != 0.0 {
        return fail(format!(
            "Number of decimals in function {} must be an integer",
            mode.name
        ));
    }
    if !(0.0..=15.0).contains(&number) && !matches!(value, Value::Big(_)) && mode.name == "round" {
        return fail("Number of decimals in function round must be in the range of 0-15");
    }
    // A double has no digits beyond 10^±324, so more places change nothing.
    Ok(number.clamp(-400.0, 400.0) as i32)
}

fn round_in_unit(
    budget: &mut BudgetTracker,
    mode: &RoundingMode,
    x: &Value,
    n: i32,
    unit: &Value,
) -> Result<Value> {
    let (Value::Unit(x), Value::Unit(target)) = (x, unit) else {
        return Err(type_error(mode.name, x));
    };
    let count = x.count_in(budget, target)?;
    let count = round_all(budget, mode, &count, n)?;
    ops::multiply(budget, &count, unit)
}

// Rounds one part of a complex number: with a plain power of ten, without tolerance, and halves
// towards positive infinity.
fn round_part(mode: &RoundingMode, x: f64, n: i32) -> f64 {
    // mathjs rounds complex numbers by other rules than real ones.
    let power = libm::exp10(f64::from(n));
    let scaled = x * power;
    let whole = match mode.name {
        "round" => (scaled + 0.5).floor(),
        "floor" => scaled.floor(),
        "ceil" => scaled.ceil(),
        _ => scaled.trunc(),
    };
    whole / power
}

fn round_all(budget: &mut BudgetTracker, mode: &RoundingMode, x: &Value, n: i32) -> Result<Value> {
    Ok(match x {
        Value::Number(x) => {
            // With decimals, the number is converted to its digits.
            budget.charge_steps(if n == 0 { 0 } else { 8 })?;
            Value::Number((mode.number)(*x, n))
        }
        Value::Complex(x) => complex(round_part(mode, x.re, n), round_part(mode, x.im, n)).into(),
        Value::Big(x) if mode.name == "round" => Value::big(ops::round_big(x, n)),
        Value::Big(x) if n == 0 => Value::big((mode.big)(x)),
        Value::Big(x) => {
            let scale = Decimal::exact(false, 1u8.into(), i64::from(n));
            Value::big((mode.big)(&x.mul(&scale)).div(&scale))
        }
        Value::Fraction(x) if n == 0 => Value::fraction((mode.fraction)(x)),
        Value::Fraction(x) => {
            let power = ops::implicit_fraction(libm::exp10(f64::from(n.abs())))?;
            let inverse = Fraction::integer(1.into()).div(&power);
            let inverse = inverse.unwrap_or_else(|| power.clone());
            let (up, down) = if n > 0 {
                (power, inverse)
            } else {
                (inverse, power)
            };
            ops::counted_fraction(budget, (mode.fraction)(&x.mul(&up)).mul(&down))?
        }
        Value::Bool(_) | Value::Text(_) => Value::Number((mode.number)(x.to_number(mode.name)?, n)),
        Value::Matrix(x) => x.map(budget, |budget, x| round_all(budget, mode, x, n))?,
        Value::Unit(_) => {
            return fail(format!(
                "Too few arguments in function {0}: to round a quantity, say in which unit, as in {0}(x, 2, cm)",
                mode.name
            ));
        }
        _ => return Err(type_error(mode.name, x)),
    })
}
