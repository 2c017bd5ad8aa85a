//! The operators, and which kinds of value they accept.

mod arithmetic;
mod bits;
mod compare;
mod linear;
mod logic;

use crate::number::{Complex, Decimal, Fraction, complex, real};
use crate::prelude::*;
use crate::value::parse_number;

pub(crate) use arithmetic::{
    add, divide, dot_divide, dot_multiply, dot_power, magnitude, modulo, multiply, negate,
    no_fraction, plus, power, square_root, subtract,
};
pub(crate) use bits::{
    bit_and, bit_not, bit_or, bit_xor, shift_left, shift_right, shift_right_logical, short_circuit,
};
pub(crate) use compare::{
    compare, deep_equal, equal, floor_big, greater, greater_equal, less, less_equal, natural_order,
    ordering, round_big, unequal,
};
pub(crate) use linear::{determinant, identity, inverse, is_zero, matrix_product, transpose};
pub(crate) use logic::{and, not, or, truth, truths, xor};

pub(crate) enum NumberPair {
    Number(f64, f64),
    Complex(Complex, Complex),
    Big(Decimal, Decimal),
    Fraction(Fraction, Fraction),
}

enum SingleNumber {
    Number(f64),
    Complex(Complex),
    Big(Decimal),
    Fraction(Fraction),
}

fn to_single_number(function: &str, value: &Value) -> Result<SingleNumber> {
    Ok(match value {
        Value::Number(value) => SingleNumber::Number(*value),
        Value::Bool(value) => SingleNumber::Number(f64::from(u8::from(*value))),
        Value::Text(text) => SingleNumber::Number(parse_number(text)?),
        Value::Complex(value) => SingleNumber::Complex(*value),
        Value::Big(value) => SingleNumber::Big(value.as_ref().clone()),
        Value::Fraction(value) => SingleNumber::Fraction(value.as_ref().clone()),
        _ => return Err(type_error(function, value)),
    })
}

pub(crate) fn number_pair(function: &str, a: &Value, b: &Value) -> Result<NumberPair> {
    Ok(
        match (
            to_single_number(function, a)?,
            to_single_number(function, b)?,
        ) {
            (SingleNumber::Number(a), SingleNumber::Number(b)) => NumberPair::Number(a, b),
            (SingleNumber::Big(a), SingleNumber::Big(b)) => NumberPair::Big(a, b),
            (SingleNumber::Big(a), SingleNumber::Number(b)) => {
                NumberPair::Big(a, implicit_decimal(b)?)
            }
            (SingleNumber::Number(a), SingleNumber::Big(b)) => {
                NumberPair::Big(implicit_decimal(a)?, b)
            }
            (SingleNumber::Fraction(a), SingleNumber::Fraction(b)) => NumberPair::Fraction(a, b),
            (SingleNumber::Fraction(a), SingleNumber::Number(b)) => {
                NumberPair::Fraction(a, implicit_fraction(b)?)
            }
            (SingleNumber::Number(a), SingleNumber::Fraction(b)) => {
                NumberPair::Fraction(implicit_fraction(a)?, b)
            }
            (SingleNumber::Big(_), SingleNumber::Fraction(_))
            | (SingleNumber::Fraction(_), SingleNumber::Big(_)) => {
                return fail(
                    "Cannot implicitly convert a Fraction to BigNumber or vice versa. \
                 Use function bignumber(x) to convert to BigNumber or fraction(x) to convert to Fraction.",
                );
            }
            (left, right) => {
                // A boolean converts to a number, but not to a complex one.
                if let Some(truth) = [a, b]
                    .into_iter()
                    .find(|value| matches!(value, Value::Bool(_)))
                {
                    return Err(type_error(function, truth));
                }
                NumberPair::Complex(as_complex(left), as_complex(right))
            }
        },
    )
}

fn as_complex(value: SingleNumber) -> Complex {
    match value {
        SingleNumber::Number(value) => complex(value, 0.0),
        SingleNumber::Complex(value) => value,
        SingleNumber::Big(value) => complex(value.to_f64(), 0.0),
        SingleNumber::Fraction(value) => complex(value.to_f64(), 0.0),
    }
}

// Converts only doubles with at most 15 digits, because further digits may be rounding errors.
pub(crate) fn implicit_decimal(value: f64) -> Result<Decimal> {
    if value.is_finite() && real::DecimalDigits::from_number(value).digits.len() > 15 {
        return fail(format!(
            "Cannot implicitly convert a number with >15 significant digits to BigNumber (value: {}). \
             Use function bignumber(x) to convert to BigNumber.",
            real::to_text(value)
        ));
    }
    Ok(Decimal::from_number(value))
}

// Converts a double only if the fraction has exactly its value.
pub(crate) fn implicit_fraction(value: f64) -> Result<Fraction> {
    let fraction = nearest_fraction(value)?;
    if fraction.to_f64() != value {
        return fail(format!(
            "Cannot implicitly convert a number to a Fraction when there will be a loss of precision (value: {}). \
             Use function fraction(x) to convert to Fraction.",
            real::to_text(value)
        ));
    }
    Ok(fraction)
}

pub(crate) fn nearest_fraction(value: f64) -> Result<Fraction> {
    let text = || real::to_text(value);
    Fraction::from_number(value)
        .ok_or_else(|| MathError::new(format!("{} cannot be represented as a fraction", text())))
}

pub(crate) fn counted_fraction(budget: &mut BudgetTracker, value: Fraction) -> Result<Value> {
    budget.charge_big(value.bits())?;
    Ok(Value::fraction(value))
}

pub(crate) fn counted_big(budget: &mut BudgetTracker, value: Decimal) -> Result<Value> {
    budget.charge_big(value.bits())?;
    Ok(Value::big(value))
}

pub(crate) type ScalarFunction = fn(&mut BudgetTracker, &Value, &Value) -> Result<Value>;

/// Applies `f` to two scalars, or cell by cell. A dimension of size one is repeated to
/// match the other matrix.
pub(crate) fn broadcast(
    budget: &mut BudgetTracker,
    a: &Value,
    b: &Value,
    f: ScalarFunction,
) -> Result<Value> {
    match (a, b) {
        (Value::Matrix(a), Value::Matrix(b)) if a.size == b.size => {
            budget.charge_cells(a.data.len())?;
            let data = a
                .data
                .iter()
                .zip(&b.data)
                .map(|(a, b)| {
                    budget.charge_cell_work(a)?;
                    budget.charge_cell_work(b)?;
                    f(budget, a, b)
                })
                .collect::<Result<_>>()?;
            Ok(Value::matrix(a.size.clone(), data))
        }
        (Value::Matrix(a), Value::Matrix(b)) => broadcast_stretched(budget, a, b, f),
        (Value::Matrix(a), b) => a.map(budget, |budget, cell| {
            budget.charge_cell_work(b)?;
            f(budget, cell, b)
        }),
        (a, Value::Matrix(b)) => b.map(budget, |budget, cell| {
            budget.charge_cell_work(a)?;
            f(budget, a, cell)
        }),
        (a, b) => f(budget, a, b),
    }
}

fn broadcast_stretched(
    budget: &mut BudgetTracker,
    a: &Matrix,
    b: &Matrix,
    f: ScalarFunction,
) -> Result<Value> {
    let size = matrix::common_size(&a.size, &b.size)?;
    let cells = matrix::cell_count(budget, &size)?;
    let mut data = Vec::with_capacity(cells);
    for at in 0..cells {
        let place = matrix::unravel(at, &size);
        let a = &a.data[matrix::broadcast_index(&place, &a.size)];
        let b = &b.data[matrix::broadcast_index(&place, &b.size)];
        budget.charge_cell_work(a)?;
        budget.charge_cell_work(b)?;
        data.push(f(budget, a, b)?);
    }
    Ok(Value::matrix(size, data))
}
