//! When patterns that match no tool are looked for.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

/// How long servers may start before patterns are compared with the tools that are known by then. The first start of a package
/// runner takes minutes, and meanwhile a misspelt `policy.deny` lets everything through.
pub(super) const EARLY_CHECK: Duration = Duration::from_secs(5);

/// When the patterns of the configuration are compared with the tools: soon, with what is known then, and once more when all
/// servers have settled.
pub(super) struct PatternChecks {
    /// None once it is done.
    pub(super) early: Option<Instant>,
    pub(super) is_settled: bool,
    /// Place and text of the patterns that were warned of.
    pub(super) told: HashSet<(String, String)>,
}

impl PatternChecks {
    pub(super) fn new() -> Self {
        Self {
            early: Some(Instant::now() + EARLY_CHECK),
            is_settled: false,
            told: HashSet::new(),
        }
    }
}
