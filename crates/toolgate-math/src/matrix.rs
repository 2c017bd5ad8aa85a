//! Matrices of any number of dimensions.

use std::fmt::Display;

use crate::budget::BudgetTracker;
use crate::error::{Result, fail};
use crate::value::Value;

/// Values in row-major order. A vector has one dimension. The empty matrix has size `[0]`.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) size: Vec<usize>,
    /// The cells. Don't add cells that hold values after [`Matrix::new`], which measures
    /// how deep they nest.
    pub(crate) data: Vec<Value>,
    depth: usize,
}

impl Matrix {
    pub(crate) fn new(size: Vec<usize>, data: Vec<Value>) -> Self {
        debug_assert_eq!(size.iter().product::<usize>(), data.len());
        let inner = data.iter().map(Value::depth).max().unwrap_or(0);
        Self {
            depth: size.len() + inner,
            size,
            data,
        }
    }

    pub(crate) fn vector(data: Vec<Value>) -> Self {
        Self::new(vec![data.len()], data)
    }

    /// The nesting depth: its dimensions, and what its cells hold.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn filled(
        budget: &mut BudgetTracker,
        size: Vec<usize>,
        value: &Value,
    ) -> Result<Self> {
        let cells = cell_count(budget, &size)?;
        Ok(Self::new(size, vec![value.clone(); cells]))
    }

    /// Makes a matrix from the items of `[…]`. Items that are matrices of one size become its rows.
    pub(crate) fn from_items(budget: &mut BudgetTracker, items: Vec<Value>) -> Result<Self> {
        budget.charge_cells(items.len())?;
        let Some(Value::Matrix(first)) = items.first() else {
            if let Some(Value::Matrix(row)) =
                items.iter().find(|item| matches!(item, Value::Matrix(_)))
            {
                return fail(format!("Dimension mismatch ({} > 1)", row.size.len() + 1));
            }
            return Ok(Self::vector(items));
        };
        let mut size = vec![items.len()];
        size.extend(&first.size);
        budget.check_depth(size.len())?;
        budget.charge_cells(first.data.len() * items.len())?;
        let mut data = Vec::with_capacity(first.data.len() * items.len());
        for item in &items {
            match item {
                Value::Matrix(row) if row.size == first.size => data.extend_from_slice(&row.data),
                Value::Matrix(row) => {
                    return size_mismatch(size_text(&row.size), size_text(&first.size));
                }
                _ => {
                    return fail(format!("Dimension mismatch (1 < {})", size.len()));
                }
            }
        }
        Ok(Self::new(size, data))
    }

    pub(crate) fn rows_columns(&self, function: &str) -> Result<(usize, usize)> {
        match self.size.as_slice() {
            &[rows, columns] => Ok((rows, columns)),
            _ => fail(format!(
                "Matrix with two dimensions expected in function {function} (size: [{}])",
                size_text(&self.size)
            )),
        }
    }

    pub(crate) fn square_size(&self) -> Result<usize> {
        match self.size.as_slice() {
            [1] => Ok(1),
            &[rows, columns] if rows == columns => Ok(rows),
            _ => fail(format!(
                "Matrix must be square (size: [{}])",
                size_text(&self.size)
            )),
        }
    }

    pub(crate) fn map(
        &self,
        budget: &mut BudgetTracker,
        mut f: impl FnMut(&mut BudgetTracker, &Value) -> Result<Value>,
    ) -> Result<Value> {
        budget.charge_cells(self.data.len())?;
        let mut work = |value| {
            budget.charge_cell_work(value)?;
            f(budget, value)
        };
        let data = self.data.iter().map(&mut work).collect::<Result<_>>()?;
        Ok(Value::matrix(self.size.clone(), data))
    }

    pub(crate) fn transpose(&self, budget: &mut BudgetTracker) -> Result<Self> {
        budget.charge_cells(self.data.len())?;
        match self.size.as_slice() {
            [_] => Ok(self.clone()),
            &[rows, columns] => {
                let data = (0..columns)
                    .flat_map(|column| (0..rows).map(move |row| row * columns + column))
                    .map(|at| self.data[at].clone())
                    .collect();
                Ok(Self::new(vec![columns, rows], data))
            }
            _ => fail(format!(
                "Matrix must be a vector or two dimensional (size: [{}])",
                size_text(&self.size)
            )),
        }
    }

    pub(crate) fn reshaped(&self, size: Vec<usize>) -> Result<Self> {
        if size.iter().try_fold(1usize, |all, n| all.checked_mul(*n)) != Some(self.data.len()) {
            return fail(format!(
                "Reshaping sizes should be compatible with the number of values ({} != {})",
                size_text(&size),
                self.data.len()
            ));
        }
        Ok(Self::new(size, self.data.clone()))
    }

    /// Cuts the matrix or fills it up to `size`.
    pub(crate) fn resized(
        &self,
        budget: &mut BudgetTracker,
        size: &[usize],
        fill: &Value,
    ) -> Result<Self> {
        let mut from = self.size.clone();
        // Surplus dimensions keep their first cell. Missing dimensions get size one.
        while from.len() > size.len() {
            if from.remove(0) == 0 {
                from = vec![0; size.len()];
            }
        }
        while from.len() < size.len() {
            from.insert(0, 1);
        }
        let cells = cell_count(budget, size)?;
        let mut data = Vec::with_capacity(cells);
        for at in 0..cells {
            let place = unravel(at, size);
            let inside = place.iter().zip(&from).all(|(i, n)| i < n);
            let cell = if inside {
                self.data.get(ravel(&place, &from))
            } else {
                None
            };
            data.push(cell.unwrap_or(fill).clone());
        }
        Ok(Self::new(size.to_vec(), data))
    }

    /// Replaces each line along one dimension (counted from 0) by the result of `f`.
    pub(crate) fn reduce(
        &self,
        budget: &mut BudgetTracker,
        dimension: usize,
        mut f: impl FnMut(&mut BudgetTracker, &[Value]) -> Result<Value>,
    ) -> Result<Value> {
        let Some(&length) = self.size.get(dimension) else {
            return out_of_range(dimension, self.size.len());
        };
        if self.size.len() == 1 {
            return fail("A list has no dimensions to choose from; leave the dimension out");
        }
        let inner: usize = self.size[dimension + 1..].iter().product();
        let outer: usize = self.size[..dimension].iter().product();
        budget.charge_cells(self.data.len())?;
        let mut data = Vec::with_capacity(outer * inner);
        let mut line = Vec::with_capacity(length);
        for o in 0..outer {
            for i in 0..inner {
                line.clear();
                line.extend((0..length).map(|k| self.data[(o * length + k) * inner + i].clone()));
                data.push(f(budget, &line)?);
            }
        }
        let mut size = self.size.clone();
        size.remove(dimension);
        Ok(collapse(size, data))
    }

    pub(crate) fn numbers(&self) -> Option<Vec<f64>> {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        };
        self.data.iter().map(number).collect()
    }
}

/// The number of cells of a size, charged to the budget before they exist.
pub(crate) fn cell_count(budget: &mut BudgetTracker, size: &[usize]) -> Result<usize> {
    // Formatting recurses once per dimension.
    budget.check_depth(size.len())?;
    let cells = size
        .iter()
        .try_fold(1usize, |all, n| all.checked_mul(*n))
        .unwrap_or(usize::MAX);
    budget.charge_cells(cells)?;
    Ok(cells)
}

/// The matrix of these cells, or the only cell if no dimension is left.
pub(crate) fn collapse(size: Vec<usize>, mut data: Vec<Value>) -> Value {
    match data.pop() {
        Some(only) if size.is_empty() => only,
        last => {
            data.extend(last);
            Value::matrix(size, data)
        }
    }
}

pub(crate) fn size_mismatch<T>(a: impl Display, b: impl Display) -> Result<T> {
    fail(format!("Dimension mismatch ({a} != {b})"))
}

/// The error for index `at`, counted from 0.
pub(crate) fn out_of_range<T>(at: usize, length: usize) -> Result<T> {
    fail(format!("Index out of range ({} > {length})", at + 1))
}

/// Converts an index into `data` to one index per dimension.
pub(crate) fn unravel(mut at: usize, size: &[usize]) -> Vec<usize> {
    let mut place = vec![0; size.len()];
    for (slot, n) in place.iter_mut().zip(size).rev() {
        *slot = at % n;
        at /= n;
    }
    place
}

/// Converts one index per dimension to an index into `data`.
pub(crate) fn ravel(place: &[usize], size: &[usize]) -> usize {
    place.iter().zip(size).fold(0, |at, (i, n)| at * n + i)
}

/// The size that two matrices are broadcast to: equal, or one where they differ.
pub(crate) fn common_size(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let dimensions = a.len().max(b.len());
    let length = |size: &[usize], at: usize| {
        (at + size.len())
            .checked_sub(dimensions)
            .map_or(1, |at| size[at])
    };
    (0..dimensions)
        .map(|at| match (length(a, at), length(b, at)) {
            (m, n) if m == n => Ok(m),
            (1, n) | (n, 1) => Ok(n),
            _ => fail(format!(
                "shape mismatch: cannot fit size [{}] to [{}]",
                size_text(a),
                size_text(b)
            )),
        })
        .collect()
}

/// The index of the cell that broadcasting puts at `place`.
pub(crate) fn broadcast_index(place: &[usize], size: &[usize]) -> usize {
    let inner = &place[place.len() - size.len()..];
    inner
        .iter()
        .zip(size)
        .fold(0, |at, (&i, &n)| at * n + if n == 1 { 0 } else { i })
}

pub(crate) fn size_text(size: &[usize]) -> String {
    let sizes: Vec<String> = size.iter().map(ToString::to_string).collect();
    sizes.join(", ")
}
