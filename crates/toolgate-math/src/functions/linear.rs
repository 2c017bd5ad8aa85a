//! Linear algebra and geometry.

use super::{Function, many, two};
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::eval::Run;
use crate::matrix::{self, Matrix};
use crate::number::real;
use crate::ops;
use crate::value::{Value, type_error};

pub(super) const TABLE: &[Function] = &[
    many("det", "x", "Determinant", |run, args| match &args[0] {
        Value::Matrix(matrix) => ops::determinant(&mut run.meter, matrix),
        value => Ok(value.clone()),
    }),
    many("inv", "x", "Inverse", |run, args| match &args[0] {
        Value::Matrix(matrix) => Ok(Value::matrix(ops::inverse(&mut run.meter, matrix)?)),
        value => ops::divide(&mut run.meter, &Value::Number(1.0), value),
    }),
    many("trace", "x", "Sum of the diagonal", trace),
    two("dot", "x, y", "Dot product of two lists", dot),
    two(
        "cross",
        "x, y",
        "Cross product of two lists of three",
        cross,
    ),
    two("kron", "x, y", "Kronecker product", kron),
    many(
        "norm",
        "x, p?",
        "Length of a list, or a norm of a matrix: a number, \"inf\", \"-inf\" or \"fro\"",
        norm,
    ),
    two("lusolve", "a, b", "Solves a x = b", solve),
    two(
        "lsolve",
        "l, b",
        "Solves l x = b for a lower triangular l",
        |meter, a, b| triangular(meter, a, b, true),
    ),
    two(
        "usolve",
        "u, b",
        "Solves u x = b for an upper triangular u",
        |meter, a, b| triangular(meter, a, b, false),
    ),
    many("expm", "x", "Exponential of a square matrix", expm),
    many(
        "rotationMatrix",
        "angle",
        "Matrix that turns by an angle in the plane",
        rotation,
    ),
    two("distance", "a, b", "Distance of two points", distance),
    many(
        "intersect",
        "a, b, c, d",
        "Point where the lines a-b and c-d meet",
        intersect,
    ),
    many(
        "polynomialRoot",
        "constant, linear, quadratic?",
        "Roots of a polynomial of degree one or two",
        roots,
    ),
];

fn trace(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let Value::Matrix(matrix) = &args[0] else {
        return Ok(args[0].clone());
    };
    let n = matrix.square()?;
    let diagonal: Vec<Value> = (0..n).map(|i| matrix.data[i * n + i].clone()).collect();
    super::statistics::sum(&mut run.meter, &diagonal)
}

/// The cells of a list, a row or a column.
fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value]> {
    let matrix = value.as_matrix(name)?;
    if matrix.size.iter().filter(|&&n| n != 1).count() > 1 {
        return Err(Error::new(format!(
            "Expected a list in function {name} (size: [{}])",
            matrix::list(&matrix.size)
        )));
    }
    Ok(&matrix.data)
}

fn dot(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    let (x, y) = (list(a, "dot")?, list(b, "dot")?);
    if x.len() != y.len() {
        return Err(Error::new(format!(
            "Vectors must have equal length ({} != {})",
            x.len(),
            y.len()
        )));
    }
    if x.is_empty() {
        return Err(Error::new(
            "Cannot calculate the dot product of empty vectors",
        ));
    }
    let mut sum: Option<Value> = None;
    for (a, b) in x.iter().zip(y) {
        meter.step(1)?;
        let a = match a {
            Value::Complex(a) => Value::Complex(a.conj()),
            a => a.clone(),
        };
        let product = ops::multiply(meter, &a, b)?;
        sum = Some(match sum {
            None => product,
            Some(sum) => ops::add(meter, &sum, &product)?,
        });
    }
    Ok(sum.unwrap_or(Value::Number(0.0)))
}

fn cross(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    let ([a1, a2, a3], [b1, b2, b3]) = (list(a, "cross")?, list(b, "cross")?) else {
        return Err(Error::new("Vectors with length 3 expected"));
    };
    let mut cell = |a: &Value, b: &Value, c: &Value, d: &Value| {
        let (left, right) = (ops::multiply(meter, a, b)?, ops::multiply(meter, c, d)?);
        ops::subtract(meter, &left, &right)
    };
    let cells = vec![
        cell(a2, b3, a3, b2)?,
        cell(a3, b1, a1, b3)?,
        cell(a1, b2, a2, b1)?,
    ];
    let deep = a.as_matrix("cross")?.size.len() > 1 || b.as_matrix("cross")?.size.len() > 1;
    Ok(Value::matrix(Matrix::new(
        if deep { vec![1, 3] } else { vec![3] },
        cells,
    )))
}

fn kron(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    let (a, b) = (a.as_matrix("kron")?, b.as_matrix("kron")?);
    let shape = |matrix: &Matrix| match *matrix.size.as_slice() {
        [n] => Ok((1, n)),
        [rows, columns] => Ok((rows, columns)),
        _ => Err(Error::new("Vector with dimensions greater than 2 expected")),
    };
    let ((ra, ca), (rb, cb)) = (shape(a)?, shape(b)?);
    let flat = a.size.len() == 1 && b.size.len() == 1;
    let cells = matrix::cell_count(meter, &[ra, rb, ca, cb])?;
    let mut data = Vec::with_capacity(cells);
    for row in 0..ra * rb {
        for column in 0..ca * cb {
            let (x, y) = (
                &a.data[row / rb * ca + column / cb],
                &b.data[row % rb * cb + column % cb],
            );
            data.push(ops::multiply(meter, x, y)?);
        }
    }
    Ok(Value::matrix(Matrix::new(
        if flat {
            vec![ca * cb]
        } else {
            vec![ra * rb, ca * cb]
        },
        data,
    )))
}

fn norm(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut run.meter;
    let kind = match args.get(1) {
        None => Norm::Power(2.0),
        Some(Value::Text(text)) => match text.as_ref() {
            "inf" => Norm::Power(f64::INFINITY),
            "-inf" => Norm::Power(f64::NEG_INFINITY),
            "fro" => Norm::Frobenius,
            other => {
                return Err(Error::new(format!(
                    "Unsupported parameter value \"{other}\""
                )));
            }
        },
        Some(p) => Norm::Power(p.number("norm")?),
    };
    match &args[0] {
        Value::Matrix(matrix) => match *matrix.size.as_slice() {
            [_] => vector_norm(meter, matrix, kind),
            [rows, columns] => matrix_norm(meter, matrix, rows, columns, kind),
            _ => Err(Error::new(
                "Matrix for function norm must have one or two dimensions",
            )),
        },
        Value::Fraction(_) => Err(ops::no_fraction()),
        Value::Unit(_) | Value::Null | Value::Undefined | Value::Object(_) => {
            Err(type_error("norm", &args[0]))
        }
        value => super::arithmetic::abs(meter, value),
    }
}

#[derive(Clone, Copy)]
enum Norm {
    Power(f64),
    Frobenius,
}

fn lengths(meter: &mut Meter, cells: &[Value]) -> Result<Vec<Value>> {
    meter.step(cells.len())?;
    cells
        .iter()
        .map(|cell| super::arithmetic::abs(meter, cell))
        .collect()
}

fn power_sum(meter: &mut Meter, lengths: &[Value], p: f64) -> Result<Value> {
    let mut sum = Value::Number(0.0);
    for length in lengths {
        let power = ops::power(meter, length, &Value::Number(p))?;
        sum = ops::add(meter, &sum, &power)?;
    }
    Ok(sum)
}

fn pick_extreme(meter: &mut Meter, values: &[Value], largest: bool) -> Result<Value> {
    let mut best = values.first().cloned().unwrap_or(Value::Number(0.0));
    for value in values {
        meter.step(1)?;
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

fn vector_norm(meter: &mut Meter, matrix: &Matrix, kind: Norm) -> Result<Value> {
    let lengths = lengths(meter, &matrix.data)?;
    let p = match kind {
        Norm::Power(p) => p,
        Norm::Frobenius => 2.0,
    };
    if p.is_infinite() {
        return pick_extreme(meter, &lengths, p > 0.0);
    }
    if p == 0.0 || p.is_nan() {
        return Ok(f64::INFINITY.into());
    }
    let sum = power_sum(meter, &lengths, p)?;
    if p == 2.0 {
        ops::square_root(meter, &sum)
    } else {
        ops::power(meter, &sum, &Value::Number(1.0 / p))
    }
}

fn matrix_norm(
    meter: &mut Meter,
    matrix: &Matrix,
    rows: usize,
    columns: usize,
    kind: Norm,
) -> Result<Value> {
    let lengths = lengths(meter, &matrix.data)?;
    match kind {
        Norm::Frobenius => {
            let sum = power_sum(meter, &lengths, 2.0)?;
            ops::square_root(meter, &sum)
        }
        Norm::Power(1.0) => {
            let turned = Matrix::new(vec![rows, columns], lengths);
            let sums = turned.reduce(meter, 0, super::statistics::sum)?;
            pick_extreme(meter, &sums.as_matrix("norm")?.data, true)
        }
        Norm::Power(f64::INFINITY) => {
            let sums = Matrix::new(vec![rows, columns], lengths).reduce(
                meter,
                1,
                super::statistics::sum,
            )?;
            pick_extreme(meter, &sums.as_matrix("norm")?.data, true)
        }
        Norm::Power(2.0) => {
            if rows != columns {
                return Err(Error::new(
                    "Invalid matrix dimensions: the 2-norm needs a square matrix",
                ));
            }
            let numbers = matrix
                .numbers()
                .ok_or_else(|| type_error("norm", &Value::matrix(matrix.clone())))?;
            Ok(spectral_norm(meter, &numbers, rows)?.into())
        }
        Norm::Power(p) => Err(Error::new(format!(
            "Unsupported parameter value {p} for a matrix; use 1, 2, \"inf\" or \"fro\""
        ))),
    }
}

/// The largest singular value: the root of the largest eigenvalue of AᵀA, by Jacobi rotations.
fn spectral_norm(meter: &mut Meter, a: &[f64], n: usize) -> Result<f64> {
    meter.cells(n * n)?;
    let mut m = vec![0.0; n * n];
    for i in 0..n {
        meter.step(n * n)?;
        for j in 0..n {
            m[i * n + j] = (0..n).map(|k| a[k * n + i] * a[k * n + j]).sum();
        }
    }
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
                if m[p * n + q] == 0.0 {
                    continue;
                }
                meter.step(n)?;
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

/// Rows of the right side, which may be a list or a column.
fn right_side(b: &Value, n: usize) -> Result<Vec<Value>> {
    let b = b.as_matrix("lusolve")?;
    match *b.size.as_slice() {
        [m] | [m, 1] if m == n => Ok(b.data.clone()),
        _ => Err(Error::new(
            "Dimension mismatch. Matrix columns must match vector length.",
        )),
    }
}

fn singular() -> Error {
    Error::new("Linear system cannot be solved since matrix is singular")
}

fn solve(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    let a = a.as_matrix("lusolve")?;
    let (rows, columns) = a.rows_columns("lusolve")?;
    if rows != columns {
        return Err(Error::new(format!(
            "Matrix must be square (size: [{}])",
            matrix::list(&a.size)
        )));
    }
    let n = rows;
    let mut b = right_side(b, n)?;
    meter.cells(a.data.len())?;
    let mut m = a.data.clone();
    for k in 0..n {
        let size = |value: &Value| ops::magnitude(value).unwrap_or(0.0);
        let mut best = k;
        for row in k + 1..n {
            if size(&m[row * n + k]) > size(&m[best * n + k]) {
                best = row;
            }
        }
        if size(&m[best * n + k]) == 0.0 || real::nearly_equal(size(&m[best * n + k]), 0.0) {
            return Err(singular());
        }
        if best != k {
            (0..n).for_each(|j| m.swap(k * n + j, best * n + j));
            b.swap(k, best);
        }
        for row in k + 1..n {
            meter.step(n)?;
            let factor = ops::divide(meter, &m[row * n + k], &m[k * n + k])?;
            for j in k..n {
                let product = ops::multiply(meter, &factor, &m[k * n + j])?;
                m[row * n + j] = ops::subtract(meter, &m[row * n + j], &product)?;
            }
            let product = ops::multiply(meter, &factor, &b[k])?;
            b[row] = ops::subtract(meter, &b[row], &product)?;
        }
    }
    substitute(meter, &m, b, n, false)
}

fn triangular(meter: &mut Meter, a: &Value, b: &Value, lower: bool) -> Result<Value> {
    let a = a.as_matrix("lsolve")?;
    let n = a.square()?;
    let b = right_side(b, n)?;
    substitute(meter, &a.data, b, n, lower)
}

/// Solves a triangular system, one unknown after the other.
fn substitute(
    meter: &mut Meter,
    m: &[Value],
    mut b: Vec<Value>,
    n: usize,
    lower: bool,
) -> Result<Value> {
    for step in 0..n {
        meter.step(n)?;
        let k = if lower { step } else { n - 1 - step };
        let pivot = &m[k * n + k];
        if ops::is_zero(pivot) {
            return Err(singular());
        }
        b[k] = ops::divide(meter, &b[k], pivot)?;
        let others: Vec<usize> = if lower {
            (k + 1..n).collect()
        } else {
            (0..k).collect()
        };
        for row in others {
            let product = ops::multiply(meter, &b[k], &m[row * n + k])?;
            b[row] = ops::subtract(meter, &b[row], &product)?;
        }
    }
    Ok(Value::matrix(Matrix::new(vec![n, 1], b)))
}

/// Scaling, a series, and squaring back.
fn expm(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut run.meter;
    let matrix = args[0].as_matrix("expm")?;
    let n = matrix.square()?;
    let largest = matrix
        .data
        .iter()
        .filter_map(ops::magnitude)
        .fold(0.0, f64::max)
        * n as f64;
    if !largest.is_finite() || largest > 1e6 {
        return Err(Error::new("The numbers in function expm are too large"));
    }
    let halvings = if largest > 0.5 {
        libm::log2(largest / 0.5).ceil() as i32
    } else {
        0
    };
    let scaled = ops::multiply(
        meter,
        &args[0],
        &Value::Number(libm::exp2(f64::from(-halvings))),
    )?;
    let mut term = Value::matrix(ops::identity(meter, n, n)?);
    let mut sum = term.clone();
    for k in 1..=18u8 {
        let product = ops::multiply(meter, &term, &scaled)?;
        term = ops::divide(meter, &product, &Value::Number(f64::from(k)))?;
        sum = ops::add(meter, &sum, &term)?;
    }
    for _ in 0..halvings {
        sum = ops::multiply(meter, &sum, &sum)?;
    }
    Ok(sum)
}

fn rotation(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let angle = match &args[0] {
        Value::Unit(unit) if unit.is_angle() => unit.required()?.number("rotationMatrix")?,
        Value::Unit(_) => return Err(Error::new("Unit in function rotationMatrix is no angle")),
        value => value.number("rotationMatrix")?,
    };
    run.meter.cells(4)?;
    let (s, c) = (libm::sin(angle), libm::cos(angle));
    Ok(Value::matrix(Matrix::new(
        vec![2, 2],
        [c, -s, s, c].map(Value::Number).to_vec(),
    )))
}

fn distance(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    let (x, y) = (list(a, "distance")?, list(b, "distance")?);
    if x.len() != y.len() || x.is_empty() {
        return Err(Error::new(
            "Both points of distance must have the same number of coordinates",
        ));
    }
    let mut sum = Value::Number(0.0);
    for (a, b) in x.iter().zip(y) {
        meter.step(1)?;
        let difference = ops::subtract(meter, a, b)?;
        let square = ops::multiply(meter, &difference, &difference)?;
        sum = ops::add(meter, &sum, &square)?;
    }
    ops::square_root(meter, &sum)
}

fn intersect(_: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let mut points = Vec::with_capacity(4);
    for arg in args {
        match list(arg, "intersect")? {
            [x, y] => points.push((x.number("intersect")?, y.number("intersect")?)),
            _ => {
                return Err(Error::new(
                    "intersect takes four points of the plane, such as [0, 0]",
                ));
            }
        }
    }
    let &[(x1, y1), (x2, y2), (x3, y3), (x4, y4)] = points.as_slice() else {
        return Err(Error::new("intersect takes four points"));
    };
    let (dx1, dy1, dx2, dy2) = (x1 - x2, y1 - y2, x3 - x4, y3 - y4);
    let det = dx1 * dy2 - dx2 * dy1;
    if det.abs() < 1e-12 {
        return Ok(Value::Null);
    }
    let t = (dx2 * y1 - dy2 * x1 - dx2 * y3 + dy2 * x3) / det;
    Ok(Value::list(vec![
        Value::Number(dx1 * t + x1),
        Value::Number(dy1 * t + y1),
    ]))
}

fn roots(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut run.meter;
    let (constant, linear) = (&args[0], &args[1]);
    let quadratic = args.get(2).filter(|value| !ops::is_zero(value));
    let Some(quadratic) = quadratic else {
        let negative = ops::negate(meter, constant)?;
        return Ok(Value::list(vec![ops::divide(meter, &negative, linear)?]));
    };
    let twice = ops::multiply(meter, &Value::Number(2.0), quadratic)?;
    let square = ops::multiply(meter, linear, linear)?;
    let product = ops::multiply(meter, quadratic, constant)?;
    let four = ops::multiply(meter, &Value::Number(4.0), &product)?;
    let discriminant = ops::subtract(meter, &square, &four)?;
    let negative = ops::negate(meter, linear)?;
    if ops::is_zero(&discriminant) {
        return Ok(Value::list(vec![ops::divide(meter, &negative, &twice)?]));
    }
    let root = ops::square_root(meter, &discriminant)?;
    let (high, low) = (
        ops::add(meter, &negative, &root)?,
        ops::subtract(meter, &negative, &root)?,
    );
    Ok(Value::list(vec![
        ops::divide(meter, &high, &twice)?,
        ops::divide(meter, &low, &twice)?,
    ]))
}
