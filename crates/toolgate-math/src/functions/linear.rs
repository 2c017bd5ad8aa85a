//! Linear algebra: decompositions, solvers and products.

use super::{FunctionRow, many, two};
use crate::number::real;
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    many("det", |evaluator, args| match &args[0] {
        Value::Matrix(matrix) => ops::determinant(&mut evaluator.budget, matrix),
        value => Ok(value.clone()),
    }),
    many("inv", |evaluator, args| match &args[0] {
        Value::Matrix(matrix) => ops::inverse(&mut evaluator.budget, matrix),
        value => ops::divide(&mut evaluator.budget, &Value::Number(1.0), value),
    }),
    many("pinv", pseudo_inverse),
    many("trace", trace),
    two("dot", dot),
    two("cross", cross),
    two("kron", kron),
    two("lusolve", solve),
    two("lsolve", |budget, a, b| triangular(budget, a, b, true)),
    two("usolve", |budget, a, b| triangular(budget, a, b, false)),
    many("expm", expm),
];

// The inverse of a square matrix, (AᵀA)⁻¹Aᵀ of a tall one, Aᵀ(AAᵀ)⁻¹ of a wide one.
fn pseudo_inverse(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    let Value::Matrix(matrix) = &args[0] else {
        return ops::divide(budget, &Value::Number(1.0), &args[0]);
    };
    let (rows, columns) = matrix.rows_columns("pinv")?;
    if rows == columns {
        return ops::inverse(budget, matrix);
    }
    let turned = ops::transpose(budget, &args[0], true)?;
    let is_tall = rows > columns;
    let (left, right) = if is_tall {
        (&turned, &args[0])
    } else {
        (&args[0], &turned)
    };
    let square = ops::multiply(budget, left, right)?;
    let inner = ops::inverse(budget, square.as_matrix("pinv")?)?;
    if is_tall {
        ops::multiply(budget, &inner, &turned)
    } else {
        ops::multiply(budget, &turned, &inner)
    }
}

fn trace(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let Value::Matrix(matrix) = &args[0] else {
        return Ok(args[0].clone());
    };
    let n = matrix.square_size()?;
    let diagonal: Vec<Value> = (0..n).map(|i| matrix.data[i * n + i].clone()).collect();
    super::statistics::sum(&mut evaluator.budget, &diagonal)
}

pub(super) fn list_cells<'a>(value: &'a Value, name: &str) -> Result<&'a [Value]> {
    let matrix = value.as_matrix(name)?;
    if matrix.size.iter().filter(|&&n| n != 1).count() > 1 {
        return fail(format!(
            "Expected a list in function {name} (size: [{}])",
            matrix::size_text(&matrix.size)
        ));
    }
    Ok(&matrix.data)
}

fn dot(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    let (x, y) = (list_cells(a, "dot")?, list_cells(b, "dot")?);
    if x.len() != y.len() {
        return fail(format!(
            "Vectors must have equal length ({} != {})",
            x.len(),
            y.len()
        ));
    }
    if x.is_empty() {
        return fail("Cannot calculate the dot product of empty vectors");
    }
    let mut sum: Option<Value> = None;
    for (a, b) in x.iter().zip(y) {
        budget.charge_steps(1)?;
        let a = match a {
            Value::Complex(a) => Value::Complex(a.conj()),
            a => a.clone(),
        };
        let product = ops::multiply(budget, &a, b)?;
        sum = Some(match sum {
            None => product,
            Some(sum) => ops::add(budget, &sum, &product)?,
        });
    }
    Ok(sum.unwrap_or(Value::Number(0.0)))
}

fn cross(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    let ([a1, a2, a3], [b1, b2, b3]) = (list_cells(a, "cross")?, list_cells(b, "cross")?) else {
        return fail("Vectors with length 3 expected");
    };
    let mut cell = |a: &Value, b: &Value, c: &Value, d: &Value| {
        let (left, right) = (ops::multiply(budget, a, b)?, ops::multiply(budget, c, d)?);
        ops::subtract(budget, &left, &right)
    };
    let cells = vec![
        cell(a2, b3, a3, b2)?,
        cell(a3, b1, a1, b3)?,
        cell(a1, b2, a2, b1)?,
    ];
    let deep = a.as_matrix("cross")?.size.len() > 1 || b.as_matrix("cross")?.size.len() > 1;
    Ok(Value::matrix(
        if deep { vec![1, 3] } else { vec![3] },
        cells,
    ))
}

fn kron(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    let (a, b) = (a.as_matrix("kron")?, b.as_matrix("kron")?);
    let shape = |matrix: &Matrix| match *matrix.size.as_slice() {
        [n] => Ok((1, n)),
        [rows, columns] => Ok((rows, columns)),
        _ => fail("Vector with dimensions greater than 2 expected"),
    };
    let ((ra, ca), (rb, cb)) = (shape(a)?, shape(b)?);
    let flat = a.size.len() == 1 && b.size.len() == 1;
    let cells = matrix::cell_count(budget, &[ra, rb, ca, cb])?;
    let mut data = Vec::with_capacity(cells);
    // Row by row of the result, whose cells are charged for already.
    for row in 0..ra * rb {
        for column in 0..ca * cb {
            let (x, y) = (
                &a.data[row / rb * ca + column / cb],
                &b.data[row % rb * cb + column % cb],
            );
            data.push(ops::multiply(budget, x, y)?);
        }
    }
    Ok(Value::matrix(
        if flat {
            vec![ca * cb]
        } else {
            vec![ra * rb, ca * cb]
        },
        data,
    ))
}

// The right-hand side, which may be a list or a column.
fn right_side(b: &Value, n: usize) -> Result<Vec<Value>> {
    let b = b.as_matrix("lusolve")?;
    match *b.size.as_slice() {
        [m] | [m, 1] if m == n => Ok(b.data.clone()),
        _ => fail("Dimension mismatch. Matrix columns must match vector length."),
    }
}

fn singular() -> Result<Value> {
    fail("Linear system cannot be solved since matrix is singular")
}

fn solve(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    let a = a.as_matrix("lusolve")?;
    a.rows_columns("lusolve")?;
    let n = a.square_size()?;
    let mut b = right_side(b, n)?;
    budget.charge_cells(a.data.len())?;
    let mut m = a.data.clone();
    for k in 0..n {
        // The largest pivot keeps rounding errors small.
        let size = |row: usize| ops::magnitude(&m[row * n + k]).unwrap_or(0.0);
        let mut best = k;
        for row in k + 1..n {
            if size(row) > size(best) {
                best = row;
            }
        }
        if real::nearly_equal(size(best), 0.0) {
            return singular();
        }
        if best != k {
            (0..n).for_each(|j| m.swap(k * n + j, best * n + j));
            b.swap(k, best);
        }
        for row in k + 1..n {
            budget.charge_steps(n)?;
            let factor = ops::divide(budget, &m[row * n + k], &m[k * n + k])?;
            for j in k..n {
                let product = ops::multiply(budget, &factor, &m[k * n + j])?;
                m[row * n + j] = ops::subtract(budget, &m[row * n + j], &product)?;
            }
            let product = ops::multiply(budget, &factor, &b[k])?;
            b[row] = ops::subtract(budget, &b[row], &product)?;
        }
    }
    substitute(budget, &m, b, n, false)
}

fn triangular(budget: &mut BudgetTracker, a: &Value, b: &Value, lower: bool) -> Result<Value> {
    let a = a.as_matrix("lsolve")?;
    let n = a.square_size()?;
    let b = right_side(b, n)?;
    substitute(budget, &a.data, b, n, lower)
}

fn substitute(
    budget: &mut BudgetTracker,
    m: &[Value],
    mut b: Vec<Value>,
    n: usize,
    lower: bool,
) -> Result<Value> {
    for step in 0..n {
        budget.charge_steps(n)?;
        let k = if lower { step } else { n - 1 - step };
        let pivot = &m[k * n + k];
        if ops::is_zero(pivot) {
            return singular();
        }
        b[k] = ops::divide(budget, &b[k], pivot)?;
        let others = if lower { k + 1..n } else { 0..k };
        for row in others {
            let product = ops::multiply(budget, &b[k], &m[row * n + k])?;
            b[row] = ops::subtract(budget, &b[row], &product)?;
        }
    }
    Ok(Value::matrix(vec![n, 1], b))
}

// Computes the matrix exponential by scaling, a series, and squaring.
fn expm(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    let matrix = args[0].as_matrix("expm")?;
    let n = matrix.square_size()?;
    let largest = matrix
        .data
        .iter()
        .filter_map(ops::magnitude)
        .fold(0.0, f64::max)
        * n as f64;
    // More halvings than twenty would lose all digits when squared again.
    if !largest.is_finite() || largest > 1e6 {
        return fail("The numbers in function expm are too large");
    }
    let halvings = if largest > 0.5 {
        libm::log2(largest / 0.5).ceil() as i32
    } else {
        0
    };
    let scaled = ops::multiply(
        budget,
        &args[0],
        &Value::Number(libm::exp2(f64::from(-halvings))),
    )?;
    let mut term = Value::from(ops::identity(budget, n, n)?);
    let mut sum = term.clone();
    // With a norm of at most one half, term 19 is below the last digit of a double.
    for k in 1..=18u8 {
        let product = ops::multiply(budget, &term, &scaled)?;
        term = ops::divide(budget, &product, &Value::Number(f64::from(k)))?;
        sum = ops::add(budget, &sum, &term)?;
    }
    for _ in 0..halvings {
        sum = ops::multiply(budget, &sum, &sum)?;
    }
    Ok(sum)
}
