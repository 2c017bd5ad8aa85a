//! The units, their prefixes, and the quantities that have a unit of their own.

use std::sync::LazyLock;

use super::{DIMENSIONS, Dimensions};
use crate::hash::NameMap;

/// A prefix such as `kilo`.
#[derive(Debug)]
pub(crate) struct Prefix {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    /// Whether the format may choose it: not centi, deci, deca and hecto.
    pub(crate) scientific: bool,
}

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

/// A physical quantity.
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

const MASS: usize = 0;
const LENGTH: usize = 1;
const TIME: usize = 2;
const CURRENT: usize = 3;
const TEMPERATURE: usize = 4;
const LUMINOUS_INTENSITY: usize = 5;
const AMOUNT_OF_SUBSTANCE: usize = 6;
const ANGLE: usize = 7;
const BIT: usize = 8;
const FORCE: usize = 9;
const SURFACE: usize = 10;
const VOLUME: usize = 11;
const ENERGY: usize = 12;
const POWER: usize = 13;
const PRESSURE: usize = 14;
const ELECTRIC_CHARGE: usize = 15;
const ELECTRIC_CAPACITANCE: usize = 16;
const ELECTRIC_POTENTIAL: usize = 17;
const ELECTRIC_RESISTANCE: usize = 18;
const ELECTRIC_INDUCTANCE: usize = 19;
const ELECTRIC_CONDUCTANCE: usize = 20;
const MAGNETIC_FLUX: usize = 21;
const MAGNETIC_FLUX_DENSITY: usize = 22;
const FREQUENCY: usize = 23;

static PLAIN: [Prefix; 1] = [prefix("", 1.0)];
static SHORT_NAMES: [Prefix; 24] = [
    minor("da", 10.0),
    minor("h", 100.0),
    prefix("k", 1000.0),
    prefix("M", 1000000.0),
    prefix("G", 1000000000.0),
    prefix("T", 1000000000000.0),
    prefix("P", 1000000000000000.0),
    prefix("E", 1000000000000000000.0),
    prefix("Z", 1e21),
    prefix("Y", 1e24),
    prefix("R", 1e27),
    prefix("Q", 1e30),
    minor("d", 0.1),
    minor("c", 0.01),
    prefix("m", 0.001),
    prefix("u", 0.000001),
    prefix("n", 1e-9),
    prefix("p", 1e-12),
    prefix("f", 1e-15),
    prefix("a", 1e-18),
    prefix("z", 1e-21),
    prefix("y", 1e-24),
    prefix("r", 1e-27),
    prefix("q", 1e-30),
];
static LONG_NAMES: [Prefix; 24] = [
    minor("deca", 10.0),
    minor("hecto", 100.0),
    prefix("kilo", 1000.0),
    prefix("mega", 1000000.0),
    prefix("giga", 1000000000.0),
    prefix("tera", 1000000000000.0),
    prefix("peta", 1000000000000000.0),
    prefix("exa", 1000000000000000000.0),
    prefix("zetta", 1e21),
    prefix("yotta", 1e24),
    prefix("ronna", 1e27),
    prefix("quetta", 1e30),
    minor("deci", 0.1),
    minor("centi", 0.01),
    prefix("milli", 0.001),
    prefix("micro", 0.000001),
    prefix("nano", 1e-9),
    prefix("pico", 1e-12),
    prefix("femto", 1e-15),
    prefix("atto", 1e-18),
    prefix("zepto", 1e-21),
    prefix("yocto", 1e-24),
    prefix("ronto", 1e-27),
    prefix("quecto", 1e-30),
];
static SQUARED_NAMES: [Prefix; 24] = [
    minor("da", 100.0),
    minor("h", 10000.0),
    prefix("k", 1000000.0),
    prefix("M", 1000000000000.0),
    prefix("G", 1000000000000000000.0),
    prefix("T", 1e24),
    prefix("P", 1e30),
    prefix("E", 1e36),
    prefix("Z", 1e42),
    prefix("Y", 1e48),
    prefix("R", 1e54),
    prefix("Q", 1e60),
    minor("d", 0.01),
    minor("c", 0.0001),
    prefix("m", 0.000001),
    prefix("u", 1e-12),
    prefix("n", 1e-18),
    prefix("p", 1e-24),
    prefix("f", 1e-30),
    prefix("a", 1e-36),
    prefix("z", 1e-42),
    prefix("y", 1e-48),
    prefix("r", 1e-54),
    prefix("q", 1e-60),
];
static CUBIC_NAMES: [Prefix; 24] = [
    minor("da", 1000.0),
    minor("h", 1000000.0),
    prefix("k", 1000000000.0),
    prefix("M", 1000000000000000000.0),
    prefix("G", 1e27),
    prefix("T", 1e36),
    prefix("P", 1e45),
    prefix("E", 1e54),
    prefix("Z", 1e63),
    prefix("Y", 1e72),
    prefix("R", 1e81),
    prefix("Q", 1e90),
    minor("d", 0.001),
    minor("c", 0.000001),
    prefix("m", 1e-9),
    prefix("u", 1e-18),
    prefix("n", 1e-27),
    prefix("p", 1e-36),
    prefix("f", 1e-45),
    prefix("a", 1e-54),
    prefix("z", 1e-63),
    prefix("y", 1e-72),
    prefix("r", 1e-81),
    prefix("q", 1e-90),
];
static BYTES_SHORT: [Prefix; 16] = [
    prefix("k", 1000.0),
    prefix("M", 1000000.0),
    prefix("G", 1000000000.0),
    prefix("T", 1000000000000.0),
    prefix("P", 1000000000000000.0),
    prefix("E", 1000000000000000000.0),
    prefix("Z", 1e21),
    prefix("Y", 1e24),
    prefix("Ki", 1024.0),
    prefix("Mi", 1048576.0),
    prefix("Gi", 1073741824.0),
    prefix("Ti", 1099511627776.0),
    prefix("Pi", 1125899906842624.0),
    prefix("Ei", 1152921504606847000.0),
    prefix("Zi", 1.1805916207174113e21),
    prefix("Yi", 1.2089258196146292e24),
];
static BYTES_LONG: [Prefix; 16] = [
    prefix("kilo", 1000.0),
    prefix("mega", 1000000.0),
    prefix("giga", 1000000000.0),
    prefix("tera", 1000000000000.0),
    prefix("peta", 1000000000000000.0),
    prefix("exa", 1000000000000000000.0),
    prefix("zetta", 1e21),
    prefix("yotta", 1e24),
    prefix("kibi", 1024.0),
    prefix("mebi", 1048576.0),
    prefix("gibi", 1073741824.0),
    prefix("tebi", 1099511627776.0),
    prefix("pebi", 1125899906842624.0),
    prefix("exi", 1152921504606847000.0),
    prefix("zebi", 1.1805916207174113e21),
    prefix("yobi", 1.2089258196146292e24),
];
static BTU_NAMES: [Prefix; 1] = [prefix("MM", 1000000.0)];

const fn prefix(name: &'static str, value: f64) -> Prefix {
    Prefix {
        name,
        value,
        scientific: true,
    }
}

const fn minor(name: &'static str, value: f64) -> Prefix {
    Prefix {
        name,
        value,
        scientific: false,
    }
}

type Prefixes = &'static [&'static [Prefix]];

const NONE: Prefixes = &[&PLAIN];
const SHORT: Prefixes = &[&PLAIN, &SHORT_NAMES];
const LONG: Prefixes = &[&PLAIN, &LONG_NAMES];
const SHORTLONG: Prefixes = &[&PLAIN, &SHORT_NAMES, &LONG_NAMES];
const SQUARED: Prefixes = &[&PLAIN, &SQUARED_NAMES];
const CUBIC: Prefixes = &[&PLAIN, &CUBIC_NAMES];
const BINARY_SHORT: Prefixes = &[&PLAIN, &BYTES_SHORT];
const BINARY_LONG: Prefixes = &[&PLAIN, &BYTES_LONG];
const BTU: Prefixes = &[&PLAIN, &BTU_NAMES];

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
