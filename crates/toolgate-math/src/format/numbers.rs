//! Formats numbers: in full, with exponents, or in other bases.

use super::{FormatStyle, NumberNotation};
use crate::number::real::{DecimalDigits, to_text};
use crate::number::{Complex, Decimal};
use crate::prelude::*;

pub(crate) fn format_number(value: f64, style: &FormatStyle) -> Result<String> {
    if !value.is_finite() {
        return Ok(to_text(value));
    }
    if let NumberNotation::Base(base) = style.notation {
        return format_in_base(value, base, style.word);
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
    Ok(format_digits(&DecimalDigits::from_number(value), style))
}

pub(super) fn format_decimal(value: &Decimal, style: &FormatStyle) -> Result<String> {
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
        return format_in_base(value.to_f64(), base, style.word);
    }
    Ok(format_digits(&value.digits(), style))
}

fn format_digits(value: &DecimalDigits, style: &FormatStyle) -> String {
    let zero = value.digits == [0];
    match style.notation {
        NumberNotation::Fixed => format_fixed(value, style.precision),
        NumberNotation::Exponential => {
            format_exponential(&rounded(value, style.precision), style.precision)
        }
        NumberNotation::Engineering => {
            format_engineering(&rounded(value, style.precision), style.precision)
        }
        NumberNotation::Auto | NumberNotation::Base(_) => {
            let value = rounded(value, style.precision);
            if zero || (value.exponent >= style.lower && value.exponent < style.upper) {
                format_fixed(&value, None)
            } else {
                format_exponential(&value, None)
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
pub(crate) fn format_fixed(value: &DecimalDigits, places: Option<usize>) -> String {
    // The sign is taken before rounding, so that a small negative number becomes `-0.00`.
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

pub(crate) fn format_exponential(value: &DecimalDigits, precision: Option<usize>) -> String {
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
fn format_engineering(value: &DecimalDigits, precision: Option<usize>) -> String {
    let exponent = value.exponent.div_euclid(3) * 3;
    let mantissa = DecimalDigits {
        exponent: value.exponent - exponent,
        ..value.clone()
    };
    let mut text = format_fixed(&mantissa, None);
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
fn format_in_base(value: f64, base: u32, word: Option<u32>) -> Result<String> {
    let mark = match base {
        2 => "0b",
        8 => "0o",
        _ => "0x",
    };
    // Infinity has no digits, and a big number beyond the range of a double becomes infinity.
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
        digits_in_base(value.abs(), base)
    ))
}

fn digits_in_base(value: f64, base: u32) -> String {
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
pub(crate) fn format_plain_complex(value: Complex) -> String {
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
pub(crate) fn format_plain_decimal(value: &Decimal) -> Result<String> {
    let style = FormatStyle {
        lower: -6,
        upper: 21,
        ..FormatStyle::default()
    };
    format_decimal(value, &style)
}

pub(super) fn format_complex(value: Complex, style: &FormatStyle) -> Result<String> {
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
    // Checked first: a notation that fails for one part must fail for the whole number.
    format_number(re, style)?;
    format_number(im, style)?;
    Ok(join_complex(re, im, |part| {
        format_number(part, style).unwrap_or_default()
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
