//! Where speech is played: what is configured, or the satellite that is connected now.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;

use crate::audio::Format;
use crate::{EngineError, Output, Playing};

/// An output that may be exchanged: a satellite that comes back is another connection.
pub(super) struct Outlet(Mutex<Arc<dyn Output>>);

impl Outlet {
    pub(super) fn new(output: Arc<dyn Output>) -> Self {
        Self(Mutex::new(output))
    }

    /// What is said from now on is played there.
    pub(super) fn exchange(&self, output: Arc<dyn Output>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = output;
    }
}

impl Output for Outlet {
    fn begin(&self, format: Format) -> BoxFuture<'_, Result<Box<dyn Playing>, EngineError>> {
        let output = Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(async move { output.begin(format).await })
    }
}
