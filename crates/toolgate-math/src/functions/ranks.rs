//! Order statistics (medians, modes, quantiles), and the sort they use.

use std::cmp::Ordering;

use super::statistics::{empty_error, is_nan, mean, parse_dimension, scalar_arguments};
use super::{FunctionRow, many};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    many("median", |evaluator, args| {
        let values = scalar_arguments(&mut evaluator.budget, args, "median")?;
        median(&mut evaluator.budget, values)
    }),
    many("mode", mode),
    many("mad", mad),
    many("quantileSeq", quantile),
];

// Not the standard sort: the comparison may fail, and a user's callback may contradict itself.
pub(super) fn sort(
    budget: &mut BudgetTracker,
    values: Vec<Value>,
    order: &mut dyn FnMut(&mut BudgetTracker, &Value, &Value) -> Result<Ordering>,
) -> Result<Vec<Value>> {
    let mut source = values;
    let mut width = 1;
    while width < source.len() {
        let mut merged = Vec::with_capacity(source.len());
        budget.charge_cells(source.len() / 4)?;
        for start in (0..source.len()).step_by(2 * width) {
            let middle = (start + width).min(source.len());
            let end = (start + 2 * width).min(source.len());
            let (mut left, mut right) = (start, middle);
            while left < middle && right < end {
                budget.charge_steps(1)?;
                if order(budget, &source[left], &source[right])?.is_le() {
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

fn sorted(
    budget: &mut BudgetTracker,
    values: Vec<Value>,
    name: &'static str,
) -> Result<Vec<Value>> {
    sort(budget, values, &mut |_, a, b| {
        Ok(ops::ordering(name, a, b)?.unwrap_or(Ordering::Equal))
    })
}

fn median(budget: &mut BudgetTracker, values: Vec<Value>) -> Result<Value> {
    if values.is_empty() {
        return Err(empty_error("median"));
    }
    if let Some(nan) = values.iter().find(|value| is_nan(value)) {
        return Ok(nan.clone());
    }
    let values = sorted(budget, values, "median")?;
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        return match &values[middle] {
            value @ (Value::Text(_) | Value::Bool(_)) => Ok(value.to_number("median")?.into()),
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
    mean(budget, &values[middle - 1..=middle])
}

fn mode(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let values = scalar_arguments(&mut evaluator.budget, args, "mode")?;
    if values.is_empty() {
        return Err(empty_error("mode"));
    }
    let mut counts: Vec<(Value, usize)> = Vec::new();
    for value in values {
        evaluator.budget.charge_steps(counts.len() + 1)?;
        match position(&mut evaluator.budget, &counts, &value)? {
            Some(at) => counts[at].1 += 1,
            None => counts.push((value, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    counts.retain(|(_, count)| *count == most);
    Ok(Value::list(
        counts.into_iter().map(|(value, _)| value).collect(),
    ))
}

fn position(
    budget: &mut BudgetTracker,
    counts: &[(Value, usize)],
    value: &Value,
) -> Result<Option<usize>> {
    for (at, (seen, _)) in counts.iter().enumerate() {
        let is_equal = match (value, seen) {
            // Exact, unlike `==` in expressions: nearly equal doubles are counted separately.
            (Value::Number(a), Value::Number(b)) => a == b,
            (a, b) => a.type_name() == b.type_name() && ops::deep_equal(budget, a, b)?,
        };
        if is_equal {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn mad(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    let values = scalar_arguments(budget, args, "mad")?;
    if values.is_empty() {
        return Err(empty_error("mad"));
    }
    let middle = median(budget, values.clone())?;
    let distances = values
        .iter()
        .map(|value| {
            let distance = ops::subtract(budget, value, &middle)?;
            super::arithmetic::abs(budget, &distance)
        })
        .collect::<Result<_>>()?;
    median(budget, distances)
}

fn quantile(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    let (matrix, probability) = (args[0].as_matrix("quantileSeq")?.clone(), &args[1]);
    let is_sorted = matches!(args.get(2), Some(Value::Bool(true)));
    if let Some(at) = args
        .get(3)
        .or_else(|| args.get(2).filter(|arg| matches!(arg, Value::Number(_))))
    {
        let at = parse_dimension(at, "quantileSeq")?;
        return matrix.reduce(budget, at, |budget, line| {
            quantiles(budget, line, probability, is_sorted)
        });
    }
    quantiles(budget, &matrix.data, probability, is_sorted)
}

fn quantiles(
    budget: &mut BudgetTracker,
    values: &[Value],
    probability: &Value,
    is_sorted: bool,
) -> Result<Value> {
    if values.is_empty() {
        return fail("Cannot calculate quantile of an empty sequence");
    }
    let values = if is_sorted {
        values.to_vec()
    } else {
        sorted(budget, values.to_vec(), "quantileSeq")?
    };
    match probability {
        Value::Matrix(list) => list.map(budget, |budget, p| {
            quantile_at(budget, &values, p.to_number("quantileSeq")?)
        }),
        p => {
            let number = p.to_number("quantileSeq")?;
            if number <= 1.0 {
                return quantile_at(budget, &values, number);
            }
            if number.fract() != 0.0 {
                return fail("N must be a positive integer");
            }
            // Charged before the list is made; `min` keeps the conversion in range.
            budget.charge_cells(number.min(1e9) as usize)?;
            let parts = (1..=number as usize)
                .map(|k| quantile_at(budget, &values, k as f64 / (number + 1.0)));
            Ok(Value::list(parts.collect::<Result<_>>()?))
        }
    }
}

fn quantile_at(budget: &mut BudgetTracker, values: &[Value], p: f64) -> Result<Value> {
    if !(0.0..=1.0).contains(&p) {
        return fail("Probability must be between 0 and 1, inclusive");
    }
    // The definition of R's type 7, which mathjs uses too.
    let index = p * (values.len() - 1) as f64;
    let (low, rest) = (index.floor() as usize, index.fract());
    if rest == 0.0 {
        return Ok(values[low].clone());
    }
    let left = ops::multiply(budget, &values[low], &Value::Number(1.0 - rest))?;
    let right = ops::multiply(budget, &values[low + 1], &Value::Number(rest))?;
    ops::add(budget, &left, &right)
}
