//! The two protocol eras of MCP and their revisions.

use std::fmt;

use serde::{Deserialize, Serialize};

// The newest revision whose sessions begin with `initialize`.
pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];
// The supported revisions, oldest first. They are ISO dates, so they can be compared as text.
pub(crate) const REVISIONS: [&str; 5] = {
    let [a, b, c, d] = LEGACY_REVISIONS;
    [a, b, c, d, MODERN]
};

/// The two generations of MCP: with `initialize` sessions (up to
/// 2025-11-25), or stateless (2026-07-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolEra {
    /// Revisions up to 2025-11-25, with a session that begins with `initialize`.
    Legacy,
    /// Revision 2026-07-28, where every request stands alone.
    Modern,
}

impl fmt::Display for ProtocolEra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        })
    }
}

/// Whether a server's era is detected or fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EraSetting {
    /// Detects the era when it connects.
    #[default]
    Auto,
    /// Always connects with `initialize`.
    Legacy,
    /// Always connects with `server/discover`.
    Modern,
}
