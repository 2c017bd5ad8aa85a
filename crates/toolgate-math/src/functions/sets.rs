//! Set functions on lists.

use std::cmp::Ordering;

use super::{FunctionRow, many, two};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    two("setUnion", |budget, a, b| on_sets(budget, a, b, union)),
    two("setIntersect", |budget, a, b| {
        on_sets(budget, a, b, intersection)
    }),
    two("setDifference", |budget, a, b| {
        on_sets(budget, a, b, without)
    }),
    two("setSymDifference", |budget, a, b| {
        on_sets(budget, a, b, symmetric_difference)
    }),
    two("setIsSubset", |budget, a, b| {
        let (a, b) = (sorted_cells(budget, a)?, sorted_cells(budget, b)?);
        Ok(without(budget, &a, &b)?.is_empty().into())
    }),
    two("setMultiplicity", |budget, value, a| {
        let mut count = 0.0;
        for cell in sorted_cells(budget, a)? {
            if ops::natural_order(budget, &cell, value)?.is_eq() {
                count += 1.0;
            }
        }
        Ok(Value::Number(count))
    }),
    many("setDistinct", |evaluator, args| {
        let mut values = sorted_cells(&mut evaluator.budget, &args[0])?;
        values = distinct(&mut evaluator.budget, values)?;
        Ok(Value::list(values))
    }),
    many("setSize", |evaluator, args| {
        let values = sorted_cells(&mut evaluator.budget, &args[0])?;
        let unique = matches!(args.get(1), Some(Value::Bool(true)));
        let values = if unique {
            distinct(&mut evaluator.budget, values)?
        } else {
            values
        };
        Ok((values.len() as f64).into())
    }),
    two("setCartesian", cartesian),
    many("setPowerset", powerset),
];

type SetFunction = fn(&mut BudgetTracker, &[Value], &[Value]) -> Result<Vec<Value>>;

fn on_sets(budget: &mut BudgetTracker, a: &Value, b: &Value, f: SetFunction) -> Result<Value> {
    let (a, b) = (sorted_cells(budget, a)?, sorted_cells(budget, b)?);
    Ok(Value::list(f(budget, &a, &b)?))
}

fn union(budget: &mut BudgetTracker, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    let mut all = symmetric_difference(budget, a, b)?;
    all.extend(intersection(budget, a, b)?);
    Ok(all)
}

fn sorted_cells(budget: &mut BudgetTracker, value: &Value) -> Result<Vec<Value>> {
    let matrix = value.as_matrix("set")?;
    budget.charge_cells(matrix.data.len())?;
    sorted(budget, matrix.data.clone())
}

fn sorted(budget: &mut BudgetTracker, values: Vec<Value>) -> Result<Vec<Value>> {
    super::ranks::sort(budget, values, &mut ops::natural_order)
}

fn distinct(budget: &mut BudgetTracker, values: Vec<Value>) -> Result<Vec<Value>> {
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        match kept.last() {
            Some(last) if ops::natural_order(budget, last, &value)?.is_eq() => {}
            _ => kept.push(value),
        }
    }
    Ok(kept)
}

// Merges two sorted lists. `keep` chooses values of the first alone, of both, and
// of the second alone.
fn merge(
    budget: &mut BudgetTracker,
    a: &[Value],
    b: &[Value],
    keep: (bool, bool, bool),
) -> Result<Vec<Value>> {
    let mut kept = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        budget.charge_steps(1)?;
        let order = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => ops::natural_order(budget, x, y)?,
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

fn intersection(budget: &mut BudgetTracker, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    merge(budget, a, b, (false, true, false))
}

fn without(budget: &mut BudgetTracker, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    merge(budget, a, b, (true, false, false))
}

fn symmetric_difference(
    budget: &mut BudgetTracker,
    a: &[Value],
    b: &[Value],
) -> Result<Vec<Value>> {
    let mut left = without(budget, a, b)?;
    left.extend(without(budget, b, a)?);
    Ok(left)
}

fn cartesian(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    let (a, b) = (sorted_cells(budget, a)?, sorted_cells(budget, b)?);
    budget.charge_cells(2 * a.len() * b.len())?;
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
    let values = sorted_cells(&mut evaluator.budget, &args[0])?;
    if values.is_empty() {
        return Ok(Value::list(Vec::new()));
    }
    // 2^17 subsets exceed every budget, and the shift below must not overflow.
    if values.len() > 16 {
        evaluator.budget.charge_cells(usize::MAX)?;
    }
    let count = 1usize << values.len();
    evaluator.budget.charge_cells(count * (values.len() + 1))?;
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
