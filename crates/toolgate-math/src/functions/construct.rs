//! Conversions between kinds of values.

use super::{FunctionRow, each, many};
use crate::number::{Complex, Decimal, Fraction, complex};
use crate::ops::{counted_big, counted_fraction};
use crate::prelude::*;
use crate::value::{read_based, read_number};

pub(super) const TABLE: &[FunctionRow] = &[
    many("number", numbers),
    each("bignumber", bignumber),
    many("fraction", fractions),
    many("complex", complexes),
    each("boolean", boolean),
];

fn numbers(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    match args {
        [] => Ok(Value::Number(0.0)),
        [Value::Matrix(matrix)] => matrix.map(&mut evaluator.budget, number),
        [value] => number(&mut evaluator.budget, value),
        [Value::Unit(quantity), target, ..] => {
            let target = super::units::target_unit(evaluator, target)?;
            let count = quantity.count_in(&mut evaluator.budget, &target)?;
            number(&mut evaluator.budget, &count)
        }
        [value, ..] => Err(type_error("number", value)),
    }
}

pub(super) fn number(_: &mut BudgetTracker, value: &Value) -> Result<Value> {
    match value {
        Value::Text(text) if text.as_ref() == "NaN" => Ok(f64::NAN.into()),
        Value::Text(text) => match read_based(text).or_else(|| read_number(text)) {
            Some(number) => Ok(number.into()),
            None => fail(format!("String \"{text}\" is not a valid number")),
        },
        Value::Null => Ok(0.0.into()),
        Value::Unit(_) => Ok(value.clone()),
        value => Ok(value.to_number("number")?.into()),
    }
}

pub(super) fn bignumber(budget: &mut BudgetTracker, value: &Value) -> Result<Value> {
    let decimal = match value {
        Value::Number(value) => Decimal::from_number(*value),
        Value::Bool(value) => Decimal::integer(u64::from(*value)),
        Value::Null => Decimal::integer(0),
        Value::Big(_) | Value::Unit(_) => return Ok(value.clone()),
        Value::Fraction(value) => {
            Decimal::from_integer(&value.num).div(&Decimal::from_integer(&value.den))
        }
        Value::Text(text) => {
            check_length(budget, text)?;
            let not_a_number =
                || format!("\"{text}\" is not a number, so it can't become a BigNumber");
            Decimal::parse(text).ok_or_else(|| MathError::new(not_a_number()))?
        }
        other => return Err(type_error("bignumber", other)),
    };
    counted_big(budget, decimal)
}

// Before reading: the time to convert digits grows with the square of their number.
fn check_length(budget: &BudgetTracker, text: &str) -> Result<()> {
    if text.len() > budget.max_digits() {
        return Err(budget.too_many_digits());
    }
    Ok(())
}

pub(super) fn fraction(budget: &mut BudgetTracker, value: &Value) -> Result<Value> {
    let fraction = match value {
        Value::Number(value) => ops::nearest_fraction(*value)?,
        Value::Bool(value) => Fraction::integer(u8::from(*value).into()),
        Value::Null => Fraction::integer(0.into()),
        Value::Fraction(_) => return Ok(value.clone()),
        Value::Big(value) => exact_fraction(budget, value)?,
        Value::Text(text) => {
            check_length(budget, text)?;
            let not_a_fraction =
                || format!("\"{text}\" is not a fraction: write \"1/3\", \"0.25\" or \"0.(3)\"");
            Fraction::parse(text).ok_or_else(|| MathError::new(not_a_fraction()))?
        }
        Value::Unit(quantity) => {
            let value = fraction(budget, quantity.require_value()?)?;
            return Ok(Value::unit(quantity.with_value(Some(value))));
        }
        other => return Err(type_error("fraction", other)),
    };
    counted_fraction(budget, fraction)
}

pub(super) fn exact_fraction(budget: &mut BudgetTracker, value: &Decimal) -> Result<Fraction> {
    let no_fraction = || MathError::new("Only a finite number can be a fraction");
    if !value.is_finite() {
        return Err(no_fraction());
    }
    if value.magnitude().unsigned_abs() > budget.max_digits() as u64 {
        return Err(budget.too_many_digits());
    }
    if let Some(whole) = value.to_integer(budget.max_digits()) {
        return Ok(Fraction::integer(whole));
    }
    // Shift the decimal until it is whole.
    let places = usize::try_from(value.decimals()).unwrap_or(usize::MAX);
    if places > budget.max_digits() {
        return Err(budget.too_many_digits());
    }
    let shift = num_bigint::BigInt::from(crate::number::decimal::ten_to(places).into_owned());
    let digits = value
        .shifted(places)
        .to_integer(2 * budget.max_digits())
        .ok_or_else(no_fraction)?;
    Fraction::new(digits, shift).ok_or_else(no_fraction)
}

fn fractions(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    match args {
        [Value::Matrix(matrix)] => matrix.map(budget, fraction),
        [Value::Object(object)] => {
            let part = |key: &str| {
                object
                    .get(key)
                    .cloned()
                    .ok_or_else(|| MathError::new("A fraction needs the keys n and d"))
            };
            ratio(budget, &part("n")?, &part("d")?)
        }
        [value] => fraction(budget, value),
        [above, below, ..] => ratio(budget, above, below),
        [] => fail("Too few arguments in function fraction"),
    }
}

fn ratio(budget: &mut BudgetTracker, above: &Value, below: &Value) -> Result<Value> {
    if let (Value::Number(a), Value::Number(b)) = (above, below)
        && (a.fract() != 0.0 || b.fract() != 0.0)
    {
        return fail("Parameters must be integer");
    }
    let (above, below) = (fraction(budget, above)?, fraction(budget, below)?);
    ops::divide(budget, &above, &below)
}

fn complexes(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    match args {
        [Value::Matrix(matrix)] => matrix.map(budget, |_, value| to_complex(value)),
        [value] => to_complex(value),
        [re, im, ..] => Ok(complex(re.to_number("complex")?, im.to_number("complex")?).into()),
        [] => Ok(complex(0.0, 0.0).into()),
    }
}

fn to_complex(value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Complex(_) => value.clone(),
        Value::Null => complex(0.0, 0.0).into(),
        Value::Text(text) => parse_complex(text)
            .ok_or_else(|| {
                MathError::new(format!(
                    "\"{text}\" is not a complex number: write \"2 + 3i\""
                ))
            })?
            .into(),
        Value::Object(object) => {
            let part = |key: &str| {
                object
                    .get(key)
                    .map(|value| value.to_number("complex"))
                    .transpose()
            };
            match (part("re")?, part("im")?, part("r")?, part("phi")?) {
                (Some(re), Some(im), ..) => complex(re, im).into(),
                (_, _, Some(r), Some(phi)) => {
                    complex(r * libm::cos(phi), r * libm::sin(phi)).into()
                }
                _ => {
                    return fail("A complex number needs the keys re and im, or r and phi");
                }
            }
        }
        value => complex(value.to_number("complex")?, 0.0).into(),
    })
}

// Parses a complex number such as `2 + 3i`, `-i` or `4`.
fn parse_complex(text: &str) -> Option<Complex> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let Some(body) = text.strip_suffix('i') else {
        return Some(complex(text.parse().ok()?, 0.0));
    };
    // The last sign that doesn't belong to an exponent separates the parts.
    let bytes = body.as_bytes();
    let split = (0..bytes.len()).rev().find(|&at| {
        matches!(bytes[at], b'+' | b'-') && (at == 0 || !matches!(bytes[at - 1], b'e' | b'E'))
    });
    let (re, im) = body.split_at(split.unwrap_or(0));
    let im = match im {
        "" | "+" => 1.0,
        "-" => -1.0,
        im => im.parse().ok()?,
    };
    let re = if re.is_empty() { 0.0 } else { re.parse().ok()? };
    Some(complex(re, im))
}

fn boolean(_: &mut BudgetTracker, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Bool(_) => value.clone(),
        Value::Null => false.into(),
        Value::Number(x) => (*x != 0.0 && !x.is_nan()).into(),
        Value::Big(x) => (!x.is_zero() && !x.is_nan()).into(),
        Value::Text(text) => match text.to_lowercase().as_str() {
            "true" => true.into(),
            "false" => false.into(),
            _ => match read_number(text) {
                Some(number) if !text.is_empty() => (number != 0.0).into(),
                _ => {
                    return fail(format!("Cannot convert \"{text}\" to a boolean"));
                }
            },
        },
        Value::Fraction(_) => return Err(ops::no_fraction()),
        other => return Err(type_error("boolean", other)),
    })
}
