//! Messages of values.

use std::sync::Arc;

use toolgate_mqtt::Message;

use super::{MAX_PENDING, MAX_PENDING_BYTES, MAX_ROUTES, Now, State};
use crate::node::{MAX_ALL_VALUES, MAX_NODES, MAX_VALUES, Value};
use crate::payload::{self, Report};
use crate::topic::{self, Form, Style, Suffix};
use crate::value::{NodeId, ValueId};

impl State {
    pub(super) fn take_value(&mut self, rest: &str, message: &Message, now: Now) {
        let report = payload::report(&message.payload);
        let told = report.described.as_ref().and_then(|told| {
            let (node, id) = (told.node_id?, told.id()?);
            Some((node, id))
        });
        let split = topic::split(rest);
        let found = match (told, split) {
            (Some((node, id)), split) => {
                // Topics that people made up themselves have no base; they are as good.
                let known = split.is_some() || self.nodes.contains_key(&node);
                let base = split.map_or(rest, |(base, _)| base);
                (known && self.learn(base, node, message)).then_some((node, id))
            }
            (None, Some((base, suffix))) => self.find(base, &suffix, rest),
            (None, None) => None,
        };
        let Some((node, id)) = found else {
            return self.postpone(rest, message);
        };
        if !self.ensure(node, &id, &report) {
            // Perhaps the device can do more than it could; what can not be asked for is not believed.
            if !message.retained && self.odd.len() < MAX_NODES && self.odd.insert(rest.to_owned()) {
                self.ask_again = true;
            }
            return;
        }
        if let Some((base, suffix)) = topic::split(rest) {
            self.see_style(node, base, suffix.form);
        }
        let topic: Arc<str> = Arc::from(rest);
        if self.routes.len() < MAX_ROUTES {
            self.routes.insert(Arc::clone(&topic), (node, id.clone()));
        }
        self.take_report(node, &id, &report, &topic, message.retained, now);
    }

    /// The value of a topic by what nodes there are. A base is looked for both where a key may stand and where not.
    fn find(&self, base: &str, suffix: &Suffix<'_>, rest: &str) -> Option<(NodeId, ValueId)> {
        let longer = rest.rmatch_indices('/').nth(3).and_then(|(at, _)| {
            let suffix = topic::parse_suffix(&rest[at + 1..])?;
            Some((self.bases.node(&rest[..at])?, suffix))
        });
        let (node, suffix) = match (self.bases.node(base), longer) {
            (Some(node), _) => (node, suffix.clone()),
            (None, Some(longer)) => longer,
            (None, None) => return None,
        };
        let known = self.nodes.get(&node)?;
        let id = suffix.value_id();
        if known.values.contains_key(&id) {
            return Some((node, id));
        }
        let same = known
            .values
            .iter()
            .find(|(id, value)| suffix.is_of(id, &value.property_name));
        Some((node, same.map_or(id, |(id, _)| id.clone())))
    }

    /// Makes room for a value that is new, if nobody described the node: a message alone must not make a lock of a lamp.
    fn ensure(&mut self, node: NodeId, id: &ValueId, report: &Report) -> bool {
        let Some(known) = self.nodes.get(&node) else {
            return false;
        };
        if known.values.contains_key(id) {
            return true;
        }
        let all = self
            .nodes
            .values()
            .map(|node| node.values.len())
            .sum::<usize>();
        if known.described || known.values.len() >= MAX_VALUES || all >= MAX_ALL_VALUES {
            return false;
        }
        let value = match &report.described {
            Some(told) => (**told).clone().into_value(),
            None => Value {
                property_name: id.property.clone(),
                ..Value::default()
            },
        };
        if let Some(node) = self.nodes.get_mut(&node) {
            node.values.insert(id.clone(), value);
        }
        true
    }

    /// How the gateway writes topics, for values whose topic was not seen.
    fn see_style(&mut self, node: NodeId, base: &str, form: Form) {
        let Some(node) = self.nodes.get(&node) else {
            return;
        };
        // A node without location, or without name, can not tell about them.
        for names in [self.style.names, !self.style.names] {
            for locations in [self.style.locations, !self.style.locations] {
                let style = Style {
                    form,
                    names,
                    locations,
                };
                if style.base(node.id, &node.name, &node.location) == base {
                    self.style = style;
                    return;
                }
            }
        }
        self.style.form = form;
    }

    /// Keeps what the broker kept, until somebody says whose it is.
    fn postpone(&mut self, rest: &str, message: &Message) {
        let Some((base, _)) = topic::split(rest) else {
            return;
        };
        let size = message.topic.len() + message.payload.len();
        let fits =
            self.pending_count < MAX_PENDING && self.pending_bytes + size < MAX_PENDING_BYTES;
        if message.retained && self.answered.is_none() && fits {
            self.pending_count += 1;
            self.pending_bytes += size;
            let waiting = self.pending.entry(base.to_owned()).or_default();
            waiting.push(message.clone());
        }
    }

    pub(super) fn take_pending(&mut self, base: &str) {
        let now = Now::read();
        for message in self.pending.remove(base).unwrap_or_default() {
            self.take(&message, now);
        }
    }

    /// Takes all of them: what nobody claims now, nobody will.
    pub(super) fn take_all_pending(&mut self) {
        let now = Now::read();
        for message in std::mem::take(&mut self.pending).into_values().flatten() {
            self.take(&message, now);
        }
    }
}
