//! Creates matrices and ranges, and reads their sizes and diagonals.

use std::cmp::Ordering;

use super::{FunctionRow, many};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    many("matrix", |_, args| match args {
        [] => Ok(Value::list(Vec::new())),
        [value @ Value::Matrix(_), ..] => Ok(value.clone()),
        [value, ..] => Err(type_error("matrix", value)),
    }),
    many("zeros", |evaluator, args| {
        filled(evaluator, args, "zeros", 0.0)
    }),
    many("ones", |evaluator, args| {
        filled(evaluator, args, "ones", 1.0)
    }),
    many("identity", identity),
    many("diag", diagonal),
    many("range", |evaluator, args| {
        named_range(&mut evaluator.budget, args)
    }),
    many("size", |_, args| {
        let size = match &args[0] {
            Value::Matrix(matrix) => matrix.size.clone(),
            Value::Text(text) => vec![text.chars().count()],
            Value::Fraction(_) => return Err(ops::no_fraction()),
            _ => Vec::new(),
        };
        Ok(Value::list(
            size.into_iter().map(|n| Value::Number(n as f64)).collect(),
        ))
    }),
    many("count", |_, args| match &args[0] {
        Value::Matrix(matrix) => Ok((matrix.data.len() as f64).into()),
        Value::Text(text) => Ok((text.chars().count() as f64).into()),
        // As in mathjs: the length of the text `true` or `false`.
        Value::Bool(truth) => Ok(if *truth { 4.0 } else { 5.0 }.into()),
        other => Err(type_error("count", other)),
    }),
];

pub(crate) fn range(
    budget: &mut BudgetTracker,
    start: &Value,
    end: &Value,
    step: &Value,
) -> Result<Value> {
    let (Value::Number(start), Value::Number(end), Value::Number(step)) = (start, end, step) else {
        return exact_range(budget, start, end, step);
    };
    // A step of zero would never end. As in mathjs, the range is empty.
    if *step == 0.0 {
        return Ok(Value::list(Vec::new()));
    }
    let count = ((end - start) / step).max(-1.0) + 1.0;
    // Charged before any number is made. The extra one is for a last number hidden by rounding.
    budget.charge_cells(if count.is_finite() {
        count as usize
    } else {
        usize::MAX
    })?;
    let mut values = Vec::new();
    let mut value = *start;
    loop {
        let beyond = if *step > 0.0 {
            value > *end
        } else {
            value < *end
        };
        if (beyond && !crate::number::real::nearly_equal(value, *end)) || value.is_nan() {
            break;
        }
        budget.charge_steps(1)?;
        values.push(Value::Number(value));
        value += step;
    }
    Ok(Value::list(values))
}

fn exact_range(
    budget: &mut BudgetTracker,
    start: &Value,
    end: &Value,
    step: &Value,
) -> Result<Value> {
    let zero = Value::Number(0.0);
    let rising = match ops::ordering("range", step, &zero)? {
        Some(Ordering::Greater) => true,
        Some(Ordering::Less) => false,
        _ => return Ok(Value::list(Vec::new())),
    };
    let mut values = Vec::new();
    let mut value = start.clone();
    loop {
        let beyond = if rising {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        match ops::ordering("range", &value, end)? {
            Some(order) if order != beyond => {}
            _ => return Ok(Value::list(values)),
        }
        budget.charge_cells(1)?;
        let next = ops::add(budget, &value, step)?;
        values.push(std::mem::replace(&mut value, next));
    }
}

fn named_range(budget: &mut BudgetTracker, args: &[Value]) -> Result<Value> {
    if let [Value::Text(text)] = args {
        let parts: Option<Vec<f64>> = text
            .split(':')
            .map(|part| part.trim().parse().ok())
            .collect();
        return match parts.as_deref() {
            Some(&[start, end]) => range(budget, &start.into(), &end.into(), &1.0.into()),
            Some(&[start, step, end]) => range(budget, &start.into(), &end.into(), &step.into()),
            _ => fail(format!("String \"{text}\" is not a valid range")),
        };
    }
    let plain = |value: &Value| match value {
        Value::Number(_) | Value::Big(_) | Value::Fraction(_) => Ok(value.clone()),
        _ => Err(type_error("range", value)),
    };
    match args {
        [start, end] | [start, end, Value::Bool(true)] => {
            range(budget, &plain(start)?, &plain(end)?, &1.0.into())
        }
        [start, end, step] => range(budget, &plain(start)?, &plain(end)?, &plain(step)?),
        _ => fail("Too few arguments in function range (expected: start and end)"),
    }
}

pub(super) fn parse_sizes(args: &[Value], name: &str) -> Result<Vec<usize>> {
    match args {
        [Value::Matrix(list)] => list.data.iter().map(|n| n.to_count(name)).collect(),
        args => args.iter().map(|n| n.to_count(name)).collect(),
    }
}

fn filled(evaluator: &mut Evaluator<'_>, args: &[Value], name: &str, value: f64) -> Result<Value> {
    let size = parse_sizes(args, name)?;
    if size.is_empty() {
        return Ok(Value::list(Vec::new()));
    }
    let big = args.iter().any(|arg| matches!(arg, Value::Big(_)));
    let cell = if big {
        Value::big(crate::number::decimal::Decimal::from_number(value))
    } else {
        Value::Number(value)
    };
    Matrix::filled(&mut evaluator.budget, size, &cell).map(Value::from)
}

fn identity(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    match *parse_sizes(args, "identity")?.as_slice() {
        [] => Ok(Value::list(Vec::new())),
        [n] => Ok(Value::from(ops::identity(&mut evaluator.budget, n, n)?)),
        [n, m] => Ok(Value::from(ops::identity(&mut evaluator.budget, n, m)?)),
        _ => fail("Vector containing two values expected"),
    }
}

fn diagonal(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let matrix = args[0].as_matrix("diag")?;
    let offset = match args.get(1) {
        Some(k) => k.to_number("diag")?,
        None => 0.0,
    };
    if offset.fract() != 0.0 || offset.abs() > 1e6 {
        return fail("Second parameter in function diag must be an integer");
    }
    let (down, right) = if offset < 0.0 {
        (-offset as usize, 0)
    } else {
        (0, offset as usize)
    };
    match *matrix.size.as_slice() {
        [n] => {
            let (rows, columns) = (n + down, n + right);
            let size = vec![rows, columns];
            let cells = matrix::cell_count(&mut evaluator.budget, &size)?;
            let mut data = vec![Value::Number(0.0); cells];
            for (i, value) in matrix.data.iter().enumerate() {
                data[(i + down) * columns + i + right] = value.clone();
            }
            Ok(Value::matrix(size, data))
        }
        [rows, columns] => {
            let count = rows.saturating_sub(down).min(columns.saturating_sub(right));
            evaluator.budget.charge_cells(count)?;
            Ok(Value::list(
                (0..count)
                    .map(|i| matrix.data[(i + down) * columns + i + right].clone())
                    .collect(),
            ))
        }
        _ => fail("Matrix for function diag must be 2 dimensional"),
    }
}
