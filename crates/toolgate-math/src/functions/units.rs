//! Making quantities, and showing them in other units.

use super::Body::{Many, Two};
use super::Row;
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::eval::Run;
use crate::ops;
use crate::unit::{self, Unit};
use crate::value::{Value, type_error};

pub(super) const TABLE: &[Row] = &[
    ("unit", Many(units)),
    ("to", Two(convert)),
    ("toBest", Many(to_best)),
    ("splitUnit", Many(split_unit)),
];

pub(super) fn target_unit(run: &mut Run<'_>, target: &Value) -> Result<Unit> {
    match target {
        Value::Unit(unit) => Ok(unit.as_ref().clone()),
        Value::Text(text) => unit::parse(&mut run.meter, text, &mut run.system),
        other => Err(type_error("to", other)),
    }
}

fn units(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    match args {
        [Value::Matrix(matrix)] => {
            run.meter.cells(matrix.data.len())?;
            let cells: Result<Vec<Value>> = matrix
                .data
                .iter()
                .map(|value| one_unit(run, value))
                .collect();
            Ok(Value::matrix(crate::matrix::Matrix::new(
                matrix.size.clone(),
                cells?,
            )))
        }
        [value] => one_unit(run, value),
        [value, name, ..] => {
            let unit = target_unit(run, name)?;
            if unit.value.is_some() {
                return Err(Error::new(
                    "The second argument of unit must be a unit without a number",
                ));
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
        [] => Err(Error::new("Too few arguments in function unit")),
    }
}

fn one_unit(run: &mut Run<'_>, value: &Value) -> Result<Value> {
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

/// `x to unit`, also for each cell of a matrix.
pub(crate) fn convert(meter: &mut Meter, value: &Value, target: &Value) -> Result<Value> {
    match (value, target) {
        (Value::Matrix(matrix), target) => Ok(Value::matrix(
            matrix.map(meter, |meter, cell| convert(meter, cell, target))?,
        )),
        (Value::Unit(value), Value::Unit(target)) => Ok(Value::unit(value.convert(meter, target)?)),
        (Value::Unit(value), Value::Text(text)) => {
            let target = unit::parse(meter, text, &mut unit::System::default())?;
            Ok(Value::unit(value.convert(meter, &target)?))
        }
        (Value::Unit(_), other) | (other, _) => Err(Error::new(format!(
            "Unexpected type of argument in function to: only a quantity can be converted, and only to a unit (actual: {})",
            other.type_name()
        ))),
    }
}

fn to_best(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
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
        // The same taste as for prefixes: numbers around 16.
        let size = (libm::log10(ops::magnitude(&count).unwrap_or(0.0).max(1e-300)) - 1.2).abs();
        if best.as_ref().is_none_or(|(known, _)| size < *known) {
            best = Some((size, converted));
        }
    }
    best.map(|(_, unit)| Value::unit(unit))
        .ok_or_else(|| Error::new("toBest needs at least one unit to choose from"))
}

fn split_unit(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
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
            // Rounding errors must not steal a whole unit.
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
