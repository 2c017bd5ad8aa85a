//! Somebody who answers until the model is there.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use tokio::time::Instant;
use toolgate_models::{
    Catalog, Listener, ModelClient, ModelError, Provider, Reply, Request, ToolList,
};

/// Asks the model once it was found, and before that its stand-in.
pub(super) struct StandIn {
    stand_in: Arc<dyn ModelClient>,
    found: OnceLock<Arc<dyn ModelClient>>,
}

impl StandIn {
    pub(super) fn new(stand_in: Arc<dyn ModelClient>) -> Self {
        Self {
            stand_in,
            found: OnceLock::new(),
        }
    }

    /// From now on this one answers; the first that is found counts.
    pub(super) fn find(&self, model: Arc<dyn ModelClient>) {
        drop(self.found.set(model));
    }

    fn now(&self) -> &dyn ModelClient {
        self.found.get().unwrap_or(&self.stand_in).as_ref()
    }
}

impl ModelClient for StandIn {
    fn provider(&self) -> Provider {
        self.now().provider()
    }

    fn model(&self) -> &str {
        self.now().model()
    }

    fn prepare(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        self.now().prepare(deadline)
    }

    fn window(&self) -> usize {
        self.now().window()
    }

    fn most_tools(&self) -> Option<usize> {
        self.now().most_tools()
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        self.now().catalog(tools)
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.now().reply(request, listener)
    }
}
