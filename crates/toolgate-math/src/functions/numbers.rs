//! Whole numbers, parts of complex numbers and fractions, and bits.

use num_bigint::BigInt;
use num_integer::Integer;

use super::Body::{Each, Many, One, Two};
use super::Row;
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::eval::Run;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::number::special;
use crate::ops::{self, Pair, counted, counted_big, pair};
use crate::value::{Value, type_error};

pub(super) const TABLE: &[Row] = &[
    ("gcd", Many(|run, args| fold(run, args, "gcd", gcd))),
    ("lcm", Many(|run, args| fold(run, args, "lcm", lcm))),
    ("xgcd", Two(xgcd)),
    ("invmod", Two(invmod)),
    ("re", Each(|_, x| part(x, "re"))),
    ("im", Each(|_, x| part(x, "im"))),
    ("conj", Each(conj)),
    ("arg", Each(arg)),
    ("num", Each(|meter, x| numerator(meter, x, true))),
    ("den", Each(|meter, x| numerator(meter, x, false))),
    ("bitAnd", Two(ops::bit_and)),
    ("bitOr", Two(ops::bit_or)),
    ("bitXor", Two(ops::bit_xor)),
    ("bitNot", Each(ops::bit_not)),
    ("leftShift", Two(ops::shift_left)),
    ("rightArithShift", Two(ops::shift_right)),
    ("rightLogShift", Two(ops::shift_right_logical)),
    ("erf", Each(|_, x| real(x, "erf", special::erf))),
    ("zeta", One(|_, x| real(x, "zeta", special::zeta))),
];

fn real(x: &Value, name: &str, f: fn(f64) -> f64) -> Result<Value> {
    match x {
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => Ok(f(x.number(name)?).into()),
        _ => Err(type_error(name, x)),
    }
}

fn fold(run: &mut Run<'_>, args: &[Value], name: &str, f: ops::Scalar2) -> Result<Value> {
    let cells;
    let values = match args {
        [Value::Matrix(list)] => {
            cells = list.data.clone();
            cells.as_slice()
        }
        args => args,
    };
    let [first, rest @ ..] = values else {
        return Err(Error::new(format!("Too few arguments in function {name}")));
    };
    if values.len() == 1 && matches!(args, [_]) && !matches!(args, [Value::Matrix(_)]) {
        return Err(Error::new(format!(
            "Too few arguments in function {name} (expected: at least 2)"
        )));
    }
    rest.iter().try_fold(first.clone(), |sum, next| {
        ops::broadcast(&mut run.meter, &sum, next, f)
    })
}

fn integers_expected(name: &str) -> Error {
    Error::new(format!(
        "Parameters in function {name} must be integer numbers"
    ))
}

fn big_integers(meter: &Meter, name: &str, a: &Decimal, b: &Decimal) -> Result<(BigInt, BigInt)> {
    if !a.is_integer() || !b.is_integer() {
        return Err(integers_expected(name));
    }
    let read = |x: &Decimal| {
        x.to_integer(meter.digits())
            .ok_or_else(|| meter.too_many_digits())
    };
    Ok((read(a)?, read(b)?))
}

fn number_gcd(mut a: f64, mut b: f64) -> f64 {
    // Not `b != 0.0`: that would never end with NaN.
    while b.abs() > 0.0 {
        (a, b) = (b, crate::number::real::modulo(a, b));
    }
    if a < 0.0 { -a } else { a }
}

fn gcd(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    meter.step(100)?;
    match pair("gcd", a, b)? {
        Pair::Number(a, b) if a.fract() == 0.0 && b.fract() == 0.0 => Ok(number_gcd(a, b).into()),
        Pair::Number(..) => Err(integers_expected("gcd")),
        Pair::Big(a, b) => {
            let (a, b) = big_integers(meter, "gcd", &a, &b)?;
            counted_big(meter, Decimal::from_integer(&a.gcd(&b)))
        }
        Pair::Fraction(a, b) => {
            let value = Fraction::new(a.num.gcd(&b.num) * a.den.gcd(&b.den), &a.den * &b.den);
            counted(meter, value.unwrap_or(a))
        }
        Pair::Complex(..) => Err(type_error("gcd", a)),
    }
}

fn lcm(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    meter.step(100)?;
    match pair("lcm", a, b)? {
        Pair::Number(a, b) if a.fract() == 0.0 && b.fract() == 0.0 => Ok(if a == 0.0 || b == 0.0 {
            (a * b).into()
        } else {
            ((a * b).abs() / number_gcd(a, b)).into()
        }),
        Pair::Number(..) => Err(integers_expected("lcm")),
        Pair::Big(a, b) => {
            let (a, b) = big_integers(meter, "lcm", &a, &b)?;
            counted_big(meter, Decimal::from_integer(&a.lcm(&b)))
        }
        Pair::Fraction(a, b) => {
            let value = Fraction::new(a.num.lcm(&b.num), a.den.gcd(&b.den));
            counted(meter, value.unwrap_or(a))
        }
        Pair::Complex(..) => Err(type_error("lcm", a)),
    }
}

fn xgcd(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    meter.step(100)?;
    let (Pair::Number(mut a, mut b), (mut x, mut last_x), (mut y, mut last_y)) =
        (pair("xgcd", a, b)?, (0.0, 1.0), (1.0, 0.0))
    else {
        return Err(type_error("xgcd", a));
    };
    if a.fract() != 0.0 || b.fract() != 0.0 {
        return Err(integers_expected("xgcd"));
    }
    // Not `b != 0.0`: that would never end with NaN.
    while b.abs() > 0.0 {
        let q = (a / b).floor();
        (a, b) = (b, a - q * b);
        (x, last_x) = (last_x - q * x, x);
        (y, last_y) = (last_y - q * y, y);
    }
    let row = if a < 0.0 {
        [-a, -last_x, -last_y]
    } else {
        [a, if a == 0.0 { 0.0 } else { last_x }, last_y]
    };
    Ok(Value::list(row.into_iter().map(Value::Number).collect()))
}

fn invmod(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    let rest = ops::modulo(meter, a, b)?;
    let (Pair::Number(x, n), Value::Matrix(row)) = (pair("invmod", a, b)?, xgcd(meter, &rest, b)?)
    else {
        return Err(type_error("invmod", a));
    };
    if n == 0.0 {
        return Err(Error::new("Divisor must be non zero"));
    }
    let divisor = row.data[0].number("invmod")?;
    if divisor != 1.0 || x.fract() != 0.0 {
        return Ok(f64::NAN.into());
    }
    let inverse = crate::number::real::modulo(row.data[1].number("invmod")?, n);
    Ok(if inverse < 0.0 { inverse + n } else { inverse }.into())
}

fn part(x: &Value, name: &str) -> Result<Value> {
    let real = name == "re";
    Ok(match x {
        Value::Complex(x) => if real { x.re } else { x.im }.into(),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            if real { x.number(name)? } else { 0.0 }.into()
        }
        Value::Big(_) | Value::Fraction(_) if real => x.clone(),
        Value::Big(_) => Value::big(Decimal::integer(0)),
        Value::Fraction(_) => Value::fraction(Fraction::integer(BigInt::ZERO)),
        _ => return Err(type_error(name, x)),
    })
}

fn conj(_: &mut Meter, x: &Value) -> Result<Value> {
    Ok(match x {
        Value::Complex(x) => x.conj().into(),
        Value::Number(_) | Value::Big(_) | Value::Fraction(_) | Value::Unit(_) => x.clone(),
        Value::Bool(_) | Value::Text(_) => x.number("conj")?.into(),
        _ => return Err(type_error("conj", x)),
    })
}

fn arg(_: &mut Meter, x: &Value) -> Result<Value> {
    Ok(match x {
        Value::Complex(x) => x.arg().into(),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            libm::atan2(0.0, x.number("arg")?).into()
        }
        Value::Big(x) => Value::big(if x.is_negative() {
            Decimal::pi()
        } else {
            Decimal::integer(0)
        }),
        Value::Fraction(_) => return Err(ops::no_fraction()),
        _ => return Err(type_error("arg", x)),
    })
}

fn numerator(meter: &mut Meter, x: &Value, upper: bool) -> Result<Value> {
    // Finding the fraction of a double takes a few divisions of big numbers.
    meter.step(30)?;
    let fraction = match x {
        Value::Fraction(x) => x.as_ref().clone(),
        Value::Big(x) => super::construct::exact_fraction(meter, x)?,
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            Fraction::from_number(x.number("num")?)
                .ok_or_else(|| Error::new("Only a finite number has a numerator"))?
        }
        _ => return Err(type_error(if upper { "num" } else { "den" }, x)),
    };
    // Whole numbers of any size: as doubles while they fit exactly, as big numbers beyond.
    let whole = if upper { fraction.num } else { fraction.den };
    let big = Decimal::from_integer(&whole);
    Ok(if whole.bits() <= 53 {
        big.to_f64().into()
    } else {
        Value::big(big)
    })
}
