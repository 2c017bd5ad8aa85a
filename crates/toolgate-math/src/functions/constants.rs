//! Constants, mathematical and physical.

use std::f64::consts;

use crate::budget::{Budget, Meter};
use crate::number::complex::Complex;
use crate::unit::{self, System};
use crate::value::Value;

const NUMBERS: &[(&str, f64, &str)] = &[
    (
        "pi",
        consts::PI,
        "circumference of a circle over its diameter",
    ),
    ("PI", consts::PI, "the same as pi"),
    ("tau", consts::TAU, "twice pi"),
    ("e", consts::E, "base of the natural logarithm"),
    ("E", consts::E, "the same as e"),
    ("phi", 1.618_033_988_749_895, "golden ratio"),
    ("LN2", consts::LN_2, "natural logarithm of 2"),
    ("LN10", consts::LN_10, "natural logarithm of 10"),
    ("LOG2E", consts::LOG2_E, "logarithm of e with base 2"),
    ("LOG10E", consts::LOG10_E, "logarithm of e with base 10"),
    ("SQRT1_2", consts::FRAC_1_SQRT_2, "square root of one half"),
    ("SQRT2", consts::SQRT_2, "square root of 2"),
    ("Infinity", f64::INFINITY, "infinity"),
    ("NaN", f64::NAN, "not a number"),
    (
        "fineStructure",
        0.007_297_352_569_3,
        "fine-structure constant",
    ),
    ("weakMixingAngle", 0.2229, "weak mixing angle"),
    ("efimovFactor", 22.7, "Efimov factor"),
    (
        "sackurTetrode",
        -1.164_870_523_58,
        "Sackur-Tetrode constant",
    ),
];

const QUANTITIES: &[(&str, &str, &str)] = &[
    ("speedOfLight", "299792458 m/s", "speed of light in vacuum"),
    (
        "gravitationConstant",
        "6.67430e-11 m^3/(kg s^2)",
        "Newton's constant of gravitation",
    ),
    ("planckConstant", "6.62607015e-34 J s", "Planck constant"),
    (
        "reducedPlanckConstant",
        "1.0545718176461565e-34 J s",
        "reduced Planck constant",
    ),
    (
        "magneticConstant",
        "1.25663706212e-6 N/A^2",
        "vacuum permeability",
    ),
    (
        "electricConstant",
        "8.8541878128e-12 F/m",
        "vacuum permittivity",
    ),
    (
        "vacuumImpedance",
        "376.730313667 ohm",
        "impedance of free space",
    ),
    (
        "coulomb",
        "8.987551792261171e9 (N m^2)/C^2",
        "Coulomb's constant",
    ),
    (
        "coulombConstant",
        "8.987551792261171e9 (N m^2)/C^2",
        "Coulomb's constant",
    ),
    ("elementaryCharge", "1.602176634e-19 C", "elementary charge"),
    ("bohrMagneton", "9.2740100783e-24 J/T", "Bohr magneton"),
    (
        "conductanceQuantum",
        "7.748091729863649e-5 S",
        "conductance quantum",
    ),
    (
        "inverseConductanceQuantum",
        "12906.403729652257 ohm",
        "inverse of the conductance quantum",
    ),
    (
        "magneticFluxQuantum",
        "2.0678338484619295e-15 Wb",
        "magnetic flux quantum",
    ),
    (
        "nuclearMagneton",
        "5.0507837461e-27 J/T",
        "nuclear magneton",
    ),
    (
        "klitzing",
        "25812.807459304513 ohm",
        "von Klitzing constant",
    ),
    ("bohrRadius", "5.29177210903e-11 m", "Bohr radius"),
    (
        "classicalElectronRadius",
        "2.8179403262e-15 m",
        "classical electron radius",
    ),
    ("electronMass", "9.1093837015e-31 kg", "mass of an electron"),
    (
        "fermiCoupling",
        "1.1663787e-5 GeV^-2",
        "Fermi coupling constant",
    ),
    ("hartreeEnergy", "4.3597447222071e-18 J", "Hartree energy"),
    ("protonMass", "1.67262192369e-27 kg", "mass of a proton"),
    ("deuteronMass", "3.3435830926e-27 kg", "mass of a deuteron"),
    ("neutronMass", "1.6749271613e-27 kg", "mass of a neutron"),
    (
        "quantumOfCirculation",
        "3.6369475516e-4 m^2/s",
        "quantum of circulation",
    ),
    ("rydberg", "10973731.56816 m^-1", "Rydberg constant"),
    (
        "thomsonCrossSection",
        "6.6524587321e-29 m^2",
        "Thomson cross section",
    ),
    ("atomicMass", "1.66053906660e-27 kg", "atomic mass constant"),
    ("avogadro", "6.02214076e23 mol^-1", "Avogadro's number"),
    ("boltzmann", "1.380649e-23 J/K", "Boltzmann constant"),
    ("faraday", "96485.33212331001 C/mol", "Faraday constant"),
    (
        "firstRadiation",
        "3.7417718521927573e-16 W m^2",
        "first radiation constant",
    ),
    (
        "loschmidt",
        "2.686780111798444e25 m^-3",
        "Loschmidt constant at 273.15 K and 101.325 kPa",
    ),
    ("gasConstant", "8.31446261815324 J/(K mol)", "gas constant"),
    (
        "molarPlanckConstant",
        "3.990312712893431e-10 (J s)/mol",
        "molar Planck constant",
    ),
    (
        "molarVolume",
        "0.022413969545014137 m^3/mol",
        "molar volume of an ideal gas at 273.15 K and 101.325 kPa",
    ),
    (
        "secondRadiation",
        "0.014387768775039337 m K",
        "second radiation constant",
    ),
    (
        "stefanBoltzmann",
        "5.67037441918443e-8 W/(m^2 K^4)",
        "Stefan-Boltzmann constant",
    ),
    (
        "wienDisplacement",
        "2.897771955e-3 m K",
        "Wien displacement law constant",
    ),
    (
        "molarMass",
        "0.99999999965e-3 kg/mol",
        "molar mass constant",
    ),
    (
        "molarMassC12",
        "11.9999999958e-3 kg/mol",
        "molar mass of carbon-12",
    ),
    (
        "gravity",
        "9.80665 m/s^2",
        "standard acceleration of gravity",
    ),
    ("planckLength", "1.616255e-35 m", "Planck length"),
    ("planckMass", "2.176435e-8 kg", "Planck mass"),
    ("planckTime", "5.391245e-44 s", "Planck time"),
    ("planckCharge", "1.87554603778e-18 C", "Planck charge"),
    ("planckTemperature", "1.416785e32 K", "Planck temperature"),
];

pub(super) fn values() -> impl Iterator<Item = (&'static str, Value)> {
    let mut meter = Meter::new(&Budget::default());
    let quantities = QUANTITIES.iter().filter_map(move |(name, text, _)| {
        let mut quantity = unit::parse(&mut meter, text, &mut System::default()).ok()?;
        quantity.fixed_prefix = true;
        Some((*name, Value::unit(quantity)))
    });
    let numbers = NUMBERS
        .iter()
        .map(|&(name, value, _)| (name, Value::Number(value)));
    numbers
        .chain([("i", Value::Complex(Complex::I))])
        .chain(quantities)
}

/// Name, value in words, help.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    NUMBERS
        .iter()
        .map(|&(name, _, help)| (name, "number", help))
        .chain([("i", "complex number", "square root of -1")])
        .chain(QUANTITIES.iter().copied())
}
