//! Stands in for the ranks of `toolgate-core` until they are there.

use std::sync::Arc;

use toolgate_core::{Source, Tool, ToolManager};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Override(usize),
    Local,
    Server(usize),
}

pub(crate) trait Replace {
    fn replace(&self, source: &Source, rank: Rank, tools: Vec<Arc<dyn Tool>>);
}

impl Replace for ToolManager {
    fn replace(&self, source: &Source, _: Rank, tools: Vec<Arc<dyn Tool>>) {
        self.remove(source);
        self.add_all(tools);
    }
}
