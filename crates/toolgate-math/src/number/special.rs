//! Special functions of doubles: gamma, error function, zeta.

use std::f64::consts::PI;

use libm::{exp, log, sin};

use super::complex::{Complex, complex};
use super::real::pow;

// Lanczos coefficients for g = 607/128.
const LANCZOS: [f64; 15] = [
    0.999_999_999_999_997_1,
    57.156_235_665_862_92,
    -59.597_960_355_475_49,
    14.136_097_974_741_746,
    -0.491_913_816_097_620_2,
    0.339_946_499_848_118_9e-4,
    0.465_236_289_270_485_8e-4,
    -0.983_744_753_048_795_6e-4,
    0.158_088_703_224_912_5e-3,
    -0.210_264_441_724_104_88e-3,
    0.217_439_618_115_212_64e-3,
    -0.164_318_106_536_763_9e-3,
    0.844_182_239_838_527_4e-4,
    -0.261_908_384_015_814_1e-4,
    0.368_991_826_595_316_2e-5,
];
const LANCZOS_G: f64 = 4.742_187_5;

/// The gamma function. Whole numbers give (n - 1)!.
pub(crate) fn gamma(x: f64) -> f64 {
    if super::real::is_integer(x) {
        return whole_gamma(x);
    }
    // The reflection formula.
    if x < 0.5 {
        return PI / (sin(PI * x) * gamma(1.0 - x));
    }
    // The largest argument whose result fits a double is 171.62; mathjs stops here.
    if x >= 171.35 {
        return f64::INFINITY;
    }
    // The Lanczos approximation loses digits for large arguments.
    if x > 85.0 {
        return stirling(x);
    }
    let x = x - 1.0;
    let sum = LANCZOS[1..]
        .iter()
        .zip(1u8..)
        .fold(LANCZOS[0], |sum, (c, k)| sum + c / (x + f64::from(k)));
    let t = x + LANCZOS_G + 0.5;
    (2.0 * PI).sqrt() * pow(t, x + 0.5) * exp(-t) * sum
}

fn whole_gamma(x: f64) -> f64 {
    if x <= 0.0 {
        return if x.is_finite() {
            f64::INFINITY
        } else {
            f64::NAN
        };
    }
    if x > 171.0 {
        return f64::INFINITY;
    }
    product(1.0, x - 1.0)
}

// The product of all whole numbers from `low` to `high`. Splitting the range in halves keeps
// rounding errors small.
pub(crate) fn product(low: f64, high: f64) -> f64 {
    if high < low {
        return 1.0;
    }
    if high == low {
        return high;
    }
    let middle = ((high + low) / 2.0).floor();
    product(low, middle) * product(middle + 1.0, high)
}

fn stirling(x: f64) -> f64 {
    let x2 = x * x;
    let x3 = x2 * x;
    let x4 = x3 * x;
    let x5 = x4 * x;
    (2.0 * PI / x).sqrt()
        * pow(x / std::f64::consts::E, x)
        * (1.0 + 1.0 / (12.0 * x) + 1.0 / (288.0 * x2)
            - 139.0 / (51_840.0 * x3)
            - 571.0 / (2_488_320.0 * x4)
            + 163_879.0 / (209_018_880.0 * x5)
            + 5_246_819.0 / (75_246_796_800.0 * x5 * x))
}

pub(crate) fn complex_gamma(z: Complex) -> Complex {
    if z.im == 0.0 {
        return complex(gamma(z.re), 0.0);
    }
    if z.re < 0.5 {
        let turned = lanczos_gamma(complex(1.0 - z.re, -z.im));
        return complex(PI, 0.0).div(z.scale(PI).sin().mul(turned));
    }
    lanczos_gamma(z)
}

fn lanczos_gamma(z: Complex) -> Complex {
    let z = complex(z.re - 1.0, z.im);
    let mut sum = complex(LANCZOS[0], 0.0);
    for (c, k) in LANCZOS[1..].iter().zip(1u8..) {
        sum = sum.add(complex(*c, 0.0).div(complex(z.re + f64::from(k), z.im)));
    }
    let t = complex(z.re + LANCZOS_G + 0.5, z.im);
    let power = t.pow(complex(z.re + 0.5, z.im));
    sum.mul(power).mul(t.neg().exp()).scale((2.0 * PI).sqrt())
}

pub(crate) fn lgamma(x: f64) -> f64 {
    if x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x < 0.5 {
        return log(PI / sin(PI * x)) - lgamma(1.0 - x);
    }
    // The same series of six terms as mathjs. More terms would give different digits.
    const SERIES: [f64; 7] = [
        1.000_000_000_190_015,
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let x = x - 1.0;
    let base = x + 5.5;
    let sum = SERIES[1..]
        .iter()
        .zip(1u8..7)
        .rev()
        .fold(SERIES[0], |sum, (c, k)| sum + c / (x + f64::from(k)));
    0.918_938_533_204_672_7 + (x + 0.5) * log(base) - base + log(sum)
}

pub(crate) fn erf(x: f64) -> f64 {
    if x.is_nan() { x } else { libm::erf(x) }
}

// Uses Borwein's alternating series.
pub(crate) fn zeta(s: f64) -> f64 {
    if s == 0.0 {
        return -0.5;
    }
    if s == 1.0 {
        return f64::NAN;
    }
    if !s.is_finite() {
        return if s > 0.0 { 1.0 } else { f64::NAN };
    }
    if s < 0.0 {
        // The reflection formula.
        let scale = pow(2.0, s) * pow(PI, s - 1.0) * sin(PI / 2.0 * s) * gamma(1.0 - s);
        return scale * zeta(1.0 - s);
    }
    // With n = 24 the error of the series is below 10^-18.
    const N: i32 = 24;
    let mut weights = [0.0; N as usize + 1];
    let mut term = 1.0 / f64::from(N);
    let mut sum = 0.0;
    for (i, weight) in (0..=N).zip(weights.iter_mut()) {
        if i > 0 {
            let i = f64::from(i);
            let n = f64::from(N);
            term *= 4.0 * (n + i - 1.0) * (n - i + 1.0) / ((2.0 * i - 1.0) * (2.0 * i));
        }
        sum += term;
        *weight = f64::from(N) * sum;
    }
    let last = weights[N as usize];
    let mut total = 0.0;
    for k in 0..N {
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        total += sign * (weights[k as usize] - last) / pow(f64::from(k + 1), s);
    }
    -total / (last * (1.0 - pow(2.0, 1.0 - s)))
}
