//! Factorials and counting.

mod bernoulli;

use num_bigint::BigInt;
use num_traits::One as _;

use self::bernoulli::bernoulli;
use super::Body::{Each, Many, One, Two};
use super::Row;
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::eval::Run;
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::special::{self, product};
use crate::ops::{self, counted_big};
use crate::value::{Value, type_error};

pub(super) const TABLE: &[Row] = &[
    ("factorial", Each(factorial)),
    ("gamma", One(gamma)),
    (
        "lgamma",
        One(|_, x| match x {
            Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
                Ok(special::lgamma(x.number("lgamma")?).into())
            }
            _ => Err(type_error("lgamma", x)),
        }),
    ),
    ("combinations", Two(combinations)),
    ("combinationsWithRep", Two(combinations_with_repetition)),
    ("permutations", Many(permutations)),
    ("multinomial", Many(multinomial)),
    ("stirlingS2", Two(stirling)),
    ("bellNumbers", One(bell)),
    ("catalan", One(catalan)),
    ("composition", Two(composition)),
    ("bernoulli", One(bernoulli)),
];

pub(crate) fn factorial(meter: &mut Meter, n: &Value) -> Result<Value> {
    let negative = || Error::new("Value must be non-negative");
    match n {
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            let n = n.number("factorial")?;
            if n < 0.0 {
                return Err(negative());
            }
            meter.step(8)?;
            Ok(special::gamma(n + 1.0).into())
        }
        Value::Big(n) if n.is_negative() => Err(negative()),
        Value::Big(n) => big_factorial(meter, n),
        Value::Fraction(_) => Err(ops::no_fraction()),
        Value::Matrix(matrix) => Ok(Value::matrix(matrix.map(meter, factorial)?)),
        _ => Err(type_error("factorial", n)),
    }
}

fn big_factorial(meter: &mut Meter, n: &Decimal) -> Result<Value> {
    if !n.is_integer() {
        return Err(if n.is_finite() {
            Error::new("Integer BigNumber expected")
        } else {
            type_error("factorial", &Value::big(n.clone()))
        });
    }
    let count = n.to_u32().ok_or_else(|| meter.too_many_digits())?;
    let mut result = Decimal::integer(1);
    let mut exact = BigInt::one();
    for k in 2..=count {
        meter.step(4)?;
        exact *= k;
        // Runs of factors are multiplied exactly; only their product is rounded.
        if exact.bits() > 600 {
            result = result.mul(&Decimal::from_integer(&exact));
            exact = BigInt::one();
        }
    }
    counted_big(meter, result.mul(&Decimal::from_integer(&exact)))
}

fn gamma(meter: &mut Meter, x: &Value) -> Result<Value> {
    match x {
        Value::Complex(x) => Ok(complex_gamma(*x)),
        Value::Big(x) if x.is_integer() && !x.is_zero() && !x.is_negative() => {
            big_factorial(meter, &x.sub(&Decimal::integer(1)))
        }
        Value::Big(x) if x.is_integer() => Ok(Value::big(Decimal::infinity(false))),
        Value::Big(_) => Err(Error::new("Integer BigNumber expected")),
        Value::Fraction(_) => Err(ops::no_fraction()),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            Ok(special::gamma(x.number("gamma")?).into())
        }
        _ => Err(type_error("gamma", x)),
    }
}

fn complex_gamma(x: Complex) -> Value {
    special::complex_gamma(x).into()
}

/// A whole number that is not negative, in a function that counts.
fn whole(name: &str, value: &Value) -> Result<f64> {
    let number = match value {
        Value::Complex(_) | Value::Unit(_) | Value::Matrix(_) => {
            return Err(type_error(name, value));
        }
        value => value.number(name)?,
    };
    if number < 0.0 || number.fract() != 0.0 || !number.is_finite() {
        return Err(Error::new(format!(
            "Positive integer value expected in function {name}"
        )));
    }
    Ok(number)
}

/// The result in the kind of number that was given.
fn like(model: &Value, meter: &mut Meter, value: &BigInt) -> Result<Value> {
    match model {
        Value::Big(_) => {
            meter.big(value.bits())?;
            Ok(Value::big(
                Decimal::from_integer(value).significant(crate::number::decimal::PRECISION),
            ))
        }
        _ => Ok(num_traits::ToPrimitive::to_f64(value)
            .unwrap_or(f64::INFINITY)
            .into()),
    }
}

/// Whole numbers up to which counting functions are computed exactly.
const EXACT: f64 = 3000.0;

fn small(meter: &mut Meter, name: &str, value: f64) -> Result<u32> {
    if value > EXACT {
        return Err(Error::new(format!(
            "The numbers in function {name} must not exceed {EXACT}"
        )));
    }
    meter.step(value as usize)?;
    Ok(value as u32)
}

fn choose(meter: &mut Meter, n: u32, k: u32) -> Result<BigInt> {
    let mut result = BigInt::one();
    for i in 0..k.min(n - k) {
        meter.step(1)?;
        result = result * (n - i) / (i + 1);
    }
    Ok(result)
}

fn combinations(meter: &mut Meter, n: &Value, k: &Value) -> Result<Value> {
    let (a, b) = (whole("combinations", n)?, whole("combinations", k)?);
    if b > a {
        return Err(Error::new("k must be less than or equal to n"));
    }
    if matches!(n, Value::Big(_)) || matches!(k, Value::Big(_)) {
        let (a, b) = (
            small(meter, "combinations", a)?,
            small(meter, "combinations", b)?,
        );
        let result = choose(meter, a, b)?;
        return like(&Value::big(Decimal::integer(0)), meter, &result);
    }
    // Products of doubles with the common factors cancelled early, so that small counts come out whole.
    let rest = a - b;
    let (mut result, mut divisor) = (1.0, 2.0);
    let (low, limit) = if b < rest {
        (rest + 1.0, b)
    } else {
        (b + 1.0, rest)
    };
    let mut factor = low;
    while factor <= a {
        meter.step(1)?;
        result *= factor;
        while divisor <= limit && result % divisor == 0.0 {
            result /= divisor;
            divisor += 1.0;
        }
        factor += 1.0;
    }
    if divisor <= limit {
        result /= product(divisor, limit);
    }
    Ok(result.into())
}

fn combinations_with_repetition(meter: &mut Meter, n: &Value, k: &Value) -> Result<Value> {
    let (a, b) = (
        whole("combinationsWithRep", n)?,
        whole("combinationsWithRep", k)?,
    );
    if a < 1.0 {
        return Err(Error::new("k must be less than or equal to n + k - 1"));
    }
    let (a, b) = (
        small(meter, "combinationsWithRep", a)?,
        small(meter, "combinationsWithRep", b)?,
    );
    let result = choose(meter, a + b - 1, b)?;
    like(n, meter, &result)
}

fn permutations(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut run.meter;
    let [n, k] = args else {
        return factorial(meter, &args[0]);
    };
    let (a, b) = (whole("permutations", n)?, whole("permutations", k)?);
    if b > a {
        return Err(Error::new(
            "second argument k must be less than or equal to first argument n",
        ));
    }
    if matches!(n, Value::Big(_)) {
        let (a, b) = (
            small(meter, "permutations", a)?,
            small(meter, "permutations", b)?,
        );
        let result = (a - b + 1..=a).fold(BigInt::one(), |all, k| all * k);
        return like(n, meter, &result);
    }
    meter.step(b.min(1e9) as usize)?;
    Ok(if b == 0.0 {
        1.0
    } else {
        product(a - b + 1.0, a)
    }
    .into())
}

fn multinomial(run: &mut Run<'_>, args: &[Value]) -> Result<Value> {
    let parts = args[0].as_matrix("multinomial")?.clone();
    let (mut sum, mut divisor) = (0.0, 1.0);
    for part in &parts.data {
        run.meter.step(1)?;
        let part = whole("multinomial", part)?;
        if part == 0.0 {
            return Err(Error::new(
                "Positive integer value expected in function multinomial",
            ));
        }
        sum += part;
        divisor *= special::gamma(part + 1.0);
    }
    Ok((special::gamma(sum + 1.0) / divisor).into())
}

fn stirling_row(meter: &mut Meter, n: u32, k: u32) -> Result<Vec<BigInt>> {
    let mut row = vec![BigInt::ZERO; k as usize + 1];
    row[0] = BigInt::one();
    for _ in 0..n {
        meter.step(k as usize * 8)?;
        for j in (1..=k as usize).rev() {
            row[j] = &row[j] * j + &row[j - 1];
        }
        row[0] = BigInt::ZERO;
    }
    Ok(row)
}

/// The table for these grows with the square: smaller limits.
fn limited(meter: &mut Meter, name: &str, value: &Value) -> Result<u32> {
    let number = whole(name, value)?;
    if number > 300.0 {
        return Err(Error::new(format!(
            "The numbers in function {name} must not exceed 300"
        )));
    }
    meter.step(number as usize)?;
    Ok(number as u32)
}

fn stirling(meter: &mut Meter, n: &Value, k: &Value) -> Result<Value> {
    let (a, b) = (
        limited(meter, "stirlingS2", n)?,
        limited(meter, "stirlingS2", k)?,
    );
    if b > a {
        return Err(Error::new(
            "k must be less than or equal to n in function stirlingS2",
        ));
    }
    let row = stirling_row(meter, a, b)?;
    like(n, meter, &row[b as usize])
}

fn bell(meter: &mut Meter, n: &Value) -> Result<Value> {
    let count = limited(meter, "bellNumbers", n)?;
    let row = stirling_row(meter, count, count)?;
    let sum: BigInt = row.iter().sum();
    like(n, meter, &sum)
}

fn catalan(meter: &mut Meter, n: &Value) -> Result<Value> {
    let count = whole("catalan", n)?;
    let count = small(meter, "catalan", count)?;
    let result = choose(meter, 2 * count, count)? / (count + 1);
    like(n, meter, &result)
}

fn composition(meter: &mut Meter, n: &Value, k: &Value) -> Result<Value> {
    let (a, b) = (whole("composition", n)?, whole("composition", k)?);
    if a < 1.0 || b < 1.0 {
        return Err(Error::new(
            "Positive integer value expected in function composition",
        ));
    }
    if b > a {
        return Err(Error::new(
            "k must be less than or equal to n in function composition",
        ));
    }
    let (a, b) = (
        small(meter, "composition", a)?,
        small(meter, "composition", b)?,
    );
    let result = choose(meter, a - 1, b - 1)?;
    like(n, meter, &result)
}
