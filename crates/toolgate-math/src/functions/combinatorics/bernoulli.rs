//! Bernoulli numbers as exact fractions.

use num_bigint::BigInt;
use num_traits::One;

use super::natural_number;
use crate::number::{Decimal, Fraction};
use crate::ops::counted_big;
use crate::prelude::*;

// Uses the recurrence over exact fractions. The numbers grow fast, so the index is limited.
pub(super) fn bernoulli(budget: &mut BudgetTracker, n: &Value) -> Result<Value> {
    const LAST: f64 = 100.0;
    let index = natural_number("bernoulli", n)?;
    if index > LAST {
        return fail(format!(
            "The index in function bernoulli must not exceed {LAST}"
        ));
    }
    let index = index as usize;
    let mut row: Vec<Fraction> = Vec::with_capacity(index + 1);
    for m in 0..=index {
        let Some(first) = Fraction::new(BigInt::one(), BigInt::from(m + 1)) else {
            break;
        };
        row.push(first);
        for j in (1..=m).rev() {
            budget.charge_steps(4)?;
            row[j - 1] = row[j - 1]
                .sub(&row[j])
                .mul(&Fraction::integer(BigInt::from(j)));
        }
    }
    // The triangle gives B1 as +1/2, but the convention here is -1/2.
    let value = if index == 1 {
        row[0].neg()
    } else {
        row[0].clone()
    };
    match n {
        Value::Fraction(_) => ops::counted_fraction(budget, value),
        Value::Big(_) => counted_big(
            budget,
            Decimal::from_integer(&value.num).div(&Decimal::from_integer(&value.den)),
        ),
        _ => Ok(value.to_f64().into()),
    }
}
