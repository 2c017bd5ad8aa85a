//! Figures for the dashboard: how often, how fast, how well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use toolgate_core::{CallRecord, Observer};

/// Counts calls. Cheap to clone.
#[derive(Clone, Default)]
pub struct Stats(Arc<AtomicU64>);

impl Observer for Stats {
    fn finished<'a>(&'a self, _: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        None
    }
}
