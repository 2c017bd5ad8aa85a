//! Exact fractions of integers of any size.

use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// A reduced fraction; the denominator is positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) num: BigInt,
    pub(crate) den: BigInt,
}

impl Fraction {
    /// Reduces `num / den`; `None` if `den` is zero.
    pub(crate) fn new(num: BigInt, den: BigInt) -> Option<Self> {
        if den.is_zero() {
            return None;
        }
        let divisor = num.gcd(&den);
        let (mut num, mut den) = (num / &divisor, den / divisor);
        if den.is_negative() {
            (num, den) = (-num, -den);
        }
        Some(Self { num, den })
    }

    pub(crate) fn integer(value: BigInt) -> Self {
        Self {
            num: value,
            den: BigInt::one(),
        }
    }

    /// The simplest fraction that rounds to this double, found in the Stern-Brocot tree.
    ///
    /// The denominator stays below ten million for numbers under 1. Larger numbers are first scaled
    /// down by a power of ten.
    pub(crate) fn from_number(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        if value.fract() == 0.0 {
            return Some(Self::integer(num_traits::FromPrimitive::from_f64(value)?));
        }
        let mut x = value.abs();
        let mut scale = 1.0;
        if x >= 1.0 {
            scale = libm::pow(10.0, (1.0 + libm::log10(x)).floor());
            x /= scale;
        }
        let (n, d) = simplest_between(x);
        let sign = if value < 0.0 { Sign::Minus } else { Sign::Plus };
        let num = BigInt::from(n)
            * num_traits::FromPrimitive::from_f64(scale).unwrap_or_else(BigInt::one);
        Self::new(
            BigInt::from_biguint(sign, num.magnitude().clone()),
            BigInt::from(d),
        )
    }

    /// Parses `1/3`, `0.25`, `-2` or `0.(3)`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((num, den)) = text.split_once(['/', ':']) {
            return Self::new(num.trim().parse().ok()?, den.trim().parse().ok()?);
        }
        let (negative, text) = super::decimal::split_sign(text);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let (fixed, cycle) = match fraction.split_once('(') {
            Some((fixed, cycle)) => (fixed, cycle.strip_suffix(')')?),
            None => (fraction, ""),
        };
        let digits = |text: &str| -> Option<BigInt> {
            if text.is_empty() {
                Some(BigInt::zero())
            } else if text.bytes().all(|b| b.is_ascii_digit()) {
                text.parse().ok()
            } else {
                None
            }
        };
        if whole.is_empty() && fixed.is_empty() && cycle.is_empty() {
            return None;
        }
        let shift = BigInt::from(10).pow(u32::try_from(fixed.len()).ok()?);
        let mut value = Self::new(digits(whole)? * &shift + digits(fixed)?, shift.clone())?;
        if !cycle.is_empty() {
            let nines = BigInt::from(10).pow(u32::try_from(cycle.len()).ok()?) - 1;
            value = value.add(&Self::new(digits(cycle)?, nines * shift)?);
        }
        Some(if negative { value.neg() } else { value })
    }

    /// The decimal text, with repeating digits in brackets: `0.1(6)`. If no digits repeat, or if
    /// the cycle is very long, it ends after 15 decimals.
    pub(crate) fn to_decimal_text(&self) -> String {
        const MAX_CYCLE: usize = 2000;
        let sign = if self.num.is_negative() { "-" } else { "" };
        let (whole, mut rest) = self.num.abs().div_rem(&self.den);
        // The factors 2 and 5 of the denominator determine the digits before the cycle.
        let mut core = self.den.clone();
        let mut start = 0;
        for factor in [2u8, 5] {
            let mut count = 0;
            while (&core % factor).is_zero() {
                core /= factor;
                count += 1;
            }
            start = start.max(count);
        }
        // The cycle is as long as the order of ten modulo the rest of the denominator.
        let mut power = BigInt::from(10) % &core;
        let mut cycle = usize::from(!core.is_one());
        while cycle > 0 && !power.is_one() && cycle <= MAX_CYCLE {
            power = power * 10 % &core;
            cycle += 1;
        }
        let mut digits = |count: usize| -> String {
            (0..count)
                .map(|_| {
                    rest = &rest * 10;
                    let (digit, left) = rest.div_rem(&self.den);
                    rest = left;
                    char::from(b'0' + digit.to_u8().unwrap_or(0))
                })
                .collect()
        };
        if self.is_integer() {
            return format!("{sign}{whole}");
        }
        if cycle == 0 || cycle > MAX_CYCLE {
            let shown = if cycle == 0 { start.min(15) } else { 15 };
            return format!("{sign}{whole}.{}", digits(shown));
        }
        // A cycle that starts late is written as if it started at once.
        let (fixed, repeated) = (digits(if start < 300 { start } else { 0 }), digits(cycle));
        format!("{sign}{whole}.{fixed}({repeated})")
    }

    pub(crate) fn exact_root(&self, n: u32) -> Option<Self> {
        if self.num.is_negative() {
            return None;
        }
        let root = Self {
            num: self.num.nth_root(n),
            den: self.den.nth_root(n),
        };
        (root.num.pow(n) == self.num && root.den.pow(n) == self.den).then_some(root)
    }

    /// The size in bits of the larger of numerator and denominator.
    pub(crate) fn bits(&self) -> u64 {
        self.num.bits().max(self.den.bits())
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        Self::new(
            &self.num * &other.den + &other.num * &self.den,
            &self.den * &other.den,
        )
        .unwrap_or_else(|| self.clone())
    }

    pub(crate) fn sub(&self, other: &Self) -> Self {
        self.add(&other.neg())
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        Self::new(&self.num * &other.num, &self.den * &other.den).unwrap_or_else(|| self.clone())
    }

    pub(crate) fn div(&self, other: &Self) -> Option<Self> {
        Self::new(&self.num * &other.den, &self.den * &other.num)
    }

    pub(crate) fn neg(&self) -> Self {
        Self {
            num: -&self.num,
            den: self.den.clone(),
        }
    }

    pub(crate) fn abs(&self) -> Self {
        Self {
            num: self.num.abs(),
            den: self.den.clone(),
        }
    }

    pub(crate) fn floor(&self) -> Self {
        Self::integer(self.num.div_floor(&self.den))
    }

    pub(crate) fn ceil(&self) -> Self {
        Self::integer(self.num.div_ceil(&self.den))
    }

    /// Rounds to the nearest integer, halves up.
    pub(crate) fn round(&self) -> Self {
        let twice: BigInt = &self.num * 2 + &self.den;
        Self::integer(twice.div_floor(&(&self.den * 2)))
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.den.is_one()
    }

    pub(crate) fn to_f64(&self) -> f64 {
        // Dividing two doubles rounds correctly, but larger parts must first be cut to
        // 1080 bits or less.
        let excess = self.bits().saturating_sub(1000);
        let part = |part: &BigInt| (part >> excess).to_f64().unwrap_or(f64::NAN);
        part(&self.num) / part(&self.den)
    }

    pub(crate) fn compare(&self, other: &Self) -> std::cmp::Ordering {
        (&self.num * &other.den).cmp(&(&other.num * &self.den))
    }
}

// Walks down the Stern-Brocot tree to `x`. Jumps over runs in one direction, which could
// be millions of steps.
fn simplest_between(x: f64) -> (u64, u64) {
    const LIMIT: f64 = 10_000_000.0;
    let (mut a, mut b, mut c, mut d) = (0.0, 1.0, 1.0, 1.0);
    let mut best = (0.0, 1.0);
    while b <= LIMIT && d <= LIMIT {
        let middle = (a + c) / (b + d);
        if x == middle {
            best = if b + d <= LIMIT {
                (a + c, b + d)
            } else if d > b {
                (c, d)
            } else {
                (a, b)
            };
            break;
        }
        if x > middle {
            let run = largest_step(|k: f64| x > (a + k * c) / (b + k * d), (LIMIT - b) / d);
            a += run * c;
            b += run * d;
        } else {
            let run = largest_step(|k: f64| x < (c + k * a) / (d + k * b), (LIMIT - d) / b);
            c += run * a;
            d += run * b;
        }
        best = if b > LIMIT { (c, d) } else { (a, b) };
    }
    (best.0 as u64, best.1 as u64)
}

// The largest step for which `holds` is true: at least 1, and at most one beyond `limit`.
fn largest_step(holds: impl Fn(f64) -> bool, limit: f64) -> f64 {
    let limit = limit.floor() + 1.0;
    let mut low = 1.0;
    let mut high = 2.0;
    while high <= limit && holds(high) {
        low = high;
        high *= 2.0;
    }
    high = high.min(limit + 1.0);
    while high - low > 1.0 {
        let middle = ((low + high) / 2.0).floor();
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
