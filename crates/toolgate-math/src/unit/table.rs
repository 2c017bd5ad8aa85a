//! The table of units, by name.

use std::sync::LazyLock;

use super::prefix::{self, PLAIN, UnitPrefix};
use super::quantity::{BASES, BaseQuantity};
use crate::name_map::NameMap;

#[derive(Debug)]
pub(crate) struct UnitDef {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    /// The zero point in 900ths of a kelvin, which is a whole number for
    /// both Celsius and Fahrenheit.
    pub(crate) offset: i32,
    pub(crate) base: &'static BaseQuantity,
    pub(crate) prefixes: Vec<&'static [UnitPrefix]>,
}

// Reads a row of `units.tsv`: names, size in base units, quantity, prefix sets, and zero point
// if it isn't 0.
fn parse_row(row: &'static str) -> Option<impl Iterator<Item = UnitDef>> {
    let mut columns = row.split('\t');
    let names = columns.next()?;
    let value = columns.next()?.parse().ok()?;
    let quantity = columns.next()?;
    let base = BASES.iter().find(|base| base.name == quantity)?;
    let prefixes = prefix::find_sets(columns.next()?);
    let offset = columns.next().map_or(Some(0), |zero| zero.parse().ok())?;
    Some(names.split(' ').map(move |name| UnitDef {
        name,
        value,
        offset,
        base,
        prefixes: prefixes.clone(),
    }))
}

static UNITS: LazyLock<Vec<UnitDef>> = LazyLock::new(|| {
    let rows = include_str!("units.tsv").lines();
    rows.filter_map(parse_row).flatten().collect()
});

static BY_NAME: LazyLock<NameMap<&'static UnitDef>> =
    LazyLock::new(|| UNITS.iter().map(|unit| (unit.name, unit)).collect());

pub(crate) fn all() -> impl Iterator<Item = &'static UnitDef> {
    UNITS.iter()
}

pub(crate) fn find(name: &str) -> Option<(&'static UnitDef, &'static UnitPrefix)> {
    // The whole name first: `min` is a minute, not a milli-inch.
    if let Some(unit) = BY_NAME.get(name) {
        return Some((*unit, &PLAIN[0]));
    }
    // No prefix has more than six letters.
    (1..=6.min(name.len()))
        .filter(|&at| name.is_char_boundary(at))
        .find_map(|at| {
            let (prefix, rest) = name.split_at(at);
            let unit = *BY_NAME.get(rest)?;
            let prefix = unit
                .prefixes
                .iter()
                .copied()
                .flatten()
                .find(|known| known.name == prefix)?;
            Some((unit, prefix))
        })
}
