//! The units by their names.

use std::sync::LazyLock;

use super::prefix::{
    BINARY_LONG, BINARY_SHORT, BTU, CUBIC, LONG, NONE, PLAIN, Prefix, Prefixes, SHORT, SHORTLONG,
    SQUARED,
};
use super::quantity::{
    AMOUNT_OF_SUBSTANCE, ANGLE, BASES, BIT, Base, CURRENT, ELECTRIC_CAPACITANCE, ELECTRIC_CHARGE,
    ELECTRIC_CONDUCTANCE, ELECTRIC_INDUCTANCE, ELECTRIC_POTENTIAL, ELECTRIC_RESISTANCE, ENERGY,
    FORCE, FREQUENCY, LENGTH, LUMINOUS_INTENSITY, MAGNETIC_FLUX, MAGNETIC_FLUX_DENSITY, MASS,
    POWER, PRESSURE, SURFACE, TEMPERATURE, TIME, VOLUME,
};
use crate::hash::NameMap;

/// A unit by one of its names.
#[derive(Debug)]
pub(crate) struct UnitDef {
    pub(crate) name: &'static str,
    /// How many base units it is.
    pub(crate) value: f64,
    /// Where its zero lies, in 900ths of a kelvin: whole numbers for both Celsius and Fahrenheit.
    pub(crate) offset: i32,
    pub(crate) base: &'static Base,
    pub(crate) prefixes: &'static [&'static [Prefix]],
}

/// Names with spaces between them, size in base units, quantity, prefixes, zero.
struct Row(&'static str, f64, usize, Prefixes, i32);

const fn row(names: &'static str, value: f64, base: usize, prefixes: Prefixes) -> Row {
    Row(names, value, base, prefixes, 0)
}

const CELSIUS: i32 = 245_835;
const FAHRENHEIT: i32 = 229_835;

static ROWS: &[Row] = &[
    row("meter meters", 1.0, LENGTH, LONG),
    row("inch in inches", 0.0254, LENGTH, NONE),
    row("foot ft feet", 0.3048, LENGTH, NONE),
    row("yard yd yards", 0.9144, LENGTH, NONE),
    row("mile mi miles", 1609.344, LENGTH, NONE),
    row("link li links", 0.201168, LENGTH, NONE),
    row("rod rods", 5.0292, LENGTH, NONE),
    row("chain ch chains", 20.1168, LENGTH, NONE),
    row("angstrom angstroms", 1e-10, LENGTH, NONE),
    row("m", 1.0, LENGTH, SHORT),
    row("rd", 5.02921, LENGTH, NONE),
    row("mil", 0.0000254, LENGTH, NONE),
    row("m2", 1.0, SURFACE, SQUARED),
    row("sqin", 0.00064516, SURFACE, NONE),
    row("sqft sqfeet", 0.09290304, SURFACE, NONE),
    row("sqyd sqyard", 0.83612736, SURFACE, NONE),
    row("sqmi sqmile sqmiles", 2589988.110336, SURFACE, NONE),
    row("sqrd", 25.29295, SURFACE, NONE),
    row("sqch", 404.6873, SURFACE, NONE),
    row("sqmil", 6.4516e-10, SURFACE, NONE),
    row("acre acres", 4046.86, SURFACE, NONE),
    row("hectare hectares", 10000.0, SURFACE, NONE),
    row("m3", 1.0, VOLUME, CUBIC),
    row("L l lt", 0.001, VOLUME, SHORT),
    row("litre litres liter liters", 0.001, VOLUME, LONG),
    row("cuin", 0.000016387064, VOLUME, NONE),
    row("cuft", 0.028316846592, VOLUME, NONE),
    row("cuyd", 0.764554857984, VOLUME, NONE),
    row("teaspoon teaspoons", 0.000005, VOLUME, NONE),
    row("tablespoon tablespoons", 0.000015, VOLUME, NONE),
    row("drop gtt gtts", 5e-8, VOLUME, NONE),
    row("minim minims", 6.1611519921875e-8, VOLUME, NONE),
    row(
        "fluiddram fldr fluiddrams",
        0.0000036966911953125,
        VOLUME,
        NONE,
    ),
    row(
        "fluidounce floz fluidounces",
        0.0000295735295625,
        VOLUME,
        NONE,
    ),
    row("gill gi gills", 0.00011829411825, VOLUME, NONE),
    row("cc", 0.000001, VOLUME, NONE),
    row("cup cp cups", 0.0002365882365, VOLUME, NONE),
    row("pint pt pints", 0.000473176473, VOLUME, NONE),
    row("quart qt quarts", 0.000946352946, VOLUME, NONE),
    row("gallon gal gallons", 0.003785411784, VOLUME, NONE),
    row("beerbarrel bbl beerbarrels", 0.117347765304, VOLUME, NONE),
    row("oilbarrel obl oilbarrels", 0.158987294928, VOLUME, NONE),
    row("hogshead hogsheads", 0.238480942392, VOLUME, NONE),
    row("g", 0.001, MASS, SHORT),
    row("gram grams", 0.001, MASS, LONG),
    row("ton tons", 907.18474, MASS, SHORT),
    row("t", 1000.0, MASS, SHORT),
    row("tonne tonnes", 1000.0, MASS, LONG),
    row("grain gr grains", 0.00006479891, MASS, NONE),
    row("dram dr drams", 0.0017718451953125, MASS, NONE),
    row("ounce oz ounces", 0.028349523125, MASS, NONE),
    row("poundmass lbm poundmasses lb lbs", 0.45359237, MASS, NONE),
    row("hundredweight cwt hundredweights", 45.359237, MASS, NONE),
    row("stick sticks", 0.115, MASS, NONE),
    row("stone", 6.35029318, MASS, NONE),
    row("s", 1.0, TIME, SHORT),
    row("min minute minutes mins", 60.0, TIME, NONE),
    row("h hour hours hr hrs", 3600.0, TIME, NONE),
    row("second sec seconds secs", 1.0, TIME, LONG),
    row("day days", 86400.0, TIME, NONE),
    row("week weeks", 604800.0, TIME, NONE),
    row("month months", 2629800.0, TIME, NONE),
    row("year years", 31557600.0, TIME, NONE),
    row("decade decades", 315576000.0, TIME, NONE),
    row("century centuries", 3155760000.0, TIME, NONE),
    row("millennium millennia", 31557600000.0, TIME, NONE),
    row("hertz", 1.0, FREQUENCY, LONG),
    row("Hz", 1.0, FREQUENCY, SHORT),
    row("rad", 1.0, ANGLE, SHORT),
    row("radian radians", 1.0, ANGLE, LONG),
    row("deg", 0.017453292519943295, ANGLE, SHORT),
    row("degree degrees", 0.017453292519943295, ANGLE, LONG),
    row("grad", 0.015707963267948967, ANGLE, SHORT),
    row("gradian gradians", 0.015707963267948967, ANGLE, LONG),
    row("cycle cycles", std::f64::consts::TAU, ANGLE, NONE),
    row(
        "arcsec arcsecond arcseconds",
        0.00000484813681109536,
        ANGLE,
        NONE,
    ),
    row(
        "arcmin arcminute arcminutes",
        0.0002908882086657216,
        ANGLE,
        NONE,
    ),
    row("A", 1.0, CURRENT, SHORT),
    row("ampere amperes amps amp", 1.0, CURRENT, LONG),
    row("K", 1.0, TEMPERATURE, SHORT),
    Row("degC", 1.0, TEMPERATURE, SHORT, CELSIUS),
    Row("degF", 0.5555555555555556, TEMPERATURE, SHORT, FAHRENHEIT),
    row("degR", 0.5555555555555556, TEMPERATURE, SHORT),
    row("kelvin", 1.0, TEMPERATURE, LONG),
    Row("celsius", 1.0, TEMPERATURE, LONG, CELSIUS),
    Row(
        "fahrenheit",
        0.5555555555555556,
        TEMPERATURE,
        LONG,
        FAHRENHEIT,
    ),
    row("rankine", 0.5555555555555556, TEMPERATURE, LONG),
    row("mol", 1.0, AMOUNT_OF_SUBSTANCE, SHORT),
    row("mole moles", 1.0, AMOUNT_OF_SUBSTANCE, LONG),
    row("cd", 1.0, LUMINOUS_INTENSITY, SHORT),
    row("candela", 1.0, LUMINOUS_INTENSITY, LONG),
    row("N", 1.0, FORCE, SHORT),
    row("newton", 1.0, FORCE, LONG),
    row("dyn", 0.00001, FORCE, SHORT),
    row("dyne", 0.00001, FORCE, LONG),
    row("lbf poundforce", 4.4482216152605, FORCE, NONE),
    row("kip kips", 4448.2216, FORCE, LONG),
    row("kilogramforce kgf", 9.80665, FORCE, NONE),
    row("J", 1.0, ENERGY, SHORT),
    row("joule joules", 1.0, ENERGY, LONG),
    row("erg", 1e-7, ENERGY, SHORTLONG),
    row("Wh", 3600.0, ENERGY, SHORT),
    row("BTU BTUs", 1055.05585262, ENERGY, BTU),
    row("eV", 1.602176565e-19, ENERGY, SHORT),
    row("electronvolt electronvolts", 1.602176565e-19, ENERGY, LONG),
    row("W VA", 1.0, POWER, SHORT),
    row("watt watts", 1.0, POWER, LONG),
    row("hp", 745.6998715386, POWER, NONE),
    row("Pa", 1.0, PRESSURE, SHORT),
    row("psi", 6894.75729276459, PRESSURE, NONE),
    row("atm", 101325.0, PRESSURE, NONE),
    row("bar", 100000.0, PRESSURE, SHORTLONG),
    row("torr mmHg mmhg", 133.322, PRESSURE, NONE),
    row("mmH2O mmh2o", 9.80665, PRESSURE, NONE),
    row("cmH2O cmh2o", 98.0665, PRESSURE, NONE),
    row("coulomb coulombs", 1.0, ELECTRIC_CHARGE, LONG),
    row("C", 1.0, ELECTRIC_CHARGE, SHORT),
    row("Ah", 3600.0, ELECTRIC_CHARGE, SHORT),
    row("farad farads", 1.0, ELECTRIC_CAPACITANCE, LONG),
    row("F", 1.0, ELECTRIC_CAPACITANCE, SHORT),
    row("volt volts", 1.0, ELECTRIC_POTENTIAL, LONG),
    row("V", 1.0, ELECTRIC_POTENTIAL, SHORT),
    row("ohm ohms", 1.0, ELECTRIC_RESISTANCE, SHORTLONG),
    row("henry", 1.0, ELECTRIC_INDUCTANCE, LONG),
    row("H", 1.0, ELECTRIC_INDUCTANCE, SHORT),
    row("siemens", 1.0, ELECTRIC_CONDUCTANCE, LONG),
    row("S", 1.0, ELECTRIC_CONDUCTANCE, SHORT),
    row("weber webers", 1.0, MAGNETIC_FLUX, LONG),
    row("Wb", 1.0, MAGNETIC_FLUX, SHORT),
    row("tesla teslas", 1.0, MAGNETIC_FLUX_DENSITY, LONG),
    row("T", 1.0, MAGNETIC_FLUX_DENSITY, SHORT),
    row("b", 1.0, BIT, BINARY_SHORT),
    row("bits bit", 1.0, BIT, BINARY_LONG),
    row("B", 8.0, BIT, BINARY_SHORT),
    row("bytes byte", 8.0, BIT, BINARY_LONG),
];

static UNITS: LazyLock<Vec<UnitDef>> = LazyLock::new(|| {
    ROWS.iter()
        .flat_map(|&Row(names, value, base, prefixes, offset)| {
            names.split(' ').map(move |name| UnitDef {
                name,
                value,
                offset,
                base: &BASES[base],
                prefixes,
            })
        })
        .collect()
});

static BY_NAME: LazyLock<NameMap<&'static UnitDef>> =
    LazyLock::new(|| UNITS.iter().map(|unit| (unit.name, unit)).collect());

/// Every unit, by every name.
pub(crate) fn all() -> impl Iterator<Item = &'static UnitDef> {
    UNITS.iter()
}

/// The unit with this name, prefix included.
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
