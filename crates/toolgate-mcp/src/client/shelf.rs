//! Where a server's tools are offered: the one place that puts them into the manager.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_core::{
    CallContext, Rank, Source, Tool, ToolDefinition, ToolFuture, ToolManager, ValidArguments,
    Withheld,
};

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
    /// Those that have only their name here, by their name on the server.
    withheld: HashMap<String, Withheld>,
    /// It was said why there are none.
    is_told: bool,
    /// The server's configuration changed, and another shelf speaks for it.
    is_closed: bool,
}

impl Shelf {
    pub(crate) fn new(manager: Arc<ToolManager>, server: &str, rank: Rank) -> Self {
        Self {
            manager,
            source: Source::Mcp(server.to_owned()),
            server: server.to_owned(),
            goods: Mutex::new(Goods {
                rank,
                tools: Vec::new(),
                withheld: HashMap::new(),
                is_told: false,
                is_closed: false,
            }),
        }
    }

    /// Offers these tools instead of those before, in one step; of those that are withheld only the names.
    /// Returns how many that leaves.
    pub(crate) fn offer(
        &self,
        tools: Vec<Arc<dyn Tool>>,
        withheld: HashMap<String, Withheld>,
    ) -> usize {
        let mut goods = self.goods();
        if !goods.is_closed {
            goods.tools = tools;
            goods.withheld = withheld;
            self.publish(&goods);
            self.manager.set_absent(&self.server, None);
            goods.is_told = false;
        }
        goods.offered()
    }

    /// The same tools, of which others are withheld now. Returns how many that leaves.
    pub(crate) fn withhold(&self, withheld: HashMap<String, Withheld>) -> usize {
        let mut goods = self.goods();
        if !goods.is_closed {
            goods.withheld = withheld;
            self.publish(&goods);
        }
        goods.offered()
    }

    /// The server is down. Tools that are known stay, so that nobody else takes their names; whoever asks for one that isn't
    /// is told why.
    pub(crate) fn fail(&self, why: &str) {
        let mut goods = self.goods();
        if goods.tools.is_empty() && !goods.is_closed {
            self.manager.set_absent(&self.server, Some(why));
            goods.is_told = true;
        }
    }

    /// The server is gone for good: takes all tools away, and the reason why there were none.
    pub(crate) fn clear(&self) {
        let mut goods = self.goods();
        if goods.is_closed {
            return;
        }
        if !goods.tools.is_empty() {
            goods.tools.clear();
            self.publish(&goods);
        }
        // What others have said of it stays.
        if std::mem::take(&mut goods.is_told) {
            self.manager.set_absent(&self.server, None);
        }
    }

    /// Changes nothing any more, nor takes anything away: the tools are left to the shelf that replaces this one.
    pub(crate) fn close(&self) {
        self.goods().is_closed = true;
    }

    pub(crate) fn rank(&self, rank: Rank) {
        let mut goods = self.goods();
        if goods.rank != rank && !goods.is_closed {
            goods.rank = rank;
            self.publish(&goods);
        }
    }

    fn publish(&self, goods: &Goods) {
        let tools = goods.tools.iter().map(|tool| {
            let name = tool.definition().original_name();
            match goods.withheld.get(name) {
                Some(why) => WithheldTool::wrap(tool, why.clone()),
                None => Arc::clone(tool),
            }
        });
        self.manager
            .replace(&self.source, goods.rank, tools.collect());
    }

    fn goods(&self) -> parking_lot::MutexGuard<'_, Goods> {
        self.goods.lock()
    }
}

impl Goods {
    fn offered(&self) -> usize {
        let is_withheld = |tool: &&Arc<dyn Tool>| {
            let name = tool.definition().original_name();
            self.withheld.contains_key(name)
        };
        self.tools.len() - self.tools.iter().filter(is_withheld).count()
    }
}

/// Keeps a tool's name, and never runs the tool.
struct WithheldTool {
    definition: ToolDefinition,
}

impl WithheldTool {
    fn wrap(tool: &Arc<dyn Tool>, why: Withheld) -> Arc<dyn Tool> {
        Arc::new(Self {
            definition: tool.definition().withhold(why),
        })
    }
}

impl Tool for WithheldTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// The executor doesn't even find it; this is for whoever invokes a tool otherwise.
    fn invoke<'a>(&'a self, _: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        let why = self.definition.withheld().cloned();
        let error = why.unwrap_or_else(|| Withheld::new("is withheld", ""));
        Box::pin(async move { Err(error.error(context.tool_name())) })
    }
}
