//! The physical quantities: their dimensions and the unit each is shown in, one
//! line each in `quantities.tsv`.

use std::sync::LazyLock;

use super::{DIMENSIONS, Dimensions};

#[derive(Debug)]
pub(crate) struct BaseQuantity {
    pub(crate) index: usize,
    pub(crate) name: &'static str,
    pub(crate) dimensions: [i8; DIMENSIONS],
    /// The unit and prefix a simplified value is shown in.
    pub(crate) unit: Option<(&'static str, &'static str)>,
}

impl BaseQuantity {
    pub(crate) fn dimensions(&self) -> Dimensions {
        self.dimensions.map(f64::from)
    }
}

/// The columns are the name; the powers of mass, length, time, current, temperature, luminous
/// intensity, amount, angle and bits; and the prefix and unit.
pub(crate) static BASES: LazyLock<Vec<BaseQuantity>> = LazyLock::new(|| {
    let rows = include_str!("quantities.tsv").lines().enumerate();
    rows.filter_map(|(index, row)| {
        let (name, rest) = row.split_once('\t')?;
        let (powers, unit) = rest.split_once('\t')?;
        let mut dimensions = [0; DIMENSIONS];
        for (dimension, power) in dimensions.iter_mut().zip(powers.split(' ')) {
            *dimension = power.parse().ok()?;
        }
        Some(BaseQuantity {
            index,
            name,
            dimensions,
            unit: unit.split_once(' '),
        })
    })
    .collect()
});
