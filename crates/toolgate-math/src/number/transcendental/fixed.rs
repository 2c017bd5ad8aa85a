//! Fixed-point numbers, and the series for exponentials, logarithms and angles.

use std::sync::LazyLock;

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Signed, Zero};

use super::SPARE;
use crate::number::decimal::{Decimal, PRECISION, ten_to};

// The constants are cached with this many decimals: enough unless an argument is far from one.
const KNOWN: usize = 2 * PRECISION + 2 * SPARE;

static LN10: LazyLock<BigInt> = LazyLock::new(|| FixedPoint::new(KNOWN).ln10_series());
static PI: LazyLock<BigInt> = LazyLock::new(|| FixedPoint::new(KNOWN).pi_series());

// Ten bits hold a little more than three decimals.
fn bits(places: usize) -> usize {
    places * 10 / 3 + 8
}

/// A fixed-point system. Every value is an integer count of a unit that is a power of two, so that
/// a product is scaled back by a shift.
pub(super) struct FixedPoint {
    places: usize,
    pub(super) bits: usize,
    pub(super) one: BigInt,
}

impl FixedPoint {
    pub(super) fn new(places: usize) -> Self {
        let bits = bits(places);
        Self {
            places,
            bits,
            one: BigInt::one() << bits,
        }
    }

    pub(super) fn read(&self, value: &Decimal) -> BigInt {
        let (negative, coefficient, exponent) = value.parts();
        let magnitude = match usize::try_from(exponent) {
            Ok(up) => (coefficient * &*ten_to(up)) << self.bits,
            Err(_) => match usize::try_from(-exponent) {
                Ok(down) if down <= self.places + 4000 => {
                    (coefficient << self.bits) / &*ten_to(down)
                }
                _ => BigUint::ZERO,
            },
        };
        BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, magnitude)
    }

    /// The value times 10^`tens`, with all its digits.
    pub(super) fn decimal(&self, value: &BigInt, tens: i64) -> Decimal {
        Decimal::exact(
            value.is_negative(),
            (value.magnitude() * &*ten_to(self.places)) >> self.bits,
            tens.saturating_sub(self.places as i64),
        )
    }

    pub(super) fn write(&self, value: &BigInt) -> Decimal {
        self.decimal(value, 0).significant(PRECISION)
    }

    // Rounds towards zero, so that the terms of a series reach zero.
    fn mul(&self, a: &BigInt, b: &BigInt) -> BigInt {
        let (sign, magnitude) = (a * b).into_parts();
        BigInt::from_biguint(sign, magnitude >> self.bits)
    }

    pub(super) fn div(&self, a: &BigInt, b: &BigInt) -> BigInt {
        (a << self.bits) / b
    }

    // The inverse tangent of 1/n, hyperbolic unless `alternate`.
    fn arctangent_of_inverse(&self, n: u32, alternate: bool) -> BigInt {
        let square = n * n;
        let mut power = &self.one / n;
        let mut sum = power.clone();
        let mut k = 1u32;
        loop {
            power /= square;
            if power.is_zero() {
                return sum;
            }
            k += 2;
            let term = &power / k;
            if alternate && k % 4 == 3 {
                sum -= term;
            } else {
                sum += term;
            }
        }
    }

    pub(super) fn ln10(&self) -> BigInt {
        self.cached_constant(&LN10)
            .unwrap_or_else(|| self.ln10_series())
    }

    pub(super) fn pi(&self) -> BigInt {
        self.cached_constant(&PI)
            .unwrap_or_else(|| self.pi_series())
    }

    // A cached constant, if its digits suffice.
    fn cached_constant(&self, constant: &BigInt) -> Option<BigInt> {
        let more = bits(KNOWN).checked_sub(self.bits)?;
        Some(constant >> more)
    }

    // A Machin-like formula: three fast series instead of one slow one.
    fn ln10_series(&self) -> BigInt {
        self.arctangent_of_inverse(31, false) * 46
            + self.arctangent_of_inverse(49, false) * 34
            + self.arctangent_of_inverse(161, false) * 20
    }

    // Machin's formula.
    fn pi_series(&self) -> BigInt {
        (self.arctangent_of_inverse(5, true) * 4 - self.arctangent_of_inverse(239, true)) * 4
    }

    // Halves x first and squares afterwards, so that the series converges fast.
    pub(super) fn exp(&self, x: &BigInt) -> BigInt {
        const HALVINGS: u32 = 8;
        let small: BigInt = x >> HALVINGS;
        let mut term = self.one.clone();
        let mut sum = self.one.clone();
        let mut k = 1u32;
        loop {
            term = self.mul(&term, &small) / k;
            if term.is_zero() {
                break;
            }
            sum += &term;
            k += 1;
        }
        for _ in 0..HALVINGS {
            sum = self.mul(&sum, &sum);
        }
        sum
    }

    pub(super) fn sin_cos(&self, x: &BigInt) -> (BigInt, BigInt) {
        let square = self.mul(x, x);
        let series = |first: BigInt, start: u32| {
            let mut term = first;
            let mut sum = term.clone();
            let mut k = start;
            loop {
                term = -self.mul(&term, &square) / (k * (k + 1));
                if term.is_zero() {
                    return sum;
                }
                sum += &term;
                k += 2;
            }
        };
        (series(x.clone(), 2), series(self.one.clone(), 1))
    }

    pub(super) fn atan(&self, x: &BigInt) -> BigInt {
        // Each halving of the angle costs a square root but makes the series shorter.
        const HALVINGS: u32 = 6;
        let mut x = x.clone();
        for _ in 0..HALVINGS {
            let root = (&self.one * &self.one + &x * &x).sqrt();
            x = self.div(&x, &(&self.one + root));
        }
        let square = self.mul(&x, &x);
        let mut power = x.clone();
        let mut sum = x;
        let mut k = 1i64;
        loop {
            power = -self.mul(&power, &square);
            k += 2;
            let term = &power / k;
            if term.is_zero() {
                return sum << HALVINGS;
            }
            sum += term;
        }
    }
}
