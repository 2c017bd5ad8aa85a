//! Functions that make quantities and convert units.

use super::{FunctionRow, many, two};
use crate::prelude::*;
use crate::unit;
use crate::unit::Unit;

pub(super) const TABLE: &[FunctionRow] = &[
    many("unit", make_units),
    two("to", convert),
    many("toBest", to_best),
    many("splitUnit", split_unit),
];

pub(super) fn target_unit(evaluator: &mut Evaluator<'_>, target: &Value) -> Result<Unit> {
    match target {
        Value::Unit(unit) => Ok(unit.as_ref().clone()),
        Value::Text(text) => unit::parse(&mut evaluator.budget, text, &mut evaluator.system),
        other => Err(type_error("to", other)),
    }
}

fn make_units(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    match args {
        [Value::Matrix(matrix)] => {
            evaluator.budget.charge_cells(matrix.data.len())?;
            let cells: Result<Vec<Value>> = matrix
                .data
                .iter()
                .map(|value| make_unit(evaluator, value))
                .collect();
            Ok(Value::matrix(matrix.size.clone(), cells?))
        }
        [value] => make_unit(evaluator, value),
        [value, name, ..] => {
            let unit = target_unit(evaluator, name)?;
            if unit.value.is_some() {
                return fail("The second argument of unit must be a unit without a number");
            }
            if !matches!(
                value,
                Value::Number(_)
                    | Value::Big(_)
                    | Value::Fraction(_)
                    | Value::Complex(_)
                    | Value::Bool(_)
            ) {
                return Err(type_error("unit", value));
            }
            let amount = unit.normalize(&mut evaluator.budget, value)?;
            Ok(Value::unit(unit.with_value(Some(amount))))
        }
        [] => fail("Too few arguments in function unit"),
    }
}

fn make_unit(evaluator: &mut Evaluator<'_>, value: &Value) -> Result<Value> {
    match value {
        Value::Unit(_) => Ok(value.clone()),
        Value::Text(text) => Ok(Value::unit(unit::parse(
            &mut evaluator.budget,
            text,
            &mut evaluator.system,
        )?)),
        Value::Number(_) | Value::Big(_) | Value::Fraction(_) => {
            Ok(Value::unit(Unit::dimensionless(value.clone())))
        }
        Value::Bool(_) => Ok(Value::unit(Unit::dimensionless(
            value.to_number("unit")?.into(),
        ))),
        other => Err(type_error("unit", other)),
    }
}

/// Converts to a unit, cell by cell for a matrix.
pub(crate) fn convert(budget: &mut BudgetTracker, value: &Value, target: &Value) -> Result<Value> {
    match (value, target) {
        (Value::Matrix(matrix), target) => {
            matrix.map(budget, |budget, cell| convert(budget, cell, target))
        }
        (Value::Unit(value), Value::Unit(target)) => {
            Ok(Value::unit(value.convert(budget, target)?))
        }
        (Value::Unit(value), Value::Text(text)) => {
            // With a unit system of its own: a text must not change how later results are shown.
            let target = unit::parse(budget, text, &mut unit::UnitSystem::default())?;
            Ok(Value::unit(value.convert(budget, &target)?))
        }
        (Value::Unit(_), other) | (other, _) => fail(format!(
            "Unexpected type of argument in function to: only a quantity can be converted, and only to a unit (actual: {})",
            other.type_name()
        )),
    }
}

fn to_best(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let Value::Unit(quantity) = &args[0] else {
        return Err(type_error("toBest", &args[0]));
    };
    let Some(choices) = args.get(1) else {
        return Ok(Value::unit(Unit {
            fixed_prefix: false,
            ..quantity.as_ref().clone()
        }));
    };
    let mut best: Option<(f64, Unit)> = None;
    for choice in &choices.as_matrix("toBest")?.data {
        let target = target_unit(evaluator, choice)?;
        let converted = quantity.convert(&mut evaluator.budget, &target)?;
        let count = converted.denormalize(&mut evaluator.budget, converted.require_value()?)?;
        // Like the choice of a prefix, this prefers numbers around 16.
        let size = (libm::log10(ops::magnitude(&count).unwrap_or(0.0).max(1e-300)) - 1.2).abs();
        if best.as_ref().is_none_or(|(known, _)| size < *known) {
            best = Some((size, converted));
        }
    }
    best.map(|(_, unit)| Value::unit(unit))
        .ok_or_else(|| MathError::new("toBest needs at least one unit to choose from"))
}

fn split_unit(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let Value::Unit(quantity) = &args[0] else {
        return Err(type_error("splitUnit", &args[0]));
    };
    let targets = args[1].as_matrix("splitUnit")?.data.clone();
    evaluator.budget.charge_cells(2 * targets.len())?;
    let mut rest = quantity.as_ref().clone();
    let mut parts = Vec::with_capacity(targets.len());
    for (at, target) in targets.iter().enumerate() {
        let target = target_unit(evaluator, target)?;
        let budget = &mut evaluator.budget;
        let mut count = rest.count_in(budget, &target)?;
        if at + 1 < targets.len() {
            // Otherwise a rounding error could lose a whole unit: 2.9999999999999996 would become
            // 2.
            let exact = count.to_number("splitUnit")?;
            let nearest = exact.round();
            count = Value::Number(if crate::number::real::nearly_equal(exact, nearest) {
                nearest
            } else {
                exact.trunc()
            });
        }
        let amount = target.normalize(budget, &count)?;
        let left = ops::subtract(budget, rest.require_value()?, &amount)?;
        parts.push(Value::unit(Unit {
            fixed_prefix: true,
            ..target.with_value(Some(amount))
        }));
        rest = rest.with_value(Some(left));
    }
    Ok(Value::list(parts))
}
