//! The units by their names.

use std::sync::LazyLock;

use super::prefix::{self, PLAIN, Prefix};
use super::quantity::{BASES, Base};
use crate::hash::NameMap;

#[derive(Debug)]
pub(crate) struct UnitDef {
    pub(crate) name: &'static str,
    /// How many base units it is.
    pub(crate) value: f64,
    /// Where its zero lies, in 900ths of a kelvin: whole numbers for both Celsius and Fahrenheit.
    pub(crate) offset: i32,
    pub(crate) base: &'static Base,
    pub(crate) prefixes: Vec<&'static [Prefix]>,
}

/// A row of `units.tsv`: names, size in base units, quantity, sets of prefixes, and zero if it isn't 0.
fn read(row: &'static str) -> Option<impl Iterator<Item = UnitDef>> {
    let mut columns = row.split('\t');
    let names = columns.next()?;
    let value = columns.next()?.parse().ok()?;
    let quantity = columns.next()?;
    let base = BASES.iter().find(|base| base.name == quantity)?;
    let prefixes = prefix::named(columns.next()?);
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
    rows.filter_map(read).flatten().collect()
});

static BY_NAME: LazyLock<NameMap<&'static UnitDef>> =
    LazyLock::new(|| UNITS.iter().map(|unit| (unit.name, unit)).collect());

pub(crate) fn all() -> impl Iterator<Item = &'static UnitDef> {
    UNITS.iter()
}

pub(crate) fn find(name: &str) -> Option<(&'static UnitDef, &'static Prefix)> {
    if let Some(unit) = BY_NAME.get(name) {
        return Some((*unit, &PLAIN[0]));
    }
    // No prefix is longer than six letters.
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
