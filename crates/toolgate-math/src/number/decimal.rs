//! Decimals with 64 significant digits, rounded half up: what `bignumber(…)` makes.

mod arithmetic;

use std::borrow::Cow;
use std::sync::LazyLock;

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::{ToPrimitive, Zero};

use super::real::DecimalDigits;

pub(crate) const PRECISION: usize = 64;
// Intermediate results carry more digits, so that the last digit of the final one is right.
pub(crate) const WIDE: usize = PRECISION + 24;
// A number with a larger exponent becomes infinity; below the negative limit it becomes zero.
const MAX_EXPONENT: i64 = 9_000_000_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    kind: DecimalKind,
    negative: bool,
    // Never ends with zeros.
    coefficient: BigUint,
    exponent: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecimalKind {
    Finite,
    Infinite,
    NotANumber,
}

/// The powers of ten that decimals of [`WIDE`] digits need repeatedly.
static TENS: LazyLock<Vec<BigUint>> = LazyLock::new(|| {
    let powers = std::iter::successors(Some(BigUint::from(1u8)), |power| Some(power * 10u8));
    powers.take(2 * WIDE).collect()
});

pub(crate) fn ten_to(power: usize) -> Cow<'static, BigUint> {
    match TENS.get(power) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(BigUint::from(10u8).pow(u32::try_from(power).unwrap_or(u32::MAX))),
    }
}

pub(super) fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn digit_count(value: &BigUint) -> usize {
    if value.is_zero() {
        return 1;
    }
    // log10(2) rounded down, so the estimate is too small by one at most.
    let estimate = ((value.bits() - 1) as f64 * std::f64::consts::LOG10_2) as usize;
    if *value >= *ten_to(estimate + 1) {
        estimate + 2
    } else if *value >= *ten_to(estimate) {
        estimate + 1
    } else {
        estimate
    }
}

impl Decimal {
    /// `coefficient × 10^exponent` with all its digits.
    pub(crate) fn exact(negative: bool, coefficient: BigUint, exponent: i64) -> Self {
        let mut value = Self {
            kind: DecimalKind::Finite,
            negative,
            coefficient,
            exponent,
        };
        value.trim();
        value
    }

    /// `coefficient × 10^exponent`, rounded to [`PRECISION`] digits.
    pub(crate) fn rounded(negative: bool, coefficient: BigUint, exponent: i64) -> Self {
        Self::exact(negative, coefficient, exponent).keep_digits(PRECISION)
    }

    pub(crate) fn integer(value: u64) -> Self {
        Self::exact(false, BigUint::from(value), 0)
    }

    pub(crate) fn infinity(negative: bool) -> Self {
        Self {
            kind: DecimalKind::Infinite,
            negative,
            ..Self::integer(0)
        }
    }

    pub(crate) fn nan() -> Self {
        Self {
            kind: DecimalKind::NotANumber,
            ..Self::integer(0)
        }
    }

    pub(crate) fn from_number(value: f64) -> Self {
        if value.is_nan() {
            return Self::nan();
        }
        if value.is_infinite() {
            return Self::infinity(value < 0.0);
        }
        let digits = DecimalDigits::from_number(value);
        let coefficient = digits
            .digits
            .iter()
            .fold(BigUint::zero(), |sum, digit| sum * 10u8 + *digit);
        Self::exact(
            digits.negative,
            coefficient,
            digits.exponent - digits.digits.len() as i64 + 1,
        )
    }

    /// Reads `-12.5e3`, `Infinity` or `NaN`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (negative, text) = split_sign(text);
        match text {
            "Infinity" => return Some(Self::infinity(negative)),
            "NaN" => return Some(Self::nan()),
            _ => {}
        }
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let coefficient = BigUint::parse_bytes(digits.as_bytes(), 10)?;
        Some(Self::exact(
            negative,
            coefficient,
            exponent.checked_sub(fraction.len() as i64)?,
        ))
    }

    fn trim(&mut self) {
        if self.coefficient.is_zero() {
            self.exponent = 0;
            return;
        }
        // Large steps first, so that few divisions remove most zeros.
        for step in [16usize, 4, 1] {
            let power = ten_to(step);
            // A multiple of 10^k is also a multiple of 2^k, which can be checked without dividing.
            while self.coefficient.trailing_zeros() >= Some(step as u64) {
                let (quotient, rest) = self.coefficient.div_rem(&power);
                if !rest.is_zero() {
                    break;
                }
                self.coefficient = quotient;
                self.exponent += step as i64;
            }
        }
        let magnitude = self.magnitude();
        // These are the limits of decimal.js.
        if magnitude > MAX_EXPONENT {
            *self = Self::infinity(self.negative);
        } else if magnitude < -MAX_EXPONENT {
            *self = Self {
                coefficient: BigUint::zero(),
                exponent: 0,
                ..self.clone()
            };
        }
    }

    fn keep_digits(mut self, digits: usize) -> Self {
        let count = digit_count(&self.coefficient);
        if count <= digits || self.kind != DecimalKind::Finite {
            return self;
        }
        self.drop_digits(count - digits);
        self
    }

    fn drop_digits(&mut self, count: usize) {
        let power = ten_to(count);
        let (quotient, rest) = self.coefficient.div_rem(&power);
        let up = rest * 2u8 >= *power;
        self.coefficient = if up { quotient + 1u8 } else { quotient };
        self.exponent += count as i64;
        self.trim();
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.kind == DecimalKind::Finite
    }

    pub(crate) fn is_nan(&self) -> bool {
        self.kind == DecimalKind::NotANumber
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.is_finite() && self.coefficient.is_zero()
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.negative && !self.is_zero() && !self.is_nan()
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.is_finite() && self.exponent >= 0
    }

    pub(crate) fn magnitude(&self) -> i64 {
        self.exponent + digit_count(&self.coefficient) as i64 - 1
    }

    pub(crate) fn bits(&self) -> u64 {
        self.coefficient.bits()
    }

    pub(crate) fn digits(&self) -> DecimalDigits {
        DecimalDigits {
            negative: self.is_negative(),
            digits: self.coefficient.to_radix_be(10),
            exponent: self.magnitude(),
        }
    }

    /// The number as an integer, if it is one of at most `digits` digits.
    pub(crate) fn to_integer(&self, digits: usize) -> Option<num_bigint::BigInt> {
        if !self.is_integer() || self.magnitude() > digits as i64 {
            return None;
        }
        let value = &self.coefficient * &*ten_to(usize::try_from(self.exponent).ok()?);
        let value = num_bigint::BigInt::from(value);
        Some(if self.negative { -value } else { value })
    }

    pub(crate) fn from_integer(value: &num_bigint::BigInt) -> Self {
        Self::exact(
            value.sign() == num_bigint::Sign::Minus,
            value.magnitude().clone(),
            0,
        )
    }

    pub(crate) fn to_f64(&self) -> f64 {
        let sign = if self.negative { -1.0 } else { 1.0 };
        match self.kind {
            DecimalKind::NotANumber => f64::NAN,
            DecimalKind::Infinite => sign * f64::INFINITY,
            DecimalKind::Finite => {
                // Parsing rounds correctly, and forty digits decide all but exact ties.
                let short = self.clone().keep_digits(40);
                format!("{}e{}", short.coefficient, short.exponent)
                    .parse::<f64>()
                    .unwrap_or(f64::NAN)
                    * sign
            }
        }
    }

    pub(crate) fn floor(&self) -> Self {
        let whole = self.truncate();
        if self.is_negative() && whole != *self {
            whole.exact_sub_one()
        } else {
            whole
        }
    }

    fn exact_sub_one(&self) -> Self {
        match self.to_integer(4 * PRECISION) {
            Some(value) => Self::from_integer(&(value - 1)),
            None => self.clone(),
        }
    }

    pub(crate) fn truncate(&self) -> Self {
        if !self.is_finite() || self.exponent >= 0 {
            return self.clone();
        }
        let cut = usize::try_from(-self.exponent).unwrap_or(usize::MAX);
        if cut > digit_count(&self.coefficient) {
            return Self::integer(0);
        }
        Self::exact(self.negative, &self.coefficient / &*ten_to(cut), 0)
    }

    /// Rounds half away from zero to `places` decimals.
    pub(crate) fn round(&self, places: i64) -> Self {
        let cut = -self.exponent - places;
        if !self.is_finite() || cut <= 0 {
            return self.clone();
        }
        let cut = usize::try_from(cut).unwrap_or(usize::MAX);
        if cut > digit_count(&self.coefficient) {
            return Self::integer(0);
        }
        let mut value = self.clone();
        value.drop_digits(cut);
        value
    }

    pub(crate) fn significant(&self, digits: usize) -> Self {
        self.clone().keep_digits(digits)
    }

    pub(crate) fn to_u32(&self) -> Option<u32> {
        self.to_integer(10)?.to_u32()
    }

    pub(super) fn parts(&self) -> (bool, &BigUint, i64) {
        (self.negative, &self.coefficient, self.exponent)
    }

    pub(crate) fn decimals(&self) -> i64 {
        (-self.exponent).max(0)
    }

    /// Multiplies by 10^`places` without rounding.
    pub(crate) fn shifted(&self, places: usize) -> Self {
        Self {
            exponent: self.exponent.saturating_add(places as i64),
            ..self.clone()
        }
    }
}
