//! Publishes what the gateway would, in the configured format.

use bytes::Bytes;
use serde_json::{Map, Value as Json, json};

use super::options::PayloadForm;
use super::value::SimulatedValue;
use super::world::{SimulatedPublish, SimulatedWorld};
use crate::topic;
use crate::value::NodeId;
use toolgate_home::DeviceStatus;

// Renaming a node adds routes, so they need a limit.
const MAX_ROUTES: usize = 100_000;

pub(super) const VERSION: &str = "11.22.2";

/// Parses a command as the gateway does: JSON, or else a string.
pub(super) fn parse_payload(payload: &[u8]) -> Json {
    let text = String::from_utf8_lossy(payload);
    serde_json::from_str(&text).unwrap_or_else(|_| json!(text))
}

impl SimulatedWorld {
    pub(super) fn announce(&mut self) {
        let wall = self.wall();
        let own = format!("_CLIENTS/{}", self.gateway);
        for (topic, value) in [("version", json!(VERSION)), ("status", json!(true))] {
            let payload = json!({ "value": value, "time": wall });
            self.publish(&format!("{own}/{topic}"), &payload, true);
        }
        self.publish("driver/status", &json!(true), true);
        let driver = json!([{ "homeid": HOME_ID, "name": HOME_NAME, "controllerId": 1 }]);
        self.event("driver", "driver_ready", &driver);
        let ids = self.nodes.keys().copied().collect::<Vec<_>>();
        for id in &ids {
            self.publish_status(*id, DeviceStatus::Unknown);
        }
        for id in ids {
            self.announce_node(id);
        }
        for value in self.broadcast.clone() {
            self.publish_broadcast(&value);
        }
        self.event("driver", "all_nodes_ready", &json!([]));
    }

    fn announce_node(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let (status, count, summary) = (node.status, node.values.len(), node.summary());
        let (base, info) = (self.base(id), Json::Object(node.describe()));
        self.publish_status(id, status);
        self.publish(&format!("{base}/nodeinfo"), &info, true);
        if id != 1 {
            self.publish_active(id);
        }
        for value in 0..count {
            self.publish_value(id, value);
        }
        self.event("node", "node_ready", &json!([summary]));
    }

    pub(super) fn publish_value(&mut self, id: NodeId, value: usize) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let (simulated, twice) = (&node.values[value], node.faults.publishes_twice);
        if simulated.unpublished {
            return;
        }
        let names = [
            ("nodeName", node.name.as_str()),
            ("nodeLocation", &node.location),
        ];
        let payload = self.payload(id, simulated, &names);
        let topic = self.value_topic(&self.base(id), simulated);
        if simulated.writeable && self.routes.len() < MAX_ROUTES {
            self.routes.insert(topic.clone(), (id, value));
        }
        for _ in 0..if twice { 2 } else { 1 } {
            self.push(&topic, payload.clone(), true);
        }
    }

    fn publish_broadcast(&mut self, value: &SimulatedValue) {
        let base = self.style.base(255, "Broadcast", "");
        let payload = self.payload(255, value, &[("nodeName", "Broadcast")]);
        let topic = self.value_topic(&base, value);
        self.push(&topic, payload, true);
    }

    fn payload(&self, node: NodeId, value: &SimulatedValue, names: &[(&str, &str)]) -> Bytes {
        let mut fields = match self.options.payloads {
            PayloadForm::Raw => {
                let text = value.known.as_ref().map(Json::to_string);
                return Bytes::from(text.unwrap_or_default());
            }
            PayloadForm::ValueId => value.describe(node),
            PayloadForm::TimeValue => {
                let mut fields = Map::new();
                let time = value.updated.unwrap_or_else(|| self.wall());
                fields.insert("time".to_owned(), json!(time));
                if let Some(value) = &value.known {
                    fields.insert("value".to_owned(), value.clone());
                }
                fields
            }
        };
        for (key, name) in names {
            fields.insert((*key).to_owned(), json!(name));
        }
        Bytes::from(Json::Object(fields).to_string())
    }

    pub(super) fn publish_status(&mut self, id: NodeId, status: DeviceStatus) {
        let there = status != DeviceStatus::Dead;
        let payload = match self.options.payloads {
            PayloadForm::Raw => json!(there),
            _ => json!({ "time": self.wall(), "value": there, "status": status, "nodeId": id }),
        };
        self.publish(&format!("{}/status", self.base(id)), &payload, true);
    }

    pub(super) fn publish_active(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let payload = match self.options.payloads {
            PayloadForm::Raw => json!(node.last_active),
            _ => json!({ "time": self.wall(), "value": node.last_active }),
        };
        self.publish(&format!("{}/lastActive", self.base(id)), &payload, true);
    }

    pub(super) fn event(&mut self, source: &str, name: &str, data: &Json) {
        let topic = format!("_EVENTS/{}/{source}/{name}", self.gateway);
        self.publish(&topic, &json!({ "data": data }), false);
    }

    pub(super) fn publish(&mut self, topic: &str, payload: &Json, retain: bool) {
        self.push(topic, Bytes::from(payload.to_string()), retain);
    }

    fn push(&mut self, topic: &str, payload: Bytes, retain: bool) {
        self.out.push(SimulatedPublish {
            topic: self.topics.with_prefix(topic),
            payload,
            retain,
        });
    }

    fn base(&self, id: NodeId) -> String {
        match self.nodes.get(&id) {
            Some(node) => self.style.base(id, &node.name, &node.location),
            None => String::new(),
        }
    }

    fn value_topic(&self, base: &str, value: &SimulatedValue) -> String {
        let suffix = topic::value_suffix(self.style.form, &value.id, value.property_name());
        format!("{base}/{suffix}")
    }
}

pub(super) const HOME_ID: u32 = 2_119_630_849;
pub(super) const HOME_NAME: &str = "0x7e570001";
