//! The two eras of the protocol.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The newest revision that begins with `initialize`.
pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];
/// All revisions we speak, oldest first. They are dates, so their text compares like their age.
pub(crate) const REVISIONS: [&str; 5] = {
    let [a, b, c, d] = LEGACY_REVISIONS;
    [a, b, c, d, MODERN]
};

/// How a server is spoken to.
///
/// ```
/// assert_eq!(toolgate_mcp::Era::Modern.to_string(), "modern");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Revisions up to 2025-11-25: a session that begins with `initialize`.
    Legacy,
    /// 2026-07-28: every request stands alone.
    Modern,
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        })
    }
}

/// What the configuration says of a server's era.
///
/// ```
/// assert_eq!(toolgate_mcp::EraChoice::default(), toolgate_mcp::EraChoice::Auto);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EraChoice {
    /// Find out.
    #[default]
    Auto,
    /// Only `initialize`.
    Legacy,
    /// Only `server/discover`.
    Modern,
}
