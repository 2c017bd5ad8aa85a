//! Quantities with units: `5 km / 2 hours`.

mod prefix;
mod quantity;
pub(crate) mod table;
mod text;

use std::sync::Arc;

use crate::prelude::*;
use prefix::UnitPrefix;
use quantity::{BASES, BaseQuantity};
use table::UnitDef;

pub(crate) use text::{format, parse};

pub(crate) const DIMENSIONS: usize = 9;
pub(crate) type Dimensions = [f64; DIMENSIONS];

/// One factor of a unit: `cm^2`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitFactor {
    pub(crate) unit: &'static UnitDef,
    pub(crate) prefix: &'static UnitPrefix,
    pub(crate) power: f64,
}

impl UnitFactor {
    fn new(unit: &'static UnitDef, prefix: &'static UnitPrefix, power: f64) -> Self {
        Self {
            unit,
            prefix,
            power,
        }
    }

    fn factor(&self) -> f64 {
        let one = self.unit.value * self.prefix.value;
        if self.power == 1.0 {
            one
        } else {
            libm::pow(one, self.power)
        }
    }
}

/// A value in base units, with the units to show it in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    /// In base units, without the offset of a temperature scale. `None` for a bare
    /// unit such as `cm`.
    pub(crate) value: Option<Value>,
    pub(crate) parts: Vec<UnitFactor>,
    pub(crate) dimensions: Dimensions,
    /// The prefix was chosen by the user, so the format keeps it.
    pub(crate) fixed_prefix: bool,
    /// The units result from a product, so the format may merge them into a simpler unit.
    pub(crate) simplify: bool,
}

/// The preferred unit of each quantity when units are merged: the one that the expression used
/// last, or else the one in `quantities.tsv`.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitSystem {
    // A list, because most expressions name few units or none.
    named: Vec<(&'static UnitDef, &'static UnitPrefix)>,
}

impl UnitSystem {
    pub(crate) fn learn(&mut self, unit: &'static UnitDef, prefix: &'static UnitPrefix) {
        match self
            .named
            .iter_mut()
            .find(|(known, _)| known.base.index == unit.base.index)
        {
            Some(known) => *known = (unit, prefix),
            None => self.named.push((unit, prefix)),
        }
    }

    fn unit_of(&self, base: &BaseQuantity) -> Option<(&'static UnitDef, &'static UnitPrefix)> {
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
    pub(crate) fn bare(unit: &'static UnitDef, prefix: &'static UnitPrefix) -> Self {
        Self {
            value: None,
            parts: vec![UnitFactor::new(unit, prefix, 1.0)],
            dimensions: unit.base.dimensions(),
            ..Self::default()
        }
    }

    pub(crate) fn dimensionless(value: Value) -> Self {
        Self {
            value: Some(value),
            ..Self::default()
        }
    }

    pub(crate) fn with_value(&self, value: Option<Value>) -> Self {
        Self {
            value,
            ..self.clone()
        }
    }

    pub(crate) fn normalize(&self, budget: &mut BudgetTracker, value: &Value) -> Result<Value> {
        self.parts.iter().try_fold(value.clone(), |value, part| {
            ops::multiply(budget, &value, &exact_factor(&value, part.factor()))
        })
    }

    pub(crate) fn denormalize(&self, budget: &mut BudgetTracker, value: &Value) -> Result<Value> {
        self.parts.iter().try_fold(value.clone(), |value, part| {
            ops::divide(budget, &value, &exact_factor(&value, part.factor()))
        })
    }

    // The value in base units. A bare unit counts as one.
    fn base_amount(&self, budget: &mut BudgetTracker) -> Result<Value> {
        match &self.value {
            Some(value) => Ok(value.clone()),
            None => self.normalize(budget, &Value::Number(1.0)),
        }
    }

    pub(crate) fn is_compatible(&self, other: &Self) -> bool {
        self.dimensions
            .iter()
            .zip(&other.dimensions)
            .all(|(a, b)| (a - b).abs() < 1e-12)
    }

    fn is_dimensionless(&self) -> bool {
        self.is_compatible(&Self::default())
    }

    pub(crate) fn is_angle(&self) -> bool {
        self.has_dimensions_of(&BASES[7])
    }

    fn has_dimensions_of(&self, base: &BaseQuantity) -> bool {
        // Roots and powers leave rounding errors in the exponents.
        let mut dimensions = self.dimensions.iter().zip(base.dimensions());
        dimensions.all(|(a, b)| (a - b).abs() < 1e-12)
    }

    /// The value, or an error for a bare unit.
    pub(crate) fn require_value(&self) -> Result<&Value> {
        self.value.as_ref().ok_or_else(|| {
            MathError::new(format!(
                "The unit {} has no value; write a number in front of it",
                text::units_text(&self.parts)
            ))
        })
    }

    /// The product with `other`, or the quotient if `sign` is -1.
    pub(crate) fn combine(
        &self,
        budget: &mut BudgetTracker,
        other: &Self,
        sign: f64,
    ) -> Result<Value> {
        budget.charge_cells(self.parts.len() + other.parts.len())?;
        let mut result = self.clone();
        for (own, their) in result.dimensions.iter_mut().zip(&other.dimensions) {
            *own += sign * their;
        }
        result
            .parts
            .extend(other.parts.iter().map(|part| UnitFactor {
                power: part.power * sign,
                ..*part
            }));
        if self.value.is_some() || other.value.is_some() {
            let (a, b) = (self.base_amount(budget)?, other.base_amount(budget)?);
            result.value = Some(if sign > 0.0 {
                ops::multiply(budget, &a, &b)?
            } else {
                ops::divide(budget, &a, &b)?
            });
        }
        result.simplify = true;
        Ok(result.into_value())
    }

    pub(crate) fn scale(&self, budget: &mut BudgetTracker, factor: &Value) -> Result<Value> {
        let value = match &self.value {
            Some(value) => ops::multiply(budget, value, factor)?,
            None => self.normalize(budget, factor)?,
        };
        Ok(self.with_value(Some(value)).into_value())
    }

    pub(crate) fn power(&self, budget: &mut BudgetTracker, exponent: f64) -> Result<Value> {
        let mut result = self.clone();
        for dimension in &mut result.dimensions {
            *dimension *= exponent;
        }
        for part in &mut result.parts {
            part.power *= exponent;
        }
        if let Some(value) = &self.value {
            result.value = Some(ops::power(budget, value, &Value::Number(exponent))?);
        }
        result.simplify = true;
        Ok(result.into_value())
    }

    // If all units cancel out, only the number is left.
    fn into_value(self) -> Value {
        if self.is_dimensionless()
            && let Some(value) = self.value
        {
            return value;
        }
        Value::Unit(Arc::new(self))
    }

    pub(crate) fn convert(&self, budget: &mut BudgetTracker, target: &Self) -> Result<Self> {
        if !self.is_compatible(target) {
            return fail(format!(
                "Units do not match ('{}' != '{}')",
                text::units_text(&target.parts),
                text::units_text(&self.parts)
            ));
        }
        if target.value.is_some() {
            return fail("Cannot convert to a unit with a value");
        }
        let mut value = self.base_amount(budget)?;
        let shift = self.offset() - target.offset();
        if shift != 0 {
            value = ops::add(
                budget,
                &value,
                &exact_factor(&value, f64::from(shift) / 900.0),
            )?;
        }
        Ok(Self {
            value: Some(value),
            fixed_prefix: true,
            simplify: false,
            ..target.clone()
        })
    }

    // Only a plain temperature has a zero point. A gradient such as degC/m has none.
    fn offset(&self) -> i32 {
        match self.parts.as_slice() {
            [part] if part.power == 1.0 => part.unit.offset,
            _ => 0,
        }
    }

    pub(crate) fn count_in(&self, budget: &mut BudgetTracker, target: &Self) -> Result<Value> {
        let converted = self.convert(budget, target)?;
        converted.denormalize(budget, converted.require_value()?)
    }
}

// Converts a factor to the type of `value`, so that a fraction of an inch stays a fraction.
fn exact_factor(value: &Value, factor: f64) -> Value {
    match value {
        Value::Big(_) => Value::big(crate::number::decimal::Decimal::from_number(factor)),
        Value::Fraction(_) => match crate::number::fraction::Fraction::from_number(factor) {
            Some(fraction) => Value::fraction(fraction),
            None => Value::Number(factor),
        },
        _ => Value::Number(factor),
    }
}
