//! Lists as sets.

use std::cmp::Ordering;

use super::Body::{Many, Two};
use super::Row;
use crate::budget::Meter;
use crate::error::Result;
use crate::eval::Run;
use crate::matrix::Matrix;
use crate::ops;
use crate::value::Value;

pub(super) const TABLE: &[Row] = &[
    (
        "setUnion",
        Two(|meter, a, b| {
            let (a, b) = (cells(meter, a)?, cells(meter, b)?);
            let mut all = symmetric(meter, &a, &b)?;
            all.extend(common(meter, &a, &b)?);
            Ok(Value::list(all))
        }),
    ),
    (
        "setIntersect",
        Two(|meter, a, b| {
            let (a, b) = (cells(meter, a)?, cells(meter, b)?);
            Ok(Value::list(common(meter, &a, &b)?))
        }),
    ),
    (
        "setDifference",
        Two(|meter, a, b| {
            let (a, b) = (cells(meter, a)?, cells(meter, b)?);
            Ok(Value::list(without(meter, &a, &b)?))
        }),
    ),
    (
        "setSymDifference",
        Two(|meter, a, b| {
            let (a, b) = (cells(meter, a)?, cells(meter, b)?);
            Ok(Value::list(symmetric(meter, &a, &b)?))
        }),
    ),
    (
        "setIsSubset",
        Two(|meter, a, b| {
            let (a, b) = (cells(meter, a)?, cells(meter, b)?);
            Ok(without(meter, &a, &b)?.is_empty().into())
        }),
    ),
    (
        "setMultiplicity",
        Two(|meter, value, a| {
            let mut count = 0.0;
            for cell in cells(meter, a)? {
                if ops::natural_order(meter, &cell, value)?.is_eq() {
                    count += 1.0;
                }
            }
            Ok(Value::Number(count))
        }),
    ),
    (
        "setDistinct",
        Many(|run, args| {
            let mut values = cells(&mut run.meter, &args[0])?;
            values = distinct(&mut run.meter, values)?;
            Ok(Value::list(values))
        }),
    ),
    (
        "setSize",
        Many(|run, args| {
            let values = cells(&mut run.meter, &args[0])?;
            let unique = matches!(args.get(1), Some(Value::Bool(true)));
            let values = if unique {
                distinct(&mut run.meter, values)?
            } else {
                values
            };
            Ok((values.len() as f64).into())
        }),
    ),
    ("setCartesian", Two(cartesian)),
    ("setPowerset", Many(powerset)),
];

fn cells(meter: &mut Meter, value: &Value) -> Result<Vec<Value>> {
    let matrix = value.as_matrix("set")?;
    meter.cells(matrix.data.len())?;
    sorted(meter, matrix.data.clone())
}

fn sorted(meter: &mut Meter, values: Vec<Value>) -> Result<Vec<Value>> {
    super::ranks::sort(meter, values, &mut ops::natural_order)
}

fn distinct(meter: &mut Meter, values: Vec<Value>) -> Result<Vec<Value>> {
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        match kept.last() {
            Some(last) if ops::natural_order(meter, last, &value)?.is_eq() => {}
            _ => kept.push(value),
        }
    }
    Ok(kept)
}

/// Walks two sorted lists and keeps what `keep` chooses: values of the first alone, of both, of the second alone.
fn merge(
    meter: &mut Meter,
    a: &[Value],
    b: &[Value],
    keep: (bool, bool, bool),
) -> Result<Vec<Value>> {
    let mut kept = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        meter.step(1)?;
        let order = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => ops::natural_order(meter, x, y)?,
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        match order {
            Ordering::Less => {
                kept.extend(keep.0.then(|| a[i].clone()));
                i += 1;
            }
            Ordering::Equal => {
                kept.extend(keep.1.then(|| a[i].clone()));
                i += 1;
                j += 1;
            }
            Ordering::Greater => {
                kept.extend(keep.2.then(|| b[j].clone()));
                j += 1;
            }
        }
    }
    Ok(kept)
}

fn common(meter: &mut Meter, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    merge(meter, a, b, (false, true, false))
}

fn without(meter: &mut Meter, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    merge(meter, a, b, (true, false, false))
}

fn symmetric(meter: &mut Meter, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    let mut left = without(meter, a, b)?;
    left.extend(without(meter, b, a)?);
    Ok(left)
}

fn cartesian(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    let (a, b) = (cells(meter, a)?, cells(meter, b)?);
    meter.cells(2 * a.len() * b.len())?;
    let data: Vec<Value> = a
        .iter()
        .flat_map(|x| b.iter().flat_map(|y| [x.clone(), y.clone()]))
        .collect();
    if data.is_empty() {
        return Ok(Value::list(Vec::new()));
    }
    Ok(Value::matrix(Matrix::new(vec![a.len() * b.len(), 2], data)))
}

/// Subsets have different sizes, which a matrix cannot hold: a list of lists as several results.
fn powerset(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let values = cells(&mut run.meter, &args[0])?;
    if values.is_empty() {
        return Ok(Value::list(Vec::new()));
    }
    if values.len() > 16 {
        run.meter.cells(usize::MAX)?;
    }
    let count = 1usize << values.len();
    run.meter.cells(count * (values.len() + 1))?;
    let mut masks: Vec<usize> = (0..count).collect();
    masks.sort_by_key(|mask| mask.count_ones());
    let sets = masks.into_iter().map(|mask| {
        Value::list(
            (0..values.len())
                .filter(|bit| mask >> bit & 1 == 1)
                .map(|bit| values[bit].clone())
                .collect(),
        )
    });
    Ok(Value::Results(std::sync::Arc::new(sets.collect())))
}
