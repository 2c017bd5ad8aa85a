//! Mathematical and physical constants, one line each in `constants.tsv`.

use crate::budget::Budget;
use crate::number::Complex;
use crate::prelude::*;
use crate::unit;
use crate::unit::UnitSystem;

fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    super::parse_table(include_str!("constants.tsv"))
}

pub(super) fn values() -> impl Iterator<Item = (&'static str, Value)> {
    let mut budget = BudgetTracker::new(&Budget::default());
    rows().filter_map(move |(name, text, _)| {
        let value = match (text, text.parse()) {
            ("i", _) => Value::Complex(Complex::I),
            (_, Ok(number)) => Value::Number(number),
            _ => {
                let mut quantity =
                    unit::parse(&mut budget, text, &mut UnitSystem::default()).ok()?;
                quantity.fixed_prefix = true;
                Value::unit(quantity)
            }
        };
        Some((name, value))
    })
}

/// Lists the name, the kind or value, and the help of each constant.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    rows().map(|(name, text, help)| match text {
        "i" => (name, "complex number", help),
        _ if text.parse::<f64>().is_ok() => (name, "number", help),
        _ => (name, text, help),
    })
}
