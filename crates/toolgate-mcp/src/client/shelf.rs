//! Where a server's tools are offered: the one place that puts them into the manager.

use std::sync::{Arc, Mutex, PoisonError};

use toolgate_core::{Rank, Source, Tool, ToolManager};

/// One per server. Rank and tools change by different hands, so both stand behind one lock.
pub(crate) struct Shelf {
    manager: Arc<ToolManager>,
    source: Source,
    server: String,
    goods: Mutex<Goods>,
}

struct Goods {
    rank: Rank,
    tools: Vec<Arc<dyn Tool>>,
}

impl Shelf {
    /// Empty.
    pub(crate) fn new(manager: Arc<ToolManager>, server: &str, rank: Rank) -> Self {
        Self {
            manager,
            source: Source::Mcp(server.to_owned()),
            server: server.to_owned(),
            goods: Mutex::new(Goods {
                rank,
                tools: Vec::new(),
            }),
        }
    }

    /// Offers these tools instead of those before, in one step.
    pub(crate) fn offer(&self, tools: Vec<Arc<dyn Tool>>) {
        self.change(|goods| goods.tools = tools);
        self.manager.set_absent(&self.server, None);
    }

    /// Takes all tools away; whoever asks for one is told why.
    pub(crate) fn clear(&self, why: Option<&str>) {
        if !self.goods().tools.is_empty() {
            self.offer(Vec::new());
        }
        self.manager.set_absent(&self.server, why);
    }

    /// The same tools at another rank.
    pub(crate) fn rank(&self, rank: Rank) {
        if self.goods().rank != rank {
            self.change(|goods| goods.rank = rank);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Goods)) {
        let mut goods = self.goods();
        change(&mut goods);
        self.manager
            .replace(&self.source, goods.rank, goods.tools.clone());
    }

    fn goods(&self) -> std::sync::MutexGuard<'_, Goods> {
        self.goods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
