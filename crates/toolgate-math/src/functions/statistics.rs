//! Sums, means and the like: of arguments, of a matrix, or along one of its dimensions.

use std::cmp::Ordering;

use super::{Function, many};
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::eval::Run;
use crate::matrix::Matrix;
use crate::ops;
use crate::value::{Value, type_error};

pub(super) const TABLE: &[Function] = &[
    many(
        "sum",
        "a, ...",
        "Sum; with a matrix and a dimension, along it",
        |run, args| along(run, args, "sum", sum),
    ),
    many("prod", "a, ...", "Product", |run, args| match args {
        [Value::Matrix(_), _] => Err(Error::new(
            "The product along a dimension is not supported; use map over the rows",
        )),
        args => along(run, args, "prod", prod),
    }),
    many("mean", "a, ...", "Arithmetic mean", |run, args| {
        along(run, args, "mean", mean)
    }),
    many("min", "a, ...", "Smallest value", |run, args| {
        along(run, args, "min", |m, v| {
            extreme(m, v, "min", Ordering::Less)
        })
    }),
    many("max", "a, ...", "Largest value", |run, args| {
        along(run, args, "max", |m, v| {
            extreme(m, v, "max", Ordering::Greater)
        })
    }),
    many(
        "median",
        "a, ...",
        "Middle value, or the mean of the two in the middle",
        |run, args| {
            let values = scalars(&mut run.meter, args, "median")?;
            median(&mut run.meter, values)
        },
    ),
    many("mode", "a, ...", "List of the most frequent values", mode),
    many(
        "variance",
        "a, ...",
        "Variance; \"unbiased\" (n - 1), \"uncorrected\" (n) or \"biased\" (n + 1)",
        |run, args| spread(run, args, variance),
    ),
    many(
        "std",
        "a, ...",
        "Standard deviation, normalized like variance",
        |run, args| {
            spread(run, args, |meter, values, kind| {
                let variance = variance(meter, values, kind)?;
                ops::square_root(meter, &variance)
            })
        },
    ),
    many(
        "mad",
        "a, ...",
        "Median of the distances from the median",
        mad,
    ),
    many(
        "quantileSeq",
        "a, prob, sorted?, dimension?",
        "Quantile for a probability, a list of them, or N equal parts",
        quantile,
    ),
    many("cumsum", "a, ...", "Running sum", cumsum),
    many("corr", "a, b", "Correlation of two lists", corr),
];

/// All cells of all arguments.
pub(super) fn flat(meter: &mut Meter, args: &[Value]) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    for arg in args {
        match arg {
            Value::Matrix(matrix) => {
                meter.cells(matrix.data.len())?;
                values.extend_from_slice(&matrix.data);
            }
            value => values.push(value.clone()),
        }
    }
    Ok(values)
}

/// The cells of one matrix, or several scalars.
fn scalars(meter: &mut Meter, args: &[Value], name: &str) -> Result<Vec<Value>> {
    if args.len() > 1 && args.iter().any(|arg| matches!(arg, Value::Matrix(_))) {
        return Err(Error::new(format!(
            "Scalar values expected in function {name}"
        )));
    }
    flat(meter, args)
}

type Line = fn(&mut Meter, &[Value]) -> Result<Value>;

/// The dimension of `f(matrix, dimension)`, counted from 0.
fn dimension(value: &Value, name: &str) -> Result<usize> {
    let number = value.number(name)?;
    if number < 1.0 || number.fract() != 0.0 {
        return Err(Error::new(format!("Index out of range ({number} < 1)")));
    }
    Ok(number as usize - 1)
}

fn along(run: &mut Run<'_>, args: &[Value], name: &str, f: Line) -> Result<Value> {
    if let [Value::Matrix(matrix), at] = args
        && !matches!(at, Value::Matrix(_))
    {
        let at = dimension(at, name)?;
        return matrix.reduce(&mut run.meter, at, f);
    }
    let values = scalars(&mut run.meter, args, name)?;
    run.meter.step(values.len())?;
    f(&mut run.meter, &values)
}

fn empty(name: &str) -> Error {
    Error::new(format!("Cannot calculate {name} of an empty array"))
}

pub(super) fn sum(meter: &mut Meter, values: &[Value]) -> Result<Value> {
    let [first, rest @ ..] = values else {
        return Ok(Value::Number(0.0));
    };
    if rest.is_empty() && matches!(first, Value::Text(_)) {
        return Ok(first.number("sum")?.into());
    }
    rest.iter()
        .try_fold(first.clone(), |sum, value| ops::add(meter, &sum, value))
}

fn prod(meter: &mut Meter, values: &[Value]) -> Result<Value> {
    let [first, rest @ ..] = values else {
        return Err(empty("prod"));
    };
    if rest.is_empty() && matches!(first, Value::Text(_)) {
        return Ok(first.number("prod")?.into());
    }
    rest.iter().try_fold(first.clone(), |product, value| {
        ops::multiply(meter, &product, value)
    })
}

pub(super) fn mean(meter: &mut Meter, values: &[Value]) -> Result<Value> {
    if values.is_empty() {
        return Err(empty("mean"));
    }
    let total = sum(meter, values)?;
    ops::divide(meter, &total, &Value::Number(values.len() as f64))
}

fn extreme(meter: &mut Meter, values: &[Value], name: &str, wanted: Ordering) -> Result<Value> {
    let [first, rest @ ..] = values else {
        return Err(empty(name));
    };
    let mut best = first;
    let is_nan = |value: &Value| matches!(value, Value::Number(x) if x.is_nan());
    for value in rest {
        meter.step(1)?;
        if is_nan(best) || is_nan(value) {
            return Ok(f64::NAN.into());
        }
        if exact_order(name, value, best)? == Some(wanted) {
            best = value;
        }
    }
    match best {
        Value::Null | Value::Undefined | Value::Object(_) => Err(type_error(name, best)),
        Value::Text(_) => Ok(best.number(name)?.into()),
        best => Ok(best.clone()),
    }
}

/// The order without the tolerance of comparisons.
fn exact_order(name: &str, a: &Value, b: &Value) -> Result<Option<Ordering>> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Ok(a.partial_cmp(b)),
        (a, b) => ops::ordering(name, a, b),
    }
}

/// A stable merge sort whose order may fail, and may contradict itself.
pub(super) fn sort(
    meter: &mut Meter,
    values: Vec<Value>,
    order: &mut dyn FnMut(&mut Meter, &Value, &Value) -> Result<Ordering>,
) -> Result<Vec<Value>> {
    let mut source = values;
    let mut width = 1;
    while width < source.len() {
        let mut merged = Vec::with_capacity(source.len());
        meter.cells(source.len() / 4)?;
        for start in (0..source.len()).step_by(2 * width) {
            let middle = (start + width).min(source.len());
            let end = (start + 2 * width).min(source.len());
            let (mut left, mut right) = (start, middle);
            while left < middle && right < end {
                meter.step(1)?;
                if order(meter, &source[left], &source[right])?.is_le() {
                    merged.push(source[left].clone());
                    left += 1;
                } else {
                    merged.push(source[right].clone());
                    right += 1;
                }
            }
            merged.extend_from_slice(&source[left..middle]);
            merged.extend_from_slice(&source[right..end]);
        }
        source = merged;
        width *= 2;
    }
    Ok(source)
}

fn sorted(meter: &mut Meter, values: Vec<Value>, name: &'static str) -> Result<Vec<Value>> {
    sort(meter, values, &mut |_, a, b| {
        Ok(ops::ordering(name, a, b)?.unwrap_or(Ordering::Equal))
    })
}

fn median(meter: &mut Meter, values: Vec<Value>) -> Result<Value> {
    if values.is_empty() {
        return Err(empty("median"));
    }
    if values
        .iter()
        .any(|value| matches!(value, Value::Number(x) if x.is_nan()))
    {
        return Ok(f64::NAN.into());
    }
    let values = sorted(meter, values, "median")?;
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        return match &values[middle] {
            value @ (Value::Text(_) | Value::Bool(_)) => Ok(value.number("median")?.into()),
            Value::Fraction(_) => Err(ops::no_fraction()),
            Value::Null | Value::Undefined | Value::Object(_) => {
                Err(type_error("median", &values[middle]))
            }
            value => Ok(value.clone()),
        };
    }
    if let Value::Fraction(_) = values[middle] {
        return Err(ops::no_fraction());
    }
    mean(meter, &values[middle - 1..=middle])
}

fn mode(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let values = scalars(&mut run.meter, args, "mode")?;
    if values.is_empty() {
        return Err(empty("mode"));
    }
    let mut counts: Vec<(Value, usize)> = Vec::new();
    for value in values {
        run.meter.step(counts.len() + 1)?;
        let mut known = None;
        for (at, (seen, _)) in counts.iter().enumerate() {
            let equal = match (&value, seen) {
                (Value::Number(a), Value::Number(b)) => a == b,
                (a, b) => a.type_name() == b.type_name() && ops::same(&mut run.meter, a, b)?,
            };
            if equal {
                known = Some(at);
                break;
            }
        }
        match known {
            Some(at) => counts[at].1 += 1,
            None => counts.push((value, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    Ok(Value::list(
        counts
            .into_iter()
            .filter(|(_, count)| *count == most)
            .map(|(value, _)| value)
            .collect(),
    ))
}

type Spread = fn(&mut Meter, &[Value], &str) -> Result<Value>;

/// `variance` and `std`: a normalization and a dimension may follow the matrix.
fn spread(run: &mut Run<'_>, args: &[Value], f: Spread) -> Result<Value> {
    let meter = &mut run.meter;
    match args {
        [Value::Matrix(matrix)] => f(meter, &matrix.data, "unbiased"),
        [Value::Matrix(matrix), Value::Text(kind)] => f(meter, &matrix.data, kind),
        [Value::Matrix(matrix), at] => {
            let at = dimension(at, "variance")?;
            matrix.reduce(meter, at, |meter, line| f(meter, line, "unbiased"))
        }
        [Value::Matrix(matrix), at, kind] => {
            let at = dimension(at, "variance")?;
            let kind = kind.as_text("variance")?;
            matrix.reduce(meter, at, |meter, line| f(meter, line, kind))
        }
        args => f(meter, args, "unbiased"),
    }
}

fn variance(meter: &mut Meter, values: &[Value], kind: &str) -> Result<Value> {
    if values.is_empty() {
        return Err(Error::new("Cannot calculate variance of an empty array"));
    }
    let mean = mean(meter, values)?;
    let mut total = Value::Number(0.0);
    for value in values {
        meter.step(1)?;
        let distance = ops::subtract(meter, value, &mean)?;
        // Of a complex number, the square of its length.
        let square = match distance {
            Value::Complex(d) => Value::Number(d.re * d.re + d.im * d.im),
            d => ops::multiply(meter, &d, &d)?,
        };
        total = match (&total, square) {
            (Value::Number(zero), square @ Value::Unit(_)) if *zero == 0.0 => square,
            (total, square) => ops::add(meter, total, &square)?,
        };
    }
    let count = values.len() as f64;
    let divisor = match kind {
        "uncorrected" => count,
        "biased" => count + 1.0,
        "unbiased" if values.len() == 1 => {
            return ops::multiply(meter, &total, &Value::Number(0.0));
        }
        "unbiased" => count - 1.0,
        other => {
            return Err(Error::new(format!(
                "Unknown normalization \"{other}\". Choose \"unbiased\" (default), \"uncorrected\", or \"biased\"."
            )));
        }
    };
    ops::divide(meter, &total, &Value::Number(divisor))
}

fn mad(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut run.meter;
    let values = scalars(meter, args, "mad")?;
    if values.is_empty() {
        return Err(empty("mad"));
    }
    let middle = median(meter, values.clone())?;
    let distances = values
        .iter()
        .map(|value| {
            let distance = ops::subtract(meter, value, &middle)?;
            super::arithmetic::abs(meter, &distance)
        })
        .collect::<Result<_>>()?;
    median(meter, distances)
}

fn quantile(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut run.meter;
    let (matrix, probability) = (args[0].as_matrix("quantileSeq")?.clone(), &args[1]);
    let is_sorted = matches!(args.get(2), Some(Value::Bool(true)));
    if let Some(at) = args
        .get(3)
        .or_else(|| args.get(2).filter(|arg| matches!(arg, Value::Number(_))))
    {
        let at = dimension(at, "quantileSeq")?;
        return matrix.reduce(meter, at, |meter, line| {
            quantiles(meter, line, probability, is_sorted)
        });
    }
    quantiles(meter, &matrix.data, probability, is_sorted)
}

fn quantiles(
    meter: &mut Meter,
    values: &[Value],
    probability: &Value,
    is_sorted: bool,
) -> Result<Value> {
    if values.is_empty() {
        return Err(Error::new("Cannot calculate quantile of an empty sequence"));
    }
    let values = if is_sorted {
        values.to_vec()
    } else {
        sorted(meter, values.to_vec(), "quantileSeq")?
    };
    match probability {
        Value::Matrix(list) => {
            let parts = list.map(meter, |meter, p| {
                quantile_at(meter, &values, p.number("quantileSeq")?)
            })?;
            Ok(Value::matrix(parts))
        }
        p => {
            let number = p.number("quantileSeq")?;
            if number <= 1.0 {
                return quantile_at(meter, &values, number);
            }
            if number.fract() != 0.0 {
                return Err(Error::new("N must be a positive integer"));
            }
            meter.cells(number.min(1e9) as usize)?;
            let parts = (1..=number as usize)
                .map(|k| quantile_at(meter, &values, k as f64 / (number + 1.0)));
            Ok(Value::list(parts.collect::<Result<_>>()?))
        }
    }
}

fn quantile_at(meter: &mut Meter, values: &[Value], p: f64) -> Result<Value> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::new("Probability must be between 0 and 1, inclusive"));
    }
    let index = p * (values.len() - 1) as f64;
    let (low, rest) = (index.floor() as usize, index.fract());
    if rest == 0.0 {
        return Ok(values[low].clone());
    }
    let left = ops::multiply(meter, &values[low], &Value::Number(1.0 - rest))?;
    let right = ops::multiply(meter, &values[low + 1], &Value::Number(rest))?;
    ops::add(meter, &left, &right)
}

fn running(meter: &mut Meter, values: &[Value]) -> Result<Vec<Value>> {
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

fn cumsum(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut run.meter;
    let (matrix, at) = match args {
        [Value::Matrix(matrix)] => (matrix.clone(), 0),
        [Value::Matrix(matrix), at] => (matrix.clone(), dimension(at, "cumsum")?),
        args => {
            meter.cells(args.len())?;
            return Ok(Value::list(running(meter, args)?));
        }
    };
    let Some(&length) = matrix.size.get(at) else {
        return Err(Error::new(format!(
            "Index out of range ({} > {})",
            at + 1,
            matrix.size.len()
        )));
    };
    meter.cells(matrix.data.len())?;
    let inner: usize = matrix.size[at + 1..].iter().product();
    let mut data = matrix.data.clone();
    for k in inner..data.len() {
        // The first cell of each line stays.
        if !(k / inner.max(1)).is_multiple_of(length) {
            data[k] = ops::add(meter, &data[k - inner], &data[k])?;
        }
    }
    Ok(Value::matrix(Matrix::new(matrix.size.clone(), data)))
}

fn corr(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut run.meter;
    let (a, b) = (args[0].as_matrix("corr")?, args[1].as_matrix("corr")?);
    let (Some(x), Some(y)) = (a.numbers(), b.numbers()) else {
        return Err(type_error("corr", &args[0]));
    };
    if a.size != b.size {
        return Err(Error::new(
            "Dimension mismatch: the lists of corr must have the same length",
        ));
    }
    meter.step(x.len())?;
    let lines: Vec<(&[f64], &[f64])> = match a.size.as_slice() {
        [_] => vec![(&x, &y)],
        &[_, columns] => x.chunks(columns).zip(y.chunks(columns)).collect(),
        _ => return Err(Error::new("corr takes lists or matrices of lists")),
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
