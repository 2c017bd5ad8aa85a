//! The operators: which kinds of value they take, and what they make of them.

mod arithmetic;
mod bits;
mod compare;
mod linear;
mod logic;

use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::matrix::{self, Matrix};
use crate::number::complex::{Complex, complex};
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::value::{Value, parse_number, type_error};

pub(crate) use arithmetic::{
    add, divide, dot_divide, dot_multiply, dot_power, magnitude, modulo, multiply, negate,
    no_fraction, plus, power, square_root, subtract,
};
pub(crate) use bits::{
    bit_and, bit_not, bit_or, bit_xor, decided, shift_left, shift_right, shift_right_logical,
};
pub(crate) use compare::{
    compare, equal, floor_big, greater, greater_equal, less, less_equal, natural_order, ordering,
    round_big, same, unequal,
};
pub(crate) use linear::{determinant, identity, inverse, is_zero, matrix_product, transpose};
pub(crate) use logic::{and, not, or, truth, truths, xor};

pub(crate) enum Pair {
    Number(f64, f64),
    Complex(Complex, Complex),
    Big(Decimal, Decimal),
    Fraction(Fraction, Fraction),
}

enum Single {
    Number(f64),
    Complex(Complex),
    Big(Decimal),
    Fraction(Fraction),
}

fn single(function: &str, value: &Value) -> Result<Single> {
    Ok(match value {
        Value::Number(value) => Single::Number(*value),
        Value::Bool(value) => Single::Number(f64::from(u8::from(*value))),
        Value::Text(text) => Single::Number(parse_number(text)?),
        Value::Complex(value) => Single::Complex(*value),
        Value::Big(value) => Single::Big(value.as_ref().clone()),
        Value::Fraction(value) => Single::Fraction(value.as_ref().clone()),
        _ => return Err(type_error(function, value)),
    })
}

/// Brings two numbers to the kind that can hold both.
pub(crate) fn pair(function: &str, a: &Value, b: &Value) -> Result<Pair> {
    Ok(match (single(function, a)?, single(function, b)?) {
        (Single::Number(a), Single::Number(b)) => Pair::Number(a, b),
        (Single::Big(a), Single::Big(b)) => Pair::Big(a, b),
        (Single::Big(a), Single::Number(b)) => Pair::Big(a, implicit_decimal(b)?),
        (Single::Number(a), Single::Big(b)) => Pair::Big(implicit_decimal(a)?, b),
        (Single::Fraction(a), Single::Fraction(b)) => Pair::Fraction(a, b),
        (Single::Fraction(a), Single::Number(b)) => Pair::Fraction(a, implicit_fraction(b)?),
        (Single::Number(a), Single::Fraction(b)) => Pair::Fraction(implicit_fraction(a)?, b),
        (Single::Big(_), Single::Fraction(_)) | (Single::Fraction(_), Single::Big(_)) => {
            return Err(Error::new(
                "Cannot implicitly convert a Fraction to BigNumber or vice versa. \
                 Use function bignumber(x) to convert to BigNumber or fraction(x) to convert to Fraction.",
            ));
        }
        (left, right) => {
            // A truth stands for a number, but never for a complex one.
            if let Some(truth) = [a, b]
                .into_iter()
                .find(|value| matches!(value, Value::Bool(_)))
            {
                return Err(type_error(function, truth));
            }
            Pair::Complex(as_complex(left), as_complex(right))
        }
    })
}

fn as_complex(value: Single) -> Complex {
    match value {
        Single::Number(value) => complex(value, 0.0),
        Single::Complex(value) => value,
        Single::Big(value) => complex(value.to_f64(), 0.0),
        Single::Fraction(value) => complex(value.to_f64(), 0.0),
    }
}

/// A double next to a big number: only if its digits are certain.
pub(crate) fn implicit_decimal(value: f64) -> Result<Decimal> {
    if value.is_finite() && crate::number::real::Digits::of(value).digits.len() > 15 {
        return Err(Error::new(format!(
            "Cannot implicitly convert a number with >15 significant digits to BigNumber (value: {}). \
             Use function bignumber(x) to convert to BigNumber.",
            crate::number::real::to_text(value)
        )));
    }
    Ok(Decimal::from_number(value))
}

/// A double next to a fraction: only if the fraction is the same number.
pub(crate) fn implicit_fraction(value: f64) -> Result<Fraction> {
    let text = || crate::number::real::to_text(value);
    let fraction = Fraction::from_number(value)
        .ok_or_else(|| Error::new(format!("{} cannot be represented as a fraction", text())))?;
    if fraction.to_f64() != value {
        return Err(Error::new(format!(
            "Cannot implicitly convert a number to a Fraction when there will be a loss of precision (value: {}). \
             Use function fraction(x) to convert to Fraction.",
            text()
        )));
    }
    Ok(fraction)
}

pub(crate) fn counted(meter: &mut Meter, value: Fraction) -> Result<Value> {
    meter.big(value.bits())?;
    Ok(Value::fraction(value))
}

pub(crate) fn counted_big(meter: &mut Meter, value: Decimal) -> Result<Value> {
    meter.big(value.bits())?;
    Ok(Value::big(value))
}

pub(crate) type Scalar2 = fn(&mut Meter, &Value, &Value) -> Result<Value>;

/// Applies `f` to scalars, or cell by cell to matrices whose sizes fit: equal, or one where they differ.
pub(crate) fn broadcast(meter: &mut Meter, a: &Value, b: &Value, f: Scalar2) -> Result<Value> {
    match (a, b) {
        (Value::Matrix(a), Value::Matrix(b)) if a.size == b.size => {
            meter.cells(a.data.len())?;
            let data = a
                .data
                .iter()
                .zip(&b.data)
                .map(|(a, b)| {
                    meter.work(a)?;
                    meter.work(b)?;
                    f(meter, a, b)
                })
                .collect::<Result<_>>()?;
            Ok(Value::matrix(Matrix::new(a.size.clone(), data)))
        }
        (Value::Matrix(a), Value::Matrix(b)) => stretched(meter, a, b, f),
        (Value::Matrix(a), b) => Ok(Value::matrix(a.map(meter, |meter, cell| {
            meter.work(b)?;
            f(meter, cell, b)
        })?)),
        (a, Value::Matrix(b)) => Ok(Value::matrix(b.map(meter, |meter, cell| {
            meter.work(a)?;
            f(meter, a, cell)
        })?)),
        (a, b) => f(meter, a, b),
    }
}

fn stretched(meter: &mut Meter, a: &Matrix, b: &Matrix, f: Scalar2) -> Result<Value> {
    let size = matrix::common_size(&a.size, &b.size)?;
    let cells = matrix::cell_count(meter, &size)?;
    let mut data = Vec::with_capacity(cells);
    for at in 0..cells {
        let place = matrix::unravel(at, &size);
        let a = &a.data[matrix::stretched(&place, &a.size)];
        let b = &b.data[matrix::stretched(&place, &b.size)];
        meter.work(a)?;
        meter.work(b)?;
        data.push(f(meter, a, b)?);
    }
    Ok(Value::matrix(Matrix::new(size, data)))
}
