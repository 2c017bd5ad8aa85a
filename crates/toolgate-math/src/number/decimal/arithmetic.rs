//! Arithmetic of decimals: sums, products, quotients, powers and roots.

use std::cmp::Ordering;

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::{One, Zero};

use super::{Decimal, DecimalKind, PRECISION, WIDE, digit_count, ten_to};

impl Decimal {
    pub(crate) fn neg(&self) -> Self {
        Self {
            negative: !self.negative,
            ..self.clone()
        }
    }

    pub(crate) fn negate_if(self, negative: bool) -> Self {
        if negative { self.neg() } else { self }
    }

    pub(crate) fn abs(&self) -> Self {
        Self {
            negative: false,
            ..self.clone()
        }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        self.add_to(other, PRECISION)
    }

    pub(crate) fn add_to(&self, other: &Self, digits: usize) -> Self {
        match (self.kind, other.kind) {
            (DecimalKind::NotANumber, _) | (_, DecimalKind::NotANumber) => return Self::nan(),
            (DecimalKind::Infinite, DecimalKind::Infinite) if self.negative != other.negative => {
                return Self::nan();
            }
            (DecimalKind::Infinite, _) => return self.clone(),
            (_, DecimalKind::Infinite) => return other.clone(),
            _ => {}
        }
        if self.is_zero() {
            return other.clone().keep_digits(digits);
        }
        if other.is_zero() {
            return self.clone().keep_digits(digits);
        }
        let (high, low) = if self.magnitude() >= other.magnitude() {
            (self, other)
        } else {
            (other, self)
        };
        // A number entirely below the last digit only affects rounding, so a single sticky digit
        // can replace it.
        let reach = (digit_count(&high.coefficient).max(digits) + 2) as i64;
        let sticky = Self::exact(low.negative, BigUint::one(), high.magnitude() - reach);
        let low = if low.magnitude() < high.magnitude() - reach {
            &sticky
        } else {
            low
        };
        let exponent = high.exponent.min(low.exponent);
        let align = |value: &Self| {
            &value.coefficient * &*ten_to(usize::try_from(value.exponent - exponent).unwrap_or(0))
        };
        let (a, b) = (align(high), align(low));
        if high.negative == low.negative {
            return Self::exact(high.negative, a + b, exponent).keep_digits(digits);
        }
        match a.cmp(&b) {
            Ordering::Equal => Self::integer(0),
            Ordering::Greater => Self::exact(high.negative, a - b, exponent).keep_digits(digits),
            Ordering::Less => Self::exact(low.negative, b - a, exponent).keep_digits(digits),
        }
    }

    pub(crate) fn sub(&self, other: &Self) -> Self {
        self.add(&other.neg())
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        let negative = self.negative != other.negative;
        match (self.kind, other.kind) {
            (DecimalKind::Finite, DecimalKind::Finite) => Self::rounded(
                negative,
                &self.coefficient * &other.coefficient,
                self.exponent.saturating_add(other.exponent),
            ),
            (DecimalKind::NotANumber, _) | (_, DecimalKind::NotANumber) => Self::nan(),
            _ if self.is_zero() || other.is_zero() => Self::nan(),
            _ => Self::infinity(negative),
        }
    }

    pub(crate) fn div(&self, other: &Self) -> Self {
        self.div_to(other, PRECISION)
    }

    pub(crate) fn div_to(&self, other: &Self, digits: usize) -> Self {
        let negative = self.negative != other.negative;
        match (self.kind, other.kind) {
            (DecimalKind::NotANumber, _)
            | (_, DecimalKind::NotANumber)
            | (DecimalKind::Infinite, DecimalKind::Infinite) => {
                return Self::nan();
            }
            (DecimalKind::Infinite, _) => return Self::infinity(negative),
            (_, DecimalKind::Infinite) => return Self::integer(0),
            _ => {}
        }
        if other.is_zero() {
            return if self.is_zero() {
                Self::nan()
            } else {
                Self::infinity(negative)
            };
        }
        // Three more digits than wanted, so that rounding is exact.
        let shift = (digits + 3 + digit_count(&other.coefficient))
            .saturating_sub(digit_count(&self.coefficient));
        let (quotient, rest) = (&self.coefficient * &*ten_to(shift)).div_rem(&other.coefficient);
        // One more digit shows whether there is a remainder, which decides ties.
        let quotient = quotient * 10u8 + u8::from(!rest.is_zero());
        Self::exact(
            negative,
            quotient,
            self.exponent - other.exponent - shift as i64 - 1,
        )
        .keep_digits(digits)
    }

    // Carries a few more digits than the result, because every squaring loses some.
    pub(crate) fn powi(&self, exponent: &num_bigint::BigInt) -> Self {
        let mut count = exponent.magnitude().clone();
        let mut base = self.clone();
        let mut result = Self::integer(1);
        while !count.is_zero() {
            if count.is_odd() {
                result = result.mul_wide(&base);
            }
            count >>= 1u8;
            if !count.is_zero() {
                base = base.mul_wide(&base);
            }
            if !result.is_finite() || (result.is_zero() && base.is_zero()) {
                break;
            }
        }
        if exponent.sign() == num_bigint::Sign::Minus {
            result = Self::integer(1).div(&result);
        }
        result.keep_digits(PRECISION)
    }

    pub(crate) fn mul_wide(&self, other: &Self) -> Self {
        if !self.is_finite() || !other.is_finite() {
            return self.mul(other);
        }
        Self::exact(
            self.negative != other.negative,
            &self.coefficient * &other.coefficient,
            self.exponent.saturating_add(other.exponent),
        )
        .keep_digits(WIDE)
    }

    /// The square root. `self` must not be negative.
    pub(crate) fn sqrt(&self) -> Self {
        if !self.is_finite() || self.is_zero() {
            return self.clone();
        }
        self.root(2)
    }

    /// The `n`-th root. `self` must be finite and not negative.
    pub(crate) fn root(&self, n: u32) -> Self {
        let step = i64::from(n);
        let wanted = (PRECISION + 4) * n as usize;
        let mut shift = wanted.saturating_sub(digit_count(&self.coefficient)) as i64;
        // The exponent must be a multiple of n, or its root would not be whole.
        shift += (self.exponent - shift).rem_euclid(step);
        let scaled = &self.coefficient * &*ten_to(usize::try_from(shift).unwrap_or(0));
        let root = scaled.nth_root(n);
        let inexact = root.pow(n) != scaled;
        let digits = root * 10u8 + u8::from(inexact);
        Self::rounded(false, digits, (self.exponent - shift) / step - 1)
    }

    /// Compares two numbers; `None` if one is NaN.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        let difference = self.sub(other);
        if difference.is_nan() {
            let same = self.kind == DecimalKind::Infinite
                && self.kind == other.kind
                && self.negative == other.negative;
            return same.then_some(Ordering::Equal);
        }
        Some(if difference.is_zero() {
            Ordering::Equal
        } else if difference.is_negative() {
            Ordering::Less
        } else {
            Ordering::Greater
        })
    }
}
