//! A tool server that is still starting.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use toolgate_core::{Tool, ToolManager};
use toolgate_models::{ToolReadiness, Toolbox};

/// Its tools arrive when a test says so.
pub(crate) struct StartingServer {
    manager: Arc<ToolManager>,
    is_there: watch::Sender<bool>,
    pub(crate) starting: Mutex<Vec<String>>,
}

impl StartingServer {
    /// Adds to these tools, which are waited for from now on.
    pub(crate) fn to(manager: Arc<ToolManager>, toolbox: &Toolbox) -> Arc<Self> {
        let coming = Arc::new(Self {
            manager,
            is_there: watch::Sender::new(false),
            starting: Mutex::new(vec!["house".to_owned()]),
        });
        toolbox.set_readiness(Arc::<Self>::clone(&coming));
        coming
    }

    /// Connects the server, which offers these tools.
    pub(crate) fn arrive(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        self.manager.add_all(tools);
        self.is_there.send_replace(true);
    }
}

impl ToolReadiness for StartingServer {
    fn wait_until_complete(&self) -> BoxFuture<'_, ()> {
        let mut is_there = self.is_there.subscribe();
        async move { drop(is_there.wait_for(|is_there| *is_there).await) }.boxed()
    }

    fn starting_servers(&self) -> Vec<String> {
        self.starting.lock().clone()
    }

    fn wait_until_known<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        match self.manager.find(tool) {
            Some(_) => futures::future::ready(()).boxed(),
            None => self.wait_until_complete(),
        }
    }
}
