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
        apply_spread(evaluator, args, |budget, values, kind| {
            let variance = variance(budget, values, kind)?;
            ops::square_root(budget, &variance)
        })
    }),
    many("cumsum", cumsum),
    many("corr", corr),
];

pub(super) fn flatten_arguments(budget: &mut BudgetTracker, args: &[Value]) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    for arg in args {
        match arg {
            Value::Matrix(matrix) => {
                budget.charge_cells(matrix.data.len())?;
                values.extend_from_slice(&matrix.data);
            }
            value => values.push(value.clone()),
        }
    }
    Ok(values)
}

pub(super) fn scalar_arguments(
    budget: &mut BudgetTracker,
    args: &[Value],
    name: &str,
) -> Result<Vec<Value>> {
    if args.len() > 1 && args.iter().any(|arg| matches!(arg, Value::Matrix(_))) {
        return fail(format!("Scalar values expected in function {name}"));
    }
    flatten_arguments(budget, args)
}

type LineFunction = fn(&mut BudgetTracker, &[Value]) -> Result<Value>;

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
        return matrix.reduce(&mut evaluator.budget, at, f);
    }
    let values = scalar_arguments(&mut evaluator.budget, args, name)?;
    evaluator.budget.charge_steps(values.len())?;
    f(&mut evaluator.budget, &values)
}

pub(super) fn empty_error(name: &str) -> MathError {
    MathError::new(format!("Cannot calculate {name} of an empty array"))
}

pub(super) fn sum(budget: &mut BudgetTracker, values: &[Value]) -> Result<Value> {
    if values.is_empty() {
        return Ok(Value::Number(0.0));
    }
    fold(budget, values, "sum", ops::add)
}

fn prod(budget: &mut BudgetTracker, values: &[Value]) -> Result<Value> {
    fold(budget, values, "prod", ops::multiply)
}

fn fold(
    budget: &mut BudgetTracker,
    values: &[Value],
    name: &str,
    f: ops::ScalarFunction,
) -> Result<Value> {
    match values {
        [] => Err(empty_error(name)),
        // A single text becomes a number, as it would in an addition.
        [text @ Value::Text(_)] => Ok(text.to_number(name)?.into()),
        [first, rest @ ..] => {
            let combine = |sum: Value, value| f(budget, &sum, value);
            rest.iter().try_fold(first.clone(), combine)
        }
    }
}

pub(super) fn mean(budget: &mut BudgetTracker, values: &[Value]) -> Result<Value> {
    if values.is_empty() {
        return Err(empty_error("mean"));
    }
    let total = sum(budget, values)?;
    ops::divide(budget, &total, &Value::Number(values.len() as f64))
}

fn extremes(
    evaluator: &mut Evaluator<'_>,
    args: &[Value],
    name: &str,
    wanted: Ordering,
) -> Result<Value> {
    let budget = &mut evaluator.budget;
    if let [Value::Matrix(matrix), at] = args
        && !matches!(at, Value::Matrix(_))
    {
        let at = parse_dimension(at, name)?;
        return matrix.reduce(budget, at, |budget, line| {
            last_extreme(budget, line, name, wanted)
        });
    }
    let values = scalar_arguments(budget, args, name)?;
    extreme(budget, &values, name, wanted)
}

// The extreme along a dimension. As in mathjs, a later value replaces an earlier one unless the
// earlier one is strictly more extreme, so comparisons with NaN always pick the later value.
fn last_extreme(
    budget: &mut BudgetTracker,
    values: &[Value],
    name: &str,
    wanted: Ordering,
) -> Result<Value> {
    let [first, rest @ ..] = values else {
        return Err(empty_error(name));
    };
    let mut best = first;
    for value in rest {
        budget.charge_steps(1)?;
        if ops::ordering(name, best, value)? != Some(wanted) {
            best = value;
        }
    }
    Ok(best.clone())
}

fn extreme(
    budget: &mut BudgetTracker,
    values: &[Value],
    name: &str,
    wanted: Ordering,
) -> Result<Value> {
    let [first, rest @ ..] = values else {
        return Err(empty_error(name));
    };
    let mut best = first;
    for value in rest {
        budget.charge_steps(1)?;
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

type SpreadFunction = fn(&mut BudgetTracker, &[Value], &str) -> Result<Value>;

// For `variance` and `std`: a normalization and a dimension may follow the matrix.
fn apply_spread(evaluator: &mut Evaluator<'_>, args: &[Value], f: SpreadFunction) -> Result<Value> {
    let budget = &mut evaluator.budget;
    match args {
        [Value::Matrix(matrix)] => f(budget, &matrix.data, "unbiased"),
        [Value::Matrix(matrix), Value::Text(kind)] => f(budget, &matrix.data, kind),
        [Value::Matrix(matrix), at] => {
            let at = parse_dimension(at, "variance")?;
            matrix.reduce(budget, at, |budget, line| f(budget, line, "unbiased"))
        }
        [Value::Matrix(matrix), at, kind] => {
            let at = parse_dimension(at, "variance")?;
            let kind = kind.as_text("variance")?;
            matrix.reduce(budget, at, |budget, line| f(budget, line, kind))
        }
        args => f(budget, args, "unbiased"),
    }
}

fn variance(budget: &mut BudgetTracker, values: &[Value], kind: &str) -> Result<Value> {
    if values.is_empty() {
        return fail("Cannot calculate variance of an empty array");
    }
    let mean = mean(budget, values)?;
    let mut total = Value::Number(0.0);
    for value in values {
        budget.charge_steps(1)?;
        let distance = ops::subtract(budget, value, &mean)?;
        // For a complex number, the square of its length.
        let square = match distance {
            Value::Complex(d) => Value::Number(d.re * d.re + d.im * d.im),
            d => ops::multiply(budget, &d, &d)?,
        };
        // The sum starts as a plain zero, to which a quantity can't be added.
        total = match (&total, square) {
            (Value::Number(zero), square @ Value::Unit(_)) if *zero == 0.0 => square,
            (total, square) => ops::add(budget, total, &square)?,
        };
    }
    // A single value has no spread, but the product keeps its kind and unit.
    let count = values.len() as f64;
    let divisor = match kind {
        "uncorrected" => count,
        "biased" => count + 1.0,
        "unbiased" if values.len() == 1 => {
            return ops::multiply(budget, &total, &Value::Number(0.0));
        }
        "unbiased" => count - 1.0,
        other => {
            return fail(format!(
                "Unknown normalization \"{other}\". Choose \"unbiased\" (default), \"uncorrected\", or \"biased\"."
            ));
        }
    };
    ops::divide(budget, &total, &Value::Number(divisor))
}

fn running_sums(budget: &mut BudgetTracker, values: &[Value]) -> Result<Vec<Value>> {
    let mut sums: Vec<Value> = Vec::with_capacity(values.len());
    for value in values {
        let next = match sums.last() {
            Some(sum) => ops::add(budget, sum, value)?,
            None => ops::plus(budget, value)?,
        };
        sums.push(next);
    }
    Ok(sums)
}

fn cumsum(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    let (matrix, at) = match args {
        [Value::Matrix(matrix)] => (matrix.clone(), 0),
        [Value::Matrix(matrix), at] => (matrix.clone(), parse_dimension(at, "cumsum")?),
        args => {
            budget.charge_cells(args.len())?;
            return Ok(Value::list(running_sums(budget, args)?));
        }
    };
    let Some(&length) = matrix.size.get(at) else {
        return matrix::out_of_range(at, matrix.size.len());
    };
    budget.charge_cells(matrix.data.len())?;
    let inner: usize = matrix.size[at + 1..].iter().product();
    let mut data = matrix.data.clone();
    for k in inner..data.len() {
        // The first cell of each line stays as it is.
        if !(k / inner.max(1)).is_multiple_of(length) {
            data[k] = ops::add(budget, &data[k - inner], &data[k])?;
        }
    }
    Ok(Value::matrix(matrix.size.clone(), data))
}

fn corr(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    let (a, b) = (args[0].as_matrix("corr")?, args[1].as_matrix("corr")?);
    let (Some(x), Some(y)) = (a.numbers(), b.numbers()) else {
        return Err(type_error("corr", &args[0]));
    };
    if a.size != b.size {
        return fail("Dimension mismatch: the lists of corr must have the same length");
    }
    budget.charge_steps(x.len())?;
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
