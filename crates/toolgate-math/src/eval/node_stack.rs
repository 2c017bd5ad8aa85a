//! A stack of nodes that doesn't allocate memory while it is short.

use crate::tree::NodeId;

const SHORT: usize = 16;

#[derive(Default)]
pub(super) struct NodeStack {
    short: [NodeId; SHORT],
    length: usize,
    long: Vec<NodeId>,
}

impl NodeStack {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn push(&mut self, node: NodeId) {
        match self.short.get_mut(self.length) {
            Some(slot) => *slot = node,
            None => self.long.push(node),
        }
        self.length += 1;
    }

    pub(super) fn pop(&mut self) -> Option<NodeId> {
        self.length = self.length.checked_sub(1)?;
        match self.short.get(self.length) {
            Some(node) => Some(*node),
            None => self.long.pop(),
        }
    }
}
