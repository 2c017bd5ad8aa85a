//! The error type of the crate.

use std::fmt;

pub(crate) type Result<T> = std::result::Result<T, MathError>;

/// The error for an expression that can't be parsed or evaluated. Its text is
/// a sentence for people.
///
/// It is one pointer wide, so that successful results don't pay for it.
#[derive(Clone, PartialEq, Eq)]
pub struct MathError(Box<MathErrorInner>);

#[derive(Clone, PartialEq, Eq)]
struct MathErrorInner {
    message: String,
    position: Option<usize>,
    limit: Option<&'static str>,
}

impl MathError {
    // Errors during evaluation have no position.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(MathErrorInner {
            message: message.into(),
            position: None,
            limit: None,
        }))
    }

    /// A syntax error. `position` is in UTF-16 code units, counted from 1.
    pub(crate) fn at(message: impl Into<String>, position: usize) -> Self {
        let mut error = Self::new(message);
        error.0.position = Some(position);
        error
    }

    pub(crate) fn exceeded(limit: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::new(message);
        error.0.limit = Some(limit);
        error
    }

    /// The position of a syntax error in UTF-16 code units, counted from 1. `None`
    /// for errors during evaluation.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// The name of the [`Budget`](crate::Budget) field that was used up, if that is the cause.
    #[must_use]
    pub fn limit(&self) -> Option<&'static str> {
        self.0.limit
    }
}

pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(MathError::new(message))
}

impl fmt::Display for MathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match self.0.position {
            Some(position) => write!(f, " (char {position})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for MathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MathError({self})")
    }
}

impl std::error::Error for MathError {}
