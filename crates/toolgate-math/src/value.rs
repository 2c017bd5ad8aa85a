//! The values that an expression can have.

use std::sync::Arc;

use crate::error::{MathError, Result};
use crate::functions::Function;
use crate::matrix::Matrix;
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::parser::literal;
use crate::tree::{Name, NodeId};
use crate::unit::Unit;

// Cheap to clone, because large values are shared.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Complex(Complex),
    Big(Arc<Decimal>),
    Fraction(Arc<Fraction>),
    Text(Arc<str>),
    Unit(Arc<Unit>),
    Matrix(Arc<Matrix>),
    Object(Arc<MathObject>),
    Builtin(&'static Function),
    Closure(Arc<Closure>),
    Results(Arc<Vec<Value>>),
}

#[derive(Debug)]
pub(crate) struct Closure {
    /// `f(x, y)`, or `expression(x)` for an expression that is passed as a function.
    pub(crate) label: String,
    pub(crate) parameters: Arc<[Name]>,
    pub(crate) body: NodeId,
    /// The parameters of the enclosing functions, with their values when it was made.
    pub(crate) captured: Vec<(Name, Value)>,
    pub(crate) depth: usize,
}

impl Closure {
    pub(crate) fn name(&self) -> &str {
        self.label.split('(').next().unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MathObject {
    pub(crate) entries: Vec<(Arc<str>, Value)>,
    // Stored, because an object may be shared many times, and measuring it each time would be slow.
    pub(crate) depth: usize,
}

impl MathObject {
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries
            .iter()
            .find(|(known, _)| **known == *key)
            .map(|(_, value)| value)
    }

    pub(crate) fn set(&mut self, key: &Arc<str>, value: Value) {
        self.depth = self.depth.max(value.depth() + 1);
        match self.entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.entries.push((key.clone(), value)),
        }
    }
}

impl Value {
    pub(crate) fn big(value: Decimal) -> Self {
        Self::Big(Arc::new(value))
    }

    pub(crate) fn fraction(value: Fraction) -> Self {
        Self::Fraction(Arc::new(value))
    }

    pub(crate) fn matrix(size: Vec<usize>, data: Vec<Self>) -> Self {
        Matrix::new(size, data).into()
    }

    pub(crate) fn text(value: impl Into<Arc<str>>) -> Self {
        Self::Text(value.into())
    }

    pub(crate) fn unit(value: Unit) -> Self {
        Self::Unit(Arc::new(value))
    }

    pub(crate) fn object(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let mut object = MathObject::default();
        for (key, value) in entries {
            object.set(&key.into(), value);
        }
        Self::Object(Arc::new(object))
    }

    pub(crate) fn list(values: Vec<Value>) -> Self {
        Matrix::vector(values).into()
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Complex(_) => "Complex",
            Self::Big(_) => "BigNumber",
            Self::Fraction(_) => "Fraction",
            Self::Text(_) => "string",
            Self::Unit(_) => "Unit",
            Self::Matrix(_) => "DenseMatrix",
            Self::Object(_) => "Object",
            Self::Builtin(_) | Self::Closure(_) => "function",
            Self::Results(_) => "ResultSet",
        }
    }

    // Fast, because large values store their depth.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Object(object) => object.depth,
            Self::Closure(closure) => closure.depth,
            Self::Matrix(matrix) => matrix.depth(),
            Self::Results(values) => 1 + values.iter().map(Self::depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    pub(crate) fn to_number(&self, function: &str) -> Result<f64> {
        match self {
            Self::Number(value) => Ok(*value),
            Self::Bool(value) => Ok(f64::from(u8::from(*value))),
            Self::Text(text) => parse_number(text),
            Self::Big(value) => Ok(value.to_f64()),
            Self::Fraction(value) => Ok(value.to_f64()),
            _ => Err(type_error(function, self)),
        }
    }

    pub(crate) fn to_count(&self, function: &str) -> Result<usize> {
        let number = self.to_number(function)?;
        if number.fract() != 0.0 || !(0.0..=9e15).contains(&number) {
            return Err(MathError::new(format!(
                "Parameters in function {function} must be positive integers"
            )));
        }
        Ok(number as usize)
    }

    pub(crate) fn as_text(&self, function: &str) -> Result<&Arc<str>> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(type_error(function, self)),
        }
    }

    pub(crate) fn as_matrix(&self, function: &str) -> Result<&Arc<Matrix>> {
        match self {
            Self::Matrix(matrix) => Ok(matrix),
            _ => Err(type_error(function, self)),
        }
    }

    pub(crate) fn is_function(&self) -> bool {
        matches!(self, Self::Builtin(_) | Self::Closure(_))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Matrix> for Value {
    fn from(value: Matrix) -> Self {
        Self::Matrix(Arc::new(value))
    }
}

impl From<Complex> for Value {
    fn from(value: Complex) -> Self {
        Self::Complex(value)
    }
}

/// Parses a text like implicit conversions, with an error if it isn't a number.
pub(crate) fn parse_number(text: &str) -> Result<f64> {
    read_number(text)
        .ok_or_else(|| MathError::new(format!("Cannot convert \"{text}\" to a number")))
}

/// Parses `0xff` or, with a word size, `0xffi8`.
pub(crate) fn read_based(text: &str) -> Option<f64> {
    let base = literal::parse_radix(text)?;
    literal::parse_digits(&text[2..], base)
}

/// Parses a text by ECMAScript's rules: surrounding blanks are ignored, and an empty text is zero.
pub(crate) fn read_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    match (text, digits) {
        ("", _) => Some(0.0),
        (_, "Infinity") => Some(if text.starts_with('-') {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        }),
        // Unlike literals, these take no sign, fraction or word size.
        (text, _) if literal::parse_radix(text).is_some() => {
            read_based(text).filter(|_| !text.contains(['i', '.']))
        }
        (_, digits) if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            text.parse().ok()
        }
        _ => None,
    }
}

pub(crate) fn type_error(function: &str, value: &Value) -> MathError {
    MathError::new(format!(
        "Unexpected type of argument in function {function} (actual: {})",
        value.type_name()
    ))
}
