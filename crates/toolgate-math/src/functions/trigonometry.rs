//! Trigonometric and hyperbolic functions and their inverses.

use libm::{acosh, asin, asinh, atan, atanh, cos, cosh, sin, sinh, tan, tanh};

use super::Body::{One, Two};
use super::Row;
use super::powers::analytic;
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::number::complex::{Complex, complex};
use crate::number::decimal::Decimal;
use crate::ops;
use crate::value::{Value, type_error};

pub(super) const TABLE: &[Row] = &[
    ("sin", One(|m, x| angle(m, "sin", x, f_sin))),
    ("cos", One(|m, x| angle(m, "cos", x, f_cos))),
    ("tan", One(|m, x| angle(m, "tan", x, f_tan))),
    ("cot", One(|m, x| angle(m, "cot", x, f_cot))),
    ("sec", One(|m, x| angle(m, "sec", x, f_sec))),
    ("csc", One(|m, x| angle(m, "csc", x, f_csc))),
    ("asin", One(f_asin)),
    ("acos", One(f_acos)),
    ("atan", One(f_atan)),
    ("acot", One(f_acot)),
    ("asec", One(f_asec)),
    ("acsc", One(f_acsc)),
    ("atan2", Two(atan2)),
    ("sinh", One(f_sinh)),
    ("cosh", One(f_cosh)),
    ("tanh", One(f_tanh)),
    ("coth", One(f_coth)),
    ("sech", One(f_sech)),
    ("csch", One(f_csch)),
    ("asinh", One(f_asinh)),
    ("acosh", One(f_acosh)),
    ("atanh", One(f_atanh)),
    ("acoth", One(f_acoth)),
    ("asech", One(f_asech)),
    ("acsch", One(f_acsch)),
];

/// A function of an angle: a quantity counts in radians.
fn angle(
    meter: &mut Meter,
    name: &str,
    x: &Value,
    f: fn(&mut Meter, &Value) -> Result<Value>,
) -> Result<Value> {
    match x {
        Value::Unit(unit) if unit.is_angle() => f(meter, unit.required()?),
        Value::Unit(_) => Err(Error::new(format!("Unit in function {name} is no angle"))),
        x => f(meter, x),
    }
}

/// The real function inside its domain, the complex one outside.
fn within(inside: bool, x: f64, real: fn(f64) -> f64, of_complex: fn(Complex) -> Complex) -> Value {
    if inside || x.is_nan() {
        real(x).into()
    } else {
        of_complex(complex(x, 0.0)).into()
    }
}

/// The inverse hyperbolic cosine, which leaves the real numbers below 1.
fn real_acosh(x: f64) -> Value {
    if x >= 1.0 || x.is_nan() {
        acosh(x).into()
    } else if x <= -1.0 {
        complex(libm::log((x * x - 1.0).sqrt() - x), std::f64::consts::PI).into()
    } else {
        complex(0.0, libm::acos(x)).into()
    }
}

fn reciprocal(x: &Decimal) -> Decimal {
    Decimal::integer(1).div(x)
}

fn some(value: Decimal) -> Option<Value> {
    Some(Value::big(value))
}

/// Each line: name, double, complex, big number.
macro_rules! analytic_functions {
    ($($function:ident $name:literal: $number:expr, $complex:expr, $big:expr;)*) => {$(
        fn $function(meter: &mut Meter, x: &Value) -> Result<Value> {
            analytic(meter, $name, x, $number, $complex, $big)
        }
    )*};
}

analytic_functions! {
    f_sin "sin": |x| sin(x).into(), Complex::sin, |x| some(x.sin()?);
    f_cos "cos": |x| cos(x).into(), Complex::cos, |x| some(x.cos()?);
    f_tan "tan": |x| tan(x).into(), Complex::tan, |x| some(x.tan()?);
    f_cot "cot": |x| (1.0 / tan(x)).into(), Complex::cot, |x| some(reciprocal(&x.tan()?));
    f_sec "sec": |x| (1.0 / cos(x)).into(), Complex::sec, |x| some(reciprocal(&x.cos()?));
    f_csc "csc": |x| (1.0 / sin(x)).into(), Complex::csc, |x| some(reciprocal(&x.sin()?));
    f_asin "asin": |x| within((-1.0..=1.0).contains(&x), x, asin, Complex::asin), Complex::asin, |x| some(x.asin());
    f_acos "acos": |x| within((-1.0..=1.0).contains(&x), x, libm::acos, Complex::acos), Complex::acos, |x| some(x.acos());
    f_atan "atan": |x| atan(x).into(), Complex::atan, |x| some(x.atan());
    f_acot "acot": |x| atan(1.0 / x).into(), |x| x.of_inverse(Complex::atan), |x| some(reciprocal(x).atan());
    f_asec "asec": |x| within(x <= -1.0 || x >= 1.0, x, |x| libm::acos(1.0 / x), |x| x.of_inverse(Complex::acos)),
        |x| x.of_inverse(Complex::acos), |x| some(reciprocal(x).acos());
    f_acsc "acsc": |x| within(x <= -1.0 || x >= 1.0, x, |x| asin(1.0 / x), |x| x.of_inverse(Complex::asin)),
        |x| x.of_inverse(Complex::asin), |x| some(reciprocal(x).asin());
    f_sinh "sinh": |x| sinh(x).into(), Complex::sinh, |x| some(x.sinh());
    f_cosh "cosh": |x| cosh(x).into(), Complex::cosh, |x| some(x.cosh());
    f_tanh "tanh": |x| tanh(x).into(), Complex::tanh, |x| some(x.tanh());
    f_coth "coth": |x| (1.0 / tanh(x)).into(), Complex::coth, |x| some(reciprocal(&x.tanh()));
    f_sech "sech": |x| (1.0 / cosh(x)).into(), Complex::sech, |x| some(reciprocal(&x.cosh()));
    f_csch "csch": |x| (1.0 / sinh(x)).into(), Complex::csch, |x| some(reciprocal(&x.sinh()));
    f_asinh "asinh": |x| asinh(x).into(), Complex::asinh, |x| some(x.asinh());
    f_acosh "acosh": real_acosh, Complex::acosh, |x| some(x.acosh());
    f_atanh "atanh": |x| within((-1.0..=1.0).contains(&x), x, atanh, Complex::atanh), Complex::atanh, |x| some(x.atanh());
    f_acoth "acoth": |x| within(x <= -1.0 || x >= 1.0, x, |x| atanh(1.0 / x), |x| x.of_inverse(Complex::atanh)),
        |x| x.of_inverse(Complex::atanh), |x| some(reciprocal(x).atanh());
    f_asech "asech": |x| real_acosh(1.0 / x),
        |x| x.of_inverse(Complex::acosh), |x| some(reciprocal(x).acosh());
    f_acsch "acsch": |x| asinh(1.0 / x).into(), |x| x.of_inverse(Complex::asinh), |x| some(reciprocal(x).asinh());
}

fn atan2(meter: &mut Meter, y: &Value, x: &Value) -> Result<Value> {
    ops::broadcast(meter, y, x, |meter, y, x| match ops::pair("atan2", y, x)? {
        ops::Pair::Number(y, x) => Ok(libm::atan2(y, x).into()),
        ops::Pair::Big(y, x) => {
            meter.step(1000)?;
            let angle = y.div(&x).atan();
            let pi = Decimal::pi();
            Ok(Value::big(match (x.is_negative(), y.is_negative()) {
                (true, false) => angle.add(&pi),
                (true, true) => angle.sub(&pi),
                (false, _) => angle,
            }))
        }
        _ => Err(type_error("atan2", y)),
    })
}
