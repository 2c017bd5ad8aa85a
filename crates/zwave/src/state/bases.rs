//! Which node a base topic belongs to.

use std::collections::{BTreeMap, HashMap};

use crate::node::{MAX_NODES, Node};
use crate::topic::{self, Form, Style, UNNAMED};
use crate::value::NodeId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    One(NodeId),
    /// Two nodes could have it, under different settings of the gateway: a status message will tell.
    Contested,
    /// Two nodes have it under the same setting: their names are alike, and nothing will tell.
    Shared,
}

#[derive(Debug, Default)]
pub(crate) struct Bases {
    owners: HashMap<String, Owner>,
    /// What live messages said; it outlasts the next list of nodes, for bases that can not be computed.
    live: HashMap<String, NodeId>,
}

impl Bases {
    pub(crate) fn rebuild(&mut self, nodes: &BTreeMap<NodeId, Node>) {
        self.owners.clear();
        for (names, locations) in [(true, true), (true, false), (false, true), (false, false)] {
            let style = Style {
                form: Form::Named,
                names,
                locations,
            };
            self.add(style, nodes);
        }
        self.live.retain(|_, node| nodes.contains_key(node));
        // Names are the truth; what was said decides where they do not.
        for (base, node) in &self.live {
            let owner = self.owners.entry(base.clone()).or_insert(Owner::Contested);
            if *owner == Owner::Contested {
                *owner = Owner::One(*node);
            }
        }
    }

    fn add(&mut self, style: Style, nodes: &BTreeMap<NodeId, Node>) {
        let mut own = HashMap::with_capacity(nodes.len());
        for node in nodes.values() {
            own.entry(style.base(node.id, &node.name, &node.location))
                .and_modify(|owner| *owner = Owner::Shared)
                .or_insert(Owner::One(node.id));
        }
        for (base, owner) in own {
            let known = self.owners.entry(base).or_insert(owner);
            if *known != owner {
                *known = match (*known, owner) {
                    (Owner::Shared, _) | (_, Owner::Shared) => Owner::Shared,
                    _ => Owner::Contested,
                };
            }
        }
    }

    pub(crate) fn learn(&mut self, base: &str, node: NodeId, live: bool) {
        // Every node has a few bases; more is somebody's nonsense.
        let room = self.owners.len() < 8 * MAX_NODES;
        if self.is_shared(base) || !(room || self.owners.contains_key(base)) {
            return;
        }
        self.owners.insert(base.to_owned(), Owner::One(node));
        if live {
            self.live.insert(base.to_owned(), node);
        }
    }

    pub(crate) fn node(&self, base: &str) -> Option<NodeId> {
        match self.owners.get(base) {
            Some(Owner::One(node)) => Some(*node),
            Some(_) => None,
            None => numbered(base),
        }
    }

    pub(crate) fn is_shared(&self, base: &str) -> bool {
        self.owners.get(base) == Some(&Owner::Shared)
    }

    pub(crate) fn forget(&mut self, node: NodeId) {
        self.owners.retain(|_, owner| *owner != Owner::One(node));
        self.live.retain(|_, known| *known != node);
    }
}

/// Whether a node of this name and location can have this base.
pub(crate) fn can_have(node: &Node, base: &str) -> bool {
    topic::bases(node.id, &node.name, &node.location)
        .iter()
        .any(|own| own == base)
}

/// `nodeID_6`, with or without a location before it.
fn numbered(base: &str) -> Option<NodeId> {
    let last = base.rsplit('/').next()?;
    last.strip_prefix(UNNAMED)?.parse().ok()
}
