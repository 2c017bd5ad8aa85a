//! Sums, means and deviations: of arguments, of a matrix, or along one dimension.

use std::cmp::Ordering;

use super::{FunctionRow, many};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    many("sum", |evaluator, args| {
        apply_along(evaluator, args, "sum", sum)
    }),
    many("prod", |evaluator, args| match args {
        [Value::Matrix(_), _] => {
            fail("The product along a dimension is not supported; use map over the rows")
        }
        args => apply_along(evaluator, args, "prod", prod),
    }),
    many("mean", |evaluator, args| {
        apply_along(evaluator, args, "mean", mean)
    }),
    many("min", |evaluator, args| {
        extremes(evaluator, args, "min", Ordering::Less)
    }),
    many("max", |evaluator, args| {
        extremes(evaluator, args, "max", Ordering::Greater)
    }),
    many("variance", |evaluator, args| {
        apply_spread(evaluator, args, variance)
    }),
    many("std", |evaluator, args| {
        apply_spread(evaluator, args, |meter, values, kind| {
            let variance = variance(meter, values, kind)?;
            ops::square_root(meter, &variance)
        })
    }),
    many("cumsum", cumsum),
    many("corr", corr),
];

pub(super) fn flatten_arguments(meter: &mut Meter, args: &[Value]) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    for arg in args {
        match arg {
            Value::Matrix(matrix) => {
                meter.charge_cells(matrix.data.len())?;
                values.extend_from_slice(&matrix.data);
            }
            value => values.push(value.clone()),
        }
    }
    Ok(values)
}

pub(super) fn scalar_arguments(
    meter: &mut Meter,
    args: &[Value],
    name: &str,
) -> Result<Vec<Value>> {
    if args.len() > 1 && args.iter().any(|arg| matches!(arg, Value::Matrix(_))) {
        return fail(format!("Scalar values expected in function {name}"));
    }
    flatten_arguments(meter, args)
}

type LineFunction = fn(&mut Meter, &[Value]) -> Result<Value>;

/// Reads the dimension argument and returns it counted from 0.
pub(super) fn parse_dimension(value: &Value, name: &str) -> Result<usize> {
    let number = value.to_number(name)?;
    if number < 1.0 || number.fract() != 0.0 {
        return fail(format!("Index out of range ({number} < 1)"));
    }
    Ok(number as usize - 1)
}

fn apply_along(
    evaluator: &mut Evaluator<'_>,
    args: &[Value],
    name: &str,
    f: LineFunction,
) -> Result<Value> {
    if let [Value::Matrix(matrix), at] = args
        && !matches!(at, Value::Matrix(_))
    {
        let at = parse_dimension(at, name)?;
        return matrix.reduce(&mut evaluator.meter, at, f);
    }
    let values = scalar_arguments(&mut evaluator.meter, args, name)?;
    evaluator.meter.charge_steps(values.len())?;
    f(&mut evaluator.meter, &values)
}

pub(super) fn empty_error(name: &str) -> MathError {
    MathError::new(format!("Cannot calculate {name} of an empty array"))
}

pub(super) fn sum(meter: &mut Meter, values: &[Value]) -> Result<Value> {
    if values.is_empty() {
        return Ok(Value::Number(0.0));
    }
    fold(meter, values, "sum", ops::add)
}

fn prod(meter: &mut Meter, values: &[Value]) -> Result<Value> {
    fold(meter, values, "prod", ops::multiply)
}

fn fold(meter: &mut Meter, values: &[Value], name: &str, f: ops::ScalarFunction) -> Result<Value> {
    match values {
        [] => Err(empty_error(name)),
        // A single text becomes a number, as it would in an addition.
        [text @ Value::Text(_)] => Ok(text.to_number(name)?.into()),
        [first, rest @ ..] => {
            let combine = |sum: Value, value| f(meter, &sum, value);
            rest.iter().try_fold(first.clone(), combine)
        }
    }
}

pub(super) fn mean(meter: &mut Meter, values: &[Value]) -> Result<Value> {
    if values.is_empty() {
        return Err(empty_error("mean"));
    }
    let total = sum(meter, values)?;
    ops::divide(meter, &total, &Value::Number(values.len() as f64))
}

fn extremes(
    evaluator: &mut Evaluator<'_>,
    args: &[Value],
    name: &str,
    wanted: Ordering,
) -> Result<Value> {
    let meter = &mut evaluator.meter;
    if let [Value::Matrix(matrix), at] = args
        && !matches!(at, Value::Matrix(_))
    {
        let at = parse_dimension(at, name)?;
        return matrix.reduce(meter, at, |meter, line| {
            last_extreme(meter, line, name, wanted)
        });
    }
    let values = scalar_arguments(meter, args, name)?;
    extreme(meter, &values, name, wanted)
}

// The extreme along a dimension. As in mathjs, a later value replaces an earlier one unless the
// earlier one is strictly more extreme, so comparisons with NaN always pick the later value.
fn last_extreme(
    meter: &mut Meter,
    values: &[Value],
    name: &str,
    wanted: Ordering,
) -> Result<Value> {
    let [first, rest @ ..] = values else {
        return Err(empty_error(name));
    };
    let mut best = first;
    for value in rest {
        meter.charge_steps(1)?;
        if ops::ordering(name, best, value)? != Some(wanted) {
            best = value;
        }
    }
    Ok(best.clone())
}

fn extreme(meter: &mut Meter, values: &[Value], name: &str, wanted: Ordering) -> Result<Value> {
    let [first, rest @ ..] = values else {
        return Err(empty_error(name));
    };
    let mut best = first;
    for value in rest {
        meter.charge_steps(1)?;
        if let Some(nan) = [best, value].into_iter().find(|value| is_nan(value)) {
            return Ok(nan.clone());
        }
        if exact_order(name, value, best)? == Some(wanted) {
            best = value;
        }
    }
    match best {
        Value::Null | Value::Undefined | Value::Object(_) => Err(type_error(name, best)),
        Value::Text(_) => Ok(best.to_number(name)?.into()),
        best => Ok(best.clone()),
    }
}

pub(super) fn is_nan(value: &Value) -> bool {
    match value {
        Value::Number(value) => value.is_nan(),
        Value::Big(value) => value.is_nan(),
        _ => false,
    }
}

fn exact_order(name: &str, a: &Value, b: &Value) -> Result<Option<Ordering>> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Ok(a.partial_cmp(b)),
        (a, b) => ops::ordering(name, a, b),
    }
}

type SpreadFunction = fn(&mut Meter, &[Value], &str) -> Result<Value>;

// For `variance` and `std`: a normalization and a dimension may follow the matrix.
fn apply_spread(evaluator: &mut Evaluator<'_>, args: &[Value], f: SpreadFunction) -> Result<Value> {
    let meter = &mut evaluator.meter;
    match args {
        [Value::Matrix(matrix)] => f(meter, &matrix.data, "unbiased"),
        [Value::Matrix(matrix), Value::Text(kind)] => f(meter, &matrix.data, kind),
        [Value::Matrix(matrix), at] => {
            let at = parse_dimension(at, "variance")?;
            matrix.reduce(meter, at, |meter, line| f(meter, line, "unbiased"))
        }
        [Value::Matrix(matrix), at, kind] => {
            let at = parse_dimension(at, "variance")?;
            let kind = kind.as_text("variance")?;
            matrix.reduce(meter, at, |meter, line| f(meter, line, kind))
        }
        args => f(meter, args, "unbiased"),
    }
}

fn variance(meter: &mut Meter, values: &[Value], kind: &str) -> Result<Value> {
    if values.is_empty() {
        return fail("Cannot calculate variance of an empty array");
    }
    let mean = mean(meter, values)?;
    let mut total = Value::Number(0.0);
    for value in values {
        meter.charge_steps(1)?;
        let distance = ops::subtract(meter, value, &mean)?;
        // For a complex number, the square of its length.
        let square = match distance {
            Value::Complex(d) => Value::Number(d.re * d.re + d.im * d.im),
            d => ops::multiply(meter, &d, &d)?,
        };
        // The sum starts as a plain zero, to which a quantity can't be added.
        total = match (&total, square) {
            (Value::Number(zero), square @ Value::Unit(_)) if *zero == 0.0 => square,
            (total, square) => ops::add(meter, total, &square)?,
        };
    }
    // A single value has no spread, but the product keeps its kind and unit.
    let count = values.len() as f64;
    let divisor = match kind {
        "uncorrected" => count,
        "biased" => count + 1.0,
        "unbiased" if values.len() == 1 => {
            return ops::multiply(meter, &total, &Value::Number(0.0));
        }
        "unbiased" => count - 1.0,
        other => {
            return fail(format!(
                "Unknown normalization \"{other}\". Choose \"unbiased\" (default), \"uncorrected\", or \"biased\"."
            ));
        }
    };
    ops::divide(meter, &total, &Value::Number(divisor))
}

fn running_sums(meter: &mut Meter, values: &[Value]) -> Result<Vec<Value>> {
    let mut sums: Vec<Value> = Vec::with_capacity(values.len());
    for value in values {
        let next = match sums.last() {
            Some(sum) => ops::add(meter, sum, value)?,
            None => ops::plus(meter, value)?,
        };
        sums.push(next);
    }
    Ok(sums)
}

fn cumsum(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut evaluator.meter;
    let (matrix, at) = match args {
        [Value::Matrix(matrix)] => (matrix.clone(), 0),
        [Value::Matrix(matrix), at] => (matrix.clone(), parse_dimension(at, "cumsum")?),
        args => {
            meter.charge_cells(args.len())?;
            return Ok(Value::list(running_sums(meter, args)?));
        }
    };
    let Some(&length) = matrix.size.get(at) else {
        return matrix::out_of_range(at, matrix.size.len());
    };
    meter.charge_cells(matrix.data.len())?;
    let inner: usize = matrix.size[at + 1..].iter().product();
    let mut data = matrix.data.clone();
    for k in inner..data.len() {
        // The first cell of each line stays as it is.
        if !(k / inner.max(1)).is_multiple_of(length) {
            data[k] = ops::add(meter, &data[k - inner], &data[k])?;
        }
    }
    Ok(Value::matrix(matrix.size.clone(), data))
}

fn corr(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut evaluator.meter;
    let (a, b) = (args[0].as_matrix("corr")?, args[1].as_matrix("corr")?);
    let (Some(x), Some(y)) = (a.numbers(), b.numbers()) else {
        return Err(type_error("corr", &args[0]));
    };
    if a.size != b.size {
        return fail("Dimension mismatch: the lists of corr must have the same length");
    }
    meter.charge_steps(x.len())?;
    let lines: Vec<(&[f64], &[f64])> = match a.size.as_slice() {
        [_] => vec![(&x, &y)],
        &[_, columns] => x.chunks(columns).zip(y.chunks(columns)).collect(),
        _ => return fail("corr takes lists or matrices of lists"),
    };
    let one = |(x, y): (&[f64], &[f64])| {
        let n = x.len() as f64;
        let sum = |v: &[f64]| v.iter().sum::<f64>();
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (sx, sy) = (sum(x), sum(y));
        let above = n * product(x, y) - sx * sy;
        let below = ((n * product(x, x) - sx * sx) * (n * product(y, y) - sy * sy)).sqrt();
        Value::Number(above / below)
    };
    let mut results: Vec<Value> = lines.into_iter().map(one).collect();
    if a.size.len() == 1 {
        Ok(results.remove(0))
    } else {
        Ok(Value::list(results))
    }
}
