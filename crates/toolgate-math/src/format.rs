//! Formats values as mathjs' `format` does.

mod numbers;

pub(crate) use numbers::{
    format_exponential, format_fixed, format_number, format_plain_complex, format_plain_decimal,
};

use crate::number::real::to_text;
use crate::prelude::*;
use crate::unit;
use crate::unit::UnitSystem;
use crate::value::MathObject;
use numbers::{format_complex, format_decimal};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NumberNotation {
    #[default]
    Auto,
    Fixed,
    Exponential,
    Engineering,
    Base(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FormatStyle {
    pub(crate) notation: NumberNotation,
    pub(crate) precision: Option<usize>,
    /// In [`NumberNotation::Auto`], exponents from `lower` to below `upper` are written out.
    pub(crate) lower: i64,
    pub(crate) upper: i64,
    /// Writes fractions as decimals with the repeating digits in brackets.
    pub(crate) decimal_fractions: bool,
    pub(crate) word: Option<u32>,
}

impl Default for FormatStyle {
    fn default() -> Self {
        Self {
            notation: NumberNotation::Auto,
            precision: None,
            lower: -3,
            upper: 5,
            word: None,
            decimal_fractions: false,
        }
    }
}

pub(crate) fn format_value(
    budget: &mut BudgetTracker,
    system: &UnitSystem,
    value: &Value,
    style: &FormatStyle,
) -> Result<String> {
    let mut text = String::new();
    write_value(
        &mut FormatWriter {
            budget,
            system,
            style,
            text: &mut text,
        },
        value,
    )?;
    Ok(text)
}

struct FormatWriter<'a> {
    budget: &'a mut BudgetTracker,
    system: &'a UnitSystem,
    style: &'a FormatStyle,
    text: &'a mut String,
}

fn write_value(out: &mut FormatWriter<'_>, value: &Value) -> Result<()> {
    let before = out.text.len();
    match value {
        Value::Undefined => out.text.push_str("undefined"),
        Value::Null => out.text.push_str("null"),
        Value::Bool(value) => out.text.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => out.text.push_str(&format_number(*value, out.style)?),
        Value::Complex(value) => out.text.push_str(&format_complex(*value, out.style)?),
        Value::Big(value) => out.text.push_str(&format_decimal(value, out.style)?),
        Value::Fraction(value) if out.style.decimal_fractions => {
            // Finding the repeating digits takes a division for each.
            out.budget.charge_steps(2000)?;
            out.text.push_str(&value.to_decimal_text());
        }
        Value::Fraction(value) => {
            out.text.push_str(&format!("{}/{}", value.num, value.den));
        }
        Value::Text(value) => quote(out.text, value),
        Value::Unit(value) => write_unit(out, value)?,
        Value::Matrix(matrix) => write_cells(out, &matrix.size, &matrix.data)?,
        Value::Object(object) => write_object(out, object)?,
        Value::Builtin(_) => out.text.push_str("function"),
        Value::Closure(closure) => out.text.push_str(&closure.label),
        Value::Results(values) => write_results(out, values)?,
    }
    out.budget.charge_text(out.text.len() - before)
}

fn write_unit(out: &mut FormatWriter<'_>, unit: &unit::Unit) -> Result<()> {
    let shown = unit::format(out.budget, unit, out.system)?;
    if let Some(value) = &shown.value {
        let inner = format_value(out.budget, out.system, value, out.style)?;
        match value {
            Value::Complex(_) => {
                out.text.push_str(&format!("({inner})"));
            }
            _ => out.text.push_str(&inner),
        }
        if !shown.units.is_empty() {
            out.text.push(' ');
        }
    }
    out.text.push_str(&shown.units);
    Ok(())
}

// Recurses as deep as the matrix has dimensions, which the budget bounds.
fn write_cells(out: &mut FormatWriter<'_>, size: &[usize], data: &[Value]) -> Result<()> {
    out.text.push('[');
    if let [length, inner @ ..] = size {
        let step = data.len().checked_div(*length).unwrap_or(0);
        for i in 0..*length {
            if i > 0 {
                out.text.push_str(", ");
            }
            if inner.is_empty() {
                write_value(out, &data[i])?;
            } else {
                write_cells(out, inner, &data[i * step..(i + 1) * step])?;
            }
        }
    }
    out.text.push(']');
    Ok(())
}

fn write_object(out: &mut FormatWriter<'_>, object: &MathObject) -> Result<()> {
    out.text.push('{');
    for (i, (key, value)) in object.entries.iter().enumerate() {
        if i > 0 {
            out.text.push_str(", ");
        }
        quote(out.text, key);
        out.text.push_str(": ");
        write_value(out, value)?;
    }
    out.text.push('}');
    Ok(())
}

// The results of several statements, with texts unquoted.
fn write_results(out: &mut FormatWriter<'_>, values: &[Value]) -> Result<()> {
    out.text.push('[');
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            out.text.push_str(", ");
        }
        match value {
            Value::Number(value) => out.text.push_str(&to_text(*value)),
            Value::Text(text) => out.text.push_str(text),
            Value::Complex(value) => out.text.push_str(&format_plain_complex(*value)),
            Value::Big(value) => out.text.push_str(&format_plain_decimal(value)?),
            Value::Fraction(value) => {
                out.budget.charge_steps(2000)?;
                out.text.push_str(&value.to_decimal_text());
            }
            value => write_value(out, value)?,
        }
    }
    out.text.push(']');
    Ok(())
}

pub(crate) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
