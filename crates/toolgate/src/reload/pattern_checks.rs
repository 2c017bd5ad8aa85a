//! Decides when to look for patterns that match no tool.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

// How long to wait for servers before the first check. The first start of a package runner takes
// minutes, and meanwhile a misspelled `policy.deny` lets everything through.
pub(super) const EARLY_CHECK: Duration = Duration::from_secs(5);

/// Patterns are checked early, with what is known then, and once more when
/// all servers have settled.
pub(super) struct PatternChecks {
    pub(super) early: Option<Instant>,
    pub(super) is_settled: bool,
    pub(super) reported: HashSet<(String, String)>,
}

impl PatternChecks {
    pub(super) fn new() -> Self {
        Self {
            early: Some(Instant::now() + EARLY_CHECK),
            is_settled: false,
            reported: HashSet::new(),
        }
    }
}
