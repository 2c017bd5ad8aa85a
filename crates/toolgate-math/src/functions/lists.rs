//! Functions on lists: picking, mapping, filtering and sorting.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{FunctionRow, many, with_expression};
use crate::eval::{pick, read_picks, replace};
use crate::prelude::*;
use crate::value::MathObject;

pub(super) const TABLE: &[FunctionRow] = &[
    many("subset", subset),
    many("index", |evaluator, args| {
        evaluator.budget.charge_cells(args.len())?;
        Ok(Value::object([(
            "index",
            Value::Results(Arc::new(args.to_vec())),
        )]))
    }),
    with_expression("map", map),
    with_expression("filter", filter),
    with_expression("forEach", |evaluator, args| {
        map(evaluator, args)?;
        Ok(Value::Undefined)
    }),
    many("sort", sort),
    many("partitionSelect", |evaluator, args| {
        let mut sort_args = vec![args[0].clone()];
        sort_args.extend(args.get(2).cloned());
        let sorted = sort(evaluator, &sort_args)?;
        let k = args[1].to_count("partitionSelect")?;
        let cell = sorted.as_matrix("partitionSelect")?.data.get(k).cloned();
        cell.ok_or_else(|| MathError::new("k out of bounds"))
    }),
];

// Takes the result of `index(…)` or a plain list of indexes.
fn subset(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let indexes = match &args[1] {
        Value::Object(object) => match object.get("index") {
            Some(Value::Results(indexes)) => indexes.to_vec(),
            _ => return Err(type_error("subset", &args[1])),
        },
        Value::Matrix(list) => list.data.clone(),
        other => vec![other.clone()],
    };
    if let (Value::Object(object), [Value::Text(key)]) = (&args[0], indexes.as_slice()) {
        return match args.get(2) {
            None => Ok(object.get(key).cloned().unwrap_or(Value::Undefined)),
            Some(new) => {
                evaluator
                    .budget
                    .charge_cells(2 * object.entries.len() + 2)?;
                let mut object = MathObject::clone(object);
                object.set(key, new.clone());
                Ok(Value::Object(Arc::new(object)))
            }
        };
    }
    let picks = indexes
        .iter()
        .map(|index| read_picks(&mut evaluator.budget, index))
        .collect::<Result<Vec<_>>>()?;
    match args.get(2) {
        None => pick(&mut evaluator.budget, &args[0], &picks),
        Some(new) => replace(&mut evaluator.budget, &args[0], &picks, new),
    }
}

// A callback gets as many of value, index and whole matrix as it has parameters.
fn callback_arguments(
    function: &Value,
    value: &Value,
    index: &[usize],
    whole: &Value,
) -> Vec<Value> {
    let mut arguments = vec![value.clone()];
    let wanted = Evaluator::parameter_count(function);
    if wanted > 1 {
        arguments.push(Value::list(
            index
                .iter()
                .map(|i| Value::Number((i + 1) as f64))
                .collect(),
        ));
    }
    if wanted > 2 {
        arguments.push(whole.clone());
    }
    arguments
}

fn map(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let Some((function, sources)) = args.split_last() else {
        return fail("Too few arguments in function map");
    };
    if !function.is_function() {
        return Err(type_error("map", function));
    }
    let [source] = sources else {
        return map_several(evaluator, function, sources);
    };
    let matrix = source.as_matrix("map")?.clone();
    evaluator.budget.charge_cells(matrix.data.len())?;
    let mut data = Vec::with_capacity(matrix.data.len());
    for (at, value) in matrix.data.iter().enumerate() {
        let arguments =
            callback_arguments(function, value, &matrix::unravel(at, &matrix.size), source);
        data.push(evaluator.call(function, &arguments)?);
    }
    Ok(Value::matrix(matrix.size.clone(), data))
}

fn map_several(
    evaluator: &mut Evaluator<'_>,
    function: &Value,
    sources: &[Value],
) -> Result<Value> {
    let matrices = sources
        .iter()
        .map(|source| source.as_matrix("map").cloned())
        .collect::<Result<Vec<_>>>()?;
    let Some(first) = matrices.first() else {
        return fail("Too few arguments in function map (expected: a matrix and a function)");
    };
    let size = matrices
        .iter()
        .try_fold(first.size.clone(), |size, matrix| {
            matrix::common_size(&size, &matrix.size)
        })?;
    let cells = matrix::cell_count(&mut evaluator.budget, &size)?;
    let mut data = Vec::with_capacity(cells);
    for at in 0..cells {
        evaluator.budget.charge_steps(matrices.len())?;
        let place = matrix::unravel(at, &size);
        let arguments: Vec<Value> = matrices
            .iter()
            .map(|matrix| matrix.data[matrix::broadcast_index(&place, &matrix.size)].clone())
            .collect();
        data.push(evaluator.call(function, &arguments)?);
    }
    Ok(Value::matrix(size, data))
}

fn filter(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let matrix = args[0].as_matrix("filter")?.clone();
    if matrix.size.len() != 1 {
        return fail("Only one dimensional matrices supported");
    }
    if !args[1].is_function() {
        return Err(type_error("filter", &args[1]));
    }
    evaluator.budget.charge_cells(matrix.data.len())?;
    let mut kept = Vec::new();
    for (at, value) in matrix.data.iter().enumerate() {
        let arguments = callback_arguments(&args[1], value, &[at], &args[0]);
        let keep = evaluator.call(&args[1], &arguments)?;
        if ops::truth("filter", &keep)? {
            kept.push(value.clone());
        }
    }
    Ok(Value::list(kept))
}

fn sort(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let matrix = args[0].as_matrix("sort")?.clone();
    if matrix.size.len() != 1 {
        return fail("One dimensional array expected");
    }
    let order = args.get(1).cloned().unwrap_or_else(|| Value::text("asc"));
    if order.is_function() {
        return sort_by_function(evaluator, &matrix, &order);
    }
    let compare = |a: &Value, b: &Value| -> Result<Ordering> {
        Ok(ops::ordering("compare", a, b)?.unwrap_or(Ordering::Equal))
    };
    let name = order.as_text("sort")?.clone();
    let sorted = super::ranks::sort(
        &mut evaluator.budget,
        matrix.data.clone(),
        &mut |budget, a, b| match name.as_ref() {
            "asc" => compare(a, b),
            "desc" => compare(b, a),
            "natural" => ops::natural_order(budget, a, b),
            other => fail(format!(
                "String \"asc\", \"desc\", or \"natural\" expected (got \"{other}\")"
            )),
        },
    )?;
    Ok(Value::list(sorted))
}

fn sort_by_function(
    evaluator: &mut Evaluator<'_>,
    matrix: &Matrix,
    order: &Value,
) -> Result<Value> {
    // Binary insertion into a second list, because the callback needs the whole evaluator.
    evaluator.budget.charge_cells(matrix.data.len())?;
    let mut sorted: Vec<Value> = Vec::with_capacity(matrix.data.len());
    for value in &matrix.data {
        let (mut low, mut high) = (0, sorted.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let result = evaluator.call(order, &[sorted[middle].clone(), value.clone()])?;
            if result.to_number("sort")? <= 0.0 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // Moving eight cells costs about as much as one step.
        evaluator.budget.charge_steps(sorted.len() / 8 + 1)?;
        sorted.insert(low, value.clone());
    }
    Ok(Value::list(sorted))
}
