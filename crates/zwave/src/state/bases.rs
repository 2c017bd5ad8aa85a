//! Maps base topics to nodes.

use std::collections::{BTreeMap, HashMap};

use crate::node::{MAX_NODES, ZwaveNode};
use crate::topic::{TopicStyle, UNNAMED_PREFIX};
use crate::value::NodeId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BaseOwner {
    One(NodeId),
    /// Two nodes could have it under different gateway settings; a status message will decide.
    Contested,
    /// Two nodes have it under the same settings, because their names are alike,
    /// so nothing can decide.
    Shared,
}

#[derive(Debug, Default)]
pub(crate) struct BaseTopics {
    owners: HashMap<String, BaseOwner>,
    /// Learned from live messages. Survives a new list of nodes, for bases that can't be computed.
    live: HashMap<String, NodeId>,
}

impl BaseTopics {
    pub(crate) fn rebuild(&mut self, nodes: &BTreeMap<NodeId, ZwaveNode>) {
        self.owners.clear();
        for style in TopicStyle::ALL {
            self.add(style, nodes);
        }
        self.live.retain(|_, node| nodes.contains_key(node));
        // Names have priority; live messages decide where names are ambiguous.
        for (base, node) in &self.live {
            let owner = self.owners.entry(base.clone());
            let owner = owner.or_insert(BaseOwner::Contested);
            if *owner == BaseOwner::Contested {
                *owner = BaseOwner::One(*node);
            }
        }
    }

    fn add(&mut self, style: TopicStyle, nodes: &BTreeMap<NodeId, ZwaveNode>) {
        let mut own = HashMap::with_capacity(nodes.len());
        for node in nodes.values() {
            own.entry(style.base(node.id, &node.name, &node.location))
                .and_modify(|owner| *owner = BaseOwner::Shared)
                .or_insert(BaseOwner::One(node.id));
        }
        for (base, owner) in own {
            let known = self.owners.entry(base).or_insert(owner);
            if *known != owner {
                *known = match (*known, owner) {
                    (BaseOwner::Shared, _) | (_, BaseOwner::Shared) => BaseOwner::Shared,
                    _ => BaseOwner::Contested,
                };
            }
        }
    }

    pub(crate) fn learn(&mut self, base: &str, node: NodeId, live: bool) {
        // Every node has a few bases; more would be a flood.
        let has_room = self.owners.len() < 8 * MAX_NODES;
        if self.is_shared(base) || !(has_room || self.owners.contains_key(base)) {
            return;
        }
        self.owners.insert(base.to_owned(), BaseOwner::One(node));
        if live {
            self.live.insert(base.to_owned(), node);
        }
    }

    pub(crate) fn node(&self, base: &str) -> Option<NodeId> {
        match self.owners.get(base) {
            Some(BaseOwner::One(node)) => Some(*node),
            Some(_) => None,
            None => parse_unnamed_base(base),
        }
    }

    pub(crate) fn is_shared(&self, base: &str) -> bool {
        self.owners.get(base) == Some(&BaseOwner::Shared)
    }

    pub(crate) fn forget(&mut self, node: NodeId) {
        self.owners
            .retain(|_, owner| *owner != BaseOwner::One(node));
        self.live.retain(|_, known| *known != node);
    }
}

pub(crate) fn is_base_of(node: &ZwaveNode, base: &str) -> bool {
    let mut styles = TopicStyle::ALL.into_iter();
    styles.any(|style| style.base(node.id, &node.name, &node.location) == base)
}

fn parse_unnamed_base(base: &str) -> Option<NodeId> {
    let last = base.rsplit('/').next()?;
    last.strip_prefix(UNNAMED_PREFIX)?.parse().ok()
}
