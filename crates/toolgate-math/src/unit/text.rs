//! Formats and parses units: chooses the unit and prefix to show, and parses `5 kg m / s^2`.

use super::quantity::BASES;
use super::table;
use super::{Dimensions, Unit, UnitFactor, UnitSystem};
use crate::prelude::*;

/// A quantity ready to be shown: its number in the chosen units, and the text of the units.
pub(crate) struct UnitText {
    pub(crate) value: Option<Value>,
    pub(crate) units: String,
}

pub(crate) fn format(
    budget: &mut BudgetTracker,
    unit: &Unit,
    system: &UnitSystem,
) -> Result<UnitText> {
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
        Some(value) => Some(shown.denormalize(budget, value)?),
        None => None,
    };
    Ok(UnitText {
        value,
        units: units_text(&shown.parts),
    })
}

fn simplify(unit: &mut Unit, system: &UnitSystem) {
    if unit.is_dimensionless() {
        unit.parts.clear();
        return;
    }
    let whole = BASES
        .iter()
        .find(|base| unit.has_dimensions_of(base))
        .and_then(|base| system.unit_of(base));
    if let Some((def, prefix)) = whole {
        unit.parts = vec![UnitFactor::new(def, prefix, 1.0)];
        return;
    }
    if let Some(parts) = from_bases(&unit.dimensions, system)
        && parts.len() < unit.parts.len()
    {
        unit.parts = parts;
    }
}

fn from_bases(dimensions: &Dimensions, system: &UnitSystem) -> Option<Vec<UnitFactor>> {
    BASES
        .iter()
        .zip(dimensions)
        .filter(|(_, power)| power.abs() > 1e-12)
        .map(|(base, &power)| {
            let (unit, prefix) = system.unit_of(base)?;
            Some(UnitFactor::new(unit, prefix, power))
        })
        .collect()
}

// Numbers from 0.1 to 1000 keep the prefix that was given. For all others, the prefix that brings
// the number closest to about 16 is chosen.
const MIN_LOG10: f64 = -1.0;
const MAX_LOG10: f64 = 3.0;
const TARGET_LOG10: f64 = 1.2;
// Absorbs rounding errors at both ends of that range.
const LOG10_SLACK: f64 = 1e-6;

fn best_prefix(part: UnitFactor, value: Option<&Value>) -> UnitFactor {
    let value = value.and_then(ops::magnitude).unwrap_or(0.0);
    if value == 0.0 {
        return part;
    }
    let offset_from_target = |factor: f64| {
        libm::log(value / libm::pow(factor * part.unit.value, part.power)) / std::f64::consts::LN_10
            - TARGET_LOG10
    };
    let current_offset = offset_from_target(part.prefix.value);
    let min_offset = MIN_LOG10 - TARGET_LOG10 - LOG10_SLACK;
    let max_offset = MAX_LOG10 - TARGET_LOG10 + LOG10_SLACK;
    if current_offset > min_offset && current_offset < max_offset {
        return part;
    }
    let mut best = (current_offset.abs(), part.prefix);
    for prefix in part
        .unit
        .prefixes
        .iter()
        .copied()
        .flatten()
        .filter(|prefix| prefix.scientific)
    {
        let next = offset_from_target(prefix.value).abs();
        if next < best.0 || (next == best.0 && prefix.name.len() < best.1.name.len()) {
            best = (next, prefix);
        }
    }
    UnitFactor {
        prefix: best.1,
        ..part
    }
}

pub(super) fn units_text(parts: &[UnitFactor]) -> String {
    let above = parts.iter().filter(|part| part.power > 0.0).count();
    let below = parts.iter().filter(|part| part.power < 0.0).count();
    let list = |sign: f64, as_positive: bool| {
        let mut text = String::new();
        for part in parts.iter().filter(|part| part.power * sign > 0.0) {
            let separator = if text.is_empty() { "" } else { " " };
            let power = if as_positive {
                part.power.abs()
            } else {
                part.power
            };
            text.push_str(&format!(
                "{separator}{}{}",
                part.prefix.name, part.unit.name
            ));
            // A power that came out of a root may miss 1 by a rounding error.
            if (power - 1.0).abs() > 1e-15 {
                text.push_str(&format!("^{}", crate::number::real::to_text(power)));
            }
        }
        text
    };
    let parenthesize = |text: String, count: usize, other: usize| {
        if count > 1 && other > 0 {
            format!("({text})")
        } else {
            text
        }
    };
    let numerator = parenthesize(list(1.0, true), above, below);
    let denominator = parenthesize(list(-1.0, above > 0), below, above);
    if above > 0 && below > 0 {
        format!("{numerator} / {denominator}")
    } else {
        numerator + &denominator
    }
}

pub(crate) fn parse(
    budget: &mut BudgetTracker,
    text: &str,
    system: &mut UnitSystem,
) -> Result<Unit> {
    let mut rest = text.trim();
    let number_end = number_length(rest);
    let value = match &rest[..number_end] {
        "" => None,
        digits => Some(Value::Number(digits.parse().map_err(|_| {
            MathError::new(format!(
                "\"{text}\" is not a quantity: write a number and a unit"
            ))
        })?)),
    };
    rest = rest[number_end..].trim_start();
    let mut unit = Unit::default();
    let mut sign = 1.0;
    let mut signs = Vec::new();
    while let Some(c) = rest.chars().next() {
        match c {
            ' ' | '\t' | '*' => rest = &rest[1..],
            '/' => {
                // "/" inverts only the next factor or group.
                sign = -current_sign(&signs);
                rest = &rest[1..];
            }
            '(' => {
                signs.push(sign);
                budget.check_depth(signs.len())?;
                rest = &rest[1..];
            }
            ')' => {
                signs.pop().ok_or_else(|| {
                    MathError::new(format!("Unexpected \")\" in the unit \"{text}\""))
                })?;
                sign = current_sign(&signs);
                rest = &rest[1..];
            }
            _ => {
                rest = parse_factor(rest, text, sign, &mut unit, system)?;
                sign = current_sign(&signs);
                budget.charge_cells(1)?;
            }
        }
    }
    unit.value = match value {
        Some(value) => Some(unit.normalize(budget, &value)?),
        None => None,
    };
    Ok(unit)
}

fn current_sign(signs: &[f64]) -> f64 {
    signs.last().copied().unwrap_or(1.0)
}

// Parses a factor such as `cm^2` at the start of `rest` and returns what follows.
fn parse_factor<'a>(
    rest: &'a str,
    text: &str,
    sign: f64,
    unit: &mut Unit,
    system: &mut UnitSystem,
) -> Result<&'a str> {
    let end = rest
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    let name = &rest[..end];
    let Some((def, prefix)) = table::find(name) else {
        return fail(format!(
            "Unit \"{}\" not found.",
            if name.is_empty() { text } else { name }
        ));
    };
    // Results are shown in the units that the input used.
    system.learn(def, prefix);
    let mut rest = rest[end..].trim_start();
    let mut power = sign;
    if let Some(after) = rest.strip_prefix('^') {
        let after = after.trim_start();
        let end = number_length(after);
        let exponent: f64 = after[..end].parse().map_err(|_| {
            MathError::new(format!("In \"{text}\", \"^\" must be followed by a number"))
        })?;
        power *= exponent;
        rest = after[end..].trim_start();
    }
    unit.parts.push(UnitFactor::new(def, prefix, power));
    for (dimension, base) in unit.dimensions.iter_mut().zip(def.base.dimensions()) {
        *dimension += base * power;
    }
    Ok(rest)
}

// The length in bytes of the number at the start of a text.
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
        let count = digits(end + 1 + sign);
        if count > 0 {
            end += 1 + sign + count;
        }
    }
    end
}
