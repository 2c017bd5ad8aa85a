//! The simulated API: requests on `api/<function>/set`, replies on the same topic without `/set`.

use serde_json::{Map, Value as Json, json};

use super::options::ApiFault;
use super::publishing::{HOME_ID, HOME_NAME, VERSION};
use super::radio::{FAIL, PendingReply, RadioJob, RadioWork, ReplyKind};
use super::world::SimulatedWorld;
use crate::value::{NodeId, ValueId};

impl SimulatedWorld {
    pub(super) fn answer_request(&mut self, function: &str, origin: Json) {
        let args = match origin.get("args") {
            Some(Json::Array(args)) => json!(args),
            _ => json!([]),
        };
        let reply = PendingReply {
            function: function.to_owned(),
            args: args.clone(),
            origin,
            kind: ReplyKind::Outcome,
        };
        match self.api {
            ApiFault::Silent => return,
            ApiFault::Refuses => return self.refuse(&reply, "Driver not ready"),
            ApiFault::None => {}
        }
        let result = match function {
            "getNodes" => self.nodes_json(),
            "getInfo" => self.info(),
            "_getScenes" => self.scenes_json(),
            "writeValue" => return self.request_write(reply),
            "pollValue" => return self.request_value(reply),
            "refreshCCValues" => {
                return self.request_class(reply, &args[0], &args[1], ReplyKind::Nothing);
            }
            "sendCommand" if args[1] == "get" => {
                let (node, class) = (&args[0]["nodeId"], &args[0]["commandClass"]);
                return self.request_class(reply, node, class, ReplyKind::Values);
            }
            "pingNode" => match self.known_node(&args[0]) {
                Some(node) => {
                    let (work, reply) = (RadioWork::Ping, Some(reply));
                    return self.enqueue(RadioJob { node, work, reply });
                }
                None => json!(false),
            },
            "_activateScene" => return self.activate_scene(reply),
            "setNodeName" => return self.rename_node(reply, |node, text| node.name = text),
            "setNodeLocation" => return self.rename_node(reply, |node, text| node.location = text),
            _ => return self.refuse(&reply, "Unknown API"),
        };
        self.answer(Some(reply), Some(result));
    }

    fn nodes_json(&self) -> Json {
        let values = self.broadcast.iter();
        let values = values.map(|value| (value.id.to_string(), value.describe(255).into()));
        let everybody = json!({
            "id": 255, "name": "Broadcast", "virtual": true, "kind": "broadcast",
            "ready": true, "available": true, "failed": false, "inited": true,
            "values": values.collect::<Map<_, _>>(), "eventsQueue": [],
        });
        let nodes = self.nodes.values().map(|node| {
            let mut whole = node.describe_fully();
            if let (true, Some(fields)) = (node.is_controller(), whole.as_object_mut()) {
                fields.remove("values");
            }
            whole
        });
        [everybody].into_iter().chain(nodes).collect()
    }

    fn info(&self) -> Json {
        json!({
            "homeid": HOME_ID, "name": HOME_NAME, "controllerId": 1, "uptime": self.uptime(),
            "status": "scan done", "cntStatus": "Scan completed", "inclusionState": 0,
            "appVersion": VERSION, "zwaveVersion": "15.29.0", "serverVersion": "3.10.2",
        })
    }

    fn scenes_json(&self) -> Json {
        let scenes = self.scenes.iter().map(|scene| {
            let values = scene.writes.iter().map(|write| {
                let mut value = json!({
                    "id": format!("{}-{}", write.node, write.value_id()), "nodeId": write.node,
                    "commandClass": write.command_class, "endpoint": 0,
                    "property": write.property, "value": write.value, "timeout": 0,
                });
                if let Some(key) = &write.key {
                    value["propertyKey"] = json!(key);
                }
                value
            });
            json!({ "sceneid": scene.id, "label": scene.label, "values": values.collect::<Json>() })
        });
        scenes.collect()
    }

    fn request_write(&mut self, reply: PendingReply) {
        if reply.args[0].is_null() {
            let reason = "Cannot read properties of undefined (reading 'commandClass')";
            return self.refuse(&reply, reason);
        }
        match self.find_value(&reply.args[0]) {
            Some((node, value)) => {
                let requested = reply.args[1].clone();
                self.enqueue_write(node, value, requested, Some(reply));
            }
            None => self.answer(Some(reply), Some(json!({ "status": FAIL }))),
        }
    }

    fn request_value(&mut self, mut reply: PendingReply) {
        let Some((node, value)) = self.find_value(&reply.args[0]) else {
            return self.refuse(&reply, "The value cannot be polled");
        };
        reply.kind = ReplyKind::Value(value);
        self.enqueue_read(node, vec![vec![value]], Some(reply));
    }

    fn request_class(
        &mut self,
        mut reply: PendingReply,
        node: &Json,
        class: &Json,
        kind: ReplyKind,
    ) {
        reply.kind = kind;
        let Some(id) = self.known_node(node) else {
            return self.refuse(&reply, "Node not found");
        };
        let class = class.as_u64();
        let values = self.nodes.get(&id).map(|node| {
            let values = node.values.iter().enumerate();
            let values = values.filter(|(_, value)| {
                Some(u64::from(value.id.command_class)) == class
                    && value.real.is_some()
                    && value.id.property != "duration"
            });
            values.map(|(at, _)| vec![at]).collect::<Vec<_>>()
        });
        self.enqueue_read(id, values.unwrap_or_default(), Some(reply));
    }

    fn activate_scene(&mut self, reply: PendingReply) {
        let wanted = reply.args[0].as_u64();
        let Some(scene) = self.scenes.iter().find(|scene| Some(scene.id) == wanted) else {
            return self.refuse(&reply, "No scene found with given sceneid");
        };
        let writes = scene.writes.iter().filter_map(|write| {
            let value = self.nodes.get(&write.node)?.index(&write.value_id())?;
            Some((write.node, value, write.value.clone()))
        });
        for (node, value, requested) in writes.collect::<Vec<_>>() {
            self.enqueue_write(node, value, requested, None);
        }
        self.answer(Some(reply), Some(json!(true)));
    }

    /// As in the real gateway, a node's topics change only when its values are next published.
    fn rename_node(
        &mut self,
        reply: PendingReply,
        set: impl FnOnce(&mut super::node::SimulatedNode, String),
    ) {
        let text = reply.args[1].as_str().map(str::to_owned);
        let node = self.known_node(&reply.args[0]);
        match (node.and_then(|node| self.nodes.get_mut(&node)), text) {
            (Some(node), Some(text)) => {
                set(node, text);
                self.answer(Some(reply), Some(json!(true)));
            }
            _ => self.refuse(&reply, "Invalid Node ID"),
        }
    }

    fn known_node(&self, node: &Json) -> Option<NodeId> {
        let id = NodeId::try_from(node.as_u64()?).ok()?;
        self.nodes.contains_key(&id).then_some(id)
    }

    fn find_value(&self, description: &Json) -> Option<(NodeId, usize)> {
        let node = self.known_node(&description["nodeId"])?;
        let id = ValueId {
            command_class: description["commandClass"].as_u64()?.try_into().ok()?,
            endpoint: description["endpoint"]
                .as_u64()
                .unwrap_or(0)
                .try_into()
                .ok()?,
            property: description["property"].as_str()?.to_owned(),
            key: match &description["propertyKey"] {
                Json::String(key) => Some(key.clone()),
                Json::Number(key) => Some(key.to_string()),
                _ => None,
            },
        };
        Some((node, self.nodes.get(&node)?.index(&id)?))
    }

    pub(super) fn answer(&mut self, reply: Option<PendingReply>, result: Option<Json>) {
        if let Some(reply) = reply {
            self.publish_reply(&reply, true, "Success zwave api call", result);
        }
    }

    pub(super) fn refuse(&mut self, reply: &PendingReply, message: &str) {
        self.publish_reply(reply, false, message, None);
    }

    fn publish_reply(
        &mut self,
        reply: &PendingReply,
        success: bool,
        message: &str,
        result: Option<Json>,
    ) {
        let mut payload = json!({
            "success": success, "message": message, "args": reply.args, "origin": reply.origin,
        });
        if let Some(result) = result {
            payload["result"] = result;
        }
        let topic = format!("_CLIENTS/{}/api/{}", self.gateway, reply.function);
        self.publish(&topic, &payload, false);
    }
}
