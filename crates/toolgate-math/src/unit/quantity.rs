//! The physical quantities: what they are made of, and the unit each is shown in.

use super::{DIMENSIONS, Dimensions};

#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) index: usize,
    pub(crate) name: &'static str,
    pub(crate) dimensions: [i8; DIMENSIONS],
    /// The unit and prefix a simplified value is shown in.
    pub(crate) unit: Option<(&'static str, &'static str)>,
}

impl Base {
    pub(crate) fn dimensions(&self) -> Dimensions {
        self.dimensions.map(f64::from)
    }
}

const fn base(
    index: usize,
    name: &'static str,
    dimensions: [i8; DIMENSIONS],
    unit: &'static str,
) -> Base {
    let unit = if unit.is_empty() {
        None
    } else {
        Some(("", unit))
    };
    Base {
        index,
        name,
        dimensions,
        unit,
    }
}

// Mass, length, time, current, temperature, light, amount, angle, bits.
pub(crate) static BASES: [Base; 24] = [
    Base {
        index: 0,
        name: "mass",
        dimensions: [1, 0, 0, 0, 0, 0, 0, 0, 0],
        unit: Some(("k", "g")),
    },
    base(1, "length", [0, 1, 0, 0, 0, 0, 0, 0, 0], "m"),
    base(2, "time", [0, 0, 1, 0, 0, 0, 0, 0, 0], "s"),
    base(3, "current", [0, 0, 0, 1, 0, 0, 0, 0, 0], "A"),
    base(4, "temperature", [0, 0, 0, 0, 1, 0, 0, 0, 0], "K"),
    base(5, "luminous intensity", [0, 0, 0, 0, 0, 1, 0, 0, 0], "cd"),
    base(6, "amount of substance", [0, 0, 0, 0, 0, 0, 1, 0, 0], "mol"),
    base(7, "angle", [0, 0, 0, 0, 0, 0, 0, 1, 0], "rad"),
    base(8, "information", [0, 0, 0, 0, 0, 0, 0, 0, 1], "bits"),
    base(9, "force", [1, 1, -2, 0, 0, 0, 0, 0, 0], "N"),
    base(10, "area", [0, 2, 0, 0, 0, 0, 0, 0, 0], ""),
    base(11, "volume", [0, 3, 0, 0, 0, 0, 0, 0, 0], ""),
    base(12, "energy", [1, 2, -2, 0, 0, 0, 0, 0, 0], "J"),
    base(13, "power", [1, 2, -3, 0, 0, 0, 0, 0, 0], "W"),
    base(14, "pressure", [1, -1, -2, 0, 0, 0, 0, 0, 0], "Pa"),
    base(15, "electric charge", [0, 0, 1, 1, 0, 0, 0, 0, 0], "C"),
    base(
        16,
        "electric capacitance",
        [-1, -2, 4, 2, 0, 0, 0, 0, 0],
        "F",
    ),
    base(17, "electric potential", [1, 2, -3, -1, 0, 0, 0, 0, 0], "V"),
    base(
        18,
        "electric resistance",
        [1, 2, -3, -2, 0, 0, 0, 0, 0],
        "ohm",
    ),
    base(
        19,
        "electric inductance",
        [1, 2, -2, -2, 0, 0, 0, 0, 0],
        "H",
    ),
    base(
        20,
        "electric conductance",
        [-1, -2, 3, 2, 0, 0, 0, 0, 0],
        "S",
    ),
    base(21, "magnetic flux", [1, 2, -2, -1, 0, 0, 0, 0, 0], "Wb"),
    base(
        22,
        "magnetic flux density",
        [1, 0, -2, -1, 0, 0, 0, 0, 0],
        "T",
    ),
    base(23, "frequency", [0, 0, -1, 0, 0, 0, 0, 0, 0], "Hz"),
];

pub(super) const MASS: usize = 0;
pub(super) const LENGTH: usize = 1;
pub(super) const TIME: usize = 2;
pub(super) const CURRENT: usize = 3;
pub(super) const TEMPERATURE: usize = 4;
pub(super) const LUMINOUS_INTENSITY: usize = 5;
pub(super) const AMOUNT_OF_SUBSTANCE: usize = 6;
pub(super) const ANGLE: usize = 7;
pub(super) const BIT: usize = 8;
pub(super) const FORCE: usize = 9;
pub(super) const SURFACE: usize = 10;
pub(super) const VOLUME: usize = 11;
pub(super) const ENERGY: usize = 12;
pub(super) const POWER: usize = 13;
pub(super) const PRESSURE: usize = 14;
pub(super) const ELECTRIC_CHARGE: usize = 15;
pub(super) const ELECTRIC_CAPACITANCE: usize = 16;
pub(super) const ELECTRIC_POTENTIAL: usize = 17;
pub(super) const ELECTRIC_RESISTANCE: usize = 18;
pub(super) const ELECTRIC_INDUCTANCE: usize = 19;
pub(super) const ELECTRIC_CONDUCTANCE: usize = 20;
pub(super) const MAGNETIC_FLUX: usize = 21;
pub(super) const MAGNETIC_FLUX_DENSITY: usize = 22;
pub(super) const FREQUENCY: usize = 23;
