//! Functions that reshape, cut, join and transpose matrices.

use super::matrices::parse_sizes;
use super::{FunctionRow, many};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    many("reshape", |evaluator, args| {
        let matrix = args[0].as_matrix("reshape")?;
        evaluator.budget.charge_cells(matrix.data.len())?;
        let size = reshape_size(&args[1], matrix.data.len())?;
        matrix.reshaped(size).map(Value::from)
    }),
    many("resize", resize),
    many("flatten", |evaluator, args| {
        let matrix = args[0].as_matrix("flatten")?;
        evaluator.budget.charge_cells(matrix.data.len())?;
        Ok(Value::list(matrix.data.clone()))
    }),
    many("squeeze", |evaluator, args| match &args[0] {
        Value::Matrix(matrix) => {
            evaluator.budget.charge_cells(matrix.data.len())?;
            let size: Vec<usize> = matrix.size.iter().copied().filter(|&n| n != 1).collect();
            match (size.is_empty(), matrix.data.as_slice()) {
                (true, [only]) => Ok(only.clone()),
                _ => matrix.reshaped(size).map(Value::from),
            }
        }
        other => Ok(other.clone()),
    }),
    many("concat", concat),
    many("row", |evaluator, args| {
        row_or_column(evaluator, args, "row")
    }),
    many("column", |evaluator, args| {
        row_or_column(evaluator, args, "column")
    }),
    many("matrixFromRows", |evaluator, args| {
        stack_rows(&mut evaluator.budget, args)
    }),
    many("matrixFromColumns", |evaluator, args| {
        let rows = stack_rows(&mut evaluator.budget, args)?;
        ops::transpose(&mut evaluator.budget, &rows, false)
    }),
    many("diff", diff),
    many("transpose", |evaluator, args| {
        ops::transpose(&mut evaluator.budget, &args[0], false)
    }),
    many("ctranspose", |evaluator, args| {
        ops::transpose(&mut evaluator.budget, &args[0], true)
    }),
];

// Reads the new size. One number may be -1: that dimension takes the remaining cells.
fn reshape_size(value: &Value, cells: usize) -> Result<Vec<usize>> {
    let list = value.as_matrix("reshape")?;
    let numbers: Vec<f64> = list
        .data
        .iter()
        .map(|n| n.to_number("reshape"))
        .collect::<Result<_>>()?;
    // Products of sizes stay exact in a double, and the budget bounds the cells.
    let known: f64 = numbers.iter().filter(|n| **n != -1.0).product();
    numbers
        .into_iter()
        .map(|n| {
            if n == -1.0 && known > 0.0 {
                Value::Number(cells as f64 / known)
            } else {
                Value::Number(n)
            }
        })
        .map(|n| n.to_count("reshape"))
        .collect()
}

fn resize(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let size = parse_sizes(std::slice::from_ref(&args[1]), "resize")?;
    let fill = args.get(2).cloned().unwrap_or(Value::Number(0.0));
    match &args[0] {
        Value::Matrix(matrix) => Ok(Value::from(matrix.resized(
            &mut evaluator.budget,
            &size,
            &fill,
        )?)),
        Value::Text(text) => {
            let &[length] = size.as_slice() else {
                return fail("Dimension mismatch: a text has one dimension");
            };
            evaluator.budget.charge_text(length)?;
            let fill = match args.get(2) {
                Some(Value::Text(fill)) => fill.chars().next().unwrap_or(' '),
                _ => ' ',
            };
            Ok(Value::text(
                text.chars()
                    .chain(std::iter::repeat(fill))
                    .take(length)
                    .collect::<String>(),
            ))
        }
        value => {
            if size.is_empty() {
                return Ok(value.clone());
            }
            let one = Matrix::new(vec![1; size.len()], vec![value.clone()]);
            Ok(Value::from(one.resized(
                &mut evaluator.budget,
                &size,
                &fill,
            )?))
        }
    }
}

fn concat(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    if args.iter().all(|arg| matches!(arg, Value::Text(_))) {
        let mut joined = String::new();
        for arg in args {
            let text = arg.as_text("concat")?;
            evaluator.budget.charge_text(joined.len() + text.len())?;
            joined.push_str(text);
        }
        return Ok(Value::text(joined));
    }
    let (parts, dimension) = match args {
        [parts @ .., last @ (Value::Number(_) | Value::Big(_))] => {
            (parts, Some(last.to_count("concat")?))
        }
        parts => (parts, None),
    };
    let mut matrices = parts.iter().map(|part| part.as_matrix("concat"));
    let Some(first) = matrices.next() else {
        return fail("At least one matrix expected");
    };
    let first = first?;
    evaluator.budget.charge_cells(first.data.len())?;
    let mut joined = Matrix::clone(first);
    let dimension = match dimension {
        None => joined.size.len() - 1,
        Some(n) if n >= 1 && n <= joined.size.len() => n - 1,
        Some(n) => {
            return fail(format!("Index out of range ({n} > {})", joined.size.len()));
        }
    };
    for next in matrices {
        joined = join(&mut evaluator.budget, &joined, next?, dimension)?;
    }
    Ok(Value::from(joined))
}

fn join(budget: &mut BudgetTracker, a: &Matrix, b: &Matrix, dimension: usize) -> Result<Matrix> {
    let fits = a.size.len() == b.size.len()
        && a.size
            .iter()
            .zip(&b.size)
            .enumerate()
            .all(|(at, (m, n))| at == dimension || m == n);
    if !fits {
        return matrix::size_mismatch(matrix::size_text(&a.size), matrix::size_text(&b.size));
    }
    budget.charge_cells(a.data.len() + b.data.len())?;
    let inner: usize = a.size[dimension + 1..].iter().product();
    let (step_a, step_b) = (a.size[dimension] * inner, b.size[dimension] * inner);
    let outer: usize = a.size[..dimension].iter().product();
    let mut data = Vec::with_capacity(a.data.len() + b.data.len());
    for o in 0..outer {
        data.extend_from_slice(&a.data[o * step_a..(o + 1) * step_a]);
        data.extend_from_slice(&b.data[o * step_b..(o + 1) * step_b]);
    }
    let mut size = a.size.clone();
    size[dimension] += b.size[dimension];
    Ok(Matrix::new(size, data))
}

fn row_or_column(evaluator: &mut Evaluator<'_>, args: &[Value], name: &str) -> Result<Value> {
    let matrix = args[0].as_matrix(name)?;
    let (rows, columns) = matrix.rows_columns(name)?;
    let index = args[1].to_count(name)?;
    let length = if name == "row" { rows } else { columns };
    if index < 1 || index > length {
        return fail(format!("Index out of range ({index} > {length})"));
    }
    evaluator.budget.charge_cells(rows.max(columns))?;
    let at = index - 1;
    if name == "row" {
        Ok(Value::matrix(
            vec![1, columns],
            matrix.data[at * columns..(at + 1) * columns].to_vec(),
        ))
    } else {
        let data = (0..rows)
            .map(|row| matrix.data[row * columns + at].clone())
            .collect();
        Ok(Value::matrix(vec![rows, 1], data))
    }
}

fn stack_rows(budget: &mut BudgetTracker, args: &[Value]) -> Result<Value> {
    let rows = args
        .iter()
        .map(|row| {
            let matrix = row.as_matrix("matrixFromRows")?;
            let wide = matrix.size.iter().filter(|&&n| n > 1).count() <= 1;
            if !wide {
                return fail("Expected vectors as rows or columns");
            }
            budget.charge_cells(matrix.data.len())?;
            Ok(Value::list(matrix.data.clone()))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Value::from(Matrix::from_items(budget, rows)?))
}

fn diff(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let matrix = args[0].as_matrix("diff")?;
    let dimension = match args.get(1) {
        Some(at) => at
            .to_count("diff")?
            .checked_sub(1)
            .ok_or_else(|| MathError::new("Index out of range (0 < 1)"))?,
        None => 0,
    };
    let Some(&length) = matrix.size.get(dimension) else {
        return fail(format!(
            "Dimension must be smaller than or equal to {}",
            matrix.size.len()
        ));
    };
    let inner: usize = matrix.size[dimension + 1..].iter().product();
    let mut size = matrix.size.clone();
    size[dimension] = length.saturating_sub(1);
    evaluator.budget.charge_cells(matrix.data.len())?;
    let mut data = Vec::new();
    for (at, value) in matrix.data.iter().enumerate() {
        if (at / inner.max(1)) % length + 1 < length {
            data.push(ops::subtract(
                &mut evaluator.budget,
                &matrix.data[at + inner],
                value,
            )?);
        }
    }
    Ok(Value::matrix(size, data))
}
