//! Quantities with units: `5 km / 2 hours`.

mod prefix;
mod quantity;
pub(crate) mod table;
mod text;

use std::sync::Arc;

use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::ops;
use crate::value::Value;
use prefix::Prefix;
use quantity::{BASES, Base};
use table::UnitDef;

pub(crate) use text::{format, parse};

pub(crate) const DIMENSIONS: usize = 9;
/// The power of each base dimension.
pub(crate) type Dimensions = [f64; DIMENSIONS];

/// One factor of a unit: `cm^2`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) unit: &'static UnitDef,
    pub(crate) prefix: &'static Prefix,
    pub(crate) power: f64,
}

impl Part {
    fn factor(&self) -> f64 {
        let one = self.unit.value * self.prefix.value;
        if self.power == 1.0 {
            one
        } else {
            libm::pow(one, self.power)
        }
    }
}

/// A value in base units together with the units to show it in.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// In base units, without the offset of a temperature scale; a bare unit such as `cm` has none.
    pub(crate) value: Option<Value>,
    pub(crate) parts: Vec<Part>,
    pub(crate) dimensions: Dimensions,
    /// The prefix was asked for, so that the format keeps it.
    pub(crate) fixed_prefix: bool,
    /// The units came out of a product, so that the format may merge them into a simpler one.
    pub(crate) simplify: bool,
}

/// The unit each quantity is shown in when units are merged. It follows the units an expression names.
#[derive(Clone, Debug, Default)]
pub(crate) struct System {
    /// The last unit named of each quantity. Most expressions name none or two.
    named: Vec<(&'static UnitDef, &'static Prefix)>,
}

impl System {
    /// Remembers a unit that the expression names.
    pub(crate) fn learn(&mut self, unit: &'static UnitDef, prefix: &'static Prefix) {
        match self
            .named
            .iter_mut()
            .find(|(known, _)| known.base.index == unit.base.index)
        {
            Some(known) => *known = (unit, prefix),
            None => self.named.push((unit, prefix)),
        }
    }

    fn unit_of(&self, base: &Base) -> Option<(&'static UnitDef, &'static Prefix)> {
        let named = self
            .named
            .iter()
            .find(|(unit, _)| unit.base.index == base.index);
        named.copied().or_else(|| {
            let (prefix, unit) = base.unit?;
            table::find(&format!("{prefix}{unit}"))
        })
    }
}

impl Unit {
    /// A unit without a number.
    pub(crate) fn bare(unit: &'static UnitDef, prefix: &'static Prefix) -> Self {
        Self {
            value: None,
            parts: vec![Part {
                unit,
                prefix,
                power: 1.0,
            }],
            dimensions: unit.base.dimensions(),
            fixed_prefix: false,
            simplify: false,
        }
    }

    /// A number as a quantity without units.
    pub(crate) fn plain(value: Value) -> Self {
        Self {
            value: Some(value),
            parts: Vec::new(),
            dimensions: [0.0; DIMENSIONS],
            fixed_prefix: false,
            simplify: false,
        }
    }

    pub(crate) fn with(&self, value: Option<Value>) -> Self {
        Self {
            value,
            ..self.clone()
        }
    }

    /// `value` of these units, in base units.
    pub(crate) fn normalize(&self, meter: &mut Meter, value: &Value) -> Result<Value> {
        self.parts.iter().try_fold(value.clone(), |value, part| {
            ops::multiply(meter, &value, &exact(&value, part.factor()))
        })
    }

    /// A value in base units as a count of these units.
    pub(crate) fn denormalize(&self, meter: &mut Meter, value: &Value) -> Result<Value> {
        self.parts.iter().try_fold(value.clone(), |value, part| {
            ops::divide(meter, &value, &exact(&value, part.factor()))
        })
    }

    /// The value in base units; a bare unit counts as one of it.
    fn amount(&self, meter: &mut Meter) -> Result<Value> {
        match &self.value {
            Some(value) => Ok(value.clone()),
            None => self.normalize(meter, &Value::Number(1.0)),
        }
    }

    pub(crate) fn is_compatible(&self, other: &Self) -> bool {
        self.dimensions
            .iter()
            .zip(&other.dimensions)
            .all(|(a, b)| (a - b).abs() < 1e-12)
    }

    fn is_plain(&self) -> bool {
        self.dimensions.iter().all(|power| power.abs() < 1e-12)
    }

    pub(crate) fn is_angle(&self) -> bool {
        self.is_of(&BASES[7])
    }

    fn is_of(&self, base: &Base) -> bool {
        self.dimensions
            .iter()
            .zip(base.dimensions)
            .all(|(a, b)| (a - f64::from(b)).abs() < 1e-12)
    }

    /// The value, for an operation that needs one.
    pub(crate) fn required(&self) -> Result<&Value> {
        self.value.as_ref().ok_or_else(|| {
            Error::new(format!(
                "The unit {} has no value; write a number in front of it",
                text::units(&self.parts)
            ))
        })
    }

    pub(crate) fn multiply(&self, meter: &mut Meter, other: &Self) -> Result<Value> {
        self.combine(meter, other, 1.0)
    }

    pub(crate) fn divide(&self, meter: &mut Meter, other: &Self) -> Result<Value> {
        self.combine(meter, other, -1.0)
    }

    fn combine(&self, meter: &mut Meter, other: &Self, sign: f64) -> Result<Value> {
        meter.cells(self.parts.len() + other.parts.len())?;
        let mut result = self.clone();
        for (own, their) in result.dimensions.iter_mut().zip(&other.dimensions) {
            *own += sign * their;
        }
        result.parts.extend(other.parts.iter().map(|part| Part {
            power: part.power * sign,
            ..*part
        }));
        if self.value.is_some() || other.value.is_some() {
            let (a, b) = (self.amount(meter)?, other.amount(meter)?);
            result.value = Some(if sign > 0.0 {
                ops::multiply(meter, &a, &b)?
            } else {
                ops::divide(meter, &a, &b)?
            });
        }
        result.simplify = true;
        Ok(result.into_value())
    }

    /// The product with a number: units stay as they are.
    pub(crate) fn scale(&self, meter: &mut Meter, factor: &Value) -> Result<Value> {
        let value = match &self.value {
            Some(value) => ops::multiply(meter, value, factor)?,
            None => self.normalize(meter, factor)?,
        };
        Ok(self.with(Some(value)).into_value())
    }

    pub(crate) fn power(&self, meter: &mut Meter, exponent: f64) -> Result<Value> {
        let mut result = self.clone();
        for dimension in &mut result.dimensions {
            *dimension *= exponent;
        }
        for part in &mut result.parts {
            part.power *= exponent;
        }
        if let Some(value) = &self.value {
            result.value = Some(ops::power(meter, value, &Value::Number(exponent))?);
        }
        result.simplify = true;
        Ok(result.into_value())
    }

    /// A quantity whose units cancel out is its number.
    fn into_value(self) -> Value {
        if self.is_plain()
            && let Some(value) = self.value
        {
            return value;
        }
        Value::Unit(Arc::new(self))
    }

    pub(crate) fn convert(&self, meter: &mut Meter, target: &Self) -> Result<Self> {
        if !self.is_compatible(target) {
            return Err(Error::new(format!(
                "Units do not match ('{}' != '{}')",
                text::units(&target.parts),
                text::units(&self.parts)
            )));
        }
        if target.value.is_some() {
            return Err(Error::new("Cannot convert to a unit with a value"));
        }
        let mut value = self.amount(meter)?;
        let shift = self.offset() - target.offset();
        if shift != 0 {
            value = ops::add(meter, &value, &exact(&value, f64::from(shift) / 900.0))?;
        }
        Ok(Self {
            value: Some(value),
            fixed_prefix: true,
            simplify: false,
            ..target.clone()
        })
    }

    fn offset(&self) -> i32 {
        match self.parts.as_slice() {
            [part] if part.power == 1.0 => part.unit.offset,
            _ => 0,
        }
    }

    /// The count of `target` units, as a plain value.
    pub(crate) fn count_in(&self, meter: &mut Meter, target: &Self) -> Result<Value> {
        let converted = self.convert(meter, target)?;
        converted.denormalize(meter, converted.required()?)
    }
}

/// A factor in the number kind of `value`, so that a fraction of an inch stays a fraction.
fn exact(value: &Value, factor: f64) -> Value {
    match value {
        Value::Big(_) => Value::big(crate::number::decimal::Decimal::from_number(factor)),
        Value::Fraction(_) => match crate::number::fraction::Fraction::from_number(factor) {
            Some(fraction) => Value::fraction(fraction),
            None => Value::Number(factor),
        },
        _ => Value::Number(factor),
    }
}
