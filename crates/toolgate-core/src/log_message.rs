//! [`LogMessage`]: a message that a running tool sends to the log of its caller.

use std::fmt;

use serde_json::{Map, Value};

/// How severe a message is: the syslog severities, as MCP names them. Later ones are more severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Returns `None` for a name that MCP doesn't know.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A message for the caller's log. If it comes from a server, it is untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct LogMessage {
    pub level: LogLevel,
    /// The part of the program that says it.
    pub logger: Option<String>,
    pub data: Value,
    /// What the server adds for the caller's client.
    pub meta: Option<Map<String, Value>>,
}

/// Delivers a call's log messages to its caller.
pub trait LogHandler: Send + Sync {
    /// The least severe level that the caller wants at present, or `None` if it wants no messages.
    fn level(&self) -> Option<LogLevel>;

    /// Tells callers apart: two handlers with the same number belong to the same caller.
    fn caller(&self) -> u64;

    /// Takes a message, and must not block. Implementations limit how many they keep.
    fn log(&self, message: LogMessage);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_and_an_order() {
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::from_name(level.as_str()), Some(level));
        }
        assert!(LogLevel::ALL.is_sorted());
        for unknown in ["", "Debug", "trace", "warn"] {
            assert_eq!(LogLevel::from_name(unknown), None);
        }
    }
}
