//! Updates the state with value messages.

use std::sync::Arc;

use toolgate_mqtt::MqttMessage;

use super::{HomeState, MAX_POSTPONED, MAX_POSTPONED_BYTES, MAX_ROUTES, MessageTime};
use crate::node::{MAX_ALL_VALUES, MAX_VALUES, NodeValue};
use crate::payload::{self, ValueReport};
use crate::topic::{self, TopicForm, TopicStyle, ValueSuffix};
use crate::value::{NodeId, ValueId};

impl HomeState {
    pub(super) fn apply_value(&mut self, rest: &str, message: &MqttMessage, now: MessageTime) {
        let report = payload::parse_report(&message.payload);
        let described = report.described.as_ref();
        let identity = described.and_then(|value| Some((value.node_id?, value.id()?)));
        let split = topic::split_topic(rest);
        let found = match (identity, split) {
            (Some((node, id)), split) => {
                // A complete description identifies its node even on a custom topic without a base.
                let known = split.is_some() || self.nodes.contains_key(&node);
                let base = split.map_or(rest, |(base, _)| base);
                (known && self.learn_base(base, node, message)).then_some((node, id))
            }
            (None, Some((base, suffix))) => self.find_value(base, &suffix, rest),
            (None, None) => None,
        };
        let Some((node, id)) = found else {
            return self.postpone(rest, message);
        };
        if !self.ensure_value(node, &id, &report) {
            // The device may have gained a value. It is only believed once the gateway's list
            // confirms it.
            if !message.retained {
                self.note_unexpected(rest);
            }
            return;
        }
        if let Some((base, suffix)) = topic::split_topic(rest) {
            self.learn_style(node, base, suffix.form);
        }
        let topic: Arc<str> = Arc::from(rest);
        if self.routes.len() < MAX_ROUTES {
            self.routes.insert(Arc::clone(&topic), (node, id.clone()));
        }
        self.apply_report(node, &id, &report, &topic, message.retained, now);
    }

    /// Finds the value of a topic among the known nodes. The base is tried both with and without
    /// a key behind it.
    fn find_value(
        &self,
        base: &str,
        suffix: &ValueSuffix<'_>,
        rest: &str,
    ) -> Option<(NodeId, ValueId)> {
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
            .find(|(id, value)| suffix.matches(id, &value.property_name));
        Some((node, same.map_or(id, |(id, _)| id.clone())))
    }

    // Adds an unknown value, but only to a node that the gateway has not described: a message alone
    // must not turn a lamp into a lock.
    fn ensure_value(&mut self, node: NodeId, id: &ValueId, report: &ValueReport) -> bool {
        let Some(known) = self.nodes.get(&node) else {
            return false;
        };
        if known.values.contains_key(id) {
            return true;
        }
        let all: usize = self.nodes.values().map(|node| node.values.len()).sum();
        if known.described || known.values.len() >= MAX_VALUES || all >= MAX_ALL_VALUES {
            return false;
        }
        let value = match &report.described {
            Some(described) => (**described).clone().into_value(),
            None => NodeValue {
                property_name: id.property.clone(),
                ..NodeValue::default()
            },
        };
        if let Some(node) = self.nodes.get_mut(&node) {
            node.values.insert(id.clone(), value);
        }
        true
    }

    fn learn_style(&mut self, node: NodeId, base: &str, form: TopicForm) {
        let Some(node) = self.nodes.get(&node) else {
            return;
        };
        // A node without a location or a name says nothing about these settings, so the current
        // ones are tried first.
        for names in [self.style.names, !self.style.names] {
            for locations in [self.style.locations, !self.style.locations] {
                let style = TopicStyle {
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

    fn postpone(&mut self, rest: &str, message: &MqttMessage) {
        let Some((base, _)) = topic::split_topic(rest) else {
            return;
        };
        let size = message.topic.len() + message.payload.len();
        let fits = self.postponed_count < MAX_POSTPONED
            && self.postponed_bytes + size < MAX_POSTPONED_BYTES;
        if message.retained && self.nodes_listed_at.is_none() && fits {
            self.postponed_count += 1;
            self.postponed_bytes += size;
            let waiting = self.postponed.entry(base.to_owned()).or_default();
            waiting.push(message.clone());
        }
    }

    pub(super) fn apply_postponed(&mut self, base: &str) {
        let now = MessageTime::now();
        for message in self.postponed.remove(base).unwrap_or_default() {
            self.apply_message(&message, now);
        }
    }

    // A message whose node is still unknown is dropped, because the gateway's list is complete.
    pub(super) fn apply_all_postponed(&mut self) {
        let now = MessageTime::now();
        for message in std::mem::take(&mut self.postponed).into_values().flatten() {
            self.apply_message(&message, now);
        }
    }
}
