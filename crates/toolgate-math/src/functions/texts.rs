//! Text functions: formatting values and filling templates.

use super::{FunctionRow, many};
use crate::format;
use crate::format::{FormatStyle, NumberNotation};
use crate::prelude::*;
use crate::value::MathObject;

pub(super) const TABLE: &[FunctionRow] = &[
    many("string", |evaluator, args| match args {
        [] => Ok(Value::text("")),
        [value, ..] => string(evaluator, value),
    }),
    many("format", |evaluator, args| {
        let style = match args.get(1) {
            None => FormatStyle::default(),
            Some(options) => parse_style(options)?,
        };
        let text =
            format::format_value(&mut evaluator.budget, &evaluator.system, &args[0], &style)?;
        Ok(Value::text(text))
    }),
    many("print", print),
    many("bin", |evaluator, args| format_in_base(evaluator, args, 2)),
    many("oct", |evaluator, args| format_in_base(evaluator, args, 8)),
    many("hex", |evaluator, args| format_in_base(evaluator, args, 16)),
];

fn string(evaluator: &mut Evaluator<'_>, value: &Value) -> Result<Value> {
    match value {
        Value::Text(_) => Ok(value.clone()),
        Value::Matrix(matrix) => {
            evaluator.budget.charge_cells(matrix.data.len())?;
            let cells: Result<Vec<Value>> = matrix
                .data
                .iter()
                .map(|cell| string(evaluator, cell))
                .collect();
            Ok(Value::matrix(matrix.size.clone(), cells?))
        }
        Value::Complex(value) => Ok(Value::text(format::format_plain_complex(*value))),
        Value::Big(value) => Ok(Value::text(format::format_plain_decimal(value)?)),
        Value::Fraction(value) => {
            // Finding the repeating digits takes a division per digit.
            evaluator.budget.charge_steps(2000)?;
            Ok(Value::text(value.to_decimal_text()))
        }
        value => Ok(Value::text(format::format_value(
            &mut evaluator.budget,
            &evaluator.system,
            value,
            &FormatStyle::default(),
        )?)),
    }
}

const MAX_PRECISION: f64 = 1000.0;

fn parse_digits(value: &Value) -> Result<usize> {
    let number = value.to_number("format")?;
    if number.fract() != 0.0 || !(0.0..=MAX_PRECISION).contains(&number) {
        return fail(format!(
            "The precision of a format must be a whole number from 0 to {MAX_PRECISION}"
        ));
    }
    Ok(number as usize)
}

fn parse_style(options: &Value) -> Result<FormatStyle> {
    let mut style = FormatStyle::default();
    match options {
        Value::Number(_) | Value::Big(_) => style.precision = Some(parse_digits(options)?),
        Value::Object(options) => read_options(&mut style, options)?,
        other => return Err(type_error("format", other)),
    }
    Ok(style)
}

fn read_options(style: &mut FormatStyle, options: &MathObject) -> Result<()> {
    for (key, value) in &options.entries {
        match key.as_ref() {
            "precision" => style.precision = Some(parse_digits(value)?),
            "notation" => {
                style.notation = match value.as_text("format")?.as_ref() {
                    "auto" => NumberNotation::Auto,
                    "fixed" => NumberNotation::Fixed,
                    "exponential" => NumberNotation::Exponential,
                    "engineering" => NumberNotation::Engineering,
                    "bin" => NumberNotation::Base(2),
                    "oct" => NumberNotation::Base(8),
                    "hex" => NumberNotation::Base(16),
                    other => {
                        return fail(format!(
                            "Unknown notation \"{other}\". Choose \"auto\", \"exponential\", \"fixed\", \"engineering\", \"bin\", \"oct\", or \"hex\"."
                        ));
                    }
                };
            }
            "fraction" => style.decimal_fractions = value.as_text("format")?.as_ref() == "decimal",
            "lowerExp" => style.lower = value.to_number("format")? as i64,
            "upperExp" => style.upper = value.to_number("format")? as i64,
            "wordSize" => style.word = Some(parse_digits(value)? as u32),
            _ => {}
        }
    }
    Ok(())
}

fn format_in_base(evaluator: &mut Evaluator<'_>, args: &[Value], base: u32) -> Result<Value> {
    let word = match args.get(1) {
        Some(size) => Some(parse_digits(size)? as u32),
        None => None,
    };
    let style = FormatStyle {
        notation: NumberNotation::Base(base),
        word,
        ..FormatStyle::default()
    };
    match &args[0] {
        Value::Fraction(_) => Err(crate::ops::no_fraction()),
        value @ (Value::Number(_) | Value::Big(_)) => Ok(Value::text(format::format_value(
            &mut evaluator.budget,
            &evaluator.system,
            value,
            &style,
        )?)),
        value @ (Value::Bool(_) | Value::Text(_)) => Ok(Value::text(format::format_number(
            value.to_number("bin")?,
            &style,
        )?)),
        other => Err(type_error("bin", other)),
    }
}

fn print(evaluator: &mut Evaluator<'_>, args: &[Value]) -> Result<Value> {
    let template = args[0].as_text("print")?.clone();
    let style = match args.get(2) {
        Some(options) => parse_style(options)?,
        None => FormatStyle::default(),
    };
    let mut text = String::new();
    let mut rest = template.as_ref();
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let end = after
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .unwrap_or(after.len());
        let path = after[..end].trim_end_matches('.');
        match find_path(&args[1], path) {
            Some(Value::Text(value)) => text.push_str(&value),
            Some(value) => {
                text.push_str(&format::format_value(
                    &mut evaluator.budget,
                    &evaluator.system,
                    &value,
                    &style,
                )?);
            }
            None => {
                text.push('$');
                text.push_str(path);
            }
        }
        // In the loop, so that a template of many placeholders ends at the limit.
        evaluator.budget.charge_text(text.len())?;
        rest = &after[path.len()..];
    }
    text.push_str(rest);
    evaluator.budget.charge_text(text.len())?;
    Ok(Value::text(text))
}

// Finds the value at a path such as `a.b.1`. Indexes count from 1.
fn find_path(values: &Value, path: &str) -> Option<Value> {
    if path.is_empty() {
        return None;
    }
    path.split('.')
        .try_fold(values.clone(), |value, key| match &value {
            Value::Object(object) => object.get(key).cloned(),
            Value::Matrix(matrix) if matrix.size.len() == 1 => matrix
                .data
                .get(key.parse::<usize>().ok()?.checked_sub(1)?)
                .cloned(),
            _ => None,
        })
}
