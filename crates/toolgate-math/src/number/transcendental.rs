//! Exponentials, logarithms and trigonometry of decimals, in fixed point with guard digits.

mod fixed;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, ToPrimitive};

use super::decimal::{Decimal, PRECISION, WIDE};
use fixed::FixedPoint;

// Guard digits carried beyond those shown.
const SPARE: usize = 16;

// The decimals that fixed point needs for full precision at this magnitude of argument or result.
fn places(value: &Decimal) -> usize {
    let magnitude = value.magnitude();
    PRECISION + SPARE + usize::try_from(magnitude.abs().min(2000)).unwrap_or(0) + 4
}

// The most digits before the point for which an angle can be reduced.
const MAX_ANGLE: i64 = 1000;

impl Decimal {
    pub(crate) fn exp(&self) -> Self {
        self.exp_wide().significant(PRECISION)
    }

    // e^x with guard digits, for further computation.
    fn exp_wide(&self) -> Self {
        if self.is_nan() {
            return self.clone();
        }
        // The result would have an exponent of more than 17 digits.
        if !self.is_finite() || self.magnitude() > 17 {
            return if self.is_negative() {
                Self::integer(0)
            } else {
                Self::infinity(false)
            };
        }
        // e^x differs from 1 only beyond the last digit.
        if self.magnitude() < -(PRECISION as i64) - 2 {
            return Self::integer(1);
        }
        let fixed = FixedPoint::new(places(self));
        let (tens, rest) = fixed.read(self).div_mod_floor(&fixed.ln10());
        let tens = tens.to_i64().unwrap_or(i64::MAX);
        fixed.decimal(&fixed.exp(&rest), tens).significant(WIDE)
    }

    pub(crate) fn exp_m1(&self) -> Self {
        self.exp_m1_wide().significant(PRECISION)
    }

    // Keeps guard digits even where e^x is nearly one, and subtracting 1 would cancel.
    fn exp_m1_wide(&self) -> Self {
        if self.magnitude() >= 0 || !self.is_finite() {
            return self.exp_wide().add_to(&Self::integer(1).neg(), WIDE);
        }
        let fixed = FixedPoint::new(places(self));
        let value = fixed.exp(&fixed.read(self)) - &fixed.one;
        fixed.decimal(&value, 0).significant(WIDE)
    }

    /// The natural logarithm. `self` must be positive.
    pub(crate) fn ln(&self) -> Self {
        self.ln_wide().significant(PRECISION)
    }

    pub(crate) fn log2(&self) -> Self {
        self.ln_wide().div(&Self::integer(2).ln_wide())
    }

    // The natural logarithm with guard digits, for further computation.
    fn ln_wide(&self) -> Self {
        if self.is_zero() {
            return Self::infinity(true);
        }
        if self.is_negative() {
            return Self::nan();
        }
        if !self.is_finite() {
            return self.clone();
        }
        let magnitude = self.magnitude();
        let (_, coefficient, exponent) = self.parts();
        // The mantissa is close to one, so the iteration starts from an accurate double.
        let mantissa = Self::exact(false, coefficient.clone(), exponent - magnitude);
        let start = Self::from_number(libm::log(mantissa.to_f64()));
        // Each round triples the correct digits (15, 45, 135), so the first needs few.
        let refine = |fixed: &FixedPoint, y: BigInt| -> BigInt {
            let (m, e) = (fixed.read(&mantissa), fixed.exp(&y));
            y + fixed.div(&((&m - &e) * 2), &(&m + &e))
        };
        let rough = FixedPoint::new(PRECISION);
        let near = refine(&rough, rough.read(&start));
        let fixed = FixedPoint::new(2 * PRECISION + SPARE);
        let y = refine(&fixed, near << (fixed.bits - rough.bits));
        let value: BigInt = y + fixed.ln10() * magnitude;
        fixed.decimal(&value, 0).significant(WIDE)
    }

    pub(crate) fn log10(&self) -> Self {
        if let (false, coefficient, exponent) = self.parts()
            && coefficient.is_one()
            && self.is_finite()
        {
            return Self::from_integer(&BigInt::from(exponent));
        }
        let fixed = FixedPoint::new(WIDE + SPARE);
        self.ln_wide().div(&fixed.decimal(&fixed.ln10(), 0))
    }

    /// `self` to any power; `None` for a negative base with a fractional exponent.
    pub(crate) fn pow(&self, exponent: &Self) -> Option<Self> {
        if let Some(count) = exponent.to_integer(20) {
            return Some(self.powi(&count));
        }
        if self.is_negative() {
            return None;
        }
        if self.is_zero() {
            return Some(if exponent.is_negative() {
                Self::infinity(false)
            } else {
                Self::integer(0)
            });
        }
        // A root is exact where the logarithm would not be.
        if *exponent == Self::exact(false, 5u8.into(), -1) {
            return Some(self.sqrt());
        }
        Some(exponent.mul_wide(&self.ln_wide()).exp())
    }

    /// Sine and cosine; `None` beyond [`MAX_ANGLE`] digits before the point.
    fn sin_cos(&self) -> Option<(Self, Self)> {
        if !self.is_finite() {
            return Some((Self::nan(), Self::nan()));
        }
        if self.magnitude() > MAX_ANGLE {
            return None;
        }
        let fixed = FixedPoint::new(places(self));
        let quarter = fixed.pi() / 2;
        let (turns, rest) = fixed.read(self).div_mod_floor(&quarter);
        let (sin, cos) = fixed.sin_cos(&rest);
        let (sin, cos) = match turns.mod_floor(&BigInt::from(4)).to_u8() {
            Some(0) => (sin, cos),
            Some(1) => (cos, -sin),
            Some(2) => (-sin, -cos),
            _ => (-cos, sin),
        };
        Some((fixed.write(&sin), fixed.write(&cos)))
    }

    pub(crate) fn sin(&self) -> Option<Self> {
        Some(self.sin_cos()?.0)
    }

    pub(crate) fn cos(&self) -> Option<Self> {
        Some(self.sin_cos()?.1)
    }

    pub(crate) fn tan(&self) -> Option<Self> {
        let (sin, cos) = self.sin_cos()?;
        Some(sin.div(&cos))
    }

    pub(crate) fn atan(&self) -> Self {
        let fixed = FixedPoint::new(places(self));
        if self.is_nan() {
            return self.clone();
        }
        if !self.is_finite() || self.magnitude() > 2 * PRECISION as i64 {
            let half_pi = fixed.write(&(fixed.pi() / 2));
            return half_pi.negate_if(self.is_negative());
        }
        // atan(x) = x - x³/3 …: the second term is below the last digit.
        if self.magnitude() < -(PRECISION as i64) {
            return self.clone();
        }
        fixed.write(&fixed.atan(&fixed.read(self)))
    }

    pub(crate) fn pi() -> Self {
        let fixed = FixedPoint::new(PRECISION + SPARE);
        fixed.write(&fixed.pi())
    }

    pub(crate) fn asin(&self) -> Self {
        let one = Self::integer(1);
        let rest = one.sub(self).mul(&one.add(self));
        if rest.is_negative() {
            return Self::nan();
        }
        self.div(&rest.sqrt()).atan()
    }

    pub(crate) fn acos(&self) -> Self {
        let one = Self::integer(1);
        let order = self.abs().compare(&one);
        if order.is_none_or(std::cmp::Ordering::is_gt) {
            return Self::nan();
        }
        // 2 atan(√((1 - x) / (1 + x))) keeps its digits near 1.
        one.sub(self)
            .div(&one.add(self))
            .sqrt()
            .atan()
            .mul(&Self::integer(2))
    }

    pub(crate) fn sinh(&self) -> Self {
        let grown = self.exp_m1_wide();
        if !self.is_finite() {
            return self.clone();
        }
        if !grown.is_finite() {
            return grown;
        }
        // (m + m / (m + 1)) / 2 with m = e^x - 1 avoids cancellation.
        let ratio = grown.div_to(&grown.add_to(&Self::integer(1), WIDE), WIDE);
        grown.add_to(&ratio, WIDE).div(&Self::integer(2))
    }

    pub(crate) fn cosh(&self) -> Self {
        let grown = self.exp_wide();
        let shrunk = Self::integer(1).div_to(&grown, WIDE);
        grown.add_to(&shrunk, WIDE).div(&Self::integer(2))
    }

    pub(crate) fn tanh(&self) -> Self {
        if !self.is_finite() || self.magnitude() > 3 {
            return Self::integer(1).negate_if(self.is_negative());
        }
        let grown = self.mul(&Self::integer(2)).exp_m1_wide();
        grown.div(&grown.add_to(&Self::integer(2), WIDE))
    }

    pub(crate) fn asinh(&self) -> Self {
        let root = self.mul(self).add(&Self::integer(1)).sqrt();
        let value = self.abs().add(&root).ln();
        value.negate_if(self.is_negative())
    }

    pub(crate) fn acosh(&self) -> Self {
        let square = self.mul(self).sub(&Self::integer(1));
        if square.is_negative() || self.is_negative() {
            return Self::nan();
        }
        self.add(&square.sqrt()).ln()
    }

    pub(crate) fn atanh(&self) -> Self {
        let one = Self::integer(1);
        let ratio = one.add(self).div(&one.sub(self));
        if ratio.is_negative() {
            return Self::nan();
        }
        ratio.ln().div(&Self::integer(2))
    }
}
