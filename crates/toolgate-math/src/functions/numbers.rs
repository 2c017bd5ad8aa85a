//! Number theory, parts of complex numbers and fractions, and bits.

use num_bigint::BigInt;
use num_integer::Integer;

use super::{FunctionRow, each, many, one, two};
use crate::number::{Decimal, Fraction, special};
use crate::ops::{NumberPair, counted_big, counted_fraction, number_pair};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    many("gcd", |evaluator, args| fold(evaluator, args, "gcd", gcd)),
    many("lcm", |evaluator, args| fold(evaluator, args, "lcm", lcm)),
    two("xgcd", xgcd),
    two("invmod", invmod),
    each("re", |_, x| complex_part(x, "re")),
    each("im", |_, x| complex_part(x, "im")),
    each("conj", conj),
    each("arg", arg),
    each("num", |budget, x| numerator(budget, x, true)),
    each("den", |budget, x| numerator(budget, x, false)),
    two("bitAnd", ops::bit_and),
    two("bitOr", ops::bit_or),
    two("bitXor", ops::bit_xor),
    each("bitNot", ops::bit_not),
    two("leftShift", ops::shift_left),
    two("rightArithShift", ops::shift_right),
    two("rightLogShift", ops::shift_right_logical),
    each("erf", |_, x| real(x, "erf", special::erf)),
    one("zeta", |_, x| real(x, "zeta", special::zeta)),
];

fn real(x: &Value, name: &str, f: fn(f64) -> f64) -> Result<Value> {
    match x {
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => Ok(f(x.to_number(name)?).into()),
        _ => Err(type_error(name, x)),
    }
}

fn fold(
    evaluator: &mut Evaluator<'_>,
    args: &[Value],
    name: &str,
    f: ops::ScalarFunction,
) -> Result<Value> {
    let cells;
    let values = match args {
        [Value::Matrix(list)] => {
            cells = list.data.clone();
            cells.as_slice()
        }
        args => args,
    };
    let [first, rest @ ..] = values else {
        return fail(format!("Too few arguments in function {name}"));
    };
    if values.len() == 1 && matches!(args, [_]) && !matches!(args, [Value::Matrix(_)]) {
        return fail(format!(
            "Too few arguments in function {name} (expected: at least 2)"
        ));
    }
    rest.iter().try_fold(first.clone(), |sum, next| {
        ops::broadcast(&mut evaluator.budget, &sum, next, f)
    })
}

fn integers_expected(name: &str) -> MathError {
    MathError::new(format!(
        "Parameters in function {name} must be integer numbers"
    ))
}

fn big_integers(
    budget: &BudgetTracker,
    name: &str,
    a: &Decimal,
    b: &Decimal,
) -> Result<(BigInt, BigInt)> {
    if !a.is_integer() || !b.is_integer() {
        return Err(integers_expected(name));
    }
    let read = |x: &Decimal| {
        x.to_integer(budget.max_digits())
            .ok_or_else(|| budget.too_many_digits())
    };
    Ok((read(a)?, read(b)?))
}

fn number_gcd(mut a: f64, mut b: f64) -> f64 {
    // Not `b != 0.0`, which would never end with NaN.
    while b.abs() > 0.0 {
        (a, b) = (b, crate::number::real::modulo(a, b));
    }
    if a < 0.0 { -a } else { a }
}

fn gcd(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    apply_to_integers(budget, "gcd", a, b, number_gcd, Integer::gcd, |a, b| {
        Fraction::new(a.num.gcd(&b.num) * a.den.gcd(&b.den), &a.den * &b.den)
    })
}

fn lcm(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    let number = |a: f64, b: f64| {
        if a == 0.0 || b == 0.0 {
            a * b
        } else {
            (a * b).abs() / number_gcd(a, b)
        }
    };
    apply_to_integers(budget, "lcm", a, b, number, Integer::lcm, |a, b| {
        Fraction::new(a.num.lcm(&b.num), a.den.gcd(&b.den))
    })
}

fn apply_to_integers(
    budget: &mut BudgetTracker,
    name: &str,
    a: &Value,
    b: &Value,
    number: fn(f64, f64) -> f64,
    big: fn(&BigInt, &BigInt) -> BigInt,
    fraction: fn(&Fraction, &Fraction) -> Option<Fraction>,
) -> Result<Value> {
    // Euclid's algorithm takes at most some ninety rounds for 64-bit numbers.
    budget.charge_steps(100)?;
    match number_pair(name, a, b)? {
        NumberPair::Number(a, b) if a.fract() == 0.0 && b.fract() == 0.0 => Ok(number(a, b).into()),
        NumberPair::Number(..) => Err(integers_expected(name)),
        NumberPair::Big(a, b) => {
            let (a, b) = big_integers(budget, name, &a, &b)?;
            counted_big(budget, Decimal::from_integer(&big(&a, &b)))
        }
        NumberPair::Fraction(a, b) => counted_fraction(budget, fraction(&a, &b).unwrap_or(a)),
        NumberPair::Complex(..) => Err(type_error(name, a)),
    }
}

fn xgcd(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    budget.charge_steps(100)?;
    let (NumberPair::Number(mut a, mut b), (mut x, mut last_x), (mut y, mut last_y)) =
        (number_pair("xgcd", a, b)?, (0.0, 1.0), (1.0, 0.0))
    else {
        return Err(type_error("xgcd", a));
    };
    if a.fract() != 0.0 || b.fract() != 0.0 {
        return Err(integers_expected("xgcd"));
    }
    // Not `b != 0.0`, which would never end with NaN.
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

fn invmod(budget: &mut BudgetTracker, a: &Value, b: &Value) -> Result<Value> {
    // Reduced first, as in mathjs: the coefficients of a large number would lose digits.
    let rest = ops::modulo(budget, a, b)?;
    let (NumberPair::Number(x, n), Value::Matrix(row)) =
        (number_pair("invmod", a, b)?, xgcd(budget, &rest, b)?)
    else {
        return Err(type_error("invmod", a));
    };
    if n == 0.0 {
        return fail("Divisor must be non zero");
    }
    let divisor = row.data[0].to_number("invmod")?;
    if divisor != 1.0 || x.fract() != 0.0 {
        return Ok(f64::NAN.into());
    }
    let inverse = crate::number::real::modulo(row.data[1].to_number("invmod")?, n);
    Ok(if inverse < 0.0 { inverse + n } else { inverse }.into())
}

fn complex_part(x: &Value, name: &str) -> Result<Value> {
    let real = name == "re";
    Ok(match x {
        Value::Complex(x) => if real { x.re } else { x.im }.into(),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            if real { x.to_number(name)? } else { 0.0 }.into()
        }
        Value::Big(_) | Value::Fraction(_) if real => x.clone(),
        Value::Big(_) => Value::big(Decimal::integer(0)),
        Value::Fraction(_) => Value::fraction(Fraction::integer(BigInt::ZERO)),
        _ => return Err(type_error(name, x)),
    })
}

fn conj(_: &mut BudgetTracker, x: &Value) -> Result<Value> {
    Ok(match x {
        Value::Complex(x) => x.conj().into(),
        Value::Number(_) | Value::Big(_) | Value::Fraction(_) | Value::Unit(_) => x.clone(),
        Value::Bool(_) | Value::Text(_) => x.to_number("conj")?.into(),
        _ => return Err(type_error("conj", x)),
    })
}

fn arg(_: &mut BudgetTracker, x: &Value) -> Result<Value> {
    Ok(match x {
        Value::Complex(x) => x.arg().into(),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            libm::atan2(0.0, x.to_number("arg")?).into()
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

fn numerator(budget: &mut BudgetTracker, x: &Value, upper: bool) -> Result<Value> {
    // Finding the fraction of a double takes a few divisions of big numbers, so it costs extra.
    budget.charge_steps(30)?;
    let fraction = match x {
        Value::Fraction(x) => x.as_ref().clone(),
        Value::Big(x) => super::construct::exact_fraction(budget, x)?,
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            Fraction::from_number(x.to_number("num")?)
                .ok_or_else(|| MathError::new("Only a finite number has a numerator"))?
        }
        _ => return Err(type_error(if upper { "num" } else { "den" }, x)),
    };
    // A double where it fits exactly, otherwise a big number.
    let whole = if upper { fraction.num } else { fraction.den };
    let big = Decimal::from_integer(&whole);
    Ok(if whole.bits() <= 53 {
        big.to_f64().into()
    } else {
        Value::big(big)
    })
}
