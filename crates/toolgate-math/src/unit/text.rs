//! Units as text: choosing the unit and prefix to show, and reading `5 kg m / s^2`.

use super::quantity::BASES;
use super::table;
use super::{Dimensions, Part, System, Unit};
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::ops;
use crate::value::Value;

/// What a quantity shows: its number in the chosen units, and the units.
pub(crate) struct UnitText {
    pub(crate) value: Option<Value>,
    pub(crate) units: String,
}

/// Chooses units and prefix for a quantity.
pub(crate) fn format(meter: &mut Meter, unit: &Unit, system: &System) -> Result<UnitText> {
    let mut shown = unit.clone();
    if shown.simplify {
        simplify(&mut shown, system);
    }
    if let [part] = shown.parts.as_slice()
        && !shown.fixed_prefix
        && part.power.fract() == 0.0
    {
        let part = best_prefix(*part, unit.value.as_ref());
        shown.parts = vec![part];
    }
    let value = match &shown.value {
        Some(value) => Some(shown.denormalize(meter, value)?),
        None => None,
    };
    Ok(UnitText {
        value,
        units: units(&shown.parts),
    })
}

fn simplify(unit: &mut Unit, system: &System) {
    if unit.is_plain() {
        unit.parts.clear();
        return;
    }
    let whole = BASES
        .iter()
        .find(|base| unit.is_of(base))
        .and_then(|base| system.unit_of(base));
    if let Some((def, prefix)) = whole {
        unit.parts = vec![Part {
            unit: def,
            prefix,
            power: 1.0,
        }];
        return;
    }
    let proposal: Option<Vec<Part>> = from_bases(&unit.dimensions, system);
    if let Some(parts) = proposal
        && parts.len() < unit.parts.len()
    {
        unit.parts = parts;
    }
}

fn from_bases(dimensions: &Dimensions, system: &System) -> Option<Vec<Part>> {
    BASES
        .iter()
        .zip(dimensions)
        .filter(|(_, power)| power.abs() > 1e-12)
        .map(|(base, &power)| {
            system.unit_of(base).map(|(unit, prefix)| Part {
                unit,
                prefix,
                power,
            })
        })
        .collect()
}

/// The prefix that brings the number closest to 16, between 0.1 and 1000; the given one if it does.
fn best_prefix(part: Part, value: Option<&Value>) -> Part {
    let value = value.and_then(ops::magnitude).unwrap_or(0.0);
    if value == 0.0 {
        return part;
    }
    let distance = |factor: f64| {
        libm::log(value / libm::pow(factor * part.unit.value, part.power)) / std::f64::consts::LN_10
            - 1.2
    };
    let given = distance(part.prefix.value);
    if given > -2.200_001 && given < 1.800_001 {
        return part;
    }
    let mut best = (given.abs(), part.prefix);
    for prefix in part
        .unit
        .prefixes
        .iter()
        .copied()
        .flatten()
        .filter(|prefix| prefix.scientific)
    {
        let next = distance(prefix.value).abs();
        if next < best.0 || (next == best.0 && prefix.name.len() < best.1.name.len()) {
            best = (next, prefix);
        }
    }
    Part {
        prefix: best.1,
        ..part
    }
}

/// `(kg m) / s^2`.
pub(super) fn units(parts: &[Part]) -> String {
    let above = parts.iter().filter(|part| part.power > 0.0).count();
    let below = parts.iter().filter(|part| part.power < 0.0).count();
    let list = |sign: f64, lift: bool| {
        let mut text = String::new();
        for part in parts.iter().filter(|part| part.power * sign > 0.0) {
            let separator = if text.is_empty() { "" } else { " " };
            let power = if lift { part.power.abs() } else { part.power };
            text.push_str(&format!(
                "{separator}{}{}",
                part.prefix.name, part.unit.name
            ));
            if (power - 1.0).abs() > 1e-15 {
                text.push_str(&format!("^{}", crate::number::real::to_text(power)));
            }
        }
        text
    };
    let group = |text: String, count: usize, other: usize| {
        if count > 1 && other > 0 {
            format!("({text})")
        } else {
            text
        }
    };
    let numerator = group(list(1.0, true), above, below);
    let denominator = group(list(-1.0, above > 0), below, above);
    if above > 0 && below > 0 {
        format!("{numerator} / {denominator}")
    } else {
        numerator + &denominator
    }
}

/// Reads a quantity or a bare unit from a text.
pub(crate) fn parse(meter: &mut Meter, text: &str, system: &mut System) -> Result<Unit> {
    let mut rest = text.trim();
    let number_end = number_length(rest);
    let value = match &rest[..number_end] {
        "" => None,
        digits => Some(Value::Number(digits.parse().map_err(|_| {
            Error::new(format!(
                "\"{text}\" is no quantity: write a number and a unit"
            ))
        })?)),
    };
    rest = rest[number_end..].trim_start();
    let mut unit = Unit::plain(Value::Number(1.0));
    unit.value = None;
    let mut sign: f64 = 1.0;
    let mut signs = Vec::new();
    while let Some(c) = rest.chars().next() {
        match c {
            ' ' | '\t' | '*' => rest = &rest[1..],
            '/' => {
                sign = -sign.abs() * group_sign(&signs);
                rest = &rest[1..];
            }
            '(' => {
                signs.push(sign);
                meter.nested(signs.len())?;
                rest = &rest[1..];
            }
            ')' => {
                signs.pop().ok_or_else(|| {
                    Error::new(format!("Unexpected \")\" in the unit \"{text}\""))
                })?;
                sign = group_sign(&signs);
                rest = &rest[1..];
            }
            _ => {
                rest = factor(rest, text, sign, &mut unit, system)?;
                sign = group_sign(&signs);
                meter.cells(1)?;
            }
        }
    }
    unit.value = match value {
        Some(value) => Some(unit.normalize(meter, &value)?),
        None => None,
    };
    Ok(unit)
}

fn group_sign(signs: &[f64]) -> f64 {
    signs.last().copied().unwrap_or(1.0)
}

/// Reads `cm^2` at the start of `rest` and returns what follows it.
fn factor<'a>(
    rest: &'a str,
    text: &str,
    sign: f64,
    unit: &mut Unit,
    system: &mut System,
) -> Result<&'a str> {
    let end = rest
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    let name = &rest[..end];
    let Some((def, prefix)) = table::find(name) else {
        return Err(Error::new(format!(
            "Unit \"{}\" not found.",
            if name.is_empty() { text } else { name }
        )));
    };
    system.learn(def, prefix);
    let mut rest = rest[end..].trim_start();
    let mut power = sign;
    if let Some(after) = rest.strip_prefix('^') {
        let after = after.trim_start();
        let end = number_length(after);
        let exponent: f64 = after[..end].parse().map_err(|_| {
            Error::new(format!("In \"{text}\", \"^\" must be followed by a number"))
        })?;
        power *= exponent;
        rest = after[end..].trim_start();
    }
    unit.parts.push(Part {
        unit: def,
        prefix,
        power,
    });
    for (own, base) in unit.dimensions.iter_mut().zip(def.base.dimensions()) {
        *own += base * power;
    }
    Ok(rest)
}

/// How many bytes at the start of the text are a number.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let mut end = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    end += digits(end);
    if bytes.get(end) == Some(&b'.') {
        end += 1;
        end += digits(end);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let count = bytes
            .get(end + 1 + sign..)
            .map_or(0, |_| digits(end + 1 + sign));
        if count > 0 {
            end += 1 + sign + count;
        }
    }
    end
}
