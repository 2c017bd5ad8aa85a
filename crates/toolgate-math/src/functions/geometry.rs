//! Norms, distances, intersections and polynomial roots.

use super::linear::list_cells;
use super::{FunctionRow, many, two};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    many("norm", norm),
    many("rotationMatrix", rotation),
    two("distance", distance),
    many("intersect", intersect),
    many("polynomialRoot", roots),
];

#[derive(Clone, Copy)]
enum MatrixNorm {
    Power(f64),
    Frobenius,
}

fn norm(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    let kind = match args.get(1) {
        None => MatrixNorm::Power(2.0),
        Some(Value::Text(text)) => match text.as_ref() {
            "inf" => MatrixNorm::Power(f64::INFINITY),
            "-inf" => MatrixNorm::Power(f64::NEG_INFINITY),
            "fro" => MatrixNorm::Frobenius,
            other => {
                return fail(format!("Unsupported parameter value \"{other}\""));
            }
        },
        Some(p) => MatrixNorm::Power(p.to_number("norm")?),
    };
    match &args[0] {
        Value::Matrix(matrix) => match *matrix.size.as_slice() {
            [_] => vector_norm(budget, matrix, kind),
            [rows, columns] => matrix_norm(budget, matrix, rows, columns, kind),
            _ => fail("Matrix for function norm must have one or two dimensions"),
        },
        Value::Fraction(_) => Err(ops::no_fraction()),
        Value::Unit(_) | Value::Null | Value::Undefined | Value::Object(_) => {
            Err(type_error("norm", &args[0]))
        }
        value => super::arithmetic::abs(budget, value),
    }
}

fn magnitudes(budget: &mut BudgetTracker, cells: &[Value]) -> Result<Vec<Value>> {
    budget.charge_steps(cells.len())?;
    cells
        .iter()
        .map(|cell| super::arithmetic::abs(budget, cell))
        .collect()
}

fn power_sum(budget: &mut BudgetTracker, lengths: &[Value], p: f64) -> Result<Value> {
    let mut sum = Value::Number(0.0);
    for length in lengths {
        let power = ops::power(budget, length, &Value::Number(p))?;
        sum = ops::add(budget, &sum, &power)?;
    }
    Ok(sum)
}

fn pick_extreme(budget: &mut BudgetTracker, values: &[Value], largest: bool) -> Result<Value> {
    let mut best = values.first().cloned().unwrap_or(Value::Number(0.0));
    for value in values {
        budget.charge_steps(1)?;
        let order = ops::ordering("norm", value, &best)?;
        if order.is_some_and(if largest {
            std::cmp::Ordering::is_gt
        } else {
            std::cmp::Ordering::is_lt
        }) {
            best = value.clone();
        }
    }
    Ok(best)
}

fn vector_norm(budget: &mut BudgetTracker, matrix: &Matrix, kind: MatrixNorm) -> Result<Value> {
    let lengths = magnitudes(budget, &matrix.data)?;
    let p = match kind {
        MatrixNorm::Power(p) => p,
        MatrixNorm::Frobenius => 2.0,
    };
    if p.is_infinite() {
        return pick_extreme(budget, &lengths, p > 0.0);
    }
    // The limit of the p-norm as p approaches zero, as in mathjs.
    if p == 0.0 || p.is_nan() {
        return Ok(f64::INFINITY.into());
    }
    let sum = power_sum(budget, &lengths, p)?;
    let is_nan = matches!(sum, Value::Number(sum) if sum.is_nan());
    if p == 2.0 && !is_nan {
        ops::square_root(budget, &sum)
    } else {
        ops::power(budget, &sum, &Value::Number(1.0 / p))
    }
}

fn matrix_norm(
    budget: &mut BudgetTracker,
    matrix: &Matrix,
    rows: usize,
    columns: usize,
    kind: MatrixNorm,
) -> Result<Value> {
    let lengths = magnitudes(budget, &matrix.data)?;
    match kind {
        MatrixNorm::Frobenius => {
            let sum = power_sum(budget, &lengths, 2.0)?;
            ops::square_root(budget, &sum)
        }
        // The largest sum of a column, or of a row.
        MatrixNorm::Power(p @ (1.0 | f64::INFINITY)) => {
            let dimension = usize::from(p > 1.0);
            let lengths = Matrix::new(vec![rows, columns], lengths);
            let sums = lengths.reduce(budget, dimension, super::statistics::sum)?;
            pick_extreme(budget, &sums.as_matrix("norm")?.data, true)
        }
        MatrixNorm::Power(2.0) => {
            if rows != columns {
                return fail("Invalid matrix dimensions: the 2-norm needs a square matrix");
            }
            let numbers = matrix
                .numbers()
                .ok_or_else(|| type_error("norm", &Value::from(matrix.clone())))?;
            Ok(spectral_norm(budget, &numbers, rows)?.into())
        }
        MatrixNorm::Power(p) => fail(format!(
            "Unsupported parameter value {p} for a matrix; use 1, 2, \"inf\" or \"fro\""
        )),
    }
}

// The largest singular value is the root of the largest eigenvalue of AᵀA,
// found by Jacobi rotations.
fn spectral_norm(budget: &mut BudgetTracker, a: &[f64], n: usize) -> Result<f64> {
    budget.charge_cells(n * n)?;
    let mut m = vec![0.0; n * n];
    for i in 0..n {
        budget.charge_steps(n * n)?;
        for j in 0..n {
            m[i * n + j] = (0..n).map(|k| a[k * n + i] * a[k * n + j]).sum();
        }
    }
    // Convergence is quadratic: sixty sweeps are far more than any matrix needs.
    for _ in 0..60 {
        let off: f64 = (0..n * n)
            .filter(|at| at / n != at % n)
            .map(|at| m[at] * m[at])
            .sum();
        if off < 1e-300 || !off.is_finite() {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                // Already diagonal there, and the angle would divide by zero.
                if m[p * n + q] == 0.0 {
                    continue;
                }
                budget.charge_steps(n)?;
                let theta = (m[q * n + q] - m[p * n + p]) / (2.0 * m[p * n + q]);
                let t = if theta == 0.0 {
                    1.0
                } else {
                    theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt())
                };
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for k in 0..n {
                    let (x, y) = (m[k * n + p], m[k * n + q]);
                    m[k * n + p] = c * x - s * y;
                    m[k * n + q] = s * x + c * y;
                }
                for k in 0..n {
                    let (x, y) = (m[p * n + k], m[q * n + k]);
                    m[p * n + k] = c * x - s * y;
                    m[q * n + k] = s * x + c * y;
                }
            }
        }
    }
    Ok((0..n).map(|i| m[i * n + i]).fold(0.0, f64::max).sqrt())
}

fn rotation(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let angle = match &args[0] {
        Value::Unit(unit) if unit.is_angle() => {
            unit.require_value()?.to_number("rotationMatrix")?
        }
        Value::Unit(_) => {
            return fail("Unit in function rotationMatrix is not an angle");
        }
        value => value.to_number("rotationMatrix")?,
    };
    evaluator.budget.charge_cells(4)?;
    let (s, c) = (libm::sin(angle), libm::cos(angle));
    Ok(Value::matrix(
        vec![2, 2],
        [c, -s, s, c].map(Value::Number).to_vec(),
    ))
}

fn distance(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    let (x, y) = (list_cells(a, "distance")?, list_cells(b, "distance")?);
    if x.len() != y.len() || x.is_empty() {
        return fail("Both points of distance must have the same number of coordinates");
    }
    let other_kind = |cell: &&Value| !matches!(cell, Value::Number(_) | Value::Big(_));
    if let Some(other) = x.iter().chain(y).find(other_kind) {
        return Err(type_error("distance", other));
    }
    let mut sum = Value::Number(0.0);
    for (a, b) in x.iter().zip(y) {
        budget.charge_steps(1)?;
        let difference = ops::subtract(budget, a, b)?;
        let square = ops::multiply(budget, &difference, &difference)?;
        sum = ops::add(budget, &sum, &square)?;
    }
    ops::square_root(budget, &sum)
}

fn intersect(_: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let mut points = Vec::with_capacity(4);
    for arg in args {
        match list_cells(arg, "intersect")? {
            [x, y] => points.push((x.to_number("intersect")?, y.to_number("intersect")?)),
            _ => {
                return fail("intersect takes four points of the plane, such as [0, 0]");
            }
        }
    }
    let &[(x1, y1), (x2, y2), (x3, y3), (x4, y4)] = points.as_slice() else {
        return fail("intersect takes four points");
    };
    let (dx1, dy1, dx2, dy2) = (x1 - x2, y1 - y2, x3 - x4, y3 - y4);
    let det = dx1 * dy2 - dx2 * dy1;
    // The lines are parallel. The tolerance is that of mathjs.
    if det.abs() < 1e-12 {
        return Ok(Value::Null);
    }
    let t = (dx2 * y1 - dy2 * x1 - dx2 * y3 + dy2 * x3) / det;
    Ok(Value::list(vec![
        Value::Number(dx1 * t + x1),
        Value::Number(dy1 * t + y1),
    ]))
}

fn roots(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    let (constant, linear) = (&args[0], &args[1]);
    let quadratic = args.get(2).filter(|value| !ops::is_zero(value));
    let Some(quadratic) = quadratic else {
        let negative = ops::negate(budget, constant)?;
        return Ok(Value::list(vec![ops::divide(budget, &negative, linear)?]));
    };
    let twice = ops::multiply(budget, &Value::Number(2.0), quadratic)?;
    let square = ops::multiply(budget, linear, linear)?;
    let product = ops::multiply(budget, quadratic, constant)?;
    let four = ops::multiply(budget, &Value::Number(4.0), &product)?;
    let discriminant = ops::subtract(budget, &square, &four)?;
    let negative = ops::negate(budget, linear)?;
    if ops::is_zero(&discriminant) {
        return Ok(Value::list(vec![ops::divide(budget, &negative, &twice)?]));
    }
    let root = ops::square_root(budget, &discriminant)?;
    let (high, low) = (
        ops::add(budget, &negative, &root)?,
        ops::subtract(budget, &negative, &root)?,
    );
    Ok(Value::list(vec![
        ops::divide(budget, &high, &twice)?,
        ops::divide(budget, &low, &twice)?,
    ]))
}
