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

pub(crate) fn factorial(budget: &mut BudgetTracker, n: &Value) -> Result<Value> {
    let negative = || MathError::new("Value must be non-negative");
    match n {
        Value::Number(_) | Value::Bool(_) | Value::Text(_) => {
            let n = n.to_number("factorial")?;
            if n < 0.0 {
                return Err(negative());
            }
            // The Lanczos sum costs about as much as eight operations.
            budget.charge_steps(8)?;
            Ok(special::gamma(n + 1.0).into())
        }
        Value::Big(n) if n.is_negative() => Err(negative()),
        Value::Big(n) => big_factorial(budget, n),
        Value::Fraction(_) => Err(ops::no_fraction()),
        Value::Matrix(matrix) => matrix.map(budget, factorial),
        _ => Err(type_error("factorial", n)),
    }
}

fn big_factorial(budget: &mut BudgetTracker, n: &Decimal) -> Result<Value> {
    if !n.is_integer() {
        return Err(if n.is_finite() {
            MathError::new("Integer BigNumber expected")
        } else {
            type_error("factorial", &Value::big(n.clone()))
        });
    }
    // Beyond 32 bits the loop below would use up every budget anyway.
    let count = n.to_u32().ok_or_else(|| budget.too_many_digits())?;
    let mut result = Decimal::integer(1);
    let mut exact = BigInt::one();
    for k in 2..=count {
        budget.charge_steps(4)?;
        exact *= k;
        // Factors are multiplied exactly in batches, and only the product of a batch is rounded.
        if exact.bits() > 600 {
            result = result.mul(&Decimal::from_integer(&exact));
            exact = BigInt::one();
        }
    }
    counted_big(budget, result.mul(&Decimal::from_integer(&exact)))
}

fn gamma(budget: &mut BudgetTracker, x: &Value) -> Result<Value> {
    match x {
        Value::Complex(x) => Ok(special::complex_gamma(*x).into()),
        Value::Big(x) if x.is_integer() && !x.is_zero() && !x.is_negative() => {
            big_factorial(budget, &x.sub(&Decimal::integer(1)))
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
fn to_kind_of(model: &Value, budget: &mut BudgetTracker, value: &BigInt) -> Result<Value> {
    match model {
        Value::Big(_) => {
            budget.charge_big(value.bits())?;
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

fn to_small_count(budget: &mut BudgetTracker, name: &str, value: f64) -> Result<u32> {
    if value > EXACT {
        return fail(format!(
            "The numbers in function {name} must not exceed {EXACT}"
        ));
    }
    budget.charge_steps(value as usize)?;
    Ok(value as u32)
}

fn to_small_counts(budget: &mut BudgetTracker, name: &str, a: f64, b: f64) -> Result<(u32, u32)> {
    Ok((
        to_small_count(budget, name, a)?,
        to_small_count(budget, name, b)?,
    ))
}

fn choose(budget: &mut BudgetTracker, n: u32, k: u32) -> Result<BigInt> {
    let mut result = BigInt::one();
    // Every intermediate product is a binomial itself, so no division leaves a remainder.
    for i in 0..k.min(n - k) {
        budget.charge_steps(1)?;
        result = result * (n - i) / (i + 1);
    }
    Ok(result)
}

fn combinations(budget: &mut BudgetTracker, n: &Value, k: &Value) -> Result<Value> {
    let (a, b) = natural_pair("combinations", n, k)?;
    if b > a {
        return fail("k must be less than or equal to n");
    }
    if matches!(n, Value::Big(_)) || matches!(k, Value::Big(_)) {
        let (a, b) = to_small_counts(budget, "combinations", a, b)?;
        let result = choose(budget, a, b)?;
        return to_kind_of(&Value::big(Decimal::integer(0)), budget, &result);
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
        budget.charge_steps(1)?;
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

fn combinations_with_repetition(budget: &mut BudgetTracker, n: &Value, k: &Value) -> Result<Value> {
    let (a, b) = natural_pair("combinationsWithRep", n, k)?;
    if a < 1.0 {
        return fail("k must be less than or equal to n + k - 1");
    }
    let (a, b) = to_small_counts(budget, "combinationsWithRep", a, b)?;
    let result = choose(budget, a + b - 1, b)?;
    to_kind_of(n, budget, &result)
}

fn permutations(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let budget = &mut evaluator.budget;
    let [n, k] = args else {
        return factorial(budget, &args[0]);
    };
    let (a, b) = natural_pair("permutations", n, k)?;
    if b > a {
        return fail("second argument k must be less than or equal to first argument n");
    }
    if matches!(n, Value::Big(_)) {
        let (a, b) = to_small_counts(budget, "permutations", a, b)?;
        let result = (a - b + 1..=a).fold(BigInt::one(), |all, k| all * k);
        return to_kind_of(n, budget, &result);
    }
    budget.charge_steps(b.min(1e9) as usize)?;
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
        evaluator.budget.charge_steps(1)?;
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

fn stirling_row(budget: &mut BudgetTracker, n: u32, k: u32) -> Result<Vec<BigInt>> {
    let mut row = vec![BigInt::ZERO; k as usize + 1];
    row[0] = BigInt::one();
    for _ in 0..n {
        budget.charge_steps(k as usize * 8)?;
        // From right to left, so that the values of the previous row are still there.
        for j in (1..=k as usize).rev() {
            row[j] = &row[j] * j + &row[j - 1];
        }
        row[0] = BigInt::ZERO;
    }
    Ok(row)
}

// The table for these functions grows with the square of the argument, so the limits are smaller.
fn table_index(budget: &mut BudgetTracker, name: &str, value: &Value) -> Result<u32> {
    let number = natural_number(name, value)?;
    if number > 300.0 {
        return fail(format!(
            "The numbers in function {name} must not exceed 300"
        ));
    }
    budget.charge_steps(number as usize)?;
    Ok(number as u32)
}

fn stirling(budget: &mut BudgetTracker, n: &Value, k: &Value) -> Result<Value> {
    let a = table_index(budget, "stirlingS2", n)?;
    let b = table_index(budget, "stirlingS2", k)?;
    if b > a {
        return fail("k must be less than or equal to n in function stirlingS2");
    }
    let row = stirling_row(budget, a, b)?;
    to_kind_of(n, budget, &row[b as usize])
}

fn bell(budget: &mut BudgetTracker, n: &Value) -> Result<Value> {
    let count = table_index(budget, "bellNumbers", n)?;
    let row = stirling_row(budget, count, count)?;
    let sum: BigInt = row.iter().sum();
    to_kind_of(n, budget, &sum)
}

fn catalan(budget: &mut BudgetTracker, n: &Value) -> Result<Value> {
    let count = natural_number("catalan", n)?;
    let count = to_small_count(budget, "catalan", count)?;
    let result = choose(budget, 2 * count, count)? / (count + 1);
    to_kind_of(n, budget, &result)
}

fn composition(budget: &mut BudgetTracker, n: &Value, k: &Value) -> Result<Value> {
    let (a, b) = natural_pair("composition", n, k)?;
    if a < 1.0 || b < 1.0 {
        return fail("Positive integer value expected in function composition");
    }
    if b > a {
        return fail("k must be less than or equal to n in function composition");
    }
    let (a, b) = to_small_counts(budget, "composition", a, b)?;
    let result = choose(budget, a - 1, b - 1)?;
    to_kind_of(n, budget, &result)
}
