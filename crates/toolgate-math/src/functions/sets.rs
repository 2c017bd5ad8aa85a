//! Set functions on lists.

use std::cmp::Ordering;

use super::{FunctionRow, many, two};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    two("setUnion", |meter, a, b| on_sets(meter, a, b, union)),
    two("setIntersect", |meter, a, b| {
        on_sets(meter, a, b, intersection)
    }),
    two("setDifference", |meter, a, b| on_sets(meter, a, b, without)),
    two("setSymDifference", |meter, a, b| {
        on_sets(meter, a, b, symmetric_difference)
    }),
    two("setIsSubset", |meter, a, b| {
        let (a, b) = (sorted_cells(meter, a)?, sorted_cells(meter, b)?);
        Ok(without(meter, &a, &b)?.is_empty().into())
    }),
    two("setMultiplicity", |meter, value, a| {
        let mut count = 0.0;
        for cell in sorted_cells(meter, a)? {
            if ops::natural_order(meter, &cell, value)?.is_eq() {
                count += 1.0;
            }
        }
        Ok(Value::Number(count))
    }),
    many("setDistinct", |evaluator, args| {
        let mut values = sorted_cells(&mut evaluator.meter, &args[0])?;
        values = distinct(&mut evaluator.meter, values)?;
        Ok(Value::list(values))
    }),
    many("setSize", |evaluator, args| {
        let values = sorted_cells(&mut evaluator.meter, &args[0])?;
        let unique = matches!(args.get(1), Some(Value::Bool(true)));
        let values = if unique {
            distinct(&mut evaluator.meter, values)?
        } else {
            values
        };
        Ok((values.len() as f64).into())
    }),
    two("setCartesian", cartesian),
    many("setPowerset", powerset),
];

type SetFunction = fn(&mut Meter, &[Value], &[Value]) -> Result<Vec<Value>>;

fn on_sets(meter: &mut Meter, a: &Value, b: &Value, f: SetFunction) -> Result<Value> {
    let (a, b) = (sorted_cells(meter, a)?, sorted_cells(meter, b)?);
    Ok(Value::list(f(meter, &a, &b)?))
}

fn union(meter: &mut Meter, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    let mut all = symmetric_difference(meter, a, b)?;
    all.extend(intersection(meter, a, b)?);
    Ok(all)
}

fn sorted_cells(meter: &mut Meter, value: &Value) -> Result<Vec<Value>> {
    let matrix = value.as_matrix("set")?;
    meter.charge_cells(matrix.data.len())?;
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

// Merges two sorted lists. `keep` chooses values of the first alone, of both, and
// of the second alone.
fn merge(
    meter: &mut Meter,
    a: &[Value],
    b: &[Value],
    keep: (bool, bool, bool),
) -> Result<Vec<Value>> {
    let mut kept = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        meter.charge_steps(1)?;
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

fn intersection(meter: &mut Meter, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    merge(meter, a, b, (false, true, false))
}

fn without(meter: &mut Meter, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    merge(meter, a, b, (true, false, false))
}

fn symmetric_difference(meter: &mut Meter, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    let mut left = without(meter, a, b)?;
    left.extend(without(meter, b, a)?);
    Ok(left)
}

fn cartesian(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    let (a, b) = (sorted_cells(meter, a)?, sorted_cells(meter, b)?);
    meter.charge_cells(2 * a.len() * b.len())?;
    let data: Vec<Value> = a
        .iter()
        .flat_map(|x| b.iter().flat_map(|y| [x.clone(), y.clone()]))
        .collect();
    if data.is_empty() {
        return Ok(Value::list(Vec::new()));
    }
    Ok(Value::matrix(vec![a.len() * b.len(), 2], data))
}

// Subsets have different sizes, which a matrix can't hold, so this returns a list of results.
fn powerset(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let values = sorted_cells(&mut evaluator.meter, &args[0])?;
    if values.is_empty() {
        return Ok(Value::list(Vec::new()));
    }
    // 2^17 subsets exceed every budget, and the shift below must not overflow.
    if values.len() > 16 {
        evaluator.meter.charge_cells(usize::MAX)?;
    }
    let count = 1usize << values.len();
    evaluator.meter.charge_cells(count * (values.len() + 1))?;
    let mut masks: Vec<usize> = (0..count).collect();
    // Smaller sets first, as in mathjs. The sort is stable, so equal sizes keep their order.
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
