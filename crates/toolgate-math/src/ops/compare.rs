//! Comparisons. Numbers are compared with a tolerance for rounding errors, texts only by the
//! functions made for them.

use std::cmp::Ordering;

use super::{NumberPair, broadcast, number_pair};
use crate::number::Decimal;
use crate::number::real::nearly_equal;
use crate::prelude::*;
use crate::unit::Unit;

/// Compares two scalars; `None` if one is NaN.
pub(crate) fn ordering(function: &str, a: &Value, b: &Value) -> Result<Option<Ordering>> {
    if let (Value::Unit(a), Value::Unit(b)) = (a, b) {
        return comparable_values(a, b).and_then(|(a, b)| ordering(function, a, b));
    }
    Ok(match number_pair(function, a, b)? {
        NumberPair::Number(a, b) => number_order(a, b),
        NumberPair::Complex(..) => {
            return fail("No ordering relation is defined for complex numbers");
        }
        NumberPair::Big(a, b) if nearly_equal_big(&a, &b) => Some(Ordering::Equal),
        NumberPair::Big(a, b) => a.compare(&b),
        NumberPair::Fraction(a, b) => Some(a.compare(&b)),
    })
}

fn number_order(a: f64, b: f64) -> Option<Ordering> {
    if nearly_equal(a, b) {
        Some(Ordering::Equal)
    } else {
        a.partial_cmp(&b)
    }
}

fn comparable_values<'a>(a: &'a Unit, b: &'a Unit) -> Result<(&'a Value, &'a Value)> {
    if !a.is_compatible(b) {
        return fail("Cannot compare units with different base");
    }
    Ok((a.require_value()?, b.require_value()?))
}

fn nearly_equal_big(a: &Decimal, b: &Decimal) -> bool {
    if !a.is_finite() || !b.is_finite() {
        return a == b && !a.is_nan();
    }
    let larger = if a.abs().compare(&b.abs()).is_some_and(Ordering::is_gt) {
        a.abs()
    } else {
        b.abs()
    };
    // The tolerances of doubles, which mathjs uses for big numbers too.
    let relative = larger.mul(&Decimal::exact(false, 1u8.into(), -12));
    let absolute = Decimal::exact(false, 1u8.into(), -15);
    let difference = a.sub(b).abs();
    let within = |limit: &Decimal| difference.compare(limit).is_some_and(Ordering::is_le);
    within(&relative) || within(&absolute)
}

/// The nearest integer below a big number, or the nearest one if only
/// rounding errors separate them.
pub(crate) fn floor_big(x: &Decimal) -> Decimal {
    let (below, nearest) = (x.floor(), x.round(0));
    if below != nearest && nearly_equal_big(x, &nearest) && !nearly_equal_big(x, &below) {
        nearest
    } else {
        below
    }
}

/// Rounds half away from zero to `places` decimals, after removing rounding errors.
pub(crate) fn round_big(x: &Decimal, places: i32) -> Decimal {
    const SURE: i32 = 12;
    if places < SURE {
        let near = x.round(i64::from(SURE));
        if nearly_equal_big(x, &near) {
            return near.round(i64::from(places));
        }
    }
    x.round(i64::from(places))
}

fn equal_scalars(_: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    Ok(is_equal(a, b)?.into())
}

fn is_equal(a: &Value, b: &Value) -> Result<bool> {
    match (a, b) {
        (Value::Null, Value::Null) | (Value::Undefined, Value::Undefined) => return Ok(true),
        (Value::Null | Value::Undefined, _) | (_, Value::Null | Value::Undefined) => {
            return Ok(false);
        }
        (Value::Unit(a), Value::Unit(b)) => {
            return comparable_values(a, b).and_then(|(a, b)| is_equal(a, b));
        }
        _ => {}
    }
    Ok(match number_pair("equal", a, b)? {
        NumberPair::Number(a, b) => nearly_equal(a, b),
        NumberPair::Complex(a, b) => nearly_equal(a.re, b.re) && nearly_equal(a.im, b.im),
        NumberPair::Big(a, b) => nearly_equal_big(&a, &b),
        NumberPair::Fraction(a, b) => a == b,
    })
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident, $scalar:ident, $function:literal, $test:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
            if let (Value::Number(a), Value::Number(b)) = (a, b) {
                let test: fn(Ordering) -> bool = $test;
                return Ok(number_order(*a, *b).is_some_and(test).into());
            }
            broadcast(budget, a, b, $scalar)
        }

        fn $scalar(_: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
            let test: fn(Ordering) -> bool = $test;
            Ok(ordering($function, a, b)?.is_some_and(test).into())
        }
    )*};
}

comparisons! {
    less, less_scalars, "smaller", Ordering::is_lt;
    greater, greater_scalars, "larger", Ordering::is_gt;
    less_equal, less_equal_scalars, "smallerEq", Ordering::is_le;
    greater_equal, greater_equal_scalars, "largerEq", Ordering::is_ge;
}

pub(crate) fn equal(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    broadcast(budget, a, b, equal_scalars)
}

pub(crate) fn unequal(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    broadcast(budget, a, b, |_, a, b| Ok((!is_equal(a, b)?).into()))
}

/// Returns -1, 0 or 1; also -1 if one of two doubles is NaN.
pub(crate) fn compare(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    broadcast(budget, a, b, compare_scalars)
}

fn compare_scalars(_: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    let order = ordering("compare", a, b)?.map(|order| f64::from(order as i8));
    Ok(match number_pair("compare", a, b) {
        Ok(NumberPair::Big(..)) => Value::big(Decimal::from_number(order.unwrap_or(f64::NAN))),
        Ok(NumberPair::Fraction(..)) => {
            super::implicit_fraction(order.unwrap_or(f64::NAN)).map(Value::fraction)?
        }
        _ => Value::Number(order.unwrap_or(-1.0)),
    })
}

/// Orders values of any type: first by type, and texts by the numbers in them ("a2" before "a10").
pub(crate) fn natural_order(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Ordering> {
    budget.charge_steps(1)?;
    let real =
        |value: &Value| matches!(value, Value::Number(_) | Value::Big(_) | Value::Fraction(_));
    if real(a) && real(b) {
        // Types that can't be mixed are compared as doubles.
        return Ok(match ordering("compareNatural", a, b) {
            Ok(order) => order.unwrap_or(Ordering::Less),
            Err(_) => {
                let (a, b) = (
                    a.to_number("compareNatural")?,
                    b.to_number("compareNatural")?,
                );
                a.partial_cmp(&b).unwrap_or(Ordering::Equal)
            }
        });
    }
    if a.type_name() != b.type_name() {
        return Ok(a
            .type_name()
            .to_lowercase()
            .cmp(&b.type_name().to_lowercase()));
    }
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Ok(compare_texts_naturally(a, b)),
        (Value::Complex(a), Value::Complex(b)) => {
            let key = |x: f64, y: f64| x.partial_cmp(&y).unwrap_or(Ordering::Equal);
            Ok(key(a.re, b.re).then(key(a.im, b.im)))
        }
        (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
        (Value::Unit(x), Value::Unit(y)) if x.is_compatible(y) => {
            Ok(ordering("compareNatural", a, b)?.unwrap_or(Ordering::Equal))
        }
        (Value::Matrix(a), Value::Matrix(b)) => {
            for (a, b) in a.data.iter().zip(&b.data) {
                let order = natural_order(budget, a, b)?;
                if order.is_ne() {
                    return Ok(order);
                }
            }
            Ok(a.data.len().cmp(&b.data.len()))
        }
        (Value::Null, _) | (Value::Undefined, _) => Ok(Ordering::Equal),
        _ => Err(crate::value::type_error("compareNatural", a)),
    }
}

fn compare_texts_naturally(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (x, y) = (leading_chunk(a), leading_chunk(b));
        if x.is_empty() || y.is_empty() {
            return a.len().cmp(&b.len());
        }
        let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let order = if number(x) && number(y) {
            let trimmed = (x.trim_start_matches('0'), y.trim_start_matches('0'));
            trimmed
                .0
                .len()
                .cmp(&trimmed.1.len())
                .then(trimmed.0.cmp(trimmed.1))
        } else {
            x.cmp(y)
        };
        if order.is_ne() {
            return order;
        }
        a = &a[x.len()..];
        b = &b[y.len()..];
    }
}

fn leading_chunk(text: &str) -> &str {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text
        .find(|c: char| c.is_ascii_digit() != digits)
        .unwrap_or(text.len());
    &text[..end]
}

pub(crate) fn deep_equal(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<bool> {
    budget.charge_steps(1)?;
    match (a, b) {
        (Value::Matrix(a), Value::Matrix(b)) => {
            if a.size != b.size {
                return Ok(false);
            }
            for (a, b) in a.data.iter().zip(&b.data) {
                if !deep_equal(budget, a, b)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Text(a), Value::Text(b)) => Ok(a == b),
        (Value::Matrix(_), _) | (_, Value::Matrix(_)) => Ok(false),
        _ => is_equal(a, b),
    }
}
