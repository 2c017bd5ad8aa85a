//! The prefixes, and which of them go in front of which kind of unit.

/// A prefix such as `kilo`.
#[derive(Debug)]
pub(crate) struct Prefix {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    /// Whether the format may choose it: not centi, deci, deca and hecto.
    pub(crate) scientific: bool,
}

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

pub(super) type Prefixes = &'static [&'static [Prefix]];

pub(super) const NONE: Prefixes = &[&PLAIN];
pub(super) const SHORT: Prefixes = &[&PLAIN, &SHORT_NAMES];
pub(super) const LONG: Prefixes = &[&PLAIN, &LONG_NAMES];
pub(super) const SHORTLONG: Prefixes = &[&PLAIN, &SHORT_NAMES, &LONG_NAMES];
pub(super) const SQUARED: Prefixes = &[&PLAIN, &SQUARED_NAMES];
pub(super) const CUBIC: Prefixes = &[&PLAIN, &CUBIC_NAMES];
pub(super) const BINARY_SHORT: Prefixes = &[&PLAIN, &BYTES_SHORT];
pub(super) const BINARY_LONG: Prefixes = &[&PLAIN, &BYTES_LONG];
pub(super) const BTU: Prefixes = &[&PLAIN, &BTU_NAMES];

pub(super) static PLAIN: [Prefix; 1] = [prefix("", 1.0)];
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
