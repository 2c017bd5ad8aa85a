//! Functions that make quantities and convert units.

use super::{FunctionRow, many, two};
use crate::prelude::*;
use crate::unit;
use crate::unit::Unit;

pub(super) const TABLE: &[FunctionRow] = &[
    many("unit", units),
    two("to", convert),
    many("toBest", to_best),
    many("splitUnit", split_unit),
];

pub(super) fn target_unit(run: &mut Evaluator<'_>, target: &Value) -> Result<Unit> {
    match target {
        Value::Unit(unit) => Ok(unit.as_ref().clone()),
        Value::Text(text) => unit::parse(&mut run.meter, text, &mut run.system),
        other => Err(type_error("to", other)),
    }
}

fn units(run: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    match args {
        [Value::Matrix(matrix)] => {
            run.meter.cells(matrix.data.len())?;
            let cells: Result<Vec<Value>> = matrix
                .data
                .iter()
                .map(|value| one_unit(run, value))
                .collect();
            Ok(Value::matrix(matrix.size.clone(), cells?))
        }
        [value] => one_unit(run, value),
        [value, name, ..] => {
            let unit = target_unit(run, name)?;
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
            let amount = unit.normalize(&mut run.meter, value)?;
            Ok(Value::unit(unit.with(Some(amount))))
        }
        [] => fail("Too few arguments in function unit"),
    }
}

fn one_unit(run: &mut Evaluator<'_>, value: &Value) -> Result<Value> {
    match value {
        Value::Unit(_) => Ok(value.clone()),
        Value::Text(text) => Ok(Value::unit(unit::parse(
            &mut run.meter,
            text,
            &mut run.system,
        )?)),
        Value::Number(_) | Value::Big(_) | Value::Fraction(_) => {
            Ok(Value::unit(Unit::plain(value.clone())))
        }
        Value::Bool(_) => Ok(Value::unit(Unit::plain(value.number("unit")?.into()))),
        other => Err(type_error("unit", other)),
    }
}

/// Converts to a unit, cell by cell for a matrix.
pub(crate) fn convert(meter: &mut Meter, value: &Value, target: &Value) -> Result<Value> {
    match (value, target) {
        (Value::Matrix(matrix), target) => {
            matrix.map(meter, |meter, cell| convert(meter, cell, target))
        }
        (Value::Unit(value), Value::Unit(target)) => Ok(Value::unit(value.convert(meter, target)?)),
        (Value::Unit(value), Value::Text(text)) => {
            // With a unit system of its own: a text must not change how later results are shown.
            let target = unit::parse(meter, text, &mut unit::UnitSystem::default())?;
            Ok(Value::unit(value.convert(meter, &target)?))
        }
        (Value::Unit(_), other) | (other, _) => fail(format!(
            "Unexpected type of argument in function to: only a quantity can be converted, and only to a unit (actual: {})",
            other.type_name()
        )),
    }
}

fn to_best(run: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
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
        let target = target_unit(run, choice)?;
        let converted = quantity.convert(&mut run.meter, &target)?;
        let count = converted.denormalize(&mut run.meter, converted.required()?)?;
        // As for prefixes, prefers numbers around 16.
        let size = (libm::log10(ops::magnitude(&count).unwrap_or(0.0).max(1e-300)) - 1.2).abs();
        if best.as_ref().is_none_or(|(known, _)| size < *known) {
            best = Some((size, converted));
        }
    }
    best.map(|(_, unit)| Value::unit(unit))
        .ok_or_else(|| MathError::new("toBest needs at least one unit to choose from"))
}

fn split_unit(run: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let Value::Unit(quantity) = &args[0] else {
        return Err(type_error("splitUnit", &args[0]));
    };
    let targets = args[1].as_matrix("splitUnit")?.data.clone();
    run.meter.cells(2 * targets.len())?;
    let mut rest = quantity.as_ref().clone();
    let mut parts = Vec::with_capacity(targets.len());
    for (at, target) in targets.iter().enumerate() {
        let target = target_unit(run, target)?;
        let meter = &mut run.meter;
        let mut count = rest.count_in(meter, &target)?;
        if at + 1 < targets.len() {
            // Without this, a rounding error could lose a whole unit.
            let exact = count.number("splitUnit")?;
            let nearest = exact.round();
            count = Value::Number(if crate::number::real::nearly_equal(exact, nearest) {
                nearest
            } else {
                exact.trunc()
            });
        }
        let amount = target.normalize(meter, &count)?;
        let left = ops::subtract(meter, rest.required()?, &amount)?;
        parts.push(Value::unit(Unit {
            fixed_prefix: true,
            ..target.with(Some(amount))
        }));
        rest = rest.with(Some(left));
    }
    Ok(Value::list(parts))
}
