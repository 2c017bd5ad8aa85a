//! Complex numbers of two doubles.

use libm::{atan2, cos, exp, log, sin};

use super::real;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Complex {
    pub(crate) re: f64,
    pub(crate) im: f64,
}

pub(crate) const fn complex(re: f64, im: f64) -> Complex {
    Complex { re, im }
}

// Computed by definition, which gives the same last digits as complex.js.
fn cosh(x: f64) -> f64 {
    (real::exp(x) + real::exp(-x)) * 0.5
}

fn sinh(x: f64) -> f64 {
    if x.abs() < 1e-9 {
        x
    } else {
        (real::exp(x) - real::exp(-x)) * 0.5
    }
}

// Half the logarithm of a² + b², computed without overflow.
fn log_hypot(a: f64, b: f64) -> f64 {
    if a == 0.0 {
        log(b.abs())
    } else if b == 0.0 {
        log(a.abs())
    } else if a.abs() < 3000.0 && b.abs() < 3000.0 {
        log(a * a + b * b) * 0.5
    } else {
        let (a, b) = (a * 0.5, b * 0.5);
        0.5 * log(a * a + b * b) + std::f64::consts::LN_2
    }
}

impl Complex {
    const ONE: Self = complex(1.0, 0.0);
    pub(crate) const I: Self = complex(0.0, 1.0);
    const NAN: Self = complex(f64::NAN, f64::NAN);
    const INFINITY: Self = complex(f64::INFINITY, f64::INFINITY);

    // There is only one infinity. Adding a finite number doesn't change it, and adding two of them
    // gives NaN.
    pub(crate) fn add(self, other: Self) -> Self {
        match (self.is_infinite(), other.is_infinite()) {
            (true, true) => Self::NAN,
            (false, false) => complex(self.re + other.re, self.im + other.im),
            _ => Self::INFINITY,
        }
    }

    pub(crate) fn sub(self, other: Self) -> Self {
        self.add(other.neg())
    }

    pub(crate) fn neg(self) -> Self {
        complex(-self.re, -self.im)
    }

    pub(crate) fn conj(self) -> Self {
        complex(self.re, -self.im)
    }

    pub(crate) fn scale(self, factor: f64) -> Self {
        complex(self.re * factor, self.im * factor)
    }

    pub(crate) fn mul(self, other: Self) -> Self {
        if self.is_infinite() || other.is_infinite() {
            return if self.is_zero() || other.is_zero() {
                Self::NAN
            } else {
                Self::INFINITY
            };
        }
        if self.im == 0.0 && other.im == 0.0 {
            return complex(self.re * other.re, 0.0);
        }
        complex(
            self.re * other.re - self.im * other.im,
            self.re * other.im + self.im * other.re,
        )
    }

    // NaN counts as infinite in sums and products, as in complex.js.
    pub(crate) fn is_infinite(self) -> bool {
        !self.re.is_finite() || !self.im.is_finite()
    }

    pub(crate) fn is_nan(self) -> bool {
        self.re.is_nan() || self.im.is_nan()
    }

    fn is_zero(self) -> bool {
        self.re == 0.0 && self.im == 0.0
    }

    pub(crate) fn div(self, other: Self) -> Self {
        let (a, b, c, d) = (self.re, self.im, other.re, other.im);
        match (self.is_infinite(), other.is_infinite()) {
            (true, true) => return Self::NAN,
            (true, false) => return Self::INFINITY,
            (false, true) => return complex(0.0, 0.0),
            (false, false) if other.is_zero() => {
                return if self.is_zero() {
                    Self::NAN
                } else {
                    Self::INFINITY
                };
            }
            (false, false) => {}
        }
        if d == 0.0 {
            return complex(a / c, b / c);
        }
        // Smith's method: dividing by the larger part first keeps squares from overflowing.
        if c.abs() < d.abs() {
            let ratio = c / d;
            let scale = c * ratio + d;
            return complex((a * ratio + b) / scale, (b * ratio - a) / scale);
        }
        let ratio = d / c;
        let scale = d * ratio + c;
        complex((a + b * ratio) / scale, (b - a * ratio) / scale)
    }

    pub(crate) fn abs(self) -> f64 {
        let (a, b) = (self.re.abs(), self.im.abs());
        // Squares of these can't overflow, and the plain formula has complex.js' last digits.
        if a < 3000.0 && b < 3000.0 {
            return (a * a + b * b).sqrt();
        }
        let (large, small) = if a < b { (b, a) } else { (a, b) };
        let ratio = small / large;
        large * (1.0 + ratio * ratio).sqrt()
    }

    pub(crate) fn arg(self) -> f64 {
        atan2(self.im, self.re)
    }

    pub(crate) fn sqrt(self) -> Self {
        let (a, b) = (self.re, self.im);
        if b == 0.0 {
            return if a >= 0.0 {
                complex(a.sqrt(), 0.0)
            } else {
                complex(0.0, (-a).sqrt())
            };
        }
        let radius = self.abs();
        let re = if a >= 0.0 {
            0.5 * (2.0 * (radius + a)).sqrt()
        } else {
            b.abs() / (2.0 * (radius - a)).sqrt()
        };
        let im = if a < 0.0 {
            0.5 * (2.0 * (radius - a)).sqrt()
        } else {
            b.abs() / (2.0 * (radius + a)).sqrt()
        };
        complex(re, if b < 0.0 { -im } else { im })
    }

    pub(crate) fn exp(self) -> Self {
        let scale = real::exp(self.re);
        if self.im == 0.0 {
            return complex(scale, 0.0);
        }
        complex(scale * cos(self.im), scale * sin(self.im))
    }

    pub(crate) fn ln(self) -> Self {
        complex(log_hypot(self.re, self.im), self.arg())
    }

    pub(crate) fn pow(self, exponent: Self) -> Self {
        let Self { re: a, im: b } = self;
        let Self { re: c, im: d } = exponent;
        if c == 0.0 && d == 0.0 {
            return Self::ONE;
        }
        if d == 0.0 && b == 0.0 && a > 0.0 {
            return complex(real::pow(a, c), 0.0);
        }
        // Powers of i are exact; through angles they would not be.
        if d == 0.0 && a == 0.0 {
            let power = real::pow(b, c);
            match c.rem_euclid(4.0) {
                0.0 => return complex(power, 0.0),
                1.0 => return complex(0.0, power),
                2.0 => return complex(-power, 0.0),
                3.0 => return complex(0.0, -power),
                _ => {}
            }
        }
        if a == 0.0 && b == 0.0 && c > 0.0 {
            return complex(0.0, 0.0);
        }
        let angle = self.arg();
        let length = log_hypot(a, b);
        let scale = exp(c * length - d * angle);
        let turn = d * length + c * angle;
        complex(scale * cos(turn), scale * sin(turn))
    }

    pub(crate) fn sin(self) -> Self {
        complex(sin(self.re) * cosh(self.im), cos(self.re) * sinh(self.im))
    }

    pub(crate) fn cos(self) -> Self {
        complex(cos(self.re) * cosh(self.im), -sin(self.re) * sinh(self.im))
    }

    pub(crate) fn tan(self) -> Self {
        let (a, b) = (2.0 * self.re, 2.0 * self.im);
        let d = cos(a) + cosh(b);
        complex(sin(a) / d, sinh(b) / d)
    }

    pub(crate) fn cot(self) -> Self {
        let (a, b) = (2.0 * self.re, 2.0 * self.im);
        let d = cos(a) - cosh(b);
        complex(-sin(a) / d, sinh(b) / d)
    }

    pub(crate) fn sec(self) -> Self {
        let (a, b) = (self.re, self.im);
        let d = 0.5 * cosh(2.0 * b) + 0.5 * cos(2.0 * a);
        complex(cos(a) * cosh(b) / d, sin(a) * sinh(b) / d)
    }

    pub(crate) fn csc(self) -> Self {
        let (a, b) = (self.re, self.im);
        let d = 0.5 * cosh(2.0 * b) - 0.5 * cos(2.0 * a);
        complex(sin(a) * cosh(b) / d, -cos(a) * sinh(b) / d)
    }

    pub(crate) fn sinh(self) -> Self {
        complex(sinh(self.re) * cos(self.im), cosh(self.re) * sin(self.im))
    }

    pub(crate) fn cosh(self) -> Self {
        complex(cosh(self.re) * cos(self.im), sinh(self.re) * sin(self.im))
    }

    pub(crate) fn tanh(self) -> Self {
        let (a, b) = (2.0 * self.re, 2.0 * self.im);
        let d = cosh(a) + cos(b);
        complex(sinh(a) / d, sin(b) / d)
    }

    pub(crate) fn coth(self) -> Self {
        let (a, b) = (2.0 * self.re, 2.0 * self.im);
        let d = cosh(a) - cos(b);
        complex(sinh(a) / d, -sin(b) / d)
    }

    pub(crate) fn csch(self) -> Self {
        let (a, b) = (self.re, self.im);
        let d = cos(2.0 * b) - cosh(2.0 * a);
        complex(-2.0 * sinh(a) * cos(b) / d, 2.0 * cosh(a) * sin(b) / d)
    }

    pub(crate) fn sech(self) -> Self {
        let (a, b) = (self.re, self.im);
        let d = cos(2.0 * b) + cosh(2.0 * a);
        complex(2.0 * cosh(a) * cos(b) / d, -2.0 * sinh(a) * sin(b) / d)
    }

    /// The inverse sine: -i ln(iz + √(1 - z²)).
    pub(crate) fn asin(self) -> Self {
        let (a, b) = (self.re, self.im);
        let t1 = complex(b * b - a * a + 1.0, -2.0 * a * b).sqrt();
        let t2 = complex(t1.re - b, t1.im + a).ln();
        complex(t2.im, -t2.re)
    }

    pub(crate) fn acos(self) -> Self {
        let asin = self.asin();
        complex(std::f64::consts::FRAC_PI_2 - asin.re, -asin.im)
    }

    pub(crate) fn atan(self) -> Self {
        let (a, b) = (self.re, self.im);
        if a == 0.0 {
            if b == 1.0 {
                return complex(0.0, f64::INFINITY);
            }
            if b == -1.0 {
                return complex(0.0, f64::NEG_INFINITY);
            }
        }
        let d = a * a + (1.0 - b) * (1.0 - b);
        let t = complex((1.0 - b * b - a * a) / d, -2.0 * a / d).ln();
        complex(-0.5 * t.im, 0.5 * t.re)
    }

    /// Computes `f(1/z)`, with infinity for 1/0.
    pub(crate) fn apply_to_inverse(self, f: fn(Self) -> Self) -> Self {
        if self.im == 0.0 && self.re != 0.0 {
            return f(complex(1.0 / self.re, 0.0));
        }
        let d = self.re * self.re + self.im * self.im;
        if d == 0.0 {
            return f(complex(f64::INFINITY, 0.0));
        }
        f(complex(self.re / d, -self.im / d))
    }

    pub(crate) fn asinh(self) -> Self {
        let t = complex(self.im, -self.re).asin();
        complex(-t.im, t.re)
    }

    pub(crate) fn acosh(self) -> Self {
        let below = complex(self.re - 1.0, self.im).sqrt();
        let above = complex(self.re + 1.0, self.im).sqrt();
        self.add(below.mul(above)).ln()
    }

    pub(crate) fn atanh(self) -> Self {
        let (a, b) = (self.re, self.im);
        let one_minus = 1.0 - a;
        let one_plus = 1.0 + a;
        let d = one_minus * one_minus + b * b;
        let t = if d == 0.0 {
            complex(
                if a == -1.0 { 0.0 } else { a / 0.0 },
                if b == 0.0 { 0.0 } else { b / 0.0 },
            )
        } else {
            complex(
                (one_plus * one_minus - b * b) / d,
                (b * one_minus + one_plus * b) / d,
            )
        };
        let mut result = complex(log_hypot(t.re, t.im) / 2.0, atan2(t.im, t.re) / 2.0);
        // complex.js takes this side of the branch cut.
        if a > 1.0 && b == 0.0 {
            result.im = -result.im;
        }
        result
    }
}
