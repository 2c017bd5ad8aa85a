//! Formats numbers: in digits, with exponents, in other bases.

use super::{FormatStyle, NumberNotation};
use crate::number::real::{DecimalDigits, to_text};
use crate::number::{Complex, Decimal};
use crate::prelude::*;

pub(crate) fn number(value: f64, style: &FormatStyle) -> Result<String> {
    if !value.is_finite() {
        return Ok(to_text(value));
    }
    if let NumberNotation::Base(base) = style.notation {
        return based(value, base, style.word);
    }
    // The common case, a short whole number, needs no list of digits.
    if style.precision.is_none()
        && style.notation == NumberNotation::Auto
        && value.fract() == 0.0
        && value.abs() < 1e5
        && style.upper >= 5
    {
        return Ok(format!("{}", value as i64));
    }
    Ok(digits(&DecimalDigits::from_number(value), style))
}

pub(super) fn decimal(value: &Decimal, style: &FormatStyle) -> Result<String> {
    if value.is_nan() {
        return Ok("NaN".into());
    }
    if !value.is_finite() {
        return Ok(if value.is_negative() {
            "-Infinity"
        } else {
            "Infinity"
        }
        .into());
    }
    if let NumberNotation::Base(base) = style.notation {
        return based(value.to_f64(), base, style.word);
    }
    Ok(digits(&value.digits(), style))
}

fn digits(value: &DecimalDigits, style: &FormatStyle) -> String {
    let zero = value.digits == [0];
    match style.notation {
        NumberNotation::Fixed => fixed(value, style.precision),
        NumberNotation::Exponential => {
            exponential(&rounded(value, style.precision), style.precision)
        }
        NumberNotation::Engineering => {
            engineering(&rounded(value, style.precision), style.precision)
        }
        NumberNotation::Auto | NumberNotation::Base(_) => {
            let value = rounded(value, style.precision);
            if zero || (value.exponent >= style.lower && value.exponent < style.upper) {
                fixed(&value, None)
            } else {
                exponential(&value, None)
            }
        }
    }
}

fn rounded(value: &DecimalDigits, precision: Option<usize>) -> DecimalDigits {
    match precision {
        Some(precision) if precision > 0 => value
            .clone()
            .round(i64::try_from(precision).unwrap_or(i64::MAX)),
        _ => value.clone(),
    }
}

fn sign(value: &DecimalDigits) -> &'static str {
    if value.negative && value.digits != [0] {
        "-"
    } else {
        ""
    }
}

/// Writes all digits, with `places` decimals if given.
pub(crate) fn fixed(value: &DecimalDigits, places: Option<usize>) -> String {
    // Taken before rounding, so that a small negative number becomes `-0.00`.
    let sign = sign(value);
    let value = match places {
        Some(places) => value.clone().round(
            value
                .exponent
                .saturating_add(1)
                .saturating_add(i64::try_from(places).unwrap_or(i64::MAX)),
        ),
        None => value.clone(),
    };
    let digit = |place: i64| {
        let at = usize::try_from(value.exponent - place).ok();
        at.and_then(|at| value.digits.get(at))
            .map_or('0', |digit| char::from(b'0' + digit))
    };
    let mut text = String::from(sign);
    // Exponents are bounded: a double has 309 digits at most, and a big number switches to
    // exponential notation far below that.
    text.extend((0..=value.exponent.clamp(0, 5000)).rev().map(digit));
    let natural = usize::try_from(value.digits.len() as i64 - 1 - value.exponent).unwrap_or(0);
    let places = places.unwrap_or(if value.digits == [0] { 0 } else { natural });
    if places > 0 {
        text.push('.');
        text.extend((1..=places.min(5000) as i64).map(|place| digit(-place)));
    }
    text
}

pub(crate) fn exponential(value: &DecimalDigits, precision: Option<usize>) -> String {
    let mut text = format!("{}{}", sign(value), value.digits[0]);
    let wanted = precision.unwrap_or(0).max(value.digits.len());
    if wanted > 1 {
        text.push('.');
        text.extend((1..wanted.min(5000)).map(|at| {
            value
                .digits
                .get(at)
                .map_or('0', |digit| char::from(b'0' + digit))
        }));
    }
    text.push_str(&format!("e{:+}", value.exponent));
    text
}

// Exponential notation with exponents that are multiples of three.
fn engineering(value: &DecimalDigits, precision: Option<usize>) -> String {
    let exponent = value.exponent.div_euclid(3) * 3;
    let mantissa = DecimalDigits {
        exponent: value.exponent - exponent,
        ..value.clone()
    };
    let mut text = fixed(&mantissa, None);
    if let Some(precision) = precision {
        let shown = text.bytes().filter(u8::is_ascii_digit).count();
        if shown < precision {
            if !text.contains('.') {
                text.push('.');
            }
            text.extend(std::iter::repeat_n('0', (precision - shown).min(5000)));
        }
    }
    text.push_str(&format!("e{exponent:+}"));
    text
}

// `0b101`, `0o17` or `0xff`. With a word size, the two's complement (`0xffi8`).
fn based(value: f64, base: u32, word: Option<u32>) -> Result<String> {
    let mark = match base {
        2 => "0b",
        8 => "0o",
        _ => "0x",
    };
    // A big number may exceed every double, and infinity has endless digits.
    if !value.is_finite() {
        return fail("The value is too large to be written in this base");
    }
    let mut value = value;
    let mut suffix = String::new();
    if let Some(word) = word {
        let span = libm::exp2(f64::from(word));
        if value.fract() != 0.0 {
            return fail("Value must be an integer");
        }
        if word == 0 || value >= span / 2.0 || value < -span / 2.0 {
            return fail(format!(
                "Value must be in range [-2^{}, 2^{}-1]",
                word.max(1) - 1,
                word.max(1) - 1
            ));
        }
        if value < 0.0 {
            value += span;
        }
        suffix = format!("i{word}");
    }
    let sign = if value < 0.0 { "-" } else { "" };
    Ok(format!(
        "{sign}{mark}{}{suffix}",
        in_base(value.abs(), base)
    ))
}

fn in_base(value: f64, base: u32) -> String {
    let digit = |d: f64| char::from_digit(d as u32, base).unwrap_or('0');
    let b = f64::from(base);
    let mut whole = value.trunc();
    let mut text = Vec::new();
    loop {
        text.push(digit(whole % b));
        whole = (whole / b).trunc();
        if whole == 0.0 {
            break;
        }
    }
    let mut text: String = text.into_iter().rev().collect();
    let mut rest = value.fract();
    if rest > 0.0 {
        text.push('.');
        // A double has at most 1074 binary places.
        for _ in 0..1074 {
            rest *= b;
            text.push(digit(rest.trunc()));
            rest = rest.fract();
            if rest == 0.0 {
                break;
            }
        }
    }
    text
}

/// Formats a complex number, its parts as ECMAScript writes numbers.
pub(crate) fn plain_complex(value: Complex) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return "Infinity".to_owned();
    }
    let visible = |part: f64| if part.abs() < 1e-15 { 0.0 } else { part };
    join_complex(visible(value.re), visible(value.im), to_text)
}

/// Formats a big number: in full where a double would be.
pub(crate) fn plain_decimal(value: &Decimal) -> Result<String> {
    let style = FormatStyle {
        lower: -6,
        upper: 21,
        ..FormatStyle::default()
    };
    decimal(value, &style)
}

pub(super) fn complex(value: Complex, style: &FormatStyle) -> Result<String> {
    let Complex { mut re, mut im } = value;
    if let Some(precision) = style.precision.filter(|precision| *precision > 0) {
        let tiny = libm::pow(10.0, -(precision as f64));
        if (re / im).abs() < tiny {
            re = 0.0;
        }
        if (im / re).abs() < tiny {
            im = 0.0;
        }
    }
    // The notation may fail for one part, and then nothing is written.
    number(re, style)?;
    number(im, style)?;
    Ok(join_complex(re, im, |part| {
        number(part, style).unwrap_or_default()
    }))
}

fn join_complex(re: f64, im: f64, text: impl Fn(f64) -> String) -> String {
    if im == 0.0 {
        return text(re);
    }
    let imaginary = match im {
        1.0 | -1.0 => "i".to_owned(),
        im => text(im.abs()) + "i",
    };
    match (re == 0.0, im < 0.0) {
        (true, false) => imaginary,
        (true, true) => format!("-{imaginary}"),
        (false, false) => format!("{} + {imaginary}", text(re)),
        (false, true) => format!("{} - {imaginary}", text(re)),
    }
}
