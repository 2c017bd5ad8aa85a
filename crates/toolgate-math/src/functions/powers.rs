//! Powers, roots, exponentials and logarithms.

use super::Body::{Each, Many, One};
use super::Row;
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::eval::Run;
use crate::number::complex::{Complex, complex};
use crate::number::decimal::Decimal;
use crate::number::real;
use crate::ops::{self, counted_big};
use crate::value::{Value, type_error};

pub(super) const TABLE: &[Row] = &[
    ("sqrt", One(ops::square_root)),
    ("cbrt", One(cbrt)),
    (
        "square",
        One(|meter, x| unit_or(meter, x, 2.0, |meter, x| ops::multiply(meter, x, x))),
    ),
    ("cube", One(|meter, x| unit_or(meter, x, 3.0, cube))),
    ("exp", One(exp)),
    ("expm1", One(expm1)),
    ("log", Many(log)),
    ("log2", Each(log2)),
    ("log10", Each(log10)),
    ("log1p", Many(log1p)),
    ("hypot", Many(hypot)),
    ("nthRoot", Many(nth_root)),
    ("nthRoots", Many(nth_roots)),
];

/// A power of a quantity, or `f` of a number.
fn unit_or(
    meter: &mut Meter,
    x: &Value,
    power: f64,
    f: fn(&mut Meter, &Value) -> Result<Value>,
) -> Result<Value> {
    match x {
        Value::Unit(unit) => unit.power(meter, power),
        x => f(meter, x),
    }
}

fn cube(meter: &mut Meter, x: &Value) -> Result<Value> {
    let square = ops::multiply(meter, x, x)?;
    ops::multiply(meter, &square, x)
}

fn cbrt(meter: &mut Meter, x: &Value) -> Result<Value> {
    Ok(match x {
        Value::Number(x) => Value::Number(libm::cbrt(*x)),
        Value::Complex(x) => {
            let turned = complex(x.abs(), 0.0).ln().scale(1.0 / 3.0).exp();
            turned.mul(complex(0.0, x.arg() / 3.0).exp()).into()
        }
        Value::Big(x) if x.is_finite() => {
            let root = x.abs().root(3);
            return counted_big(meter, if x.is_negative() { root.neg() } else { root });
        }
        Value::Big(x) => Value::Big(x.clone()),
        Value::Unit(unit) => return unit.power(meter, 1.0 / 3.0),
        Value::Fraction(_) => return Err(ops::no_fraction()),
        Value::Bool(_) | Value::Text(_) => Value::Number(libm::cbrt(x.number("cbrt")?)),
        _ => return Err(type_error("cbrt", x)),
    })
}

/// A function of real analysis: of doubles, complex numbers and big numbers.
pub(super) fn analytic(
    meter: &mut Meter,
    name: &str,
    x: &Value,
    number: fn(f64) -> Value,
    of_complex: fn(Complex) -> Complex,
    big: fn(&Decimal) -> Option<Value>,
) -> Result<Value> {
    match x {
        Value::Number(x) => Ok(number(*x)),
        Value::Complex(x) => Ok(of_complex(*x).into()),
        Value::Big(x) => {
            // A series over the digits: dearer than an addition.
            meter.step(500)?;
            match big(x).ok_or_else(|| meter.too_many_digits())? {
                Value::Big(result) => counted_big(meter, result.as_ref().clone()),
                other => Ok(other),
            }
        }
        Value::Fraction(_) => Err(ops::no_fraction()),
        Value::Bool(_) | Value::Text(_) => Ok(number(x.number(name)?)),
        _ => Err(type_error(name, x)),
    }
}

pub(super) fn exp(meter: &mut Meter, x: &Value) -> Result<Value> {
    analytic(
        meter,
        "exp",
        x,
        |x| real::exp(x).into(),
        Complex::exp,
        |x| Some(Value::big(x.exp())),
    )
}

fn expm1(meter: &mut Meter, x: &Value) -> Result<Value> {
    let of_complex = |x: Complex| {
        let scale = libm::exp(x.re);
        complex(scale * libm::cos(x.im) - 1.0, scale * libm::sin(x.im))
    };
    analytic(
        meter,
        "expm1",
        x,
        |x| libm::expm1(x).into(),
        of_complex,
        |x| Some(Value::big(x.exp_m1())),
    )
}

pub(super) fn ln(meter: &mut Meter, x: &Value) -> Result<Value> {
    let number = |x: f64| {
        if x >= 0.0 || x.is_nan() {
            libm::log(x).into()
        } else {
            complex(x, 0.0).ln().into()
        }
    };
    let big = |x: &Decimal| {
        Some(if x.is_negative() {
            complex(x.to_f64(), 0.0).ln().into()
        } else {
            Value::big(x.ln())
        })
    };
    analytic(meter, "log", x, number, Complex::ln, big)
}

fn log(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let value = ln(&mut run.meter, &args[0])?;
    with_base(&mut run.meter, value, args.get(1))
}

/// A natural logarithm as one with another base.
fn with_base(meter: &mut Meter, value: Value, base: Option<&Value>) -> Result<Value> {
    let Some(base) = base else {
        return Ok(value);
    };
    let base = ln(meter, base)?;
    ops::divide(meter, &value, &base)
}

fn log2(meter: &mut Meter, x: &Value) -> Result<Value> {
    use std::f64::consts::{LN_2, PI};
    fn of_negative(x: f64) -> Value {
        complex(libm::log2(-x), PI / LN_2).into()
    }
    let of_complex = |x: Complex| {
        let length = (x.re * x.re + x.im * x.im).sqrt();
        complex(libm::log2(length), x.arg() / LN_2)
    };
    let number = |x: f64| {
        if x >= 0.0 || x.is_nan() {
            libm::log2(x).into()
        } else {
            of_negative(x)
        }
    };
    let big = |x: &Decimal| {
        Some(if x.is_negative() {
            of_negative(x.to_f64())
        } else {
            Value::big(x.log2())
        })
    };
    analytic(meter, "log2", x, number, of_complex, big)
}

fn log10(meter: &mut Meter, x: &Value) -> Result<Value> {
    fn of_complex(x: Complex) -> Complex {
        x.ln().div(complex(std::f64::consts::LN_10, 0.0))
    }
    let number = |x: f64| {
        if x >= 0.0 || x.is_nan() {
            libm::log10(x).into()
        } else {
            of_complex(complex(x, 0.0)).into()
        }
    };
    let big = |x: &Decimal| {
        Some(if x.is_negative() {
            of_complex(complex(x.to_f64(), 0.0)).into()
        } else {
            Value::big(x.log10())
        })
    };
    analytic(meter, "log10", x, number, of_complex, big)
}

fn log1p(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let number = |x: f64| {
        if x >= -1.0 || x.is_nan() {
            libm::log1p(x).into()
        } else {
            complex(x + 1.0, 0.0).ln().into()
        }
    };
    let big = |x: &Decimal| {
        let y = x.add(&Decimal::integer(1));
        Some(if y.is_negative() {
            complex(y.to_f64(), 0.0).ln().into()
        } else {
            Value::big(y.ln())
        })
    };
    let of_complex = |x: Complex| complex(x.re + 1.0, x.im).ln();
    let one = |meter: &mut Meter, x: &Value| analytic(meter, "log1p", x, number, of_complex, big);
    let value = match &args[0] {
        Value::Matrix(matrix) => Value::matrix(matrix.map(&mut run.meter, one)?),
        x => one(&mut run.meter, x)?,
    };
    with_base(&mut run.meter, value, args.get(1))
}

fn hypot(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut run.meter;
    let values = super::statistics::flat(meter, args)?;
    if values.iter().any(|value| matches!(value, Value::Big(_))) {
        let mut sum = Value::Number(0.0);
        for value in &values {
            let square = ops::multiply(meter, value, value)?;
            sum = ops::add(meter, &sum, &square)?;
        }
        return ops::square_root(meter, &sum);
    }
    // Scaled by the largest, so that squares do not overflow.
    let (mut result, mut largest) = (0.0, 0.0);
    for value in &values {
        if matches!(value, Value::Complex(_) | Value::Unit(_)) {
            return Err(type_error("hypot", value));
        }
        let value = value.number("hypot")?.abs();
        if value > largest {
            result *= (largest / value) * (largest / value);
            result += 1.0;
            largest = value;
        } else {
            result += if value > 0.0 {
                (value / largest) * (value / largest)
            } else {
                value
            };
        }
    }
    Ok(Value::Number(largest * f64::sqrt(result)))
}

fn nth_root(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let root = args.get(1).cloned().unwrap_or(Value::Number(2.0));
    ops::broadcast(&mut run.meter, &args[0], &root, |meter, a, root| {
        match (a, root) {
            (Value::Complex(_), _) | (_, Value::Complex(_)) => Err(Error::new(
                "Complex number not supported in function nthRoot. Use nthRoots instead.",
            )),
            (Value::Fraction(_), _) => Err(ops::no_fraction()),
            (Value::Big(a), root) => {
                let n = root.number("nthRoot")?;
                check_root(a.is_negative(), n)?;
                let whole = n.fract() == 0.0 && (1.0..=64.0).contains(&n);
                let value = if whole && a.is_finite() {
                    a.abs().root(n as u32)
                } else {
                    let inverse = Decimal::integer(1).div(&Decimal::from_number(n));
                    a.abs().pow(&inverse).unwrap_or_else(Decimal::nan)
                };
                meter.step(500)?;
                counted_big(meter, if a.is_negative() { value.neg() } else { value })
            }
            (a, root) => Ok(Value::Number(real_root(
                a.number("nthRoot")?,
                root.number("nthRoot")?,
            )?)),
        }
    })
}

fn check_root(negative: bool, n: f64) -> Result<()> {
    if n == 0.0 {
        return Err(Error::new("Root must be non-zero"));
    }
    if negative && n.abs() % 2.0 != 1.0 {
        return Err(Error::new("Root must be odd when a is negative."));
    }
    Ok(())
}

fn real_root(a: f64, n: f64) -> Result<f64> {
    check_root(a < 0.0, n)?;
    let inverted = n < 0.0;
    let n = n.abs();
    if a == 0.0 {
        return Ok(if inverted { f64::INFINITY } else { 0.0 });
    }
    if !a.is_finite() {
        return Ok(if inverted { 0.0 } else { a });
    }
    let root = real::pow(a.abs(), 1.0 / n);
    let root = if a < 0.0 { -root } else { root };
    Ok(if inverted { 1.0 / root } else { root })
}

fn nth_roots(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let n = match args.get(1) {
        Some(n) => n.count("nthRoots")?,
        None => 2,
    };
    let x = match &args[0] {
        Value::Complex(x) => *x,
        x => complex(x.number("nthRoots")?, 0.0),
    };
    if n == 0 {
        return Err(Error::new("Root must be greater than zero"));
    }
    run.meter.cells(n)?;
    if x.abs() == 0.0 {
        return Ok(Value::list(vec![complex(0.0, 0.0).into()]));
    }
    let radius = real::pow(x.abs(), 1.0 / n as f64);
    let turn = |k: usize| (x.arg() + std::f64::consts::TAU * k as f64) / n as f64;
    let axis = (x.re == 0.0) != (x.im == 0.0);
    let roots = (0..n).map(|k| {
        // Roots of a number on an axis that lie on an axis themselves are exact.
        let quarter = 4 * k
            + usize::from(x.re < 0.0) * 2
            + usize::from(x.im > 0.0)
            + usize::from(x.im < 0.0) * 3;
        if axis && quarter % n == 0 {
            return match (quarter / n) % 4 {
                0 => complex(radius, 0.0),
                1 => complex(0.0, radius),
                2 => complex(-radius, 0.0),
                _ => complex(0.0, -radius),
            };
        }
        complex(radius * libm::cos(turn(k)), radius * libm::sin(turn(k)))
    });
    Ok(Value::list(roots.map(Value::from).collect()))
}
