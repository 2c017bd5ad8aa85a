//! Matrix operators: products, powers, determinants and inverses.

use super::{add, divide, multiply, negate, subtract};
use crate::prelude::*;

/// The product of two matrices or vectors. Two vectors give their dot product.
pub(crate) fn matrix_product(budget: &mut BudgetTracker, a: &Matrix, b: &Matrix) -> Result<Value> {
    let mismatch = || {
        MathError::new(format!(
            "Dimension mismatch in multiplication. The columns of A ({}) must match the rows of B ({})",
            a.size.last().copied().unwrap_or(0),
            b.size.first().copied().unwrap_or(0)
        ))
    };
    let (rows, inner, size_a) = match *a.size.as_slice() {
        [n] => (1, n, None),
        [rows, columns] => (rows, columns, Some(rows)),
        _ => return Err(too_many_dimensions()),
    };
    let (inner_b, columns, size_b) = match *b.size.as_slice() {
        [n] => (n, 1, None),
        [rows, columns] => (rows, columns, Some(columns)),
        _ => return Err(too_many_dimensions()),
    };
    if inner != inner_b {
        return Err(mismatch());
    }
    if inner == 0 {
        return fail("Cannot multiply two empty vectors");
    }
    let mut data = Vec::new();
    budget.charge_cells(rows.saturating_mul(columns))?;
    for row in 0..rows {
        for column in 0..columns {
            budget.charge_steps(inner)?;
            data.push(line_product(
                budget,
                (0..inner).map(|k| (&a.data[row * inner + k], &b.data[k * columns + column])),
            )?);
        }
    }
    let size: Vec<usize> = size_a.into_iter().chain(size_b).collect();
    Ok(matrix::collapse(size, data))
}

fn line_product<'a>(
    budget: &mut BudgetTracker,
    mut pairs: impl Iterator<Item = (&'a Value, &'a Value)>,
) -> Result<Value> {
    let Some((a, b)) = pairs.next() else {
        return Ok(Value::Number(0.0));
    };
    let mut sum = multiply(budget, a, b)?;
    for (a, b) in pairs {
        let product = multiply(budget, a, b)?;
        sum = add(budget, &sum, &product)?;
    }
    Ok(sum)
}

fn too_many_dimensions() -> MathError {
    MathError::new("Can only multiply a 1 or 2 dimensional matrix")
}

pub(crate) fn transpose(
    budget: &mut BudgetTracker,
    value: &Value,
    conjugate: bool,
) -> Result<Value> {
    match value {
        Value::Matrix(matrix) => {
            let turned = matrix.transpose(budget)?;
            if !conjugate {
                return Ok(turned.into());
            }
            Ok(turned.map(budget, |_, cell| {
                Ok(match cell {
                    Value::Complex(value) => value.conj().into(),
                    Value::Bool(_) | Value::Text(_) => cell.to_number("conj")?.into(),
                    cell => cell.clone(),
                })
            })?)
        }
        Value::Complex(value) if conjugate => Ok(value.conj().into()),
        Value::Bool(_) | Value::Text(_) if conjugate => Ok(value.to_number("ctranspose")?.into()),
        Value::Null
        | Value::Undefined
        | Value::Object(_)
        | Value::Builtin(_)
        | Value::Closure(_)
            if conjugate =>
        {
            Err(type_error("ctranspose", value))
        }
        _ => Ok(value.clone()),
    }
}

pub(super) fn matrix_power(
    budget: &mut BudgetTracker,
    matrix: &Matrix,
    exponent: f64,
) -> Result<Value> {
    if exponent.fract() != 0.0 {
        return fail(format!(
            "For A^b, b must be an integer (value is {exponent})"
        ));
    }
    let n = matrix.square_size()?;
    if matrix.size.len() != 2 {
        return fail("For A^b, A must be 2 dimensional (A has 1 dimensions)");
    }
    let mut base = if exponent < 0.0 {
        inverse(budget, matrix)?
    } else {
        matrix.clone().into()
    };
    let mut result = Value::from(identity(budget, n, n)?);
    let mut count = exponent.abs();
    while count >= 1.0 {
        if count % 2.0 == 1.0 {
            result = multiply(budget, &base, &result)?;
        }
        count = (count / 2.0).floor();
        if count >= 1.0 {
            base = multiply(budget, &base, &base)?;
        }
        budget.charge_steps(1)?;
    }
    Ok(result)
}

pub(crate) fn identity(budget: &mut BudgetTracker, rows: usize, columns: usize) -> Result<Matrix> {
    let mut matrix = Matrix::filled(budget, vec![rows, columns], &Value::Number(0.0))?;
    for i in 0..rows.min(columns) {
        matrix.data[i * columns + i] = Value::Number(1.0);
    }
    Ok(matrix)
}

pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Number(value) => *value == 0.0,
        Value::Complex(value) => value.re == 0.0 && value.im == 0.0,
        Value::Big(value) => value.is_zero(),
        Value::Fraction(value) => value.num == num_bigint::BigInt::ZERO,
        Value::Bool(value) => !value,
        Value::Unit(unit) => unit.value.as_ref().is_none_or(is_zero),
        _ => false,
    }
}

// Bareiss elimination: its divisions leave no remainder, so integers stay exact.
pub(crate) fn determinant(budget: &mut BudgetTracker, matrix: &Matrix) -> Result<Value> {
    let n = matrix.square_size()?;
    let mut cells = matrix.data.clone();
    budget.charge_cells(cells.len())?;
    match n {
        0 => return Ok(Value::Number(1.0)),
        1 => return Ok(cells[0].clone()),
        2 => {
            let (a, b) = (
                multiply(budget, &cells[0], &cells[3])?,
                multiply(budget, &cells[1], &cells[2])?,
            );
            return subtract(budget, &a, &b);
        }
        _ => {}
    }
    let mut negated = false;
    let mut rows: Vec<usize> = (0..n).collect();
    for k in 0..n {
        if is_zero(&cells[rows[k] * n + k]) {
            match (k + 1..n).find(|&row| !is_zero(&cells[rows[row] * n + k])) {
                Some(row) => {
                    rows.swap(k, row);
                    negated = !negated;
                }
                None => return Ok(cells[rows[k] * n + k].clone()),
            }
        }
        let pivot = cells[rows[k] * n + k].clone();
        let before = if k == 0 {
            Value::Number(1.0)
        } else {
            cells[rows[k - 1] * n + k - 1].clone()
        };
        for i in k + 1..n {
            budget.charge_steps(n - k)?;
            for j in k + 1..n {
                let left = multiply(budget, &cells[rows[i] * n + j], &pivot)?;
                let right = multiply(budget, &cells[rows[i] * n + k], &cells[rows[k] * n + j])?;
                let difference = subtract(budget, &left, &right)?;
                cells[rows[i] * n + j] = divide(budget, &difference, &before)?;
            }
        }
    }
    let result = cells[rows[n - 1] * n + n - 1].clone();
    if negated {
        negate(budget, &result)
    } else {
        Ok(result)
    }
}

// Gauss-Jordan elimination. The largest pivot keeps rounding errors small.
pub(crate) fn inverse(budget: &mut BudgetTracker, matrix: &Matrix) -> Result<Value> {
    let n = matrix.square_size()?;
    if matches!(n, 1 | 2) {
        return small_inverse(budget, matrix, n);
    }
    budget.charge_cells(n * n)?;
    let mut a = matrix.data.clone();
    let mut b = identity(budget, n, n)?.data;
    for c in 0..n {
        let size = |value: &Value| super::magnitude(value).unwrap_or(0.0);
        let mut best = c;
        for r in c + 1..n {
            if size(&a[r * n + c]) > size(&a[best * n + c]) {
                best = r;
            }
        }
        if is_zero(&a[best * n + c]) {
            return Err(singular());
        }
        if best != c {
            for j in 0..n {
                a.swap(c * n + j, best * n + j);
                b.swap(c * n + j, best * n + j);
            }
        }
        for r in 0..n {
            budget.charge_steps(2 * n)?;
            let pivot = a[c * n + c].clone();
            if r == c {
                for j in 0..n {
                    b[r * n + j] = divide(budget, &b[r * n + j], &pivot)?;
                    if j >= c {
                        a[r * n + j] = divide(budget, &a[r * n + j], &pivot)?;
                    }
                }
            } else if !is_zero(&a[r * n + c]) {
                let negative = negate(budget, &a[r * n + c])?;
                let factor = divide(budget, &negative, &pivot)?;
                for j in 0..n {
                    let step = multiply(budget, &factor, &a[c * n + j])?;
                    if j >= c {
                        a[r * n + j] = add(budget, &a[r * n + j], &step)?;
                    }
                    let step = multiply(budget, &factor, &b[c * n + j])?;
                    b[r * n + j] = add(budget, &b[r * n + j], &step)?;
                }
            }
        }
    }
    Ok(Value::matrix(matrix.size.clone(), b))
}

fn singular() -> MathError {
    MathError::new("Cannot calculate inverse, determinant is zero")
}

// The closed formulas for one and two rows.
fn small_inverse(budget: &mut BudgetTracker, matrix: &Matrix, n: usize) -> Result<Value> {
    if n == 1 {
        let inverse = divide(budget, &Value::Number(1.0), &matrix.data[0])?;
        return Ok(Value::matrix(matrix.size.clone(), vec![inverse]));
    }
    let det = determinant(budget, matrix)?;
    if is_zero(&det) {
        return Err(singular());
    }
    let m = &matrix.data;
    let mut cells = Vec::with_capacity(4);
    for (cell, flip) in [(&m[3], false), (&m[1], true), (&m[2], true), (&m[0], false)] {
        let cell = if flip {
            negate(budget, cell)?
        } else {
            cell.clone()
        };
        cells.push(divide(budget, &cell, &det)?);
    }
    Ok(Value::matrix(vec![2, 2], cells))
}
