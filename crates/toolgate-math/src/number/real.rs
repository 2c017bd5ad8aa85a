//! Functions on doubles: powers, tolerant comparison, rounding, digits.

/// `x^y` as in ECMAScript: 1^∞ is NaN, and a tiny base to an infinite power is exactly 0.
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    if y.is_infinite() && x.abs() == 1.0 {
        return f64::NAN;
    }
    if y == 2.0 {
        return x * x;
    }
    // Multiplication is exact for small powers of integers while they fit a double.
    if (1.0..=32.0).contains(&y) && y.fract() == 0.0 && x.fract() == 0.0 {
        let product = (1..y as u8).fold(x, |product, _| product * x);
        if product.abs() < 9e15 {
            return product;
        }
    }
    libm::pow(x, y)
}

pub(crate) fn exp(x: f64) -> f64 {
    if x == 1.0 {
        std::f64::consts::E
    } else {
        libm::exp(x)
    }
}

const RELATIVE: f64 = 1e-12;
const ABSOLUTE: f64 = 1e-15;

/// True if two numbers differ only by rounding errors.
pub(crate) fn nearly_equal(a: f64, b: f64) -> bool {
    if a == b {
        return true;
    }
    if !a.is_finite() || !b.is_finite() {
        return false;
    }
    (a - b).abs() <= (RELATIVE * a.abs().max(b.abs())).max(ABSOLUTE)
}

/// True if a number is finite and has no fraction.
pub(crate) fn is_integer(x: f64) -> bool {
    x.is_finite() && x.fract() == 0.0
}

const POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

// Rounds half away from zero. A number that looks like a tie in twelve decimals counts as one:
// 1.005 is stored as a slightly smaller double.
pub(crate) fn round(x: f64, digits: i32) -> f64 {
    const SURE: i32 = 12;
    let Some(&power) = usize::try_from(digits)
        .ok()
        .and_then(|digits| POWERS.get(digits))
    else {
        return x;
    };
    if !x.is_finite() {
        return x;
    }
    if x == 0.0 {
        // Unlike a small negative number, -0 loses its sign, because its digits are those of 0.
        return 0.0;
    }
    // Dividing integers rounds correctly, so only values close to a tie need the digits.
    let scaled = x * power;
    if scaled.abs() < 1e9 && (scaled.fract().abs() - 0.5).abs() > 1e-4 {
        return scaled.round() / power;
    }
    let near = round_digits(x, SURE);
    round_digits(
        if digits < SURE && nearly_equal(x, near) {
            near
        } else {
            x
        },
        digits,
    )
}

fn round_digits(x: f64, digits: i32) -> f64 {
    let decimal = DecimalDigits::from_number(x);
    let keep = decimal.exponent + 1 + i64::from(digits);
    decimal.round(keep).value()
}

pub(crate) fn modulo(x: f64, y: f64) -> f64 {
    if y == 0.0 { x } else { x - y * floor(x / y) }
}

/// The nearest integer below, or the nearest one if only rounding errors separate them.
pub(crate) fn floor(x: f64) -> f64 {
    nearest_or(x, x.floor())
}

/// The nearest integer above, or the nearest one if only rounding errors separate them.
pub(crate) fn ceil(x: f64) -> f64 {
    nearest_or(x, x.ceil())
}

fn nearest_or(x: f64, whole: f64) -> f64 {
    let nearest = x.round();
    if nearest != whole && nearly_equal(x, nearest) && !nearly_equal(x, whole) {
        nearest
    } else {
        whole
    }
}

/// The shortest decimal digits that identify a double: `0.d1d2d3… × 10^(exponent + 1)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecimalDigits {
    pub(crate) negative: bool,
    /// Values 0 to 9, without trailing zeros, at least one.
    pub(crate) digits: Vec<u8>,
    pub(crate) exponent: i64,
}

impl DecimalDigits {
    pub(crate) fn from_number(x: f64) -> Self {
        let text = format!("{:e}", x.abs());
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mut digits: Vec<u8> = digits
            .bytes()
            .filter(u8::is_ascii_digit)
            .map(|b| b - b'0')
            .collect();
        if digits.len() > 15 {
            break_tie(&mut digits, x);
        }
        Self {
            negative: x < 0.0,
            digits,
            exponent: exponent.parse().unwrap_or(0),
        }
    }

    pub(crate) fn round(mut self, count: i64) -> Self {
        let Ok(keep) = usize::try_from(count) else {
            return Self {
                negative: self.negative,
                digits: vec![0],
                exponent: 0,
            };
        };
        if keep < self.digits.len() {
            let up = self.digits[keep] >= 5;
            self.digits.truncate(keep);
            if up {
                self.increment();
            }
        }
        self.trim();
        self
    }

    fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
        self.exponent += 1;
    }

    fn trim(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.digits.push(0);
            self.exponent = 0;
        }
    }

    fn text(&self) -> String {
        self.digits
            .iter()
            .map(|digit| char::from(b'0' + digit))
            .collect()
    }

    pub(crate) fn value(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        let scale = self.exponent - self.digits.len() as i64 + 1;
        format!("{sign}{}e{scale}", self.text())
            .parse()
            .unwrap_or(f64::NAN)
    }
}

// If two shortest texts are equally close to the number, ECMAScript takes the one with an even last
// digit.
fn break_tie(digits: &mut [u8], x: f64) {
    let exact = format!("{:.40e}", x.abs());
    let mut beyond = exact
        .bytes()
        .take_while(|b| *b != b'e')
        .filter(u8::is_ascii_digit)
        .skip(digits.len());
    let is_tie = beyond.next() == Some(b'5') && beyond.all(|b| b == b'0');
    if let Some(last) = digits.last_mut()
        && is_tie
        && *last % 2 == 1
    {
        *last -= 1;
    }
}

/// Formats a number like ECMAScript's `toString`.
pub(crate) fn to_text(x: f64) -> String {
    if x.is_nan() {
        return "NaN".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    if x == 0.0 {
        return "0".into();
    }
    let digits = DecimalDigits::from_number(x);
    if x.abs() >= 1e21 || x.abs() < 1e-6 {
        crate::format::format_exponential(&digits, None)
    } else {
        crate::format::format_fixed(&digits, None)
    }
}
