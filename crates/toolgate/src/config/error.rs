//! Errors in a configuration file, with their positions.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use toolgate_core::Redactor;
use toolgate_core::text::escape;

/// Counted from 1, columns in characters, as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TextPosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl TextPosition {
    pub(super) fn after(text: &str) -> Self {
        let last = text.rsplit('\n').next().unwrap_or_default();
        Self {
            line: 1 + text.matches('\n').count(),
            column: 1 + last.chars().count(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct ConfigError {
    file: PathBuf,
    position: Option<TextPosition>,
    text: String,
}

impl ConfigError {
    pub(super) fn file(file: &Path, text: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            position: None,
            text: text.into(),
        }
    }

    pub(crate) fn about(mut self, file: &Path) -> Self {
        file.clone_into(&mut self.file);
        self
    }

    /// True if the position is in `text` or at its end. `fuzz/` checks this property.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn is_within(&self, text: &str) -> bool {
        self.position.is_some_and(|TextPosition { line, column }| {
            let found = line
                .checked_sub(1)
                .and_then(|line| text.split('\n').nth(line));
            found.is_some_and(|found| (1..=found.chars().count() + 1).contains(&column))
        })
    }

    pub(super) fn redact(&mut self, redactor: &Redactor) {
        if let Cow::Owned(hidden) = redactor.redact_known(&self.text) {
            self.text = hidden;
        }
    }

    pub(super) fn at(file: &Path, position: TextPosition, text: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            position: Some(position),
            text: text.into(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names and values come from the file: none may forge a line or drive a terminal.
        let file = escape(&self.file.to_string_lossy());
        let text = escape(&self.text);
        match self.position {
            Some(TextPosition { line, column }) => write!(f, "{file}:{line}:{column}: {text}"),
            None => write!(f, "{file}: {text}"),
        }
    }
}

/// All errors of a file, in file order. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    pub(super) fn check(mut errors: Vec<ConfigError>) -> Result<(), Self> {
        errors.sort_by_key(|error| error.position);
        match errors.is_empty() {
            true => Ok(()),
            false => Err(Self(errors)),
        }
    }

    pub(super) fn redacted(mut self, redactor: &Redactor) -> Self {
        self.0.iter_mut().for_each(|error| error.redact(redactor));
        self
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}
