//! What an expression can be worth.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::functions::Function;
use crate::matrix::Matrix;
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::tree::{Name, NodeId};
use crate::unit::Unit;

/// Any value. Cheap to clone: what is large is shared.
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
    Object(Arc<Object>),
    Builtin(&'static Function),
    Closure(Arc<Closure>),
    Results(Arc<Vec<Value>>),
}

#[derive(Debug)]
pub(crate) struct Closure {
    /// `f(x, y)`; an expression given as a function has only its parameter.
    pub(crate) label: String,
    pub(crate) parameters: Arc<[Name]>,
    pub(crate) body: NodeId,
    /// The parameters of the functions around it, when it was made.
    pub(crate) captured: Vec<(Name, Value)>,
    /// How deep values nest in it.
    pub(crate) depth: usize,
}

impl Closure {
    pub(crate) fn name(&self) -> &str {
        self.label.split('(').next().unwrap_or_default()
    }
}

/// Keys and values in the order they were written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    pub(crate) entries: Vec<(Arc<str>, Value)>,
    /// How deep values nest in it; kept, because the same object may be shared many times.
    pub(crate) depth: usize,
}

impl Object {
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

    pub(crate) fn matrix(value: Matrix) -> Self {
        Self::Matrix(Arc::new(value))
    }

    pub(crate) fn text(value: impl Into<Arc<str>>) -> Self {
        Self::Text(value.into())
    }

    pub(crate) fn unit(value: Unit) -> Self {
        Self::Unit(Arc::new(value))
    }

    pub(crate) fn object(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let mut object = Object::default();
        for (key, value) in entries {
            object.set(&key.into(), value);
        }
        Self::Object(Arc::new(object))
    }

    pub(crate) fn list(values: Vec<Value>) -> Self {
        Self::matrix(Matrix::vector(values))
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

    /// How deep values nest in it. Quick: what can be large knows it.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Object(object) => object.depth,
            Self::Closure(closure) => closure.depth,
            Self::Matrix(matrix) => matrix.depth(),
            Self::Results(values) => 1 + values.iter().map(Self::depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// The double it is, also from a boolean or a text.
    pub(crate) fn number(&self, function: &str) -> Result<f64> {
        match self {
            Self::Number(value) => Ok(*value),
            Self::Bool(value) => Ok(f64::from(u8::from(*value))),
            Self::Text(text) => parse_number(text),
            Self::Big(value) => Ok(value.to_f64()),
            Self::Fraction(value) => Ok(value.to_f64()),
            _ => Err(type_error(function, self)),
        }
    }

    pub(crate) fn count(&self, function: &str) -> Result<usize> {
        let number = self.number(function)?;
        if number.fract() != 0.0 || !(0.0..=9e15).contains(&number) {
            return Err(Error::new(format!(
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

impl From<Complex> for Value {
    fn from(value: Complex) -> Self {
        Self::Complex(value)
    }
}

/// The number a text stands for, as an implicit conversion reads it.
pub(crate) fn parse_number(text: &str) -> Result<f64> {
    read_number(text).ok_or_else(|| Error::new(format!("Cannot convert \"{text}\" to a number")))
}

/// The number of a text such as `0xff` or, with a word size, `0xffi8`.
pub(crate) fn read_based(text: &str) -> Option<f64> {
    let base = match text.get(..2)? {
        "0x" => 16,
        "0b" => 2,
        "0o" => 8,
        _ => return None,
    };
    crate::parser::literal::based(&text[2..], base)
}

/// The number a text stands for, by ECMAScript's rules: blanks around it, nothing is zero.
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
        // Only without a sign, and without the fraction and the word size that literals may have.
        (text, _) if text.starts_with("0x") || text.starts_with("0b") || text.starts_with("0o") => {
            read_based(text).filter(|_| !text.contains(['i', '.']))
        }
        (_, digits) if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            text.parse().ok()
        }
        _ => None,
    }
}

/// The function does not take this kind of value.
pub(crate) fn type_error(function: &str, value: &Value) -> Error {
    Error::new(format!(
        "Unexpected type of argument in function {function} (actual: {})",
        value.type_name()
    ))
}
