use std::fmt;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why an expression has no answer: a sentence for a person.
///
/// It is one pointer wide, so that the happy path does not carry its weight.
///
/// ```
/// use toolgate_math::{Budget, evaluate};
///
/// let error = evaluate("2 +", &Budget::default()).expect_err("half a sum");
/// assert_eq!(error.to_string(), "Unexpected end of expression (char 4)");
/// assert_eq!(error.position(), Some(4));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    message: String,
    position: Option<usize>,
    limit: Option<&'static str>,
}

impl Error {
    /// An error of evaluation, which has no place in the text.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            message: message.into(),
            position: None,
            limit: None,
        }))
    }

    /// An error of syntax at the `position`-th character, counted from 1.
    pub(crate) fn at(message: impl Into<String>, position: usize) -> Self {
        let mut error = Self::new(message);
        error.0.position = Some(position);
        error
    }

    /// The budget named `limit` is used up.
    pub(crate) fn exceeded(limit: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::new(message);
        error.0.limit = Some(limit);
        error
    }

    /// Where in the expression the mistake is: the number of the character, counted from 1. Nothing for a mistake that only
    /// shows when the expression is computed.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// The name of the field of [`Budget`](crate::Budget) that was used up, if that is the reason.
    #[must_use]
    pub fn limit(&self) -> Option<&'static str> {
        self.0.limit
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match self.0.position {
            Some(position) => write!(f, " (char {position})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl std::error::Error for Error {}
