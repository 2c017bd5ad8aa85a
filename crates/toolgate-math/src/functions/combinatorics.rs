//! Factorials, combinations and other counting functions.

mod bernoulli;

use num_bigint::BigInt;
use num_traits::One as _;

use self::bernoulli::bernoulli;
use super::{FunctionRow, each, many, one, two};
use crate::number::Decimal;
use crate::number::special;
use crate::number::special::product;
use crate::ops::counted_big;
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    each("factorial", factorial),
    one("gamma", gamma),
    one("lgamma", |_, x| match x {
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            Ok(special::lgamma(x.to_number("lgamma")?).into())
        }
        _ => Err(type_error("lgamma", x)),
    }),
    two("combinations", combinations),
    two("combinationsWithRep", combinations_with_repetition),
    many("permutations", permutations),
    many("multinomial", multinomial),
    two("stirlingS2", stirling),
    one("bellNumbers", bell),
    one("catalan", catalan),
    two("composition", composition),
    one("bernoulli", bernoulli),
];

pub(crate) fn factorial(meter: &mut Meter, n: &Value) -> Result<Value> {
    let negative = || MathError::new("Value must be non-negative");
    match n {
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            let n = n.to_number("factorial")?;
            if n < 0.0 {
                return Err(negative());
            }
            // The Lanczos sum costs about as much as eight operations.
            meter.charge_steps(8)?;
            Ok(special::gamma(n + 1.0).into())
        }
        Value::Big(n) if n.is_negative() => Err(negative()),
        Value::Big(n) => big_factorial(meter, n),
        Value::Fraction(_) => Err(ops::no_fraction()),
        Value::Matrix(matrix) => matrix.map(meter, factorial),
        _ => Err(type_error("factorial", n)),
    }
}

fn big_factorial(meter: &mut Meter, n: &Decimal) -> Result<Value> {
    if !n.is_integer() {
        return Err(if n.is_finite() {
            MathError::new("Integer BigNumber expected")
        } else {
            type_error("factorial", &Value::big(n.clone()))
        });
    }
    // Beyond 32 bits the loop below would use up every budget anyway.
    let count = n.to_u32().ok_or_else(|| meter.too_many_digits())?;
    let mut result = Decimal::integer(1);
    let mut exact = BigInt::one();
    for k in 2..=count {
        meter.charge_steps(4)?;
        exact *= k;
        // Factors are multiplied exactly in batches, and only the product of a batch is rounded.
        if exact.bits() > 600 {
            result = result.mul(&Decimal::from_integer(&exact));
            exact = BigInt::one();
        }
    }
    counted_big(meter, result.mul(&Decimal::from_integer(&exact)))
}

fn gamma(meter: &mut Meter, x: &Value) -> Result<Value> {
    match x {
        Value::Complex(x) => Ok(special::complex_gamma(*x).into()),
        Value::Big(x) if x.is_integer() && !x.is_zero() && !x.is_negative() => {
            big_factorial(meter, &x.sub(&Decimal::integer(1)))
        }
        Value::Big(x) if x.is_integer() => Ok(Value::big(Decimal::infinity(false))),
        Value::Big(_) => fail("Integer BigNumber expected"),
        Value::Fraction(_) => Err(ops::no_fraction()),
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            Ok(special::gamma(x.to_number("gamma")?).into())
        }
        _ => Err(type_error("gamma", x)),
    }
}

fn natural_number(name: &str, value: &Value) -> Result<f64> {
    let number = match value {
        Value::Complex(_) | Value::Unit(_) | Value::Matrix(_) => {
            return Err(type_error(name, value));
        }
        value => value.to_number(name)?,
    };
    if number < 0.0 || number.fract() != 0.0 || !number.is_finite() {
        return fail(format!(
            "Positive integer value expected in function {name}"
        ));
    }
    Ok(number)
}

fn natural_pair(name: &str, n: &Value, k: &Value) -> Result<(f64, f64)> {
    Ok((natural_number(name, n)?, natural_number(name, k)?))
}

// Converts the result to the argument's kind of number.
fn to_kind_of(model: &Value, meter: &mut Meter, value: &BigInt) -> Result<Value> {
    match model {
        Value::Big(_) => {
            meter.charge_big(value.bits())?;
            Ok(Value::big(
                Decimal::from_integer(value).significant(crate::number::decimal::PRECISION),
            ))
        }
        _ => Ok(num_traits::ToPrimitive::to_f64(value)
            .unwrap_or(f64::INFINITY)
            .into()),
    }
}

// The largest argument of functions that count exactly.
const EXACT: f64 = 3000.0;

fn to_small_count(meter: &mut Meter, name: &str, value: f64) -> Result<u32> {
    if value > EXACT {
        return fail(format!(
            "The numbers in function {name} must not exceed {EXACT}"
        ));
    }
    meter.charge_steps(value as usize)?;
    Ok(value as u32)
}

fn to_small_counts(meter: &mut Meter, name: &str, a: f64, b: f64) -> Result<(u32, u32)> {
    Ok((
        to_small_count(meter, name, a)?,
        to_small_count(meter, name, b)?,
    ))
}

fn choose(meter: &mut Meter, n: u32, k: u32) -> Result<BigInt> {
    let mut result = BigInt::one();
    // Every intermediate product is a binomial itself, so no division leaves a remainder.
    for i in 0..k.min(n - k) {
        meter.charge_steps(1)?;
        result = result * (n - i) / (i + 1);
    }
    Ok(result)
}

fn combinations(meter: &mut Meter, n: &Value, k: &Value) -> Result<Value> {
    let (a, b) = natural_pair("combinations", n, k)?;
    if b > a {
        return fail("k must be less than or equal to n");
    }
    if matches!(n, Value::Big(_)) || matches!(k, Value::Big(_)) {
        let (a, b) = to_small_counts(meter, "combinations", a, b)?;
        let result = choose(meter, a, b)?;
        return to_kind_of(&Value::big(Decimal::integer(0)), meter, &result);
    }
    // Common factors are cancelled early, so that small counts come out whole.
    let rest = a - b;
    let (mut result, mut divisor) = (1.0, 2.0);
    let (low, limit) = if b < rest {
        (rest + 1.0, b)
    } else {
        (b + 1.0, rest)
    };
    let mut factor = low;
    while factor <= a {
        meter.charge_steps(1)?;
        result *= factor;
        while divisor <= limit && result % divisor == 0.0 {
            result /= divisor;
            divisor += 1.0;
        }
        factor += 1.0;
    }
    // The remaining divisors didn't divide any intermediate product.
    if divisor <= limit {
        result /= product(divisor, limit);
    }
    Ok(result.into())
}

fn combinations_with_repetition(meter: &mut Meter, n: &Value, k: &Value) -> Result<Value> {
    let (a, b) = natural_pair("combinationsWithRep", n, k)?;
    if a < 1.0 {
        return fail("k must be less than or equal to n + k - 1");
    }
    let (a, b) = to_small_counts(meter, "combinationsWithRep", a, b)?;
    let result = choose(meter, a + b - 1, b)?;
    to_kind_of(n, meter, &result)
}

fn permutations(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let meter = &mut evaluator.meter;
    let [n, k] = args else {
        return factorial(meter, &args[0]);
    };
    let (a, b) = natural_pair("permutations", n, k)?;
    if b > a {
        return fail("second argument k must be less than or equal to first argument n");
    }
    if matches!(n, Value::Big(_)) {
        let (a, b) = to_small_counts(meter, "permutations", a, b)?;
        let result = (a - b + 1..=a).fold(BigInt::one(), |all, k| all * k);
        return to_kind_of(n, meter, &result);
    }
    meter.charge_steps(b.min(1e9) as usize)?;
    // Above 2^53, a + 1 rounds to a, so the product from a + 1 to a would not be empty.
    let result = if b == 0.0 {
        1.0
    } else {
        product(a - b + 1.0, a)
    };
    Ok(result.into())
}

fn multinomial(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let parts = args[0].as_matrix("multinomial")?.clone();
    let (mut sum, mut divisor) = (0.0, 1.0);
    for part in &parts.data {
        evaluator.meter.charge_steps(1)?;
        let part = natural_number("multinomial", part)?;
        // mathjs counts zero as an error here, although 0! is 1.
        if part == 0.0 {
            return fail("Positive integer value expected in function multinomial");
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
        meter.charge_steps(k as usize * 8)?;
        // From right to left, so that the values of the previous row are still there.
        for j in (1..=k as usize).rev() {
            row[j] = &row[j] * j + &row[j - 1];
        }
        row[0] = BigInt::ZERO;
    }
    Ok(row)
}

// The table for these functions grows with the square of the argument, so the limits are smaller.
fn table_index(meter: &mut Meter, name: &str, value: &Value) -> Result<u32> {
    let number = natural_number(name, value)?;
    if number > 300.0 {
        return fail(format!(
            "The numbers in function {name} must not exceed 300"
        ));
    }
    meter.charge_steps(number as usize)?;
    Ok(number as u32)
}

fn stirling(meter: &mut Meter, n: &Value, k: &Value) -> Result<Value> {
    let a = table_index(meter, "stirlingS2", n)?;
    let b = table_index(meter, "stirlingS2", k)?;
    if b > a {
        return fail("k must be less than or equal to n in function stirlingS2");
    }
    let row = stirling_row(meter, a, b)?;
    to_kind_of(n, meter, &row[b as usize])
}

fn bell(meter: &mut Meter, n: &Value) -> Result<Value> {
    let count = table_index(meter, "bellNumbers", n)?;
    let row = stirling_row(meter, count, count)?;
    let sum: BigInt = row.iter().sum();
    to_kind_of(n, meter, &sum)
}

fn catalan(meter: &mut Meter, n: &Value) -> Result<Value> {
    let count = natural_number("catalan", n)?;
    let count = to_small_count(meter, "catalan", count)?;
    let result = choose(meter, 2 * count, count)? / (count + 1);
    to_kind_of(n, meter, &result)
}

fn composition(meter: &mut Meter, n: &Value, k: &Value) -> Result<Value> {
    let (a, b) = natural_pair("composition", n, k)?;
    if a < 1.0 || b < 1.0 {
        return fail("Positive integer value expected in function composition");
    }
    if b > a {
        return fail("k must be less than or equal to n in function composition");
    }
    let (a, b) = to_small_counts(meter, "composition", a, b)?;
    let result = choose(meter, a - 1, b - 1)?;
    to_kind_of(n, meter, &result)
}
